"""Expression text to tokens, each with its place in the file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

from vesper.diagnostics.codes import Code
from vesper.diagnostics.diagnostic import DiagnosticBag
from vesper.diagnostics.source import Span
from vesper.spec.record import record
from vesper.syntax.scalar_text import PlacedText


class TokenKind(Enum):
    NAME = "a name"
    WORD = "a word of the language"
    NUMBER = "a number"
    STRING = "a string"
    SIGN = "a sign"
    END = "the end"


@record(frozen=True, slots=True)
class Token:
    kind: TokenKind
    text: str
    """For a string, what is between its quotes."""
    span: Span
    offsets: Sequence[int] = ()
    """For a string, where in the file each of its characters starts, and last its closing quote."""

    def describe(self) -> str:
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
    r"""(?P<space>[ \t\r\n]+)
      | (?P<number>[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign>==|!=|<=|>=|=>|\?\?|[-+*/<>()\[\],.{}:=])
      | (?P<string>'[^'\r\n]*'|"[^"\r\n]*")
    """,
    re.VERBOSE | re.ASCII,
)


def tokenize(placed: PlacedText, bag: DiagnosticBag) -> list[Token] | None:
    """The tokens, ending with one END; None after reporting what is no token."""
    tokens: list[Token] = []
    position = 0
    errors = bag.error_count
    while position < len(placed.text):
        match = _TOKEN.match(placed.text, position)
        if match is None:
            _report_character(placed, position, bag)
            position += 1
            continue
        kind, start, position = match.lastgroup, position, match.end()
        if kind != "space":
            tokens.append(_token(str(kind), match[0], placed, start, bag))
    # `=` gives a name to a value in a LET, and in a call after a FOR: `fold(acc + x FOR x IN xs, acc = 0)`.
    if not any(token.text in ("LET", "FOR") for token in tokens):
        for token in tokens:
            if token.text == "=" and token.kind is TokenKind.SIGN:
                bag.error(Code.BAD_CHARACTER, token.span, help="compare with `==`", what="`=`")
    if bag.error_count > errors:
        return None
    end = placed.span(len(placed.text), len(placed.text))
    return [*tokens, Token(TokenKind.END, "", end)]


def _token(kind: str, text: str, placed: PlacedText, start: int, bag: DiagnosticBag) -> Token:
    end = start + len(text)
    span = placed.span(start, end)
    if kind == "string":
        return Token(TokenKind.STRING, text[1:-1], span, placed.offsets[start + 1 : end])
    if kind == "number":
        if "_" in text:
            bag.error(Code.BAD_NUMBER, span, text=text, problem="has an underscore in it")
        return Token(TokenKind.NUMBER, text, span)
    if kind == "sign":
        return Token(TokenKind.SIGN, text, span)
    return Token(TokenKind.WORD if text in WORDS else TokenKind.NAME, text, span)


def _report_character(placed: PlacedText, position: int, bag: DiagnosticBag) -> None:
    character = placed.text[position]
    span = placed.span(position, position + 1)
    if character in "'\"":
        bag.error(Code.BAD_CHARACTER, span, "this string does not end on its line", what="an open string")
        return
    help_ = {"&": "write `AND`", "|": "write `OR`", "!": "write `NOT`", "%": "write `mod(a, b)`"}.get(character)
    shown = f"`{character}`" if character.isprintable() else f"the character U+{ord(character):04X}"
    bag.error(Code.BAD_CHARACTER, span, help=help_, what=shown)
