"""Inputs on which the engines once diverged must agree. The folder may be empty."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from tests.support.nodes import PAYMENT_DECISION, ROOT, compiled, worked_nodes
from vesper.cli.verify.ways.public import WAYS
from vesper.compiler import Compiled
from vesper.engines.compare import Agree, Disagree, compare
from vesper.engines.engine import Completion, Done, Request
from vesper.engines.outcome import Returned
from vesper.engines.registry import ENGINES
from vesper.values.model import from_json
from vesper.values.types import declared_type
from vesper.verify.differential.forms import COMPARED
from vesper.verify.differential.regressions import save_regression
from vesper.verify.differential.verifier import Difference, Verifier
from vesper.verify.differential.ways.way import Given
from vesper.verify.inputs.responses import NOON, GeneratedResponses, Responder, run_with

FOLDER = Path(__file__).parent / "regressions"
CASES: list[dict[str, Any]] = [
    case for path in sorted(FOLDER.glob("*.yaml")) for case in yaml.safe_load(path.read_text(encoding="utf-8"))
]


_NAMES = {"Decimal": Decimal, "datetime": dt, "inf": float("inf"), "nan": float("nan"), "bytearray": bytearray,
          "frozenset": frozenset, "set": set}  # fmt: skip
"""Names that the `repr` of an input may contain."""


def read_value(form: dict[str, Any]) -> object:
    ((kind, value),) = form.items()
    if kind == "decimal":
        return Decimal(value)
    if kind == "null":
        return None
    if kind == "array":
        return [read_value(item) for item in value]
    if kind == "set":
        return frozenset(read_value(item) for item in value)
    if kind in ("timestamp", "date", "duration", "bytes"):
        return from_json(declared_type(kind), value)
    if kind == "dict":
        return {key: read_value(item) for key, item in value.items()}
    if kind == "python":
        return eval(value, {"__builtins__": {}}, _NAMES)
    return value


def agreement(case: dict[str, Any]) -> list[object]:
    beside = sorted(FOLDER.glob("*.vsp"))  # random programs are stored with their cases
    path = next((path for path in [*worked_nodes(), *beside] if path.stem == case["node"]), None)
    assert path is not None, f"{case['node']} is not a worked node; move the case beside its own node"
    node = compiled(path)
    inputs = {name: read_value(form) for name, form in case["inputs"].items()}
    now = dt.datetime.fromisoformat(case["now"]) if "now" in case else None
    runs = (run_with(engine.load(node), inputs, now, replayed(case)) for engine in ENGINES.values())
    reference, *others = runs
    results: list[object] = [compare(reference, other) for other in others]
    if "way" in case:
        subject = Verifier(node, COMPARED, 0, ways=()).subject
        ways = [way for make in WAYS for way in make(subject) if way.name == case["way"]]
        assert ways, f"{case['node']} has no way {case['way']}"
        given = Given(1, inputs, subject.run(subject.reference, Given(1, inputs, reference)))
        results += [Disagree(ways[0].name, None) if each.differs else Agree() for each in ways[0].answers([given])]
    return results


def replayed(case: dict[str, Any]) -> Responder:
    """Return the stored completions in request order; further requests fail as unavailable."""
    kept: dict[str, list[dict[str, Any]]] = {}
    for each in case.get("effects", ()):
        kept.setdefault(each["path"], []).append(each)

    def respond(request: Request) -> Completion:
        waiting = kept.get(request.path)
        if not waiting:
            return Completion(request.id, failure="unavailable")
        found = waiting.pop(0)
        if "fails" in found:
            return Completion(request.id, failure=found["fails"])
        return Completion(request.id, read_value(found["returns"]))

    return respond


def test_engines_agree_on_every_kept_input() -> None:
    broken = [case for case in CASES if not all(isinstance(result, Agree) for result in agreement(case))]
    assert broken == []


def test_a_saved_case_can_be_read_back(tmp_path: Path) -> None:
    inputs: dict[str, object] = {
        "amount": Decimal("0.10"),
        "balance": Decimal("NaN"),
        "currency": "USD",
        "country": "\ud800",
        "user_age_days": 10**30,
        "flagged": None,
    }
    done = Done(Returned({}), ())
    difference = Difference(inputs, 1, {"python": done, "interp": done}, None, None)
    node = compiled(PAYMENT_DECISION)
    first = save_regression(tmp_path, node, difference)
    assert save_regression(tmp_path, node, difference) == first, "the same input is kept once"
    (case,) = yaml.safe_load(first.read_text(encoding="utf-8"))
    read = {name: read_value(form) for name, form in case["inputs"].items()}
    assert repr(read) == repr(inputs)
    assert all(isinstance(result, Agree) for result in agreement(case))


def recorded(node: Compiled, inputs: dict[str, object], seed: str) -> tuple[Done, list[tuple[str, Completion]]]:
    """Return an execution on the reference engine with its completions."""
    responses = GeneratedResponses(node)
    respond = responses.responder(seed)
    given: list[tuple[str, Completion]] = []

    def noted(request: Request) -> Completion:
        given.append((request.path, respond(request)))
        return given[-1][1]

    return run_with(ENGINES["python"].load(node), inputs, NOON, noted), given


def test_answers_of_effects_are_kept_and_given_again(tmp_path: Path) -> None:
    node = compiled(ROOT / "nodes" / "access" / "api_key_issue_v1.vsp")
    inputs: dict[str, object] = {"owner": "ann", "scopes": {"read"}, "label": ""}
    done, given = next(
        (done, given)
        for done, given in (recorded(node, inputs, f"1 {number}") for number in range(1000))
        if {found.failure is None for _, found in given} == {True, False}  # both failures and values
    )
    difference = Difference(inputs, 1, {"python": done, "interp": done}, None, None, False, tuple(given), NOON)
    (case,) = yaml.safe_load(save_regression(tmp_path, node, difference).read_text(encoding="utf-8"))
    assert [each["path"] for each in case["effects"]] == [path for path, _ in given]
    read = {name: read_value(form) for name, form in case["inputs"].items()}
    now = dt.datetime.fromisoformat(case["now"])
    again = run_with(ENGINES["interp"].load(node), read, now, replayed(case))
    assert isinstance(compare(done, again), Agree)


def test_a_case_of_a_way_runs_that_way() -> None:
    inputs = {"amount": {"decimal": "0.10"}, "balance": {"decimal": "1"}, "currency": {"string": "USD"}}
    case = {"node": "payment_decision_v1", "inputs": inputs, "way": "run_json"}
    assert len(agreement(case)) == len(agreement({**case, "way": "call"})) > len(ENGINES) - 1
