"""`df.vesper.run`: a node on every row of a DataFrame."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pytest

import vesper
import vesper.integrations.pandas
import vesper.integrations.polars
from tests.unit.api.given import NODES

COLUMNS: dict[str, list[Any]] = {
    "id": [2**53 + 1, 2],
    "amount": [Decimal("50.00"), Decimal("0.00")],
    "balance": [Decimal("100.00"), Decimal("100.00")],
    "currency": ["USD", "EUR"],
    "country": ["DE", "FR"],
    "user_age_days": [400, 3],
}


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_a_frame_runs_a_node(library: Any) -> None:
    frame = library.DataFrame(COLUMNS)
    node = vesper.load("payment_decision", nodes=NODES)
    answer = frame.vesper.run("payment_decision", nodes=NODES, keep=["id"])
    assert type(answer) is library.DataFrame
    assert list(answer.columns) == ["id", "decision", "fee", "risk", "new_balance", "error"]
    assert (answer["id"][0], answer["fee"][0]) == (2**53 + 1, Decimal("1.75000"))
    assert answer["error"][1]["code"] == "precondition"
    assert frame.vesper.run(node, keep=["id"], decimals="text")["fee"][0] == "1.75000"
    with pytest.raises(vesper.BatchError, match="id"):
        frame.vesper.run(node)
