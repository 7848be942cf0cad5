"""Masks of a node's values, read from its taint flags (docs/spec/ir.md, Taint).

Audit lines, traces, divergences and messages show only masked values. A sensitive node of a document without flags is
masked as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from vesper.engines.outcome import ContractBroken, DeclaredError, EngineFault, Failed, Outcome, Returned
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements
from vesper.language.ir.taint import NO_FLOW, Flow, Taint, active_sources, join

SENSITIVE = "<sensitive>"
_ITERATION = re.compile(r"\[[0-9]+\]")
_MAX_FLOWS = 4096


class Whole(Protocol):
    """A node with the nodes that it calls, such as a compiled one."""

    @property
    def node(self) -> ir.Node: ...

    @property
    def callees(self) -> Sequence[Whole]: ...


def is_sensitive(compiled: Whole) -> bool:
    """Return whether the node, or one that it calls, declares sensitive inputs or answers."""
    node = compiled.node
    return (
        bool(node.grants.sensitive)
        or any(isinstance(each, ir.Request) and each.sensitive for each in all_statements(node.body))
        or any(map(is_sensitive, compiled.callees))
    )


def sensitive_steps(compiled: Whole) -> tuple[str, ...]:
    """Return the paths of steps with a sensitive answer, also those of called nodes, such as `pay/charge`."""
    called = {each.node.node_id: each for each in compiled.callees}
    found: list[str] = []
    for each in all_statements(compiled.node.body):
        if isinstance(each, ir.Request) and each.sensitive:
            found.append(each.name)
        elif isinstance(each, ir.CallNode):
            found += (f"{each.name}/{inner}" for inner in sensitive_steps(called[each.node]))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class RequestMask:
    """Mask of one request: its arguments, its key and its answer."""

    masks: Masks
    arguments: Mapping[str, Flow]
    key: Flow
    answer: Flow

    def mask_arguments(self, values: Mapping[str, object]) -> dict[str, object]:
        return {name: self.masks.apply(self.arguments.get(name, NO_FLOW), each) for name, each in values.items()}

    def mask_key(self, key: str | None) -> str | None:
        return None if key is None else str(self.masks.apply(self.key, key))

    @property
    def sensitive_answer(self) -> Flow:
        """Return the flow of the sensitive parts of the answer."""
        return self.masks.sensitive_part(self.answer)

    def mask_answer(self, value: object) -> object:
        return self.masks.apply(self.answer, value)

    def mask_message(self, message: str) -> str:
        """Return the text of a failure, which may repeat any part of the request or of its answer."""
        return SENSITIVE if message and self.is_sensitive else message

    @property
    def is_sensitive(self) -> bool:
        """Return whether any part of the request or of its answer is masked."""
        return self.masks.hides(join(*self.arguments.values(), self.key, self.answer))


class Masks:
    """Masks of one node in one context: `tainted` are the inputs that its caller computed from sensitive data."""

    def __init__(self, compiled: Whole, tainted: Iterable[str] = ()) -> None:
        self._compiled = compiled
        self._node = compiled.node
        self._tainted = frozenset(tainted).union(self._node.grants.sensitive)
        taint = self._node.taint
        self.hides_all = taint is None and (is_sensitive(compiled) or bool(self._tainted))
        self._taint = Taint() if taint is None else taint
        self._active = active_sources(self._node, self._taint, self._tainted)
        self._called: dict[str, Masks] = {}
        self._requests: dict[str, RequestMask] = {}
        self._active_flows: dict[int, tuple[Flow, Flow]] = {}
        """Flows by id, each with its sensitive part; a kept flow keeps its id."""
        self._statements: dict[str, ir.Statement] | None = None

    def hides(self, flow: Flow) -> bool:
        """Return whether a value with this flow has a sensitive part."""
        return self.hides_all or bool(flow.sources & self._active)

    def apply(self, flow: Flow, value: object) -> object:
        """Return the value with its sensitive parts masked."""
        if self.hides_all:
            return SENSITIVE
        if not self._active:
            return value
        flow = self._active_part(flow)
        return _masked(flow, value) if flow.sources else value

    def sensitive_part(self, flow: Flow) -> Flow:
        """Return the flow without sources that are not sensitive."""
        return Flow(1) if self.hides_all else self._active_part(flow)

    def _active_part(self, flow: Flow) -> Flow:
        known = self._active_flows.get(id(flow))
        if known is None:
            if len(self._active_flows) >= _MAX_FLOWS:
                self._active_flows.clear()
            known = self._active_flows[id(flow)] = (flow, flow.only(self._active))
        return known[1]

    def inputs(self, values: Mapping[str, object]) -> dict[str, object]:
        """Return the inputs in declared order. A sensitive one is listed even if its default was used."""
        return {
            each.name: SENSITIVE if self.hides_all or each.name in self._tainted else values[each.name]
            for each in self._node.inputs
            if each.name in values or each.name in self._tainted
        }

    def outputs(self, values: Mapping[str, object]) -> dict[str, object]:
        return self._mask_named(self._taint.outputs, values)

    def errors(self, values: Mapping[str, object]) -> dict[str, object]:
        return self._mask_named(self._taint.errors, values)

    def _mask_named(self, flows: Mapping[str, Flow], values: Mapping[str, object]) -> dict[str, object]:
        return {name: self.apply(flows.get(name, NO_FLOW), value) for name, value in values.items()}

    def mark(self, index: int, value: object) -> object:
        """Return the shown value of a marked expression."""
        return self.apply(self._taint.values.get(index, NO_FLOW), value)

    def broken(self, outcome: ContractBroken) -> dict[str, object]:
        """Return the shown values of a broken clause. A value that the clause does not name has all its sources."""
        clause = dict(self._node.phases())[outcome.phase][outcome.index]
        flows = {each.name.lstrip("_"): self._of_ref(each) for each in ir.mentioned_refs(clause)}
        every = Flow(join(*(self._of_ref(each) for each in ir.walk(clause.holds) if isinstance(each, ir.Ref))).sources)
        return {name: self.apply(flows.get(name, every), value) for name, value in outcome.values.items()}

    def named(self, kind: str, name: str, value: object) -> object:
        """Return the shown value of an input, a step, an output or a field of an error."""
        if kind == "input" and name in self._tainted:
            return SENSITIVE
        return self.apply(self._of_name(kind, name), value)

    def _of_ref(self, ref: ir.Ref) -> Flow:
        return self._of_name(ref.kind, ref.name)

    def _of_name(self, kind: str, name: str) -> Flow:
        taint = self._taint
        match kind:
            case "input":
                return Flow(taint.bits((name,)))
            case "step":
                return taint.steps.get(name, NO_FLOW)
            case "output":
                return taint.outputs.get(name, NO_FLOW)
            case "error":
                return taint.errors.get(name, NO_FLOW)
            case _:
                return NO_FLOW

    def outcome(self, outcome: Outcome) -> Outcome:
        """Return the outcome with its sensitive parts masked."""
        match outcome:
            case Returned(value):
                return Returned(self.outputs(value))  # type: ignore[arg-type]  # masks are texts
            case DeclaredError(value):
                return DeclaredError(self.errors(value))  # type: ignore[arg-type]
            case ContractBroken():
                return replace(outcome, values=self.broken(outcome))  # type: ignore[arg-type]
            case Failed(code, at):
                flow = NO_FLOW if at is None else self._taint.failures.get(at, NO_FLOW)
                shown = self.apply(flow, str(code)) if flow.sources else code
                return Failed(shown, at)  # type: ignore[arg-type]  # problems hold inputs
            case EngineFault() if self.is_active:
                return EngineFault(SENSITIVE)  # a message of an exception may hold any value
            case _:
                return outcome

    @property
    def hides_failures(self) -> bool:
        """Return whether the code of a failure may be sensitive, as that of a called node may."""
        return self.hides_all or any(map(self.hides, self._taint.failures.values()))

    @property
    def is_active(self) -> bool:
        """Return whether an execution has any sensitive values."""
        return self.hides_all or bool(self._active)

    def request(self, path: str) -> RequestMask:
        """Return the mask of a request by its path, such as `pay[1]/charge`."""
        name, _, inner = _ITERATION.sub("", path).partition("/")
        if inner:
            return self._call(name).request(inner)
        found = self._requests.get(name)
        if found is None:
            found = self._requests[name] = self._request(name)
        return found

    def _request(self, name: str) -> RequestMask:
        statement = self._statement(name)
        if self.hides_all or not isinstance(statement, ir.Request):
            return RequestMask(self, {}, NO_FLOW, NO_FLOW)
        values = self._taint.values
        return RequestMask(
            self,
            {each: values.get(value.index, NO_FLOW) for each, value in statement.arguments},
            NO_FLOW if statement.key is None else values.get(statement.key.index, NO_FLOW),
            values.get(statement.result.index, NO_FLOW),
        )

    def called(self, path: str) -> Masks:
        """Return the masks of the node called at this path, such as `pay[1]` or `pay[1]/charge`."""
        name, _, inner = _ITERATION.sub("", path).partition("/")
        found = self._call(name)
        return found.called(inner) if inner else found

    def _call(self, name: str) -> Masks:
        """Return the masks of a called node, in the context of the call."""
        if name not in self._called:
            call = self._statement(name)
            assert isinstance(call, ir.CallNode)  # a path with `/` begins with a call
            callee = next(each for each in self._compiled.callees if each.node.node_id == call.node)
            values = self._taint.values
            tainted = [
                each
                for each, value in call.inputs
                if self.hides_all or values.get(value.index, NO_FLOW).sources & self._active
            ]
            self._called[name] = Masks(callee, tainted)
        return self._called[name]

    def _statement(self, name: str) -> ir.Statement | None:
        if self._statements is None:
            self._statements = {
                each.name: each
                for each in all_statements(self._node.body)
                if isinstance(each, ir.Request | ir.CallNode)
            }
        return self._statements.get(name)


def masks_of_versions(*versions: Whole) -> tuple[Masks, ...]:
    """Return the masks of several versions of a node. An input is sensitive if one version declares it so."""
    sensitive = {name for each in versions for name in each.node.grants.sensitive}
    return tuple(Masks(each, sensitive) for each in versions)


def shown_outcome(compiled: Whole, outcome: Outcome) -> Outcome:
    """Return the outcome as logs and messages may show it. It is unchanged if no value of the node is sensitive."""
    node = compiled.node
    if node.taint is not None and not node.grants.sensitive and len(node.taint.sources) == len(node.inputs):
        return outcome
    return Masks(compiled).outcome(outcome)


def _masked(flow: Flow, value: object) -> object:
    """Return a value without its tainted parts: fields of records, alone or in arrays."""
    if flow.whole:
        return SENSITIVE
    if isinstance(value, Mapping):
        fields = dict(flow.fields)
        return {name: _masked(fields[name], each) if name in fields else each for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(flow, each) for each in value]
    return value if value is None else SENSITIVE
