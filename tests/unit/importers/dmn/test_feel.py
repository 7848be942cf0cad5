"""Values of FEEL expressions after translation, on both engines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.importers.dmn.models import import_one, literal_decision, output_json, run_node, write_model

LINES = [line for line in (Path(__file__).parent / "feel_values.txt").read_text("utf-8").splitlines() if line[0] != "#"]
CASES = [tuple(line.rsplit(" => ", 1)) for line in LINES]


@pytest.mark.parametrize("chunk", range(4))
def test_expressions_have_their_values(chunk: int, tmp_path: Path) -> None:
    cases = CASES[chunk::4]
    body = "".join(literal_decision(f"d{at}", text) for at, (text, _) in enumerate(cases))
    path = write_model(tmp_path / "m.dmn", body)
    for at, (text, expected) in enumerate(cases):
        node = import_one(path, f"d{at}")
        if expected == "refused":
            assert node.problems, text
            assert "not_translated(" in node.text
            continue
        assert not node.problems, (text, node.problems)
        assert output_json(node, run_node(node, {})) == json.loads(expected), (text, node.text)
