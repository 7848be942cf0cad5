"""Reading of JSON text (RFC 8259), as json contents and as inputs.

The decoder of Python's `json` reads text of usual form. A text that it refuses, or reads in another way than the
specification, is read by `_Parser`, which describes the first mistake.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, final

from vesper.values.json_mistake import (
    JsonMistake,
    malformed_json,
    number_mistake,
    show_token,
    token_mistake,
    unexpected_token,
)
from vesper.values.numbers import EXACT_CONTEXT, MAX_DIGITS, parse_decimal
from vesper.values.problem import ProblemKind, ValueProblem

if TYPE_CHECKING:
    from json import JSONDecoder

MAX_JSON_DEPTH = 128
MAX_TEXT_DEPTH = 256
"""Depth of a text of inputs: the inputs, types of 32 levels, of which a map has two, and a json of 128."""
MAX_ENTRIES = 1_000_000

JsonContent: TypeAlias = "bool | Decimal | str | tuple[JsonContent, ...] | dict[str, JsonContent] | None"
"""Content of a json. INVARIANT: the dicts are never changed; their keys are in code-point order."""


@final
class MinusZero(int):
    """The integer read from `-0`. As a float it is the negative zero, which a plain `int` cannot express."""


@dataclass(frozen=True, slots=True)
class _Target:
    """The objects that a text is read into, and its limits."""

    max_depth: int
    max_entries: int | None
    number: Callable[[str], object]
    """Raises `ValueProblem` for a number beyond the limits."""
    make_array: Callable[[list[Any]], object]
    make_object: Callable[[dict[str, Any]], object]


def read_content(text: str) -> JsonContent:
    """Return the content of a json, or raise `JsonMistake`."""
    content: JsonContent = _read(text, _CONTENT)
    return content


def forms_of_json(text: str) -> Any:
    """Return plain objects for a JSON text, or raise `JsonMistake`.

    A number without fraction and exponent is an int, any other a Decimal: an integer accepts 1000 and not 1e3, and a
    decimal keeps the places of the text. Numbers beyond every limit stay beyond it, and are no exact values.
    """
    return _read(text, _FORMS)


def _sort_entries(entries: dict[str, Any]) -> dict[str, Any]:
    return {key: entries[key] for key in sorted(entries)}


def _number_form(text: str) -> int | Decimal:
    digits = text.lstrip("-")
    if digits.isdigit():
        if len(digits) <= MAX_DIGITS:
            return MinusZero() if text == "-0" else int(text)
        # SAFETY: Python reads long integers in quadratic time. Any integer of this length is out of range.
        beyond = int.from_bytes(text.encode())
        return -beyond if text.startswith("-") else beyond
    try:
        return Decimal(text, EXACT_CONTEXT)
    except InvalidOperation:  # an exponent that `decimal` itself does not hold
        mantissa, _, exponent = text.lower().partition("e")
        return Decimal(f"{mantissa}e{'-' if exponent.startswith('-') else ''}{_BEYOND_EXPONENT}", EXACT_CONTEXT)


_BEYOND_EXPONENT = 10**15
_CONTENT = _Target(MAX_JSON_DEPTH, MAX_ENTRIES, parse_decimal, tuple, _sort_entries)
_FORMS = _Target(MAX_TEXT_DEPTH, None, _number_form, list, dict)


# -- text of usual form ---------------------------------------------------------------------------

_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_TO_BRACKET = re.compile(r'[^"\[\]{}]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\[\]{}]*+)*+([\[\]{}])', re.DOTALL)


class _Unusual(ValueError):
    """Raised for a text that `_Parser` must read."""


def has_surrogate(text: str) -> bool:
    return _SURROGATE.search(text) is not None


def _read(text: str, target: _Target) -> Any:
    if _is_deep(text, target.max_depth) or has_surrogate(text):
        return _Parser(text, target).document()
    try:
        found = _decoder(target is _CONTENT).decode(text)
    except (ValueError, ValueProblem):
        return _Parser(text, target).document()
    if _SURROGATE_ESCAPE.search(text) is not None and _holds_surrogate(found):
        return _Parser(text, target).document()
    if target is _FORMS:
        return found
    try:
        return _freeze(found)
    except _Unusual:
        return _Parser(text, target).document()


def _is_deep(text: str, limit: int) -> bool:
    """Return whether the text passes the depth. Stops there, because a text may be a million brackets."""
    if text.count("[") + text.count("{") <= limit:
        return False
    depth = 0
    for match in _TO_BRACKET.finditer(text):
        if match[1] in "[{":
            depth += 1
            if depth > limit:
                return True
        else:
            depth -= 1
    return False


@cache
def _decoder(is_content: bool) -> JSONDecoder:
    import json  # few processes read any

    number: Callable[[str], Any] = parse_decimal if is_content else _number_form
    return json.JSONDecoder(
        parse_float=number,
        parse_int=number,
        parse_constant=_refuse,
        object_pairs_hook=_sorted_entries if is_content else _entries,
    )


def _refuse(word: str) -> NoReturn:
    raise _Unusual(word)


def _entries(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Unusual
    return found


def _sorted_entries(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MAX_ENTRIES:
        raise _Unusual
    return _sort_entries(_entries(pairs))


def _holds_surrogate(found: Any) -> bool:
    if isinstance(found, str):
        return has_surrogate(found)
    if isinstance(found, list):
        return any(map(_holds_surrogate, found))
    return isinstance(found, dict) and (any(map(has_surrogate, found)) or any(map(_holds_surrogate, found.values())))


def _freeze(found: Any) -> JsonContent:
    """Return the content with tuples for lists."""
    if isinstance(found, list):
        if len(found) > MAX_ENTRIES:
            raise _Unusual
        return tuple(map(_freeze, found))
    return {key: _freeze(each) for key, each in found.items()} if isinstance(found, dict) else found


# -- any text -------------------------------------------------------------------------------------

_SPACE = re.compile(r"[ \t\n\r]*")
JSON_TOKEN = re.compile(
    r"""(?x)(?P<string>"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+")
      | (?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<word>true|false|null)
      | (?P<sign>[\[\]{},:])"""
)
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}


class _Parser:
    """Iterative parser. It stops at the first problem of a text."""

    def __init__(self, text: str, target: _Target) -> None:
        self._text = text
        self._target = target
        self._start = 0
        """Offset of the token read last."""
        self._position = 0

    def document(self) -> Any:
        value = self._value()
        space = _SPACE.match(self._text, self._position)
        assert space is not None
        if space.end() < len(self._text):
            raise unexpected_token(self._text, space.end(), "the end of the text")
        return value

    def _mistake_of_token(self, what: str) -> JsonMistake:
        """Return the mistake for the token read last."""
        return unexpected_token(self._text, self._start, what)

    def _next(self) -> tuple[str, str] | None:
        """Return kind and text of the next token; None at the end."""
        space = _SPACE.match(self._text, self._position)
        assert space is not None
        self._start = self._position = space.end()
        if self._position == len(self._text):
            return None
        match = JSON_TOKEN.match(self._text, self._position)
        if match is None:
            raise token_mistake(self._text, self._position)
        self._position = match.end()
        return str(match.lastgroup), match[0]

    def _value(self) -> Any:
        open_collections: list[list[Any] | dict[str, Any]] = []
        keys: list[str] = []
        token = self._next()
        while True:
            kind, text = token or ("", "")
            if kind == "sign" and text in "[{":
                open_collections.append([] if text == "[" else {})
                if len(open_collections) > self._target.max_depth:
                    what = f"nested deeper than {self._target.max_depth} levels"
                    raise JsonMistake(ProblemKind.TOO_DEEP, self._start, what)
                token = self._next()
                if token != ("sign", "]" if text == "[" else "}"):
                    if text == "{":
                        keys.append(self._key(token, open_collections[-1]))
                        token = self._next()
                    continue
                value = self._close(open_collections)
            else:
                value = self._scalar(kind, text)
            # A complete value is the result, or belongs to the innermost collection, which may end with it.
            while open_collections:
                inner = open_collections[-1]
                if isinstance(inner, list):
                    inner.append(value)
                else:
                    inner[keys.pop()] = value
                token = self._next()
                if token != ("sign", "]" if isinstance(inner, list) else "}"):
                    break
                value = self._close(open_collections)
            if not open_collections:
                return value
            if token != ("sign", ","):
                raise self._mistake_of_token("`,` or `]`" if isinstance(open_collections[-1], list) else "`,` or `}`")
            token = self._next()
            if isinstance(open_collections[-1], dict):
                keys.append(self._key(token, open_collections[-1]))
                token = self._next()

    def _key(self, token: tuple[str, str] | None, inner: list[Any] | dict[str, Any]) -> str:
        if token is None or token[0] != "string":
            raise self._mistake_of_token("a name in double quotes")
        start = self._start
        key = _string(token[1], start)
        if key in inner:
            raise malformed_json(start, f"the name {show_token(self._text, start)} occurs twice in one object")
        if self._next() != ("sign", ":"):
            raise self._mistake_of_token("`:` after the name")
        return key

    def _scalar(self, kind: str, text: str) -> object:
        match kind:
            case "string":
                return _string(text, self._start)
            case "word":
                return _WORDS[text]
            case "number":
                try:
                    return self._target.number(text)
                except ValueProblem:
                    raise number_mistake(text, self._start) from None
            case _:
                raise self._mistake_of_token("a value")

    def _close(self, open_collections: list[list[Any] | dict[str, Any]]) -> object:
        inner, limit = open_collections.pop(), self._target.max_entries
        if limit is not None and len(inner) > limit:
            what = f"this closes a collection with more than {limit:,} entries"
            raise JsonMistake(ProblemKind.OUT_OF_RANGE, self._start, what)
        return self._target.make_array(inner) if isinstance(inner, list) else self._target.make_object(inner)


def _string(token: str, offset: int) -> str:
    import json

    text: str = json.loads(token)  # the token is valid; this only decodes escapes
    if has_surrogate(text):
        raise malformed_json(offset, "a string with one half of a surrogate pair, which no text has")
    return text
