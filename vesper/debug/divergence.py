"""The first divergence of two executions: in values, requests or outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vesper.debug.side import Side
from vesper.debug.stops import Position, Stop
from vesper.engines.compare import first_difference, same_outcome, same_requests
from vesper.engines.engine import Request
from vesper.engines.outcome import ContractBroken, DeclaredError, EngineFault, Failed, LimitHit, Outcome, Returned
from vesper.language.ir import nodes as ir
from vesper.values.model import Value, same, show

VALUE = "a value"


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first place where two executions differ."""

    position: Position
    what: str
    values: tuple[str | Value, ...]
    """Value or description of each side, in the order of the sides."""
    index: int | None = None
    """Index of the expression whose value differs."""

    @property
    def is_value(self) -> bool:
        """Return whether both sides computed the expression; otherwise `values` describe each side."""
        return self.what == VALUE


def first_divergence(node: ir.Node, sides: Sequence[Side]) -> Divergence | None:
    """Return the first place where two recorded sides differ, or None."""
    left, right = sides
    faulty = next((side for side in sides if isinstance(side.outcome, EngineFault)), None)
    mark = first_difference(tuple(left.marks), tuple(right.marks))
    if mark is not None:
        return _divergence_at_mark(node, mark, left, right)
    if not same_requests(left.requests, right.requests):
        return _request_divergence(node, left, right)
    if faulty is None and not (left.is_over and right.is_over):
        return None
    if left.outcome is None or right.outcome is None or not same_outcome(left.outcome, right.outcome):
        if any(isinstance(each.outcome, LimitHit) and each.outcome.limit == "time" for each in sides):
            return None
        told = tuple(_describe_outcome(one, other) for one, other in ((left, right), (right, left)))
        return Divergence(_exit_position(left, right), "the outcome", told)
    return None


def _exit_position(left: Side, right: Side) -> Position:
    """Return the statement at which both executions left the body.

    Returned values, raised errors and failures have no mark of their own.
    """
    stops = [[n for n, stop in enumerate(side.stops) if stop.statement is not None] for side in (left, right)]
    if all(stops) and stops[0][-1] == stops[1][-1] and isinstance(left.outcome, Returned | DeclaredError | Failed):
        return Position(stops[0][-1], True)
    return Position(min(len(left.stops), len(right.stops)) - 1)


def _divergence_at_mark(node: ir.Node, mark: int, left: Side, right: Side) -> Divergence:
    owners = [owner for owner in (left.owner(mark), right.owner(mark)) if owner is not None]
    # A side that ended without this mark failed at its last statement.
    owners += [len(side.stops) - 2 for side in (left, right) if mark >= len(side.marks) and side.is_over]
    stop = max(0, min(owners)) if owners else min(len(left.stops), len(right.stops)) - 1
    told = [side.marks[mark] if mark < len(side.marks) else None for side in (left, right)]
    indexes = {each[0] for each in told if each is not None}
    # If the sides marked different expressions, report positions instead of values.
    if len(indexes) == 1 and all(told):
        values = tuple(each[1] for each in told if each is not None)
        return Divergence(Position(stop, True), VALUE, values, indexes.pop())
    descriptions = tuple(_describe_progress(node, each, side) for each, side in zip(told, (left, right), strict=True))
    index = next((each[0] for each in told if each is not None), None)
    return Divergence(Position(stop, True), "the path", descriptions, index)


def _describe_progress(node: ir.Node, mark: tuple[int, Value] | None, side: Side) -> str:
    if mark is not None:
        place = node.expressions()[mark[0]].place
        return f"computes line {place.line}"
    if side.waits_for is not None:
        return f"requests {side.waits_for.path}"
    return "nothing more" if side.outcome is None else kind_of(side.outcome)


def _request_divergence(node: ir.Node, left: Side, right: Side) -> Divergence:
    sides = (left, right)
    number = next(
        (
            n
            for n, (a, b) in enumerate(zip(left.requests, right.requests, strict=False))
            if not same_requests((a,), (b,))
        ),
        min(len(left.requests), len(right.requests)),
    )
    told = tuple(
        f"requests {side.requests[number].path}"
        if number < len(side.requests)
        else _describe_progress(node, None, side)
        for side in sides
    )
    stops = [
        index
        for side in sides
        for index, stop in enumerate(side.stops)
        if _has_request(stop, side.requests[number] if number < len(side.requests) else None)
    ]
    stop = min(stops, default=max(len(side.stops) for side in sides) - 1)
    # Requests of a called node are known only during the call, unless both sides are at different calls already.
    reached = [side.stops[stop] for side in sides if stop < len(side.stops)]
    is_after = any(each.request is None for each in reached) and len({each.path for each in reached}) == 1
    return Divergence(Position(stop, is_after), "the request", told)


def _has_request(stop: Stop, request: Request | None) -> bool:
    return request is not None and (stop.request is request or any(each is request for each, _ in stop.inside))


def _describe_outcome(side: Side, other: Side) -> str:
    """Describe how a side ended; for equal kinds of outcome, the outputs that differ."""
    match side.outcome, other.outcome:
        case (Returned(own), Returned(others)) | (DeclaredError(own), DeclaredError(others)):
            return ", ".join(
                f"{name}: {show(value)}" for name, value in own.items() if not same(value, others.get(name))
            )
        case _:
            return kind_of(side.outcome)


def kind_of(outcome: Outcome | None) -> str:
    """Return a short description of an outcome."""
    match outcome:
        case None:
            return "nothing yet"
        case Failed(code):
            return f"failed: {code}"
        case ContractBroken(phase, index):
            return f"{phase} {index + 1} broken"
        case EngineFault(message):
            return f"engine fault: {message}"
        case _:
            return outcome.kind
