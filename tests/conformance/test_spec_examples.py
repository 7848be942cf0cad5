"""Examples of the specification, `expression => value` or `=> fails code`, on every engine.

Lines that no engine can run yet are listed in `waiting_examples.txt`. The list is checked both ways: an unlisted line
must compile, and a listed one must not. `date('2023-02-29')` fails during checking: the diagnostic must name the code.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.goldens import Golden
from tests.support.nodes import ROOT, compiled_ir
from vesper.compiler import Compiled
from vesper.engines.outcome import Failed, Returned
from vesper.engines.registry import ENGINES
from vesper.language.check.expressions.checker import ExpressionChecker
from vesper.language.check.scope import Scope
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir import nodes as ir
from vesper.language.syntax.expression_parser import parse_expression
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_tree import Mapping, Scalar
from vesper.values.model import Value, same
from vesper.values.types import NULL, Type

WAITING = Path(__file__).parent / "waiting_examples.txt"
_BLOCK = re.compile(r"^```vesper-example\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINES = sorted(
    {
        line
        for page in sorted((ROOT / "docs" / "spec").glob("*.md"))
        for block in _BLOCK.findall(page.read_text(encoding="utf-8"))
        for line in block.splitlines()
        if " => " in line
    }
)


def checked(text: str, expected: Type | None = None) -> tuple[ir.Expression | None, DiagnosticBag]:
    """Return the expression as IR, or None if it is not supported yet, with its diagnostics."""
    quoted = text.replace("'", "''")
    bag = DiagnosticBag(SourceFile("example.vsp", f"value: '{quoted}'\n"))
    tree = read_yaml(bag)
    if not isinstance(tree, Mapping) or not isinstance(tree.entries[0][1], Scalar):
        return None, bag
    parsed = parse_expression(tree.entries[0][1], bag)
    if parsed is None:
        return None, bag
    found = ExpressionChecker(Scope(), bag).infer(parsed, expected)
    return (None if found is None or found.type == NULL else found), bag


def typed(text: str, expected: Type | None = None) -> ir.Expression | None:
    return checked(text, expected)[0]


def is_refused_with(text: str, code: str) -> bool:
    """Return whether the checker evaluates a literal and rejects it with this code."""
    return any(each.code is Code.BAD_LITERAL and f" {code} " in (each.help or "") for each in checked(text)[1].sorted())


def node_of(expression: ir.Expression) -> Compiled:
    place = ir.Place(1, 1, 1, 1)
    body = (
        ir.Step("step", expression, place),
        ir.Return((("result", ir.Ref("step", "step", expression.type, place)),)),
    )
    source = ir.Source("example.vsp", "0" * 64, "An example of the specification")
    outputs = (ir.Output("result", expression.type),)
    return compiled_ir(ir.Node("example_v1", "function", (), outputs, (), (), (), body, (), source))


def parts(line: str) -> tuple[str, str]:
    expression, _, expected = line.rpartition(" => ")
    return expression.strip(), expected.partition("  #")[0].strip()


def can_run(line: str) -> bool:
    expression, expected = parts(line)
    found = typed(expression)
    if found is None:
        return expected.startswith("fails ") and is_refused_with(expression, expected.removeprefix("fails "))
    return expected.startswith("fails ") or expected == "null" or typed(expected, found.type) is not None


def test_waiting_examples_are_exactly_those_that_cannot_run(golden: Golden) -> None:
    golden.check(WAITING, "".join(f"{line}\n" for line in LINES if not can_run(line)))


def test_most_pages_have_examples_that_run() -> None:
    assert sum(can_run(line) for line in LINES) > 100


def value_of(text: str, type_: Type, engine: str) -> Value:
    if text == "null":
        return None
    expression = typed(text, type_)
    assert expression is not None
    outcome = ENGINES[engine].load(node_of(expression)).call({})
    assert isinstance(outcome, Returned)
    return outcome.value["result"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("line", [line for line in LINES if can_run(line)])
def test_example(line: str, engine: str) -> None:
    text, expected = parts(line)
    expression = typed(text)
    if expression is None:
        assert is_refused_with(text, expected.removeprefix("fails "))
        return
    outcome = ENGINES[engine].load(node_of(expression)).call({})
    if expected.startswith("fails "):
        assert isinstance(outcome, Failed), outcome
        assert str(outcome.code) == expected.removeprefix("fails ")
    else:
        assert isinstance(outcome, Returned), outcome
        wanted = value_of(expected, expression.type, engine)
        assert same(outcome.value["result"], wanted), f"{outcome.value['result']!r} and not {wanted!r}"
