"""A change of a table changes its cell and nothing else; with its inverse the text has its original bytes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vesper.dashboard.play.grid.changes import edit_table
from vesper.dashboard.play.grid.layout import TableText, find_tables
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.yaml.edits import EditRejected
from vesper.lsp.features.knowledge import read_tree

ROOT = Path(__file__).parents[5]
ALIGNED = """\
node_id: fee_v1
flow:
  - step: fee
    operation: decision_table
    hit: unique
    rows:
      # small payments
      - {in: {amount: "[0..100)", country: DE},   then: 1.00}
      - {in: {amount: ">= 100",   country: "FR"}, then: 3.00}  # agreed in 2024

      - {in: {amount: '> 5'},                     then: 'x'}
      - {otherwise: 0}
"""
BLOCK = """\
node_id: fee_v1
tables:
  fee_of:
    inputs: {amount: decimal}
    columns:
      gross: amount * 2
    outputs: {rate: decimal, label: string}
    rows:
      - in:  # cells
          gross: "> 5"
        when: amount > 1
        then:
          rate: 1
          label: gold
        annotation: first
      # the second
      - when: amount > 7
        then: {rate: 2, label: silver}
      - otherwise: {rate: 0, label: none}"""
IN_BRACKETS = """\
functions:
  f: {params: {a: integer}, table: {rows: [{when: a > 1, then: 1}, {when: a > 2, then: 2}, {otherwise: 3}]}}
