"""Strings: Unicode special cases, limits checked before building, and linear searches."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.waiting import processor_seconds
from vesper.kernels import text
from vesper.kernels.raised import Raised
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import MAX_INTEGER, MIN_INTEGER

WHITE_SPACE = {
    *range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000,
}  # fmt: skip
TEXTS = st.text("ab,\U0001f600é \x1f\u2003", max_size=8)
PARTS = st.text("ab,", max_size=2)
LONGEST = "a" * 10_000_000
TOO_LARGE, INVALID = ErrorCode.TOO_LARGE, ErrorCode.INVALID_ARGUMENT


def result(function: Callable[..., object], *arguments: object) -> object:
    try:
        return function(*arguments)
    except Raised as raised:
        return raised.code


def test_white_space_equals_the_specification() -> None:
    """`make proof-code-points` asks for every code point; the planes above the first have no white space."""
    for number in (*range(0xD800), *range(0xE000, 0x10000), *range(0x10000, 0x110000, 97)):
        character = chr(number)
        trimmed = "" if number in WHITE_SPACE else character
        assert text.trim(character) == text.trim_start(character) == text.trim_end(character) == trimmed
        assert text.words(character) == [trimmed] * len(trimmed)


@given(TEXTS)
def test_words_and_trims(value: str) -> None:
    spaces = "".join(map(chr, WHITE_SPACE))
    assert text.words(value) == [part for part in re.split(f"[{spaces}]", value) if part]
    assert text.trim_start(text.trim_end(value)) == text.trim(value)
    assert text.reverse(text.reverse(value)) == value
    assert "".join(map(text.from_code_point, text.code_points(value))) == value
    assert text.trim_start(value) == text.reverse(text.trim_end(text.reverse(value)))


def from_the_left(value: str, part: str) -> list[str]:
    """Split by hand, one position at a time."""
    found, start, position = [], 0, 0
    while position + len(part) <= len(value):
        if all(value[position + offset] == each for offset, each in enumerate(part)):
            found.append(value[start:position])
            position = start = position + len(part)
        else:
            position += 1
    return [*found, value[start:]]


@given(TEXTS, PARTS, TEXTS)
def test_splitting_joining_and_replacing(value: str, part: str, new: str) -> None:
    if not part:
        assert result(text.split, value, part) == result(text.replace, value, part, new) == INVALID
        assert text.index_of(value, part) == 0
        return
    parts = from_the_left(value, part)
    assert text.split(value, part) == parts
    assert text.join(parts, part) == value
    assert text.replace(value, part, new) == text.join(parts, new)
    assert text.contains(value, part) == (len(parts) > 1)
    assert text.index_of(value, part) == (len(parts[0]) if len(parts) > 1 else None)


@given(
    TEXTS, st.integers(-1, 9) | st.sampled_from([MIN_INTEGER, MAX_INTEGER]), st.integers(-1, 9) | st.just(MAX_INTEGER)
)
def test_positions(value: str, start: int, end: int) -> None:
    inside = [each for index, each in enumerate(value) if start <= index < end]
    assert result(text.slice, value, start, end) == (INVALID if start < 0 or end < 0 else "".join(inside))
    expected = value[start] if 0 <= start < len(value) else ErrorCode.INDEX_OUT_OF_RANGE
    assert result(text.at, value, start) == expected


@given(st.text(max_size=3), st.text(max_size=3))
def test_order_follows_code_points(left: str, right: str) -> None:
    ours, theirs = text.code_points(left), text.code_points(right)
    assert text.less(left, right) == (ours < theirs) == text.greater(right, left)
    assert text.less_or_equal(left, right) == (ours <= theirs) == text.greater_or_equal(right, left)


@pytest.mark.parametrize("number", [MIN_INTEGER, -1, 0xD800, 0xDFFF, 0x110000, MAX_INTEGER])
def test_invalid_code_points_are_rejected(number: int) -> None:
    assert result(text.from_code_point, number) == INVALID


def test_neighbours_of_invalid_code_points_are_accepted() -> None:
    assert [text.code_point(text.from_code_point(n)) for n in (0, 0xD7FF, 0xE000, 0x10FFFF)] == [
        0,
        0xD7FF,
        0xE000,
        0x10FFFF,
    ]


@pytest.mark.parametrize("value", ["", "1\n", "１", "¼", "१", "1.0", "+1", "1 "])
def test_digits_of_other_scripts_are_no_digits(value: str) -> None:
    assert not text.is_digits(value)


@pytest.mark.parametrize(
    "function, arguments, expected",
    [
        (text.repeat, ("", MAX_INTEGER), ""),
        (text.repeat, ("ab", MAX_INTEGER), TOO_LARGE),
        (text.repeat, ("ab", MIN_INTEGER), INVALID),
        (text.repeat, ("ab", 5_000_001), TOO_LARGE),
        (text.pad_start, ("a", MAX_INTEGER, "x"), TOO_LARGE),
        (text.pad_end, ("a", MAX_INTEGER, "xy"), INVALID),
        (text.pad_end, ("abc", MIN_INTEGER, ""), INVALID),
        (text.pad_end, ("abc", MIN_INTEGER, "x"), "abc"),
        (text.pad_start, ("a", 3, "\U0001f600"), "\U0001f600\U0001f600a"),
        (text.concat, (LONGEST, "a"), TOO_LARGE),
        (text.join, ([LONGEST, ""], "a"), TOO_LARGE),
        (text.join, ([LONGEST] * 1000, ""), TOO_LARGE),
        (text.join, ([""] * 1_000_000, "a" * 11), TOO_LARGE),
        (text.replace, (LONGEST, "a", "aa"), TOO_LARGE),
        (text.replace, (LONGEST, "a", LONGEST), TOO_LARGE),
        (text.replace, (LONGEST, "", LONGEST), INVALID),
        (text.split, (LONGEST, "a"), TOO_LARGE),
        (text.split, ("," * 1_000_000, ","), TOO_LARGE),
        (text.code_points, (LONGEST,), TOO_LARGE),
    ],
    ids=range(19),
)
def test_limits_hold_before_anything_is_built(
    function: Callable[..., object], arguments: tuple[object, ...], expected: object
) -> None:
    tracemalloc.start()
    try:
        assert result(function, *arguments) == expected
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_texts_at_the_limits_are_accepted() -> None:
    assert len(text.split("," * 999_999, ",")) == len(text.words("a " * 1_000_000)) == 1_000_000
    assert result(text.words, "a " * 1_000_001) == TOO_LARGE
    assert len(text.repeat("ab", 5_000_000)) == len(text.pad_end("", 10_000_000, " ")) == 10_000_000
    assert len(text.concat(LONGEST, "")) == len(text.replace(LONGEST, "a", "b")) == 10_000_000


def test_searches_with_many_near_matches_are_fast() -> None:
    with processor_seconds(20):
        for size in (50, 5_000, 5_000_000):
            needle = "a" * size + "b"
            assert not text.contains(LONGEST, needle)
            assert text.index_of(LONGEST, needle) is None
            assert text.split(LONGEST, needle) == [LONGEST]
        assert text.trim(" " * 10_000_000) == ""
