"""Python expressions with their precedence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import libcst as cst

from vesper.values.unicode import is_printable

# How tight each form binds, loosest first; a looser operand gets parentheses.
TERNARY, OR, AND, NOT, COMPARISON, BITS, SUM, PRODUCT, SIGN, ATOM = range(10)


EQUAL: Final = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
"""The sign between a keyword and its argument."""


@dataclass(frozen=True, slots=True)
class PythonExpression:
    """A Python expression and its precedence."""

    node: cst.BaseExpression
    binds: int


def add_parentheses(written: PythonExpression, binds: int) -> cst.BaseExpression:
    if written.binds >= binds:
        return written.node
    return written.node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


_OPPOSITES: Final[dict[type[cst.BaseCompOp], cst.BaseCompOp]] = {
    cst.Equal: cst.NotEqual(),
    cst.NotEqual: cst.Equal(),
    cst.In: cst.NotIn(),
    cst.NotIn: cst.In(),
    cst.Is: cst.IsNot(),
    cst.IsNot: cst.Is(),
}
"""Comparisons with an exact opposite. `not a > b` stays: it shows the clause, and is not `a <= b` for a NaN."""


def negate(written: PythonExpression) -> PythonExpression:
    """Return the opposite of a condition in its usual form."""
    match written.node:
        case cst.Comparison(comparisons=[target]) as comparison if type(target.operator) in _OPPOSITES:
            opposite = target.with_changes(operator=_OPPOSITES[type(target.operator)])
            return PythonExpression(comparison.with_changes(comparisons=[opposite], lpar=[], rpar=[]), COMPARISON)
        case cst.UnaryOperation(operator=cst.Not(), expression=operand):
            return PythonExpression(operand, ATOM if operand.lpar else NOT)
        case _:
            return PythonExpression(cst.UnaryOperation(cst.Not(), add_parentheses(written, NOT)), NOT)


def write_string(text: str) -> str:
    """Write a text as a Python string on one line; invisible characters are escaped."""
    # The quotes that need fewer escapes inside, as a formatter would have them.
    quote = "'" if text.count('"') > text.count("'") else '"'
    quoted = "".join(
        f"\\{c}" if c in (quote, "\\") else c if is_printable(c) else c.encode("unicode_escape").decode() for c in text
    )
    return f"{quote}{quoted}{quote}"
