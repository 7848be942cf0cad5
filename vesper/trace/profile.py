"""Time profile of a node on each engine.

Steps: the node is cut off after each step in turn and timed as a whole; a step's time is the difference from the
previous cut. Engines thus run their normal code without marks. Operations: each is evaluated on its recorded values a
thousand times in a loop of the language, minus the time of the loop.

Requests are completed from a trace, so only the engine's own time counts and nothing is performed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from vesper.compiler import Compiled
from vesper.engines.engine import Blocked, Completion, Engine, Program
from vesper.engines.outcome import Outcome, Returned
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir import nodes as ir
from vesper.language.ir.encode import encode_and_hash
from vesper.language.ir.statements import Block, Handler, all_statements, expressions_of, leaves, value_type
from vesper.trace.model import MarkKind, Trace
from vesper.trace.places import step_name
from vesper.trace.programs import compiled_of
from vesper.values.model import plain
from vesper.values.types import BOOLEAN, INTEGER, ArrayOf, Type
from vesper.values.vesper_error import VesperError

_ROUND_SECONDS = 0.002
_ROUNDS = 15
_REPEATS = 1_000
"""Evaluations of an operation per call."""
_DONE = "done"
_NO_PLACE = ir.Place(1, 1, 1, 1)


@dataclass(frozen=True, slots=True)
class StepTime:
    name: str
    nanoseconds: Mapping[str, float]
    """Nanoseconds by engine."""


@dataclass(frozen=True, slots=True)
class OperationTime:
    name: str
    stands: int
    """Number of occurrences in the executed steps."""
    nanoseconds: Mapping[str, float]
    """Nanoseconds of one evaluation, by engine."""


@dataclass(frozen=True, slots=True)
class Profile:
    node_id: str
    total: Mapping[str, float]
    """Nanoseconds of a whole execution by engine, without the time of effects."""
    steps: tuple[StepTime, ...]
    operations: tuple[OperationTime, ...]


class TooSlow(VesperError):
    """A profile does not fit into the time that it may take."""


def profile(trace: Trace, engines: Mapping[str, Engine]) -> Profile:
    """Time the execution of a trace and its parts."""
    compiled = compiled_of(trace.definition)
    total, steps = _time_steps(compiled, trace, engines)
    return Profile(trace.node_id, total, steps, _time_operations(compiled, trace, engines))


def profile_steps(trace: Trace, engines: Mapping[str, Engine], seconds: float) -> Profile:
    """Time the steps of a trace only, with `seconds` of this thread's time. Raises `TooSlow`."""
    total, steps = _time_steps(compiled_of(trace.definition), trace, engines, seconds)
    return Profile(trace.node_id, total, steps, ())


def time_text(nanoseconds: float) -> str:
    """Format a time with its unit."""
    if nanoseconds >= 1_000_000:
        return f"{nanoseconds / 1_000_000:.2f} ms"
    return f"{nanoseconds / 1_000:.2f} µs" if nanoseconds >= 1_000 else f"{nanoseconds:.0f} ns"


# -- steps ----------------------------------------------------------------------------------------


def _time_steps(
    compiled: Compiled, trace: Trace, engines: Mapping[str, Engine], seconds: float = math.inf
) -> tuple[dict[str, float], tuple[StepTime, ...]]:
    """Return the total time and the time of each step, or of groups of steps where compiling each takes too long."""
    body = compiled.node.body
    ends: Sequence[int] = range(len(body) + 1)
    until = math.inf
    if seconds < math.inf:
        until = time.thread_time() + seconds
        ends = _affordable_ends(compiled, trace, engines, seconds)
    names = ["(inputs, constraints, preconditions)", *(_group_name(body[a:b]) for a, b in pairwise(ends))]
    names = [*names, "(outputs, postconditions, invariants)"] if ends else ["(the whole node)"]
    cuts = [*(_cut_off(compiled, number) for number in ends), compiled]
    costs: dict[str, list[float]] = {}
    total: dict[str, float] = {}
    for engine, each in engines.items():
        calls = []
        for cut in cuts:
            _check_time(until)
            calls.append(_build_call(each.load(cut), trace))
        times = _time_calls(calls, until)
        total[engine] = times[-1]
        # A later cut cannot be faster; if it seems so, that is noise.
        highest = [max(times[: number + 1]) for number in range(len(times))]
        costs[engine] = [after - before for before, after in zip([0.0, *highest], highest, strict=False)]
    steps = [StepTime(name, {engine: costs[engine][number] for engine in engines}) for number, name in enumerate(names)]
    return total, tuple(steps)


