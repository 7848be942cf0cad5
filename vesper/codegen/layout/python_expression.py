"""A Python expression that was written, and how tight it binds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import libcst as cst

from vesper.values.unicode import is_printable

# How tight each form binds, loosest first; what stands inside a tighter form gets parentheses.
TERNARY, OR, AND, NOT, COMPARISON, BITS, SUM, PRODUCT, SIGN, ATOM = range(10)


EQUAL: Final = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
"""The sign between a keyword and its argument."""


@dataclass(frozen=True, slots=True)
class Written:
    """A Python expression and how tight it binds."""

    node: cst.BaseExpression
    binds: int


def in_parentheses(written: Written, binds: int) -> cst.BaseExpression:
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


def negated(written: Written) -> Written:
    """The opposite of a condition, as people write it."""
    match written.node:
        case cst.Comparison(comparisons=[target]) as comparison if type(target.operator) in _OPPOSITES:
            opposite = target.with_changes(operator=_OPPOSITES[type(target.operator)])
            return Written(comparison.with_changes(comparisons=[opposite], lpar=[], rpar=[]), COMPARISON)
        case cst.UnaryOperation(operator=cst.Not(), expression=operand):
            return Written(operand, ATOM if operand.lpar else NOT)
        case _:
            return Written(cst.UnaryOperation(cst.Not(), in_parentheses(written, NOT)), NOT)


def string_literal(text: str) -> str:
    """A Python string that is on one line and shows what it holds; what cannot be seen is escaped."""
    # The quotes that need fewer escapes inside, as a formatter would have them.
    quote = "'" if text.count('"') > text.count("'") else '"'
    quoted = "".join(
        f"\\{c}" if c in (quote, "\\") else c if is_printable(c) else c.encode("unicode_escape").decode() for c in text
    )
    return f"{quote}{quoted}{quote}"
