"""The shrinker ends with a smaller input and the same failure."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from tests.support.nodes import PAYMENT_DECISION, compiled
from vesper.verify.shrink.inputs import shrink, simpler_values

NODE = compiled(PAYMENT_DECISION).node
START: dict[str, object] = {
    "amount": Decimal("98765.4321"),
    "balance": Decimal("-123456789.123456789"),
    "currency": "GBP",
    "country": "KP\x00é",
    "user_age_days": 8_765_432,
    "flagged": True,
}


def test_everything_shrinks_to_the_simplest() -> None:
    small = shrink(NODE, START, lambda _: True)
    assert small == {
        "amount": Decimal(0),
        "balance": Decimal(0),
        "currency": "USD",
        "country": "",
        "user_age_days": 0,
    }


def test_shrinking_keeps_what_the_failure_needs() -> None:
    def still_fails(inputs: dict[str, object]) -> bool:
        amount, age = inputs["amount"], inputs["user_age_days"]
        assert isinstance(amount, Decimal)
        assert isinstance(age, int)
        return amount > 1000 and age >= 30 and inputs.get("flagged") is True and len(str(inputs["country"])) == 2

    start = START | {"country": "zz"}
    small = shrink(NODE, start, still_fails)
    assert still_fails(small)
    assert small["amount"] == Decimal(1001)
    assert small["user_age_days"] == 30
    assert small["country"] == "aa"
    assert small["flagged"] is True


def test_needless_places_go() -> None:
    start = START | {"amount": Decimal("100.00")}
    assert str(shrink(NODE, start, lambda inputs: inputs["amount"] == 100)["amount"]) == "100"


OTHERS = [
    math.nan, -math.inf, -1234.5678, date(2024, 2, 29), datetime(2024, 2, 29, 1, 2, 3, 4, UTC), timedelta(-3, 7, 9),
]  # fmt: skip


@pytest.mark.parametrize("start", [b"xyz", 0.5, *OTHERS])
def test_a_value_cannot_get_simpler_for_ever(start: object) -> None:
    seen = [start]
    while (simpler := next(simpler_values(seen[-1]), None)) is not None:
        seen.append(simpler)
        assert len(seen) < 50, seen


@pytest.mark.parametrize("value", [True, -7, 2**63, Decimal("-12.50"), "zebra", None, b"xyz", 0.5, *OTHERS])
def test_a_simpler_value_has_the_same_type(value: object) -> None:
    for simpler in simpler_values(value):
        assert type(simpler) is type(value)
        assert simpler != value or str(simpler) != str(value)
