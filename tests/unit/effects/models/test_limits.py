"""Limits of models: strategies through a Host, streams, fallbacks, and settings that are refused."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import vesper.serve
from tests.support.models.replies import Asked, Behaviour, Fault, Reply
from tests.support.models.server import ModelServer
from tests.unit.host.small import host_in, message_of, node_from
from vesper.api.node import Node
from vesper.config.settings import config_from
from vesper.effects.settings import ConfigError
from vesper.host.limits import ModelBusy

NODE = """
node_id: asker_v1
type: event_handler
intent: Ask a model
inputs: {event_id: string}
outputs: {success: {answer: json}}
flow:
  - step: answer
    operation: ask_model
    model: main
    request: {messages: [{role: user, content: "{event_id}"}], max_tokens: 20}
  - {operation: return, success: [answer]}
security:
  capabilities_required: [models.call.main]
"""


def short(_: Asked) -> Reply:
    return Reply("Yes.", input_tokens=10, output_tokens=10)


@contextmanager
def asking(
    folder: Path, limits: dict[str, Any], behaviour: Behaviour = short, **more: Any
) -> Iterator[tuple[ModelServer, Node]]:
    with ModelServer(behaviour) as server:
        common = {"api": "ollama", "model": "m", "base_url": server.url, "allow_private_addresses": True}
        models = {"main": {**common, "limits": limits, **more}, "second": {**common, "model": "other"}}
        with host_in(folder, {"models": models}) as host:
            yield server, node_from(NODE, folder, host)


def test_a_queued_request_waits_for_its_turn_and_says_so(tmp_path: Path) -> None:
    with asking(tmp_path, {"requests": 1, "per": "2s"}) as (_, node):
        began = time.monotonic()
        assert "waited_ms" not in node(event_id="a").answer
        answer = node(event_id="b").answer
        assert time.monotonic() - began > 1.9
        assert 0 < answer["waited_ms"] < 2_000


def test_tokens_are_held_at_the_bound_and_charged_as_used(tmp_path: Path) -> None:
    """The bound is above a thousand tokens and the usage 20: two at once do not fit, twenty in turn do."""
    limits = {"tokens": 2_000, "per": "30s", "strategy": "reject"}
    with asking(tmp_path, limits, lambda _: Reply("Yes.", input_tokens=10, output_tokens=10, pause=0.2)) as (
        server,
        node,
    ):
        with ThreadPoolExecutor(2) as pool:
            outcomes = list(pool.map(lambda name: node(event_id=name), "ab"))
        assert sorted(each.ok for each in outcomes) == [False, True]
        assert len(server.asked) == 1
        for number in range(15):
            assert node(event_id=str(number)).ok
        refused = next(each for each in outcomes if not each.ok)
        assert "`main` is held back by its token limit" in message_of(node.host, refused)


def test_an_uncertain_charge_is_that_of_the_bound(tmp_path: Path) -> None:
    limits = {"tokens": 2_000, "per": "30s", "strategy": "reject"}
    with asking(tmp_path, limits, lambda _: Fault(500)) as (server, node):
        assert not node(event_id="a").ok
        assert not node(event_id="b").ok
        assert len(server.asked) == 1, "the first may have been charged: there is no room for a second"
    with asking(tmp_path, limits, lambda _: Fault(429)) as (server, node):
        assert not node(event_id="a").ok
        assert not node(event_id="b").ok
        assert len(server.asked) == 2, "a refusal is not charged"


def test_a_rejected_request_falls_back(tmp_path: Path) -> None:
    limits = {"requests": 1, "per": "30s", "strategy": "reject"}
    with asking(tmp_path, limits, fallback=["second"]) as (server, node):
        assert node(event_id="a").ok
        answer = node(event_id="b").answer
        assert [each.model for each in server.asked] == ["m", "other"]
        assert answer["failed"] == [{"model": "main", "code": "rate_limit", "worst_tokens": 0, "worst_cost_usd": "0"}]


def test_a_stream_takes_part_in_the_limits(tmp_path: Path) -> None:
    limits = {"requests": 1, "per": "30s", "strategy": "reject"}
    with asking(tmp_path, limits) as (server, node):
        node.host.subscribe(runs=lambda _: None)
        assert node(event_id="a").ok
        assert not node(event_id="b").ok
        assert [each.is_streamed for each in server.asked] == [True]


def test_backpressure_refuses_calls_and_not_runs_under_way(tmp_path: Path) -> None:
    limits = {"requests": 1, "per": "1500ms", "strategy": "backpressure"}
    with asking(tmp_path, limits) as (server, node):
        assert node(event_id="a").ok
        with pytest.raises(ModelBusy) as raised:
            node(event_id="b")
        assert raised.value.model == "main"
        assert 0 < raised.value.retry_after <= 1.5
        assert len(server.asked) == 1
        time.sleep(raised.value.retry_after)
        assert node(event_id="b").ok
    two = NODE.replace("asker_v1", "twice_v1").replace(
        "  - {operation: return",
        "".join(NODE.partition("flow:\n")[2].partition("  - {operation")[0]).replace("step: answer", "step: again")
        + "  - {operation: return",
    )
    with asking(tmp_path, limits) as (server, node):
        assert node_from(two, tmp_path, node.host)(event_id="c").ok, "the second request of a run waits"
        assert len(server.asked) == 2


@pytest.mark.parametrize(
    "limits,where,told",
    [
        ({}, "limits", "write `requests`, `tokens`, or both"),
        ({"requests": 0}, "limits.requests", "a number from 1"),
        ({"requests": 5, "burst": 6}, "limits.burst", "a number from 1 to 5"),
        ({"tokens": 5, "burst": 1}, "limits.burst", "is a number of requests"),
        ({"requests": 5, "burst_tokens": 5}, "limits.burst_tokens", "needs `tokens`"),
        ({"requests": 5, "per": "2d"}, "limits.per", "from 1ms to 1d"),
        ({"requests": 5, "strategy": "wait"}, "limits.strategy", "one of queue, reject, backpressure"),
        ({"requests": 5, "token": 5}, "limits.token", "no such setting"),
    ],
)
def test_limits_that_mean_nothing_are_refused(tmp_path: Path, limits: dict[str, Any], where: str, told: str) -> None:
    model = {"api": "ollama", "model": "m", "limits": limits}
    with pytest.raises(ConfigError) as raised:
        config_from({"models": {"main": model}}, tmp_path)
    assert raised.value.where.endswith(f"models.main.{where}")
    assert told in str(raised.value)


@pytest.mark.parametrize("strategy,problem", [("backpressure", "model_busy"), ("reject", "effect_failed")])
def test_a_service_answers_429_with_the_time_to_wait(tmp_path: Path, strategy: str, problem: str) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "asker_v1.vsp").write_text(NODE.lstrip("\n"), encoding="utf-8")
    with ModelServer(short) as server:
        (tmp_path / "vesper.toml").write_text(
            f'[models.main]\napi = "ollama"\nmodel = "m"\nbase_url = "{server.url}"\nallow_private_addresses = true\n'
            f'limits = {{requests = 1, per = "1h", strategy = "{strategy}"}}\n'
            '[[grants]]\nnodes = ["*"]\nallow = ["*"]\n'
            '[journal]\ndsn = "sqlite:journal.db"\n[recovery]\nenabled = false\n[serve]\nexpose = ["asker"]\n',
            encoding="utf-8",
        )
        app = vesper.serve.app(tmp_path / "nodes", config=tmp_path / "vesper.toml")

        async def ask() -> httpx.Response:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
                return await client.post("/nodes/asker_v1", json={"event_id": "a"})

        assert asyncio.run(ask()).status_code == 200
        held_back = asyncio.run(ask())
        app.close()
        assert held_back.status_code == 429, held_back.text
        assert held_back.json()["type"] == f"urn:vesper:problem:{problem}"
        assert 1 <= int(held_back.headers["retry-after"]) <= 3600
        assert len(server.asked) == 1
