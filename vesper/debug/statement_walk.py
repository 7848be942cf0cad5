"""The walk from an execution's marks to the statements of its node, in order.

An engine reports marks (docs/spec/ir.md, Marks), requests and its end. The walk follows the node's statements and
derives the path from those events: each statement reached is a stop, with the names visible there. Only what has no
mark is computed again, on the same engine: the items and first state of a loop, the inputs of a call, and failure
codes.

The walk never guesses. An event that the node's flow cannot produce ends it with the stop `lost`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TypeAlias

from vesper.compiler import Compiled
from vesper.debug.event_reader import BodyLeft, Computing, ExecutionOver, Failure, Walking, WalkLost
from vesper.debug.stops import (
    BEGINNING,
    END,
    LOST,
    PROMISES,
    Clause,
    CompletionEvent,
    EndEvent,
    Event,
    MarkEvent,
    RequestEvent,
    Stop,
    guarded_by,
    label,
    line_of,
    operation,
)
from vesper.debug.strand_walk import StrandWalk, items_of
from vesper.engines.engine import Engine, Request
from vesper.engines.outcome import ContractBroken, DeclaredError, Failed, Outcome, Returned
from vesper.language.ir import nodes as ir
from vesper.language.ir.failures import can_become_declared
from vesper.language.ir.nodes import item_types
from vesper.language.ir.statements import handlers_of, value_type
from vesper.trace.expressions import Expressions, Name
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import Value

OnCall: TypeAlias = Callable[[Stop, Engine], Outcome | None]
"""Outcome of a failed call, from running the called node again on its inputs and completions.

