"""The first field in which two requests differ, and both requests as texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from vesper.engines.differing_values import is_alike
from vesper.engines.engine import Request
from vesper.language.ir.nodes import Literal, Node
from vesper.values.json_value import Json
from vesper.values.model import printable, show
from vesper.verify.differential.python_forms import field_names

_MISSING = object()
_MAX_CHARS = 400
"""Characters of one value in the text of a request. The journal has the whole value."""
Names: TypeAlias = frozenset[str]


@dataclass(frozen=True, slots=True)
class Place:
    """The first field that differs, with both values. A value is `_MISSING` where its request lacks the field."""

    where: str
    left: object
    right: object


def names_in(node: Node) -> Names:
    """Return the field names and text literals in the source of a node.

    A key outside this set may be data, so a path shows its position instead.
    """
    expressions = list(node.expressions())
    texts = {each.value for each in expressions if isinstance(each, Literal) and isinstance(each.value, str)}
    return field_names(each.type for each in expressions) | texts


def first_place(left: Mapping[str, object], right: Mapping[str, object], names: Names) -> Place | None:
    """Return the first argument, or the first field inside it, that differs."""
    for name in (*left, *(each for each in right if each not in left)):
        one, other = left.get(name, _MISSING), right.get(name, _MISSING)
        if not is_alike(one, other):
            return _inside(one, other, name, names)
    return None


def _inside(left: object, right: object, at: str, names: Names) -> Place:
    left, right = _content(left), _content(right)
    if isinstance(left, dict) and isinstance(right, dict):
        for number, key in enumerate((*left, *(each for each in right if each not in left))):
            one, other = left.get(key, _MISSING), right.get(key, _MISSING)
            if not is_alike(one, other):
                # A key that the source does not contain is a value, and a place must not hold one.
                return _inside(one, other, f"{at}.{key}" if key in names else f"{at}[{number}]", names)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        for number in range(max(len(left), len(right))):
            one, other = (each[number] if number < len(each) else _MISSING for each in (left, right))
            if not is_alike(one, other):
                return _inside(one, other, f"{at}[{number}]", names)
    return Place(at, left, right)


def request_texts(leader: Request | None, follower: Request | None, place: Place | None) -> tuple[str, str]:
    """Return both requests as texts with values, one line per part. The field that differs is last."""
    ends = (_MISSING, _MISSING) if place is None else (place.left, place.right)
    where = "" if place is None else place.where
    one, other = (_request_text(each, where, end) for each, end in zip((leader, follower), ends, strict=True))
    return one, other


def request_kind(request: Request | None) -> str:
    """Return a text about the request, without its values."""
    return "asks for nothing" if request is None else f"asks for {request.path} ({request.effect})"


def _request_text(request: Request | None, where: str, end: object) -> str:
    lines = [request_kind(request)]
    if request is not None:
        named = {**request.fixed, **request.arguments}
        lines += [] if request.key is None else [f"key = {_cut(request.key)}"]
        lines += [f"{printable(name)} = {_cut(value)}" for name, value in named.items()]
        if where not in named and where != "key" and end is not _MISSING:
            lines.append(f"{printable(where)} = {_cut(end)}")
    return "\n".join(lines)


def _content(value: object) -> object:
    return value.content if isinstance(value, Json) else value


def _cut(value: object) -> str:
    # Content of a json is no value; `Json` shows it.
    text = show(Json(value)) if isinstance(value, tuple) else show(value)
    return text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS - 1]}…"
