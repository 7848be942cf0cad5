"""The reason why a call returned no outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, final

from vesper.engines import outcome as ended
from vesper.values.vesper_error import VesperError


@dataclass(frozen=True, slots=True)
class InputProblem:
    """A field of the inputs that was refused."""

    path: str
    """`items[2].qty`; empty where the object as a whole was refused."""
    kind: str
    """`missing`, `unknown`, `wrong_type`, `out_of_range`, `malformed`, `not_a_member`, `duplicate` or `too_deep`."""
    expected: str
    got: str | None
    """The given value, as text; None where none was given."""
    message: str
    line: int | None = None
    """Line in the given JSON text, from 1; None where the inputs were no text."""
    column: int | None = None

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@dataclass(frozen=True, slots=True)
class Explained:
    """An explained ending."""

    kind: str
    code: str
    message: str
    fields: Mapping[str, Any]
    where: str | None
    problems: tuple[InputProblem, ...]
    outcome: ended.Outcome

    @property
    def is_refusal(self) -> bool:
        return isinstance(self.outcome, ended.Failed) and self.outcome.at is None

    def explain(self) -> Explained:
        return self


class Ending(Protocol):
    """The end of a call without outputs, which is explained when its texts are read."""

    @property
    def kind(self) -> str: ...
    @property
    def code(self) -> str: ...
    @property
    def is_refusal(self) -> bool:
        """True where the inputs were refused."""

    def explain(self) -> Explained: ...


@final
class ErrorInfo:
    """The reason why a call returned no outputs. Its texts are made when they are read."""

    __slots__ = ("_ending",)
    __hash__ = None  # type: ignore[assignment]  # it holds mappings

    def __init__(self, ending: Ending) -> None:
        self._ending = ending

    @property
    def kind(self) -> str:
        """`declared_error`, `failed`, `contract_broken`, `limit_hit`, `denied` or `engine_fault`."""
        return self._ending.kind

    @property
    def code(self) -> str:
        """The declared error's `error_code`, the code of a failure, the phase of a broken clause, the limit, the
        capability.
        """
        return self._ending.code

    @property
    def message(self) -> str:
        return self._explained.message

    @property
    def fields(self) -> Mapping[str, Any]:
        """The fields of a declared error, or the values in a broken clause."""
        return self._explained.fields

    @property
    def where(self) -> str | None:
        """`file:line:column` in the node, where there is a place."""
        return self._explained.where

    @property
    def problems(self) -> tuple[InputProblem, ...]:
        """Every refused field, where the code is `bad_input`."""
        return self._explained.problems

    @property
    def outcome(self) -> ended.Outcome:
        """The outcome of the engine."""
        return self._explained.outcome

    @property
    def _explained(self) -> Explained:
        ending = self._ending
        if type(ending) is not Explained:
            ending = self._ending = ending.explain()
        return ending

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ErrorInfo) and self._explained == other._explained

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        return f"<ErrorInfo {self.kind}: {self.message}>"  # fields and outcome may be sensitive

    def __reduce__(self) -> tuple[type[ErrorInfo], tuple[Explained]]:
        return ErrorInfo, (self._explained,)

    def exception(self) -> VesperError:
        """Return the exception that `node.call` raises for this."""
        from vesper.api import remote_exceptions as told  # it imports this module

        kind = "refused" if self._ending.is_refusal else self.kind
        return told.BY_KIND.get(kind, told.Stopped)(self)
