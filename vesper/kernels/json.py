"""Values of type json: access by path, and conversion to and from other types."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from vesper.kernels.raised import Raised
from vesper.kernels.work import account_content, account_json, count_work
from vesper.values.generated.errors import ErrorCode
from vesper.values.json_forms import json_form, value_of_form
from vesper.values.json_value import MAX_TEXT, Json, depth_of, longest_text, parse_json, text_as_string
from vesper.values.model import ProblemKind, ValueProblem
from vesper.values.outside_names import spelled_pair, to_inside, to_outside
from vesper.values.prices import price_of
from vesper.values.strict_json import MAX_JSON_DEPTH, JsonContent
from vesper.values.types import BYTES, mentions

__all__ = ["Json"]  # generated code names this type

Kind: TypeAlias = Literal["null", "boolean", "number", "string", "array", "object"]

_POSITION = re.compile(r"0|[1-9][0-9]*")
_ESCAPED = re.compile(r"(?:[^~]|~[01])*", re.DOTALL)
_MAX_POSITION_DIGITS = 18


@lru_cache(maxsize=1024)
def json_literal(text: str) -> Json:
    """Return the json of a literal in a node. Cached, because generated code calls it at each use."""
    return parse_json(text)


def equal(left: Json, right: Json) -> bool:
    return left == right


def not_equal(left: Json, right: Json) -> bool:
    return left != right


def kind(value: Json) -> Kind:
    match value.content:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case tuple():
            return "array"
        case dict():
            return "object"
        case _:
            return "number"


class _NoValue(Exception):
    """The path leads to no value."""


def _follow(value: Json, path: str) -> Json:
    content: JsonContent = value.content
    for part in _parts(path):
        if isinstance(content, dict) and part in content:
            content = content[part]
        elif isinstance(content, tuple) and _POSITION.fullmatch(part) and len(part) <= _MAX_POSITION_DIGITS:
            if int(part) >= len(content):
                raise _NoValue
            content = content[int(part)]
        else:
            raise _NoValue
    return Json(content)


def _parts(path: str) -> list[str]:
    """Return the parts of a JSON Pointer, unescaped."""
    if (path and not path.startswith("/")) or _ESCAPED.fullmatch(path) is None:
        raise Raised(ErrorCode.INVALID_ARGUMENT)
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def get(value: Json, path: str) -> Json | None:
    try:
        return _follow(value, path)
    except _NoValue:
        return None


def has(value: Json, path: str) -> bool:
    return get(value, path) is not None


def field(value: Json, key: str) -> Json:
    if not isinstance(value.content, dict):
        raise Raised(ErrorCode.BAD_CAST)
    if key not in value.content:
        raise Raised(ErrorCode.MISSING_KEY)
    return Json(value.content[key])


def item(value: Json, index: int) -> Json:
    if not isinstance(value.content, tuple):
        raise Raised(ErrorCode.BAD_CAST)
    # SEMANTICS: Python counts negative indices from the end; here they are out of range.
    if not 0 <= index < len(value.content):
        raise Raised(ErrorCode.INDEX_OUT_OF_RANGE)
    return Json(value.content[index])


def cast(value: Json, of: str) -> Any:
    """Return the value of the type with this text."""
    type_, spelled = spelled_pair(of)
    try:
        found = value_of_form(spelled, value.content)
    except ValueProblem:
        raise Raised(ErrorCode.BAD_CAST) from None
    found = found if spelled is type_ else to_inside(type_, found)
    price = price_of(type_)
    return found if isinstance(price, int) else account_json(found, price(found))


def from_value(value: Any, of: str) -> Json:
    """Return the JSON form of a value of the type with this text."""
    type_, spelled = spelled_pair(of)
    content = json_form(spelled, value if spelled is type_ else to_outside(type_, value))
    # Only bytes become longer: their base64 may exceed the limit of a string.
    if depth_of(content) > MAX_JSON_DEPTH or (mentions(type_, BYTES) and longest_text(content) > MAX_TEXT):
        raise Raised(ErrorCode.TOO_LARGE)
    return account_content(Json(content))


def parse(value: str) -> Json:
    try:
        return account_content(parse_json(value))
    except ValueProblem as problem:
        is_malformed = problem.kind is ProblemKind.MALFORMED
        raise Raised(ErrorCode.BAD_FORMAT if is_malformed else ErrorCode.TOO_LARGE) from None


def text(value: Json) -> str:
    try:
        return text_as_string(value)
    except ValueProblem:
        raise Raised(ErrorCode.TOO_LARGE) from None


count_work("json", globals())
