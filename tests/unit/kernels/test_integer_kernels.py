"""Integers against Python's unbounded ones, and bounded time."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.kernels import integer
from vesper.kernels.raised import Raised
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import MAX_INTEGER, MIN_INTEGER

EDGES = st.sampled_from([MIN_INTEGER, MIN_INTEGER + 1, -2, -1, 0, 1, 2, MAX_INTEGER - 1, MAX_INTEGER])
INTEGERS = st.integers(MIN_INTEGER, MAX_INTEGER) | st.integers(-20, 20) | EDGES
NON_ZERO = INTEGERS.filter(bool)
HUGE = 9_000_000


def result(function: Callable[..., object], *arguments: object) -> object:
    """Return a kernel's result, or the code of its failure."""
    try:
        return function(*arguments)
    except Raised as raised:
        return raised.code


def bits(number: int) -> str:
    """Return the 64 bits of the two's complement."""
    return format(number + 2**64 if number < 0 else number, "064b")


def from_bits(text: str) -> int:
    number = int(text, 2)
    return number - 2**64 if text[0] == "1" else number


def fitting(number: int) -> object:
    return number if MIN_INTEGER <= number <= MAX_INTEGER else ErrorCode.INTEGER_OVERFLOW


@given(INTEGERS, NON_ZERO)
def test_quotients_round_as_specified(left: int, right: int) -> None:
    exact = Fraction(left, right)
    assert result(integer.quot, left, right) == fitting(int(exact))
    assert result(integer.div_floor, left, right) == fitting(exact.numerator // exact.denominator)


@given(INTEGERS, NON_ZERO)
def test_remainders_complete_the_quotients(left: int, right: int) -> None:
    rem, mod = integer.rem(left, right), integer.mod(left, right)
    assert left == right * int(Fraction(left, right)) + rem
    assert (left - mod) % right == 0
    assert rem == 0 or (rem < 0) == (left < 0)
    assert mod == 0 or (mod < 0) == (right < 0)
    assert abs(rem) < abs(right)
    assert abs(mod) < abs(right)


@pytest.mark.parametrize("name", ["divide", "quot", "rem", "div_floor", "mod"])
def test_division_by_zero_fails(name: str) -> None:
    assert result(getattr(integer, name), MIN_INTEGER, 0) == ErrorCode.DIVISION_BY_ZERO


@given(INTEGERS, INTEGERS)
def test_bit_operations_use_the_complement(left: int, right: int) -> None:
    pairs = list(zip(bits(left), bits(right), strict=True))
    assert integer.bit_and(left, right) == from_bits("".join("01"[a == b == "1"] for a, b in pairs))
    assert integer.bit_or(left, right) == from_bits("".join("01"["1" in (a, b)] for a, b in pairs))
    assert integer.bit_xor(left, right) == from_bits("".join("01"[a != b] for a, b in pairs))
    assert integer.bit_not(left) == from_bits("".join("01"[a == "0"] for a in bits(left)))
    assert integer.bit_count(left) == bits(left).count("1")


@given(INTEGERS, st.integers(-2, 66) | INTEGERS)
def test_shifts_multiply_and_divide(value: int, count: int) -> None:
    if not 0 <= count <= 63:
        assert result(integer.shift_left, value, count) == ErrorCode.INVALID_ARGUMENT
        assert result(integer.shift_right, value, count) == ErrorCode.INVALID_ARGUMENT
        return
    assert result(integer.shift_left, value, count) == fitting(value * 2**count)
    assert integer.shift_right(value, count) == value // 2**count


@given(INTEGERS, st.integers(-2, 70) | st.sampled_from([MIN_INTEGER, MAX_INTEGER - 1, MAX_INTEGER]))
def test_powers(base: int, exponent: int) -> None:
    if exponent < 0:
        expected: object = ErrorCode.INVALID_ARGUMENT
    elif exponent <= 70:
        expected = fitting(base**exponent)
    elif abs(base) > 1:
        expected = ErrorCode.INTEGER_OVERFLOW
    else:
        expected = base if exponent % 2 else abs(base)
    assert result(integer.pow, base, exponent) == expected


@given(INTEGERS)
def test_text_round_trips(value: int) -> None:
    assert integer.parse(integer.text(value)) == value
    assert integer.sign(value) * value == abs(value)
    assert result(integer.abs, value) == fitting(abs(value))


@pytest.mark.parametrize(
    "text", ["", "+", "-", "+-1", "--1", "1 ", "1\n", "0x1", "1.0", "1e3", "१", "1_0", "٣", "\u22121"]
)
def test_only_signs_and_ascii_digits_are_parsed(text: str) -> None:
    assert result(integer.parse, text) == ErrorCode.BAD_FORMAT


@pytest.mark.parametrize(
    "text, expected",
    [
        ("-0", 0),
        ("+9223372036854775807", MAX_INTEGER),
        ("-9223372036854775808", MIN_INTEGER),
        ("-9223372036854775809", ErrorCode.INTEGER_OVERFLOW),
        ("9" * HUGE, ErrorCode.INTEGER_OVERFLOW),
        ("-" + "0" * HUGE + "7", -7),
        ("1" * HUGE + "x", ErrorCode.BAD_FORMAT),
    ],
    ids=range(7),
)
def test_texts_of_any_length_are_parsed(text: str, expected: object) -> None:
    assert result(integer.parse, text) == expected


def test_integer_quotient_may_exceed_64_bits() -> None:
    assert integer.divide(MIN_INTEGER, -1) == Decimal(2**63)
    assert str(integer.divide(0, -5)) == "0"
    assert str(integer.divide(MAX_INTEGER, 3)) == "3074457345618258602.333333333333333"
