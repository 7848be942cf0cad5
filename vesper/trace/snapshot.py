"""What an execution was given, kept for later: the caller may change its objects as soon as the call is over.

Compiled for each node from the types of its inputs, because it stands in the way of every call that is sampled: what
cannot change is not copied, a list of records of such is copied in one comprehension.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from vesper.language.ir import nodes as ir
from vesper.values.types import JSON, ArrayOf, MapOf, OptionalOf, Record, SetOf, Type

Snapshot: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
_FIXED = frozenset({str, int, bool, float, Decimal, bytes, datetime, date, timedelta, type(None)})


class Unplain(TypeError):
    """An object that nobody here knows how to copy: the call is not kept."""


def snapshot_of(node: ir.Node) -> Snapshot:
    """A function from the inputs of a call to inputs that nobody else has."""
    parts = {each.name: _copier(each.type) for each in node.inputs}
    inner = {name: each for name, each in parts.items() if each is not _same}
    if not inner:
        return dict.copy

    def snapshot(inputs: dict[str, Any]) -> dict[str, Any]:
        found = dict.copy(inputs)
        for name, copy in inner.items():
            if name in found:
                found[name] = copy(found[name])
        return found

    return snapshot


def is_fixed(value: object) -> bool:
    """True where everything in a snapshot is known not to change: an object of the caller's own could."""
    match value:
        case dict():
            return all(map(is_fixed, value.keys())) and all(map(is_fixed, value.values()))
        case list() | tuple() | set() | frozenset():
            return all(map(is_fixed, value))
        case _:
            return type(value) in _FIXED


def _same(value: Any) -> Any:
    return value


def _copier(type_: Type) -> Callable[[Any], Any]:
    match type_:
        case OptionalOf(inner):
            copy = _copier(inner)
            return _same if copy is _same else lambda value: None if value is None else copy(value)
        case ArrayOf(element):
            return _of_items(_copier(element))
        case SetOf():
            return _of_set
        case MapOf(_, element):
            return _of_values(_copier(element))
        case Record(fields):
            copiers = {name: _copier(each) for name, each in fields}
            return _of_record({name: each for name, each in copiers.items() if each is not _same})
        case _:
            return _of_json if type_ == JSON else _same


def _of_set(value: Any) -> Any:
    """What a set holds cannot change, or it would not be in one; a caller may give it as a list."""
    if type(value) not in (set, frozenset, list, tuple):
        raise Unplain(type(value).__name__)
    return type(value)(value)


def _of_items(copy: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def items(value: Any) -> Any:
        if type(value) is not list and type(value) is not tuple:
            raise Unplain(type(value).__name__)
        return [*value] if copy is _same else [*map(copy, value)]

    def records(value: Any) -> Any:
        if type(value) is not list and type(value) is not tuple:
            raise Unplain(type(value).__name__)
        try:
            return [*map(dict.copy, value)]  # nothing of Python for each
        except TypeError as problem:
            raise Unplain(str(problem)) from None

    return records if copy is _of_dict else items


def _of_values(copy: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def values(value: Any) -> Any:
        if type(value) is not dict:
            raise Unplain(type(value).__name__)
        return value.copy() if copy is _same else {key: copy(each) for key, each in value.items()}

    return values


def _of_record(inner: Mapping[str, Callable[[Any], Any]]) -> Callable[[Any], Any]:
    if not inner:
        return _of_dict

    def record(value: Any) -> Any:
        if type(value) is not dict:
            raise Unplain(type(value).__name__)
        found = value.copy()
        for name, copy in inner.items():
            if name in found:
                found[name] = copy(found[name])
        return found

    return record


def _of_dict(value: Any) -> Any:
    """A record of what cannot change. `dict.copy` refuses what is no dict, and gives a dict of its subclasses."""
    try:
        return dict.copy(value)
    except TypeError:
        raise Unplain(type(value).__name__) from None


def _of_json(value: Any) -> Any:
    if type(value) is dict:
        return {key: _of_json(each) for key, each in value.items()}
    if type(value) is list or type(value) is tuple:
        return [*map(_of_json, value)]
    return value
