"""Generated Python: golden files for review, and the relation between the plain, the metered and the traced form."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from dataclasses import replace
from decimal import Context, Decimal, getcontext, localcontext
from pathlib import Path

import pytest

from tests.support.goldens import Golden
from tests.support.marks import counts_memory, without_marks
from tests.support.nodes import PAYMENT_DECISION, ROOT, compiled, small_node, worked_nodes, written_for_tests
from vesper.codegen.layout.lines import WIDTH
from vesper.codegen.module import HEADER, generate_module
from vesper.codegen.vocabulary import VocabularyError, check_vocabulary
from vesper.engines.engine import Limits, run_observed
from vesper.engines.outcome import Failed, Returned
from vesper.engines.registry import ENGINES
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import Value

HERE = Path(__file__).parents[2]
SHOWN = (
    "api_key_issue_v1",  # SQL, secrets, a request whose answer nothing reads
    "checkout_v1",  # calls between nodes, handlers, a shared function of postconditions
    "exchange_rates_v1",  # timeouts, retries, a circuit breaker, a request that may be skipped
    "expire_reservations_v1",  # a loop with requests inside, `collect`, `stop_when`
    "forms_v1",  # every form of FOR; clauses about the items of arrays, maps and sets
    "internal_rate_v1",  # LET, folds, a loop with state, contracts with functions
    "invoice_lines_v1",  # records with constraints, optional inputs, match
    "order_pricing_v1",  # one pass for the clauses about one list
    "payment_decision_v1",  # a decision table, pre- and postconditions
    "payment_handler_v1",  # a state machine, retries, compensation
    "sensor_report_v1",  # json, dates, bytes, floats, a default of every type
    "types_in_forms_v1",  # types of every kind inside of loops
)
"""Nodes that together take 97 of 100 steps from line to line that all nodes take through `vesper/codegen`."""


@pytest.mark.parametrize("name", SHOWN)
def test_golden(name: str, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (path,) = (each for each in (*worked_nodes(), *written_for_tests()) if each.stem == name)
    text = generate_module(compiled(path.relative_to(ROOT)).node).text
    assert text.startswith(HEADER)
    golden.check(HERE / "golden" / f"{name}.py", text)


def test_every_golden_file_is_shown() -> None:
    assert sorted(path.stem for path in (HERE / "golden").glob("*.py")) == sorted(SHOWN)


@pytest.mark.parametrize("path", [*worked_nodes(), *written_for_tests()], ids=lambda path: path.stem)
def test_the_traced_form_without_its_marks_is_the_metered_form(path: Path) -> None:
    node = compiled(path).node
    metered, traced = generate_module(node, metered=True).text, generate_module(node, traced=True).text
    assert ("mark(" in traced) == ("type: supervisor" not in path.read_text(encoding="utf-8"))
    assert "mark(" not in metered
    assert without_marks(traced) == without_marks(metered)


@pytest.mark.parametrize("path", [*worked_nodes(), *written_for_tests()], ids=lambda path: path.stem)
def test_the_metered_form_without_its_metering_is_the_plain_form(path: Path) -> None:
    node = compiled(path).node
    plain, metered = generate_module(node).text, generate_module(node, metered=True).text
    loops = any(isinstance(each, ir.For) for each in node.expressions()) or any(
        isinstance(each, ir.Loop | ir.CallNode) for each in all_statements(node.body)
    )
    assert bool(re.search(r"\(\s*meter\b(?!=)|\bmeter\(", metered)) == loops
    if not counts_memory(metered):
        assert without_marks(metered) == without_marks(plain)


def test_every_line_fits() -> None:
    text = generate_module(compiled(PAYMENT_DECISION).node).text
    assert max(len(line) for line in text.splitlines()) <= WIDTH
    assert not [line for line in text.splitlines() if line != line.rstrip()]


def test_the_ambient_decimal_context_does_not_matter() -> None:
    inputs = {"a": Decimal("0.1234567890123456789"), "b": Decimal("9.87654321098765432109")}
    program = ENGINES["python"].load(
        small_node(
            "a: decimal\nb: decimal",
            "- {step: result, operation: compute, value: a * b}\n- {operation: return, success: [result]}",
        )
    )
    expected = program.call(inputs)
    with localcontext(Context(prec=3, traps=[])) as ambient:
        assert program.call(inputs) == expected
        assert getcontext() is ambient, "the caller's context is given back"
    assert isinstance(expected, Returned)
    assert expected.value["result"] == Decimal(1234567890123456789 * 987654321098765432109).scaleb(
        -39, Context(prec=50)
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_a_failure_names_the_operation_that_failed(engine: str) -> None:
    """Three operations on one line; only one of them overflows, and it is named by its own place."""
    node = small_node(
        "a: integer\nb: integer",
        "- {step: result, operation: compute, value: (a - b) + (a * b) + 1}\n- {operation: return, success: [result]}",
        outputs="result: integer",
    )
    program = ENGINES[engine].load(node)
    for inputs, wanted in (
        ({"a": 2**62, "b": 4}, "a * b"),
        ({"a": -(2**63), "b": 1}, "a - b"),
        ({"a": 2**63 - 1, "b": 1}, "(a - b) + (a * b)"),
    ):
        outcome = program.call(inputs)
        assert isinstance(outcome, Failed)
        assert outcome.code == ErrorCode.INTEGER_OVERFLOW
        assert outcome.at is not None
        place = node.node.expressions()[outcome.at].place
        line = node.source.line_text(place.line)
        assert line[place.column - 1 : place.end_column - 1].strip("()") == wanted.strip("()")


@pytest.mark.parametrize(
    "text",
    [
        "import os",
        "from os import path",
        "x = ().__class__",
        "x = eval('1')",
        "x = {y for y in z}",
        "x = {y: y for y in z}",
        "x = y[0].z",
        "f()",
        "x = lambda: 1",
        "x = f'{y}'",
        "with x: pass",
        "class X(dict): pass\nx = X()",
        "x = y | z\nx = y ^ z",
    ],
)
def test_the_vocabulary_refuses_what_no_writer_writes(text: str) -> None:
    with pytest.raises(VocabularyError):
        check_vocabulary(text, set())


ODD_NAMES = [
    "meter",
    "spend",
    "all_of",
    "class",
    "lambda",
    "import",
    "len",
    "decimal",
    "mark",
    "checked",
    "match",
    "text_length",
    "d_0",
    "success",
]


@pytest.mark.parametrize("engine", ENGINES)
def test_names_that_python_needs_for_itself(engine: str) -> None:
    """As inputs, as steps and as outputs; what comes back is under the author's own names."""
    inputs = "\n".join(f"{name}: integer" for name in ODD_NAMES)
    steps = "\n".join(f"- {{step: {name}_out, operation: compute, value: {name} + 1}}" for name in ODD_NAMES)
    entries = "\n".join(f"    {name}: {name}_out" for name in ODD_NAMES)
    node = small_node(inputs, f"{steps}\n- operation: return\n  success:\n{entries}", outputs=inputs)
    program = ENGINES[engine].load(node)
    outcome = program.call(dict.fromkeys(ODD_NAMES, 1))
    assert isinstance(outcome, Returned)
    assert outcome.value == dict.fromkeys(ODD_NAMES, 2)


