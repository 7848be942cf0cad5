"""Functions of a node: inlining of calls and its limits."""

from __future__ import annotations

import pytest

from tests.support.nodes import compiled_text
from tests.support.waiting import processor_seconds
from vesper.compiler import compile_source
from vesper.engines.outcome import ContractBroken, Failed, Returned
from vesper.engines.registry import ENGINES
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir import nodes as ir
from vesper.values.generated.errors import ErrorCode


def node(functions: str, value: str, inputs: str = "n: integer", returns: str = "integer", rest: str = "") -> str:
    return "\n".join(
        [
            "node_id: test_v1",
            "type: function",
            "intent: Test",
            "inputs:",
            *(f"  {line}" for line in inputs.splitlines()),
            f"outputs: {{success: {{r: {returns}}}}}",
            *(["functions:"] if functions else []),
            *(f"  {line}" for line in functions.splitlines()),
            "flow:",
            f"  - {{step: r, operation: compute, value: '{value}'}}",
            "  - {operation: return, success: [r]}",
            rest,
            "",
        ]
    )


def codes(text: str) -> list[str]:
    _, bag = compile_source(SourceFile("test.vsp", text))
    return [each.code.title for each in bag.sorted() if "the input" not in each.headline]  # some are idle


TWICE = "twice: {params: {x: integer}, returns: integer, value: x + x}"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "functions, value, expected",
    [
        (TWICE, "twice(n) + 1", 15),
        (TWICE, "twice(twice(n))", 28),
        (f"{TWICE}\nfour: {{params: {{x: integer}}, returns: integer, value: twice(twice(x))}}", "four(n)", 28),
        ("less: {params: {a: integer, b: integer}, returns: integer, value: a - b}", "less(n, less(n, 3))", 3),
        ("seven: {returns: integer, value: 7}", "seven() + n", 14),
        ("total: {params: {xs: array<integer>}, returns: integer, value: sum(xs)}", "total(x * n FOR x IN [1, 2])", 21),
        ("first: {params: {x: integer}, returns: integer, value: x}", "first(n)", 7),
        (TWICE, "SUM(twice(x) FOR x IN [1, n])", 16),
    ],
)
def test_call_returns_the_value_of_the_function(functions: str, value: str, expected: int, engine: str) -> None:
    outcome = ENGINES[engine].load(compiled_text(node(functions, value))).call({"n": 7})
    assert outcome == Returned({"r": expected})


@pytest.mark.parametrize("engine", ENGINES)
def test_arguments_are_evaluated_once_left_to_right_before_the_value(engine: str) -> None:
    text = node(
        "second: {params: {a: integer, b: integer}, returns: integer, value: b}",
        "second(quot(1, n), n * 9223372036854775807)",
    )
    program = ENGINES[engine].load(compiled_text(text))
    outcome = program.call({"n": 0})
    assert isinstance(outcome, Failed)
    assert outcome.code == ErrorCode.DIVISION_BY_ZERO, "the first argument, though nothing uses it"
    outcome = program.call({"n": 2})
    assert isinstance(outcome, Failed)
    assert outcome.code == ErrorCode.INTEGER_OVERFLOW


def test_call_becomes_let_in_the_ir() -> None:
    compiled = compiled_text(node(TWICE, "twice(n + 1)"))
    step = compiled.node.body[0]
    assert isinstance(step, ir.Step)
    assert isinstance(step.value, ir.Let)
    assert [part.op for part in compiled.node.expressions() if isinstance(part, ir.Call)] == ["integer.add"] * 2


@pytest.mark.parametrize(
    "functions, value, expected",
    [
        ("f: {params: {x: integer}, returns: integer, value: n + x}", "f(n)", ["unknown-name"]),
        ("f: {params: {x: integer}, returns: integer, value: f(x)}", "f(n)", ["function-order"]),
        ("f: {returns: integer, value: g()}\ng: {returns: integer, value: 1}", "f() + g()", ["function-order"]),
        (TWICE, "twice()", ["function-arguments"]),
        (TWICE, "twice(true)", ["type-mismatch"]),
        (TWICE, "n", ["unused-value"]),
        ("abs: {params: {x: integer}, returns: integer, value: x}", "abs(n)", ["hidden-function"]),
        ("f: {params: {x: Money}, returns: integer, value: 1}", "f(n)", ["unknown-type"]),
        ("f: {params: {x: integer}, value: 1}", "n", ["missing-key"]),
        ("f: {params: {x: integer}, returns: integer, value: x, pure: true}", "f(n)", ["unknown-key"]),
        ("", "twice(n)", ["unknown-name"]),
    ],
)
def test_each_error_is_reported_once(functions: str, value: str, expected: list[str]) -> None:
    assert codes(node(functions, value)) == expected


