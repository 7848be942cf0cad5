"""A debugging session, without any terminal: both engines in lockstep, moved forwards and backwards.

What happens between two requests is recorded on both engines at once, and the session moves over what is recorded: so
going back performs nothing and shows the same. A position is a stop (docs/spec/debugger.md) and whether its statement
was executed already. Only going past a request needs an answer, and where it comes from is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from fnmatch import fnmatchcase

from vesper.compiler import Compiled
from vesper.debug.breakpoints import (
    AFTER,
    BadBreakpoint,
    Breakpoint,
    Kind,
    check_engines,
    has_changed,
    inside,
    matches_effect,
    matches_transition,
    parse_breakpoint,
    parse_watch,
)
from vesper.debug.divergence import Divergence, first_divergence, kind_of
from vesper.debug.responses import Book, Stopped, Unanswered
from vesper.debug.side import Side
from vesper.debug.stops import END, LOST, Position, Stop, guarded_by
from vesper.engines.compare import same_requests
from vesper.engines.engine import Engine, Limits
from vesper.engines.outcome import Outcome, Returned
from vesper.language.ir import nodes as ir
from vesper.trace.expressions import Expressions, Loader, Question, narrowed
from vesper.values.model import Value, show

LOOKED_AT_MOST = 1_000_000
"""Stops that one `continue` goes over: a session must not run for ever."""


class Why(Enum):
    """Why the session stands where it stands."""

    STEP = "step"
    BREAKPOINT = "breakpoint"
    END = "end"
    START = "start"


@dataclass(frozen=True, slots=True)
class Moved:
    why: Why
    breakpoints: tuple[Breakpoint, ...] = ()
    inside: tuple[Session, ...] = ()
    """Of a breakpoint in a called node: the sessions that lead there, the one that was called from here first."""


class Session:
    def __init__(
        self,
        compiled: Compiled,
        engines: Sequence[Engine],
        inputs: Mapping[str, object],
        now: datetime,
        book: Book,
        limits: Limits | None = None,
        prefix: str = "",
        loader: Loader | None = None,
    ) -> None:
        self.compiled = compiled
        self.engines = tuple(engines)
        self.inputs = dict(inputs)
        self.now = now
        self.book = book
        self.prefix = prefix
        """Of a called node: the path of the call, with `/` behind it."""
        self._loader = loader or Loader()
        self.expressions = Expressions(compiled, self._loader)
        self.breakpoints: list[Breakpoint] = []
        self._limits = limits
        self._compared: tuple[object, Divergence | None] | None = None
        self.sides = tuple(
            Side(compiled, engine, self.expressions, inputs, now, self._called, self._loader, limits)
            for engine in engines
        )
        self.position = Position(min(1, self._last()))

    # -- what is recorded -------------------------------------------------------------------------

    @property
    def leader(self) -> Side:
        return self.sides[0]

    def _last(self) -> int:
        return max(len(side.stops) for side in self.sides) - 1

    def _is_recorded(self) -> bool:
        """True where nothing more can come: whoever is left waits for what the first engine never asked for."""
        return self.leader.is_over

    def _record(self) -> None:
        """Answers the request that the first engine waits for. The others are told the same, if they ask the same."""
        request = self.leader.waits_for
        assert request is not None
        self.divergence()
        following = [each for each in self.sides[1:] if each.waits_for is not None]
        try:
            completion = self.book.answer(request)
        except Stopped as stopped:
            for side in self.sides:
                if not side.is_over:
                    side.give_up(stopped.outcome)
            return
        self.leader.complete(completion)
        for side in following:
            waiting = side.waits_for
            assert waiting is not None
            if side.requests[-1].id == request.id and same_requests((waiting,), (request,)):
                side.complete(replace(completion, id=waiting.id))

    def _complete(self, stop: int) -> None:
        """Records until the statement of this stop was executed; or until the engines part, where that is to stop it:
        what one of them asks for then is not answered before somebody goes on."""
        is_looked_for = any(each.kind is Kind.DIVERGENCE for each in self.breakpoints) and self.divergence() is None
        while not self._is_recorded() and len(self.leader.stops) <= stop + 1:
            self._record()
            if is_looked_for and self.divergence() is not None:
                return

    def stop_of(self, side: Side, position: Position | None = None) -> Stop:
        """Where a side is; one that has fewer stops is at its last."""
        wanted = (position or self.position).stop
        return side.stops[min(wanted, len(side.stops) - 1)]

    @property
    def is_at_end(self) -> bool:
        return self._is_recorded() and self.position.stop >= self._last()

    # -- moving -----------------------------------------------------------------------------------

    def step(self) -> Moved:
        """To the next statement, whatever block it stands in. Raises `Unanswered` and stays, where an answer lacks."""
        return self._until(lambda _: True)

    def next(self) -> Moved:
        """To the next statement that is not inside this one."""
        depth = self.stop_of(self.leader).depth
        return self._until(lambda stop: stop.depth <= depth)

    def out(self) -> Moved:
        """To the first statement after the block around this one."""
        depth = self.stop_of(self.leader).depth
        return self._until(lambda stop: stop.depth < depth)

    def _until(self, is_there: Callable[[Stop], bool]) -> Moved:
        while True:
            self._complete(self.position.stop)
            if self.position.stop >= self._last():
                return Moved(Why.END)
            self.position = Position(self.position.stop + 1)
            if self.stop_of(self.leader).path in (END, LOST) or is_there(self.stop_of(self.leader)):
                return Moved(Why.END if self.is_at_end else Why.STEP)

    def resume(self, from_start: bool = False) -> Moved:
        """Forwards to the next breakpoint, or to the end."""
        place = Position(-1, True) if from_start else self.position
        for _ in range(LOOKED_AT_MOST):
            following = self._after(place)
            if following is None:
                self.position = Position(self._last())
                return Moved(Why.END)
            place = following
            self.position = place
            found = self._hit(place)
            if found:
                return Moved(Why.BREAKPOINT, found)
            met = self._met_inside(place) if place.is_after else None
            if met is not None:
                self.position = Position(place.stop)
                return met
        return Moved(Why.STEP)

    def _met_inside(self, place: Position) -> Moved | None:
        """Goes through the node that was called here, where a breakpoint may be in it."""
        call = called_by(self.stop_of(self.leader, place))
        if call is None or place.stop >= len(self.leader.stops):
            return None
        callee = next(each for each in self.compiled.callees if each.node.node_id == call.node)
        texts = list(inside(self.breakpoints, callee))
        if not texts:
            return None
        inner = self._session_of(self.stop_of(self.leader, place), call, self.engines)
        for text, told in texts:
            with suppress(BadBreakpoint):  # no machine, no such transition: nothing to stop at
                inner.add_breakpoint(text, told)
        try:
            moved = inner.resume(from_start=True)
        except Unanswered:
            return None  # the call is not over: the engines parted in it
        return Moved(Why.BREAKPOINT, moved.breakpoints, (inner, *moved.inside)) if moved.breakpoints else None

    def leave_call(self) -> None:
        """To after the call that was looked into: going on does not go into it again."""
        self.position = Position(self.position.stop, True)

    def _after(self, place: Position) -> Position | None:
        self._complete(place.stop)
        if not place.is_after:
            return Position(place.stop, True)
        return Position(place.stop + 1) if place.stop < self._last() else None

    def back(self) -> Moved:
        if self.position.is_after:
            self.position = Position(self.position.stop)
            return Moved(Why.STEP)
        if self.position.stop == 0:
            return Moved(Why.START)
        self.position = Position(self.position.stop - 1)
        return Moved(Why.STEP)

    def reverse(self) -> Moved:
        """Backwards to the breakpoint before, or to the start."""
        place = self.position
        while True:
            if place.is_after:
                place = Position(place.stop)
            elif place.stop == 0:
                self.position = Position(0)
                return Moved(Why.START)
            else:
                place = Position(place.stop - 1, True)
            found = self._hit(place)
            if found:
                self.position = place
                return Moved(Why.BREAKPOINT, found)

    def goto(self, position: Position) -> None:
        """To a position that was recorded."""
        self.position = Position(max(0, min(position.stop, self._last())), position.is_after)

    # -- breakpoints ------------------------------------------------------------------------------

    def add_breakpoint(self, text: str, told: str | None = None) -> Breakpoint:
        """Raises `BadBreakpoint` or `BadExpression`; then nothing has changed. `told` is what people call it."""
        found = parse_breakpoint(text, self.compiled, self.expressions)
        check_engines(found, len(self.engines))
        return self._added(found if told is None else replace(found, text=told))

    def add_watch(self, text: str) -> Breakpoint:
        return self._added(parse_watch(text, self.compiled, self.expressions))

    def _added(self, found: Breakpoint) -> Breakpoint:
        if found.question is not None:
            for engine in self.engines:
                found.question.load(engine)
        self.breakpoints.append(found)
        return found

    def _hit(self, place: Position) -> tuple[Breakpoint, ...]:
        return tuple(each for each in self.breakpoints if self._is_hit(each, place) and self._is_meant(each, place))

    def _is_meant(self, point: Breakpoint, place: Position) -> bool:
        if point.question is None or point.kind in (Kind.EXPRESSION, Kind.WATCH):
            return True
        return self._is_true(point.question, place)

    def _is_hit(self, point: Breakpoint, place: Position) -> bool:
        if point.kind is Kind.DIVERGENCE:
            found = self.divergence()
            return found is not None and found.position == place
        if place.is_after != (point.kind in AFTER):
            return False
        if point.kind is Kind.EXPRESSION:
            assert point.question is not None
            before = Position(place.stop - 1)
            was_true = place.stop > 0 and self._is_true(point.question, before)
            return not was_true and self._is_true(point.question, place)
        if point.kind is Kind.WATCH:
            return self._has_changed(point, place)
        return any(_is_at(point, side.stops[place.stop]) for side in self.sides if place.stop < len(side.stops))

    def _is_true(self, question: Question, place: Position) -> bool:
        return any(value is True for value in self._values(question, place))

    def _has_changed(self, point: Breakpoint, place: Position) -> bool:
        assert point.question is not None
        if place.stop == 0:
            return False
        now, before = (self._values(point.question, each) for each in (place, Position(place.stop - 1)))
        return any(has_changed(one, other) for one, other in zip(before, now, strict=True))

    def _values(self, question: Question, place: Position) -> list[Value]:
        """Of each side; None where the expression has no value there."""
        found: list[Value] = []
        for side in self.sides:
            names = self.stop_of(side, place).names
            outcome = question.ask(side.engine, names) if question.can_be_asked(names) else None
            found.append(outcome.value["value"] if isinstance(outcome, Returned) else None)
        return found

    # -- asking -----------------------------------------------------------------------------------

    def evaluate(self, text: str) -> dict[str, Outcome]:
        """An expression over what is seen here, computed by each engine from its own values. Raises `BadExpression`."""
        found: dict[str, Outcome] = {}
        for side in self.sides:
            stop = self.stop_of(side)
            names = dict(stop.names)
            if self.position.is_after and stop.gives is not None and isinstance(stop.statement, ir.Statement):
                name = getattr(stop.statement, "name", "")
                names["step", name] = stop.gives
            seen = narrowed(names)
            question = self.expressions.parse(text, seen, None, "print")
            found[side.name] = question.ask(side.engine, seen)
        return found

    def divergence(self) -> Divergence | None:
        """The first place where two engines part, as far as both are recorded."""
        if len(self.sides) < 2:
            return None
        # What is recorded only grows, and is compared once: a `continue` asks at every stop.
        # The first place that is found stays: an engine that then waits would fall behind in everything else, too.
        recorded = tuple((len(side.marks), len(side.requests), side.is_over) for side in self.sides)
        if self._compared is None or (self._compared[0] != recorded and self._compared[1] is None):
            self._compared = (recorded, first_divergence(self.compiled.node, self.sides[:2]))
        return self._compared[1]

    @property
    def watches(self) -> list[Breakpoint]:
        return [each for each in self.breakpoints if each.kind is Kind.WATCH]

    def watched(self, side: Side) -> dict[str, str]:
        """What is watched, and its value on one side."""
        names = self.stop_of(side).names
        found: dict[str, str] = {}
        for each in self.watches:
            assert each.question is not None
            outcome = each.question.ask(side.engine, names) if each.question.can_be_asked(names) else None
            found[each.text] = (
                show(outcome.value["value"])
                if isinstance(outcome, Returned)
                else "no value here"
                if outcome is None
                else kind_of(outcome)
            )
        return found

    # -- called nodes -----------------------------------------------------------------------------

    def into(self) -> Session | None:
        """A session about the node that is called here, on what it is given and was answered; None where none is.

        The call is executed first: looking into it then needs nothing that was not recorded.
        """
        stop = self.stop_of(self.leader)
        call = called_by(stop)
        if call is None:
            return None
        self._complete(self.position.stop)
        return self._session_of(stop, call, self.engines)

    def _session_of(self, stop: Stop, call: ir.CallNode, engines: Sequence[Engine]) -> Session:
        callee = next(each for each in self.compiled.callees if each.node.node_id == call.node)
        path = _call_path(stop)
        given = {} if stop.given is None else stop.given
        book, prefix = self.book.inside(path), f"{self.prefix}{path}/"
        return Session(callee, engines, given, self.now, book, self._limits, prefix, self._loader)

    def _called(self, stop: Stop, engine: Engine) -> Outcome | None:
        """What a call came to on one engine; None where it asks for what nobody was ever asked."""
        call = called_by(stop)
        assert call is not None
        session = self._session_of(stop, call, (engine,))
        try:
            session.resume()
        except Unanswered:
            return None
        return session.leader.outcome


def called_by(stop: Stop) -> ir.CallNode | None:
    for each in (stop.statement, None if stop.statement is None else guarded_by(stop.statement)):
        if isinstance(each, ir.CallNode):
            return each
    return None


def _call_path(stop: Stop) -> str:
    if stop.inside:
        return stop.inside[0][0].path.rpartition("/")[0].partition("/")[0]
    return stop.path


def _is_at(point: Breakpoint, stop: Stop) -> bool:
    match point.kind:
        case Kind.STEP:
            return not stop.is_resumed and ":" not in stop.step and fnmatchcase(stop.step, point.pattern)
        case Kind.EFFECT:
            return stop.request is not None and matches_effect(point.pattern, stop.request.effect)
        case Kind.LINE:
            return stop.statement is not None and not stop.is_resumed and stop.line == point.line
        case Kind.CONTRACT:
            return any(not clause.holds for clause in stop.clauses)
        case Kind.TRANSITION:
            moved = transition_of(stop)
            return moved is not None and matches_transition(point.pattern, *moved)
        case _:
            return False


def transition_of(stop: Stop) -> tuple[str, str] | None:
    """The state that an entity left, and the one it is in now."""
    request, completion = stop.request, stop.completion
    if request is None or completion is None or request.effect != "state_transition" or completion.failure is not None:
        return None
    return str(completion.result), request.fixed["to"]
