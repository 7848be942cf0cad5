"""Taint flags: which inputs and sensitive answers each value is computed from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.nodes import worked_nodes
from vesper.compiler import Compiled, compile_file, compile_source
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir.decode import decode
from vesper.language.ir.encode import encode, semantic_hash
from vesper.language.ir.taint import Flow, Taint


def compiled_text(text: str) -> Compiled:
    compiled, bag = compile_source(SourceFile("test.vsp", text))
    assert compiled is not None, [each.headline for each in bag.sorted()]
    return compiled


def flows_of(taint: Taint, flow: Flow) -> object:
    """Return a flow with names for bits: the sources as text, or a mapping of fields."""
    names = " ".join(name for place, name in enumerate(taint.sources) if flow.whole >> place & 1)
    fields = {name: flows_of(taint, each) for name, each in flow.fields}
    return {"": names, **fields} if names and fields else fields or names


def outputs(steps: str, values: str, inputs: str = "", extra: str = "") -> dict[str, object]:
    """Return the sources of each output of a function, by name."""
    names = [each.partition(":")[0] for each in values.split("; ")]
    types = {each.partition(":")[0]: each.partition(":")[2].partition("=")[0].strip() for each in values.split("; ")}
    given = {each.partition(":")[0]: each.partition("=")[2].strip() for each in values.split("; ")}
    text = (
        "node_id: test_v1\ntype: function\nintent: Test\n"
        "types:\n  Person:\n    fields: {pin: string, city: string}\n  Pair:\n    fields: {a: integer, b: integer}\n"
        "inputs:\n  a: integer\n  b: integer\n  c: boolean\n  s: string\n  person: Person\n  people: array<Person>\n"
        f"  numbers: array<integer>\n  table: map<string, integer>\n{inputs}"
        "outputs:\n  success:\n" + "".join(f"    {name}: {types[name]}\n" for name in names) + "flow:\n" + steps
        + "  - operation: return\n    success:\n"
        + "".join(f'      {name}: "{given[name]}"\n' for name in names) + extra
    )  # fmt: skip
    taint = compiled_text(text).node.taint
    assert taint is not None
    return {name: flows_of(taint, taint.outputs.get(name, Flow())) for name in names}


@pytest.mark.parametrize(
    "type_, value, expected",
    [
        ("integer", "1", ""),
        ("integer", "a + b * 2", "a b"),
        ("integer", "IF c THEN a ELSE 1", "a"),  # the condition belongs to the path
        ("boolean", "c AND a > 1", "a c"),
        ("string", "'PIN ' + s", "s"),
        ("string", "person.pin", "person"),
        ("integer", "LET x = a IN x + x", "a"),
        ("integer", "length(numbers)", "numbers"),
        ("integer", "table['x']", "table"),
        ("array<integer>", "[n + a FOR n IN numbers]", "a numbers"),
        ("array<integer>", "[1 FOR n IN numbers]", "numbers"),  # the length shows
        ("array<integer>", "[n FOR n IN [1, 2] WHERE n < a]", ""),
        ("integer", "SUM(n * a FOR n IN [1, 2])", "a"),
        ("boolean", "EXISTS n IN [1, 2]: n == a", "a"),
        ("integer", "numbers[0]", "numbers"),
        ("integer", "max(a, b)", "a b"),
    ],
)
def test_expressions(type_: str, value: str, expected: str) -> None:
    assert outputs("", f"out:{type_} = {value}") == {"out": expected}


def test_records_are_followed_by_field() -> None:
    steps = (
        "  - {step: both, operation: compute, type: Pair, value: {a: a, b: '2'}}\n"
        "  - {step: list, operation: compute, value: '[both, both]'}\n"
        "  - {step: second, operation: compute, value: '[x.b FOR x IN list]'}\n"
    )
    found = outputs(
        steps, "pair:Pair = both; pairs:array<Pair> = list; b:array<integer> = second; a:integer = list[0].a"
    )
    assert found == {"pair": {"a": "a"}, "pairs": {"a": "a"}, "b": "", "a": "a"}


def test_sorting_by_a_sensitive_key_orders_the_whole() -> None:
    steps = (
        "  - {step: pairs, operation: compute, type: array<Pair>, value: '[{a: a, b: 1}, {a: b, b: 2}]'}\n"
        "  - {step: ordered, operation: compute, value: 'sort_by(p.a FOR p IN pairs)'}\n"
        "  - {step: plain, operation: compute, value: 'reverse(pairs)'}\n"
    )
    found = outputs(steps, "x:integer = ordered[0].b; y:integer = plain[0].b")
    assert found == {"x": "a b", "y": ""}


def test_branches_and_loops() -> None:
    steps = (
        "  - {step: chosen, operation: conditional, condition: c, then: a, else: '7'}\n"
        "  - step: summed\n    operation: loop\n    over: n IN [1, 2, 3]\n"
        "    state: {total: '0', other: '0', count: '0'}\n"
        "    next: {total: total + other, other: other + b, count: count + n}\n"
        "  - step: counted\n    operation: loop\n    over: n IN numbers\n    state: {count: '0'}\n"
        "    next: {count: count + 1}\n"
    )
    found = outputs(
        steps,
        "x:integer = chosen; t:integer = summed.total; o:integer = summed.other; n:integer = summed.count; "
        "rounds:integer = counted.count",
    )
    assert found == {"x": "a", "t": "b", "o": "b", "n": "", "rounds": "numbers"}


def test_a_release_ends_a_flow_where_it_stands() -> None:
    steps = "  - {step: band, operation: compute, value: a * 2}\n"
    extra = "security:\n  declassify: {band: bands are public, y: reviewed}\n"
    found = outputs(steps, "x:integer = band + 1; y:integer = a; z:integer = a + band", extra=extra)
    assert found == {"x": "", "y": "", "z": "a"}


@pytest.mark.parametrize("path", worked_nodes(), ids=lambda path: path.stem)
def test_flags_survive_the_document_and_leave_the_hash_alone(path: Path) -> None:
    compiled, _ = compile_file(path)
    assert compiled is not None
    again = decode(compiled.ir)
    assert again.taint == compiled.node.taint
    assert encode(again) == compiled.ir
    without = compiled.ir[: compiled.ir.rindex(b',"taint":')] + b"}"
    assert decode(without).taint is None
    assert semantic_hash(decode(without)) == compiled.semantic_hash
