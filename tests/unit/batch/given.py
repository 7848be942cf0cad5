"""Nodes and rows that the tests of batches share."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

import vesper

NODES = Path(__file__).parents[3] / "nodes"

TYPES: dict[str, tuple[str, Any, list[Any]]] = {
    "a": ("boolean", pa.bool_(), [True, False]),
    "b": ("integer", pa.int64(), [0, -(2**63), 2**63 - 1]),
    "c": ("decimal", pa.decimal128(38, 4), [Decimal("0.0000"), Decimal("-12345.6789"), Decimal("9" * 34 + ".9999")]),
    "d": ("float", pa.float64(), [0.0, -1.5, float("inf"), 1e300]),
    "e": ("string", pa.string(), ["", "é\0x", "a" * 40]),
    "f": ("bytes", pa.binary(), [b"", b"\x00\xff"]),
    "g": (
        "timestamp",
        pa.timestamp("us", "UTC"),
        [datetime(2026, 11, 15, 12, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)],
    ),
    "h": ("date", pa.date32(), [date(2026, 2, 28), date(9999, 12, 31), date(1, 1, 1)]),
    "i": ("duration", pa.duration("us"), [timedelta(0), timedelta(days=-3, microseconds=1)]),
    "k": ("enum[x, y]", pa.string(), ["x", "y"]),
    "l": ("set<integer>", pa.list_(pa.int64()), [[], [1, 2, 3]]),
    "m": ("array<decimal>", pa.list_(pa.decimal128(10, 2)), [[], [Decimal("1.50"), Decimal("-2.00")]]),
    "n": ("map<string, integer>", pa.map_(pa.string(), pa.int64()), [[], [("a", 1), ("b", 2)]]),
    "o": ("optional<decimal>", pa.decimal128(5, 1), [None, Decimal("1.5")]),
    "p": (
        "Line",
        pa.struct([("name", pa.string()), ("price", pa.decimal128(9, 3)), ("note", pa.string())]),
        [
            {"name": "ink", "price": Decimal("1.500"), "note": None},
            {"name": "", "price": Decimal("0.000"), "note": "x"},
        ],
    ),
}
"""Inputs by name: their type, that of a column of them, and values."""


def written(folder: Path, name: str, text: str) -> vesper.Node:
    path = folder / f"{name}.vsp"
    path.write_text(f"node_id: {name}\n{text}", encoding="utf-8")
    return vesper.load(path, engine="interp")


def echo(folder: Path, name: str = "p", declared: str | None = None) -> vesper.Node:
    """A node that gives back its one input `v`."""
    type_ = declared or TYPES[name][0]
    return written(
        folder,
        "echo_v1",
        f"""type: function
intent: Give back what came in
types:
  Line: {{fields: {{name: string, price: decimal, note: optional<string>}}}}
inputs:
  v: {{type: "{type_}"}}
outputs:
  success: {{w: "{type_}"}}
flow:
  - {{operation: compute, step: w, value: v}}
  - {{operation: return, success: [w]}}
""",
    )


def payments(count: int, seed: int = 1, *, is_fine: bool = False) -> pa.Table:
    """Payments, of which some do not fit and some break a contract."""
    draw = random.Random(seed)
    low = 1 if is_fine else -2000

    def cents(least: int, most: int) -> Decimal:
        return Decimal(draw.randrange(least, most)).scaleb(-2)

    rows = [
        {
            "amount": cents(low, 200_000),
            "balance": cents(0, 400_000),
            "currency": draw.choice(["USD", "EUR", "GBP"] if is_fine else ["USD", "EUR", "GBP", "XXX"]),
            "country": draw.choice(["DE", "NG", "FR"] if is_fine else ["DE", "NG", "FR", "RUS"]),
            "user_age_days": draw.randrange(0, 900) if is_fine else draw.choice([None, -1, 5, 400]),
            "flagged": draw.random() < 0.2,
        }
        for _ in range(count)
    ]
    schema = pa.schema(
        [
            ("amount", pa.decimal128(18, 2)),
            ("balance", pa.decimal128(18, 2)),
            ("currency", pa.string()),
            ("country", pa.string()),
            ("user_age_days", pa.int64()),
            ("flagged", pa.bool_()),
        ]
    )
    return pa.Table.from_pylist(rows, schema=schema)


def orders(count: int, seed: int = 2) -> pa.Table:
    draw = random.Random(seed)
    line = pa.struct([("qty", pa.int64()), ("unit_price", pa.decimal128(9, 2)), ("category", pa.string())])
    rows = [
        [
            {
                "qty": draw.randrange(-1, 30),
                "unit_price": Decimal(draw.randrange(0, 9000)).scaleb(-2),
                "category": draw.choice(["food", "book", "toy", "none"] if draw.random() < 0.1 else ["food", "book"]),
            }
            for _ in range(draw.randrange(0, 6))
        ]
        for _ in range(count)
    ]
    return pa.table({"items": pa.array(rows, pa.list_(line))})


def given_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Each row as a caller of the node would give it: a map is a dict."""
    rows: list[dict[str, Any]] = table.to_pylist()
    for field in table.schema:
        if pa.types.is_map(field.type):
            for row in rows:
                row[field.name] = None if row[field.name] is None else dict(row[field.name])
    return rows


def assert_same_as_calls(node: vesper.Node, given: pa.Table, answer: pa.Table) -> int:
    """Each row is what a call says, the words of errors included; how many rows have an error."""
    errors = 0
    assert len(answer) == len(given)
    for row, (inputs, found) in enumerate(zip(given_rows(given), answer.to_pylist(), strict=True)):
        outcome = node(inputs)
        error = found.pop("error")
        if outcome.error is None:
            assert error is None, (row, error)
            assert outcome.value is not None
            for name, value in outcome.value.items():
                shown = found[name]
                if isinstance(value, frozenset):
                    shown = frozenset(shown)
                elif isinstance(value, dict) and isinstance(shown, list):
                    shown = dict(shown)
                assert shown == value, (row, name)
        else:
            errors += 1
            said = outcome.error
            assert error == {"kind": said.kind, "code": said.code, "where": said.where, "message": said.message}, row
            assert all(value is None for value in found.values())
    return errors