def _affordable_ends(compiled: Compiled, trace: Trace, engines: Mapping[str, Engine], seconds: float) -> Sequence[int]:
    """Return the numbers of statements to cut off after, as many as can be compiled in half of the time; else none."""
    length = len(compiled.node.body)
    began = time.thread_time()
    for engine in engines.values():
        _build_call(engine.load(_cut_off(compiled, length)), trace)()
    each = max(time.thread_time() - began, 1e-6)
    groups = int(seconds / 2 / each) - 2
    if groups < 1:
        return ()
    return range(length + 1) if groups >= length else [*range(0, length, -(-length // groups)), length]


def _group_name(statements: Sequence[ir.Statement]) -> str:
    names = [_name(each) for each in statements]
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"


def _name(statement: ir.Statement) -> str:
    return step_name(statement) or type(statement).__name__.lower()


def _cut_off(compiled: Compiled, number: int) -> Compiled:
    """Return the node with its first `number` statements and no outputs."""
    done = ir.Return(((_DONE, ir.Literal(BOOLEAN, True, _NO_PLACE)),))
    body = _without_values(compiled.node.body[:number], done)
    if not leaves(body):
        body = (*body, done)
    outputs = (ir.Output(_DONE, BOOLEAN),)
    # Decision tables name expressions that are cut off or numbered anew.
    node = replace(compiled.node, outputs=outputs, body=body, postconditions=(), invariants=(), tables=())
    return _compile(node, compiled)


def _without_values(block: Block, done: ir.Return) -> Block:
    """Return the block with every return replaced by one without values."""

    def handlers(of: Sequence[Handler]) -> tuple[Handler, ...]:
        return tuple(replace(each, body=_without_values(each.body, done)) for each in of)

    found: list[ir.Statement] = []
    for statement in block:
        match statement:
            case ir.Return():
                found.append(done)
            case ir.Raise() | ir.Require():
                found.append(statement)
            case ir.Branch():
                arms = tuple(replace(arm, body=_without_values(arm.body, done)) for arm in statement.arms)
                otherwise = _without_values(statement.otherwise, done)
                found.append(replace(statement, arms=arms, otherwise=otherwise, handlers=handlers(statement.handlers)))
            case ir.Loop():
                body = _without_values(statement.body, done)
                found.append(replace(statement, body=body, handlers=handlers(statement.handlers)))
            case ir.Parallel(members=members):
                inside = tuple(_without_values(member, done) for member in members)
                found.append(replace(statement, members=inside, handlers=handlers(statement.handlers)))
            case ir.Step() | ir.Request() | ir.CallNode():
                found.append(replace(statement, handlers=handlers(statement.handlers)))
    return tuple(found)


# -- operations -----------------------------------------------------------------------------------


def _time_operations(compiled: Compiled, trace: Trace, engines: Mapping[str, Engine]) -> tuple[OperationTime, ...]:
    executed = {each.step for each in trace.marks} | {each.path.partition("[")[0] for each in trace.exchanges}
    counts: dict[str, int] = {}
    first: dict[str, ir.Call] = {}
    for statement in all_statements(compiled.node.body):
        name = step_name(statement)
        if name is not None and name not in executed:
            continue
        for root in (
            ()
            if isinstance(statement, ir.Branch | ir.Loop | ir.Parallel)
            else expressions_of((_without_handlers(statement),))
        ):
            for part in ir.walk(root):
                if isinstance(part, ir.Call):
                    counts[part.op] = counts.get(part.op, 0) + 1
                    if part.op not in first and not any(
                        isinstance(each, ir.Local | ir.Let | ir.For) for each in ir.walk(part)
                    ):
                        first[part.op] = part
    reference = next(iter(engines.values()))
    had = {
        op: values for op, call in first.items() if (values := _operands(compiled, trace, call, reference)) is not None
    }
    costs: dict[str, dict[str, float]] = {}
    for name, engine in engines.items():
        runs = {op: _build_loop(engine, first[op], values) for op, values in had.items()}
        runs = {op: run for op, run in runs.items() if isinstance(run(), Returned)}
        empty, *times = _time_calls([_build_loop(engine, None, ()), *runs.values()])
        costs[name] = {op: max(0.0, (each - empty) / _REPEATS) for op, each in zip(runs, times, strict=True)}
    found = [
        OperationTime(op, counts[op], {name: costs[name][op] for name in engines})
        for op in had
        if all(op in costs[name] for name in engines)
    ]
    return tuple(sorted(found, key=lambda each: -max(each.nanoseconds.values())))


def _without_handlers(statement: ir.Statement) -> ir.Statement:
    """Return a statement without its handlers, which are separate statements."""
    match statement:
        case ir.Step() | ir.Request() | ir.CallNode():
            return replace(statement, handlers=())
        case _:
            return statement


def _operands(compiled: Compiled, trace: Trace, call: ir.Call, engine: Engine) -> list[object] | None:
    """Return the recorded operands of an operation; None if they are unknown."""
    types, values = _recorded_values(compiled, trace)
    names = {each.name for part in call.args for each in ir.walk(part) if isinstance(each, ir.Ref)}
    if any(isinstance(each, ir.Now | ir.Result | ir.Apply) for part in call.args for each in ir.walk(part)):
        return None
    if not names <= values.keys():
        return None
    fields = tuple((f"a{number}", _as_inputs(part)) for number, part in enumerate(call.args))
    node = _build_function(tuple((name, types[name]) for name in sorted(names)), fields)
    outcome = engine.load(_compile(node, None)).call({name: values[name] for name in names})
    return [plain(outcome.value[name]) for name, _ in fields] if isinstance(outcome, Returned) else None


def _recorded_values(compiled: Compiled, trace: Trace) -> tuple[dict[str, Type], dict[str, object]]:
    types: dict[str, Type] = {each.name: each.type for each in compiled.node.inputs}
    values: dict[str, object] = {each.name: plain(each.default) for each in compiled.node.inputs}
    values |= {flag: name not in trace.inputs for flag, name in compiled.node.flagged.items()} | dict(trace.inputs)
    for constant in compiled.node.constants:
        types[constant.name], values[constant.name] = constant.type, plain(constant.value)
    for statement in all_statements(compiled.node.body):
        type_ = value_type(statement)
        name = getattr(statement, "name", None)
        if type_ is not None and name is not None:
            types[name] = type_
    for mark in trace.marks:
        if mark.kind is MarkKind.VALUE and mark.step in types:
            values[mark.step] = mark.value
    return types, values


def _as_inputs(expression: ir.Expression) -> ir.Expression:
    """Return the expression with every name replaced by an input."""
    match expression:
        case ir.Ref():
            return replace(expression, kind="input")
        case ir.Call(args=args):
            return replace(expression, args=tuple(map(_as_inputs, args)))
        case ir.If():
            parts = map(_as_inputs, (expression.condition, expression.then, expression.otherwise))
            condition, then, otherwise = parts
            return replace(expression, condition=condition, then=then, otherwise=otherwise)
        case ir.Logical():
            return replace(expression, left=_as_inputs(expression.left), right=_as_inputs(expression.right))
        case ir.Array(items=items):
            return replace(expression, items=tuple(map(_as_inputs, items)))
        case ir.RecordValue(fields=fields):
            return replace(expression, fields=tuple((name, _as_inputs(each)) for name, each in fields))
        case ir.Field():
            return replace(expression, of=_as_inputs(expression.of))
        case _:
            return expression


def _build_loop(engine: Engine, call: ir.Call | None, values: Sequence[object]) -> Callable[[], Outcome]:
    """Return a call that evaluates an operation a thousand times; without one, only the loop."""
    names = [f"a{number}" for number in range(len(values))]
    types = [] if call is None else [each.type for each in call.args]
    value: ir.Expression = ir.Literal(BOOLEAN, True, _NO_PLACE)
    if call is not None:
        refs = tuple(ir.Ref("input", name, type_, _NO_PLACE) for name, type_ in zip(names, types, strict=True))
        # A pattern must be a literal.
        args = tuple(part if isinstance(part, ir.Literal) else ref for part, ref in zip(call.args, refs, strict=True))
        value = replace(call, args=args)
    bounds = tuple(ir.Literal(INTEGER, number, _NO_PLACE) for number in (0, _REPEATS, 1))
    over = ir.Call("array.range", (), bounds, ArrayOf(INTEGER), _NO_PLACE)
    loop = ir.For("count", (0,), ("i",), over, None, None, value, INTEGER, _NO_PLACE)
    used = {each.name for each in ir.walk(value) if isinstance(each, ir.Ref)}
    declared = tuple((name, type_) for name, type_ in zip(names, types, strict=True) if name in used)
    program = engine.load(_compile(_build_function(declared, ((_DONE, loop),)), None))
    given = {name: each for name, each in zip(names, values, strict=True) if name in used}
    return lambda: program.call(given)


# -- making and timing ----------------------------------------------------------------------------


def _build_function(inputs: Sequence[tuple[str, Type]], outputs: Sequence[tuple[str, ir.Expression]]) -> ir.Node:
    return ir.Node(
        node_id="profiled_v1",
        type="function",
        inputs=tuple(ir.Input(name, type_, None) for name, type_ in inputs),
        outputs=tuple(ir.Output(name, each.type) for name, each in outputs),
        constants=(),
        constraints=(),
        preconditions=(),
        body=(ir.Return(tuple(outputs)),),
        postconditions=(),
        source=ir.Source("profile", SourceFile("profile", "").sha256, "timed"),
    )


def _compile(node: ir.Node, of: Compiled | None) -> Compiled:
    numbered = ir.number_expressions(node)
    written = encode_and_hash(numbered)
    assert written is not None, "a part of a node is within the node's size limits"
    source = SourceFile("profile", "") if of is None else of.source
    return Compiled(source, numbered, (), *written, () if of is None else of.callees)


def _build_call(program: Program, trace: Trace) -> Callable[[], Outcome | None]:
    """Return a whole execution with completions from the trace."""
    inputs, now = trace.inputs, trace.now
    if not trace.exchanges and compiled_of(trace.definition).node.is_pure():
        return lambda: program.call(inputs, now)
    answers = {each.path: each for each in trace.exchanges}

    def call() -> Outcome | None:
        execution = program.start(inputs, now, is_traced=False)
        step = execution.advance(())
        while isinstance(step, Blocked):
            request = step.requests[0]
            known = answers.get(request.path)
            if known is None:
                return None  # the trace ends here
            step = execution.advance((Completion(request.id, known.value, known.failure),))
        return step.outcome

    return call


def _is_over(until: float) -> bool:
    """Return whether this thread has used its time. Other work of the machine does not count."""
    return until < math.inf and time.thread_time() > until


def _check_time(until: float) -> None:
    if _is_over(until):
        raise TooSlow("the node takes too long to be timed step by step in this time")


def _time_calls(calls: Sequence[Callable[[], object]], until: float = math.inf) -> list[float]:
    """Return the nanoseconds of each call as the best of several rounds, of at least one.

    Calls alternate within a round, so that load on the machine affects all of them.
    """
    counts = []
    for call in calls:
        once = float("inf")
        for _ in range(4):  # the first call loads lazily loaded parts
            _check_time(until)
            began = time.perf_counter()
            call()
            once = min(once, time.perf_counter() - began)
        counts.append(max(1, min(10_000, round(_ROUND_SECONDS / max(once, 1e-7)))))
    best = [float("inf")] * len(calls)
    for done in range(_ROUNDS):
        if done and _is_over(until):
            break
        for number, call in enumerate(calls):
            began = time.perf_counter()
            for _ in range(counts[number]):
                call()
            best[number] = min(best[number], (time.perf_counter() - began) / counts[number])
    return [each * 1e9 for each in best]
