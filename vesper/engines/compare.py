"""Compare two executions: they agree, disagree at a place, or are not comparable for a reason.

Outcomes are compared by value and text, failures by code and place, broken contracts by clause and values; never by
message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from vesper.engines.engine import Done, Marks, Request
from vesper.engines.outcome import (
    ContractBroken,
    DeclaredError,
    Denied,
    EngineFault,
    Failed,
    LimitHit,
    Outcome,
    Returned,
)
from vesper.values.model import same


@dataclass(frozen=True, slots=True)
class Agree:
    pass


@dataclass(frozen=True, slots=True)
class Disagree:
    """`mark` is the position of the first mark that differs; None where only the outcomes differ."""

    what: str
    mark: int | None


@dataclass(frozen=True, slots=True)
class NotComparable:
    why: str


Comparison: TypeAlias = Agree | Disagree | NotComparable


def compare(left: Done, right: Done) -> Comparison:
    """Compare two executions of one node on the same inputs; marks where both were observed."""
    if isinstance(left.outcome, EngineFault) or isinstance(right.outcome, EngineFault):
        return Disagree("an engine is at fault", None)  # also where both are faults: neither is an answer
    for outcome in (left.outcome, right.outcome):
        # Fuel and memory are counted alike; when another limit is hit depends on the machine.
        if isinstance(outcome, LimitHit) and not outcome.is_counted:
            return NotComparable(f"the limit on {outcome.limit} was hit")
    is_observed = left.is_observed and right.is_observed
    first = first_difference(left.marks, right.marks) if is_observed else None
    if first is not None:
        return Disagree("an intermediate value", first)
    if not same_requests(left.requests, right.requests):
        return Disagree("what is asked for", None)
    if not same_outcome(left.outcome, right.outcome):
        return Disagree("the outcome", None)
    if left.way is not None and right.way is not None and left.way != right.way:
        return Disagree("the path, or what was read on it", None)
    return Agree()


def first_difference(left: Marks, right: Marks) -> int | None:
    """Return the position of the first mark in which two executions differ."""
    position = 0
    for (index, value), (other, others) in zip(left, right, strict=False):
        # The same object is equal: most marks are booleans, small numbers and constants of the node.
        if index != other or not (value is others or same(value, others)):
            return position
        position += 1
    return None if len(left) == len(right) else position


def same_requests(left: Sequence[Request], right: Sequence[Request]) -> bool:
    """Return whether two executions made the same requests, in the same order."""
    if not left and not right:
        return True
    return len(left) == len(right) and all(
        _fixed_parts(a) == _fixed_parts(b) and same(dict(a.arguments), dict(b.arguments))
        for a, b in zip(left, right, strict=True)
    )


def _fixed_parts(request: Request) -> tuple[object, ...]:
    return request.path, request.effect, request.effect_class, request.key, dict(request.fixed)


def same_outcome(left: Outcome, right: Outcome) -> bool:
    if type(left) is Returned and type(right) is Returned:  # the usual case
        return same(dict(left.value), dict(right.value))
    match left, right:
        case (Returned(a), Returned(b)) | (DeclaredError(a), DeclaredError(b)):
            return same(dict(a), dict(b))
        case (Failed(), Failed()) | (Denied(), Denied()) | (LimitHit(), LimitHit()):
            return left == right
        case ContractBroken(), ContractBroken():
            same_clause = (left.phase, left.index) == (right.phase, right.index)
            return same_clause and same(dict(left.values), dict(right.values))
        case _:
            return False
