"""A stepping session as the page and the API show it."""

from __future__ import annotations

from dataclasses import dataclass

from vesper.dashboard.pages.stepping.session import VIEW_SECONDS, Fix, Pending, SteppingSession
from vesper.debug.breakpoints import Kind, statement_lines
from vesper.debug.columns import RUNTIMES
from vesper.debug.session import Session
from vesper.debug.stops import END
from vesper.debug.view import Row, rows
from vesper.effects.stored_json import TooLong, stored_text
from vesper.host.plans import plans_of
from vesper.trace.difference import Difference, outcome_text
from vesper.trace.masking import masked_trace
from vesper.trace.model import Exchange
from vesper.values.model import printable, show

_MAX_PREFILLED = 4_000
_MAX_SHOWN = 2_000


@dataclass(frozen=True, slots=True)
class Item:
    """One item of the position, with one text for each engine."""

    section: str
    key: str
    texts: tuple[str | None, ...]
    differs: bool


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One line of the node's source."""

    number: int
    text: str
    is_statement: bool
    """True where a breakpoint can stand."""
    engines: tuple[str, ...]
    """Engines that stand at this line."""
    breakpoint: int | None
    """Number of the breakpoint in this line."""


@dataclass(frozen=True, slots=True)
class Point:
    """A breakpoint or a watch."""

    number: int
    text: str
    is_watch: bool


@dataclass(frozen=True, slots=True)
class Editable:
    """A step or an input that can be changed."""

    target: str
    label: str
    change: str
    """The present answer or value as a change; empty for a computed value."""


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a session on both engines."""

    node_id: str
    calls: tuple[str, ...]
    """Nodes whose calls led to this one."""
    stop: int
    stops: int
    """Stops of the run, up to a request without an answer."""
    is_executed: bool
    is_at_start: bool
    is_at_end: bool
    engines: tuple[str, ...]
    titles: tuple[str, ...]
    items: tuple[Item, ...]
    lines: tuple[SourceLine, ...]
    points: tuple[Point, ...]
    divergence: int | None
    """Stop at which the engines differ first; None where they agree."""
    unanswered: str | None
    """Step whose request has no recorded answer."""
    answer_type: str


@dataclass(frozen=True, slots=True)
class Stepping:
    """A run that can be stepped through, and the caller's session of it."""

    execution: str
    node_id: str
    is_sensitive: bool
    session: str | None
    """Key of the session; None before it starts."""
    position: Position | None = None
    is_changed: bool = False
    """True where the changed run is shown instead of the recorded one."""
    messages: tuple[str, ...] = ()
    outcome: str = ""
    editables: tuple[Editable, ...] = ()
    changes: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()
    pending: Pending | None = None
    fix: Fix | None = None
    file_change: tuple[str, ...] = ()
    """How the file of the node differs from the recorded definition, which the session runs."""


def view_of(stepping: SteppingSession) -> Stepping:
    """Return the present state of a session. Sensitive values are masked."""
    trace = stepping.trace
    stepping.allow(VIEW_SECONDS)
    return Stepping(
        trace.trace_id,
        trace.node_id,
        trace.is_sensitive,
        stepping.key,
        _position(stepping),
        stepping.is_changed,
        tuple(map(printable, stepping.messages)),
        _cut(outcome_text(masked_trace(stepping.stepped).outcome)),
        _editables(stepping),
        stepping.change_texts(),
        tuple(Difference(each.where, _cut(each.left), _cut(each.right)) for each in stepping.differences()),
        stepping.pending,
        stepping.fix,
        stepping.file_change,
    )


def _position(stepping: SteppingSession) -> Position:
    commands = stepping.commands
    session = commands.session
    request = stepping.unanswered
    engines = tuple(side.name for side in session.sides)
    return Position(
        session.compiled.node.node_id,
        tuple(each.compiled.node.node_id for each in commands.sessions[:-1]),
        session.position.stop + 1,
        max(len(side.stops) for side in session.sides),
        session.position.is_after,
        session.position.stop == 0 and not session.position.is_after,
        session.is_at_end or session.stop_of(session.leader).path == END,
        engines,
        tuple(RUNTIMES.get(each, each).capitalize() for each in engines),
        _items(session, commands.rows()),
        _lines(session),
        tuple(
            Point(number, printable(each.text), each.kind is Kind.WATCH)
            for number, each in enumerate(session.breakpoints, 1)
        ),
        None if (found := session.divergence()) is None else found.position.stop + 1,
        None if request is None else request.path,
        "" if request is None else str(plans_of(commands.sessions[0].compiled).of(request.path).gives),
    )


def _items(session: Session, shown: list[Row]) -> tuple[Item, ...]:
    """Return the rows as they may be shown, marked where the real values differ, masked ones too."""
    differing = [each for each in rows(session) if each.differs]

    def differs(row: Row) -> bool:
        return row.differs or any(
            each.section == row.section and (each.key == row.key or each.key.startswith(f"{row.key}."))
            for each in differing
        )

    return tuple(
        Item(each.section, each.key, tuple(None if text is None else _cut(text) for text in each.texts), differs(each))
        for each in shown
    )


def _lines(session: Session) -> tuple[SourceLine, ...]:
    statements = set(statement_lines(session.compiled))
    points = {each.line: number for number, each in enumerate(session.breakpoints, 1) if each.kind is Kind.LINE}
    at: dict[int, list[str]] = {}
    for side in session.sides:
        at.setdefault(session.stop_of(side).line, []).append(side.name)
    return tuple(
        SourceLine(number, text, number in statements, tuple(at.get(number, ())), points.get(number))
        for number, text in enumerate(session.compiled.source.text.splitlines(), 1)
    )


def _editables(stepping: SteppingSession) -> tuple[Editable, ...]:
    """Return steps and inputs of the recorded run that can be changed."""
    trace = stepping.trace
    if stepping.replay is None or trace.is_sensitive:
        return ()
    found = [
        Editable(f"input.{name}", f"input {name}", _cut(show(value).strip('"'))) for name, value in trace.inputs.items()
    ]
    steps = [
        Editable(
            str(step.number),
            f"{step.number} {printable(step.title)}",
            "" if step.exchange is None else _answer(trace.exchanges[step.exchange]),
        )
        for step in stepping.replay.steps
    ]
    return (*steps, *found)


def _answer(exchange: Exchange) -> str:
    """Return the recorded answer as a change, to edit."""
    if exchange.failure is not None:
        return f"fails {exchange.failure}"
    try:
        # the value came from an engine
        return f"response {stored_text(exchange.value, _MAX_PREFILLED)}"  # type: ignore[arg-type]
    except TooLong:
        return ""  # too long to edit here


def _cut(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _MAX_SHOWN else shown[: _MAX_SHOWN - 1] + "…"
