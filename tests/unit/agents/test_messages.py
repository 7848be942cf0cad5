"""Agents from Python: messages, failures, restarts, links, monitors."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.agents.agent_nodes import crash, host_in, load
from vesper.agents import messages as agents
from vesper.journal.journal import Status
from vesper.language.work_bindings import Backoff, ChildField, SupervisorField
from vesper.supervision.trees import UnknownAddress

QUICK = Backoff(1_000, 1, 1_000)


def wait_for(is_true: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_a_message_is_handled_once_by_its_agent(tmp_path: Path) -> None:
    seen: list[tuple[str, str, str]] = []

    def act(event: str, agent: str, sender: str) -> str:
        seen.append((event, agent, sender))
        return event.upper()

    with host_in(tmp_path, act) as host:
        node = load(tmp_path, host)
        address = agents.spawn(node, name="first")
        assert agents.spawn(node, name="first") == address
        with agents.working(host):
            assert agents.ask(address, {"event_id": "a"}, timeout=20, host=host) == {"text": "A"}
            repeated = [agents.send(address, {"event_id": "b"}, key="b", host=host) for _ in range(3)]
            assert len({each.execution for each in repeated}) == 1
            assert [each.unwrap() for each in agents.gather(repeated, 20)] == [{"text": "B"}] * 3
            assert asyncio.run(agents.send_async(address, {"event_id": "c"}, host=host)) == {"text": "C"}
        assert seen == [("a", "first", ""), ("b", "first", ""), ("c", "first", "")]
        with pytest.raises(UnknownAddress, match="vesper agents tree"):
            agents.send("second", {"event_id": "a"}, host=host)


def test_messages_keep_their_order_and_priority_through_a_failure(tmp_path: Path) -> None:
    seen: list[str] = []

    def act(event: str, agent: str, sender: str) -> str:
        seen.append(event)
        return crash() if event == "2" and seen.count("2") == 1 else event

    with host_in(tmp_path, act) as host:
        address = agents.spawn(load(tmp_path, host), name="first", backoff=QUICK)
        sent = [agents.send(address, {"event_id": str(n)}, host=host) for n in range(5)]
        urgent = agents.send(address, {"event_id": "urgent"}, priority=5, host=host)
        with agents.working(host):
            assert [each.unwrap()["text"] for each in agents.gather([*sent, urgent], 20)] == [*"01234", "urgent"]
        assert seen == ["urgent", "0", "1", "2", "2", "3", "4"]
        agent = agents.mailboxes_of(host).trees.agent(address)[2]
        assert (agent.status, agent.incarnation) == ("running", 2)


def test_a_child_beyond_its_restarts_fails_its_tree_and_messages_wait_for_a_start(tmp_path: Path) -> None:
    is_away = [True]

    def act(event: str, agent: str, sender: str) -> str:
        return crash() if is_away[0] else event

    with host_in(tmp_path, act) as host:
        address = agents.spawn(load(tmp_path, host), name="first", max_restarts=1, attempts=9, backoff=QUICK)
        handle = agents.send(address, {"event_id": "x"}, host=host)
        trees = agents.mailboxes_of(host).trees
        with agents.working(host):
            wait_for(lambda: trees.agent(address)[2].status == "failed")
            later = agents.send(address, {"event_id": "y"}, host=host)
            assert "more than 1 restarts" in trees.agent(address)[2].reason
            time.sleep(0.1)
            assert later.status() == "queued"
            is_away[0] = False
            agents.start(address, host=host)
            assert [each.unwrap()["text"] for each in agents.gather([handle, later], 20)] == ["x", "y"]
        assert host.journal.summary(later.execution).status is Status.ENDED


def test_siblings_links_and_monitors_react_to_a_failure(tmp_path: Path) -> None:

    def act(event: str, agent: str, sender: str) -> str:
        return crash() if event == "bad" else event

    with host_in(tmp_path, act) as host:
        node = load(tmp_path, host)
        watching = (
            "node_id: {name}_v1\ntype: function\nintent: Note the end of an agent\n"
            "inputs:\n  agent: string\n  reason: string\n  agent_self: string\n"
            "outputs:\n  success: {{note: string}}\n"
            "flow:\n  - operation: return\n    success: {{note: agent}}\n"
        )
        watcher = agents.spawn(load(tmp_path, host, "watcher", watching), name="watcher")
        mailboxes = agents.mailboxes_of(host)
        children = tuple(ChildField(each, node.id) for each in "abc")
        mailboxes.trees.start("crew", SupervisorField(children, "rest_for_one", backoff=QUICK, attempts=1))
        other = agents.spawn(node, name="other", backoff=QUICK)
        agents.link("crew/b", other, host=host)
        agents.monitor("crew/c", watcher, host=host)
        with pytest.raises(ValueError, match="takes no notifications"):
            agents.monitor("crew/c", "other", host=host)
        with agents.working(host):
            failed = agents.send("crew/b", {"event_id": "bad"}, host=host)
            assert failed.wait(20).error is not None
            addresses = ("crew/a", "crew/b", "crew/c", "other")
            wait_for(lambda: [mailboxes.trees.agent(each)[2].incarnation for each in addresses] == [1, 2, 2, 2])
            wait_for(lambda: any(each.node_id == "watcher_v1" for each in host.journal.find(status=Status.ENDED)))
        [run] = [each for each in host.journal.find(status=Status.ENDED) if each.node_id == "watcher_v1"]
        inputs = host.journal.read(run.execution).entries[0].entry.body["inputs"]
        assert isinstance(inputs, dict)
        assert inputs["agent"] == "crew/c"
        assert "restarted with b" in inputs["reason"]
