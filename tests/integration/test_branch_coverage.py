"""`vesper test` and `vesper verify` name the branches that nothing covered, and require a minimum."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from tests.support.nodes import ROOT
from vesper.cli.test.command import command as run_tests
from vesper.cli.verify.command import command as run_verify

# Three conditions that no input can give the other value, although no checker knows it.
NODE = """node_id: ship_v1
type: function
intent: Price a parcel
inputs:
  grams: {type: integer, constraints: [{min: 1}, {max: 30000}]}
  note: optional<string>
outputs:
  success: {price: decimal, line: string}
  error: {error_code: "enum[too_heavy, lost]", message: string}
flow:
  - {operation: raise, when: grams > 29000, error: {error_code: too_heavy, message: "'no'"}}
  - {operation: raise, when: "mod(grams * grams, 4) == 2", error: {error_code: lost, message: "'gone'"}}
  - step: price
    operation: decision_table
    rows:
      - {when: grams <= 2000, then: '4.50'}
      - {when: "mod(grams * grams, 4) == 3", then: '0'}
      - {otherwise: '9.00'}
  - operation: return
    success: {price: price, line: "IF length(note ?? '-') >= 0 THEN note ?? '-' ELSE 'never'"}
"""
UNCOVERED = [
    ("condition", "mod(grams * grams, 4) == 2", "is never true"),
    ("error", "lost", "is never returned"),
    ("condition", "mod(grams * grams, 4) == 3", "is never true"),
    ("condition", "length(note ?? '-') >= 0", "is never false"),
]
LINES = (12, 12, 17, 20)
LOOP = """node_id: total_v1
type: function
intent: Add up
inputs: {numbers: array<integer>}
outputs: {success: {total: integer}}
flow:
  - step: total
    operation: loop
    over: number IN numbers
    max: 100
    state: {sum: 0}
    next: {sum: sum + number}
  - {operation: return, success: {total: total.sum}}
testing:
  test_cases:
    - {name: nothing, inputs: {numbers: []}, expect: {total: 0}}
    - {name: two, inputs: {numbers: [1, 2]}, expect: {total: 3}}
"""


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "ship_v1.vsp"
    path.write_text(NODE, encoding="utf-8")
    return path


def _test(*arguments: str) -> Result:
    return CliRunner().invoke(run_tests, ["ship_v1.vsp", "--max-examples", "60", *arguments])


def _verify(*arguments: str) -> Result:
    options = ["ship_v1.vsp", "--max-examples", "120", "--engine", "interp", *arguments]
    return CliRunner().invoke(run_verify, options)


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("run", [_test, _verify])
def test_text_names_uncovered_branches(run: object) -> None:
    assert callable(run)
    done = run()
    assert done.exit_code == 0, done.output
    for line, (_, text, missing) in zip(LINES, UNCOVERED, strict=True):
        assert f"not covered: ship_v1.vsp:{line}: `{text}` {missing}\n" in done.stdout
    assert done.stdout.count("not covered:") == len(UNCOVERED)
    assert "12 of 16 branches" in done.stdout


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("run", [_test, _verify])
def test_json_lists_uncovered_branches(run: object) -> None:
    assert callable(run)
    (found,) = json.loads(run("--format", "json").stdout)["nodes"]
    assert [(each["kind"], each["text"], each["missing"]) for each in found["uncovered_branches"]] == UNCOVERED
    assert [each["line"] for each in found["uncovered_branches"]] == list(LINES)
    assert (found["branches_covered"], found["branches_total"], found["coverage_percent"]) == (12, 16, 75.0)


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("run", [_test, _verify])
def test_too_little_coverage_fails_the_command(run: object) -> None:
    assert callable(run)
    assert run("--min-coverage", "75").exit_code == 0
    done = run("--min-coverage", "80")
    assert done.exit_code == 1
    assert "ship_v1 covers 75.0 % of its branches, less than --min-coverage 80" in done.stderr
    assert json.loads(run("--min-coverage", "80", "--format", "json").stdout)["passed"] is False
    assert run("--min-coverage", "101").exit_code == 2


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("run", [_test, _verify])
def test_junit_has_uncovered_branches(run: object) -> None:
    assert callable(run)
    root = ET.fromstring(run("--format", "junit").stdout)  # written by the command
    suite = root.find("testsuite")
    assert suite is not None
    counts = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert counts == {"branches_covered": "12", "branches_total": "16"}
    output = suite.findtext("system-out")
    assert output is not None
    assert len(output.splitlines()) == len(UNCOVERED)
    assert not list(root.iter("failure"))
    required = ET.fromstring(run("--format", "junit", "--min-coverage", "90").stdout)  # as above
    (failure,) = required.iter("failure")
    assert "mod(grams * grams, 4) == 3" in (failure.text or "")


@pytest.mark.usefixtures("node")
def test_sarif_has_missed_coverage() -> None:
    (run,) = json.loads(_verify("--format", "sarif", "--min-coverage", "90").stdout)["runs"]
    (found,) = run["results"]
    assert found["ruleId"] == "coverage-missed"


def _uncovered(*arguments: str) -> list[str]:
    done = CliRunner().invoke(run_tests, [*arguments, "--max-examples", "0", "--format", "json"])
    (found,) = json.loads(done.stdout)["nodes"]
    return [each["text"] for each in found["uncovered_branches"] if each["kind"] in ("handler", "loop")]


def test_a_handler_is_covered_by_the_case_that_runs_it() -> None:
    path = str(ROOT / "nodes" / "payments" / "refund_v1.vsp")
    assert "on_error not_found of payment" in _uncovered(path, "-k", "a part is given back")
    assert not _uncovered(path)


def test_a_loop_is_covered_by_a_case_with_a_round(tmp_path: Path) -> None:
    path = tmp_path / "total_v1.vsp"
    path.write_text(LOOP, encoding="utf-8")
    assert _uncovered(str(path), "-k", "nothing") == ["loop total"]
    assert not _uncovered(str(path))
