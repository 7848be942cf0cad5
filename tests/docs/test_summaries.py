"""Check the committed results of proofs and benchmarks: summaries, in the form that the programs write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.proofs.robustness.proof import PROOFS, ROOT, compact_json, write_json

MAX_LINES = 40
SUMMARIES = sorted([*PROOFS.glob("*.json"), *(ROOT / "docs" / "benchmarks").glob("*.json")])


@pytest.mark.parametrize("path", SUMMARIES, ids=lambda path: path.stem)
def test_a_summary_has_few_lines_in_the_compact_form(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == compact_json(json.loads(text))
    assert len(text.splitlines()) <= MAX_LINES


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        {"a": None, "b": [1, 2.5, "ü\n"], "c": {}},
        {"long": {f"key {number}": number for number in range(100)}, "list": ["x" * 50] * 20},
        {"nested": {"inner": {"x" * 200: {"y": [[1, 2]] * 60}}}, "rows": [{"a": "b" * 100, "c": "d" * 100}] * 3},
    ],
    ids=range(5),
)
def test_compact_json_is_the_same_value(value: dict[str, object], tmp_path: Path) -> None:
    assert json.loads(compact_json(value)) == value
    if isinstance(value, dict):
        write_json(tmp_path / "new" / "file.json", value)
        assert json.loads((tmp_path / "new" / "file.json").read_text(encoding="utf-8")) == value
