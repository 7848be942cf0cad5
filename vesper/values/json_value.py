"""Values of type `json`: immutable, and equal as the specification defines.

Outside an execution a json is a plain Python object (docs/spec/values.md). Inside it is a `Json`, because a JSON null
is no null there, `true` is not 1, and `1` and `1.0` are two spellings of one number.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias, final

from vesper.values.base_types import is_a
from vesper.values.json_mistake import (
    JsonMistake,
    malformed_json,
    number_mistake,
    show_token,
    token_mistake,
    unexpected_token,
)
from vesper.values.numbers import decimal_of_integer, decimal_text, normal_decimal, parse_decimal
from vesper.values.problem import ProblemKind, ValueProblem

MAX_JSON_DEPTH = 128
MAX_ENTRIES = 1_000_000
MAX_TEXT = 10_000_000

JsonContent: TypeAlias = "bool | Decimal | str | tuple[JsonContent, ...] | dict[str, JsonContent] | None"
"""Content of a json. INVARIANT: the dicts are never changed; their keys are in code-point order."""


@final
class Json:
    """A value of type `json`."""

    __slots__ = ("content",)

    def __init__(self, content: JsonContent) -> None:
        self.content: JsonContent = content

    def __eq__(self, other: object) -> bool:
        # Canonical texts are equal exactly for equal values: numbers lose trailing zeros, keys are sorted.
        return isinstance(other, Json) and canonical_text(self) == canonical_text(other)

    def __hash__(self) -> int:
        return hash(canonical_text(self))

    def __repr__(self) -> str:
        return f"Json({exact_text(self)!r})"


# -- text -----------------------------------------------------------------------------------------


def canonical_text(value: Json) -> str:
    """Return canonical JSON: equal values have equal texts."""
    return _text(value.content, _short_number)


def text_as_string(value: Json) -> str:
    """Return canonical JSON as a string value, or raise `ValueProblem` over the limit of strings."""
    # Measured before it is built, each shared part once, because a small value may have an enormous text.
    if _length(value.content, {}) > MAX_TEXT:
        raise ValueProblem(ProblemKind.OUT_OF_RANGE)
    return canonical_text(value)


def _length(content: JsonContent, known: dict[int, int]) -> int:
    """Return the length of the canonical text; `known` holds lengths of parts by identity."""
    if not isinstance(content, tuple | dict):
        return len(_text(content, _short_number))
    if id(content) not in known:
        # Brackets and commas, and a colon after each key.
        length = 1 + max(1, len(content))
        if isinstance(content, dict):
            length += sum(len(json_string(key)) + 1 + _length(item, known) for key, item in content.items())
        else:
            length += sum(_length(item, known) for item in content)
        known[id(content)] = length
    return known[id(content)]


def exact_text(value: Json) -> str:
    """Return JSON in which numbers keep their places. Used for literals of the IR and for display."""
    return _text(value.content, decimal_text)


def _text(content: JsonContent, number: Callable[[Decimal], str]) -> str:
    match content:
        case None:
            return "null"
        case bool():
            return "true" if content else "false"
        case Decimal():
            return number(content)
        case str():
            return json_string(content)
        case tuple():
            return f"[{','.join([_text(item, number) for item in content])}]"
        case dict():
            return "{" + ",".join([f"{json_string(key)}:{_text(item, number)}" for key, item in content.items()]) + "}"


def json_string(text: str) -> str:
    """Return a string in canonical JSON."""
    import json  # few processes write or read any

    return json.dumps(text, ensure_ascii=False)


def _short_number(number: Decimal) -> str:
    text = decimal_text(number)
    return text.rstrip("0").removesuffix(".") if "." in text else text


# -- reading text ---------------------------------------------------------------------------------

_SPACE = re.compile(r"[ \t\n\r]*")
JSON_TOKEN = re.compile(
    r"""(?x)(?P<string>"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+")
      | (?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<word>true|false|null)
      | (?P<sign>[\[\]{},:])"""
)
_WORDS: dict[str, JsonContent] = {"true": True, "false": False, "null": None}


def parse_json(text: str) -> Json:
    """Parse one JSON value (RFC 8259), or raise `JsonMistake`.

    Malformed text is reported as such even where it is also too deep or too large.
    """
    return Json(_Parser(text).document())


class _Parser:
    """Iterative parser. A text beyond the depth limit must still be read to its end, since it may be malformed."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._start = 0
        """Offset of the token read last."""
        self._position = 0
        self._problem: JsonMistake | None = None

    def document(self) -> JsonContent:
        value = self._value()
        space = _SPACE.match(self._text, self._position)
        assert space is not None
        if space.end() < len(self._text):
            raise unexpected_token(self._text, space.end(), "the end of the text")
        if self._problem is not None:
            raise self._problem
        return value

    def _expected(self, what: str) -> JsonMistake:
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

    def _value(self) -> JsonContent:
        open_collections: list[list[JsonContent] | dict[str, JsonContent]] = []
        keys: list[str] = []
        token = self._next()
        while True:
            kind, text = token or ("", "")
            if kind == "sign" and text in "[{":
                open_collections.append([] if text == "[" else {})
                if len(open_collections) > MAX_JSON_DEPTH:
                    what = f"nested deeper than {MAX_JSON_DEPTH} levels"
                    self._problem = self._problem or JsonMistake(ProblemKind.TOO_DEEP, self._start, what)
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
                raise self._expected("`,` or `]`" if isinstance(open_collections[-1], list) else "`,` or `}`")
            token = self._next()
            if isinstance(open_collections[-1], dict):
                keys.append(self._key(token, open_collections[-1]))
                token = self._next()

    def _key(self, token: tuple[str, str] | None, inner: list[JsonContent] | dict[str, JsonContent]) -> str:
        if token is None or token[0] != "string":
            raise self._expected("a name in double quotes")
        start = self._start
        key = _string(token[1], start)
        if key in inner:
            raise malformed_json(start, f"the name {show_token(self._text, start)} occurs twice in one object")
        if self._next() != ("sign", ":"):
            raise self._expected("`:` after the name")
        return key

    def _scalar(self, kind: str, text: str) -> JsonContent:
        match kind:
            case "string":
                return _string(text, self._start)
            case "word":
                return _WORDS[text]
            case "number":
                try:
                    return parse_decimal(text)
                except ValueProblem:
                    raise number_mistake(text, self._start) from None
            case _:
                raise self._expected("a value")

    def _close(self, open_collections: list[list[JsonContent] | dict[str, JsonContent]]) -> JsonContent:
        inner = open_collections.pop()
        if len(inner) > MAX_ENTRIES:
            what = f"this closes a collection with more than {MAX_ENTRIES:,} entries"
            self._problem = self._problem or JsonMistake(ProblemKind.OUT_OF_RANGE, self._start, what)
        return tuple(inner) if isinstance(inner, list) else {key: inner[key] for key in sorted(inner)}


