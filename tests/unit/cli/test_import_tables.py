"""`vesper import csv|xlsx|zen` and `vesper export xlsx|md` on files."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from vesper.cli.main import vesper

_CSV = "first,amount,rate\n1,[0..100),0.05\notherwise,,0\n"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(vesper, [str(each) for each in arguments])


def test_a_csv_table_becomes_a_node_and_a_workbook_and_a_node_again(tmp_path: Path) -> None:
    source = tmp_path / "rates.csv"
    source.write_text(_CSV, encoding="utf-8")
    imported = run("import", "csv", source, "--out", tmp_path)
    assert imported.exit_code == 0, imported.output
    assert "amount  integer" in imported.output
    node = tmp_path / "rates_v1.vsp"
    exported = run("export", "xlsx", node, "--out", tmp_path / "rates.xlsx")
    assert exported.exit_code == 0, exported.output
    again = run("import", "xlsx", tmp_path / "rates.xlsx", "--out", tmp_path / "again")
    assert again.exit_code == 0, again.output
    assert (tmp_path / "again" / "rates_v1.vsp").read_text() == node.read_text()
    shown = run("export", "md", node)
    assert "| 1 | \\[0..100) | 0.05 |" in shown.output


def test_a_file_that_exists_is_kept(tmp_path: Path) -> None:
    source = tmp_path / "rates.csv"
    source.write_text(_CSV, encoding="utf-8")
    (tmp_path / "rates_v1.vsp").write_text("mine", encoding="utf-8")
    assert run("import", "csv", source, "--out", tmp_path).exit_code == 2
    assert (tmp_path / "rates_v1.vsp").read_text() == "mine"


def test_errors_name_the_line(tmp_path: Path) -> None:
    source = tmp_path / "rates.csv"
    source.write_text("first,amount,rate\n1,5,0.05,7\n", encoding="utf-8")
    found = run("import", "csv", source, "--out", tmp_path)
    assert found.exit_code == 1
    assert "rates.csv:2: the line has 3 cells" in found.output
    (tmp_path / "rates.xlsx").write_bytes(b"PK")
    assert "no XLSX workbook" in run("import", "xlsx", tmp_path / "rates.xlsx").output


def test_many_rows_stand_in_a_file_of_their_own(tmp_path: Path) -> None:
    source = tmp_path / "zones.csv"
    rows = "".join(f"{at},{at % 7}\n" for at in range(150))
    source.write_text(f"zip,zone\n{rows}", encoding="utf-8")
    found = run("import", "csv", source, "--out", tmp_path / "out")
    assert found.exit_code == 0, found.output
    assert "rows: {file: zones_v1.csv}" in (tmp_path / "out" / "zones_v1.vsp").read_text()
    assert len((tmp_path / "out" / "zones_v1.csv").read_text().splitlines()) == 151


def test_a_model_of_zen_lists_what_it_leaves_out(tmp_path: Path) -> None:
    nodes = [
        {"id": "a", "type": "inputNode", "name": "request"},
        {"id": "b", "type": "functionNode", "name": "script", "content": "const handler = () => 1"},
    ]
    model = {"nodes": nodes, "edges": [{"sourceId": "a", "targetId": "b"}], "tests": []}
    (tmp_path / "scripted.json").write_text(json.dumps(model), encoding="utf-8")
    found = run("import", "zen", tmp_path / "scripted.json", "--out", tmp_path)
    assert found.exit_code == 1
    assert "not translated: node `script`: JavaScript has no translation" in found.output
    assert "const handler = () => 1" in (tmp_path / "scripted_v1.vsp").read_text()
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    assert "the file is no JSON" in run("import", "zen", tmp_path / "broken.json").output