None if it makes another request then.
"""


class Walk(StrandWalk):
    """The stops of one execution on one engine, as far as its events reach."""

    def __init__(
        self,
        compiled: Compiled,
        engine: Engine,
        expressions: Expressions,
        inputs: Mapping[str, object],
        now: datetime,
        on_call: OnCall,
    ) -> None:
        super().__init__(compiled.node, engine, expressions, inputs, now)
        self._on_call = on_call
        self.is_ended = False
        self._steps = self._walk()
        next(self._steps)

    def feed(self, events: Iterable[Event]) -> None:
        """Advance as far as these events allow."""
        self._waiting.extend(events)
        if not self.is_ended:
            try:
                next(self._steps)
            except StopIteration:
                self.is_ended = True

    # -- the phases -------------------------------------------------------------------------------

    def _walk(self) -> Walking:
        outcome: Outcome | None = None
        try:
            with suppress(ExecutionOver):
                yield from self._phases()
            event = yield from self._peek()
            if not isinstance(event, EndEvent):
                raise WalkLost
        except WalkLost:
            self._stop(LOST, "the engine left the node's flow", 1)
        while outcome is None:
            event = yield from self._take()
            if isinstance(event, EndEvent):
                outcome = event.outcome
        self._end(outcome)

    def _phases(self) -> Walking:
        node = self._node
        first = (*node.constraints, *node.preconditions, *node.postconditions)
        self._stop(BEGINNING, "contract", first[0].holds.place.line if first else 1)
        yield from self._clauses("constraint", node.constraints)
        yield from self._clauses("precondition", node.preconditions)
        event = yield from self._peek()
        if isinstance(event, EndEvent) and isinstance(event.outcome, Failed) and event.outcome.at is None:
            raise ExecutionOver  # the inputs were rejected: the body was not entered
        has_returned = False
        try:
            yield from self._block(node.body, 0)
        except BodyLeft as left:
            has_returned = left.args[0]
        except Failure as failure:
            if not self._becomes_declared(failure.code):
                raise ExecutionOver from None
        promised = (*(node.postconditions if has_returned else ()), *node.invariants)
        if promised:
            outcome = yield from self._outcome_ahead()
            self._add_outputs(outcome)
            self._stop(PROMISES, "contract", promised[0].holds.place.line)
            if has_returned:
                yield from self._clauses("postcondition", node.postconditions)
            yield from self._clauses("invariant", node.invariants)

    def _becomes_declared(self, code: str) -> bool:
        errors = self._node.errors
        return can_become_declared(self._node) and code in getattr(errors[0].type, "members", ())

    def _outcome_ahead(self) -> Generator[None, None, Outcome]:
        """Return the outcome of the execution.

        No request follows the body, so the end has arrived or comes with the next events.
        """
        while not (self._waiting and isinstance(self._waiting[-1], EndEvent)):
            if any(not isinstance(each, MarkEvent) for each in self._waiting):
                raise WalkLost
            yield
        last = self._waiting[-1]
        assert isinstance(last, EndEvent)
        return last.outcome

    def _add_outputs(self, outcome: Outcome) -> None:
        if isinstance(outcome, Returned):
            types = {each.name: each.type for each in self._node.outputs}
            found = {("output", name): Name(name, types[name], value) for name, value in outcome.value.items()}
            self._names = self._names | found

    def _end(self, outcome: Outcome) -> None:
        self._add_outputs(outcome)
        line = self.stops[-1].line
        if isinstance(outcome, Failed) and outcome.at is not None:
            line = self._node.expressions()[outcome.at].place.line
        last = self.stops[-1]
        if isinstance(outcome, Failed) and last.fails is None and last.statement is not None and last.gives is None:
            last.fails = str(outcome.code)
        stop = self._stop(END, "outcome", line)
        stop.outcome = outcome

    # -- clauses ----------------------------------------------------------------------------------

    def _clauses(self, phase: str, clauses: Sequence[ir.Clause]) -> Walking:
        for index, clause in enumerate(clauses):
            yield from self._clause(phase, index, clause)

    def _clause(self, phase: str, index: int, clause: ir.Clause) -> Walking:
        try:
            holds = yield from self._read_marked(clause.holds)
        except Failure:
            raise ExecutionOver from None
        shown: dict[str, Value] = {}
        for reference in ir.mentioned_refs(clause):
            found = self._names.get((reference.kind, reference.name))
            if found is not None:
                shown[found.name] = found.value
        event = self._waiting[0] if self._waiting else None
        if holds is not True and isinstance(event, EndEvent) and isinstance(event.outcome, ContractBroken):
            shown |= event.outcome.values  # outputs that were not returned are visible only here
        self.stops[-1].clauses.append(Clause(phase, index, clause.text, holds is True, shown))
        if holds is not True:
            raise ExecutionOver

    # -- statements -------------------------------------------------------------------------------

    def _block(self, block: ir.Block, depth: int) -> Walking:
        for statement in block:
            yield from self._statement(statement, depth)

    def _statement(self, statement: ir.Statement, depth: int, guarded: Stop | None = None) -> Walking:
        """Walk one statement.

        A statement behind a `when:` shares the stop of its guard: its author wrote one step.
        """
        stop = self._stop_at(statement, depth) if guarded is None else guarded
        outside, iterations = self._names, self._iterations
        try:
            value = yield from self._run(statement, stop, depth)
        except Failure as failure:
            stop.fails = failure.code
            self._names, self._iterations = outside, iterations
            handler = _handler(handlers_of(statement), failure.code)
            if handler is None:
                raise
            yield from self._block(handler.body, depth + 1)
            if handler.value is None:
                raise
            self._resume(stop, handler.value)
            value = yield from self._read_marked(handler.value)
        if not isinstance(statement, ir.Parallel):  # its steps are visible after it
            self._names = outside
        type_ = value_type(statement)
        if type_ is not None and not isinstance(statement, ir.Return | ir.Raise | ir.Require):
            found = Name(statement.name.lstrip("_"), type_, value)
            stop.gives = found
            self._names = self._names | {("step", statement.name): found}

    def _run(self, statement: ir.Statement, stop: Stop, depth: int) -> Computing:
        match statement:
            case ir.Step(value=value):
                return (yield from self._read_marked(value))
            case ir.Return(values) | ir.Raise(values):
                for _, each in values:
                    yield from self._read_conditions(each)
                event = yield from self._peek()
                if isinstance(event, EndEvent) and isinstance(event.outcome, Failed) and self._is_inside(event, values):
                    raise Failure(str(event.outcome.code))
                raise BodyLeft(isinstance(statement, ir.Return))
            case ir.Require(clause):
                number = self._node.validations().index(clause)
                yield from self._clause("validation", number, clause)
                return None
            case ir.Branch():
                return (yield from self._branch(statement, stop, depth))
            case ir.Loop():
                return (yield from self._loop(statement, stop, depth))
            case ir.Request():
                return (yield from self._request(statement, stop))
            case ir.CallNode():
                return (yield from self._call(statement, stop))
            case ir.Parallel():
                yield from self._gather(None)
                yield from self._members(statement, depth)
                return None

    def _branch(self, branch: ir.Branch, stop: Stop, depth: int) -> Computing:
        guarded = guarded_by(branch)
        for arm in branch.arms:
            holds = yield from self._read_marked(arm.when)
            if guarded is not None:
                stop.is_skipped = holds is not True
            if holds is True and guarded is not None:
                yield from self._statement(guarded, depth, stop)
                return None if arm.value is None else (yield from self._read_marked(arm.value))
            if holds is True:
                return (yield from self._arm(arm.body, arm.value, stop, depth))
        return (yield from self._arm(branch.otherwise, branch.otherwise_value, stop, depth))

    def _arm(self, body: ir.Block, value: ir.Expression | None, stop: Stop, depth: int) -> Computing:
        yield from self._block(body, depth + 1)
        if value is None:
            return None
        self._resume(stop, value)
        return (yield from self._read_marked(value))

    def _loop(self, loop: ir.Loop, stop: Stop, depth: int) -> Computing:
        items: Sequence[Value | tuple[Value, Value]] | None = None
        if loop.over is not None:
            yield from self._read_conditions(loop.over)
            items = items_of(self._compute(loop.over), loop.over.type)
            if loop.in_flight is not None:
                return (yield from self._rounds(loop, items, stop, depth))
        state: dict[int, Value] = {}
        for each in loop.state:
            yield from self._read_conditions(each.value)
            state[each.local] = self._compute(each.value)
        collected: list[Value] = []
        outside, iterations, count, taken = self._names, self._iterations, 0, 0
        while items is None or taken < len(items):
            self._names = outside | self._locals(loop, None if items is None else items[taken], state)
            taken += 1
            if loop.where is not None and (yield from self._read_marked(loop.where)) is not True:
                continue
            if loop.condition is not None and (yield from self._read_marked(loop.condition)) is not True:
                break
            if count == loop.max:
                raise Failure(ErrorCode.LOOP_LIMIT.value)
            self._iterations = f"{iterations}[{count}]"
            count += 1
            yield from self._block(loop.body, depth + 1)
            last = (loop.collect, *(value for _, value in loop.next), loop.stop_when)
            self._resume(stop, next((each for each in last if each is not None), None))
            if loop.collect is not None:
                collected.append((yield from self._read_marked(loop.collect)))
            changed: dict[int, Value] = {}
            for local, value in loop.next:
                changed[local] = yield from self._read_marked(value)
            state |= changed
            self._names = self._names | self._locals(loop, None, state)
            if loop.stop_when is not None and (yield from self._read_marked(loop.stop_when)) is True:
                break
        self._iterations = iterations
        result: dict[str, Value] = {each.name: state[each.local] for each in loop.state}
        if loop.collect is not None:
            result["collected"] = collected
        return result

    def _locals(
        self, loop: ir.Loop, item: Value | tuple[Value, Value] | None, state: Mapping[int, Value]
    ) -> dict[tuple[str, str], Name]:
        found: dict[tuple[str, str], Name] = {}
        if loop.over is not None and item is not None:
            types = item_types(loop.over.type)
            parts = item if isinstance(item, tuple) else (item,)
            for number, name, type_, value in zip(loop.locals, loop.names, types, parts, strict=False):
                found["local", str(number)] = Name(name, type_, value)
        for each in loop.state:
            found["local", str(each.local)] = Name(each.name, each.value.type, state[each.local])
        return found

    def _request(self, request: ir.Request, stop: Stop) -> Computing:
        for part in (*(() if request.key is None else (request.key,)), *(value for _, value in request.arguments)):
            yield from self._read_conditions(part)
        made, completion = yield from self._take_request(request)
        if made is None:
            raise self._failure((*(() if request.key is None else (request.key,)), *(v for _, v in request.arguments)))
        stop.request = made
        stop.path = made.path.lstrip("_")
        if completion is None and self._strand_depth:
            raise ExecutionOver
        if completion is None:
            completion = yield from self._completion()
        stop.completion = completion
        if completion.failure is not None:
            raise Failure(completion.failure)
        event = yield from self._peek()
        if not (isinstance(event, MarkEvent) and event.index == request.result.index):
            raise Failure(ErrorCode.BAD_RESPONSE.value)
        return (yield from self._read_marked(request.result))

    def _call(self, call: ir.CallNode, stop: Stop) -> Computing:
        for _, value in call.inputs:
            yield from self._read_conditions(value)
        stop.given = {name: self._compute(value) for name, value in call.inputs}
        if self._strand_depth:
            stop.inside += self._strands.take_inside(f"{call.name}{self._iterations}")
        while isinstance((event := (yield from self._peek())), RequestEvent | CompletionEvent):
            if isinstance(event, RequestEvent) and not _is_inside_call(event.request, call):
                break  # the call has failed, and its handler makes the request
            self._waiting.popleft()
            if isinstance(event, RequestEvent):
                stop.inside.append((event.request, None))
            else:
                stop.inside[-1] = (stop.inside[-1][0], event.completion)
        if isinstance(event, MarkEvent) and event.index == call.result.index:
            return (yield from self._read_marked(call.result))
        if isinstance(event, EndEvent) and isinstance(event.outcome, Failed):
            raise Failure(str(event.outcome.code))
        outcome = self._on_call(stop, self._engine)
        match outcome:
            case Failed(code):
                raise Failure(str(code))
            case DeclaredError(error):
                raise Failure(str(error["error_code"]))
            case ContractBroken():
                raise Failure("contract_broken")
            case None:
                raise WalkLost
            case _:
                raise ExecutionOver

    # -- stops ------------------------------------------------------------------------------------

    def _stop_at(self, statement: ir.Statement, depth: int) -> Stop:
        stop = self._stop(f"{label(statement)}{self._iterations}", operation(statement), line_of(statement), depth)
        stop.statement = statement
        return stop

    def _resume(self, stop: Stop, at: ir.Expression | None) -> None:
        """Add a stop for a statement that continues after an inner block, unless the block had none."""
        if at is not None and self.stops[-1] is not stop and stop.statement is not None:
            path = f"{label(stop.statement)}{self._iterations}"
            again = self._stop(path, stop.operation, at.place.line, stop.depth + 1)
            again.statement, again.is_resumed = stop.statement, True


def _is_inside_call(request: Request, call: ir.CallNode) -> bool:
    head, slash, _ = request.path.partition("/")
    return bool(slash) and head.partition("[")[0] == call.name


def _handler(handlers: Sequence[ir.Handler], code: str) -> ir.Handler | None:
    """Return the handler of a failure: by its code, its class, any HTTP code or any code."""
    wanted = [code]
    if code.startswith("http_"):
        wanted += [f"http_{code[5]}xx", "http_error"]
    for each in (*wanted, "any"):
        for handler in handlers:
            if each in handler.codes:
                return handler
    return None
