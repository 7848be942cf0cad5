"""Maps; in Python, dicts in key order that are never changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from vesper.kernels.order import order_of, place_of
from vesper.kernels.raised import Raised
from vesper.kernels.runtime.equality import are_equal
from vesper.kernels.work import count_work
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import MAX_ENTRIES, Key

_Key = TypeVar("_Key", bound=Key)
_Value = TypeVar("_Value")


def equal(left: Mapping[_Key, _Value], right: Mapping[_Key, _Value]) -> bool:
    return are_equal(left, right)


def not_equal(left: Mapping[_Key, _Value], right: Mapping[_Key, _Value]) -> bool:
    return not are_equal(left, right)


def length(entries: Mapping[_Key, _Value]) -> int:
    return len(entries)


def at(entries: Mapping[_Key, _Value], key: _Key) -> _Value:
    try:
        return entries[key]
    except KeyError:
        raise Raised(ErrorCode.MISSING_KEY) from None


def is_key(key: _Key, entries: Mapping[_Key, _Value]) -> bool:
    return key in entries


def contains(entries: Mapping[_Key, _Value], key: _Key) -> bool:
    return key in entries


def entries_of(entries: Mapping[_Key, _Value]) -> Iterable[tuple[_Key, _Value]]:
    """Return keys and values in key order, since generated code cannot write `.items()`."""
    return entries.items()


def map_of(entries: Iterable[tuple[_Key, _Value]]) -> dict[_Key, _Value]:
    """Return a map from its entries. Keys of an enum are ordered by `map_of_members` instead."""
    found = _unique(entries)
    return {key: found[key] for key in sorted(found, key=place_of)}


def map_of_members(members: tuple[_Key, ...], entries: Iterable[tuple[_Key, _Value]]) -> dict[_Key, _Value]:
    """Return a map whose keys are members of an enum, in the enum's order."""
    found = _unique(entries)
    return {member: found[member] for member in members if member in found}


def _unique(entries: Iterable[tuple[_Key, _Value]]) -> dict[_Key, _Value]:
    found: dict[_Key, _Value] = {}
    for key, value in entries:
        if key in found:
            raise Raised(ErrorCode.DUPLICATE_KEY)
        found[key] = value
    return found


def get(entries: Mapping[_Key, _Value], key: _Key) -> _Value | None:
    return entries.get(key)


def keys(entries: Mapping[_Key, _Value]) -> list[_Key]:
    return list(entries)


def values(entries: Mapping[_Key, _Value]) -> list[_Value]:
    return list(entries.values())


def entries(entries: Mapping[_Key, object]) -> list[Any]:
    return [{"key": key, "value": value} for key, value in entries.items()]


def from_entries(entries: Sequence[Any], declared: Sequence[str] = ()) -> dict[Any, Any]:
    found = _unique((entry["key"], entry["value"]) for entry in entries)
    return {key: found[key] for key in sorted(found, key=order_of(declared))}


def put(entries: Mapping[_Key, _Value], key: _Key, value: _Value, declared: Sequence[str] = ()) -> dict[_Key, _Value]:
    return _merge(entries, {key: value}, declared)


def remove(entries: Mapping[_Key, _Value], key: _Key) -> dict[_Key, _Value]:
    return {each: value for each, value in entries.items() if each != key}


def merge(
    left: Mapping[_Key, _Value], right: Mapping[_Key, _Value], declared: Sequence[str] = ()
) -> dict[_Key, _Value]:
    return _merge(left, right, declared)


def _merge(left: Mapping[_Key, _Value], right: Mapping[_Key, _Value], declared: Sequence[str]) -> dict[_Key, _Value]:
    added = sum(key not in left for key in right)
    if len(left) + added > MAX_ENTRIES:
        raise Raised(ErrorCode.TOO_LARGE)
    both = {**left, **right}
    return {key: both[key] for key in sorted(both, key=order_of(declared))} if added else both


count_work("map", globals())
