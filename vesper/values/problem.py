"""Why a text or an object is no value of its type: the closed list of docs/spec/values.md."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ProblemKind(StrEnum):
    """Why an input does not fit. The order is the specification's: of several kinds the first counts."""

    MISSING = "missing"
    UNKNOWN = "unknown"
    WRONG_TYPE = "wrong_type"
    OUT_OF_RANGE = "out_of_range"
    MALFORMED = "malformed"
    NOT_A_MEMBER = "not_a_member"
    DUPLICATE = "duplicate"
    TOO_DEEP = "too_deep"


@dataclass(frozen=True, slots=True)
class Problem:
    path: str
    kind: ProblemKind


class ValueProblem(Exception):
    """Raised by what reads one value; carries only the kind, the caller knows the path."""

    def __init__(self, kind: ProblemKind) -> None:
        super().__init__(kind.value)
        self.kind = kind
