"""Files of rows with outside names: texts of CSV, and lines of JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from vesper.cli.main import vesper

NODE = """\
node_id: move_v1
type: function
intent: Name a country
types:
  Country: {type: "enum[germany, france]", as: {germany: DE}}
inputs:
  country: {type: Country, as: "country code"}
  phone: {type: optional<string>, as: Phone, absent: no_phone}
outputs:
  success:
    to: {type: Country, as: To}
    known: boolean
flow:
  - operation: return
    success: {to: country, known: NOT no_phone}
"""


@pytest.fixture
def node(tmp_path: Path) -> Path:
    pytest.importorskip("pyarrow")
    path = tmp_path / "move_v1.vsp"
    path.write_text(NODE, encoding="utf-8")
    return path


def run(node: Path, name: str, text: str, output: str) -> str:
    rows, answer = node.parent / name, node.parent / output
    rows.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(vesper, ["run", str(node), "--batch", str(rows), "--output", str(answer)])
    assert result.exit_code in (0, 1), result.output
    return answer.read_text(encoding="utf-8")


def test_an_empty_cell_of_csv_is_absent(node: Path) -> None:
    answer = run(node, "rows.csv", "country code,Phone\nDE,1\nfrance,\ngermany,2\n", "answer.csv")
    lines = answer.replace('"', "").splitlines()
    assert lines[0].startswith("To,known,")
    assert [line[:10] for line in lines[1:3]] == ["DE,true,,,", "france,fal"]
    assert "expected one of DE, france" in answer


def test_lines_of_json_are_read_as_run_json_reads_them(node: Path) -> None:
    text = '{"country code": "DE"}\n{"Phone": null, "country code": "france"}\n{"country": "DE"}\n'
    rows = [json.loads(line) for line in run(node, "rows.jsonl", text, "answer.jsonl").splitlines()]
    assert [(row["To"], row["known"]) for row in rows[:2]] == [("DE", False), ("france", True)]
    assert rows[2]["error"]["code"] == "bad_input"
