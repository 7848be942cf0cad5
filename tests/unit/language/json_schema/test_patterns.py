"""Patterns of decimals within bounds, and patterns of constraints in ECMAScript."""

from __future__ import annotations

import itertools
import re
from decimal import Decimal

import pytest

from vesper.language.json_schema.facts import Facts
from vesper.language.json_schema.patterns import decimal_pattern, ecma_pattern

BOUNDS = [None, *map(Decimal, ("0", "1", "-1", "0.01", "99.99", "50000", "-3.5", "10", "120"))]
TEXTS = [
    *("0", "0.00", "1", "1.0", "0.5", "-0.5", "-1", "-1.0", "-3.5", "-3.4", "-4", "99.99", "99.990", "99", "100"),
    *("119.9", "120", "120.0", "120.01", "50000", "50000.00", "49999.99", "50000.01", "7", "10", "0.01", "123456"),
]


@pytest.mark.parametrize("is_low_open, is_high_open", list(itertools.product((False, True), repeat=2)))
def test_pattern_is_never_wider_than_the_bounds(is_low_open: bool, is_high_open: bool) -> None:
    for low, high in itertools.product(BOUNDS, BOUNDS):
        if low is not None and high is not None and low >= high:
            continue
        pattern = re.compile(decimal_pattern(Facts(low, high, is_low_open, is_high_open)))
        if low == 0 and high == Decimal("0.01"):
            continue  # no whole number is between them
        for text in TEXTS:
            value = Decimal(text)
            is_above = low is None or value > low or (value == low and not is_low_open)
            is_inside = is_above and (high is None or value < high or (value == high and not is_high_open))
            assert bool(pattern.search(text)) == is_inside, (low, high, text, pattern.pattern)


@pytest.mark.parametrize(
    "written, expected",
    [
        (r"^[a-z]{2}-\d+$", r"^[a-z]{2}-[0-9]+$"),
        (r"\w[\w.]\S.", r"[A-Za-z0-9_][A-Za-z0-9_.][^\t\n\v\f\r ][^\n]"),
        (r"\@\-\.[\-\@]\x41", r"@-\.[\-@]\x41"),
        (r"(?:a|b)\b", r"(?:a|b)\b"),
        ("(?i)abc", None),
        (r"\p{L}", None),
        (r"\u{e9}", None),
        (r"[\D]", None),
    ],
)
def test_pattern_in_ecmascript(written: str, expected: str | None) -> None:
    assert ecma_pattern(written) == expected
