"""Rounded decimals against fractions; scales, limits, contexts of the host, and time."""

from __future__ import annotations

import decimal as host
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.waiting import processor_seconds
from vesper.kernels import decimal
from vesper.kernels.raised import Raised
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import MAX_INTEGER, MIN_INTEGER, decimal_text

MODES = ["half_even", "half_up", "half_down", "up", "down", "floor", "ceiling"]
OVERFLOW = ErrorCode.DECIMAL_OVERFLOW
ROUNDING_HOST = host.Context(prec=2, rounding=host.ROUND_UP, Emin=-3, Emax=3, traps=[])


def number(coefficient: int, scale: int) -> Decimal:
    return Decimal((int(coefficient < 0), tuple(map(int, str(abs(coefficient)))), -scale))


DECIMALS = st.builds(
    number,
    st.integers(-(10**50), 10**50) | st.integers(-999, 999) | st.integers(0, 60).map(lambda n: 10**n),
    st.integers(0, 45),
)
EDGES = st.sampled_from(
    [Decimal(text) for text in ("0", "0E-1000", "1E-1000", "-1E-1000", "9" * 1000, "-" + "9" * 1000, "1" + "0" * 999)]
)
ANY = DECIMALS | EDGES


@pytest.fixture(params=["exact", "rounding"], autouse=True)
def _context(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test under the context of generated code, and under one that would change every result."""
    with host.localcontext(decimal.EXACT if request.param == "exact" else ROUNDING_HOST):
        yield


def result(function: Callable[..., object], *arguments: object) -> object:
    """Return a kernel's result, a decimal as text, or the code of its failure."""
    try:
        found = function(*arguments)
    except Raised as raised:
        return raised.code
    return decimal_text(found) if isinstance(found, Decimal) else found


def within_limits(coefficient: int, scale: int) -> object:
    """Return the text of a decimal, or overflow; a negative scale is written out."""
    if scale < 0:
        coefficient, scale = coefficient * 10**-scale, 0
    digits = str(abs(coefficient))
    if len(digits) > 1000 or scale > 1000:
        return OVERFLOW
    padded = digits.rjust(scale + 1, "0")
    sign = "-" if coefficient < 0 else ""
    return sign + (f"{padded[:-scale]}.{padded[-scale:]}" if scale else padded)


def rounded(exact: Fraction, mode: str) -> int:
    """Return the correctly rounded number: the oracle of the rounding modes."""
    below, above = math.floor(exact), math.ceil(exact)
    toward_zero, away = (below, above) if exact > 0 else (above, below)
    distance = abs(exact - toward_zero)
    nearest = toward_zero if distance < Fraction(1, 2) else away
    is_tie = distance == Fraction(1, 2)
    return {
        "floor": below,
        "ceiling": above,
        "down": toward_zero,
        "up": away,
        "half_up": nearest,
        "half_down": toward_zero if is_tie else nearest,
        "half_even": (below if below % 2 == 0 else above) if is_tie else nearest,
    }[mode]


def magnitude(exact: Fraction) -> int:
    """Return the position of the first digit: 0 for 1 to 9."""
    size = abs(exact)
    guess = len(str(size.numerator)) - len(str(size.denominator))
    return guess if size >= Fraction(10) ** guess else guess - 1


def holds(exact: Fraction, scale: int) -> bool:
    return (exact * Fraction(10) ** scale).denominator == 1


def in_34_digits(exact: Fraction, wanted: int) -> object:
    """Apply the rule of division and powers from numbers.md to the exact value."""
    last = 33 - magnitude(exact)  # the scale with 34 digits
    if not holds(exact, last):
        coefficient = rounded(exact * Fraction(10) ** last, "half_even")
        if abs(coefficient) == 10**34:  # rounded up to the next power of ten, still 34 digits
            coefficient, last = coefficient // 10, last - 1
        return within_limits(coefficient, last)
    scale = next((each for each in range(wanted, last + 1) if holds(exact, each)), max(last, 0))
    return within_limits(int(exact * Fraction(10) ** scale), scale)


@given(ANY, ANY.filter(bool))
def test_division_follows_the_specification(left: Decimal, right: Decimal) -> None:
    wanted = max(decimal.scale(left) - decimal.scale(right), 0)
    expected = in_34_digits(Fraction(left) / Fraction(right), wanted) if left else within_limits(0, wanted)
    assert result(decimal.divide, left, right) == expected


@pytest.mark.parametrize(
    "left, right, expected",
    [
        ("1." + "0" * 40, "1", "1." + "0" * 33),
        ("1" + "0" * 40 + ".00", "1", "1" + "0" * 40),
        ("1" + "0" * 999, "3", "3" * 34 + "0" * 965),
        ("0E-1000", "7", "0." + "0" * 1000),
        ("0.00", "-7.000", "0"),
        ("1", "1E-1000", OVERFLOW),
        ("1E-1000", "10", OVERFLOW),
        ("9" * 34 + "5", "10", "1" + "0" * 34),
    ],
)
def test_division_at_the_edges(left: str, right: str, expected: object) -> None:
    assert result(decimal.divide, Decimal(left), Decimal(right)) == expected


@pytest.mark.parametrize("mode", MODES)
@given(left=ANY, right=ANY.filter(bool), scale=st.integers(0, 60) | st.sampled_from([999, 1000]))
def test_div_rounds_once(mode: str, left: Decimal, right: Decimal, scale: int) -> None:
    units = Fraction(left) / Fraction(right) * 10**scale
    assert result(decimal.div, left, right, scale, mode) == within_limits(rounded(units, mode), scale)


@pytest.mark.parametrize("mode", MODES)
@given(value=ANY, scale=st.integers(-60, 60) | st.sampled_from([-1000, -999, 999, 1000]))
def test_round_rounds_once(mode: str, value: Decimal, scale: int) -> None:
    units = rounded(Fraction(value) * Fraction(10) ** scale, mode)
    assert result(decimal.round, value, scale, mode) == within_limits(units, scale)


def test_invalid_arguments_are_rejected_in_declared_order() -> None:
    zero = Decimal(0)
    assert result(decimal.div, zero, zero, 1001, "up") == ErrorCode.INVALID_ARGUMENT
    assert result(decimal.div, zero, zero, -1, "up") == ErrorCode.INVALID_ARGUMENT
    assert result(decimal.div, zero, zero, 1000, "up") == ErrorCode.DIVISION_BY_ZERO
    assert result(decimal.round, zero, -1001, "up") == ErrorCode.INVALID_ARGUMENT
    assert result(decimal.round, zero, MIN_INTEGER, "up") == ErrorCode.INVALID_ARGUMENT
    assert result(decimal.to_integer, Decimal("1" + "0" * 30 + ".5")) == ErrorCode.NOT_WHOLE
    assert result(decimal.pow, zero, MIN_INTEGER) == ErrorCode.DIVISION_BY_ZERO


@given(ANY)
def test_conversion_to_integers(value: Decimal) -> None:
    exact = Fraction(value)
    for function, expected in ((decimal.floor, math.floor), (decimal.ceil, math.ceil), (decimal.trunc, math.trunc)):
        whole = expected(exact)
        fits = MIN_INTEGER <= whole <= MAX_INTEGER
        assert result(function, value) == (whole if fits else ErrorCode.INTEGER_OVERFLOW)
        if exact.denominator == 1:
            assert result(decimal.to_integer, value) == result(function, value)
    if exact.denominator != 1:
        assert result(decimal.to_integer, value) == ErrorCode.NOT_WHOLE


@given(ANY)
def test_scale_and_normalize(value: Decimal) -> None:
    short = decimal.normalize(value)
    assert Fraction(short) == Fraction(value)
    assert decimal.scale(short) == 0 or decimal.text(short)[-1] != "0"
    assert 0 <= decimal.scale(short) <= decimal.scale(value)
    assert decimal.text(decimal.parse(decimal.text(value))) == decimal.text(value)
    assert Fraction(decimal.abs(value)) == abs(Fraction(value)) == decimal.sign(value) * Fraction(value)
    assert decimal.scale(decimal.abs(value)) == decimal.scale(value)


def test_zero_is_unsigned() -> None:
    minus = Decimal("-0.00")
    found = [decimal.text(minus), *(result(decimal.round, minus, 1, mode) for mode in MODES)]
    found += [result(function, minus) for function in (decimal.abs, decimal.normalize)]
    found += [result(decimal.round, Decimal("-0.4"), 0, "half_even"), result(decimal.div, minus, Decimal(3), 2, "up")]
    found += [result(decimal.divide, minus, Decimal(3)), result(decimal.pow, minus, 3)]
    found += [decimal_text(part) for part in decimal.allocate(minus, [Decimal(1)])]
    found += [decimal_text(part) for part in decimal.allocate(Decimal("-0.01"), [Decimal(1), Decimal(2)])]
    assert [text for text in found if str(text).startswith("-")] == ["-0.01"]


# -- powers ---------------------------------------------------------------------------------------


@given(DECIMALS | st.builds(number, st.integers(-30, 30), st.integers(0, 3)), st.integers(-45, 45))
def test_powers_follow_the_specification(base: Decimal, exponent: int) -> None:
    if base == 0 or exponent == 0:
        expected = within_limits(0, decimal.scale(base) * exponent) if exponent > 0 else "1"
        expected = expected if exponent >= 0 else ErrorCode.DIVISION_BY_ZERO
    elif exponent > 0:
        expected = in_34_digits(Fraction(base) ** exponent, decimal.scale(base) * exponent)
    else:
        expected = in_34_digits(1 / Fraction(base) ** -exponent, 0)
    assert result(decimal.pow, base, exponent) == expected


@pytest.mark.parametrize(
    "base, exponent, expected",
    [
        ("1", 1_000_000, "1"),
        ("1", 1_000_001, OVERFLOW),
        ("0", 1_000_001, OVERFLOW),
        ("1", MIN_INTEGER, OVERFLOW),
        ("10", 500_001, OVERFLOW),
        ("0.0", 1000, "0." + "0" * 1000),
        ("0.0", 1001, OVERFLOW),
        ("1.0", 2000, "1." + "0" * 33),
        ("10", 999, "1" + "0" * 999),
        ("10", 1000, OVERFLOW),
        ("10", -1000, "0." + "0" * 999 + "1"),
        ("10", -1001, OVERFLOW),
        ("0.1", -999, "1" + "0" * 999),
        ("0.1", -1000, OVERFLOW),
        ("-0.1", 1000, "0." + "0" * 999 + "1"),
        ("1E-1000", 1, "0." + "0" * 999 + "1"),
        ("1E-1000", -1, OVERFLOW),
        ("1E-1000", MAX_INTEGER, OVERFLOW),
    ],
)
def test_powers_at_the_edges(base: str, exponent: int, expected: object) -> None:
    assert result(decimal.pow, Decimal(base), exponent) == expected


@pytest.mark.parametrize("base", ["0.5", "0.9", "1.1", "9", "1." + "0" * 996 + "123", "9" * 1000, "0." + "9" * 1000])
@pytest.mark.parametrize("sign", [1, -1])
def test_longest_powers_are_fast(base: str, sign: int) -> None:
    digits = len(base.replace(".", "").lstrip("0"))
    with processor_seconds(5):
        result(decimal.pow, Decimal(base), sign * (1_000_000 // digits))
        assert result(decimal.pow, Decimal(base), sign * MAX_INTEGER) == OVERFLOW


# -- parsing and allocation -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, expected",
    [
        ("+1.", "1"),
        ("0E+9", "0"),
        ("0E-1000", "0." + "0" * 1000),
        ("0E-1001", OVERFLOW),
        ("-0", "0"),
        ("", ErrorCode.BAD_FORMAT),
        (".", ErrorCode.BAD_FORMAT),
        ("1e", ErrorCode.BAD_FORMAT),
        ("1\n", ErrorCode.BAD_FORMAT),
        ("Infinity", ErrorCode.BAD_FORMAT),
        ("١", ErrorCode.BAD_FORMAT),
        ("1E+999999999999999999999", OVERFLOW),
        ("1E-999999999999999999999", OVERFLOW),
        ("0E+999999999999999999999", "0"),
        ("9" * 9_000_000, OVERFLOW),
        ("0" * 9_000_000 + "1", "1"),
        ("1E" + "9" * 9_000_000, OVERFLOW),
        ("1" * 9_000_000 + "x", ErrorCode.BAD_FORMAT),
    ],
    ids=range(18),
)
def test_texts_of_any_length_are_parsed(text: str, expected: object) -> None:
    with processor_seconds(10):
        assert result(decimal.parse, text) == expected


@given(ANY, st.lists(st.builds(number, st.integers(0, 10**30) | st.integers(0, 3), st.integers(0, 20)), min_size=1))
def test_allocation_adds_up_and_is_fair(total: Decimal, weights: list[Decimal]) -> None:
    if not any(weights):
        assert result(decimal.allocate, total, weights) == ErrorCode.INVALID_ARGUMENT
        return
    found = decimal.allocate(total, weights)
    unit = Fraction(1, 10 ** decimal.scale(total))
    assert sum(map(Fraction, found)) == Fraction(total)
    assert {decimal.scale(part) for part in found} == {decimal.scale(total)}
    fair = [abs(Fraction(total)) * Fraction(weight) / sum(map(Fraction, weights)) / unit for weight in weights]
    extra = [abs(Fraction(part)) / unit - math.floor(share) for part, share in zip(found, fair, strict=True)]
    assert set(extra) <= {0, 1}
    ranked = sorted(range(len(fair)), key=lambda index: (math.floor(fair[index]) - fair[index], index))
    assert [extra[index] for index in ranked] == sorted(extra, reverse=True)


def test_invalid_weights_are_rejected() -> None:
    for weights in ([], ["0", "0.00"], ["1", "-1"], ["-1"]):
        assert result(decimal.allocate, Decimal(1), [Decimal(text) for text in weights]) == ErrorCode.INVALID_ARGUMENT


def test_many_long_weights_are_fast() -> None:
    with processor_seconds(5):
        parts = decimal.allocate(Decimal("9" * 1000), [Decimal("9" * 1000), Decimal("1E-1000")] * 500)
    assert sum(map(int, parts)) == int("9" * 1000)
