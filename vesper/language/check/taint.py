"""Taint of a checked node: which inputs and sensitive answers each value is computed from.

Explicit flows count: operands, selected values, orders and lengths of collections. The condition that selects a branch
does not count; it belongs to the path. Records are followed field by field, other collections as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from vesper.language.check.callees import Interface
from vesper.language.ir import nodes as ir
from vesper.language.ir.failures import can_become_declared
from vesper.language.ir.statements import all_statements, handlers_of
from vesper.language.ir.taint import NO_FLOW, Flow, Taint, join, record_flow
from vesper.values.types import ArrayOf, OptionalOf, Record, Type

_Key = TypeVar("_Key", str, int)
_ITEM_OPERATIONS = frozenset(
    ("array.at", "array.get", "array.first", "array.last", "array.take", "array.drop", "array.slice", "array.append",
     "array.concat", "array.replace_at", "array.flatten", "array.reverse", "array.chunks", "optional.some",
     "optional.unwrap", "optional.require", "optional.in_force")
)  # fmt: skip
"""Operations that hand items on without reading them: flows of fields pass through."""
_WITHIN_ITEMS = frozenset(("sort_by", "distinct_by", "min_by", "max_by", "take_while", "drop_while"))
"""Kinds of `for` whose result consists of items, selected or ordered by a value."""


class TaintAnalysis:
    """Computes the flags of a numbered node. `called` has the nodes that it calls, by id."""

    def __init__(self, node: ir.Node, called: Mapping[str, Interface]) -> None:
        self._node = node
        self._called = called
        answering = (each for each in all_statements(node.body) if isinstance(each, ir.Request | ir.CallNode))
        sensitive = (each.name for each in answering if self._is_source(each))
        self._names = (*(each.name for each in node.inputs), *sensitive)
        self._bits = {name: 1 << place for place, name in enumerate(self._names)}
        self._released = {name for name, _ in node.grants.declassified}
        self.effective: set[str] = set()
        """Releases of values that have a source."""
        self._locals: dict[int, Flow] = {}
        self._steps: dict[str, Flow] = {}
        self._outputs: dict[str, Flow] = {}
        self._errors: dict[str, Flow] = {}
        self._values: dict[int, Flow] = {}
        self._failures: dict[int, Flow] = {}

    def run(self) -> Taint:
        """Return the flags."""
        self._block(self._node.body)
        self._errors_of_failures()
        return Taint(
            self._names,
            _with_sources(self._steps),
            _with_sources(self._outputs),
            _with_sources(self._errors),
            _with_sources(self._values),
            _with_sources(self._failures),
        )

    def _is_source(self, statement: ir.Request | ir.CallNode) -> bool:
        """Return whether an answer can be sensitive regardless of what the request or call contains."""
        if isinstance(statement, ir.Request):
            return statement.sensitive is not False
        called = self._called[statement.node]
        return bool(called.sensitive) or len(called.taint.sources) > len(called.inputs)

    def _errors_of_failures(self) -> None:
        """Add the codes of called nodes to the declared error that unhandled failures become."""
        codes = join(*self._failures.values())
        if codes.sources and can_become_declared(self._node):
            for name in ("error_code", "message"):
                if any(each.name == name for each in self._node.errors):
                    self._add(self._errors, name, codes, f"error.{name}")

    def _add(self, flows: dict[str, Flow], name: str, flow: Flow, released_as: str) -> None:
        flows[name] = join(flows.get(name, NO_FLOW), self._release(released_as, flow))

    def _release(self, name: str, flow: Flow) -> Flow:
        """Return the flow, or none where the author released the value."""
        if name not in self._released or not flow.sources:
            return flow
        self.effective.add(name)
        return NO_FLOW

    # -- statements -------------------------------------------------------------------------------

    def _block(self, block: ir.Block) -> None:
        for statement in block:
            self._statement(statement)

    def _statement(self, statement: ir.Statement) -> None:
        flow: Flow
        match statement:
            case ir.Return(values):
                for name, value in values:
                    self._add(self._outputs, name, self._flow(value), name)
                return
            case ir.Raise(values):
                for name, value in values:
                    self._add(self._errors, name, self._flow(value), f"error.{name}")
                return
            case ir.Require():
                return
            case ir.Step(value=value):
                flow = self._mark(value, statement.name)
            case ir.Branch():
                flow = self._branch(statement)
            case ir.Loop():
                flow = self._loop(statement)
            case ir.Request():
                flow = self._request(statement)
            case ir.Parallel(members=members):
                for member in members:
                    self._block(member)
                flow = NO_FLOW
            case _:
                flow = self._call(statement)
        for handler in handlers_of(statement):
            self._block(handler.body)
            if handler.value is not None:
                flow = join(flow, self._mark(handler.value, statement.name))
        self._steps[statement.name] = flow

    def _mark(self, value: ir.Expression, step: str | None = None) -> Flow:
        """Record the flow of a value under its index, and return it. A released step has no flow."""
        return self._note(value.index, self._flow(value), step)

    def _note(self, index: int, flow: Flow, step: str | None) -> Flow:
        if step is not None:  # the value of a skippable step `x` is named `_x`
            flow = self._release(step.lstrip("_"), flow)
        self._values[index] = flow
        return flow

    def _branch(self, branch: ir.Branch) -> Flow:
        flow = NO_FLOW
        for arm in branch.arms:
            self._block(arm.body)
            if arm.value is not None:
                flow = join(flow, self._mark(arm.value, branch.name))
        self._block(branch.otherwise)
        if branch.otherwise_value is not None:
            flow = join(flow, self._mark(branch.otherwise_value, branch.name))
        return flow

    def _loop(self, loop: ir.Loop) -> Flow:
        over = NO_FLOW if loop.over is None else self._flow(loop.over)
        self._bind_items(loop.locals, over)
        state = {each.local: self._flow(each.value) for each in loop.state}
        while True:
            self._locals |= state
            self._block(loop.body)
            after = {local: join(state[local], self._mark(value, loop.name)) for local, value in loop.next}
            if all(state[local] == flow for local, flow in after.items()):
                break
            state |= after
        # The number of rounds shows in what they collect and count.
        rounds = Flow(over.whole)
        fields = [(each.name, join(state[each.local], rounds)) for each in loop.state]
        if loop.collect is not None:
            fields.append(("collected", join(self._mark(loop.collect, loop.name), rounds)))
        return self._release(loop.name.lstrip("_"), record_flow(fields))

    def _request(self, request: ir.Request) -> Flow:
        if request.key is not None:
            self._mark(request.key)
        for _, value in request.arguments:
            self._mark(value)
        answer = Flow(self._bits.get(request.name, 0))
        if request.sensitive is not True:
            answer = record_flow((name, answer) for name in request.sensitive or ())
        return self._note(request.result.index, answer, request.name)

    def _call(self, call: ir.CallNode) -> Flow:
        given = {name: self._mark(value).sources for name, value in call.inputs}
        called = self._called[call.node]
        own = self._bits.get(call.name, 0)
        inputs = {name for name, _, _ in called.inputs}
        # A source of the called node is an input of it, or an answer that it calls sensitive.
        by_source = [
            given.get(name, 0) | (own if name in called.sensitive or name not in inputs else 0)
            for name in called.taint.sources
        ]
        codes = (called.taint.errors.get("error_code", NO_FLOW), *called.taint.failures.values())
        self._failures[call.result.index] = Flow(join(*(_renumber(each, by_source) for each in codes)).sources)
        outputs = called.taint.outputs.items()
        result = record_flow((name, _renumber(each, by_source)) for name, each in outputs)
        return self._note(call.result.index, result, call.name)

    # -- expressions ------------------------------------------------------------------------------

    def _flow(self, expression: ir.Expression) -> Flow:
        match expression:
            case ir.Ref(kind="input", name=name):
                return Flow(self._bits[name])
            case ir.Ref(kind="step", name=name):
                return self._steps.get(name, NO_FLOW)
            case ir.Local(number=number):
                return self._locals[number]
            case ir.Call(op=op, args=args):
                return self._operation(op, [self._flow(each) for each in args], expression)
            case ir.Apply(args=args):  # a function reads its parameters and constants only
                return Flow(join(*(self._flow(each) for each in args)).sources)
            case ir.If(then=then, otherwise=otherwise):
                return join(self._flow(then), self._flow(otherwise))
            case ir.Logical(left=left, right=right):
                return Flow(join(self._flow(left), self._flow(right)).sources)
            case ir.Let(local=local, value=value, body=body):
                self._locals[local] = self._flow(value)
                return self._flow(body)
            case ir.For():
                return self._for(expression)
            case ir.Array(items=items):
                return join(*(self._flow(each) for each in items))
            case ir.RecordValue(fields=fields):
                return record_flow((name, self._flow(each)) for name, each in fields)
            case ir.Field(of=of, name=name):
                return self._flow(of).field(name)
            case _:  # a literal, a constant, the clock
                return NO_FLOW

    def _operation(self, op: str, args: list[Flow], call: ir.Call) -> Flow:
        if op not in _ITEM_OPERATIONS:
            return Flow(join(*args).sources)
        kept = [
            flow if _has_fields(each.type) else Flow(flow.sources) for each, flow in zip(call.args, args, strict=True)
        ]
        return join(*kept)

    def _for(self, each: ir.For) -> Flow:
        over = self._flow(each.over)
        with_ = NO_FLOW if each.with_ is None else self._flow(each.with_)
        # How many items there are shows in every result.
        count = Flow(over.whole)
        if each.kind == "fold":
            return join(self._fold(each, over, with_), count)
        self._bind_items(each.locals, over)
        value = self._flow(each.value)
        match each.kind:
            case "array":
                return join(value, count)
            case "count":
                return count
            case kind if kind in _WITHIN_ITEMS:
                return join(over, Flow(value.sources | with_.sources))
            case "group_by" | "index_by":
                return Flow(over.sources | value.sources)
            case _:
                key = NO_FLOW if each.key is None else self._flow(each.key)
                return Flow(over.whole | value.sources | key.sources)

    def _fold(self, each: ir.For, over: Flow, start: Flow) -> Flow:
        *items, state = each.locals
        self._bind_items(tuple(items), over)
        flow = start
        while True:
            self._locals[state] = flow
            after = join(flow, self._flow(each.value))
            if after == flow:
                return flow
            flow = after

    def _bind_items(self, locals_: tuple[int, ...], over: Flow) -> None:
        for local in locals_:
            self._locals[local] = over


def _with_sources(flows: dict[_Key, Flow]) -> dict[_Key, Flow]:
    return {key: flow for key, flow in flows.items() if flow.sources}


def _has_fields(type_: Type) -> bool:
    """Return whether flows of single fields can exist: records, alone or in arrays and optionals."""
    match type_:
        case Record():
            return True
        case ArrayOf(inner) | OptionalOf(inner):
            return _has_fields(inner)
        case _:
            return False


def _renumber(flow: Flow, by_source: list[int]) -> Flow:
    """Return a flow of a called node, with the sources of its caller."""
    whole = 0
    for place, bits in enumerate(by_source):
        if flow.whole >> place & 1:
            whole |= bits
    return join(Flow(whole), record_flow((name, _renumber(each, by_source)) for name, each in flow.fields))
