"""Sums are exact, and measures say what they cannot be."""

from __future__ import annotations

from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.journalled import compiled_node, node_text
from vesper.changes.backtest.measures import BadMeasure, ExactSum, MeasureReader, digits_text


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=None) | st.integers()), st.integers(0, 3))
def test_sums_are_exact_in_any_order(values: list[Decimal | int], parts: int) -> None:
    sums = [ExactSum() for _ in range(parts + 1)]
    for at, value in enumerate(values):
        sums[at % len(sums)].add(value)
    total = ExactSum()
    for each in sums:
        total.merge(each)
    with localcontext() as context:
        context.prec = 20_000
        context.Emax, context.Emin = 999_999, -999_999
        assert Decimal(total.digits).scaleb(-total.scale) == sum(values, Decimal(0))


@pytest.mark.parametrize(
    "number, scale, text", [(0, 0, "0"), (-5, 2, "-0.05"), (12345, 2, "123.45"), (1, 3, "0.001"), (-12, 0, "-12")]
)
def test_texts_of_sums(number: int, scale: int, text: str) -> None:
    assert digits_text(number, scale) == text


@pytest.mark.parametrize(
    "options, message",
    [
        ({"by": ["nothing"]}, "named `nothing`"),
        ({"sums": ["customer"]}, "--sum `customer` is string: exact sums are of integers and decimals"),
        ({"where": "amount"}, "--where `amount` is no condition"),
    ],
)
def test_measures_that_cannot_be(options: dict[str, list[str]], message: str) -> None:
    one, other = compiled_node(node_text()), compiled_node(node_text("charge_v2"))
    with pytest.raises(BadMeasure, match=message):
        MeasureReader(one, other).measures(**options)  # type: ignore[arg-type]


def test_a_field_of_one_version_is_measured_there() -> None:
    one = compiled_node(node_text())
    other = compiled_node(
        node_text("charge_v2")
        .replace("known: integer}", "known: integer, more: integer}")
        .replace("known: known}", "known: known, more: 1}")
    )
    (measure,) = MeasureReader(one, other).measures(sums=["more"]).sums
    assert measure.before is None
    assert measure.after is not None
