"""`vesper verify`: options, output formats, and a user's function as the reference."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from vesper.cli.verify import relations
from vesper.cli.verify.command import command
from vesper.verify.relations import checking
from vesper.verify.relations.rewritings import Relation, Rewriting

NODE = """node_id: rest_v1
type: function
intent: What is left
inputs:
  amount: {type: decimal, constraints: [positive]}
  limit: {type: decimal, default: 5.00}
outputs:
  success: {rest: decimal}
  error: {error_code: "enum[too_much]", message: string}
flow:
  - {operation: raise, when: amount > limit, error: {error_code: too_much, message: "'no'"}}
  - {operation: return, success: {rest: limit - amount}}
testing:
  test_cases:
    - {name: some is left, inputs: {amount: 2}, expect: {rest: %s}}
"""
FUNCTIONS = """from decimal import Context, Decimal

EXACT = Context(prec=3000, Emax=10_000, Emin=-10_000)

def right(amount, limit):
    if amount > limit:
        raise ValueError("too much")
    return {"rest": EXACT.subtract(limit, amount)}

def rounds_at_28_digits(amount, limit):
    if amount > limit:
        raise ValueError("too much")
    return {"rest": limit - amount}

def never_raises(amount, limit):
    return {"rest": limit - amount}

def off_at_four(amount, limit):
    if amount > limit:
        raise ValueError("too much")
    return {"rest": EXACT.add(EXACT.subtract(limit, amount), Decimal("0.01" if amount >= 4 else "0"))}

def one_number(amount, limit):
    return limit - amount

def no_output(amount, limit):
    return {"left": limit - amount}

NUMBER = 5
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "rest_v1.vsp").write_text(NODE % "3.00", encoding="utf-8")
    # A new name for each test, because Python caches modules by name.
    (tmp_path / f"{tmp_path.name}.py").write_text(FUNCTIONS, encoding="utf-8")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, [*arguments])


def run_json(*arguments: str) -> tuple[int, dict[str, Any]]:
    result = run(*arguments, "--format", "json")
    return result.exit_code, json.loads(result.stdout)


def test_json_has_the_numbers(folder: Path) -> None:
    exit_code, found = run_json("rest", "--max-examples", "200")
    assert exit_code == 0
    assert found["executions"] == 200
    assert found["programs"] == found["disagreements"] == found["not_comparable"] == 0
    assert found["paths_covered"] == found["paths_total"] == 2
    assert found["operations_covered"] == 2, "greater and subtract"
    assert found["engines"] == ["python", "interp", "interp-optimised", "interp-unoptimised", "jit"]
    assert found["passed"] is True


def test_failures_are_counted_by_code(folder: Path) -> None:
    text = (NODE % "3").replace("rest: limit - amount", "rest: 'amount / (limit - 5)'").partition("testing:")[0]
    Path("nodes/rest_v1.vsp").write_text(text, encoding="utf-8")
    _, found = run_json("rest", "--max-examples", "100")
    (node,) = found["nodes"]
    assert node["failures"]["division_by_zero"] > 0
    assert sum(node["failures"].values()) == node["outcomes"]["failed"]
    codes = ", ".join(f"{code} {times}" for code, times in sorted(node["failures"].items()))
    assert f"{node['outcomes']['failed']} failed ({codes})" in run("rest", "--max-examples", "100").stdout


def test_programs_alone_draw_nothing_else(folder: Path) -> None:
    exit_code, found = run_json("--programs", "2")
    assert exit_code == 0
    assert found["nodes"] == []
    assert found["programs"] == 2
    assert found["executions"] == found["random_programs"]["executions"] == 40


def test_programs_and_nodes(folder: Path) -> None:
    _, found = run_json("nodes", "--programs", "1", "--max-examples", "10")
    assert [each["node"] for each in found["nodes"]] == ["rest_v1"]
    assert (found["programs"], found["executions"]) == (1, 30)


def test_seconds_end_the_command(folder: Path) -> None:
    begun = time.monotonic()
    exit_code, found = run_json("nodes", "--max-examples", "100000000", "--seconds", "0.5")
    assert exit_code == 0
    assert 0 < found["executions"] < 1_000_000
    assert time.monotonic() - begun < 30


def test_time_is_shared_by_the_nodes(folder: Path) -> None:
    for number in range(2, 5):
        text = (NODE % "3.00").replace("rest_v1", f"rest_v{number}")
        (folder / "nodes" / f"rest_v{number}.vsp").write_text(text, encoding="utf-8")
    _, found = run_json("nodes", "--max-examples", "100000000", "--seconds", "2")
    assert len(found["nodes"]) == 4
    assert all(each["executions"] > 0 for each in found["nodes"])


def test_engines_are_chosen(folder: Path) -> None:
    _, found = run_json("rest", "--engine", "interp", "--max-examples", "5")
    assert found["engines"] == ["python", "interp"]
    refused = run("rest", "--engine", "python")
    assert refused.exit_code == 2
    assert "is the reference of the comparison" in refused.stderr


# -- against --------------------------------------------------------------------------------------


def test_a_function_that_agrees(folder: Path) -> None:
    exit_code, found = run_json("rest", "--against", f"{folder.name}:right", "--max-examples", "300")
    assert exit_code == 0
    (node,) = found["nodes"]
    assert node["executions"] > 100
    assert node["not_taken"] > 0, "the function is not asked about what the node refuses"
    assert node["executions"] + node["not_taken"] == 300
    assert found["against"] == f"{folder.name}:right"


