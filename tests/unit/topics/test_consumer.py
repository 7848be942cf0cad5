"""Runs of messages: order, retries, dead letters, pauses."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers import free_port
from tests.support.waiting import eventually
from tests.unit.topics.project import GROUP, NODE, TOPIC, Project, open_project
from vesper.api.node import Node
from vesper.effects.settings import ConfigError
from vesper.host.in_doubt import InDoubt
from vesper.host.run_context import KeyReused, KeyRunning, run_context
from vesper.host.waiting import RunWaits
from vesper.journal.journal import JournalError
from vesper.observe.metrics import snapshot
from vesper.topics.consumer import Consumer
from vesper.topics.consumers import TopicConsumers
from vesper.topics.message import Message
from vesper.topics.overview import GroupLine, overview
from vesper.topics.records import Letter, NotRequeued, TopicRecords


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with open_project(tmp_path, 'url = "outbox:"\ndatabase = "main"') as found:
        yield found


def test_messages_of_a_key_run_in_order_and_dead_ones_block_no_other(project: Project) -> None:
    for number in range(12):
        project.publish(number, f"k{number % 3}", divisor=number % 6)
    with project.consuming():
        eventually(lambda: len(project.lines()) == 10 and len(project.letters()) == 2)
    lines = project.lines()
    for key in range(3):
        assert [each for each in lines if each % 3 == key] == [n for n in range(12) if n % 3 == key and n % 6]
    letters = project.letters()
    assert [(each.id, each.code, each.attempts) for each in letters] == [
        ("m0", "division_by_zero", 3),
        ("m6", "division_by_zero", 3),
    ]
    journal = project.host.journal
    assert {journal.read(str(each.execution)).summary.node_id for each in letters} == {GROUP}
    assert {each.labels[2] for each in snapshot() if each.metric.name == "sir.topic.messages"} == {
        "done",
        "retried",
        "dead",
    }


def test_a_payload_of_another_type_is_a_dead_letter_at_once(project: Project) -> None:
    project.publish(1, number="eleven")
    project.publish(2)
    with project.consuming(concurrency=1):
        eventually(lambda: project.lines() == [2] and len(project.letters()) == 1)
    (letter,) = project.letters()
    assert (letter.code, letter.attempts, letter.execution) == ("bad_payload", 1, None)
    assert 'payload.number: expected integer, got string "eleven"' in letter.message
    assert letter.payload == '{"divisor":1,"number":"eleven"}'


def test_a_redelivered_message_is_a_repeat(project: Project) -> None:
    text = b'{"event_id":"m1","event_key":null,"payload":{"number":1,"divisor":1}}'
    with run_context(actor=f"topic:{TOPIC}", key="m1"):
        project.node.run_json(text)
    project.publish(1)
    with project.consuming():
        eventually(lambda: project.waiting() == 0)
    assert project.lines() == [1]


def test_another_process_continues_at_the_next_attempt(project: Project) -> None:
    project.publish(1, divisor=0)
    with project.consuming(attempts=2):
        eventually(lambda: len(project.letters()) == 1)
    records = TopicRecords(project.host)
    assert records.drop(records.letters(TOPIC)[0], "ada", "")
    project.publish(1, divisor=0)  # delivered again: its two runs are in the journal
    with project.consuming(attempts=3):
        eventually(lambda: len(project.letters()) == 1)
    assert project.letters()[0].attempts == 3
    assert len(project.host.journal.find(node=GROUP)) == 3


def test_a_pause_holds_in_every_process_until_it_ends(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vesper.topics.consumers._PAUSE_SECONDS", 0.02)
    records = TopicRecords(project.host)
    assert records.pause(TOPIC, "", "ada", "the ledger moves")
    assert not records.pause(TOPIC, "", "eve", "")
    consumers = TopicConsumers(project.host, [project.node])
    project.publish(1)
    consumers.start()
    try:
        (line,) = overview(project.host, [(GROUP, project.field)])
        assert (line.lag, line.paused_by, line.why, line.dead) == (1, "ada", "the ledger moves", 0)
        assert project.lines() == []
        assert records.resume(TOPIC, "", "ada", "")
        assert not records.resume(TOPIC, "", "ada", "")
        eventually(lambda: project.lines() == [1])
        state = consumers.state()
        assert (state.name, state.is_running, state.problem) == ("topics", True, None)
        assert state.facts["groups"][0]["group"] == GROUP
    finally:
        assert consumers.stop(30)
    assert not consumers.state().is_running
    actions = [each["action"] for each in project.host.journal.audit_events()]
    assert actions == ["topic_pause", "topic_resume"]


def test_a_requeued_letter_runs_anew_with_its_event_id(project: Project) -> None:
    project.publish(1, "k", divisor=0)
    records = TopicRecords(project.host)
    with project.consuming(attempts=1):
        for requeued in (f"m1#requeued-1@{GROUP}", f"m1#requeued-2@{GROUP}"):
            eventually(lambda: len(project.letters()) == 1)
            assert records.requeue(project.letters()[0], "ada", "") == requeued
        eventually(lambda: len(project.letters()) == 1)
    runs = [project.host.journal.read(each.execution) for each in project.host.journal.find(node=GROUP)]
    inputs = [each.entries[0].entry.body["inputs"] for each in runs]
    assert [each["event_id"] for each in inputs] == ["m1"] * 3  # type: ignore[index]
    letter = project.letters()[0]
    with pytest.raises(NotRequeued, match="no JSON"):
        records.requeue(replace(letter, payload="{"), "ada", "")
    with pytest.raises(NotRequeued, match="too long"):
        records.requeue(replace(letter, payload=None), "ada", "")
    assert records.drop(letter, "ada", "known")
    assert not records.drop(letter, "ada", "known")
    assert project.letters() == []


def test_letters_of_a_sensitive_node_are_sealed_in_the_journal(tmp_path: Path) -> None:
    node = NODE.replace("capabilities_required:", "sensitive_data: [payload]\n  capabilities_required:")
    with open_project(tmp_path, 'url = "outbox:"\ndatabase = "main"', node) as project:
        project.publish(1, "secret-key", divisor=0)
        with project.consuming(attempts=1):
            eventually(lambda: len(project.letters()) == 1)
        (letter,) = project.letters()
        assert (letter.event_key, letter.payload) == ("secret-key", '{"divisor":0,"number":1}')
        assert letter.masked().payload == letter.masked().event_key == "<sensitive>"
        (row,) = project.host.journal.due(kind="topic")
        assert "secret-key" not in row.body
        assert "divisor" not in row.body


def test_a_requeued_letter_runs_in_no_other_group(project: Project) -> None:
    consumer = Consumer(project.host, project.node, project.field, lambda: False)
    payload = '{"number":1,"divisor":1}'
    assert consumer._attempt(Message("m1#requeued-1@mail", payload, None, "1"), 1).result == "done"
    assert project.lines() == []
    assert consumer._attempt(Message(f"m1#requeued-1@{GROUP}", payload, None, "2"), 1).result == "done"
    assert project.lines() == [1]


def test_a_dead_letter_of_a_topic_named_paused_is_no_pause(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vesper.topics.records._PAGE_ROWS", 2)
    records = TopicRecords(project.host)
    for number in range(3):
        records.bury(Letter("paused", GROUP, GROUP, f"m{number}", None, "{}", "1", 1, "x", "x", None, 1, False))
        records.pause("orders", f"g{number}", "ada", "")
    assert [each.group for each in records.pauses()] == ["g0", "g1", "g2"]
    assert [each.id for each in records.letters("paused")] == ["m0", "m1", "m2"]


def test_a_message_that_another_process_runs_is_tried_ever_later(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    node: Any = _Raising(project.node, KeyRunning("another process runs it", "x1"))
    source: Any = None  # not used: nothing is finished
    consumer = Consumer(project.host, node, project.field, lambda: False)
    waits = []
    for _ in range(5):
        consumer._work(Message("m1", "{}", None, "1"), 2)
        consumer._settle(source)
        due, _, _, attempt = consumer._retries.pop()
        waits.append((due - 100, attempt))
    assert waits == [(0.5, 2), (1, 2), (2, 2), (4, 2), (4, 2)]


class _Raising:
    """A node whose runs end with an exception."""

    def __init__(self, node: Node, raised: Exception) -> None:
        self.id, self._compiled, self._prepare, self._raised = node.id, node._compiled, node._prepare, raised

    def run_json(self, text: bytes) -> bytes:
        raise self._raised


@pytest.mark.parametrize(
    "raised, result, code",
    [
        (InDoubt("charge", "it is unknown", "x1"), "dead", "in_doubt"),
        (KeyReused("other inputs", "x1"), "dead", "key_reused"),
        (KeyRunning("another process runs it", "x1"), "busy", ""),
        (RunWaits("x1", GROUP, "pause", "sleep", "", None), "done", ""),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else each,
)
def test_runs_without_an_outcome(project: Project, raised: Exception, result: str, code: str) -> None:
    node: Any = _Raising(project.node, raised)
    consumer = Consumer(project.host, node, project.field, lambda: False)
    ended = consumer._attempt(Message("m1", "{}", None, "1"), 1)
    assert (ended.result, ended.code) == (result, code)


def test_an_outage_of_the_journal_uses_no_attempt(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    node: Any = _Raising(project.node, JournalError("the disk is full"))
    consumer = Consumer(project.host, node, project.field, lambda: False)
    consumer._work(Message("m1", "{}", None, "1"), 2)
    _, attempt, ended = consumer._ended.get_nowait()
    assert (attempt, ended.result, consumer.problem) == (2, "again", "the disk is full")
    assert "the consumer ledger_v1 waits: the disk is full" in caplog.text


def test_another_message_with_the_same_id_is_a_dead_letter(project: Project) -> None:
    project.publish(1)
    with project.consuming():
        eventually(lambda: project.waiting() == 0)
        project.publish(1, divisor=2)
        eventually(lambda: len(project.letters()) == 1)
    assert project.letters()[0].code == "key_reused"


def test_declared_errors_and_broken_preconditions_are_not_retried(project: Project) -> None:
    consumer = Consumer(project.host, project.node, project.field, lambda: False)
    assert consumer._judge({"kind": "declared_error", "code": "no_stock"}, 1, "x", False).result == "dead"
    assert (
        consumer._judge({"kind": "contract_broken", "phase": "precondition"}, 1, "x", False).code == "contract_broken"
    )
    assert consumer._judge({"kind": "contract_broken", "phase": "postcondition"}, 1, "x", False).result == "retried"
    assert consumer._judge({"kind": "engine_fault"}, 3, "x", False).result == "dead"


def test_messages_in_memory_run_in_the_process_that_publishes(tmp_path: Path) -> None:
    with open_project(tmp_path, 'url = "memory:"') as project:
        with project.consuming() as consumer:
            for number in range(6):
                project.publish(number, f"k{number % 2}")
            eventually(lambda: len(project.lines()) == 6)
            eventually(lambda: consumer._source is not None and consumer._source.lag() == 0)
        assert [each for each in project.lines() if each % 2] == [1, 3, 5]
        assert overview(project.host, [(GROUP, project.field)]) == [GroupLine(TOPIC, "memory", GROUP, GROUP)]


def test_the_overview_has_topics_that_cannot_be_reached(tmp_path: Path) -> None:
    url = f"redis://127.0.0.1:{free_port()}/0"
    with open_project(tmp_path, f'url = "{url}"\n[topics.idle]\nurl = "memory:"') as project:
        idle, orders = overview(project.host, [(GROUP, project.field)])
        assert (idle.topic, idle.group) == ("idle", "")
        assert orders.lag is None
        assert "cannot be used" in str(orders.problem)
        other = replace(project.field, topic="nothing")
        with pytest.raises(ConfigError, match="no topic `nothing` is configured"):
            Consumer(project.host, project.node, other, lambda: False)
        assert "no topic `nothing` is configured" in str(overview(project.host, [(GROUP, other)])[1].problem)
