"""Taint flags of a node: the sources of each value (docs/spec/ir.md, Taint).

A source is an input, or a request or call whose answer is sensitive. Flags hold sources instead of a yes or no, so
that a caller's inputs decide about a called node's values without a second analysis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vesper.language.ir.nodes import Node


@dataclass(frozen=True, slots=True)
class Flow:
    """Sources of a value as bits, and further sources of single fields of its records.

    Arrays and optionals are transparent: the fields are those of the records inside.
    """

    whole: int = 0
    fields: tuple[tuple[str, Flow], ...] = ()
    """INVARIANT: sorted by name, each with sources, none of which is in `whole`."""

    @property
    def sources(self) -> int:
        """Return the sources of the value and of all its fields."""
        found = self.whole
        for _, each in self.fields:
            found |= each.sources
        return found

    def field(self, name: str) -> Flow:
        """Return the flow of one field of the record."""
        own = next((each for known, each in self.fields if known == name), NO_FLOW)
        return own if not self.whole else join(Flow(self.whole), own)

    def without(self, sources: int) -> Flow:
        """Return the flow without these sources."""
        if not self.sources & sources:
            return self
        return _flow(self.whole & ~sources, {name: each.without(sources) for name, each in self.fields})

    def only(self, sources: int) -> Flow:
        """Return the flow with no other than these sources."""
        return self.without(self.sources & ~sources)


NO_FLOW = Flow()


def _flow(whole: int, fields: Mapping[str, Flow]) -> Flow:
    kept = ((name, fields[name].without(whole)) for name in sorted(fields))
    return Flow(whole, tuple((name, each) for name, each in kept if each.sources))


def join(*flows: Flow) -> Flow:
    """Return the flow of a value that has any of these flows."""
    known = [each for each in flows if each is not NO_FLOW]
    if not known:
        return NO_FLOW
    whole = 0
    fields: dict[str, Flow] = {}
    for each in known:
        whole |= each.whole
        for name, inner in each.fields:
            fields[name] = join(fields[name], inner) if name in fields else inner
    return _flow(whole, fields) if fields else Flow(whole)


def record_flow(fields: Iterable[tuple[str, Flow]]) -> Flow:
    """Return the flow of a record of these fields."""
    return _flow(0, dict(fields))


@dataclass(frozen=True, slots=True)
class Taint:
    """Flags of a node. A name or an index without an entry has no source."""

    sources: tuple[str, ...] = ()
    """Names of inputs, and of requests and calls with sensitive answers; bit n stands for the n-th."""
    steps: Mapping[str, Flow] = field(default_factory=dict)
    outputs: Mapping[str, Flow] = field(default_factory=dict)
    errors: Mapping[str, Flow] = field(default_factory=dict)
    values: Mapping[int, Flow] = field(default_factory=dict)
    """By index of expression: values of steps, arms, loops and handlers, arguments, keys, inputs of calls, results."""
    failures: Mapping[int, Flow] = field(default_factory=dict)
    """By index of a call's result: the code that the called node fails with."""

    def bits(self, names: Iterable[str]) -> int:
        """Return the bits of these sources. Other names have no bit."""
        wanted = set(names)
        return sum(1 << place for place, name in enumerate(self.sources) if name in wanted)


def active_sources(node: Node, taint: Taint, tainted: Iterable[str] = ()) -> int:
    """Return the sources that are sensitive in an execution. `tainted` are the inputs that a caller taints."""
    clear = {each.name for each in node.inputs}.difference(node.grants.sensitive, tainted)
    return taint.bits(name for name in taint.sources if name not in clear)


def hides_error_code(node: Node) -> bool:
    """Return whether the code of the node's declared errors is sensitive."""
    if node.taint is None:
        return bool(node.grants.sensitive)
    flow = node.taint.errors.get("error_code", NO_FLOW)
    return bool(flow.sources & active_sources(node, node.taint))


# -- JSON -----------------------------------------------------------------------------------------


def taint_to_json(taint: Taint) -> dict[str, Any]:
    return {
        "sources": list(taint.sources),
        "steps": {name: _flow_to_json(each) for name, each in taint.steps.items()},
        "outputs": {name: _flow_to_json(each) for name, each in taint.outputs.items()},
        "errors": {name: _flow_to_json(each) for name, each in taint.errors.items()},
        "values": _at_to_json(taint.values),
        "failures": _at_to_json(taint.failures),
    }


def taint_from_json(form: Mapping[str, Any]) -> Taint:
    return Taint(
        tuple(form["sources"]),
        {name: _flow_from_json(each) for name, each in form["steps"].items()},
        {name: _flow_from_json(each) for name, each in form["outputs"].items()},
        {name: _flow_from_json(each) for name, each in form["errors"].items()},
        {each["at"]: _flow_from_json(each["flow"]) for each in form["values"]},
        {each["at"]: _flow_from_json(each["flow"]) for each in form["failures"]},
    )


def _at_to_json(flows: Mapping[int, Flow]) -> list[dict[str, Any]]:
    return [{"at": index, "flow": _flow_to_json(flows[index])} for index in sorted(flows)]


def _flow_to_json(flow: Flow) -> dict[str, Any]:
    form: dict[str, Any] = {"from": format(flow.whole, "x")} if flow.whole else {}
    return form | ({"fields": {name: _flow_to_json(each) for name, each in flow.fields}} if flow.fields else {})


def _flow_from_json(form: Mapping[str, Any]) -> Flow:
    fields = form.get("fields", {})
    return Flow(int(form.get("from", "0"), 16), tuple((name, _flow_from_json(fields[name])) for name in sorted(fields)))