def test_a_function_that_is_off_is_shown_and_kept(folder: Path) -> None:
    exit_code, found = run_json("rest", "--against", f"{folder.name}:off_at_four", "--max-examples", "300")
    assert exit_code == 1, "no bug of Vesper"
    ((difference,),) = (node["disagreements"] for node in found["nodes"])
    assert Decimal(difference["inputs"]["amount"]) >= 4
    answers = {name: Decimal(answer["value"]["rest"]) for name, answer in difference["answers"].items()}
    assert answers["python"] == answers["interp"] == answers[f"{folder.name}:off_at_four"] - Decimal("0.01")
    (kept,) = (folder / "tests" / "conformance" / "regressions").iterdir()
    assert f'against: "{folder.name}:off_at_four"' in kept.read_text(encoding="utf-8")


def test_digits_that_python_drops_are_noticed(folder: Path) -> None:
    assert run("rest", "--against", f"{folder.name}:rounds_at_28_digits", "--max-examples", "1000").exit_code == 1


def test_what_is_raised_must_not_be_returned(folder: Path) -> None:
    result = run("rest", "--against", f"{folder.name}:never_raises", "--max-examples", "300")
    assert result.exit_code == 1
    assert f"the engines and {folder.name}:never_raises disagree on `rest_v1`" in result.stderr


@pytest.mark.parametrize(
    "name, says",
    [
        ("{}:one_number", "it must return a dict with rest"),
        ("{}:no_output", "which are no outputs"),
        ("{}:missing", "has no `missing`"),
        ("{}:NUMBER", "cannot be called"),
        ("{}", "names no function"),
        ("no_such_module_here:f", "there is no module `no_such_module_here`"),
    ],
)
def test_functions_that_cannot_be_used(folder: Path, name: str, says: str) -> None:
    result = run("rest", "--against", name.format(folder.name))
    assert result.exit_code in (1, 2)
    assert says in result.stderr


def test_a_module_that_raises_is_named(folder: Path) -> None:
    (folder / "broken_module_of_a_test.py").write_text("1 / 0\n", encoding="utf-8")
    result = run("rest", "--against", "broken_module_of_a_test:f")
    assert result.exit_code == 2
    assert "ZeroDivisionError" in result.stderr


# -- formats --------------------------------------------------------------------------------------


def test_junit(folder: Path) -> None:
    (folder / "nodes" / "bad_v1.vsp").write_text("node_id: bad_v1\n", encoding="utf-8")
    (folder / "nodes" / "rest_v1.vsp").write_text(NODE % "4.00", encoding="utf-8")
    result = run("nodes", "--max-examples", "20", "--format", "junit", "--programs", "1")
    assert result.exit_code == 1
    root = ET.fromstring(result.stdout)
    assert root.tag == "testsuites"
    assert {suite.get("name") for suite in root} == {"rest_v1", "nodes/bad_v1.vsp", "random programs"}
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("5", "1", "1")
    for suite in root:
        assert int(suite.get("tests", "")) == len(suite.findall("testcase"))
        assert int(suite.get("failures", "")) == len(suite.findall("testcase/failure"))
        assert int(suite.get("errors", "")) == len(suite.findall("testcase/error"))
        assert float(suite.get("time", "")) >= 0
    (failure,) = root.iter("failure")
    assert failure.text is not None
    assert "wants  returned rest=4.00" in failure.text


def test_sarif(folder: Path) -> None:
    arguments = ("rest", "--against", f"{folder.name}:off_at_four", "--max-examples", "300", "--format", "sarif")
    result = run(*arguments)
    log = json.loads(result.stdout)
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    (sarif_run,) = log["runs"]
    rules = [rule["id"] for rule in sarif_run["tool"]["driver"]["rules"]]
    (found,) = sarif_run["results"]
    assert rules[found["ruleIndex"]] == found["ruleId"] == "function-disagrees"
    place = found["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "nodes/rest_v1.vsp"
    assert place["region"]["startLine"] >= 1
    assert "input:  amount=" in found["message"]["text"]


def test_sarif_and_junit_of_nothing_wrong(folder: Path) -> None:
    assert json.loads(run("rest", "--max-examples", "5", "--format", "sarif").stdout)["runs"][0]["results"] == []
    assert ET.fromstring(run("rest", "--max-examples", "5", "--format", "junit").stdout).get("failures") == "0"


@pytest.mark.parametrize("style", ["text", "json", "junit", "sarif"])
def test_a_broken_relation_is_a_bug_of_vesper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, style: str) -> None:
    path = tmp_path / "rest_v1.vsp"
    path.write_text(NODE % "3.00", encoding="utf-8")
    asked = [str(path), "--relations", "--max-examples", "5", "--format", style, "--save-to", str(tmp_path)]
    assert CliRunner().invoke(command, asked).exit_code == 0
    broken = Relation("halved", "half of a node is a node", lambda *_: Rewriting("node_id: rest_v1"), True)
    monkeypatch.setattr(relations, "verify_relations", partial(checking.verify_relations, relations=[broken]))
    result = CliRunner().invoke(command, asked)
    assert result.exit_code == 3
    assert "halved" in result.output
