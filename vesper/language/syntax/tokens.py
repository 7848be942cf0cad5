"""Tokenizer for expressions; each token has its span in the file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.syntax.scalar_text import PlacedText


class TokenKind(Enum):
    """Kind of a token."""

    NAME = "a name"
    WORD = "a word of the language"
    NUMBER = "a number"
    STRING = "a string"
    SIGN = "a sign"
    END = "the end"


# Module constants, because lookup through the class is several times slower and dominates parsing.
NAME, WORD, NUMBER, STRING, SIGN, END = TokenKind


@dataclass(frozen=True, slots=True)
class Token:
    """One token of an expression."""

    kind: TokenKind
    text: str
    """Source text; for a string, the text between its quotes."""
    span: Span
    offsets: Sequence[int] = ()
    """File offset of each character of a string, and of its closing quote."""

    def describe(self) -> str:
        """Return the token for messages."""
        if self.kind is TokenKind.END:
            return "the end of the expression"
        return f"the string '{self.text}'" if self.kind is TokenKind.STRING else f"`{self.text}`"


WORDS = frozenset(
    [
        "AND",
        "OR",
        "NOT",
        "IN",
        "CONTAINS",
        "IS",
        "NULL",
        "IF",
        "THEN",
        "ELSE",
        "LET",
        "FORALL",
        "EXISTS",
        "SATISFIES",
        "FOR",
        "WHERE",
        "WITH",
        "BY",
        "SUM",
        "COUNT",
        "MIN",
        "MAX",
        "AVG",
        "CAST",
        "AS",
        "true",
        "false",
        "null",
    ],
)

_TOKEN = re.compile(
    r"""(?P<number>[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign>==|!=|<=|>=|=>|\?\?|\.\.|[-+*/<>()\[\],.{}:=])
      | (?P<string>'[^'\r\n]*'|"[^"\r\n]*")
      | (?P<other>[^ \t\r\n])
    """,
    re.VERBOSE | re.ASCII,
)
"""Searched, not matched: text between two tokens is white space."""


def tokenize(placed: PlacedText, bag: DiagnosticBag) -> list[Token] | None:
    """Return the tokens, ending with one END. None after reporting an invalid character."""
    tokens: list[Token] = []
    errors = bag.error_count
    text = placed.text
    # Where text and file agree character by character a span is a sum; `placed.span` gives the same result.
    shift = placed.end - len(text) if type(placed.offsets) is range else None
    has_equals = False
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        span = placed.span(start, end) if shift is None else Span(start + shift, end + shift)
        found, kind = match[0], match.lastgroup
        if kind == "name":
            tokens.append(Token(WORD if found in WORDS else NAME, found, span))
        elif kind == "sign":
            tokens.append(Token(SIGN, found, span))
            has_equals = has_equals or found == "="
        elif kind == "number":
            if "_" in found:
                bag.error(Code.BAD_NUMBER, span, text=found, problem="has an underscore in it")
            tokens.append(Token(NUMBER, found, span))
        elif kind == "string":
            tokens.append(Token(STRING, found[1:-1], span, placed.offsets[start + 1 : end]))
        else:
            _report_character(found, span, bag)
    # `=` names a value in a LET, and in a call after a FOR: `fold(acc + x FOR x IN xs, acc = 0)`.
    if has_equals and not any(token.text in ("LET", "FOR") for token in tokens):
        for token in tokens:
            if token.text == "=" and token.kind is SIGN:
                bag.error(Code.BAD_CHARACTER, token.span, help="compare with `==`", what="`=`")
    if bag.error_count > errors:
        return None
    tokens.append(Token(END, "", Span(placed.end, placed.end)))
    return tokens


def _report_character(character: str, span: Span, bag: DiagnosticBag) -> None:
    if character in "'\"":
        bag.error(Code.BAD_CHARACTER, span, "this string does not end on its line", what="an open string")
        return
    shown = f"`{character}`" if character.isprintable() else f"the character U+{ord(character):04X}"
    bag.error(Code.BAD_CHARACTER, span, help="remove it, or put the text that it belongs to in quotes", what=shown)
