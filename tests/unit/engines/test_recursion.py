"""Recursive functions on both engines: depth, fuel, memory, marks, handlers, and documents that are refused."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import cache

import pytest

from tests.support.nodes import compiled_text
from vesper.compiler import Compiled
from vesper.engines.compare import Agree, compare
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.engine import Done, Limits
from vesper.engines.outcome import Failed, LimitHit, Outcome, Returned
from vesper.engines.python_engine import PythonEngine
from vesper.language.ir.decode import decode
from vesper.language.ir.encode import canonical_json, encode
from vesper.values.generated.errors import ErrorCode

_NODE = """
node_id: test_v1
type: function
intent: Test
inputs: {{n: integer}}
outputs: {{success: {{r: {returns}}}}}
functions:
{functions}
flow:
  - {{step: r, operation: compute, value: "{value}"{more}}}
  - {{operation: return, success: [r]}}
"""


@cache
def _node(functions: str, value: str, returns: str = "integer", more: str = "") -> Compiled:
    indented = "\n".join(f"  {line}" for line in functions.splitlines())
    return compiled_text(_NODE.format(functions=indented, value=value, returns=returns, more=more))


def _run(node: Compiled, n: int, limits: Limits | None = None) -> Outcome:
    """Return the outcome on which every engine, traced and not, agrees."""
    traced: list[Done] = []
    for engine in (PythonEngine(), DirectEngine()):
        program = engine.load(node)
        step = program.start({"n": n}, limits=limits).advance(())
        assert isinstance(step, Done)
        assert program.call({"n": n}, limits=limits) == step.outcome
        traced.append(step)
    assert compare(*traced) == Agree()
    return traced[0].outcome


def _function(name: str, value: str, max_depth: int, returns: str = "integer") -> str:
    return f'{name}: {{params: {{n: integer}}, returns: {returns}, max_depth: {max_depth}, value: "{value}"}}'


_DOWN = _function("down", "IF n == 0 THEN 0 ELSE 1 + down(n - 1)", 50)


def test_a_call_at_the_limit_returns_and_a_deeper_one_fails() -> None:
    node = _node(_DOWN, "down(n)")
    assert _run(node, 49) == Returned({"r": 49})
    found = _run(node, 50)
    assert isinstance(found, Failed)
    assert found.code is ErrorCode.RECURSION_LIMIT
    assert found.at is not None
    assert node.node.expressions()[found.at].place.line == 8


def test_functions_that_call_each_other_share_one_depth() -> None:
    both = "\n".join(
        _function(name, f"IF n == 0 THEN {end} ELSE {other}(n - 1)", depth, "boolean")
        for name, other, end, depth in (("even", "odd", "true", 10), ("odd", "even", "false", 5))
    )
    node = _node(both, "even(n)", "boolean")
    assert _run(node, 4) == Returned({"r": True})
    assert isinstance(_run(node, 5), Failed)


def test_a_function_of_another_group_starts_at_one() -> None:
    outer = _function("outer", "down(n) + (IF n == 0 THEN 0 ELSE outer(n - 1))", 50)
    assert _run(_node(f"{_DOWN}\n{outer}", "outer(n)"), 49) == Returned({"r": 49 * 25})


def test_a_handler_catches_the_limit() -> None:
    more = ", on_error: {recursion_limit: {value: -1}}"
    assert _run(_node(_DOWN, "down(n)", more=more), 1000) == Returned({"r": -1})


def test_names_and_loops_of_outer_calls_are_kept() -> None:
    value = (
        "IF n == 0 THEN [0] ELSE LET a = n * 10 IN flatten([append(paths(m), a + m) FOR m IN range(0, n) WHERE m != 1])"
    )
    node = _node(_function("paths", value, 10, "array<integer>"), "paths(n)", "array<integer>")

    def paths(n: int) -> list[int]:
        return [0] if n == 0 else [x for m in range(n) if m != 1 for x in (*paths(m), n * 10 + m)]

    assert _run(node, 6) == Returned({"r": paths(6)})  # type: ignore[dict-item]


def test_the_deepest_recursion_leaves_the_limit_of_python_as_it_was() -> None:
    before = sys.getrecursionlimit()
    loops = _function("loops", "IF n == 0 THEN 0 ELSE SUM(1 + loops(n - 1) FOR i IN [n])", 1000)
    assert _run(_node(loops, "loops(n)"), 999) == Returned({"r": 999})
    assert sys.getrecursionlimit() == before


def test_engines_spend_the_same_fuel() -> None:
    value = "IF n <= 0 THEN 1 ELSE tree(n - 1) + SUM(tree(n - i) FOR i IN [2, 3] WHERE i <= n)"
    node = _node(_function("tree", value, 20), "tree(n)")

    def spent(n: int) -> int:
        return 1 if n <= 0 else 3 + spent(n - 1) + sum(spent(n - i) for i in (2, 3) if i <= n)

    assert _run(node, 4, Limits(fuel=spent(4))) == Returned({"r": 7})
    for fuel in range(spent(4)):
        assert _run(node, 4, Limits(fuel=fuel)) == LimitHit("fuel")


def test_one_unit_for_each_call() -> None:
    node = _node(_DOWN, "down(n)")
    assert _run(node, 9, Limits(fuel=10)) == Returned({"r": 9})
    assert _run(node, 9, Limits(fuel=9)) == LimitHit("fuel")


@pytest.mark.parametrize("memory", [500, 1000, 2000, 4000, 8000, 16_000, 64_000])
@pytest.mark.parametrize(
    "value, returns",
    [
        ("IF n == 0 THEN '' ELSE grow(n - 1) + 'ab'", "string"),
        ("IF n == 0 THEN [] ELSE append(grow(n - 1), text(n))", "array<string>"),
        ("IF n == 0 THEN ['x'] ELSE flatten([grow(n - i) FOR i IN [1, 2] WHERE i <= n])", "array<string>"),
        ("IF n == 0 THEN [] ELSE [first(grow(n - 1)) ?? 'none', 'b']", "array<string>"),
    ],
)
def test_engines_take_the_same_memory(value: str, returns: str, memory: int) -> None:
    _run(_node(_function("grow", value, 50, returns), "grow(n)", returns), 9, Limits(memory=memory))


def test_each_call_pays_for_what_it_made() -> None:
    # Eleven strings, the empty one included: 56 bytes each and 0, 2, … 20 code points.
    node = _node(_function("grow", "IF n == 0 THEN '' ELSE grow(n - 1) + 'ab'", 50, "string"), "grow(n)", "string")
    taken = 11 * 56 + sum(range(2, 21, 2))
    assert _run(node, 10, Limits(memory=taken)) == Returned({"r": "ab" * 10})
    assert _run(node, 10, Limits(memory=taken - 1)) == LimitHit("memory")


def test_a_node_without_recursive_functions_has_no_section_for_them() -> None:
    assert b'"functions"' not in _node("one: {returns: integer, value: 1}", "one() + n").ir


def test_the_document_is_read_back() -> None:
    node = _node(_DOWN, "down(n)")
    assert encode(decode(node.ir)) == node.ir
    assert decode(node.ir).functions == node.node.functions


@pytest.mark.parametrize(
    "place, value, message",
    [
        (("functions", 0, "max_depth"), 0, "`max_depth` is 1 to 1000, not 0"),
        (("functions", 0, "max_depth"), 1001, "`max_depth` is 1 to 1000, not 1001"),
        (("functions", 0, "name"), "other", "no function is named `down`"),
        (("functions", 0, "returns"), "string", "wants integer as its"),
        (("functions", 0, "params"), [], "the source names 1 locals, but 0 are introduced"),
        (("functions", 0, "extra"), 1, "extra"),
        (("functions",), [], "`functions` is empty"),
    ],
)
def test_a_malformed_function_is_refused_by_name(place: tuple[str | int, ...], value: object, message: str) -> None:
    node = _node(_DOWN, "down(n)")
    document = json.loads(node.ir)
    part = document["semantics"]
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    with pytest.raises(Exception, match=message):
        DirectEngine().load(replace(node, ir=canonical_json(document)))


def test_a_function_reads_no_input() -> None:
    node = _node(_DOWN, "down(n)")
    document = json.loads(node.ir)
    table = document["semantics"]["expressions"]
    table[table.index({"local": 0})] = {"input": "n"}
    with pytest.raises(Exception, match="input `n` cannot be referred to in a function"):
        DirectEngine().load(replace(node, ir=canonical_json(document)))


def test_too_many_active_calls_are_refused_by_both() -> None:
    node = _node(
        "\n".join(_function(f"f{i}", f"IF n == 0 THEN 0 ELSE f{i}(n - 1)", 900) for i in range(2)), "f0(n)+f1(n)"
    )
    document = json.loads(node.ir)
    for function in document["semantics"]["functions"]:
        function["max_depth"] = 1000
    DirectEngine().load(replace(node, ir=canonical_json(document)))
    functions = "\n".join(_function(f"f{i}", f"IF n == 0 THEN 0 ELSE f{i}(n - 1)", 700) for i in range(3))
    with pytest.raises(AssertionError, match="more than 2,000 levels of active calls"):
        _node(functions, "f0(n) + f1(n) + f2(n)")


@pytest.mark.parametrize("depth", [0, 1001, -1])
def test_max_depth_is_a_number_from_one_to_a_thousand(depth: int) -> None:
    with pytest.raises(AssertionError, match="a number from 1 to 1,000"):
        _node(_DOWN.replace("max_depth: 50", f"max_depth: {depth}"), "down(n)")
