"""Conditions of routes: an expression becomes a pure node with one boolean output, by the ordinary compiler.

The document is built around the expression of the file, so that every error is reported at its place there.
"""

from __future__ import annotations

import re

from vesper.language.check.ast_to_ir import check_document
from vesper.language.check.callees import NoCallees
from vesper.language.diagnostics.diagnostic import DiagnosticBag, Severity
from vesper.language.ir.encode import encode_and_hash
from vesper.language.syntax import ast
from vesper.language.syntax.expression_parser import parse_expression
from vesper.language.syntax.yaml_tree import Scalar

_TYPES = {"inputs": "json", "metadata": "json", "outputs": "json", "stage": "string"}
"""What a condition can read."""


def compile_condition(expression: Scalar, bag: DiagnosticBag) -> str:
    """Return the canonical IR; empty after an error was reported."""
    parsed = parse_expression(expression, bag)
    if parsed is None:
        return ""
    own = DiagnosticBag(bag.source)
    checked = check_document(_document(expression, parsed, bag), own, NoCallees())
    bag.adopt(own, lambda each: each.severity is Severity.ERROR)  # the rest is about the node around the expression
    written = None if checked is None or own.has_errors else encode_and_hash(checked.node)
    return "" if written is None else written[0].decode()


def _document(expression: Scalar, parsed: ast.Expression, bag: DiagnosticBag) -> ast.Document:
    span = expression.span

    def word(text: str) -> ast.Word:
        return ast.Word(text, span)

    inputs = tuple(
        ast.Input(word(name), ast.TypeName(word(type_), span), (), None)
        for name, type_ in _TYPES.items()
        if re.search(rf"\b{name}\b", expression.text)
    )
    answer = ast.Return(((word("holds"), parsed),), span)
    return ast.Document(
        source=bag.source,
        node_id=word("condition_v1"),
        type=word("function"),
        intent=word("Decide whether a route is taken"),
        inputs=inputs,
        types=(),
        outputs=(ast.Output(word("holds"), ast.TypeName(word("boolean"), span)),),
        constants=(),
        functions=(),
        preconditions=(),
        postconditions=(),
        flow=(ast.Step(None, word("return"), (), answer, ()),),
        flow_span=span,
        cases=(),
    )
