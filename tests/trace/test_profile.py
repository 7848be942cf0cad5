"""`vesper profile`: every step and operation has its time on every engine, and the dear ones are the dear ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.journalled import invoke
from tests.support.nodes import ROOT

NODE = """\
node_id: uneven_v1
type: function
intent: Spend the time in one step
inputs:
  count: integer
outputs:
  success: {cheap: integer, dear: integer}
flow:
  - {step: cheap, operation: compute, value: count + 1}
  - {step: dear, operation: compute, value: "SUM(i * i FOR i IN range(0, count))"}
  - {operation: return, success: [cheap, dear]}
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rounds find a step that takes a hundred times as long."""
    monkeypatch.setattr("vesper.trace.profile._ROUNDS", 10)
    monkeypatch.setattr("vesper.trace.profile._REPEATS", 50)


def test_the_dear_step_is_found_on_every_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("uneven_v1.vsp").write_text(NODE, encoding="utf-8")
    done = invoke("profile", "./uneven_v1.vsp", "-i", "count=1500", "--format", "json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    steps = {each["step"]: each["ns"] for each in said["steps"]}
    assert list(steps) == [
        "(inputs, constraints, preconditions)", "cheap", "dear", "return", "(outputs, postconditions, invariants)",
    ]  # fmt: skip
    for engine in ("python", "interp"):
        assert max(steps, key=lambda each: steps[each][engine]) == "dear"
    assert [each["operation"] for each in said["operations"]] == ["array.range", "integer.add"]


def test_a_node_with_effects_is_timed_on_the_answers_of_a_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    node = str(ROOT / "nodes" / "shop" / "stock_release_v1.vsp")
    done = invoke("profile", node)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[2].split() == ["step", "python", "interp"]
    assert "all of it" in done.stdout
    assert list(tmp_path.iterdir()) == []
    for arguments, message in (
        (["--case", "nobody"], "has no case `nobody`"),
        (["--case", "x", "-i", "a=1"], "say what to run once"),
        (["--trace", "ffff"], "there is no trace `ffff`"),
    ):
        refused = invoke("profile", node, *arguments)
        assert refused.exit_code != 0
        assert message in refused.stderr
