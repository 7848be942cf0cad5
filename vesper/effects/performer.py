"""The interface between the Host and a performer.

A performer receives an `Ask` and returns the value of the completion in its Python form (docs/spec/values.md), or
raises `EffectFailed`. It checks no capability, retries nothing, and writes no journal: the Host does. It may be called
from any number of threads at once, and in a process that was forked from the one that made it.

The effect class determines how a repetition is handled (docs/spec/effects.md). After a crash the Host repeats the
`Ask`, with `is_repeat`, where the class allows it:

- `read`: the performer does it again.
- `keyed`: the performer does it under `ask.key`, so that the other side recognises a repeat.
- `txn`: the performer puts a receipt, named by `ask.receipt`, into the same transaction; where the receipt is there
  already it returns the value that stands in it and does nothing else.
- `probe`: `probe` finds out whether it happened.
- `unsafe`: the Host does not repeat it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from vesper.values.model import Value
from vesper.values.types import Type


def no_secret(name: str) -> str:
    """Refuse every secret: the `secret` of an execution that may use none."""
    raise EffectFailed("not_found", f"the secret `{name}` may not be used here")


@dataclass(frozen=True, slots=True)
class Ask:
    """One attempt at one effect."""

    execution: str
    path: str
    """The step, in loops with the iteration (`charge[2]`), of a called node under the calling step (`pay/charge`)."""
    effect: str
    effect_class: str
    fixed: Mapping[str, str]
    """The fields that the node fixes, as `schemas/effects.toml` names them."""
    arguments: Mapping[str, Value]
    gives: Type
    """The type that the step declares for the value."""
    key: str | None = None
    timeout: float | None = None
    """Seconds that this attempt may take in all; longer fails with `timeout`."""
    is_repeat: bool = False
    """True where it may have been performed before: by an earlier attempt, or before a crash."""
    secret: Callable[[str], str] = no_secret
    """The text of a secret that the execution may use; raises `EffectFailed` for others."""
    references: Mapping[str, str] | None = None
    """The references that `secret` steps of this execution gave, and the names of their secrets. Another text that
    looks like a reference is a text: its sender must not choose which secret replaces it."""
    is_sensitive: bool = False
    """True where arguments, key or answer hold sensitive data: logs must not repeat them."""

    @property
    def receipt(self) -> str:
        """Return the name of this effect, unique among all effects. It is made of its key, or else of its place."""
        return (
            f"key:{self.key}"
            if self.effect_class == "keyed" and self.key is not None
            else f"run:{self.execution}/{self.path}"
        )


class EffectFailed(Exception):
    """An effect ended without a value. `code` is one that the effect declares.

    The message is for people and contains no secret.
    """

    def __init__(
        self, code: str, message: str, *, retry_after: float | None = None, may_have_happened: bool = False
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after = retry_after
        """Seconds that the other side asked us to wait."""
        self.may_have_happened = may_have_happened
        """True where the other side may have acted all the same: a request that was sent, and no answer."""


class _NotDone:
    def __repr__(self) -> str:
        return "NOT_DONE"


NOT_DONE: Final = _NotDone()
"""What `probe` gives where the effect did not happen."""


class Performer(Protocol):
    """Performs one or several effects."""

    def perform(self, ask: Ask) -> object:
        """Return the value, in its Python form. Raises `EffectFailed`."""
        ...

    def probe(self, ask: Ask) -> object:
        """Return the value of an effect of class `probe` that happened before, or `NOT_DONE`.

        Raises `EffectFailed` where that cannot be determined.
        """
        ...

    def close(self) -> None:
        """Close connections. The performer may be used again."""
        ...
