"""Grids have types, gaps with the row that closes them, and problems at their cells; also in a faulty text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.dashboard import client_of
from vesper.dashboard.play.grid.changes import edit_table
from vesper.dashboard.play.grid.read import Grid, read_grids

NODE = """\
node_id: fee_v1
type: function
intent: Find the fee of a payment
inputs:
  amount: {type: decimal, constraints: [{min: 0}]}
  country: enum[DE, FR, US]
outputs:
  success: {fee: decimal}
flow:
  - step: fee
    operation: decision_table
    hit: unique
    rows:
      - {in: {amount: "[0..100)", country: DE}, then: 1.00}
      - {in: {amount: "[50..500)", country: DE}, then: 2.50}
      - {in: {amount: ">= 500", country: DE}, then: 3.00}
      - {in: {country: FR}, then: 4.00}
  - operation: return
    success: {fee: fee}
"""


def read(folder: Path, text: str) -> Grid:
    (found,) = read_grids(folder / "fee_v1.vsp", text).tables
    return found


def test_columns_have_their_types(tmp_path: Path) -> None:
    grid = read(tmp_path, NODE)
    assert [(each.key, each.kind, each.type) for each in grid.columns] == [
        ("in:amount", "in", "decimal"),
        ("in:country", "in", "enum[DE, FR, US]"),
        ("then", "out", "decimal"),
    ]
    assert grid.columns[1].choices == ("DE", "FR", "US")
    assert [row.cells for row in grid.rows][3] == (None, "FR", "4.00")
    assert (grid.line, grid.rows[0].line, grid.hit) == (10, 14, "unique")


def test_an_overlap_is_at_both_rows(tmp_path: Path) -> None:
    (overlap,) = [each for each in read(tmp_path, NODE).problems if each.also is not None]
    assert (overlap.also, overlap.row, overlap.severity) == (0, 1, "error")
    assert overlap.message == "rows 1 and 2 both match amount = 50, country = DE"


def test_rows_for_the_gaps_close_them(tmp_path: Path) -> None:
    text = NODE.replace('"[50..500)"', '"[100..200)"')
    closed = 0
    while gaps := read(tmp_path, text).gaps:
        rows = len(read(tmp_path, text).rows)
        text = edit_table(text, 0, {"kind": "insert", "row": rows, "cells": dict(gaps[0].cells)}).text
        closed += 1
        assert closed < 9
    assert '{in: {amount: "[200..500)", country: DE}, then: 4.00}' in text
    assert read_grids(tmp_path / "fee_v1.vsp", text).elsewhere == read(tmp_path, text).problems == ()


def test_all_gaps_are_listed_at_once(tmp_path: Path) -> None:
    text = NODE.replace('"[50..500)"', '"[100..200)"')
    assert [each.values for each in read(tmp_path, text).gaps] == [
        (("amount", "[200..500)"), ("country", "DE")),
        (("country", "US"),),
    ]


def test_a_gap_between_conditions_is_closed_by_a_condition(tmp_path: Path) -> None:
    rows = "      - {when: amount < 10, then: 1}\n      - {when: amount > 20 AND country == DE, then: 2}\n"
    start = NODE.index("      - {in")
    text = NODE[:start] + rows + NODE[NODE.index("  - operation: return") :]
    gaps = read(tmp_path, text).gaps
    assert {"when": "amount >= 10 AND amount <= 20"} in [dict(each.cells) for each in gaps]
    text = edit_table(text, 0, {"kind": "insert", "row": 2, "cells": dict(gaps[0].cells)}).text
    assert len(read(tmp_path, text).gaps) == len(gaps) - 1


def test_a_faulty_cell_has_its_message(tmp_path: Path) -> None:
    text = NODE.replace("country: FR", "country: FRA").replace("fee: fee}", "fee: fe}")
    found = read_grids(tmp_path / "fee_v1.vsp", text)
    (problem,) = [each for each in found.tables[0].problems if each.column == "in:country"]
    assert (problem.row, problem.severity) == (3, "error")
    assert "FRA" in problem.message
    assert problem.help == "did you mean `FR`?"


def test_a_table_is_read_beside_text_that_is_no_yaml(tmp_path: Path) -> None:
    found = read_grids(tmp_path / "fee_v1.vsp", NODE.replace("intent: Find", "intent Find") + "testing: [\n")
    assert len(found.tables[0].rows) == 4
    assert found.elsewhere


def test_rows_of_a_file_are_shown(tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text("country,price,annotation\nDE,4.90,near\n-,9.90,far\n")
    text = NODE.replace("hit: unique", "outputs: {price: decimal}")
    start, end = text.index("    rows:\n"), text.index("  - operation: return")
    grid = read(tmp_path, text[:start] + "    rows: {file: rates.csv}\n" + text[end:])
    assert (grid.file, [each.cells for each in grid.rows]) == (
        "rates.csv",
        [("DE", "4.90", "near"), ("-", "9.90", "far")],
    )
    for path in ("../rates.csv", "/etc/passwd", "absent.csv"):
        assert read(tmp_path, text[:start] + f"    rows: {{file: {path}}}\n" + text[end:]).rows == ()


def test_hostile_texts_end(tmp_path: Path) -> None:
    texts = [
        "{" * 50_000,
        "rows: " * 20_000,
        "- " * 30_000,
        "a: &x [*x]\n" * 5_000,
        "\0",
        "\n" * 50_000,
        "tables: {t: {rows: 5}}",
    ]
    texts += ["flow:\n" + "  - {operation: decision_table, rows: [{when: a, then: b}]}\n" * 300]
    for text in texts:
        read_grids(tmp_path / "x_v1.vsp", text)


def test_the_endpoint_limits_the_text_and_names_the_reason(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    with client_of(tmp_path) as client:

        def post(endpoint: str, **body: object) -> tuple[int, dict[str, Any]]:
            answer = client.post(f"/play/api/{endpoint}", json={"path": "fee_v1.vsp", "text": NODE, **body})
            return answer.status_code, answer.json()

        status, found = post("tables")
        assert (status, len(found["tables"])) == (200, 1)
        assert post("tables", quick=True)[1]["tables"][0]["gaps"] == []
        change = {"kind": "set", "row": 0, "column": "then", "text": "5"}
        status, found = post("tables/edit", table=0, change=change)
        assert (status, found["text"]) == (200, NODE.replace("1.00", "5"))
        status, found = post("tables/edit", table=0, change={"kind": "delete", "row": 99})
        assert (status, found["remedy"]) == (409, "read the tables again")
        assert post("tables", text="#" * (1 << 21))[0] == 413
        assert post("tables", path="../x_v1.vsp")[0] == 400
