"""Rows of a position: one row per item, with one text per engine.

This module has no layout: `columns.py` aligns the rows, the DAP server sends them as variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from vesper.debug.session import Session, called_by, transition_of
from vesper.debug.side import Side
from vesper.debug.stops import Clause, Stop
from vesper.engines.engine import Request
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
from vesper.language.ir import nodes as ir
from vesper.values.model import show

MARKS = {True: "✓", False: "✗"}


@dataclass(frozen=True, slots=True)
class Row:
    """One item of a view, with one text per side.

    `texts` follows the order of the sides; None means that the side has no such item.
    """

    section: str
    key: str
    texts: tuple[str | None, ...]

    @property
    def differs(self) -> bool:
        return len(set(self.texts)) > 1


SECTIONS = ("Location", "Variables", "About to call", "Contract", "Gives", "Failed with", "Moved", "Outcome", "Watched")


def rows(session: Session, shown: Callable[[Session, Stop], Stop] = lambda _, stop: stop) -> list[Row]:
    """Return all rows at the session's position in display order; `shown` masks a stop."""
    position = session.position
    parts = [_side_sections(session, side, shown(session, session.stop_of(side, position))) for side in session.sides]
    found: list[Row] = []
    for section in SECTIONS:
        keys: dict[str, None] = {}
        for part in parts:
            keys |= dict.fromkeys(part.get(section, {}))
        found += [Row(section, key, tuple(part.get(section, {}).get(key) for part in parts)) for key in keys]
    return found


def _side_sections(session: Session, side: Side, stop: Stop) -> dict[str, dict[str, str]]:
    position = session.position
    is_beyond = position.stop >= len(side.stops) and not side.is_over
    found: dict[str, dict[str, str]] = {"Location": {"": location(stop)}, "Variables": variables(stop)}
    if is_beyond and side.waits_for is not None:
        found["Location"] = {"": f"{stop.path} (waits: its request differs)"}
    if stop.request is not None:
        found["About to call"] = dict(request_rows(stop.request))
    elif (call := called_by(stop)) is not None and stop.given is not None:
        found["About to call"] = {"": call.node} | dict(flatten(stop.given))
    if stop.clauses:
        found["Contract"] = {f"{each.phase} {each.index}": clause_text(each) for each in stop.clauses}
    if position.is_after or stop.outcome is not None:
        found |= _result_sections(stop)
    if session.watches:
        found["Watched"] = session.watched(side)
    return found


def _result_sections(stop: Stop) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    if stop.gives is not None:
        found["Gives"] = dict(flatten({stop.gives.name: stop.gives.value}))
    conditions = [(index, value) for _, index, value in stop.marks if isinstance(value, bool)]
    if conditions and stop.gives is None and not stop.clauses:
        found["Gives"] = {f"condition {number}": show(value) for number, (_, value) in enumerate(conditions, 1)}
    if stop.fails is not None:
        found["Failed with"] = {"": stop.fails}
    moved = transition_of(stop)
    if moved is not None:
        found["Moved"] = {"": f"{moved[0]} -> {moved[1]}"}
    if stop.outcome is not None:
        found["Outcome"] = outcome_rows(stop.outcome)
    return found


def location(stop: Stop) -> str:
    skipped = ", skipped" if stop.is_skipped else ""
    if stop.statement is None:
        return stop.path
    return f"{stop.path.replace(f':{stop.line}', '')} (line {stop.line}{skipped})"


def variables(stop: Stop) -> dict[str, str]:
    """Return inputs, steps, loop names and outputs as text, one entry per record field.

    Constants are left out.
    """
    # the outcome shows the outputs
    hidden = ("constant", "now") if stop.outcome is None else ("constant", "now", "output")
    shown = {name.name: name.value for (kind, _), name in stop.names.items() if kind not in hidden}
    return dict(flatten(shown))


def flatten(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield one entry per record field under a dotted name, such as `user.balance: 500.00`."""
    for name, value in values.items():
        if isinstance(value, dict) and value and all(isinstance(key, str) and key.isidentifier() for key in value):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", show(value)


def request_rows(request: Request) -> Iterator[tuple[str, str]]:
    """Yield a one-line summary of a request under the empty key, then its arguments."""
    fixed, arguments = dict(request.fixed), dict(request.arguments)
    match request.effect:
        case "http_request":
            yield "", f"{fixed['provider']} {fixed['method']} {arguments.pop('endpoint')!s}"
        case "database_query" | "database_write" | "database_update":
            yield "", f"{fixed['database']}: {fixed['sql']}"
        case "state_transition":
            yield "", f"{fixed['machine']} {fixed['from'].replace(',', ', ')} -> {fixed['to']}"
        case _:
            words = " ".join(str(each) for each in fixed.values())
            yield "", f"{request.effect} {words}".rstrip()
    yield from flatten({name: value for name, value in arguments.items() if value is not None})
    if request.key is not None:
        yield "key", show(request.key)


def clause_text(clause: Clause) -> str:
    values = ", ".join(f"{name}: {show(value)}" for name, value in clause.values.items())
    return f"{MARKS[clause.holds]} {clause.text}" + (f"  ({values})" if values else "")


def outcome_rows(outcome: Outcome) -> dict[str, str]:
    match outcome:
        case Returned(value) | DeclaredError(value):
            return {"": outcome.kind.replace("_", " ")} | dict(flatten(value))
        case Failed(code, _, problems):
            return {"": f"failed: {code}"} | {each.path: each.kind.value for each in problems}
        case ContractBroken(phase, index, values):
            return {"": f"{phase} {index + 1} broken"} | dict(flatten(values))
        case Denied(capability, why):
            return {"": f"denied: {capability}", **({"why": why} if why else {})}
        case LimitHit(limit):
            return {"": f"limit hit: {limit}"}
        case EngineFault(message):
            return {"": f"engine fault: {message}"}


def divergence_lines(
    session: Session, shown: Callable[[Session, int | None, object], object] = lambda *given: given[2]
) -> list[str]:
    """Return lines on the first divergence with both values, which `shown` masks; an empty list without one."""
    found = session.divergence()
    if found is None:
        return []
    stop = session.stop_of(session.leader, found.position)
    place = ""
    if found.index is not None:
        expression = session.compiled.node.expressions()[found.index]
        place = f", line {expression.place.line}, column {expression.place.column}"
        if isinstance(expression, ir.Call):
            place += f" ({expression.op})"
    lines = [f"the engines diverge at {stop.path}{place}: {found.what} differs"]
    width = max(len(side.name) for side in session.sides)
    for side, value in zip(session.sides, found.values, strict=True):
        told = shown(session, found.index if found.is_value else None, value)
        lines.append(f"  {side.name:<{width}}  {show(told) if found.is_value else told!s}")
    return lines
