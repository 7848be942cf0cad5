"""What the proof of costs would say if something were wrong, and a few nodes of it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from tests.proofs.agents.costs import Charged, exceeded, is_right, run
from vesper.engines.model_cost import Cost


def test_an_amount_over_its_bound_is_named() -> None:
    most = Cost(Decimal(2), Decimal(100), Decimal(10), Decimal("0.5"))
    assert exceeded(Charged(2, 100, 10, Decimal("0.5")), most) == []
    over = exceeded(Charged(3, 101, 11, Decimal("0.51")), most)
    assert [each.partition(":")[0] for each in over] == ["requests", "input_tokens", "output_tokens", "usd"]
    right = {"wrong": [], "bounded": 1, "largest_share_of_bound": 0.4}
    assert is_right(right)
    for name, value in (("wrong", over), ("bounded", 0), ("largest_share_of_bound", 0)):
        assert not is_right({**right, name: value})


def test_random_agents_spend_at_most_what_was_computed(tmp_path: Path) -> None:
    assert is_right(run(tmp_path, 8, 11))
