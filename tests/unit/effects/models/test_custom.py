"""A model of one's own, as docs/how-to/call-a-model.md shows it: the registered effect answers a node's question."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.docs.test_code_blocks import blocks_of
from tests.support.console import ROOT
from tests.unit.host.small import host_in, node_from
from vesper.effects.custom.registry import REGISTRY
from vesper.trace.export.call_records import call_records
from vesper.trace.journalled import trace_of_execution

PAGE = ROOT / "docs" / "how-to" / "call-a-model.md"
NODE = """
node_id: shout_v1
type: event_handler
intent: Ask a model of the application
inputs: {event_id: string, text: string}
outputs:
  success: {answer: json}
flow:
  - step: answer
    operation: ask_model
    model: rules
    request:
      messages: [{role: user, content: "{text}"}]
      max_tokens: 10
  - return: {answer: answer}
security:
  capabilities_required: [models.call.rules]
"""


def settings() -> dict[str, Any]:
    (found,) = [
        each.text for each in blocks_of(PAGE) if each.language == "toml" and 'adapter = "rules_model"' in each.text
    ]
    tables = tomllib.loads(found)
    return {"models": tables["models"]}  # the module of the page is the block below


@pytest.fixture
def registered() -> Iterator[dict[str, Any]]:
    """Run the block of the page in a namespace, and forget its effect afterwards."""
    (text,) = [each.text for each in blocks_of(PAGE) if each.language == "python" and "rules_model" in each.text]
    names: dict[str, Any] = {}
    exec(compile(text, str(PAGE), "exec"), names)  # an example of our own page
    yield names
    REGISTRY.remove("rules_model")


def test_the_example_of_the_page_answers(registered: dict[str, Any], tmp_path: Path) -> None:
    assert registered["answer"]("m", {"messages": [{"content": "hi"}]})["text"] == "HI"
    with host_in(tmp_path, settings()) as host:
        outcome = node_from(NODE, tmp_path, host)(event_id="e", text="hello")
        answer = outcome.unwrap()["answer"]
        assert (answer["text"], answer["stop"], answer["cost_usd"]) == ("HELLO", "end", "0")
        assert (answer["usage"]["input_tokens"], answer["usage"]["output_tokens"]) == (5, 5)
        record = call_records(trace_of_execution(host.journal, outcome.trace_id))[1]
        assert (record.input_tokens, record.output_tokens, record.cost_usd) == (5, 5, Decimal(0))


def test_a_failure_of_the_adapter_is_one_of_the_model(tmp_path: Path) -> None:
    @vesper.effect("rules_model", effect_class="read", response="json")
    def answer(model: str, request: dict[str, Any]) -> dict[str, Any]:
        raise vesper.EffectFailed("overloaded", "the rules are busy")

    try:
        with host_in(tmp_path, settings()) as host:
            outcome = node_from(NODE, tmp_path, host)(event_id="e", text="hello")
            assert outcome.error is not None
            assert outcome.error.code == "overloaded"
    finally:
        REGISTRY.remove("rules_model")
