"""`vesper.integrations.duckdb.register`: a node as a SQL function."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import vesper
import vesper.integrations.duckdb as ours
from tests.unit.batch.given import NODES, assert_same_as_calls, payments, written


@pytest.fixture
def connection() -> Iterator[Any]:
    with duckdb.connect() as made:
        yield made


def load() -> vesper.Node:
    return vesper.load("payment_decision", nodes=NODES, engine="interp")


def test_rows_of_a_query_are_those_of_a_batch(connection: Any) -> None:
    given = payments(5_000)
    connection.register("given", given)
    node = load()
    ours.register(connection, node)
    ours.register(connection, node, "exact", like=connection.table("given"))
    arguments = ", ".join(given.column_names)
    texts, exact = (
        connection.sql(f"SELECT unnest(r) FROM (SELECT {name}({arguments}) AS r FROM given)").to_arrow_table()  # noqa: S608
        for name in ("payment_decision_v1", "exact")
    )
    assert texts.to_pylist() == node.run_batch(given, decimals="text").to_pylist()
    assert exact.to_pylist() == node.run_batch(given).to_pylist()
    assert exact.column_names == node.run_batch(given).column_names
    assert_same_as_calls(node, given.slice(0, 300), exact.slice(0, 300))


def test_nulls_and_arguments_that_are_left_out(connection: Any) -> None:
    ours.register(connection, "payment_decision", "pay", nodes=NODES, decimals=2)
    query = (
        "SELECT pay(50.00, 100, 'USD', 'DE', 400), pay(NULL, 100, 'USD', 'DE', 400), pay(50.001, 100, 'USD', 'DE', 9)"
    )
    fine, null, unfit = connection.sql(query).fetchall()[0]
    assert (fine["fee"], fine["decision"], fine["error"]) == (Decimal("1.75"), "approve", None)
    assert "amount: expected decimal, got null" in null["error"]["message"]
    assert (null["fee"], unfit["fee"], unfit["error"]["code"]) == (None, None, "does_not_fit")


@pytest.mark.parametrize(
    "call,said",
    [
        ("pay(1, 2, 'USD', 'DE', 4, true, 7)", "pay has 6 arguments (amount, balance, currency"),
        ("pay(1)", "no column for `balance`"),
    ],
)
def test_calls_with_wrong_arguments_are_refused(connection: Any, call: str, said: str) -> None:
    ours.register(connection, load(), "pay")
    with pytest.raises(duckdb.Error) as refused:
        connection.sql(f"SELECT {call}").fetchall()[0]
    assert said in str(refused.value)


def test_arguments_of_other_types_than_registered_never_change_the_result_type(connection: Any, tmp_path: Path) -> None:
    node = written(
        tmp_path,
        "double_v1",
        "type: function\nintent: Double\ninputs: {v: decimal}\noutputs:\n  success: {w: decimal}\n"
        'flow:\n  - operation: return\n    success: {w: "v * 2"}\n',
    )
    ours.register(connection, node, "double", like=connection.sql("SELECT 1.50::DECIMAL(9, 2) AS v"))
    assert connection.sql("SELECT double(1.25::DECIMAL(9, 2))").fetchall()[0][0] == {
        "w": Decimal("2.50"),
        "error": None,
    }
    finer = connection.sql("SELECT double(1.255::DECIMAL(9, 3))").fetchall()[0][0]
    assert finer == {"w": Decimal("2.51"), "error": None}  # exact at two places
    assert connection.sql("SELECT double(1.2551::DECIMAL(9, 4))").fetchall()[0][0]["error"]["code"] == "does_not_fit"


def test_a_type_that_only_the_call_knows_is_refused(connection: Any, tmp_path: Path) -> None:
    node = written(
        tmp_path,
        "same_v1",
        "type: function\nintent: Same\ninputs: {v: decimal}\noutputs:\n  success: {w: decimal}\n"
        'flow:\n  - operation: return\n    success: {w: "v"}\n',
    )
    texts = connection.from_arrow(pa.table({"v": ["1.5"]}))
    ours.register(connection, node, "same", like=texts)
    assert connection.sql("SELECT same('1.50')").fetchall()[0][0] == {"w": "1.50", "error": None}
    with pytest.raises(duckdb.Error) as refused:
        connection.sql("SELECT same(1.50)").fetchall()[0]
    assert "register it with like=" in str(refused.value)


def test_a_node_with_a_start_needs_one(connection: Any) -> None:
    with pytest.raises(vesper.BatchError, match="now="):
        ours.register(connection, "session_windows", nodes=NODES)
    assert ours.register(connection, "session_windows", nodes=NODES, now="2026-11-18T12:00:00Z") == "session_windows_v1"
    (result,) = connection.sql("SELECT session_windows_v1([], INTERVAL 1 MINUTE, [], MAP {})").fetchall()[0]
    assert list(result)[-1] == "error"
