"""Copies of a call's inputs for later, because the caller may change its objects after the call.

The copier is compiled per node from its input types, because it runs within each sampled call: immutable values are not
copied, and a list of flat records is copied in one comprehension.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from vesper.language.ir import nodes as ir
from vesper.values.period import Period
from vesper.values.types import JSON, ArrayOf, MapOf, OptionalOf, Record, SetOf, Type

Snapshot: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
_FIXED = frozenset({str, int, bool, float, Decimal, bytes, datetime, date, timedelta, time, Period, type(None)})


class UncopyableInput(TypeError):
    """An object of an unknown type; the call is not sampled."""


def snapshot_of(node: ir.Node) -> Snapshot:
    """Return a function that copies the inputs of a call."""
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
    """Return whether every value in a snapshot is immutable, so that it cannot have changed."""
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
    """Copy a set, which holds immutable values only; callers may also pass a list."""
    if type(value) not in (set, frozenset, list, tuple):
        raise UncopyableInput(type(value).__name__)
    return type(value)(value)


def _of_items(copy: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def items(value: Any) -> Any:
        if type(value) is not list and type(value) is not tuple:
            raise UncopyableInput(type(value).__name__)
        return [*value] if copy is _same else [*map(copy, value)]

    def records(value: Any) -> Any:
        if type(value) is not list and type(value) is not tuple:
            raise UncopyableInput(type(value).__name__)
        try:
            return [*map(dict.copy, value)]  # no Python code per item
        except TypeError as problem:
            raise UncopyableInput(str(problem)) from None

    return records if copy is _of_dict else items


def _of_values(copy: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def values(value: Any) -> Any:
        if type(value) is not dict:
            raise UncopyableInput(type(value).__name__)
        return value.copy() if copy is _same else {key: copy(each) for key, each in value.items()}

    return values


def _of_record(inner: Mapping[str, Callable[[Any], Any]]) -> Callable[[Any], Any]:
    if not inner:
        return _of_dict

    def record(value: Any) -> Any:
        if type(value) is not dict:
            raise UncopyableInput(type(value).__name__)
        found = value.copy()
        for name, copy in inner.items():
            if name in found:
                found[name] = copy(found[name])
        return found

    return record


def _of_dict(value: Any) -> Any:
    """Copy a record of immutable values. `dict.copy` rejects other types and accepts subclasses."""
    try:
        return dict.copy(value)
    except TypeError:
        raise UncopyableInput(type(value).__name__) from None


def _of_json(value: Any) -> Any:
    if type(value) is dict:
        return {key: _of_json(each) for key, each in value.items()}
    if type(value) is list or type(value) is tuple:
        return [*map(_of_json, value)]
    return value
