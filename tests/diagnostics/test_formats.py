"""What `vesper check` writes for programs: JSON of its own, and SARIF 2.1.0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from vesper.cli.check.command import command
from vesper.language.diagnostics.codes import Code

NODE = """\
node_id: test_v1
type: function
intent: Test 😀
inputs:
  amount: decimal
outputs:
  success:
    r: decimal
contracts:
  preconditions:
    - CLAUSE
flow:
  - step: r
    operation: compute
    value: amount
  - operation: return
    success: [r]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, clause: str, name: str = "test_v1.vsp") -> str:
    text = NODE.replace("CLAUSE", clause).replace("test_v1", name.removesuffix(".vsp") if "_v" in name else "test_v1")
    (folder / name).write_text(text, encoding="utf-8")
    return name


def check(*arguments: str) -> Result:
    return CliRunner().invoke(command, [*arguments, "--no-cache"])


def checked_json(*arguments: str) -> tuple[int, Any]:
    done = check(*arguments)
    assert done.stderr == ""
    return done.exit_code, json.loads(done.stdout)


# -- JSON -----------------------------------------------------------------------------------------


def test_json_of_a_clean_node(folder: Path) -> None:
    found = checked_json(write(folder, "amount > 0"), "--format", "json")
    assert found == (0, {"files": 1, "errors": 0, "warnings": 0, "notes": 0, "diagnostics": []})


def test_json_of_an_unknown_name(folder: Path) -> None:
    path = write(folder, "'😀' == '😀' AND ammount > 0".join('""'))
    assert checked_json(path, "--format", "json") == (
        1,
        {
            "files": 1,
            "errors": 1,
            "warnings": 0,
            "notes": 0,
            "diagnostics": [
                {
                    "code": "VSP1102",
                    "name": "unknown-name",
                    "severity": "error",
                    "headline": "no input, constant or earlier step is named `ammount`",
                    "path": "test_v1.vsp",
                    "line": 11,
                    "column": 23,
                    "end_line": 11,
                    "end_column": 30,
                    "label": "unknown name",
                    "secondary": [
                        {
                            "line": 5,
                            "column": 3,
                            "end_line": 5,
                            "end_column": 9,
                            "label": "`amount` is declared here",
                        }
                    ],
                    "help": "did you mean `amount`?",
                    "fix": {
                        "description": "write `amount`",
                        "safety": "suggested",
                        "edits": [
                            {"line": 11, "column": 23, "end_line": 11, "end_column": 30, "replacement": "amount"}
                        ],
                    },
                }
            ],
        },
    )


def test_json_counts_and_says_which_fixes_are_safe(folder: Path) -> None:
    clauses = {"a_v1.vsp": "amount = 0", "b_v1.vsp": "x", "c_v1.vsp": "amount > 0"}
    paths = [write(folder, clause, name) for name, clause in clauses.items()]
    text = (folder / "c_v1.vsp").read_text(encoding="utf-8")
    unused = "constants:\n  k: {type: integer, value: 1}\nflow:"
    (folder / "c_v1.vsp").write_text(text.replace("flow:", unused), encoding="utf-8")
    code, found = checked_json(*paths, "--format", "json")
    assert code == 1
    assert (found["files"], found["errors"], found["warnings"]) == (3, 2, 1)
    listed = [(each["path"], each["code"], each.get("fix", {}).get("safety")) for each in found["diagnostics"]]
    assert listed == [("a_v1.vsp", "VSP0105", "safe"), ("b_v1.vsp", "VSP1102", None), ("c_v1.vsp", "VSP1204", None)]


def test_json_says_what_was_fixed(folder: Path) -> None:
    code, found = checked_json(write(folder, "amount = 0"), "--fix", "--format", "json")
    assert (code, found["errors"], found["diagnostics"]) == (0, 0, [])
    assert found["fixed"] == [
        {"code": "VSP0105", "path": "test_v1.vsp", "line": 11, "column": 14, "description": "write `amount == 0`"}
    ]
    assert "amount == 0" in (folder / "test_v1.vsp").read_text(encoding="utf-8")


def test_a_file_that_cannot_be_read_has_a_place_too(folder: Path) -> None:
    (folder / "bad.vsp").write_bytes(b"\xff")
    for style in ("json", "sarif"):
        code, _ = checked_json("bad.vsp", "--format", style)
        assert code == 1


def test_a_file_that_cannot_be_written_is_left_and_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(folder, "amount = 0")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("vesper.storage.write_file.tempfile.mkstemp", refuse)
    done = check(path, "--fix")
    assert done.exit_code == 1
    assert "cannot write test_v1.vsp: Permission denied" in done.stderr
    assert "amount = 0" in (folder / "test_v1.vsp").read_text(encoding="utf-8")


