"""`loop` statements: unrolled where the number of rounds is small, otherwise functions of the terms of one round."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import z3

from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements
from vesper.proof.comprehensions import compact
from vesper.proof.constants import are_in_order
from vesper.proof.context import ABSTRACT
from vesper.proof.equality import same
from vesper.proof.evaluation import Evaluator, Failure
from vesper.proof.symbols import (
    ArrayTerm,
    MapTerm,
    RecordTerm,
    SetTerm,
    Symbolic,
    components,
    merge,
    symbol,
)
from vesper.proof.terms import (
    FALSE,
    TRUE,
    Term,
    both,
    either,
    implied,
    integer,
    is_less,
    is_number,
    is_same,
    negated,
    whole,
)
from vesper.values.types import ArrayOf, Type

if TYPE_CHECKING:
    from vesper.proof.context import Context
    from vesper.proof.statements import Execution, RawEnding

_COLLECTED = "collected"


def evaluate_loop(execution: Execution, loop: ir.Loop) -> Symbolic:
    """Return the value of a loop: its state, and the values that it collects."""
    evaluator = execution.evaluator
    over = None if loop.over is None else evaluator.value(loop.over)
    state = {each.local: evaluator.value(each.value) for each in loop.state}
    items = _items(evaluator, over)
    bounds = evaluator.context.bounds
    if over is None and (bounds.is_finding or loop.max <= bounds.max_unrolled // 4):
        most = min(loop.max + 1, 2 * bounds.max_items + 2) if bounds.is_finding else loop.max + 1
        return _unroll(execution, loop, state, [(TRUE, ())] * most)
    if items is not None:
        return _unroll(execution, loop, state, items)
    return _abstract_loop(execution, loop, over, state)


def _items(evaluator: Evaluator, over: Symbolic | None) -> list[tuple[Term, tuple[Symbolic, ...]]] | None:
    bounds = evaluator.context.bounds
    most = max(bounds.max_items * 3, 12) if bounds.is_finding else bounds.max_unrolled // 2
    if isinstance(over, ArrayTerm) and over.items is not None:
        count = min(len(over.items), whole(over.length)) if is_number(over.length) else len(over.items)
        if count <= most:
            return [(is_less(integer(n), over.length), (over.items[n],)) for n in range(count)]
    if isinstance(over, MapTerm) and over.entries is not None and len(over.entries) <= most:
        if are_in_order(evaluator.context, over.type.key, [key for _, key, _ in over.entries]):
            return [(there, (key, value)) for there, key, value in over.entries]
    if isinstance(over, SetTerm) and over.members is not None and len(over.members) <= most:
        if are_in_order(evaluator.context, over.type.element, [each for _, each in over.members]):
            return [(there, (each,)) for there, each in over.members]
    return None


def _unroll(
    execution: Execution, loop: ir.Loop, state: dict[int, Symbolic], items: list[tuple[Term, tuple[Symbolic, ...]]]
) -> Symbolic:
    evaluator, context = execution.evaluator, execution.context
    goes_on: Term = TRUE
    done: Term = integer(0)
    collected: list[tuple[Term, Symbolic]] = []
    limit_at = loop.condition.index if loop.condition is not None else loop.over.index if loop.over is not None else 0
    for number, (there, parts) in enumerate(items):
        entered = both(there, goes_on)
        if z3.is_false(entered):
            continue
        before = evaluator.alive
        evaluator.alive = both(before, entered)
        evaluator.names.locals.update(zip(loop.locals, parts, strict=False))
        evaluator.names.locals.update(state)
        where = TRUE if loop.where is None else evaluator.truth(loop.where)
        if loop.where is not None:
            evaluator.condition(loop.where.index, where)
        skipped = both(evaluator.alive, negated(where))
        evaluator.alive = both(evaluator.alive, where)
        holds = TRUE if loop.condition is None else evaluator.truth(loop.condition)
        if loop.condition is not None:
            evaluator.condition(loop.condition.index, holds)
        ended = both(evaluator.alive, negated(holds))
        evaluator.alive = both(evaluator.alive, holds)
        if loop.over is None and number == len(items) - 1 and number < loop.max:
            evaluator.leave_bounds(TRUE)
        evaluator.fail(limit_at, "loop_limit", is_less(integer(loop.max - 1), done), "loop")
        started = both(entered, where, holds)
        execution.block(loop.body)
        if loop.collect is not None:
            collected.append((started, evaluator.value(loop.collect)))
        following = dict(state)
        for local, value in loop.next:
            following[local] = evaluator.value(value)
        evaluator.names.locals.update(following)
        stops = FALSE if loop.stop_when is None else evaluator.truth(loop.stop_when)
        if loop.stop_when is not None:
            evaluator.condition(loop.stop_when.index, stops)
        state = {local: merge(context, started, following[local], state[local]) for local in state}
        done = z3.If(started, done + 1, done) if not z3.is_true(started) else z3.simplify(done + 1)
        ends = either(both(entered, where, negated(holds)), both(started, stops))
        goes_on = both(goes_on, negated(ends))
        evaluator.alive = either(evaluator.alive, skipped, ended, both(before, negated(entered)))
    values = {each.name: state[each.local] for each in loop.state}
    if loop.collect is not None:
        values[_COLLECTED] = compact(evaluator, ArrayOf(loop.collect.type), collected)
    return RecordTerm(loop.type, values)


def _abstract_loop(execution: Execution, loop: ir.Loop, over: Symbolic | None, state: dict[int, Symbolic]) -> Symbolic:
    """Return the value of a loop of any number of rounds, from one round of any state."""
    from vesper.proof.statements import Execution as Inner
    from vesper.proof.statements import RawEnding
    from vesper.proof.witnesses import name_of

    evaluator, context = execution.evaluator, execution.context
    evaluator.note(loop.place.line, f"the loop {loop.name} of any number of rounds")
    level = evaluator.nesting
    index = z3.Const(f"item of level {level}", z3.IntSort())
    inner = evaluator.inner(evaluator.names.copy(), evaluator.recorder)
    inner.alive = evaluator.alive
    generic: list[Term] = [index]
    for position, each in enumerate(loop.state):
        value = symbol(context, each.value.type, f"state {position} of level {level}")
        generic += components(context, value)
        inner.names.locals[each.local] = value
    if isinstance(over, ArrayTerm):
        inner.alive = both(inner.alive, over.has(index))
        inner.names.locals.update(zip(loop.locals, (over.at(context, index),), strict=False))
    elif over is not None:
        for position, local in enumerate(loop.locals):
            item = symbol(context, _local_type(loop, position), f"item {position} of level {level}")
            generic += components(context, item)
            inner.names.locals[local] = item
    rounds = Inner(inner, iteration=index)
    parts = _round(rounds, loop)
    for failure in inner.failures:
        parts += [failure.guard, failure.code]
    endings = {"returns": (rounds.returns, execution.returns), "raises": (rounds.raises, execution.raises)}
    for ending in (*rounds.returns, *rounds.raises):
        values = [ending.values[name] for name in sorted(ending.values)]
        parts += [ending.guard, *(term for value in values for term in components(context, value))]
    parts += [guard for guard, _ in rounds.broken]
    entered = evaluator.alive
    parts = [z3.substitute(each, (entered, TRUE)) if not z3.is_true(entered) else each for each in parts]
    parts += [z3.Const(f"request {each}", z3.BoolSort()) for each in _request_names(loop)]
    name, operands = name_of(parts, generic)
    kind = f"loop {loop.type!r} {loop.max} {[loop.where is None, loop.condition is None, loop.stop_when is None]}"
    kind += f" {[[local for local, _ in loop.next].count(each.local) for each in loop.state]} {len(inner.failures)}"
    kind += f" {[[sorted(each.values) for each in own] for own, _ in endings.values()]} {len(rounds.broken)}"
    key = f"{ABSTRACT}{hashlib.sha256(f'{kind} {name}'.encode()).hexdigest()[:24]}"
    operands += [term for each in state.values() for term in components(context, each)]
    operands += [] if over is None else components(context, over)
    if _request_names(loop):
        # Other completions come back when the loop runs again.
        occurrence = execution.occurrence(f"loop {loop.name}")
        operands.append(integer(occurrence) if execution.iteration is None else execution.iteration)
    execution.requests += rounds.requests
    codes = {str(each.code): each.code for each in inner.failures}
    codes["loop_limit"] = integer(context.code("loop_limit"))
    fails = context.apply(f"{key} fails", operands, z3.BoolSort())
    code = context.apply(f"{key} code", operands, z3.IntSort())
    if all(is_number(each) for each in codes.values()):
        context.assume(either(*(is_same(code, each) for each in codes.values())))
    evaluator.failures.append(Failure(both(evaluator.alive, fails), code, loop.place.line))
    evaluator.alive = both(evaluator.alive, negated(fails))
    last = _last_round(execution, loop, over, key, operands) if any(own for own, _ in endings.values()) else None
    for way, (own, endings_of_node) in endings.items():
        if own:
            ends = context.apply(f"{key} {way}", operands, z3.BoolSort())
            ended = {
                name: symbol(context, value.type, f"{key} {way} {name}", operands)
                for name, value in own[0].values.items()
            }
            assert last is not None
            ways = [_is_ending(context, ended, each) for each in getattr(last, way)]
            context.assume(implied(both(entered, negated(fails), ends), either(*ways)))
            endings_of_node.append(RawEnding(both(evaluator.alive, ends), ended))
            evaluator.alive = both(evaluator.alive, negated(ends))
    if rounds.broken:
        breaks = context.apply(f"{key} breaks", operands, z3.BoolSort())
        execution.broken.append((both(evaluator.alive, breaks), rounds.broken[0][1]))
        evaluator.alive = both(evaluator.alive, negated(breaks))
    found = symbol(context, loop.type, key, operands)
    assert isinstance(found, RecordTerm)
    length = found.fields.get(_COLLECTED)
    if isinstance(length, ArrayTerm):
        context.assume(length.length <= loop.max)
        if isinstance(over, ArrayTerm):
            whole_array = over.length
            context.assume(implied(negated(fails), length.length <= whole_array))
            if loop.where is None and loop.condition is None and loop.stop_when is None:
                context.assume(implied(negated(fails), is_same(length.length, whole_array)))
    return found


def _last_round(
    execution: Execution, loop: ir.Loop, over: Symbolic | None, key: str, operands: list[Term]
) -> Execution:
    """Evaluate the round in which a loop ended the node, from any state and at any item."""
    from vesper.proof.statements import Execution as Inner

    evaluator, context = execution.evaluator, execution.context
    last = evaluator.inner(evaluator.names.copy())
    for position, each in enumerate(loop.state):
        last.names.locals[each.local] = symbol(context, each.value.type, f"{key} last state {position}", operands)
    index = context.apply(f"{key} last item", operands, z3.IntSort())
    if isinstance(over, ArrayTerm):
        last.alive = over.has(index)
        last.names.locals.update(zip(loop.locals, (over.at(context, index),), strict=False))
    elif over is not None:
        for position, local in enumerate(loop.locals):
            item = symbol(context, _local_type(loop, position), f"{key} last item {position}", operands)
            last.names.locals[local] = item
    rounds = Inner(last, iteration=index)
    _round(rounds, loop)
    return rounds


def _is_ending(context: Context, ended: dict[str, Symbolic], ending: RawEnding) -> Term:
    """Return whether the values with which a loop ended the node are those of one ending of its last round."""
    alike = [same(context, value, ending.values[name]) for name, value in ended.items()]
    for name, value in ended.items():
        pairs = zip(components(context, value), components(context, ending.values[name]), strict=True)
        alike += [is_same(one, other) for one, other in pairs]
    return both(ending.guard, *alike)


def _round(rounds: Execution, loop: ir.Loop) -> list[Term]:
    """Evaluate one round, and return all terms that it consists of."""
    inner, context = rounds.evaluator, rounds.context
    parts: list[Term] = []
    for condition in (loop.where, loop.condition):
        if condition is not None:
            holds = inner.truth(condition)
            inner.condition(condition.index, holds)
            inner.alive = both(inner.alive, holds)
            parts.append(holds)
    rounds.block(loop.body)
    if loop.collect is not None:
        parts += components(context, inner.value(loop.collect))
    following = {local: inner.value(value) for local, value in loop.next}
    for each in loop.state:
        parts += components(context, following.get(each.local, inner.names.locals[each.local]))
    inner.names.locals.update(following)
    if loop.stop_when is not None:
        stops = inner.truth(loop.stop_when)
        inner.condition(loop.stop_when.index, stops)
        parts.append(stops)
    return parts


def _request_names(loop: ir.Loop) -> list[str]:
    return [each.name for each in all_statements(loop.body) if isinstance(each, ir.Request | ir.CallNode)]


def _local_type(loop: ir.Loop, position: int) -> Type:
    assert loop.over is not None
    return ir.item_types(loop.over.type)[position]
