"""Where two engines part first: in what they computed, in what they asked for, in how they ended."""

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
    """The first place where the engines part."""

    position: Position
    what: str
    values: tuple[str | Value, ...]
    """Of each side, in their order."""
    index: int | None = None
    """The expression that was computed."""

    @property
    def is_value(self) -> bool:
        """True where both computed the expression; otherwise `values` say what each did."""
        return self.what == VALUE


def first_divergence(node: ir.Node, sides: Sequence[Side]) -> Divergence | None:
    """The first place where the two sides part, as far as both are recorded."""
    left, right = sides
    faulty = next((side for side in sides if isinstance(side.outcome, EngineFault)), None)
    mark = first_difference(tuple(left.marks), tuple(right.marks))
    if mark is not None:
        return _parted_at(node, mark, left, right)
    if not same_requests(left.requests, right.requests):
        return _asked_otherwise(node, left, right)
    if faulty is None and not (left.is_over and right.is_over):
        return None
    if left.outcome is None or right.outcome is None or not same_outcome(left.outcome, right.outcome):
        if any(isinstance(each.outcome, LimitHit) and each.outcome.limit == "time" for each in sides):
            return None
        told = tuple(_told_apart(one, other) for one, other in ((left, right), (right, left)))
        return Divergence(_leaving(left, right), "the outcome", told)
    return None


def _leaving(left: Side, right: Side) -> Position:
    """Where both left the body, if that is at one statement: what it returns or raises, and how it fails, has no
    mark of its own."""
    stops = [[n for n, stop in enumerate(side.stops) if stop.statement is not None] for side in (left, right)]
    if all(stops) and stops[0][-1] == stops[1][-1] and isinstance(left.outcome, Returned | DeclaredError | Failed):
        return Position(stops[0][-1], True)
    return Position(min(len(left.stops), len(right.stops)) - 1)


def _parted_at(node: ir.Node, mark: int, left: Side, right: Side) -> Divergence:
    owners = [owner for owner in (left.owner(mark), right.owner(mark)) if owner is not None]
    # One that has ended without this mark failed at its last statement.
    owners += [len(side.stops) - 2 for side in (left, right) if mark >= len(side.marks) and side.is_over]
    stop = max(0, min(owners)) if owners else min(len(left.stops), len(right.stops)) - 1
    told = [side.marks[mark] if mark < len(side.marks) else None for side in (left, right)]
    indexes = {each[0] for each in told if each is not None}
    # Where each tells of another expression, or one of none, what is told is where it is.
    if len(indexes) == 1 and all(told):
        values = tuple(each[1] for each in told if each is not None)
        return Divergence(Position(stop, True), VALUE, values, indexes.pop())
    said = tuple(_told(node, each, side) for each, side in zip(told, (left, right), strict=True))
    index = next((each[0] for each in told if each is not None), None)
    return Divergence(Position(stop, True), "the way through the node", said, index)


def _told(node: ir.Node, mark: tuple[int, Value] | None, side: Side) -> str:
    if mark is not None:
        place = node.expressions()[mark[0]].place
        return f"computes line {place.line}"
    if side.waits_for is not None:
        return f"asks for {side.waits_for.path}"
    return "nothing more" if side.outcome is None else kind_of(side.outcome)


def _asked_otherwise(node: ir.Node, left: Side, right: Side) -> Divergence:
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
        f"asks for {side.requests[number].path}" if number < len(side.requests) else _told(node, None, side)
        for side in sides
    )
    stops = [
        index
        for side in sides
        for index, stop in enumerate(side.stops)
        if _asks(stop, side.requests[number] if number < len(side.requests) else None)
    ]
    stop = min(stops, default=max(len(side.stops) for side in sides) - 1)
    # What a called node asks for is known only once the call is on its way; unless both are at other calls already.
    reached = [side.stops[stop] for side in sides if stop < len(side.stops)]
    is_after = any(each.request is None for each in reached) and len({each.path for each in reached}) == 1
    return Divergence(Position(stop, is_after), "what is asked for", told)


def _asks(stop: Stop, request: Request | None) -> bool:
    return request is not None and (stop.request is request or any(each is request for each, _ in stop.inside))


def _told_apart(side: Side, other: Side) -> str:
    """How a side ended; of two that ended alike the outputs that differ."""
    match side.outcome, other.outcome:
        case (Returned(own), Returned(others)) | (DeclaredError(own), DeclaredError(others)):
            return ", ".join(
                f"{name}: {show(value)}" for name, value in own.items() if not same(value, others.get(name))
            )
        case _:
            return kind_of(side.outcome)


def kind_of(outcome: Outcome | None) -> str:
    """How an execution ended, in a word or two."""
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