# -- SARIF ----------------------------------------------------------------------------------------

REGION = {"startLine": 0, "startColumn": 0, "endLine": 0, "endColumn": 0}
TEXT = {"text": ""}
LOCATION = {"physicalLocation": {"artifactLocation": {"uri": ""}, "region": REGION}, "message?": TEXT}
FORM = {
    "$schema": "",
    "version": "",
    "runs": [
        {
            "tool": {
                "driver": {
                    "name": "",
                    "version": "",
                    "rules": [{"id": "", "name": "", "shortDescription": TEXT, "fullDescription": TEXT}],
                }
            },
            "columnKind": "",
            "results": [
                {
                    "ruleId": "",
                    "ruleIndex": 0,
                    "level": "",
                    "message": TEXT,
                    "locations": [LOCATION],
                    "relatedLocations?": [LOCATION],
                    "fixes?": [
                        {
                            "description": TEXT,
                            "artifactChanges": [
                                {
                                    "artifactLocation": {"uri": ""},
                                    "replacements": [{"deletedRegion": REGION, "insertedContent": TEXT}],
                                }
                            ],
                        }
                    ],
                }
            ],
        }
    ],
}
"""The part of the standard's schema that Vesper uses; the schema allows no other keys. `?` marks what may be absent."""


def assert_has_form(value: Any, form: Any, where: str = "log") -> None:
    assert type(value) is type(form), where
    if isinstance(form, list):
        for index, each in enumerate(value):
            assert_has_form(each, form[0], f"{where}[{index}]")
    elif isinstance(form, dict):
        optional = {key[:-1] for key in form if key.endswith("?")}
        required = {key for key in form if not key.endswith("?")}
        assert required <= set(value) <= required | optional, where
        for key, each in value.items():
            assert_has_form(each, form.get(key, form.get(f"{key}?")), f"{where}.{key}")
    elif isinstance(form, int):
        assert value >= (0 if where.endswith("ruleIndex") else 1), where


def sarif(*arguments: str) -> tuple[int, Any]:
    code, log = checked_json(*arguments, "--format", "sarif")
    assert_has_form(log, FORM)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert run["columnKind"] == "unicodeCodePoints"
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [each.number for each in Code]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
    return code, run


def test_sarif_of_a_clean_node(folder: Path) -> None:
    code, run = sarif(write(folder, "amount > 0"))
    assert (code, run["results"]) == (0, [])


def test_sarif_of_an_unknown_name(folder: Path) -> None:
    code, run = sarif(write(folder, "\"'😀' == '😀' AND ammount > 0\""))
    (result,) = run["results"]
    assert code == 1
    assert result["message"]["text"].startswith("no input, constant or earlier step is named `ammount`\nhelp: did you")
    (location,) = result["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "test_v1.vsp"},
        "region": {"startLine": 11, "startColumn": 23, "endLine": 11, "endColumn": 30},
    }
    assert [each["message"]["text"] for each in result["relatedLocations"]] == ["`amount` is declared here"]
    assert "fixes" not in result, "a name that is only close is no fix"


def test_sarif_of_a_safe_fix(folder: Path) -> None:
    _, run = sarif(write(folder, "amount = 0"))
    ((fix,),) = (result["fixes"] for result in run["results"])
    (replacement,) = fix["artifactChanges"][0]["replacements"]
    assert replacement["insertedContent"] == {"text": "=="}
    assert replacement["deletedRegion"] == {"startLine": 11, "startColumn": 14, "endLine": 11, "endColumn": 15}


def test_sarif_names_files_by_uri(folder: Path) -> None:
    name = write(folder, "x > 0", "ä b#1.vsp")
    _, run = sarif(name)
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "%C3%A4%20b%231.vsp"
    _, run = sarif(str(folder / name))
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == (folder / name).as_uri()


@pytest.mark.parametrize("path", sorted(Path(__file__).parent.glob("*.vsp")), ids=lambda path: path.stem)
def test_every_diagnostic_has_both_forms(path: Path) -> None:
    code, run = sarif(str(path))
    same, found = checked_json(str(path), "--format", "json")
    assert code == same
    assert len(run["results"]) == len(found["diagnostics"]) == found["errors"] + found["warnings"] + found["notes"] > 0
    for each in found["diagnostics"]:
        assert (each["line"], each["column"]) <= (each["end_line"], each["end_column"])
