"""Tables leave a node as a workbook and come back without loss: the same text and the same semantic hash."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from vesper.compiler.pipeline import compile_source
from vesper.importers.sheets.from_node import tables_of_text
from vesper.importers.sheets.layout import lines_of_table, table_of_lines
from vesper.importers.sheets.model import ColumnOfCells, ColumnOfResults, SheetFormatError, SheetRow, SheetTable
from vesper.importers.sheets.to_node import node_of_table
from vesper.language.diagnostics.source import SourceFile
from vesper.storage.sheets.xlsx_reader import read_sheet
from vesper.storage.sheets.xlsx_writer import write_workbook

TABLES = 60
_WORDS = ["gold", "silver", "New York", "don't", "x, y", "007", "1.50", "=a", " b ", "é", "-", "null"]


def _number(drawn: random.Random) -> str:
    return drawn.choice(["0", "5", "-3", "10", "2.50", "0.1", "99.999"])


def _tests(drawn: random.Random, literal: Callable[[], str]) -> str:
    return ", ".join(literal() for _ in range(drawn.randint(1, 3)))


def _decimal_cell(drawn: random.Random) -> str:
    low, high = sorted((drawn.randint(-5, 5), drawn.randint(6, 20)))
    ranges = [f"[{low}..{high})", f"({low}..{high}.5]", f">= {high}", f"< {low}", f"not({low})", "{value * 2 > 3}"]
    return drawn.choice([*ranges, _tests(drawn, lambda: _number(drawn))])


def _string_cell(drawn: random.Random) -> str:
    quoted = '"' + drawn.choice(_WORDS) + '"'
    return drawn.choice(["DE, FR", "not(DE)", "New York", quoted, "{length(value) > 2}"])


_CELLS = {
    "decimal": _decimal_cell,
    "string": _string_cell,
    "boolean": lambda drawn: drawn.choice(["true", "false"]),
    "integer": lambda drawn: drawn.choice(["1", "[2..5]", "7, 8", "> 9"]),
    "optional<decimal>": lambda drawn: drawn.choice(["null", "> 5", "[1..2)"]),
    "date": lambda drawn: drawn.choice(["2024-02-29", ">= 2024-01-01", "[2020-01-01..2021-01-01)"]),
    "enum[low, high]": lambda drawn: drawn.choice(["low", "high", "not(low)"]),
}
_RESULTS = {
    "decimal": _number,
    "string": lambda drawn: drawn.choice(["gold", "New York", "don't", "007", "x | y", '= upper("a")']),
    "boolean": lambda drawn: drawn.choice(["true", "false"]),
    "optional<string>": lambda drawn: drawn.choice(["", "gold"]),
    "integer": lambda drawn: drawn.choice(["1", "-2", "= 3 + 4"]),
}


def random_table(seed: int) -> SheetTable:
    """Return a table whose node has no errors of its own."""
    drawn = random.Random(seed)
    hit = drawn.choice(["first", "first", "collect", "rule_order", "count", "any"])
    table = SheetTable("drawn", hit)
    for at in range(drawn.randint(1, 4)):
        table.columns.append(ColumnOfCells(f"c{at}", drawn.choice(list(_CELLS))))
    for at in range(drawn.randint(1, 3) if hit != "count" else 0):
        table.outputs.append(ColumnOfResults(f"r{at}", drawn.choice(list(_RESULTS))))
    for at in range(drawn.randint(1, 6)):
        row = SheetRow(at, {}, {}, annotation=drawn.choice(["", "a note"]), reason=drawn.choice(["", "why_so"]))
        for column in table.columns:
            if drawn.random() < 0.7:
                row.cells[column.name] = _CELLS[column.type](drawn)  # type: ignore[no-untyped-call]
        if drawn.random() < 0.2:
            row.when = f"{table.columns[0].name} IS NOT NULL" if "optional" in table.columns[0].type else "1 < 2"
        row.results = {each.name: _RESULTS[each.type](drawn) for each in table.outputs}  # type: ignore[no-untyped-call]
        row.results = {name: text for name, text in row.results.items() if text}
        table.rows.append(row)
    if hit in ("first", "any") and drawn.random() < 0.7:
        results = {each.name: _RESULTS[each.type](drawn) for each in table.outputs}  # type: ignore[no-untyped-call]
        table.rows.append(SheetRow(9, {}, {key: text for key, text in results.items() if text}, is_default=True))
    return table


def test_a_table_comes_back_from_a_workbook_without_loss() -> None:
    compared = 0
    for seed in range(TABLES):
        first = node_of_table(random_table(seed))
        [table] = tables_of_text(first.text)
        sheet = read_sheet(write_workbook({table.name: lines_of_table(table)}, 2))
        second = node_of_table(table_of_lines(sheet.name, sheet.lines))
        assert second.text == first.text, f"seed {seed}"
        assert second.errors == first.errors
        if not first.errors:
            hashes = [compile_source(SourceFile("a.vsp", each.text))[0] for each in (first, second)]
            assert hashes[0] is not None
            assert hashes[1] is not None
            assert hashes[0].semantic_hash == hashes[1].semantic_hash
            compared += 1
    assert compared > TABLES / 2, "too many drawn tables have errors"


def test_a_sheet_of_names_has_its_result_last() -> None:
    lines = [(1, ["amount", "country", "rate"]), (2, ["< 10", "DE", "0.5"]), (3, ["", "", "1"])]
    table = table_of_lines("rates", lines)
    assert [each.name for each in table.columns] == ["amount", "country"]
    node = node_of_table(table)
    assert node.types == {"amount": "integer", "country": "string", "rate": "decimal"}
    assert node.errors == ()


def test_types_are_guessed_and_can_be_stated() -> None:
    lines = [(1, ["zip", "paid", "since", "n", "then"]), (2, ["01234", "true", ">= 2024-01-01", "[1..2.5)", "x"])]
    table = table_of_lines("t", [*lines, (3, ["-", "-", "-", "null", "y"])])
    guessed = {"zip": "string", "paid": "boolean", "since": "date", "n": "optional<decimal>", "then": "string"}
    assert node_of_table(table).types == guessed
    assert node_of_table(table, {"zip": "enum['01234', other]"}).types["zip"] == "enum['01234', other]"


@pytest.mark.parametrize(
    "lines, message",
    [
        ([], "empty"),
        ([["a", ""], ["1", "2"]], "no name"),
        ([["a", "a"], ["1", "2"]], "two columns are named"),
        ([["a", "b"]], "no rows"),
        ([["a", "b"], ["1", "2", "3"]], "3 cells"),
        ([["first", "a", "b"], ["maybe", "1", "2"]], "neither a number"),
        ([["first", "a", "b"], ["otherwise", "1", "2"]], "has a condition"),
        ([["first", "a", "b"], ["otherwise", "", "2"], ["2", "1", "2"]], "after `otherwise`"),
        ([["first", "a", "b"], ["", "in", "when"], ["values", "1", "2"]], "neither values"),
        ([["first", "a", "b", "c"], ["", "in", "when", "when"], ["1", "2", "", ""]], "two columns are marked"),
    ],
)
def test_a_sheet_that_is_no_table_is_refused_with_its_line(lines: list[list[str]], message: str) -> None:
    with pytest.raises(SheetFormatError, match=message):
        table_of_lines("t", list(enumerate(lines, 1)))
