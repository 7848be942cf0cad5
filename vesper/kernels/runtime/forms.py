"""Forms that evaluate a function for each item: sorting, grouping, folding.

Each takes the function first and the items after it, like Python's `map`. Items may come from a generator: the next one
is taken only after the function was called for the previous one, so that conditions and values are evaluated in the
order of the specification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import dropwhile, takewhile
from typing import Any, TypeVar

from vesper.kernels.order import order_of
from vesper.kernels.runtime.equality import hashable
from vesper.values.model import Key

_Item = TypeVar("_Item")
_Key = TypeVar("_Key", bound=Key)
_State = TypeVar("_State")


def sorted_by(
    key: Callable[[_Item], Any], items: Iterable[_Item], order: str, declared: Sequence[str] = ()
) -> list[_Item]:
    """Sort items by key, stable in both orders. Python's reversed sort keeps equal items in order."""
    keyed = _pair_with_keys(key, items, declared)
    keyed.sort(key=lambda pair: pair[0], reverse=order == "descending")
    return [item for _, item in keyed]


def least_by(key: Callable[[_Item], Any], items: Iterable[_Item], declared: Sequence[str] = ()) -> _Item | None:
    """Return the first of the items with the least key."""
    keyed = _pair_with_keys(key, items, declared)
    return min(keyed, key=lambda pair: pair[0])[1] if keyed else None


def greatest_by(key: Callable[[_Item], Any], items: Iterable[_Item], declared: Sequence[str] = ()) -> _Item | None:
    """Return the first of the items with the greatest key."""
    keyed = _pair_with_keys(key, items, declared)
    return max(keyed, key=lambda pair: pair[0])[1] if keyed else None


def _pair_with_keys(
    key: Callable[[_Item], Any], items: Iterable[_Item], declared: Sequence[str]
) -> list[tuple[Any, _Item]]:
    place = order_of(declared)
    return [(place(key(item)), item) for item in items]


def distinct_by(key: Callable[[_Item], object], items: Iterable[_Item]) -> list[_Item]:
    """Return the first item of each distinct key."""
    firsts: dict[object, _Item] = {}
    for item in items:
        firsts.setdefault(hashable(key(item)), item)
    return list(firsts.values())


def grouped_by(
    key: Callable[[_Item], _Key], items: Iterable[_Item], declared: Sequence[str] = ()
) -> dict[_Key, list[_Item]]:
    """Return the items by key, in key order."""
    groups: dict[_Key, list[_Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return {each: groups[each] for each in sorted(groups, key=order_of(declared))}


def counted_by(key: Callable[[_Item], _Key], items: Iterable[_Item], declared: Sequence[str] = ()) -> dict[_Key, int]:
    """Return the number of items by key, in key order."""
    return {each: len(group) for each, group in grouped_by(key, items, declared).items()}


def taken_while(condition: Callable[[_Item], bool], items: Iterable[_Item]) -> list[_Item]:
    return list(takewhile(condition, items))


def dropped_while(condition: Callable[[_Item], bool], items: Iterable[_Item]) -> list[_Item]:
    return list(dropwhile(condition, items))


def fold(function: Callable[[_State, _Item], _State], items: Iterable[_Item], initial: _State) -> _State:
    state = initial
    for item in items:
        state = function(state, item)
    return state


def fold_entries(
    function: Callable[[_State, Any, Any], _State], entries: Iterable[tuple[Any, Any]], initial: _State
) -> _State:
    """Fold over the keys and values of a map."""
    state = initial
    for key, value in entries:
        state = function(state, key, value)
    return state
