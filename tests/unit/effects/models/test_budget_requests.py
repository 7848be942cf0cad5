"""Requests to models inside the budgets of a node and of the configuration."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.models.server import ModelServer
from tests.unit.effects.models.budget_nodes import COST, TOKENS, budget_host, busy, node_text, reply, silent
from tests.unit.host.small import entries, node_from
from vesper.host.host import Host
from vesper.host.streaming.events import RunEvent
from vesper.journal.entry import Kind

NOTHING = ("0", 0, 0, 0)


def ask(folder: Path, host: Host, text: str, engine: str = "python") -> Any:
    return node_from(text, folder, host, engine)({"event_id": "How are you?"})


def decisions(host: Host, outcome: Any) -> list[str]:
    values = [each for each in entries(host, outcome) if each.kind is Kind.VALUE]
    return [str(each.body["decision"]) for each in values]


def counts(host: Host, key: str) -> tuple[Any, Any]:
    return host.budgets.read([key])[0]


@pytest.mark.parametrize("engine", ["python", "interp"])
def test_the_budget_of_a_node_blocks_the_request_that_does_not_fit(tmp_path: Path, engine: str) -> None:
    text = node_text("policies:\n  budget: {calls: 2}", steps=3)
    with ModelServer(reply) as server, budget_host(tmp_path, server) as host:
        outcome = ask(tmp_path, host, text, engine)
        assert (outcome.error.kind, outcome.error.code) == ("failed", "budget_exceeded")
        assert len(server.asked) == 2
        failed = next(each for each in entries(host, outcome) if each.kind is Kind.FAILED)
        assert failed.body["message"] == (
            "nothing was sent: the budget `asking_v1` has 0 calls left of 2 calls, and the request may take 1 calls"
        )
        assert decisions(host, outcome) == ["budget_exceeded"]


def test_a_budget_of_a_step_holds_for_one_request(tmp_path: Path) -> None:
    text = node_text(step="    budget: {calls: 1}", steps=3)
    with ModelServer(reply) as server, budget_host(tmp_path, server) as host:
        assert ask(tmp_path, host, text).ok
        assert len(server.asked) == 3


def test_attempts_of_one_request_share_its_budget(tmp_path: Path) -> None:
    step = "    budget: {usd: 0.02, calls: 10}\n    retry: {attempts: 5, on: [timeout]}"
    text = node_text(step=step).replace("timeout: 5s", "timeout: 200ms")
    with ModelServer(silent) as server, budget_host(tmp_path, server) as host:
        outcome = ask(tmp_path, host, text)
        assert outcome.error.code == "budget_exceeded"
        # Each attempt may have been charged: its worst case is spent.
        assert len(server.asked) == 1
        assert decisions(host, outcome) == ["charged_at_worst", "retry", "budget_exceeded"]


def test_a_request_that_was_certainly_not_charged_releases(tmp_path: Path) -> None:
    with ModelServer(busy) as server, budget_host(tmp_path, server, budgets={"all": {"usd": "1"}}) as host:
        assert ask(tmp_path, host, node_text()).error.code == "rate_limit"
        assert len(server.asked) == 1
        assert counts(host, "named/all") == (NOTHING, NOTHING)


def test_an_answer_settles_what_it_used(tmp_path: Path) -> None:
    settings = {"budgets": {"all": {"usd": "1", "alert_at": 0.004}, "each": {"calls": 5, "per": "run"}}}
    settings["budgets"]["all"]["alert_at"] = 0.01
    with ModelServer(reply) as server, budget_host(tmp_path, server, **settings) as host:
        for _ in range(3):
            assert ask(tmp_path, host, node_text(steps=2)).ok
        used, reserved = counts(host, "named/all")
        assert used[:3] == ("0.012", 6 * TOKENS, 6)
        assert used[3] > 0
        assert reserved == NOTHING
        assert len(server.asked) == 6


@pytest.mark.parametrize("url", ["memory:", "journal"])
def test_tenants_have_counts_of_their_own(tmp_path: Path, url: str) -> None:
    from vesper import run_context

    settings = {"budgets": {"customers": {"calls": 2, "per": "tenant", "every": "365d"}}, "policies": {"budgets": url}}
    with ModelServer(reply) as server, budget_host(tmp_path, server, **settings) as host:
        node = node_from(node_text(), tmp_path, host)

        def run(tenant: str | None) -> str:
            with run_context(tenant=tenant):
                return "returned" if node({"event_id": "?"}).ok else "failed"

        assert [run("acme"), run("acme"), run("acme"), run("zeta"), run(None)] == [
            *("returned", "returned", "failed", "returned", "returned"),
        ]


def test_warnings_and_alerts_are_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[RunEvent] = []
    text = node_text("policies:\n  budget: {calls: 2, on_exceeded: warn, alert_at: 0.5}", steps=3)
    with ModelServer(reply) as server, budget_host(tmp_path, server) as host:
        host.subscribe(runs=seen.append)
        outcome = ask(tmp_path, host, text)
        assert outcome.ok
        assert decisions(host, outcome) == ["budget_alert", "budget_warning"]
    told = [(each.kind, each.path, each.budget) for each in seen if each.kind.startswith("budget")]
    assert told == [("budget_alerted", "ask0", "asking_v1"), ("budget_warned", "ask2", "asking_v1")]
    assert "50 % of the 2 calls of the budget `asking_v1` are used" in caplog.text
    assert "a request did not fit the 2 calls of the budget `asking_v1` and was sent" in caplog.text


def test_counts_of_a_run_are_deleted_at_its_end(tmp_path: Path) -> None:
    text = node_text("policies:\n  budget: {calls: 9}", step="    budget: {calls: 1}")
    with ModelServer(reply) as server, budget_host(tmp_path, server, policies={"budgets": "memory:"}) as host:
        outcome = ask(tmp_path, host, text)
        keys = [f"agent/{outcome.trace_id}//asking_v1", f"call/{outcome.trace_id}/ask0/ask0"]
        assert host.budgets.read(keys) == [(NOTHING, NOTHING)] * 2


def test_a_request_without_a_store_is_not_sent(tmp_path: Path) -> None:
    settings = {"budgets": {"all": {"calls": 2}}, "policies": {"budgets": "redis://127.0.0.1:1/0"}}
    with ModelServer(reply) as server, budget_host(tmp_path, server, **settings) as host:
        assert ask(tmp_path, host, node_text()).error.code == "unavailable"
        assert server.asked == []


def test_a_count_survives_its_process(tmp_path: Path) -> None:
    settings = {"budgets": {"all": {"calls": 1}}}
    with ModelServer(reply) as server:
        with budget_host(tmp_path, server, **settings) as host:
            assert ask(tmp_path, host, node_text()).ok
        with budget_host(tmp_path, server, **settings) as host:
            assert ask(tmp_path, host, node_text()).error.code == "budget_exceeded"
            assert counts(host, "named/all")[0][:3] == (COST, TOKENS, 1)


def test_time_that_is_left_ends_a_request(tmp_path: Path) -> None:
    settings = {"budgets": {"all": {"time": "300ms"}}}
    with ModelServer(silent) as server, budget_host(tmp_path, server, **settings) as host:
        began = time.monotonic()
        assert ask(tmp_path, host, node_text()).error.code == "timeout"
        assert time.monotonic() - began < 4
        used, reserved = counts(host, "named/all")
        assert used[3] >= 300_000
        assert reserved == NOTHING
        assert ask(tmp_path, host, node_text()).error.code == "budget_exceeded"
