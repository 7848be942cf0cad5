"""Spans inside scalars of every style: the caret must be under the word itself."""

from __future__ import annotations

import pytest

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax import ast
from vesper.language.syntax.expression_parser import parse_expression
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_tree import Mapping, Scalar


def first_value(text: str) -> tuple[Scalar, DiagnosticBag]:
    bag = DiagnosticBag(SourceFile("test.vsp", text))
    tree = read_yaml(bag)
    assert isinstance(tree, Mapping)
    value = tree.entries[0][1]
    assert isinstance(value, Scalar)
    return value, bag


@pytest.mark.parametrize(
    "text",
    [
        "v: a + wanted\n",
        "v:   a\n  + wanted\n",
        "é: a + wanted  # comment\n",
        "v: 'a + wanted'\n",
        "v: 'a == ''x'' AND wanted'\n",
        'v: "a + wanted"\n',
        'v: "a == \\"x\\\\y\\" AND wanted"\n',
        'v: "\\x61 + \\u0062 AND wanted"\n',
        'v: "a +\n  wanted"\n',
        'v: "a + \\\n  wanted"\n',
        "v: >\n  a\n  + wanted\n",
        "v: >-  # comment\n\n  a\n\n    + wanted\n\n",
        "v: |\n  a\n  + wanted\n",
        "v: |2+\n    a\n  + wanted\n\n\n",
        "{v: a + wanted, w: 1}\n",
    ],
)
def test_span_of_a_name_is_exact(text: str) -> None:
    scalar, bag = first_value(text)
    expression = parse_expression(scalar, bag)
    assert expression is not None, [each.headline for each in bag.sorted()]
    assert isinstance(expression, ast.Infix)
    assert isinstance(expression.right, ast.Name)
    assert bag.source.slice(expression.right.span) == "wanted"


def shape(expression: ast.Expression) -> str:
    match expression:
        case ast.Infix(left=left, operator=operator, right=right):
            return f"({shape(left)} {operator.text} {shape(right)})"
        case ast.Prefix(operator=operator, operand=operand):
            return f"({operator.text.removeprefix('unary ')} {shape(operand)})"
        case ast.If(condition=condition, then=then, otherwise=otherwise):
            return f"(IF {shape(condition)} THEN {shape(then)} ELSE {shape(otherwise)})"
        case ast.Field(base=base, name=name):
            return f"{shape(base)}.{name.text}"
        case ast.IsNull(operand=operand, is_negated=is_negated):
            return f"({shape(operand)} IS {'NOT ' if is_negated else ''}NULL)"
        case ast.Let(name=name, value=value, body=body):
            return f"(LET {name.text} = {shape(value)} IN {shape(body)})"
        case ast.Index(base=base, index=index):
            return f"{shape(base)}[{shape(index)}]"
        case ast.Boolean(value=value):
            return str(value)
        case ast.Name(text=text) | ast.Number(text=text) | ast.String(text=text):
            return text
        case _:
            return type(expression).__name__


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a OR b AND c", "(a OR (b AND c))"),
        ("a - b - c", "((a - b) - c)"),
        ("a + b * -c", "(a + (b * (- c)))"),
        ("NOT a == b", "(NOT (a == b))"),
        ("NOT NOT a", "(NOT (NOT a))"),
        ("NOT a AND b", "((NOT a) AND b)"),
        ("- - a", "(- (- a))"),
        ("a + 1 IN b", "((a + 1) IN b)"),
        ("IF a THEN b ELSE c + 1", "(IF a THEN b ELSE (c + 1))"),
        ("IF a THEN IF b THEN c ELSE d ELSE e", "(IF a THEN (IF b THEN c ELSE d) ELSE e)"),
        ("(IF a THEN b ELSE c) + 1", "((IF a THEN b ELSE c) + 1)"),
        ("input.a >= output.b", "(input.a >= output.b)"),
        ("a == true", "(a == True)"),
        ("a + IF b THEN c ELSE d", "(a + (IF b THEN c ELSE d))"),
        ("a => b => c", "(a => (b => c))"),
        ("a OR b => c", "((a OR b) => c)"),
        ("a ?? b ?? c", "(a ?? (b ?? c))"),
        ("a ?? b + 1 > c", "((a ?? (b + 1)) > c)"),
        ("a.b.c[0].d", "a.b.c[0].d"),
        ("a NOT IN b", "(NOT (a IN b))"),
        ("a IS NULL OR a IS NOT NULL", "((a IS NULL) OR (a IS NOT NULL))"),
        ("LET x = a + 1 IN x IN b", "(LET x = (a + 1) IN (x IN b))"),
        ("LET x = (a IN b) IN x", "(LET x = (a IN b) IN x)"),
        ("LET x = a, y = x IN y", "(LET x = a IN (LET y = x IN y))"),
    ],
)
def test_precedence(text: str, expected: str) -> None:
    scalar, bag = first_value(f'v: "{text}"\n')
    expression = parse_expression(scalar, bag)
    assert expression is not None, [each.headline for each in bag.sorted()]
    assert shape(expression) == expected


@pytest.mark.parametrize(
    "text",
    ["a == NOT b", "a <", "* a", "a b", "()", "a.", "[a", "{a: }", "LET x IN y", "FORALL x SATISFIES y"],
)
def test_invalid_expression_is_rejected(text: str) -> None:
    scalar, bag = first_value(f'v: "{text}"\n')
    assert parse_expression(scalar, bag) is None
    assert {each.code for each in bag.sorted()} <= {Code.EXPRESSION_SYNTAX, Code.NOT_IN_THIS_VERSION}
