"""A Python expression that was written, and how tight it binds."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from vesper.spec.unicode import is_printable

# How tight each form binds, loosest first; what stands inside a tighter form gets parentheses.
TERNARY, OR, AND, NOT, COMPARISON, SUM, PRODUCT, SIGN, ATOM = range(9)


@dataclass(frozen=True, slots=True)
class Written:
    """A Python expression and how tight it binds."""

    node: cst.BaseExpression
    binds: int


def in_parentheses(written: Written, binds: int) -> cst.BaseExpression:
    if written.binds >= binds:
        return written.node
    return written.node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def string_literal(text: str) -> str:
    """A Python string that is on one line and shows what it holds; what cannot be seen is escaped."""
    # The quotes that need no escape inside, as a formatter would have them.
    quote = "'" if '"' in text and "'" not in text else '"'
    quoted = "".join(
        f"\\{c}" if c in (quote, "\\") else c if is_printable(c) else c.encode("unicode_escape").decode() for c in text
    )
    return f"{quote}{quoted}{quote}"
