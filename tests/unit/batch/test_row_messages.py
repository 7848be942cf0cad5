"""Messages of many rows: composed of the parts of earlier ones, and equal to those of calls."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import vesper
from tests.unit.batch.given import assert_same_as_calls, written
from vesper.api import batch

ROWS = 120

KINDS: dict[str, tuple[str, pa.DataType, Callable[[random.Random], Any]]] = {
    # declared type, type of the column, a value that breaks `v` or does not fit
    "integers": ("integer", pa.int64(), lambda draw: -draw.randrange(1, 2**63)),
    "decimals": ("decimal", pa.decimal128(38, 4), lambda draw: -Decimal(draw.randrange(1, 10**30)).scaleb(-4)),
    "floats": ("float", pa.float64(), lambda draw: -draw.choice([0.1, 1e300, 5e-324, float("inf"), 2.0**53])),
    "texts": ("string", pa.string(), lambda draw: draw.choice(["", "a", "é", "x\n", '"', "\\", "a" * 90, "\0", "😀"])),
    "dates": ("date", pa.date32(), lambda draw: date.fromordinal(draw.randrange(1, 3_652_059))),
    "moments": (
        "timestamp",
        pa.timestamp("us", "UTC"),
        lambda draw: datetime(1, 1, 1, tzinfo=UTC) + timedelta(microseconds=draw.randrange(10**16)),
    ),
    "durations": (
        "duration",
        pa.duration("us"),
        lambda draw: timedelta(microseconds=draw.randrange(-(10**12), 10**12)),
    ),
    "members": ("enum[red, green, blue]", pa.string(), lambda draw: draw.choice(["red", "green"])),
    "maybe": ("optional<integer>", pa.int64(), lambda draw: draw.choice([None, -1, -2])),
    "lists": (
        "array<integer>",
        pa.list_(pa.int64()),
        lambda draw: [draw.randrange(9) for _ in range(draw.randrange(4))],
    ),
}

MISFITS: dict[str, tuple[str, pa.DataType, Callable[[random.Random], Any]]] = {
    "texts for decimals": ("decimal", pa.string(), lambda draw: draw.choice(["x", "1,5", "é", "y" * 80, None, "z z"])),
    "floats for decimals": ("decimal", pa.float64(), lambda draw: draw.choice([0.1, 2.5, None, 1e300])),
    "nulls first": ("string", pa.int64(), lambda draw: draw.choice([None, None, 1, 2])),
    "near members": ("enum[red, green]", pa.string(), lambda draw: draw.choice(["rde", "x", "gren", "blue", None])),
    "naive times": (
        "timestamp",
        pa.timestamp("us"),
        lambda draw: draw.choice([None, datetime(2026, 1, draw.randrange(1, 28), tzinfo=UTC).replace(tzinfo=None)]),
    ),
    "booleans for integers": ("integer", pa.bool_(), lambda draw: draw.choice([True, False, None])),
    "items": ("array<integer>", pa.list_(pa.string()), lambda draw: [draw.choice(["a", "b"]) for _ in range(2)]),
    "wide": ("integer", pa.uint64(), lambda draw: draw.randrange(2**63, 2**64)),
}


def node_of(folder: Path, declared: str, clause: str = "w > 0", more: str = "") -> vesper.Node:
    return written(
        folder,
        "rows_v1",
        f"""type: function
intent: Return nothing but errors
inputs:
  v: {{type: "{declared}"}}
  w: {{type: integer, default: 0}}
outputs:
  success: {{out: integer}}
  error: {{error_code: "enum[odd, even]", message: string}}
contracts: {{preconditions: ["{clause}"]}}
flow:
  - operation: conditional
    condition: w > 100
    then:
      - {{operation: raise, error: {{error_code: odd, message: "w is {{w}}"}}}}
  - operation: conditional
    condition: w > 50
    then:
      - {{operation: raise, error: {{error_code: even, message: ""}}}}
  - {{operation: return, success: {{out: "quot(1, w - 1)"}}}}
{more}""",
    )


def rows(type_: pa.DataType, value: Callable[[random.Random], Any], seed: int) -> pa.Table:
    draw = random.Random(seed)
    values = [value(draw) for _ in range(ROWS)]
    return pa.table({"v": pa.array(values, type_), "w": [draw.randrange(-3, 150) for _ in range(ROWS)]})


@pytest.mark.parametrize("name", KINDS)
def test_broken_clauses_have_the_messages_of_calls(tmp_path: Path, name: str) -> None:
    declared, type_, value = KINDS[name]
    node = node_of(tmp_path, declared, "v == v AND w > 0")
    for seed in (1, 2):
        given = rows(type_, value, seed)
        assert assert_same_as_calls(node, given, node.run_batch(given)) > ROWS / 4


@pytest.mark.parametrize("name", MISFITS)
def test_refused_cells_have_the_messages_of_calls(tmp_path: Path, name: str) -> None:
    declared, type_, value = MISFITS[name]
    node = node_of(tmp_path, declared)
    given = rows(type_, value, 3)
    assert assert_same_as_calls(node, given, node.run_batch(given)) > ROWS / 2


def test_sensitive_values_stay_hidden_in_every_row(tmp_path: Path) -> None:
    node = node_of(tmp_path, "string", "length(v) > 100", "security: {sensitive_data: [v]}\n")
    values = ["<sensitive>", "hidden 1", "hidden 2", "hidden 3"]
    answer = node.run_batch(pa.table({"v": values}))
    for each in answer.column("error").to_pylist():
        assert "hidden" not in each["message"]
    refused = node.run_batch(pa.table({"v": [10_001, 10_002, 10_003, 10_004]}))
    for each in refused.column("error").to_pylist():
        assert "1000" not in each["message"]


def test_python_explains_few_rows_of_one_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    real = batch.Batch.explain_raw

    def counted(self: batch.Batch, raw: Any, given: Any) -> tuple[str, str, str | None, str]:
        told.append(raw)
        return real(self, raw, given)

    monkeypatch.setattr(batch.Batch, "explain_raw", counted)
    node = node_of(tmp_path, "integer", "v > 0")
    many = 40_000
    answer = node.run_batch(pa.table({"v": [-1 - row for row in range(many)]}))
    messages = [each["message"] for each in answer.column("error").to_pylist()]
    assert [each.rpartition(" is ")[2] for each in messages] == [str(-1 - row) for row in range(many)]
    assert len(told) == 2


def test_python_explains_each_wrong_member_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    real = batch.Batch.explain_raw

    def counted(self: batch.Batch, raw: Any, given: Any) -> tuple[str, str, str | None, str]:
        told.append(raw)
        return real(self, raw, given)

    monkeypatch.setattr(batch.Batch, "explain_raw", counted)
    node = node_of(tmp_path, "enum[red, green]")
    answer = node.run_batch(pa.table({"v": ["rde", "gren", "blue"] * 1_000}))
    messages = [each["message"] for each in answer.column("error").to_pylist()]
    assert "did you mean `red`" in messages[0]
    assert "did you mean `green`" in messages[1]
    assert "did you mean" not in messages[2]
    assert messages == messages[:3] * 1_000
    assert len(told) == 3
