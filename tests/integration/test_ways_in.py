"""One rule for depth and range, whichever way an input comes in: objects, JSON text, tables, files, the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import vesper
from vesper.cli.run.command import command

TYPES = {"json": "json", "decimal": "decimal", "integer": "integer", "float": "float"}

DEPTHS = {f"{depth} {what}": (what, depth) for depth in (127, 128, 129, 130, 200, 255) for what in ("lists", "objects")}

NUMBERS: dict[str, dict[str, str]] = {
    # text: the kind by type, "" where it is accepted
    "1e999": {"json": "", "decimal": "", "integer": "wrong_type", "float": "out_of_range"},
    "1e1000": {"json": "out_of_range", "decimal": "out_of_range", "integer": "wrong_type", "float": "out_of_range"},
    "1e1001": {"json": "out_of_range", "decimal": "out_of_range", "integer": "wrong_type", "float": "out_of_range"},
    "-1e1001": {"json": "out_of_range", "decimal": "out_of_range", "integer": "wrong_type", "float": "out_of_range"},
    "1e-1000": {"json": "", "decimal": "", "integer": "wrong_type", "float": ""},
    "1e-1001": {"json": "out_of_range", "decimal": "out_of_range", "integer": "wrong_type", "float": ""},
    "9" * 1000: {"json": "", "decimal": "", "integer": "out_of_range", "float": "out_of_range"},
    "9" * 1001: {"json": "out_of_range", "decimal": "out_of_range", "integer": "out_of_range", "float": "out_of_range"},
    "-" + "9" * 5000: {
        "json": "out_of_range",
        "decimal": "out_of_range",
        "integer": "out_of_range",
        "float": "out_of_range",
    },
    "0." + "1" * 1001: {"json": "out_of_range", "decimal": "out_of_range", "integer": "wrong_type", "float": ""},
    "1e99999999999999999999": {
        "json": "out_of_range",
        "decimal": "out_of_range",
        "integer": "wrong_type",
        "float": "out_of_range",
    },
    "1e-99999999999999999999": {
        "json": "out_of_range",
        "decimal": "out_of_range",
        "integer": "wrong_type",
        "float": "",
    },
    "0e99999999999999999999": {"json": "", "decimal": "", "integer": "wrong_type", "float": ""},
    str(2**63 - 1): {"json": "", "decimal": "", "integer": "", "float": ""},
    str(2**63): {"json": "", "decimal": "", "integer": "out_of_range", "float": ""},
    str(-(2**63)): {"json": "", "decimal": "", "integer": "", "float": ""},
    str(-(2**63) - 1): {"json": "", "decimal": "", "integer": "out_of_range", "float": ""},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nodes")
    for name, type_ in TYPES.items():
        (folder / f"{name}.vsp").write_text(
            f"""node_id: take_{name}_v1
