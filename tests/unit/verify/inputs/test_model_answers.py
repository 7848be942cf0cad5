"""Generated answers of models: they fit the request, or fail to in every way that an agent handles."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from typing import Any

import jsonschema
import pytest

from tests.support.nodes import ROOT, compiled
from vesper.compiler import Compiled
from vesper.engines.registry import ENGINES
from vesper.verify.differential.verifier import Verifier
from vesper.verify.inputs.model_answers import ModelAnswers
from vesper.verify.inputs.responses import GeneratedResponses, run_with

REQUEST: dict[str, Any] = {
    "tools": [
        {
            "name": "search",
            "parameters": {
                "type": "object",
                "properties": {
                    "text": {"type": "string", "pattern": "^[a-z]{2,4}$"},
                    "day": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 5},
                },
                "required": ["text", "limit"],
            },
        }
    ],
    "output": {
        "name": "found",
        "schema": {
            "type": "object",
            "properties": {
                "kind": {"type": "string", "enum": ["a", "b"]},
                "rows": {"type": "array", "items": {"type": "number"}},
                "names": {"type": "object", "additionalProperties": {"type": "boolean"}},
            },
            "required": ["kind", "rows"],
        },
    },
}


def agent(name: str) -> Compiled:
    return compiled(ROOT / "nodes" / "agents" / f"{name}.vsp")


def drawn(request: dict[str, Any]) -> list[Any]:
    answers = ModelAnswers(agent("support_triage_v1").node)
    return [answers.draw(request, random.Random(number)) for number in range(300)]


def fits(value: object, schema: dict[str, Any]) -> bool:
    plain = jsonschema.Draft202012Validator(schema)
    return plain.is_valid(_plain(value))


def _plain(value: Any) -> Any:
    match value:
        case Decimal():
            return float(value)
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case list():
            return [_plain(each) for each in value]
        case _:
            return value


def test_answers_call_the_tools_of_the_request_and_fill_its_schema() -> None:
    found = [each for each in drawn(REQUEST) if each is not None]
    calls = [call for each in found for call in each.get("tool_calls", ())]
    outputs = [each["output"] for each in found if each.get("output") is not None]
    parameters, schema = REQUEST["tools"][0]["parameters"], REQUEST["output"]["schema"]
    assert {each["name"] for each in calls} == {"search", "no_search"}
    for values, shape in (([each["arguments"] for each in calls], parameters), (outputs, schema)):
        share = sum(fits(each, shape) for each in values) / len(values)
        assert 0.4 < share < 0.95
    assert {each["stop"] for each in found} == {"end", "tools", "refusal", "length"}


def test_without_tools_and_schema_an_answer_is_a_text() -> None:
    found = [each for each in drawn({"messages": []}) if each is not None]
    assert all(isinstance(each["text"], str) and "tool_calls" not in each for each in found)
    assert len({each["text"] for each in found}) > 5


@pytest.mark.parametrize("name", ["support_triage_v1", "data_extraction_v1"])
def test_generated_answers_reach_repairs_tools_and_failures_and_no_contract_breaks(name: str) -> None:
    node = agent(name)
    report = Verifier(node, {"python": ENGINES["python"]}, seed=3).run(250)
    assert report.passed
    assert not report.coverage.uncovered
    assert "postcondition_broken" not in report.outcomes
    assert report.outcomes["returned"] > 20

    responses, program = GeneratedResponses(node), ENGINES["python"].load(node)
    reasons: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for number in range(200):
        seed = f"7 {number}"
        inputs = dict(node.cases[0].inputs)
        done = run_with(program, inputs, responses.now(seed), responses.responder(seed, inputs))
        asked.update(each.path.partition("[")[0].partition("/")[0] for each in done.requests)
        reasons[str(getattr(done.outcome, "value", {}).get("reason", "none"))] += 1
    assert {"none", "repairs", "refused", "length", "bad_response", "rate_limit"} <= set(reasons)
    if name == "support_triage_v1":
        assert asked["_results"] + asked["order_lookup"] + asked["_order_lookup_result"] > 20, asked
