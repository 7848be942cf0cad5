"""Forms that evaluate a function for each item, against the simplest equivalent code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from itertools import groupby
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vesper.kernels.runtime import forms

ITEMS = st.lists(st.tuples(st.integers(0, 3), st.integers()), max_size=8)


def key(item: tuple[int, int]) -> int:
    return item[0]


@given(ITEMS)
def test_sort_is_stable_in_both_orders(items: list[tuple[int, int]]) -> None:
    ascending = [item for wanted in range(4) for item in items if item[0] == wanted]
    descending = [item for wanted in reversed(range(4)) for item in items if item[0] == wanted]
    assert forms.sorted_by(key, items, "ascending") == ascending
    assert forms.sorted_by(key, items, "descending") == descending
    assert forms.least_by(key, items) == (ascending[0] if items else None)
    assert forms.greatest_by(key, items) == (descending[0] if items else None)


@given(ITEMS)
def test_groups_keep_the_order_of_the_items(items: list[tuple[int, int]]) -> None:
    expected = {wanted: list(found) for wanted, found in groupby(sorted(items, key=key), key)}
    assert list(forms.grouped_by(key, items).items()) == list(expected.items())
    assert forms.counted_by(key, items) == {wanted: len(found) for wanted, found in expected.items()}
    assert forms.distinct_by(key, items) == [
        item for place, item in enumerate(items) if item[0] not in [other[0] for other in items[:place]]
    ]


def test_enum_members_sort_in_declared_order() -> None:
    words = ["high", "low", "mid", "low"]
    declared = ("low", "mid", "high")
    assert forms.sorted_by(str, words, "ascending", declared) == ["low", "low", "mid", "high"]
    assert list(forms.grouped_by(str, words, declared)) == list(declared)
    assert list(forms.counted_by(str, words, declared).items()) == [("low", 2), ("mid", 1), ("high", 1)]
    assert (forms.least_by(str, words, declared), forms.greatest_by(str, words, declared)) == ("low", "high")


def test_distinct_uses_the_equality_of_the_language() -> None:
    numbers = [Decimal("1.0"), Decimal("1.00"), Decimal(2)]
    assert [str(each) for each in forms.distinct_by(lambda number: [{"a": number}], numbers)] == ["1.0", "2"]


def test_items_are_taken_one_by_one() -> None:
    """A condition of an item is evaluated just before its value, so a generator must not be emptied first."""
    in_order = partial(forms.sorted_by, order="ascending")
    helpers: list[Callable[..., Any]] = [
        in_order, forms.grouped_by, forms.distinct_by, forms.least_by, forms.taken_while,
    ]  # fmt: skip
    for helper in helpers:
        seen: list[str] = []

        def items(seen: list[str] = seen) -> Iterator[int]:
            for number in (1, 2):
                seen.append(f"item {number}")
                yield number

        def value(number: int, seen: list[str] = seen) -> bool:
            seen.append(f"value {number}")
            return True

        helper(value, items())
        assert seen == ["item 1", "value 1", "item 2", "value 2"], helper


def test_early_end_takes_no_more_items() -> None:
    asked: list[int] = []

    def is_small(number: int) -> bool:
        asked.append(number)
        return number < 3

    assert forms.taken_while(is_small, iter([1, 3, 1])) == [1]
    assert forms.dropped_while(is_small, iter([1, 3, 1])) == [3, 1]
    assert asked == [1, 3, 1, 3]


def test_folds() -> None:
    assert forms.fold(lambda state, item: state * 10 + item, [1, 2, 3], 0) == 123
    assert forms.fold_entries(lambda state, word, number: state + len(word) * number, [("ab", 2), ("c", 3)], 1) == 8