def test_nothing_in_a_node_becomes_code() -> None:
    evil = '"""; import os; os.abort(); """\\'
    node = small_node("a: string", "- {operation: return, success: {result: a}}", outputs="result: string")
    hostile = replace(node.node, source=replace(node.node.source, intent=evil, path="x\nimport os\n.vsp"))
    text = generate_module(hostile).text
    assert ast.get_docstring(ast.parse(text)) is not None
    assert [name for name in ast.walk(ast.parse(text)) if isinstance(name, ast.Import)] == []


def test_an_engine_without_code_positions_says_so() -> None:
    code = (
        "import sys; from pathlib import Path; from vesper.compiler import compile_file; "
        "from vesper.engines.registry import ENGINES; ENGINES['python'].load(compile_file(Path(sys.argv[1]))[0])"
    )
    done = subprocess.run(
        [sys.executable, "-X", "no_debug_ranges", "-c", code, str(PAYMENT_DECISION)],
        cwd=HERE.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "EngineUnavailable" in done.stderr
    assert "no_debug_ranges" in done.stderr


@pytest.mark.parametrize("engine", ENGINES)
def test_a_condition_that_takes_memory_decides_before_a_value_with_its_own(engine: str) -> None:
    """The metered form writes such a WHERE around the value, which may be an IF itself."""
    value = "[IF flag THEN x ELSE -x FOR x IN xs WHERE EXISTS s IN split(t, '-') SATISFIES parse_integer(s) == x]"
    node = small_node(
        "xs: array<integer>\nt: string\nflag: boolean",
        f'- {{step: result, operation: compute, value: "{value}"}}\n- {{operation: return, success: [result]}}',
        "result: array<integer>",
    )
    assert "SKIPPED" in generate_module(node.node, metered=True).text
    program = ENGINES[engine].load(node)
    for flag, expected in ((True, [1, 3]), (False, [-1, -3])):
        inputs: dict[str, object] = {"xs": [1, 2, 3], "t": "1-3", "flag": flag}
        for outcome in (run_observed(program, inputs).outcome, program.call(inputs, limits=Limits(seconds=60))):
            assert outcome == Returned({"result": list[Value](expected)})
