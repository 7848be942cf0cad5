"""The waves of a node: which of its requests and calls are open at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, zip_longest
from typing import Any

from vesper.language.ir import nodes as ir
from vesper.values.generated.effects import EFFECTS

Wave = list["PlannedRequest"]


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """One request or call of a wave."""

    step: str
    line: int
    does: str
    """The effect and its first fixed field, or the called node."""
    effect_class: str
    condition: str = ""
    """`if` in a branch, `on error` in a handler, `each of LOOP` in a loop, with the rounds in flight."""


def waves_of(block: ir.Block) -> list[Wave]:
    """Return the waves of a block in order; alternatives share waves, and handlers follow their statement."""
    found: list[Wave] = []
    for statement in block:
        found += _waves(statement)
    return found


def _waves(statement: ir.Statement) -> list[Wave]:
    own: list[Wave]
    match statement:
        case ir.Return() | ir.Raise() | ir.Require():
            return []
        case ir.Request():
            own = [[_planned_request(statement)]]
        case ir.CallNode():
            own = [[PlannedRequest(statement.name.lstrip("_"), statement.place.line, f"call {statement.node}", "call")]]
        case ir.Parallel(members=members):
            own = _join_waves(map(waves_of, members))
        case ir.Branch(arms=arms, otherwise=otherwise):
            blocks = [*(arm.body for arm in arms), otherwise]
            own = _join_waves([_add_condition("if", waves_of(each)) for each in blocks])
        case ir.Loop():
            width = "" if statement.in_flight is None else f", {statement.in_flight} in flight"
            own = _add_condition(f"each of {statement.name.lstrip('_')}{width}", waves_of(statement.body))
        case _:
            own = []
    handlers = [_add_condition("on error", waves_of(handler.body)) for handler in statement.handlers]
    return [*own, *_join_waves(handlers)]


def _planned_request(request: ir.Request) -> PlannedRequest:
    target = next(iter(request.fixed.values()), "")
    does = f"{EFFECTS[request.effect].name} {target if len(target) < _MAX_TARGET else ''}".rstrip()
    return PlannedRequest(request.name.lstrip("_"), request.place.line, does, request.effect_class)


_MAX_TARGET = 40


def _join_waves(parts: Iterable[list[Wave]]) -> list[Wave]:
    """Join the waves of strands or alternatives by their position."""
    return [list(chain.from_iterable(each or () for each in wave)) for wave in zip_longest(*parts)]


def _add_condition(condition: str, waves: Sequence[Wave]) -> list[Wave]:
    return [[replace(each, condition=f"{condition}, {each.condition}".rstrip(", ")) for each in wave] for wave in waves]


def schedule_lines(waves: Sequence[Wave]) -> Iterator[str]:
    """Yield the waves as text: a number, and a line for each request that is open at that time."""
    rows = [
        (f"{number}" if position == 0 else "", _bar(position, len(wave)), each.step, each.does, each.effect_class,
         each.condition, f"line {each.line}")
        for number, wave in enumerate(waves, start=1)
        for position, each in enumerate(wave)
    ]  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    for row in rows:
        number, *cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join((row[0].rjust(len(number)), *cells)).rstrip()


def _bar(position: int, count: int) -> str:
    """Return the bracket that joins the requests of one wave."""
    if count == 1:
        return " "
    return "┌" if position == 0 else "└" if position == count - 1 else "│"


def schedule_json(node: ir.Node, waves: Sequence[Wave]) -> dict[str, Any]:
    return {"node": node.node_id, "waves": [[asdict(each) for each in wave] for wave in waves]}