def _string(token: str, offset: int) -> str:
    import json

    text: str = json.loads(token)  # the token is valid; this only decodes escapes
    if has_surrogate(text):
        raise malformed_json(offset, "a string with one half of a surrogate pair, which no text has")
    return text


_SURROGATE = re.compile("[\ud800-\udfff]")


def has_surrogate(text: str) -> bool:
    return _SURROGATE.search(text) is not None


# -- plain Python objects -------------------------------------------------------------------------


def plain_json(value: Json) -> object:
    """Return new plain objects for a json, as docs/spec/values.md defines them."""
    return _plain(value.content)


def _plain(content: JsonContent) -> object:
    match content:
        case bool() | None | str():
            return content
        case Decimal():
            return int(content) if content.as_tuple().exponent == 0 else content
        case tuple():
            return [_plain(item) for item in content]
        case dict():
            return {key: _plain(item) for key, item in content.items()}


def json_of(given: object) -> Json:
    """Return the json for a caller's object. Of several problems the first of the specification's list is raised."""
    reader = _PlainReader()
    content = reader.read(given, 0)
    if reader.problems:
        raise ValueProblem(min(reader.problems, key=list(ProblemKind).index))
    return Json(content)


class _PlainReader:
    """Reads objects through the functions of the base types. SAFETY: no overridden method is called."""

    def __init__(self) -> None:
        self.problems: set[ProblemKind] = set()
        self._around: set[int] = set()
        """Enclosing collections by identity, to detect one that contains itself."""

    def read(self, given: object, depth: int) -> JsonContent:
        if given is None or given is True or given is False:
            return given
        try:
            if is_a(given, str):
                return _checked_string(str.__str__(given))
            if is_a(given, int):
                return decimal_of_integer(int.__int__(given))
            if is_a(given, Decimal):
                return normal_decimal(given)
            if is_a(given, float):
                return _number_of_float(float.__float__(given))
            return self._collection(given, depth + 1)
        except ValueProblem as problem:
            self.problems.add(problem.kind)
            return None

    def _collection(self, given: object, depth: int) -> JsonContent:
        if is_a(given, list):
            size = list.__len__(given)
        elif is_a(given, tuple):
            size = tuple.__len__(given)
        elif is_a(given, dict):
            size = dict.__len__(given)
        else:
            raise ValueProblem(ProblemKind.WRONG_TYPE)
        if size > MAX_ENTRIES:
            raise ValueProblem(ProblemKind.OUT_OF_RANGE)
        if depth > MAX_JSON_DEPTH or id(given) in self._around:
            raise ValueProblem(ProblemKind.TOO_DEEP)
        self._around.add(id(given))
        try:
            if is_a(given, dict):
                return self._object(dict(dict.items(given)), depth)
            if is_a(given, list):
                return tuple([self.read(item, depth) for item in list.__iter__(given)])
            assert is_a(given, tuple)
            return tuple([self.read(item, depth) for item in tuple.__iter__(given)])
        finally:
            self._around.discard(id(given))

    def _object(self, given: dict[object, object], depth: int) -> JsonContent:
        found: dict[str, JsonContent] = {}
        for key, item in given.items():
            if not is_a(key, str):
                self.problems.add(ProblemKind.WRONG_TYPE)
                continue
            plain = str.__str__(key)
            if has_surrogate(plain):
                self.problems.add(ProblemKind.MALFORMED)
            elif plain in found:  # two keys of str subclasses with the same text
                self.problems.add(ProblemKind.DUPLICATE)
            found[plain] = self.read(item, depth)
        return {key: found[key] for key in sorted(found)}


