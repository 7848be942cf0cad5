"""The reason why a call returned no outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from vesper.api import remote_exceptions as told
from vesper.api.errors import Stopped
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


@final
@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """The reason why a call returned no outputs."""

    kind: str
    """`declared_error`, `failed`, `contract_broken`, `limit_hit`, `denied` or `engine_fault`."""
    code: str
    """The declared error's `error_code`, the code of a failure, the phase of a broken clause, the limit, the
    capability.
    """
    message: str
    fields: Mapping[str, Any]
    """The fields of a declared error, or the values in a broken clause."""
    where: str | None
    """`file:line:column` in the node, where there is a place."""
    problems: tuple[InputProblem, ...]
    """Every refused field, where the code is `bad_input`."""
    outcome: ended.Outcome
    """The outcome of the engine."""

    def __str__(self) -> str:
        return self.message

    def exception(self) -> VesperError:
        """Return the exception that `node.call` raises for this."""
        match self.outcome:
            case ended.DeclaredError(values):
                return told.DeclaredError(self.message, values)
            case ended.ContractBroken(phase, index, values):
                return told.ContractBroken(self.message, phase, index, values)
            case ended.Failed(_, None, problems):
                return told.BadInput(self.message, problems)
            case ended.Failed(code):
                return told.Raised(self.message, str(code))
            case _:
                return Stopped(self.message, self.outcome)
