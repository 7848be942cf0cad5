"""Descriptions of syntax errors in JSON text, with their position.

The parser in `json_value.py` finds the position; this module describes the text there.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from vesper.values.problem import ProblemKind, ValueProblem


class TextPlace(NamedTuple):
    """A position as editors count it: both from 1, the column in code points."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


def place_at(text: str, offset: int) -> TextPlace:
    """Return the line and column of an offset."""
    return TextPlace(text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1)


class JsonMistake(ValueProblem):
    """The reason why a text is no JSON value."""

    def __init__(self, kind: ProblemKind, offset: int, what: str) -> None:
        super().__init__(kind)
        self.offset = offset
        """Offset in the text, in code points from 0."""
        self.what = what

    def __str__(self) -> str:
        return self.what


def malformed_json(offset: int, what: str) -> JsonMistake:
    """Return a mistake of the kind `malformed`."""
    return JsonMistake(ProblemKind.MALFORMED, offset, what)


# -- descriptions of tokens -----------------------------------------------------------------------

_MAX_SHOWN_CODE_POINTS = 30
_STRING_SO_FAR = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+')
_WORD = re.compile(r"[-+.]*\w[\w.+-]*")
_OTHER_SPELLINGS = {"True": "true", "False": "false", "None": "null", "undefined": "null", "nil": "null"}
_NON_NUMBERS = ("NaN", "Infinity", "-Infinity", "+Infinity", "nan", "inf", "-inf")


def token_mistake(text: str, offset: int) -> JsonMistake:
    """Return the mistake where no JSON token begins."""
    character = text[offset]
    if character == '"':
        return _string_mistake(text, offset)
    if character == "'":
        return malformed_json(offset, "a string needs double quotes, not single ones")
    if text.startswith(("//", "/*"), offset) or character == "#":
        return malformed_json(offset, "JSON has no comments")
    if character == "\ufeff":
        return malformed_json(offset, "a byte order mark, which JSON text must not have")
    if character == "." and text[offset - 1 : offset].isdigit():
        return malformed_json(offset, "a number with a point and no digit after it")
    word = _WORD.match(text, offset)
    if word is None:
        return malformed_json(offset, f"{show_token(text, offset)} does not belong here")
    if word[0] in _NON_NUMBERS:
        return malformed_json(offset, f'`{word[0]}` is no JSON number; a float that is none is a string, "NaN"')
    if word[0] in _OTHER_SPELLINGS:
        return malformed_json(offset, f"`{word[0]}` is no JSON; write `{_OTHER_SPELLINGS[word[0]]}`")
    if word[0].lstrip("-+.")[0].isdigit():
        return malformed_json(offset, f"{_cut(word[0])} is no JSON number")
    return malformed_json(offset, f"{_cut(word[0])} is no JSON; names and strings need double quotes")


def _string_mistake(text: str, offset: int) -> JsonMistake:
    good = _STRING_SO_FAR.match(text, offset)
    assert good is not None  # it begins with a quote
    end = good.end()
    if end == len(text):
        return malformed_json(offset, "a string begins here that has no end")
    if text[end] == "\\":
        if end + 1 == len(text):
            return malformed_json(offset, "a string begins here that has no end")
        escape = text[end : end + (6 if text[end + 1] == "u" else 2)]
        return malformed_json(end, f"`{_visible(escape)}` is no escape in a JSON string")
    return malformed_json(end, f"{show_token(text, end)} must be written as an escape inside a string, such as `\\n`")


def number_mistake(token: str, offset: int) -> JsonMistake:
    """Return the mistake of a number that is valid JSON and exceeds Vesper's limits."""
    return malformed_json(
        offset, f"the number {_cut(token)}, written out, has more than 1,000 digits or decimal places"
    )


def unexpected_token(text: str, offset: int, expected: str) -> JsonMistake:
    """Return the mistake of a misplaced token, or of a text that ends too soon."""
    if offset >= len(text):
        return malformed_json(offset, f"expected {expected}, but the text ends here")
    before = text[:offset].rstrip(" \t\n\r")
    if text[offset] in "]}" and before.endswith(","):
        return malformed_json(len(before) - 1, f"a trailing comma before `{text[offset]}`")
    if text[offset].isdigit() and before.endswith(("0", "-0")) and len(before) == offset:
        return malformed_json(offset - 1, "a number with a leading zero")
    return malformed_json(offset, f"expected {expected}, found {show_token(text, offset)}")


_TOKEN_START = re.compile(r'(?s)"[^"\n]*"?|[\w.+-]+|.')


def show_token(text: str, offset: int) -> str:
    """Return the token at the offset, shortened for a message and without control characters."""
    found = _TOKEN_START.match(text, offset)
    assert found is not None  # an offset before the end
    return _cut(found[0])


def _cut(token: str) -> str:
    return f"`{_visible(token if len(token) <= _MAX_SHOWN_CODE_POINTS else token[: _MAX_SHOWN_CODE_POINTS - 1] + '…')}`"


def _visible(token: str) -> str:
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in token)