def _checked_string(text: str) -> str:
    if len(text) > MAX_TEXT:
        raise ValueProblem(ProblemKind.OUT_OF_RANGE)
    if has_surrogate(text):
        raise ValueProblem(ProblemKind.MALFORMED)
    return text


def _number_of_float(number: float) -> Decimal:
    """Return the number of a float's shortest text, as a JSON encoder writes it."""
    return normal_decimal(Decimal(repr(number)))


def depth_of(content: JsonContent) -> int:
    """Return the nesting depth: 0 for a scalar, 1 for an empty array."""
    known: dict[int, int] = {}
    """Depths by identity. Shared parts are visited once, since a value doubled forty times would never end."""

    def depth(part: JsonContent) -> int:
        if not isinstance(part, tuple | dict):
            return 0
        if id(part) not in known:
            inner = part.values() if isinstance(part, dict) else part
            known[id(part)] = 1 + max(map(depth, inner), default=0)
        return known[id(part)]

    return depth(content)


def longest_text(content: JsonContent) -> int:
    """Return the length of the longest string in it, keys included."""
    seen: set[int] = set()
    longest = 0
    waiting = [content]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            longest = max(longest, len(part))
        elif isinstance(part, tuple | dict) and id(part) not in seen:
            seen.add(id(part))
            if isinstance(part, dict):
                longest = max(longest, *map(len, part)) if part else longest
            waiting += part.values() if isinstance(part, dict) else part
    return longest
