"""Every declared metric is emitted: the set of those that move equals the declarations."""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.support.models.server import ModelServer
from tests.support.nodes import ROOT
from tests.support.waiting import eventually
from tests.support.web import Web, says
from tests.support.work.estate import make_work
from tests.unit.effects.models.budget_nodes import budget_host, node_text, reply
from tests.unit.host.small import host_in, node_from
from tests.unit.host.world import answers, status
from tests.unit.migration.support.hook import Hook
from tests.unit.migration.support.names import NAME, Project, amounts, decision, settle
from tests.unit.migration.support.routed import Misbehaving, compiled, lying, payment, routes_in
from tests.unit.serve.test_server import DECISION, Served, post
from tests.unit.topics.project import open_project
from vesper.effects.events.performer import OUTBOX_TABLE
from vesper.host.host import Host
from vesper.host.run_metrics import HostWatch
from vesper.journal.journal import JournalError
from vesper.migration.router.alerts import Alerts
from vesper.migration.shadow.guarded_direct import NotAsked
from vesper.migration.workers.isolation import IsolatedProgram, Workers
from vesper.observe.metrics import snapshot
from vesper.queues.watch import QueueWatch
from vesper.schedules import schedules
from vesper.values.generated.metrics import BREAKER_STATE, METRICS

ASKS = """
node_id: NAME_v1
type: event_handler
intent: Ask a provider under policies
inputs:
  event_id: string
outputs:
  success: {said: json}
policies:
  circuit_breaker: {failures: 2, within: 1m, open_for: 1m}
flow:
  - step: call
    operation: external_api_call
    provider: shop
    method: POST
    endpoint: /it
    effect: EFFECT
    RETRY
  - operation: return
    success: {said: call}
security:
  capabilities_required: [network.http_client.shop]
"""
RETRY = "retry: {attempts: 2, on: [http_5xx], backoff: {base: 10ms}}"
NEWS = """
node_id: observed_news_v1
type: event_handler
intent: Publish an event
inputs:
  event_id: string
outputs:
  success:
    id: string
flow:
  - {step: tell, operation: event_publish, topic: news, payload: {e: "{event_id}"}, effect: txn}
  - operation: return
    success: {id: tell}
security:
  capabilities_required: [events.publish.news]
"""


def _values() -> dict[tuple[str, tuple[str, ...]], object]:
    return {(each.metric.name, each.labels): each.value for each in snapshot(is_own=True)}


def _call_provider(folder: Path) -> None:
    keyed = ASKS.replace("NAME", "observed_asks").replace("EFFECT", "keyed").replace("RETRY", RETRY)
    with Web() as web:
        shop = {"base_url": web.url, "allow_private_addresses": True}
        with host_in(folder, {"providers": {"shop": shop}}) as host:
            web.on("/it", answers(status(503), says("at last")))
            assert node_from(keyed, folder, host)(event_id="e").ok
            web.on("/it", status(503))
            assert not node_from(keyed, folder, host)(event_id="f").ok
            assert value_of(BREAKER_STATE.name, "observed_asks_v1") == 2


def value_of(name: str, *first: str) -> Any:
    found = [value for (each, labels), value in _values().items() if each == name and labels[: len(first)] == first]
    return found[0] if found else None


def _relay_events(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "shop.db")) as connection:
        connection.execute(OUTBOX_TABLE["sqlite"])
    topics = {"news": {"url": "memory:", "database": "main"}}
    settings: dict[str, Any] = {"databases": {"main": {"dsn": f"sqlite:{folder / 'shop.db'}"}}, "topics": topics}
    with host_in(folder, settings) as host:
        assert node_from(NEWS, folder, host)(event_id="e").ok
        host._do_chores()


def _recover(folder: Path) -> None:
    """Leave a run in doubt: the process of an unsafe effect dies."""

    class Dies:
        def perform(self, ask: object) -> object:
            raise KeyboardInterrupt

        probe = perform

        def close(self) -> None: ...

    text = NEWS.replace("observed_news", "observed_left")
    settings: dict[str, Any] = {"topics": {"news": {"url": "memory:"}}}
    text = text.replace("effect: txn", "effect: unsafe")
    host = host_in(folder, {**settings, "journal": {"dsn": f"sqlite:{folder / 'left.db'}", "lease": "1s"}})
    host._performers._instead = {"event_publish": Dies()}
    with pytest.raises(KeyboardInterrupt):
        node_from(text, folder, host)(event_id="e")
    with host_in(folder, {**settings, "journal": {"dsn": f"sqlite:{folder / 'left.db'}"}}) as other:
        eventually(lambda: bool(other.recover()))
        other._do_chores()


