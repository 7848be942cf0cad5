"""Lookups in tables of a document: both engines, every kind of column, against a scan of the rows."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from vesper._direct import IrRejected
from vesper.compiler.compiled import Compiled
from vesper.compiler.pipeline import compile_source
from vesper.engines.direct_engine import DirectEngine, load_documents
from vesper.engines.outcome import Returned
from vesper.engines.python_engine import PythonEngine
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir import nodes as ir
from vesper.language.ir.encode import encode_and_hash
from vesper.language.ir.lookup_tables import Table, canonical_text, table_of
from vesper.values.model import to_json
from vesper.values.types import DATE, DECIMAL, INTEGER, STRING, ArrayOf, Enum, Record, Type, optional

COLUMNS: dict[str, Type] = {
    "amount": DECIMAL,
    "level": optional(INTEGER),
    "country": STRING,
    "size": Enum(("small", "large", "huge")),
    "day": DATE,
}
NODE = """\
node_id: lookup_v1
type: function
intent: Look rows up
types:
  Result: {fields: {row: integer, rate: decimal}}
inputs:
  amount: decimal
  level: optional<integer>
  country: string
  size: enum[small, large, huge]
  day: date
outputs:
  success: {one: optional<Result>, all: array<Result>}
flow:
  - {operation: return, success: {one: null, all: "[]"}}
"""
RESULTS = Record((("row", INTEGER), ("rate", DECIMAL)))


def node_with(rows: list[tuple[list[Any], list[Any]]]) -> Compiled:
    """Return a node that looks its inputs up in a table of these rows."""
    compiled, bag = compile_source(SourceFile("lookup_v1.vsp", NODE))
    assert compiled is not None, bag
    keys = Record(tuple(COLUMNS.items()))
    table = table_of(keys, RESULTS, [canonical_text(row) for row in rows])
    node = ir.number_expressions(
        replace(compiled.node, body=(_return(compiled.node, table, keys),), lookup_tables=(table,))
    )
    written = encode_and_hash(node)
    assert written is not None
    return Compiled(compiled.source, node, (), *written)


def _return(node: ir.Node, table: Table, keys: Record) -> ir.Return:
    (end,) = node.body
    assert isinstance(end, ir.Return)
    place = end.values[0][1].place

    def call(op: str, type_: Type) -> ir.Expression:
        refs = tuple((name, ir.Ref("input", name, each, place)) for name, each in keys.fields)
        args = (ir.Literal(STRING, table.hash, place), ir.RecordValue(refs, place))
        return ir.Call(op, (keys, RESULTS), args, type_, place)

    one, every = call("lookup.find", optional(RESULTS)), call("lookup.find_all", ArrayOf(RESULTS))
    return replace(end, values=(("one", one), ("all", every)))


class Drawn:
    """Random rows and keys from few values, so that rows overlap and keys meet their ends."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self, name: str) -> Any:
        chosen = self.random.randrange(8)
        match name:
            case "amount":
                return Decimal(chosen) / 2
            case "level":
                return chosen
            case "country":
                return ("AT", "DE", "FR", "US", "é", "𝄞", "", "de")[chosen]
            case "size":
                return ("small", "large", "huge")[chosen % 3]
            case _:
                return date(2024, 2, 26) + timedelta(days=chosen)

    def key(self) -> dict[str, Any]:
        keys = {name: self.value(name) for name in COLUMNS}
        if self.random.random() < 0.2:
            keys["level"] = None
        return keys

    def test(self, name: str) -> dict[str, Any]:
        if name == "level" and self.random.random() < 0.2:
            return {"is": None}
        if self.random.random() < 0.5:
            return {"is": self.value(name)}
        test = {}
        if self.random.random() < 0.7:
            test[self.random.choice(("from", "above"))] = self.value(name)
        if not test or self.random.random() < 0.5:
            test[self.random.choice(("to", "below"))] = self.value(name)
        return test

    def cell(self, name: str) -> Any:
        kind = self.random.random()
        if kind < 0.4:
            return None
        if kind < 0.8:
            return self.test(name)
        return [self.test(name) for _ in range(self.random.choice((0, 2, 3)))]