@pytest.mark.parametrize("calls", [2, 8])
def test_exponential_inlining_is_reported_quickly(calls: int) -> None:
    lines = ["f0: {params: {x: integer}, returns: integer, value: x + 1}"]
    for number in range(1, 60):
        value = " + ".join([f"f{number - 1}(x)"] * calls)
        lines.append(f"f{number}: {{params: {{x: integer}}, returns: integer, value: {value}}}")
    with processor_seconds(5):
        assert codes(node("\n".join(lines), "f59(n)")) == ["too-large"]


def test_nested_functions_stay_within_the_depth_of_engines() -> None:
    lines = ["f0: {params: {x: integer}, returns: integer, value: x + 1}"]
    for number in range(1, 100):
        value = "1 + (" * 20 + f"f{number - 1}(x)" + ")" * 20
        lines.append(f"f{number}: {{params: {{x: integer}}, returns: integer, value: {value}}}")
    assert codes(node("\n".join(lines), "f99(n)"))[0] in ("too-deep", "too-large")


NAMED = 'types:\n  Quantity: {type: integer, constraints: [positive, {max: 1000}, "value != 13"]}\n'


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "type_, good, bad",
    [
        ("Quantity", 5, 0),
        ("Quantity", 1000, 13),
        ("array<Quantity>", [1, 2], [1, 1001]),
        ("optional<Quantity>", None, 0),
        ("optional<array<Quantity>>", [1], [0]),
        ("set<Quantity>", [1, 2], [0, 1]),
        ("map<Quantity, integer>", {1: 0}, {0: 1}),
        ("map<integer, Quantity>", {0: 1}, {1: 0}),
        ("array<map<string, Quantity>>", [{"a": 1}], [{"a": 1}, {"b": 13}]),
    ],
)
def test_clauses_of_a_named_type_apply_to_every_input_of_it(type_: str, good: object, bad: object, engine: str) -> None:
    program = ENGINES[engine].load(compiled_text(NAMED + node("", "1", inputs=f"n: '{type_}'")))
    assert program.call({"n": good}) == Returned({"r": 1})
    outcome = program.call({"n": bad})
    assert isinstance(outcome, ContractBroken), outcome
    assert outcome.phase == "constraint"


@pytest.mark.parametrize(
    "declared, expected",
    [
        ("{type: integer, constraints: [short]}", ["bad-constraint"]),
        ("{type: string, constraints: [{max: 3}]}", ["bad-constraint"]),
        ('{type: integer, constraints: ["value"]}', ["bad-constraint"]),
        ('{type: integer, constraints: ["value + 1"]}', ["type-mismatch"]),
        ('{type: integer, constraints: ["n > 0"]}', ["unknown-name"]),
        ("{type: integer, fields: {a: integer}}", ["unknown-key"]),
        ("{type: Later}", ["unknown-type"]),
    ],
)
def test_invalid_named_type_is_rejected(declared: str, expected: list[str]) -> None:
    text = f"types:\n  Quantity: {declared}\n" + node("", "1", inputs="n: Quantity")
    assert codes(text) == expected


def test_named_type_equals_its_type() -> None:
    text = NAMED + node("f: {params: {x: Quantity}, returns: integer, value: x}", "f(n) + 1", inputs="n: integer")
    compiled = compiled_text(text)
    assert compiled.node.constraints == (), "clauses are asked where a value enters as an input"


@pytest.mark.parametrize(
    "value",
    [
        "IF m == null THEN 0 ELSE m",
        "IF m != null THEN m ELSE 0",
        "IF m == 3 THEN m ELSE 0",
        "IF 3 == m THEN m ELSE 0",
        "IF m == n AND m > 1 THEN m ELSE 0",
        "IF NOT (null == m) THEN m ELSE 0",
    ],
)
def test_equality_narrows(value: str) -> None:
    assert codes(node("", value, inputs="n: integer\nm: optional<integer>")) == []


@pytest.mark.parametrize("value", ["IF m != 3 THEN m ELSE 0", "IF m == m THEN m ELSE 0", "IF m == null THEN m ELSE 0"])
def test_other_comparisons_do_not_narrow(value: str) -> None:
    assert codes(node("", value, inputs="n: integer\nm: optional<integer>")) == ["type-mismatch"]
