"""What is wrong with a text that is no JSON, and where: for the person who wrote it.

The reader in `json_value.py` finds the place. What stands there, in words, is told here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from vesper.values.problem import ProblemKind, ValueProblem


class TextPlace(NamedTuple):
    """A place in a text as editors count: both from 1, the column in code points."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


def place_at(text: str, offset: int) -> TextPlace:
    return TextPlace(text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1)


class JsonMistake(ValueProblem):
    """Why a text is no JSON value."""

    def __init__(self, kind: ProblemKind, offset: int, what: str) -> None:
        super().__init__(kind)
        self.offset = offset
        """Where in the text, in code points from 0."""
        self.what = what

    def __str__(self) -> str:
        return self.what


def malformed(offset: int, what: str) -> JsonMistake:
    return JsonMistake(ProblemKind.MALFORMED, offset, what)


# -- what stands there ----------------------------------------------------------------------------

_LONGEST = 30
_STRING_SO_FAR = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+')
_WORD = re.compile(r"[-+.]*\w[\w.+-]*")
_OTHER_SPELLINGS = {"True": "true", "False": "false", "None": "null", "undefined": "null", "nil": "null"}
_NO_NUMBERS = ("NaN", "Infinity", "-Infinity", "+Infinity", "nan", "inf", "-inf")


def no_token(text: str, offset: int) -> JsonMistake:
    """The mistake at a place where nothing begins that JSON knows."""
    character = text[offset]
    if character == '"':
        return _no_string(text, offset)
    if character == "'":
        return malformed(offset, "a string stands in double quotes, not in single ones")
    if text.startswith(("//", "/*"), offset) or character == "#":
        return malformed(offset, "JSON has no comments")
    if character == "\ufeff":
        return malformed(offset, "a byte order mark, which JSON text must not have")
    if character == "." and text[offset - 1 : offset].isdigit():
        return malformed(offset, "a number with a point and no digit behind it")
    word = _WORD.match(text, offset)
    if word is None:
        return malformed(offset, f"{shown(text, offset)} does not belong here")
    if word[0] in _NO_NUMBERS:
        return malformed(offset, f'`{word[0]}` is no JSON number; a float that is none is a string, "NaN"')
    if word[0] in _OTHER_SPELLINGS:
        return malformed(offset, f"`{word[0]}` is no JSON; write `{_OTHER_SPELLINGS[word[0]]}`")
    if word[0].lstrip("-+.")[0].isdigit():
        return malformed(offset, f"{_cut(word[0])} is no JSON number")
    return malformed(offset, f"{_cut(word[0])} is no JSON; names and strings stand in double quotes")


def _no_string(text: str, offset: int) -> JsonMistake:
    good = _STRING_SO_FAR.match(text, offset)
    assert good is not None  # it begins with a quote
    end = good.end()
    if end == len(text):
        return malformed(offset, "a string begins here that has no end")
    if text[end] == "\\":
        if end + 1 == len(text):
            return malformed(offset, "a string begins here that has no end")
        escape = text[end : end + (6 if text[end + 1] == "u" else 2)]
        return malformed(end, f"`{_visible(escape)}` is no escape in a JSON string")
    return malformed(end, f"{shown(text, end)} must be written as an escape inside a string, such as `\\n`")


def no_number(token: str, offset: int) -> JsonMistake:
    """The mistake of a number that JSON allows and Vesper has no room for."""
    return malformed(offset, f"the number {_cut(token)}, written out, has more than 1,000 digits or decimal places")


def not_expected(text: str, offset: int, expected: str) -> JsonMistake:
    """The mistake of something that JSON knows in the wrong place, or of a text that ends too soon."""
    if offset >= len(text):
        return malformed(offset, f"expected {expected}, but the text ends here")
    before = text[:offset].rstrip(" \t\n\r")
    if text[offset] in "]}" and before.endswith(","):
        return malformed(len(before) - 1, f"a comma behind which nothing comes but `{text[offset]}`")
    if text[offset].isdigit() and before.endswith(("0", "-0")) and len(before) == offset:
        return malformed(offset - 1, "a number with a zero in front")
    return malformed(offset, f"expected {expected}, found {shown(text, offset)}")


_TOKEN_START = re.compile(r'(?s)"[^"\n]*"?|[\w.+-]+|.')


def shown(text: str, offset: int) -> str:
    """What begins there, short enough for a message and without anything that a terminal would obey."""
    found = _TOKEN_START.match(text, offset)
    assert found is not None  # an offset before the end
    return _cut(found[0])


def _cut(token: str) -> str:
    return f"`{_visible(token if len(token) <= _LONGEST else token[: _LONGEST - 1] + '…')}`"


def _visible(token: str) -> str:
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in token)
