"""`vesper test` for programs: JSON, JUnit and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from tests.unit.verify.test_node_tests import _Odd
from vesper.cli.test import command as test_command
from vesper.engines.outcome import EngineFault
from vesper.engines.registry import ENGINES
from vesper.repository.starter import starter


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "nodes").mkdir()
    _write(tmp_path, "fee_v1", starter("fee_v1", "function"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _write(folder: Path, name: str, text: str) -> None:
    (folder / "nodes" / f"{name}.vsp").write_text(text, encoding="utf-8")


def _test(*arguments: str) -> Result:
    return CliRunner().invoke(test_command.command, ["--max-examples", "30", *arguments])


def test_json(folder: Path) -> None:
    _write(folder, "tax_v1", starter("tax_v1", "function").replace("fee: 5.0000", "fee: 6").replace("[{min: 0}]", "[]"))
    done = _test("--format", "json", "--engine", "both")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert (found["passed"], found["engines"], found["refused"]) == (False, ["python", "interp"], [])
    fee, tax = found["nodes"]
    assert fee["passed"]
    assert fee["properties"]["examples"] == 30
    assert not tax["passed"]
    case, zero = tax["cases"]
    assert zero["passed"]
    assert (
        case["line"]
        == starter("tax_v1", "function").split("\n").index("    - name: a tenth, if nothing else is said") + 1
    )
    assert case["expected"] == "returned fee=6"
    assert case["actual"]["interp"] == {"kind": "returned", "value": {"fee": "5.0000"}}
    (failure,) = tax["properties"]["failures"]
    assert (failure["kind"], failure["clause"]) == ("postcondition", "fee >= 0")
    assert failure["inputs"]["amount"] == "1"
    assert failure["case"].startswith("    - name: ")


def test_junit(folder: Path) -> None:
    odd = starter("tax_v1", "function").replace("fee: 5.0000", "fee: 6").replace("a tenth", '"a \\u0007<tenth>"')
    _write(
        folder,
        "tax_v1",
        odd.replace('name: "a \\u0007<tenth>", if', 'name: "a \\u0007<tenth>, if').replace("is said", 'is said"'),
    )
    _write(folder, "wrong_v1", "node_id: wrong_v1\n")
    done = _test("--format", "junit")
    assert done.exit_code == 1
    root = ET.fromstring(done.stdout)
    suites = {each.get("name"): each for each in root}
    assert {name: (each.get("tests"), each.get("failures")) for name, each in suites.items()} == {
        "fee_v1": ("3", "0"),
        "tax_v1": ("3", "1"),
        "wrong_v1": ("1", "1"),
    }
    (failure,) = suites["tax_v1"].iter("failure")
    assert failure.text is not None
    assert "expected" in failure.text
    names = [each.get("name") for each in suites["tax_v1"].iter("testcase")]
    assert names == ["a \\x07<tenth>, if nothing else is said", "nothing is worth zero", "properties"]


def test_fail_fast_stops_at_the_first_failure(folder: Path) -> None:
    _write(folder, "a_v1", starter("a_v1", "function").replace("fee: 5.0000", "fee: 6"))
    done = _test("--fail-fast")
    assert done.exit_code == 1
    assert "fee_v1" not in done.stdout
    assert "0 of 1 case passed" in done.stdout
    assert "the rest was not tested" in done.stdout
    assert "fee_v1" in _test().stdout


def test_a_bug_of_ours_is_exit_code_3(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = starter("n_v1", "function").replace("amount", "n").replace("decimal\n  rate", "integer\n  rate")
    text = text.partition("testing:")[0]
    _write(folder, "n_v1", text)
    monkeypatch.setitem(ENGINES, "python", _Odd(EngineFault("oops")))
    done = _test("n", "-k", "properties")
    assert done.exit_code == 3, done.output
    assert "an engine is at fault on n_v1" in done.stderr
    assert "this is a bug in Vesper, not in your node" in done.stderr


def test_nothing_to_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nodes").mkdir()
    done = _test()
    assert (done.exit_code, "no .vsp files found" in done.stderr) == (2, True)
