"""The outcomes of an execution: one closed list for every engine.

A declared error is a value; an engine fault is a bug.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from vesper.values.generated.errors import ErrorCode
from vesper.values.model import Problem, Value


@dataclass(frozen=True, slots=True)
class Returned:
    value: Mapping[str, Value]
    kind: ClassVar[str] = "returned"


@dataclass(frozen=True, slots=True)
class Failed:
    """A failure at an expression of the IR; refused inputs have no expression.

    The code is one of the closed list, or that of an effect or a called node: `http_402`, a declared error.
    """

    code: ErrorCode | str
    at: int | None
    problems: tuple[Problem, ...] = ()
    why: str = field(default="", compare=False, repr=False)
    """The message of the request that failed, for messages; ignored by equality."""
    kind: ClassVar[str] = "failed"


@dataclass(frozen=True, slots=True)
class ContractBroken:
    phase: str
    index: int
    values: Mapping[str, Value]
    kind: ClassVar[str] = "contract_broken"


@dataclass(frozen=True, slots=True)
class DeclaredError:
    """An error of the node's own `outputs.error`."""

    value: Mapping[str, Value]
    kind: ClassVar[str] = "declared_error"


@dataclass(frozen=True, slots=True)
class Denied:
    """A required capability was not granted."""

    capability: str
    why: str = ""
    """The rule that denies it, for messages; ignored by equality."""
    kind: ClassVar[str] = "denied"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Denied) and self.capability == other.capability

    def __hash__(self) -> int:
        return hash((Denied, self.capability))


COUNTED_LIMITS = frozenset(("fuel", "memory"))
"""Limits that every engine counts alike. When another limit is hit depends on the machine."""


@dataclass(frozen=True, slots=True)
class LimitHit:
    """A limit of the execution was hit: `fuel`, `memory`, `time`, or one of the Host."""

    limit: str
    kind: ClassVar[str] = "limit_hit"

    @property
    def is_counted(self) -> bool:
        """True where every engine hits the limit at the same place."""
        return self.limit in COUNTED_LIMITS


@dataclass(frozen=True, slots=True)
class EngineFault:
    """The engine itself failed. Never a property of the node or its inputs."""

    message: str
    kind: ClassVar[str] = "engine_fault"


Outcome: TypeAlias = Returned | DeclaredError | Failed | ContractBroken | Denied | LimitHit | EngineFault


def outcome_code(outcome: Outcome | None) -> str | None:
    """Return the code of an error or the limit that was hit; None for other outcomes."""
    match outcome:
        case DeclaredError(value):
            return str(value.get("error_code", "")) or None
        case Failed(code):
            return str(code)
        case LimitHit(limit):
            return limit
        case _:
            return None
