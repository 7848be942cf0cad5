"""Errors of calls: their texts are made when they are read, from the inputs of the call."""

from __future__ import annotations

import copy
import json
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vesper
from vesper.api import explain as explaining
from vesper.api import json_calls
from vesper.api.error_info import Explained

NODE = """node_id: ends_v1
type: function
intent: End in every way
types:
  Line: {fields: {qty: integer}}
inputs:
  amount: decimal
  parts:  integer
  lines:  {type: array<Line>, default: []}
  wait:   {type: integer, default: 0}
outputs:
  success: {each: decimal}
  error:
    error_code: enum[too_many]
    message:    string
contracts:
  preconditions: [amount > 0]
flow:
  - operation: validation
    require:
      - {condition: parts <= 100, error: {error_code: too_many, message: "at most 100 parts, not {parts}"}}
      - SUM(1 FOR x IN range(0, wait)) >= 0
  - operation: return
    success: {each: 'div(amount, parts, 2)'}
"""
ENGINES = ("python", "interp", "jit")
ENDS: dict[str, tuple[dict[str, Any], type[Exception], str, str]] = {
    "contract": ({"amount": -1, "parts": 3}, vesper.ContractBroken, "precondition", "amount is -1"),
    "declared": ({"amount": 1, "parts": 300}, vesper.DeclaredError, "too_many", "at most 100 parts, not 300"),
    "failed": ({"amount": 1, "parts": 0}, vesper.Raised, "division_by_zero", "in `div(amount, parts, 2)`"),
    "refused": ({"amount": "ten", "parts": 3}, vesper.BadInput, "bad_input", 'got str "ten", which is malformed'),
    "missing": ({"amount": 1}, vesper.BadInput, "bad_input", "parts: missing; expected integer"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nodes")
    (folder / "ends_v1.vsp").write_text(NODE, encoding="utf-8")
    return folder


def load(folder: Path, engine: str, limits: vesper.Limits | None = None) -> vesper.Node:
    return vesper.load(folder / "ends_v1.vsp", engine=engine, limits=limits)


@pytest.fixture
def explained(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every explanation that is made."""
    made: list[object] = []
    real: Callable[..., Explained] = explaining.explain

    def watched(*arguments: Any) -> Explained:
        made.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(explaining, "explain", watched)
    monkeypatch.setattr(json_calls, "explain", watched)
    return made


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("engine", ENGINES)
def test_no_text_is_made_before_it_is_read(folder: Path, engine: str, end: str, explained: list[object]) -> None:
    inputs, _, code, words = ENDS[end]
    outcome = load(folder, engine)(**inputs)
    assert not outcome
    error = outcome.error
    assert error is not None
    assert error.code == code
    assert error.kind in ("contract_broken", "declared_error", "failed")
    assert explained == []
    assert words in error.message
    assert len(explained) == 1
    assert error.message is error.message
    assert len(explained) == 1


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_an_exception_is_raised_without_texts(folder: Path, engine: str, end: str, explained: list[object]) -> None:
    inputs, kind, code, words = ENDS[end]
    with pytest.raises(kind) as raised:
        load(folder, engine).call(inputs)
    assert explained == []
    assert type(raised.value).__name__ == kind.__name__
    assert words in str(raised.value)
    assert raised.value.args == (str(raised.value),)
    assert getattr(raised.value, "code", code) == code


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_way_to_an_error_tells_the_same(folder: Path, engine: str, end: str) -> None:
    inputs, kind, _, _ = ENDS[end]
    node, limited = load(folder, engine), load(folder, engine, vesper.Limits(fuel=10_000))
    found = [node(**inputs).error, node(inputs).error, limited(**inputs).error]
    found += [node.map([inputs], outcomes=True)[0].error]
    reference = load(folder, "python")(**inputs).error
    assert reference is not None
    for each in found:
        assert each == reference
        assert repr(each) == repr(reference)
    with pytest.raises(kind) as raised:
        limited.call(inputs)
    assert str(raised.value) == reference.message


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_an_exception_can_be_pickled_and_copied(folder: Path, engine: str, end: str) -> None:
    inputs, kind, _, _ = ENDS[end]
    with pytest.raises(kind) as raised:
        load(folder, engine).map([inputs])
    for other in (pickle.loads(pickle.dumps(raised.value)), copy.copy(raised.value)):
        assert type(other) is type(raised.value)
        assert str(other) == str(raised.value)
        assert other.__notes__[-1] == "these were the inputs 0 of `map`, counted from 0"


def test_attributes_of_exceptions(folder: Path) -> None:
    node = load(folder, "interp")
    with pytest.raises(vesper.ContractBroken) as broken:
        node.call(ENDS["contract"][0])
    assert (broken.value.phase, broken.value.index) == ("precondition", 0)
    assert list(broken.value.values) == ["amount"]
    with pytest.raises(vesper.DeclaredError) as declared:
        node.call(ENDS["declared"][0])
    assert declared.value.values == {"error_code": "too_many", "message": "at most 100 parts, not 300"}
    with pytest.raises(vesper.BadInput) as refused:
        node.call(ENDS["refused"][0])
    assert [(each.path, each.kind) for each in refused.value.problems] == [("amount", "malformed")]
    with pytest.raises(vesper.Stopped) as stopped:
        load(folder, "interp", vesper.Limits(fuel=10)).call({"amount": 1, "parts": 1, "wait": 100})
    assert stopped.value.kind == "limit_hit"


@pytest.mark.parametrize("engine", ENGINES)
def test_changed_inputs_do_not_change_a_message(folder: Path, engine: str) -> None:
    node = load(folder, engine)
    inputs: dict[str, Any] = {"amount": 1, "parts": 1, "lines": [{"qty": "many"}]}
    outcome = node(inputs)
    divided = node(zero := {"amount": 7, "parts": 0, "lines": []})
    raised = None
    try:
        node.call(inputs)
    except vesper.BadInput as error:
        raised = error
    inputs["lines"][0]["qty"] = "few"
    inputs["lines"].clear()
    zero["parts"] = 1
    assert outcome.error is not None
    assert 'lines[0].qty: expected integer, got str "many"' in outcome.error.message
    assert divided.error is not None
    assert divided.error.code == "division_by_zero"
    assert "div(amount, parts, 2)" in divided.error.message
    if engine != "python":  # the generated function keeps the objects themselves
        assert 'got str "many"' in str(raised)


@pytest.mark.parametrize("end", ENDS)
def test_json_has_what_an_error_has(folder: Path, end: str) -> None:
    inputs = ENDS[end][0]
    answers = {load(folder, engine).run_json(json.dumps(inputs).encode()) for engine in ENGINES}
    assert len(answers) == 1
    found = json.loads(answers.pop())
    error = load(folder, "python")(json.dumps(inputs)).error
    assert error is not None
    assert (found["kind"], found["code"], found["message"]) == (error.kind, error.code, error.message)
    assert found.get("where") == error.where
    described = [
        {name: getattr(each, name) for name in ("path", "kind", "expected", "got", "message", "line", "column")}
        for each in error.problems
    ]
    assert found.get("problems", []) == described


def test_json_of_a_limit_says_what_to_do(folder: Path) -> None:
    text = b'{"amount": 1, "parts": 1, "wait": 100}'
    answers = {load(folder, engine, vesper.Limits(fuel=10)).run_json(text) for engine in ENGINES}
    (answer,) = answers
    found = json.loads(answer)
    assert (found["kind"], found["code"], found["limit"]) == ("limit_hit", "fuel", "fuel")
    assert "vesper.Limits" in found["message"]


@pytest.mark.parametrize("engine", ENGINES)
def test_json_describes_the_first_of_many_problems(folder: Path, engine: str) -> None:
    text = json.dumps({"amount": 1, "parts": 1, **{f"x{place:06}": 0 for place in range(20_000)}}).encode()
    start = time.process_time()
    found = json.loads(load(folder, engine).run_json(text))
    assert time.process_time() - start < 2
    assert len(found["problems"]) == 20_000
    assert found["problems"][99]["message"].startswith("no such input")
    assert found["problems"][100] == {"kind": "unknown", "path": "x000100"}
    assert found["message"].endswith("and 19,900 more")
