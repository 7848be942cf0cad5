"""A sample of `kill_calls`, and that it can fail."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.proofs.migration.kill_calls import Life, live_and_die


@pytest.mark.parametrize("seed", range(3))
def test_a_kill_loses_no_more_than_the_specification_says(seed: int, tmp_path: Path) -> None:
    assert live_and_die(tmp_path, random.Random(seed)).problems() == []


def test_losses_beyond_the_bound_are_noticed() -> None:
    answered = tuple(float(each) for each in range(20))
    assert Life(20.0, answered, None, 16, 16, 0).problems() == []
    assert len(Life(20.0, answered, None, 14, 16, 0).problems()) == 1, "a missing count"
    assert len(Life(20.0, answered, None, 16, 14, 0).problems()) == 1, "a missing comparison"
    assert len(Life(20.0, answered, None, 22, 16, 0).problems()) == 1, "more than there were"
    assert len(Life(20.0, answered, 14.0, 20, 20, 0).problems()) == 1, "a missing divergence"
    assert Life(20.0, answered, 16.0, 20, 20, 0).problems() == []
