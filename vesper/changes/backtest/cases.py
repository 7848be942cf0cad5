"""Cases of a backtest: the inputs, the completions and the outcome of recorded runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from vesper.engines.engine import Request
from vesper.engines.outcome import Outcome
from vesper.journal.typed_json import encode, encode_text


@dataclass(frozen=True, slots=True)
class Answer:
    """The recorded completion of a request, and the request that it answers."""

    effect: str
    fixed: Mapping[str, object] | None
    """None where the journal has only a digest of the request, because it was too large. `arguments` likewise."""
    arguments: Mapping[str, object] | None
    value: object = None
    failure: str | None = None

    def is_for(self, request: Request) -> bool:
        """Return whether the request has the same effect and arguments. Its key and its class are not compared."""
        if request.effect != self.effect:
            return False
        if self.fixed is None or self.arguments is None:
            return True
        return dict(request.fixed) == dict(self.fixed) and encode(dict(request.arguments)) == encode(
            dict(self.arguments)
        )


@dataclass(frozen=True, slots=True)
class Case:
    """One recorded run, or one row of a file."""

    name: str
    inputs: Mapping[str, object]
    now: datetime | None = None
    answers: Mapping[str, Answer] = field(default_factory=dict)
    """By the path of the request."""
    recorded: Outcome | None = None
    """None for a row of a file, which has no outcome."""
    semantic_hash: str | None = None
    """The definition that ran."""

    @property
    def size(self) -> int:
        """Characters of the inputs as typed JSON: of several examples the smallest is shown."""
        return len(encode_text(dict(self.inputs)))


@dataclass(frozen=True, slots=True)
class Excluded:
    """A recorded run that cannot be replayed, and why."""

    name: str
    reason: str


UNREADABLE = "unreadable: the journal of the run is broken, or its key is missing"
ERASED = "erased: the key of the run was deleted"
NO_INPUTS = "no inputs: the record does not have them"


def not_ended_reason(status: str) -> str:
    """Return the reason of a run that has not ended."""
    return f"not ended: {status.replace('_', ' ')}"