type: function
intent: Accept one input
inputs: {{v: {type_}}}
outputs: {{success: {{ok: boolean}}}}
flow: [{{operation: return, success: {{ok: "true"}}}}]
""",
            encoding="utf-8",
        )
    return folder


def _nested(what: str, depth: int) -> str:
    return "[" * depth + "]" * depth if what == "lists" else '{"a":' * depth + "1" + "}" * depth


def _problem(problems: list[tuple[str, str]]) -> str:
    """Return the kind of the one problem, which is at the input."""
    if not problems:
        return ""
    [(path, kind)] = problems
    assert path == "v"
    return kind


def _of_outcome(outcome: vesper.Outcome[Any]) -> str:
    if outcome.error is None:
        return ""
    assert outcome.error.code == "bad_input"
    return _problem([(each.path, each.kind) for each in outcome.error.problems])


def _objects(folder: Path, engine: str, type_: str, text: str) -> str:
    given = json.loads(
        text, parse_float=Decimal, parse_int=lambda digits: int(digits) if len(digits) < 4000 else -(10**4000)
    )
    return _of_outcome(vesper.load(folder / f"{type_}.vsp", engine=engine)({"v": given}))


def _json_text(folder: Path, engine: str, type_: str, text: str) -> str:
    return _of_outcome(vesper.load(folder / f"{type_}.vsp", engine=engine)(f'{{"v": {text}}}'))


def _run_json(folder: Path, engine: str, type_: str, text: str) -> str:
    answer = json.loads(vesper.load(folder / f"{type_}.vsp", engine=engine).run_json(f'{{"v": {text}}}'.encode()))
    if answer["kind"] == "returned":
        return ""
    assert answer["code"] == "bad_input"
    return _problem([(each["path"], each["kind"]) for each in answer["problems"]])


def _file(kind: str, folder: Path, engine: str, type_: str, text: str) -> str:
    given, out = folder / f"given.{kind}", folder / "out.jsonl"
    quoted = text.replace('"', '""')
    given.write_text(f'{{"v": {text}}}\n' if kind == "jsonl" else f'v\n"{quoted}"\n', encoding="utf-8")
    words = [str(folder / f"{type_}.vsp"), "--engine", engine, "--batch", str(given), "-o", str(out)]
    ran = CliRunner().invoke(command, words)
    assert ran.exit_code in (0, 1), ran.output
    error = json.loads(out.read_text(encoding="utf-8"))["error"]
    return "" if error is None else _kind_in(error["message"])


def _command(way: str, folder: Path, engine: str, type_: str, text: str) -> str:
    words = [str(folder / f"{type_}.vsp"), "--engine", engine, "--format", "json"]
    if way == "--json":
        given = folder / "given.json"
        given.write_text(f'{{"v": {text}}}', encoding="utf-8")
        words += ["--json", str(given)]
    else:
        words += ["--input", f"v={text}"]
    ran = CliRunner().invoke(command, words)
    outcome = json.loads(ran.output)["outcomes"][engine]
    if outcome["kind"] == "returned":
        return ""
    return _problem([(each["path"], each["kind"]) for each in outcome["problems"]])


_WORDS = {"out of range": "out_of_range", "nested too deep": "too_deep", "malformed": "malformed"}


def _kind_in(message: str) -> str:
    """Return the kind that the message of a row tells."""
    return next((kind for words, kind in _WORDS.items() if words in message), "wrong_type")


WAYS: dict[str, Callable[..., str]] = {
    "objects": _objects,
    "JSON text": _json_text,
    "run_json": _run_json,
    "file of JSON lines": partial(_file, "jsonl"),
    "file of CSV": partial(_file, "csv"),
    "--json": partial(_command, "--json"),
    "--input": partial(_command, "--input"),
}
TEXTS = ("file of CSV", "--input")
"""Ways in which every value is a text of its type: an integer then has no exponent, and is malformed with one."""


def _engines(way: str) -> tuple[str, ...]:
    return ("interp",) if way.startswith("file") else ("python", "interp", "jit")


CASES = [(way, engine) for way in WAYS for engine in _engines(way)]


@pytest.mark.parametrize("way, engine", CASES)
@pytest.mark.parametrize("name", DEPTHS)
def test_depth_is_one_rule(folder: Path, way: str, engine: str, name: str) -> None:
    what, depth = DEPTHS[name]
    found = WAYS[way](folder, engine=engine, type_="json", text=_nested(what, depth))
    assert found == ("" if depth <= 128 else "too_deep")


@pytest.mark.parametrize("way, engine", CASES)
@pytest.mark.parametrize("text", NUMBERS, ids=lambda text: text[:24])
def test_range_is_one_rule(folder: Path, way: str, engine: str, text: str) -> None:
    expected = dict(NUMBERS[text])
    if way == "objects" and len(text) in (22, 23, 24):
        return  # an exponent that no Decimal has
    if way == "objects":
        del expected["float"]  # no object but a float is one, and Python reads 1e1001 as infinity
    if way in TEXTS and expected["integer"] == "wrong_type":
        expected["integer"] = "malformed"
    assert {type_: WAYS[way](folder, engine=engine, type_=type_, text=text) for type_ in expected} == expected


@pytest.mark.parametrize("way, engine", [case for case in CASES if case[0] in ("JSON text", "run_json")])
@pytest.mark.parametrize(
    "text, path, kind",
    [
        ("[" * 257, "", "too_deep"),
        ("[" * 160_000, "", "too_deep"),
        ('{"v": ' + "[" * 160_000, "", "too_deep"),
        ('{"v": 1, "v": ' + "[" * 160_000, "", "malformed"),
        ('{"v": [1e1001, x]}', "", "malformed"),
        ('{"v": [1e1001, ' + _nested("lists", 200) + "]}", "v", "out_of_range"),
    ],
    ids=lambda each: each[:24],
)
def test_texts_beyond_the_limits(folder: Path, way: str, engine: str, text: str, path: str, kind: str) -> None:
    node = vesper.load(folder / "json.vsp", engine=engine)
    if way == "run_json":
        [problem] = json.loads(node.run_json(text.encode()))["problems"]
        assert (problem["path"], problem["kind"]) == (path, kind)
    else:
        error = node(text).error
        assert error is not None
        assert [(each.path, each.kind) for each in error.problems] == [(path, kind)]


@pytest.mark.parametrize("engine", ["python", "interp"])
def test_more_elements_than_the_limit(folder: Path, engine: str) -> None:
    node = vesper.load(folder / "json.vsp", engine=engine)
    text = '{"v": [' + ",".join(["1"] * 1_000_001) + "]}"
    [problem] = json.loads(node.run_json(text.encode()))["problems"]
    assert (problem["path"], problem["kind"]) == ("v", "out_of_range")


@pytest.mark.parametrize("engine", ["python", "interp"])
def test_problems_of_siblings_are_found_beside_a_deep_value(tmp_path: Path, engine: str) -> None:
    (tmp_path / "two.vsp").write_text(
        """node_id: take_two_v1
type: function
intent: Accept two inputs
inputs: {deep: {type: "map<integer, array<json>>"}, v: integer}
outputs: {success: {ok: boolean}}
flow: [{operation: return, success: {ok: "true"}}]
""",
        encoding="utf-8",
    )
    node = vesper.load(tmp_path / "two.vsp", engine=engine)
    text = f'{{"deep": [[7, [1, {_nested("lists", 129)}]]], "v": 1e1001}}'
    found = json.loads(node.run_json(text.encode()))["problems"]
    assert [(each["path"], each["kind"]) for each in found] == [("deep[7][1]", "too_deep"), ("v", "wrong_type")]
    error = node({"deep": {7: [1, json.loads(_nested("lists", 129))]}, "v": Decimal("1e1001")}).error
    assert error is not None
    assert [(each.path, each.kind) for each in error.problems] == [("deep[7][1]", "too_deep"), ("v", "wrong_type")]
