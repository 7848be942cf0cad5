"""Kinds of problems of invalid values: the closed list of docs/spec/values.md."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ProblemKind(StrEnum):
    """Kind of an input problem, in the specification's order. Of several kinds the first is reported."""

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
    """A problem of one input, with its path."""

    path: str
    kind: ProblemKind


class ValueProblem(Exception):
    """Raised by readers of single values. Carries only the kind, since the caller knows the path."""

    def __init__(self, kind: ProblemKind) -> None:
        super().__init__(kind.value)
        self.kind = kind
