"""A debugging session without a terminal: engines in lockstep, moved forwards and backwards.

All engines are recorded between two requests at once, and the session moves over the recording; moving back therefore
performs nothing and shows the same values. A position is a stop (docs/spec/debugger.md) plus whether its statement was
executed. Only moving past a request needs an answer, which the `AnswerBook` supplies.
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
from vesper.debug.responses import AnswerBook, RunStopped, Unanswered
from vesper.debug.side import Side
from vesper.debug.stops import END, LOST, Position, Stop, guarded_by
from vesper.engines.compare import same_requests
from vesper.engines.engine import Engine, Limits
from vesper.engines.outcome import Outcome, Returned
from vesper.language.ir import nodes as ir
from vesper.trace.expressions import BoundExpression, Expressions, Loader, Names, narrow
from vesper.values.model import Value, show

MAX_STOPS_PER_CONTINUE = 1_000_000
"""Maximum stops that one `continue` passes, so that a session always returns."""


class StopReason(Enum):
    """Reason for the position at which a move ended."""

    STEP = "step"
    BREAKPOINT = "breakpoint"
    END = "end"
    START = "start"


@dataclass(frozen=True, slots=True)
class Move:
    why: StopReason
    breakpoints: tuple[Breakpoint, ...] = ()
    inside: tuple[Session, ...] = ()
    """Sessions that lead to a breakpoint in a called node, outermost call first."""


class Session:
    def __init__(
        self,
        compiled: Compiled,
        engines: Sequence[Engine],
        inputs: Mapping[str, object],
        now: datetime,
        book: AnswerBook,
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
        """Path of the call with a trailing `/`, for the session of a called node."""
        self._loader = loader or Loader()
        self.expressions = Expressions(compiled, self._loader)
        self.breakpoints: list[Breakpoint] = []
        self._limits = limits
        self.question_limits: Callable[[], Limits | None] = lambda: None
        """Returns the limits of the next evaluated breakpoint, watch or `print`; an exception ends the command."""
        self._compared: tuple[object, Divergence | None] | None = None
        self.sides = tuple(
            Side(compiled, engine, self.expressions, inputs, now, self._rerun_call, self._loader, limits)
            for engine in engines
        )
        self.position = Position(min(1, self._last()))

    # -- recording ------------------------------------------------------------------------------------

    @property
    def leader(self) -> Side:
        return self.sides[0]

    def _last(self) -> int:
        return max(len(side.stops) for side in self.sides) - 1

    def _is_recorded(self) -> bool:
        """Return whether the leader has ended.

        A follower that still waits requests something that the leader never requested.
        """
        return self.leader.is_over

    def _record(self) -> None:
        """Complete the leader's pending request.

        Followers receive the same completion if they made the same request.
        """
        request = self.leader.waits_for
        assert request is not None
        self.divergence()
        following = [each for each in self.sides[1:] if each.waits_for is not None]
        try:
            completion = self.book.answer(request)
        except RunStopped as stopped:
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
        """Record until this stop's statement was executed.

        With a `divergence` breakpoint, recording ends at the first divergence: later requests stay pending until the
        user continues.
        """
        stops_at_divergence = (
            any(each.kind is Kind.DIVERGENCE for each in self.breakpoints) and self.divergence() is None
        )
        while not self._is_recorded() and len(self.leader.stops) <= stop + 1:
            self._record()
            if stops_at_divergence and self.divergence() is not None:
                return

    def stop_of(self, side: Side, position: Position | None = None) -> Stop:
        """Return the stop of a side at a position; a side with fewer stops is at its last."""
        wanted = (position or self.position).stop
        return side.stops[min(wanted, len(side.stops) - 1)]

    @property
    def is_at_end(self) -> bool:
        return self._is_recorded() and self.position.stop >= self._last()

    # -- moving -----------------------------------------------------------------------------------

    def step(self) -> Move:
        """Move to the next statement in any block.

        Raises `Unanswered` without moving if a request has no answer.
        """
        return self._step_until(lambda _: True)

    def next(self) -> Move:
        """Move to the next statement that is not inside the current one."""
        depth = self.stop_of(self.leader).depth
        return self._step_until(lambda stop: stop.depth <= depth)

    def out(self) -> Move:
        """Move to the first statement after the enclosing block."""
        depth = self.stop_of(self.leader).depth
        return self._step_until(lambda stop: stop.depth < depth)

    def _step_until(self, is_there: Callable[[Stop], bool]) -> Move:
        while True:
            self._complete(self.position.stop)
            if self.position.stop >= self._last():
                return Move(StopReason.END)
            self.position = Position(self.position.stop + 1)
            if self.stop_of(self.leader).path in (END, LOST) or is_there(self.stop_of(self.leader)):
                return Move(StopReason.END if self.is_at_end else StopReason.STEP)

    def resume(self, from_start: bool = False) -> Move:
        """Move forwards to the next breakpoint or to the end."""
        place = Position(-1, True) if from_start else self.position
        for _ in range(MAX_STOPS_PER_CONTINUE):
            following = self._next_position(place)
            if following is None:
                self.position = Position(self._last())
                return Move(StopReason.END)
            place = following
            self.position = place
            found = self._breakpoints_at(place)
            if found:
                return Move(StopReason.BREAKPOINT, found)
            met = self._find_inside(place) if place.is_after else None
            if met is not None:
                self.position = Position(place.stop)
                return met
        return Move(StopReason.STEP)

    def _find_inside(self, place: Position) -> Move | None:
        """Run the node that was called here, if a breakpoint may be inside it."""
        call = called_by(self.stop_of(self.leader, place))
        if call is None or place.stop >= len(self.leader.stops):
            return None
        callee = next(each for each in self.compiled.callees if each.node.node_id == call.node)
        texts = list(inside(self.breakpoints, callee))
        if not texts:
            return None
        inner = self._session_of(self.stop_of(self.leader, place), call, self.engines)
        for text, shown_as in texts:
            with suppress(BadBreakpoint):  # the callee has no such machine or transition: no stop is possible
                inner.add_breakpoint(text, shown_as)
        try:
            moved = inner.resume(from_start=True)
        except Unanswered:
            return None  # the call has not ended: the engines diverged in it
        return Move(StopReason.BREAKPOINT, moved.breakpoints, (inner, *moved.inside)) if moved.breakpoints else None

    def leave_call(self) -> None:
        """Move past the call that was entered, so that `resume` does not enter it again."""
        self.position = Position(self.position.stop, True)

    def _next_position(self, place: Position) -> Position | None:
        self._complete(place.stop)
        if not place.is_after:
            return Position(place.stop, True)
        return Position(place.stop + 1) if place.stop < self._last() else None

    def back(self) -> Move:
        if self.position.is_after:
            self.position = Position(self.position.stop)
            return Move(StopReason.STEP)
        if self.position.stop == 0:
            return Move(StopReason.START)
        self.position = Position(self.position.stop - 1)
        return Move(StopReason.STEP)

    def reverse(self) -> Move:
        """Move backwards to the previous breakpoint or to the start."""
        place = self.position
        while True:
            if place.is_after:
                place = Position(place.stop)
            elif place.stop == 0:
                self.position = Position(0)
                return Move(StopReason.START)
            else:
                place = Position(place.stop - 1, True)
            found = self._breakpoints_at(place)
            if found:
                self.position = place
                return Move(StopReason.BREAKPOINT, found)

    def to_divergence(self) -> Move:
        """Move to the first divergence from anywhere; to the end without one."""
        return self._resume_with([Breakpoint(Kind.DIVERGENCE.value, Kind.DIVERGENCE)])

    def to_end(self) -> Move:
        """Move to the end, past all breakpoints."""
        return self._resume_with([])

    def _resume_with(self, points: list[Breakpoint]) -> Move:
        kept, self.breakpoints = self.breakpoints, points
        try:
            return self.resume(from_start=bool(points))
        finally:
            self.breakpoints = kept

    def goto(self, position: Position) -> None:
        """Move to a recorded position."""
        self.position = Position(max(0, min(position.stop, self._last())), position.is_after)

    # -- breakpoints ------------------------------------------------------------------------------

    def add_breakpoint(self, text: str, shown_as: str | None = None) -> Breakpoint:
        """Add a breakpoint; raise `BadBreakpoint` or `BadExpression` and change nothing if it is invalid.

        `shown_as` replaces the text that the user sees.
        """
        found = parse_breakpoint(text, self.compiled, self.expressions)
        check_engines(found, len(self.engines))
        return self._append(found if shown_as is None else replace(found, text=shown_as))

    def add_watch(self, text: str) -> Breakpoint:
        return self._append(parse_watch(text, self.compiled, self.expressions))

    def _append(self, found: Breakpoint) -> Breakpoint:
        if found.question is not None:
            for engine in self.engines:
                found.question.load(engine)
        self.breakpoints.append(found)
        return found

    def _breakpoints_at(self, place: Position) -> tuple[Breakpoint, ...]:
        return tuple(
            each for each in self.breakpoints if self._is_hit(each, place) and self._condition_holds(each, place)
        )

    def _condition_holds(self, point: Breakpoint, place: Position) -> bool:
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

    def _is_true(self, question: BoundExpression, place: Position) -> bool:
        return any(value is True for value in self._values(question, place))

    def _has_changed(self, point: Breakpoint, place: Position) -> bool:
        assert point.question is not None
        if place.stop == 0:
            return False
        now, before = (self._values(point.question, each) for each in (place, Position(place.stop - 1)))
        return any(has_changed(one, other) for one, other in zip(before, now, strict=True))

    def _values(self, question: BoundExpression, place: Position) -> list[Value]:
        """Return the value on each side; None where the expression has no value."""
        found: list[Value] = []
        for side in self.sides:
            names = self.stop_of(side, place).names
            outcome = self._evaluate_on(question, side, names) if question.can_evaluate(names) else None
            found.append(outcome.value["value"] if isinstance(outcome, Returned) else None)
        return found

    # -- queries --------------------------------------------------------------------------------------

    def evaluate(self, text: str) -> dict[str, Outcome]:
        """Evaluate an expression on each engine from its own values. Raises `BadExpression`."""
        found: dict[str, Outcome] = {}
        for side in self.sides:
            seen = self._names_of(side)
            found[side.name] = self._evaluate_on(self.expressions.parse(text, seen, None, "print"), side, seen)
        return found

    def _evaluate_on(self, question: BoundExpression, side: Side, names: Names) -> Outcome:
        return question.ask(side.engine, names, self.question_limits())

    def parse(self, text: str) -> BoundExpression:
        """Parse an expression over the names of this position. Raises `BadExpression`."""
        return self.expressions.parse(text, self._names_of(self.leader), None, "print")

    def _names_of(self, side: Side) -> Names:
        stop = self.stop_of(side)
        names = dict(stop.names)
        if self.position.is_after and stop.gives is not None and isinstance(stop.statement, ir.Statement):
            names["step", getattr(stop.statement, "name", "")] = stop.gives
        return narrow(names)

    def divergence(self) -> Divergence | None:
        """Return the first divergence of the recorded executions, or None."""
        if len(self.sides) < 2:
            return None
        # The recording only grows, so each length is compared once although `continue` calls this at every stop. The
        # first divergence is final: an engine that waits after it would differ in all later events.
        recorded = tuple((len(side.marks), len(side.requests), side.is_over) for side in self.sides)
        if self._compared is None or (self._compared[0] != recorded and self._compared[1] is None):
            self._compared = (recorded, first_divergence(self.compiled.node, self.sides[:2]))
        return self._compared[1]

    @property
    def watches(self) -> list[Breakpoint]:
        return [each for each in self.breakpoints if each.kind is Kind.WATCH]

    def watched(self, side: Side) -> dict[str, str]:
        """Return the watched expressions with their values on one side."""
        names = self.stop_of(side).names
        found: dict[str, str] = {}
        for each in self.watches:
            assert each.question is not None
            outcome = self._evaluate_on(each.question, side, names) if each.question.can_evaluate(names) else None
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
        """Return a session of the node called here, or None if no node is called.

        The call is executed first: entering it then needs only recorded completions.
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
        session = Session(callee, engines, given, self.now, book, self._limits, prefix, self._loader)
        session.question_limits = self.question_limits
        return session

    def _rerun_call(self, stop: Stop, engine: Engine) -> Outcome | None:
        """Return the outcome of a call on one engine; None if it makes a request that was not recorded."""
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
    """Return the state that an entity left and the state that it entered."""
    request, completion = stop.request, stop.completion
    if request is None or completion is None or request.effect != "state_transition" or completion.failure is not None:
        return None
    return str(completion.result), request.fixed["to"]
