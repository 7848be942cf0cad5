"""Records of model calls: the fields of the founding document, their sums, and their exports."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.models.replies import Asked, Fault, Reply
from tests.support.models.server import ModelServer
from tests.unit.host.small import host_in, node_from
from vesper.trace.export.call_records import FIELDS, CallRecord, call_records, json_lines, write_sqlite
from vesper.trace.export.otlp import otlp_document
from vesper.trace.journalled import trace_of_execution
from vesper.trace.model import Trace

NODE = """
node_id: questions_v1
type: event_handler
intent: Ask two questions, the first of them again where the model is overloaded.
security:
  capabilities_required: [models.call.main]
inputs:
  event_id: string
outputs:
  success: {first: json, second: json}
flow:
  - step: first
    operation: ask_model
    model: main
    request: {messages: [{role: user, content: one}], max_tokens: 100}
    retry: {attempts: 3, on: [overloaded, unavailable]}
  - step: second
    operation: ask_model
    model: main
    request: {messages: [{role: user, content: two}], max_tokens: 100}
  - {operation: return, success: [first, second]}
"""


def answer(asked: Asked) -> Reply | Fault:
    return Fault(503) if asked.number == 1 else Reply("fine", input_tokens=150, output_tokens=892)


@pytest.fixture
def traced(tmp_path: Path) -> Iterator[tuple[Trace, Any]]:
    with ModelServer(answer) as server:
        model = {
            "api": "ollama",
            "model": "llama3",
            "base_url": server.url,
            "allow_private_addresses": True,
            "prices": {"input": "3", "output": "15"},
        }
        with host_in(tmp_path, {"models": {"main": model}}) as host:
            outcome = node_from(NODE, tmp_path, host)(event_id="e")
            assert outcome.ok, outcome.error
            yield trace_of_execution(host.journal, outcome.trace_id), outcome


def test_each_call_has_a_record_and_the_agent_has_their_sum(traced: tuple[Trace, Any]) -> None:
    trace, outcome = traced
    agent, first, second = call_records(trace)
    assert [each.path for each in (agent, first, second)] == ["", "first", "second"]
    assert first.parent_span == second.parent_span == agent.span_id
    assert agent.parent_span is None
    assert (first.agent, first.model, first.status) == ("questions_v1", "llama3", "ok")
    assert (first.input_tokens, first.output_tokens) == (150, 892)
    assert (first.retries, second.retries, agent.retries) == (1, 0, 1)
    assert first.cost_usd == Decimal(outcome.first["cost_usd"]) == Decimal("0.01383")
    assert agent.cost_usd == first.cost_usd + second.cost_usd
    assert agent.output_tokens == 2 * 892
    assert {each.trace_id for each in (agent, first, second)} == {trace.trace_id.replace("-", "")}


def test_exports_have_the_fields_of_the_founding_document(traced: tuple[Trace, Any], tmp_path: Path) -> None:
    lines = [json.loads(line, parse_float=Decimal) for line in json_lines([traced[0]]).splitlines()]
    assert [set(each) for each in lines] == [set(FIELDS)] * 3
    assert lines[0]["cost_usd"] == Decimal("0.02766")
    path = tmp_path / "calls.db"
    assert write_sqlite([traced[0]], path) == 3
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT agent, model, input_tokens, cost_usd, retries FROM calls").fetchall()
    assert rows[1] == ("questions_v1", "llama3", 150, "0.01383", 1)
    with pytest.raises(FileExistsError):
        write_sqlite([traced[0]], path)


def test_spans_have_the_attributes_of_generative_ai(traced: tuple[Trace, Any]) -> None:
    spans = otlp_document([traced[0]], "1")["resourceSpans"][0]["scopeSpans"][0]["spans"]
    root, first, _ = [{each["key"]: each["value"] for each in span["attributes"]} for span in spans]
    assert root["gen_ai.operation.name"] == {"stringValue": "invoke_agent"}
    assert first["gen_ai.operation.name"] == {"stringValue": "chat"}
    assert first["gen_ai.usage.output_tokens"] == {"intValue": "892"}
    assert spans[1]["name"] == "chat llama3"
    assert spans[1]["parentSpanId"] == spans[0]["spanId"]
    assert "fine" not in json.dumps(spans)


def test_a_trace_without_models_has_no_records(traced: tuple[Trace, Any]) -> None:
    from dataclasses import replace

    assert call_records(replace(traced[0], exchanges=())) == []
    assert isinstance(call_records(traced[0])[0], CallRecord)