def _passes(name: str, test: dict[str, Any], value: Any) -> bool:
    order = COLUMNS["size"].members.index if name == "size" else lambda each: each  # type: ignore[union-attr]
    if "is" in test:
        return bool(test["is"] == value)
    return value is not None and all(
        {"from": order(value) >= order(end), "above": order(value) > order(end),
         "to": order(value) <= order(end), "below": order(value) < order(end)}[kind]
        for kind, end in test.items()
    )  # fmt: skip


def _matches(cells: list[Any], keys: dict[str, Any]) -> bool:
    for (name, value), cell in zip(keys.items(), cells, strict=True):
        tests = cell if isinstance(cell, list) else [cell]
        if cell is not None and not any(_passes(name, test, value) for test in tests):
            return False
    return True


def _form(name: str, cell: Any) -> Any:
    if cell is None:
        return None
    if isinstance(cell, list):
        return [_form(name, test) for test in cell]
    return {kind: to_json(COLUMNS[name], value) for kind, value in cell.items()}


@pytest.mark.parametrize("seed", range(8))
def test_engines_find_the_rows_that_a_scan_finds(seed: int) -> None:
    drawn = Drawn(seed)
    count = drawn.random.choice((1, 5, 40, 200))
    rows = [[drawn.cell(name) for name in COLUMNS] for _ in range(count)]
    forms = [
        ([_form(name, cell) for name, cell in zip(COLUMNS, cells, strict=True)], [row, f"{row}.50"])
        for row, cells in enumerate(rows)
    ]
    compiled = node_with(forms)
    programs: list[Any] = [PythonEngine().load(compiled), DirectEngine().load(compiled)]
    for _ in range(60):
        keys = drawn.key()
        expected = [row for row, cells in enumerate(rows) if _matches(cells, keys)]
        for program in programs:
            outcome = program.call(keys)
            assert isinstance(outcome, Returned), outcome
            found: Any = outcome.value
            assert [each["row"] for each in found["all"]] == expected
            first = found["one"]
            assert (None if first is None else first["row"]) == (expected[0] if expected else None)


CELLS = [None, None, None, None, None]
DAMAGED = [
    ('"rows":[[', '"rows":[[ ', "expected"),
    ("[0,", "[1,", "is not the hash of its table"),
    ('"lookup.find"', '"lookup.find_some"', "no operation is named"),
]


@pytest.mark.parametrize("old, new, message", DAMAGED, ids=[message for _, _, message in DAMAGED])
def test_a_damaged_table_is_refused(old: str, new: str, message: str) -> None:
    text = node_with([(CELLS, [0, "0.50"])]).ir.decode()
    assert old in text
    with pytest.raises(IrRejected, match=message):
        load_documents(text.replace(old, new).encode(), [])


@pytest.mark.parametrize(
    "row, message",
    [
        ((CELLS[1:], [0, "0.50"]), "a cell for each column"),
        (([*CELLS, None], [0, "0.50"]), "more than 5 items"),
        ((CELLS, [0]), "each result"),
        ((CELLS, ["0", "0.50"]), "integer"),
        (([[{"is": "1"}], *CELLS[1:]], [0, "0.50"]), "without brackets"),
        (([{}, *CELLS[1:]], [0, "0.50"]), "has `is`, or"),
        (([{"above": "1", "from": "2"}, *CELLS[1:]], [0, "0.50"]), "has `is`, or"),
        (([{"is": None}, *CELLS[1:]], [0, "0.50"]), "decimal"),
    ],
)
def test_a_malformed_row_is_refused(row: tuple[list[Any], list[Any]], message: str) -> None:
    with pytest.raises(IrRejected, match=message):
        load_documents(node_with([row]).ir, [])
