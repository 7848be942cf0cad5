"""Lenient tokenizer for foreign spellings, and the extent of operands."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vesper.language.syntax.tokens import WORDS

_PIECE = re.compile(
    r"""(?P<number>[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<template>[fF](?:'[^'\r\n]*'|"[^"\r\n]*")|`[^`\r\n]*`)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<string>'[^'\r\n]*'|"[^"\r\n]*"|“[^”\r\n]*”|‘[^’\r\n]*’)
      | (?P<sign>===|!==|\*\*|//|\+\+|\+=|-=|=~|&&|\|\||<>|=<|\?:|==|!=|<=|>=|=>|\?\?|\.\.|[^ \t\r\n])
    """,
    re.VERBOSE | re.ASCII,
)
COMPARISONS = frozenset(["<", "<=", ">", ">=", "=="])
_OPENING, _CLOSING = "([{", ")]}"
_OPERANDS = frozenset(["number", "name", "string", "template"])
_VALUES = frozenset(["true", "false", "null", "NULL"])
_LOOSE = frozenset(["AND", "OR", "=>", "NOT", "IF", "THEN", "ELSE", "FOR", "WHERE", "SATISFIES", "LET", "WHEN", "CASE"])
_LOOSE |= frozenset(["END", "BETWEEN", "?", ":", "&&", "||", "&", "|", "!"])
_STOPS = {
    "e": frozenset(["IF", "THEN", "ELSE", "FOR", "WHERE", "SATISFIES", "WHEN", "END", "CASE", "?", ":"]),
    "s": _LOOSE | {"==", "!=", "<", "<=", ">", ">=", "IN", "CONTAINS", "IS", "??"},
}
_STOPS["m"] = _STOPS["s"] | {"+", "-"}


@dataclass(frozen=True, slots=True)
class Piece:
    """One token. An inserted one has the offset of the text that it replaces."""

    text: str
    kind: str
    start: int
    end: int
    is_new: bool = False

    @property
    def ends_value(self) -> bool:
        return (
            self.kind in ("number", "name", "string", "template") or self.text in _VALUES or self.text in tuple(")]}")
        )

    @property
    def starts_value(self) -> bool:
        is_word = self.text in ("NOT", "IF", "LET", "EXISTS", "FORALL", "CASE", "!", "-") or self.text in _VALUES
        return is_word or self.kind in _OPERANDS or self.text in tuple(_OPENING)


def read_pieces(text: str) -> list[Piece]:
    """Return the tokens of a text. Each character that fits no other token is one."""
    found = []
    for match in _PIECE.finditer(text):
        kind = match.lastgroup or "sign"
        kind = "word" if kind == "name" and match[0] in WORDS else kind
        found.append(Piece(match[0], kind, *match.span()))
    return found


def new_piece(text: str, at: Piece) -> Piece:
    """Return a piece that replaces another one."""
    kind = next((each.kind for each in read_pieces(text)), "sign")
    return Piece(text, kind, at.start, at.end, True)


def matching_bracket(pieces: list[Piece], index: int, step: int) -> int | None:
    """Return the index of the bracket that belongs to the bracket at `index`.

    `step` is 1 to search to the right, -1 to the left.
    """
    depth = 0
    while 0 <= index < len(pieces):
        depth += step * ((pieces[index].text in tuple(_OPENING)) - (pieces[index].text in tuple(_CLOSING)))
        if depth == 0:
            return index
        index += step
    return None


def reach_left(pieces: list[Piece], end: int, kind: str) -> int:
    """Return the index at which the operand before `end` starts. Without an operand it is `end`."""
    index = end
    while index > 0 and pieces[index - 1].ends_value | (kind != "o"):
        piece = pieces[index - 1]
        if kind != "o" and (piece.text in (*_OPENING, ",") or _is_operand_end(pieces, index - 1, kind)):
            break
        opened = matching_bracket(pieces, index - 1, -1) if piece.text in tuple(_CLOSING) else index - 1
        if opened is None:
            return end
        index = opened
        if kind == "o":  # `base.name`, `base[…]` and `base(…)` go on to the left
            is_bracket = piece.text in tuple(_CLOSING)
            if index > 0 and pieces[index - 1].text == ".":
                index -= 1
            elif not (
                is_bracket and index > 0 and (pieces[index - 1].kind == "name" or pieces[index - 1].text in ")]")
            ):
                break
    return index


def reach_right(pieces: list[Piece], start: int, kind: str) -> int:
    """Return the index after the operand that starts at `start`. Without an operand it is `start`."""
    index = start
    if kind == "o":
        while index < len(pieces) and pieces[index].text in ("-", "NOT"):
            index += 1
        if index == len(pieces) or not pieces[index].starts_value:
            return start
        if pieces[index].text not in tuple(_OPENING):
            index += 1
        while index < len(pieces) and pieces[index].text in ("(", "[", "{", "."):
            closed = index + 1 if pieces[index].text == "." else matching_bracket(pieces, index, 1)
            if closed is None or (index > start and pieces[index].text == "{"):
                break
            index = closed + 1
        return index
    goes_on = kind == "e" and start < len(pieces) and pieces[start].text in ("IF", "LET", "EXISTS", "FORALL")
    while index < len(pieces) and pieces[index].text not in (*_CLOSING, ","):
        if _is_operand_end(pieces, index, kind) and not goes_on:
            break
        closed = matching_bracket(pieces, index, 1) if pieces[index].text in tuple(_OPENING) else index
        if closed is None:
            return start
        index = closed + 1
    return index


def _is_operand_end(pieces: list[Piece], index: int, kind: str) -> bool:
    """Return whether an operand of this kind ends at a token. A minus after an operator is a part of the operand."""
    text = pieces[index].text
    if text not in _STOPS[kind] and text.upper() not in _STOPS[kind]:
        return False
    return text not in ("-", "NOT", "!") or (index > 0 and pieces[index - 1].ends_value)
