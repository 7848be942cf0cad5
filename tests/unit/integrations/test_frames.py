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


def test_a_lazy_frame_knows_its_columns_and_runs_when_it_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    node = vesper.load("payment_decision", nodes=NODES, engine="interp")
    ran: list[int] = []
    original = type(node).run_batch

    def run_batch(self: vesper.Node, table: Any, **options: Any) -> Any:
        ran.append(table.height)
        return original(self, table, **options)

    monkeypatch.setattr(type(node), "run_batch", run_batch)
    frame = pl.concat([pl.DataFrame(COLUMNS)] * 100)
    lazy: Any = frame.lazy()
    plan = lazy.vesper.run(node, keep=["id"], decimals=5)
    expected = original(node, frame, keep=["id"], decimals=5)
    assert plan.collect_schema() == expected.schema
    assert ran == [0]
    assert plan.collect().equals(expected)
    assert plan.collect(engine="streaming").equals(expected)
    fees = plan.filter(pl.col("error").is_null()).select(pl.col("fee").sum())
    assert fees.collect(engine="streaming").item() == Decimal("175.00000")
    with pytest.raises(vesper.BatchError, match="id"):
        lazy.vesper.run("payment_decision", nodes=NODES)
