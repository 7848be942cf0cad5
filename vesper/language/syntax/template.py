"""Text with `{expression}` holes: `order {order_id} is closed`. `{{` and `}}` are braces.

A scalar that consists of one hole becomes that expression and keeps its type; any other becomes a `Template`. Spans
inside holes are exact in any quoting.
"""

from __future__ import annotations

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.syntax import ast
from vesper.language.syntax.expression_parser import parse_placed
from vesper.language.syntax.scalar_text import PlacedText, place_text
from vesper.language.syntax.yaml_tree import Scalar

_Hole = tuple[int, int]
"""Start and end of the text between two braces."""


def parse_template(scalar: Scalar, bag: DiagnosticBag, in_url: bool = False) -> ast.Expression | None:
    """Return the expression or template in a scalar, or None after reporting an error."""
    placed = place_text(bag.source, scalar)
    pieces = _split(placed, bag)
    # Outside holes the folded text of YAML counts; spans come from the raw text.
    texts = pieces if placed.text == scalar.text else _split(_flat(scalar.text), None)
    if pieces is None or texts is None:
        return None
    parts: list[str | ast.Expression] = []
    for raw, folded in zip(pieces, texts, strict=True):
        if isinstance(folded, str):
            if folded:
                parts.append(folded)
            continue
        assert not isinstance(raw, str)
        start, end = raw
        hole = _hole(placed, start, end, bag)
        if hole is None:
            return None
        parts.append(hole)
    if len(parts) == 1 and not isinstance(parts[0], str) and not in_url:
        return parts[0]
    return ast.Template(tuple(parts), in_url, scalar.span)


def as_text(expression: ast.Expression) -> ast.Expression:
    """Return the expression as a template. So even a single hole yields a string."""
    if isinstance(expression, ast.Template):
        return expression
    return ast.Template((expression,), False, expression.span)


def _flat(text: str) -> PlacedText:
    return PlacedText(text, range(len(text)), len(text))


def _hole(placed: PlacedText, start: int, end: int, bag: DiagnosticBag) -> ast.Expression | None:
    inside = PlacedText(placed.text[start:end], placed.offsets[start:end], placed.span(start, end).end)
    if not inside.text.strip():
        span = placed.span(start - 1, end + 1)
        help_ = "put an expression between the braces, or write `{{}}` for braces"
        bag.error(Code.EXPRESSION_SYNTAX, span, expected="an expression", found="nothing in this hole", help=help_)
        return None
    return parse_placed(inside, bag)


def _split(placed: PlacedText, bag: DiagnosticBag | None) -> list[str | _Hole] | None:
    """Return literal text and holes alternately, starting and ending with text.

    Returns None after reporting an unpaired brace.
    """
    text = placed.text
    pieces: list[str | _Hole] = []
    literal: list[str] = []
    index = 0
    while index < len(text):
        character = text[index]
        if character in "{}" and text[index : index + 2] == character * 2:
            literal.append(character)
            index += 2
        elif character == "{":
            end = _end_of_hole(text, index + 1)
            if end is None:
                _report(placed.span(index, index + 1), "`}` that ends this hole", bag)
                return None
            pieces += ["".join(literal), (index + 1, end)]
            literal = []
            index = end + 1
        elif character == "}":
            _report(placed.span(index, index + 1), "`{` before this, or `}}` for a brace", bag)
            return None
        else:
            literal.append(character)
            index += 1
    return [*pieces, "".join(literal)]


def _end_of_hole(text: str, start: int) -> int | None:
    """Return the index of the closing brace. Braces of inner records nest; braces in strings do not count."""
    depth, quote = 1, ""
    for index in range(start, len(text)):
        character = text[index]
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "{}":
            depth += 1 if character == "{" else -1
            if depth == 0:
                return index
    return None


def _report(span: Span, expected: str, bag: DiagnosticBag | None) -> None:
    if bag is not None:
        help_ = "in a template `{…}` is a hole; write `{{` and `}}` for braces"
        bag.error(Code.EXPRESSION_SYNTAX, span, expected=expected, found="none", help=help_)
