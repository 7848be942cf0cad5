"""Values of type `json`: immutable, and equal as the specification defines.

Outside an execution a json is a plain Python object (docs/spec/values.md). Inside it is a `Json`, because a JSON null
is no null there, `true` is not 1, and `1` and `1.0` are two spellings of one number.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import final

from vesper.values.base_types import is_a
from vesper.values.numbers import decimal_of_integer, decimal_text, normal_decimal
from vesper.values.problem import ProblemKind, ValueProblem
from vesper.values.strict_json import MAX_ENTRIES, MAX_JSON_DEPTH, JsonContent, has_surrogate, read_content

MAX_TEXT = 10_000_000


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
    return _string_encoder()(text)


@cache
def _string_encoder() -> Callable[[str], str]:
    from json.encoder import encode_basestring  # few processes write or read any

    return encode_basestring


def _short_number(number: Decimal) -> str:
    text = decimal_text(number)
    return text.rstrip("0").removesuffix(".") if "." in text else text


def parse_json(text: str) -> Json:
    """Parse one JSON value (RFC 8259), or raise `JsonMistake` for the first mistake."""
    return Json(read_content(text))


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
