"""What Pythons do differently, held to one way: `make test-pythons` runs this on all of them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from tests.support.nodes import compiled, small_node, worked_nodes
from vesper.codegen.layout.python_expression import write_string
from vesper.codegen.module import generate_module
from vesper.codegen.statements import write_comment
from vesper.engines.engine import run_observed
from vesper.engines.outcome import Failed, Returned
from vesper.engines.registry import ENGINES
from vesper.values.model import Json
from vesper.values.unicode import is_printable
from vesper.verify.inputs.responses import run_case


@pytest.mark.parametrize(
    "character, is_shown",
    [
        ("\u0cf3", True),  # assigned in 15.0: the tables of Python 3.11 do not have it
        ("\U0001fae8", True),
        ("\u2ffc", False),  # assigned in 15.1: those of 3.13 do
        ("\u2028", False),
        ("\u00a0", False),
        ("\u202e", False),
        ("\ue000", False),
        ("é", True),
        (" ", True),
        ("\x7f", False),
    ],
)
def test_generated_text_does_not_depend_on_the_hosts_unicode(character: str, is_shown: bool) -> None:
    assert is_printable(character) is is_shown
    assert (character in write_string(character)) is is_shown
    shown = write_comment(character).comment
    assert shown is not None
    assert (character in shown.value) is is_shown


@pytest.mark.parametrize("name", ["type", "match", "case", "class"])
def test_names_of_parameters_do_not_depend_on_the_hosts_keywords(name: str) -> None:
    """`type` is a soft keyword from 3.12 on."""
    node = small_node(f"{name}: string", f"- {{operation: return, success: {{result: {name}}}}}", "result: string")
    assert generate_module(node.node).parameters == (f"{name}_",)


def _answer(value: str, inputs: str, given: dict[str, object], output: str, engine: str) -> object:
    node = small_node(
        inputs,
        f"- step: result\n  operation: compute\n  value: {value}\n- {{operation: return, success: [result]}}",
        outputs=f"result: {output}",
    )
    outcome = ENGINES[engine].load(node).call(given)
    assert isinstance(outcome, Returned), outcome
    return outcome.value["result"]


@pytest.mark.parametrize("engine", ENGINES)
def test_floats_are_added_from_the_left(engine: str) -> None:
    """From 3.12 on Python's own `sum` compensates: 1e16 + 1 + 1 would be 1e16 + 2."""
    given: dict[str, object] = {"xs": [1e16, 1.0, 1.0, -1e16]}
    assert _answer("sum(xs)", "xs: array<float>", given, "float", engine) == 0.0
    assert _answer("SUM(x FOR x IN xs)", "xs: array<float>", given, "float", engine) == 0.0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "value, output",
    [
        ("'[10 / x FOR x IN xs]'", "array<decimal>"),
        ("'COUNT(x FOR x IN xs WHERE 10 / x > 3)'", "integer"),
        ("'FORALL x IN xs SATISFIES 10 / x > 0'", "boolean"),
        ("'SUM(10 / x FOR x IN xs)'", "decimal"),
        ("'MAX(10 / x FOR x IN xs)'", "decimal"),
        ("'[[10 / y FOR y IN xs] FOR x IN xs]'", "array<array<decimal>>"),
        ("'LET d = 2 IN [10 / x + d FOR x IN xs]'", "array<decimal>"),
        ("'sort_by(10 / x FOR x IN xs)'", "array<decimal>"),
        ("'fold(acc + 10 / x FOR x IN xs, acc = 0.0)'", "decimal"),
    ],
)
def test_a_failure_inside_a_comprehension_is_at_its_division(value: str, output: str, engine: str) -> None:
    """From 3.12 on comprehensions are inlined: the failing instruction is in another code object than on 3.11."""
    node = small_node(
        "xs: array<decimal>",
        f"- step: result\n  operation: compute\n  value: {value}\n- {{operation: return, success: [result]}}",
        outputs=f"result: {output}",
    )
    program = ENGINES[engine].load(node)
    given: dict[str, object] = {"xs": [Decimal(5), Decimal(0), Decimal(2)]}
    for outcome in (program.call(given), run_observed(program, given).outcome):
        assert isinstance(outcome, Failed), outcome
        assert outcome.at is not None
        place = node.node.expressions()[outcome.at].place
        text = node.source.line_text(place.line)[place.column - 1 : place.end_column - 1]
        assert text in ("10 / x", "10 / y")


def _calling_nodes() -> list[Path]:
    return [path for path in worked_nodes() if "operation: call_node" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", _calling_nodes(), ids=lambda path: path.stem)
def test_what_a_called_node_asks_for_is_plain_python(path: Path) -> None:
    """Also where only the called node knows of json, and its caller does not."""
    node = compiled(path)
    for program in [engine.load(node) for engine in ENGINES.values()]:
        for case in node.cases:
            for request in run_case(program, case).requests:
                assert not [value for value in request.arguments.values() if isinstance(value, Json)]