"""
FAULTY_ELSEWHERE = ALIGNED.replace("flow:", "intent Find the fee\nflow:") + "testing: [\n"
TEXTS = {
    "aligned": ALIGNED,
    "block": BLOCK,
    "brackets": IN_BRACKETS,
    "windows": ALIGNED.replace("\n", "\r\n"),
    "faulty": FAULTY_ELSEWHERE,
}
CELLS = ("7", ">= 5", "[0..100)", "a, b", "it's # one", '"x"', "-")


def tables_of(text: str) -> list[TableText]:
    return find_tables(read_tree(SourceFile("", text))[1])


def changes_of(table: TableText) -> Iterator[dict[str, Any]]:
    """Yield changes of each kind, at the first and the last rows."""
    rows = len(table.listed)
    results = [each.key for each in table.columns() if each.kind == "out"]
    texts = itertools.cycle(CELLS)
    for row in sorted({0, max(0, rows - 2), rows - 1}):
        yield from ({"kind": kind, "row": row} for kind in ("delete", "duplicate", "insert"))
        yield from ({"kind": "set", "row": row, "column": each.key, "text": next(texts)} for each in table.columns())
        yield {"kind": "move", "row": row, "to": 0}
        yield {"kind": "set", "row": row, "column": "reason", "text": "why"}
    yield {"kind": "move", "row": 0, "to": max(0, rows - 2)}
    yield from ({"kind": "set_hit", "hit": hit} for hit in ("collect", None))
    yield {"kind": "set_default", "cells": None}
    yield {"kind": "set_default", "cells": dict.fromkeys(results, "1")}
    yield {"kind": "add_column", "name": "extra"}
    yield {"kind": "add_column", "name": "extra", "value": "1 + 2"}


def check_round_trip(text: str, table: int, change: dict[str, Any]) -> bool:
    """Check that a change and its inverse give the same bytes; return whether the change is possible."""
    try:
        edited = edit_table(text, table, change)
    except EditRejected:
        return False
    assert edit_table(edited.text, table, edited.inverse).text == text, change
    return True


@pytest.mark.parametrize("name", TEXTS)
def test_every_change_and_its_inverse_give_the_same_bytes(name: str) -> None:
    text = TEXTS[name]
    (table,) = tables_of(text)
    done = {change["kind"] for change in changes_of(table) if check_round_trip(text, 0, change)}
    assert done >= {"set", "insert", "delete", "duplicate", "move", "set_hit", "set_default", "add_column"}


def test_tables_of_the_repository_keep_their_bytes() -> None:
    folders = ("nodes", "tests/diagnostics", "tests/conformance/programs")
    files = [file for folder in folders for file in sorted((ROOT / folder).rglob("*.vsp"))]
    count = 0
    for number, file in enumerate(files):
        with file.open(newline="") as opened:
            text = opened.read()
        if "\n    rows:" not in text and "\n      rows:" not in text:
            continue
        for table in tables_of(text):
            changes = list(changes_of(table)) if table.listed else []
            for change in changes[number % 13 :: 13] if len(changes) < 40 else changes[:1]:
                count += check_round_trip(text, table.index, change)
    assert count > 40


def test_a_cell_changes_alone_and_keeps_its_quotes() -> None:
    def set_cell(row: int, column: str, text: str) -> list[tuple[str, str]]:
        new = edit_table(ALIGNED, 0, {"kind": "set", "row": row, "column": column, "text": text}).text
        pairs = zip(ALIGNED.splitlines(), new.splitlines(), strict=True)
        return [(old, now) for old, now in pairs if old != now]

    assert set_cell(1, "in:country", "US") == [
        (
            '      - {in: {amount: ">= 100",   country: "FR"}, then: 3.00}  # agreed in 2024',
            '      - {in: {amount: ">= 100",   country: "US"}, then: 3.00}  # agreed in 2024',
        )
    ]
    assert set_cell(0, "in:country", "D")[0][1] == '      - {in: {amount: "[0..100)", country: D},    then: 1.00}'
    assert set_cell(2, "then", "it's")[0][1].endswith("then: 'it''s'}")


def test_a_longer_cell_moves_the_columns_of_an_aligned_table() -> None:
    text = edit_table(ALIGNED, 0, {"kind": "set", "row": 1, "column": "in:amount", "text": "[100..2000)"}).text
    assert len({line.index("then:") for line in text.splitlines() if "in:" in line}) == 1
    assert text.count("then:") == 3
    assert "  # agreed in 2024" in text


def test_a_new_row_matches_everything_and_has_the_results_above() -> None:
    text = edit_table(BLOCK, 0, {"kind": "insert", "row": 1, "cells": {"then:rate": "9"}}).text
    assert text.count("rate: 9") == 1
    (table,) = tables_of(text)
    assert [len(table.listed), table.listed[1].entries[0][0].text] == [4, "in"]  # type: ignore[union-attr]  # a mapping
    assert "# the second\n      - when: amount > 7" in text


def test_a_moved_row_takes_its_comment_along() -> None:
    text = edit_table(BLOCK, 0, {"kind": "move", "row": 1, "to": 0}).text
    assert text.index("# the second") < text.index("when: amount > 7") < text.index("# cells")


def test_a_removed_column_leaves_the_other_cells() -> None:
    text = edit_table(ALIGNED, 0, {"kind": "remove_column", "column": "in:country"}).text
    assert "country" not in text
    assert '- {in: {amount: ">= 100"},' in text
    removed = edit_table(BLOCK, 0, {"kind": "remove_column", "column": "then:label"}).text
    assert "label" not in removed
    assert "{rate: 2}" in removed


@pytest.mark.parametrize(
    "change, says",
    [
        ({"kind": "set", "row": 9, "column": "then", "text": "1"}, "no such row"),
        ({"kind": "set", "row": True, "column": "then", "text": "1"}, "no such row"),
        ({"kind": "set", "row": 0, "column": "in:other", "text": "1"}, "no column"),
        ({"kind": "set", "row": 0, "column": "then", "text": "a\nb"}, "one line"),
        ({"kind": "set", "row": 0, "column": "then", "text": None}, "needs a result"),
        ({"kind": "set", "row": 3, "column": "in:amount", "text": "1"}, "no conditions"),
        (
            {"kind": "set", "row": 0, "column": "then", "text": "1", "source": "1}\n      - {otherwise: 2"},
            "no YAML value",
        ),
        ({"kind": "set", "row": 0, "column": "then", "text": "1", "source": "1, when: x"}, "no YAML value"),
        ({"kind": "insert", "row": 1, "source": "  - {when: a, then: 1}\n"}, "change more"),
        ({"kind": "insert", "row": 4}, "default"),
        ({"kind": "duplicate", "row": 3}, "one default"),
        ({"kind": "move", "row": 0, "to": 3}, "last one"),
        ({"kind": "add_column", "name": "a: b"}, "name"),
        ({"kind": "set_hit", "hit": "some"}, "hit policy"),
        ({"kind": "burn"}, "no change"),
        ({"kind": "set", "row": 0, "column": "then", "text": "x" * 4_001}, "at most"),
    ],
)
def test_what_would_change_more_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(EditRejected, match=says):
        edit_table(ALIGNED, 0, change)


def test_rows_of_a_file_are_not_changed() -> None:
    text = "tables:\n  rates:\n    outputs: {price: decimal}\n    rows: {file: rates.csv}\n"
    with pytest.raises(EditRejected, match="in a file"):
        edit_table(text, 0, {"kind": "insert", "row": 0})
