"""A small part of `make proof-backtest`: 2,000 runs of each node against the oracle."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proofs.backtest.campaign import prove
from tests.proofs.backtest.payments import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_counts_equal_the_oracle(kind: str, tmp_path: Path) -> None:
    found = prove(kind, 2_000, tmp_path)
    assert found["problems"] == []
    assert found["runs"] == 2_000
    assert found["changed"] > 0