def _lose_journal(folder: Path) -> None:
    with host_in(
        folder, {"journal": {"dsn": f"sqlite:{folder / 'gone.db'}"}, "topics": {"news": {"url": "memory:"}}}
    ) as host:
        node = node_from(NEWS.replace("effect: txn", "effect: keyed, key: event_id"), folder, host)
        assert node(event_id="e").ok
        with closing(sqlite3.connect(folder / "gone.db")) as connection:
            connection.execute("DROP TABLE vesper_executions")
            connection.commit()
        with pytest.raises(JournalError):
            node(event_id="f")


def _diverge(folder: Path) -> None:
    routes = routes_in(folder)
    direct = Misbehaving(compiled())
    routes._direct = lambda _: direct  # type: ignore[assignment,method-assign]
    program = routes.program(compiled())
    direct.does = lying
    program.call(payment())
    routes.followers.drain(30)
    routes.migration.tend(is_all=True)
    routes.migration.tend(is_all=True)
    routes.close()


def _follow_lead(folder: Path) -> None:
    project = Project(folder, decision(1), decision(2, middle="2.50"))
    routes = project.routes()
    node = vesper.load(NAME, nodes=project.nodes, engine="python", routes=routes)
    node.call(next(iter(amounts(500))))
    settle(routes)
    routes.close()


def _kill_worker(_folder: Path) -> None:
    workers = Workers(size=1)
    workers.start()
    assert workers.wait_until_up(60)
    program = IsolatedProgram(compiled(), workers)
    (pid,) = workers.pids()
    os.kill(pid, signal.SIGKILL)
    with suppress(NotAsked):  # no other worker is up yet
        program.call_pathed(payment(), b"k" * 16)
    eventually(lambda: value_of("sir.workers.deaths", "direct") is not None)
    workers.close()


def _consume(folder: Path) -> None:
    with open_project(folder, 'url = "memory:"') as project, project.consuming() as consumer:
        project.publish(1)
        eventually(lambda: project.lines() == [1])
        consumer.measure()


def _work(folder: Path) -> None:
    """Leave a dead letter and runs in a queue, and a schedule that missed days before it ran."""
    with Host(make_work(folder)) as host:
        QueueWatch(host).look()
        report = vesper.load(folder / "nodes" / "report_v1.vsp", engine="python", host=host)
        later_us = host.journal.now_us() + 4 * 86_400_000_000
        schedules.store_now_us = lambda host: later_us  # noqa: ARG005  # the name is part of its type
        schedules.Schedules(host, [report]).step()


def _serve(_folder: Path) -> None:
    served = Served([vesper.load(DECISION, engine="interp")])
    before = value_of("sir.executions.total", "payment_decision_v1", "direct") or 0
    with closing(HTTPConnection("127.0.0.1", served.port, timeout=30)) as connection:
        assert post(connection, "payment_decision_v1")[0] == 200
    assert value_of("sir.executions.total", "payment_decision_v1", "direct") == before + 1
    served.close()


def _ask_model(folder: Path) -> None:
    """Ask a model twice within a budget of one request."""
    with ModelServer(reply) as server, budget_host(folder, server) as host, vesper.budget(calls=1):
        node = node_from(node_text(), folder, host)
        assert [node(event_id="one").ok, node(event_id="two").ok] == [True, False]


def print_moved_metrics(path: str) -> None:
    moved: set[str] = set()
    for work in (
        _call_provider,
        _relay_events,
        _recover,
        _lose_journal,
        _diverge,
        _follow_lead,
        _kill_worker,
        _consume,
        _work,
        _serve,
        _ask_model,
    ):
        folder = Path(path) / work.__name__
        folder.mkdir()
        before = _values()
        work(folder)
        moved |= {name for (name, labels), value in _values().items() if before.get((name, labels)) != value}
    print("moved:", *sorted(moved))


def test_every_declared_metric_moves(tmp_path: Path) -> None:
    # In a process of its own: Hosts and servers of other tests set the same gauges.
    code = f"from tests.unit.observe.test_emitted import print_moved_metrics as show; show({str(tmp_path)!r})"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].split()[1:] == sorted(each.name for each in METRICS)


def test_runs_in_doubt_and_stuck_outboxes_are_alerts(caplog: pytest.LogCaptureFixture) -> None:
    hook = Hook()
    alerts, watch = Alerts(hook.url), HostWatch()
    watch.listeners.append(alerts.host)
    with caplog.at_level(logging.WARNING, "vesper.host"):
        for age in (1.0, 400.0, 500.0, 1.0, 400.0):
            watch.look_at_outbox("main", 3, age)
    posts = [hook.next(), hook.next()]
    alerts.close(5)
    hook.close()
    assert [each["kind"] for each in posts] == ["outbox_stuck"] * 2
    assert posts[0]["text"] == "Vesper: all nodes: 3 events wait in the outbox of `main`, the oldest for 400 s"
    assert len(caplog.records) == 2
