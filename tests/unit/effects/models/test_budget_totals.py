"""Tokens and cost: budgets, metrics, spans and records of calls have the same totals."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from tests.support.models.replies import Asked, Fault, Reply
from tests.support.models.server import ModelServer
from tests.unit.effects.models.budget_nodes import budget_host, node_text
from tests.unit.host.small import node_from
from tests.unit.observe.test_spans import attributes, provider
from vesper.observe.metrics import snapshot
from vesper.trace.export.call_records import call_records
from vesper.trace.journalled import trace_of_execution

RUNS = 7


def uneven(asked: Asked) -> Reply | Fault:
    """Answer with tokens of many lengths; the second request fails with an uncertain charge, the third without one."""
    if asked.number in (2, 3):
        return Fault(500 if asked.number == 2 else 429)
    return Reply("fine", input_tokens=101 * asked.number, output_tokens=7 * asked.number)


def counted(name: str, *labels: str) -> int:
    found = [each.value for each in snapshot(is_own=True) if each.metric.name == name and each.labels[1:] == labels]
    return sum(each for each in found if isinstance(each, int))


def test_totals_are_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spans = provider(monkeypatch, ALWAYS_ON)
    text = node_text(step="    retry: {attempts: 3, on: [unavailable, rate_limit]}", steps=2)
    before = [counted("sir.models.cost", "main"), counted("sir.models.tokens", "main", "input")]
    before.append(counted("sir.models.tokens", "main", "output"))
    with ModelServer(uneven) as server, budget_host(tmp_path, server, budgets={"all": {"usd": "9"}}) as host:
        node = node_from(text, tmp_path, host)
        outcomes = [node({"event_id": "?"}) for _ in range(RUNS)]
        assert all(each.ok for each in outcomes)
        used, reserved = host.budgets.read(["named/all"])[0]
        traces = [trace_of_execution(host.journal, each.trace_id) for each in outcomes]
    assert reserved == ("0", 0, 0, 0)
    cost, tokens = Decimal(used[0]), used[1]
    records = [each for trace in traces for each in call_records(trace) if each.kind == "model"]
    assert sum(each.cost_usd for each in records) == cost
    assert sum(each.input_tokens + each.output_tokens for each in records) == tokens
    found = [attributes(each) for each in spans.take() if each.name == "sir.effect"]
    assert len(found) == 2 * RUNS
    assert sum(Decimal(each["sir.cost_usd"]) for each in found) == cost
    assert sum(each["gen_ai.usage.input_tokens"] + each["gen_ai.usage.output_tokens"] for each in found) == tokens
    assert {each["gen_ai.request.model"] for each in found} == {"main"}
    in_metrics = [counted("sir.models.cost", "main"), counted("sir.models.tokens", "main", "input")]
    in_metrics.append(counted("sir.models.tokens", "main", "output"))
    cost_delta, input_delta, output_delta = (after - at for after, at in zip(in_metrics, before, strict=True))
    assert input_delta + output_delta == tokens
    assert abs(Decimal(cost_delta) / 10**9 - cost) < Decimal("0.0001")
