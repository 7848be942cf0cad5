"""A sample of `make proof-numbers`."""

from __future__ import annotations

from decimal import Decimal

from tests.proofs.numbers.campaign import expected_power, run
from vesper.engines.registry import ENGINES


def test_functions_and_powers_have_the_text_of_the_oracle() -> None:
    told: list[str] = []
    assert run({name: ENGINES[name] for name in ("python", "interp")}, 150, 7, told.append) == 0, "\n".join(told)
    assert len(told) == 5


def test_the_oracle_rounds_once() -> None:
    # The 35th digit and those behind it decide: 34 digits alone would round a tie.
    assert expected_power(Decimal("1.0000000000000001"), Decimal("2.5"))[:20] == "1.000000000000000250"
