"""A Python expression that was written, and how tight it binds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import libcst as cst

# How tight each form binds, loosest first; what stands inside a tighter form gets parentheses.
TERNARY, OR, AND, NOT, COMPARISON, SUM, PRODUCT, SIGN, ATOM = range(9)


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


def string_literal(text: str) -> str:
    """A Python string that is on one line and shows what it holds; what cannot be seen is escaped."""
    # The quotes that need fewer escapes inside, as a formatter would have them.
    quote = "'" if text.count('"') > text.count("'") else '"'
    quoted = "".join(
        f"\\{c}" if c in (quote, "\\") else c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )
    return f"{quote}{quoted}{quote}"
