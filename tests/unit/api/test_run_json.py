"""`node.run_json`: text in and text out, the same bytes on every engine and by every way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import vesper
from tests.proofs.mutants.edges import JSON_REFUSED, JSON_TAKEN
from tests.unit.api.given import ASKING, BASKET, CLOCK, NODES, PAYMENT, written
from tests.unit.engines.test_entry import RICH
from vesper.api.json_calls import NEVER_BEGAN
from vesper.engines.registry import ENGINES
from vesper.values.limits import DEFAULT_FUEL

PAID = json.dumps(PAYMENT).encode()
LINE = '{"sku": "a", "qty": 1, "price": 1, "tags": []}'
THIRD = """\
node_id: third_v1
type: function
intent: Divide
inputs: {by: integer}
outputs:
  success: {out: decimal}
contracts:
  postconditions:
    - out < 1
flow:
  - {step: out, operation: compute, value: 1 / by}
  - {operation: return, success: [out]}
"""


def payment(engine: str) -> vesper.Node:
    return vesper.load("payment_decision", nodes=NODES, engine=engine)


@pytest.fixture(scope="module")
def rich() -> dict[str, Callable[[bytes], bytes]]:
    nodes = {each: vesper.Node(RICH, engine.load(RICH), each, None, ()) for each, engine in ENGINES.items()}
    limited = vesper.Node(RICH, ENGINES["interp"].load(RICH), "interp", vesper.Limits(fuel=DEFAULT_FUEL), ())
    return {**{name: each.run_json for name, each in nodes.items()}, "interp within limits": limited.run_json}


def test_it_is_the_function_of_the_engine_where_nothing_else_is_to_be_done() -> None:
    node = payment("interp")
    function: object = node.run_json
    assert type(function) is type(len)
    assert node.run_json is node.run_json
    assert node.run_json(PAID) == node._program.run_json(PAID)  # type: ignore[attr-defined]  # a direct program


@pytest.mark.parametrize("text", JSON_TAKEN)
def test_what_fits_has_the_same_bytes_by_every_way(rich: dict[str, Callable[[bytes], bytes]], text: str) -> None:
    answers = {name: run(text.encode()) for name, run in rich.items()}
    assert len(set(answers.values())) == 1, answers


@pytest.mark.parametrize("number", range(len(JSON_REFUSED)))
def test_so_has_what_does_not(rich: dict[str, Callable[[bytes], bytes]], number: int) -> None:
    text, kind, path = JSON_REFUSED[number]
    answers = {name: run(text) for name, run in rich.items()}
    assert len(set(answers.values())) == 1, answers
    found = json.loads(answers["python"])
    assert (found["at"], found["code"], found["kind"], found["where"]) == (None, "bad_input", "failed", None)
    assert [(each["kind"], each["path"]) for each in found["problems"]] == [(kind, path)]
    assert answers["python"].startswith(NEVER_BEGAN)


def test_every_kind_of_outcome(tmp_path: Path) -> None:
    """The kinds that a node without effects can come to, and that one engine writes itself."""
    third, basket = written(tmp_path, THIRD), written(tmp_path, BASKET)
    asked = {
        third: ['{"by": 2}', '{"by": 1}', '{"by": 0}', '{"by": "x", "to": 1}', '{"by": 1', "7"],
        basket: [
            f'{{"lines": [{LINE}], "kind": "retail", "rates": {{}}, "days": []}}',
            '{"lines": [], "kind": "retail", "rates": {}, "days": []}',
            '{"lines": [], "kind": "retail", "rates": {}, "days": [["2026-11-15", 1], ["2026-11-15", 2]]}',
        ],
    }
    kinds = []
    for path, texts in asked.items():
        nodes = [vesper.load(path, engine=engine) for engine in ENGINES]
        for text in texts:
            first, *others = [node.run_json(text.encode()) for node in nodes]
            assert others == [first] * len(others)
            kinds.append(json.loads(first)["kind"])
    assert kinds == [
        "returned", "contract_broken", "failed", "failed", "failed", "failed",
        "returned", "declared_error", "failed",
    ]  # fmt: skip


@pytest.mark.parametrize("engine", list(ENGINES))
def test_limits_are_kept(engine: str) -> None:
    text = json.dumps({"items": [{"qty": 2, "unit_price": "10.50", "category": "food"}] * 9}).encode()
    free, little = [
        vesper.load("order_pricing", nodes=NODES, engine=engine, limits=limits)
        for limits in (None, vesper.Limits(fuel=3))
    ]
    assert json.loads(free.run_json(text))["kind"] == "returned"
    found = json.loads(little.run_json(text))
    assert (found["kind"], found["code"], found["limit"]) == ("limit_hit", "fuel", "fuel")


@pytest.mark.parametrize("engine", [*ENGINES, "auto"])
def test_it_takes_bytes(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    node = payment(engine)
    assert json.loads(node.run_json(PAID))["value"]["decision"] == "approve"
    with pytest.raises(TypeError, match=r"payment_decision_v1.run_json takes JSON text as bytes, not str"):
        node.run_json(PAID.decode())


@pytest.mark.parametrize("engine", list(ENGINES))
def test_a_start_is_given_or_now(engine: str, tmp_path: Path) -> None:
    node = vesper.load(written(tmp_path, CLOCK), engine=engine)
    answer = node.run_json(b'{"add": 1}', now="2026-11-15T12:00:00Z")
    assert answer == b'{"kind":"returned","value":{"add":1,"at":"2026-11-15T12:00:00Z"}}'
    assert json.loads(node.run_json(b"{}"))["value"]["at"] > "2026"


def test_a_node_with_effects_is_run_by_its_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with vesper.Host() as host:
        answers = [
            vesper.load(written(tmp_path, ASKING), host=host, engine=engine).run_json(b'{"event_id": "e1"}')
            for engine in ENGINES
        ]
    assert len(set(answers)) == 1
    found = json.loads(answers[0])
    assert (found["kind"], found["code"], found["capability"]) == ("denied", *["database.read.customers"] * 2)
    assert "[[grants]]" in found["message"]
