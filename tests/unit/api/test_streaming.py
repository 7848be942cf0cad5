"""The events of a run as an iterator: order, outcome, and what ends when a caller goes."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import eventually
from tests.support.web import Got, Web, Wire, says
from tests.unit.host.small import host_in, node_from
from vesper.api.node import Node
from vesper.effects.performer import Ask
from vesper.host.host import Host
from vesper.host.streaming.events import RunEvent

ANSWERS = """
node_id: answers_v1
type: event_handler
intent: Ask a model twice.
security:
  capabilities_required: [models.call.main]
inputs:
  event_id: string
outputs:
  success: {first: json, second: json}
flow:
  - {step: first, operation: ask_model, model: main, request: {messages: []}}
  - {step: second, operation: ask_model, model: main, request: {messages: []}}
  - {operation: return, success: [first, second]}
"""
FETCHES = """
node_id: fetches_v1
type: event_handler
intent: Read one page, then another.
security:
  capabilities_required: [network.http_client.pages]
inputs:
  event_id: string
outputs:
  success: {first: json, second: json}
flow:
  - {step: first, operation: external_api_call, provider: pages, method: GET, endpoint: /first}
  - {step: second, operation: external_api_call, provider: pages, method: GET, endpoint: /second}
  - {operation: return, success: [first, second]}
"""


class ScriptedModel:
    """Answers `ask_model` in chunks, as a performer of the application does."""

    def __init__(self) -> None:
        self.host: Host | None = None

    def perform(self, ask: Ask) -> object:
        assert self.host is not None
        for word in ("Hello", " ", ask.path):
            chunk = {"path": ask.path, "kind": "text", "text": word}
            self.host._performers.events.publish_chunk(ask.execution, chunk)
        return {"text": f"Hello {ask.path}"}

    def probe(self, ask: Ask) -> object:
        raise AssertionError(ask)

    def close(self) -> None: ...


@pytest.fixture
def answers(tmp_path: Path) -> Iterator[Node]:
    model = ScriptedModel()
    with host_in(tmp_path, {}, performers={"model_call": model}) as host:
        model.host = host
        yield node_from(ANSWERS, tmp_path, host)


def texts(events: list[RunEvent]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in events:
        if each.kind == "text":
            found[each.path] = found.get(each.path, "") + each.text
    return found


async def read_all(node: Node) -> tuple[list[RunEvent], Any]:
    stream = node.stream(event_id="e")
    events = [each async for each in stream]
    return events, await stream.result()


def test_a_coroutine_reads_chunks_and_then_the_outcome(answers: Node) -> None:
    events, outcome = asyncio.run(read_all(answers))
    assert [each.kind for each in events] == [*["text"] * 6, "run_ended"]
    assert texts(events) == {"first": "Hello first", "second": "Hello second"}
    assert outcome.first["text"] == "Hello first"
    assert {each.execution for each in events} == {outcome.trace_id}


def test_a_thread_reads_the_same(answers: Node) -> None:
    with answers.stream(event_id="e") as stream:
        events = list(stream)
        assert texts(events) == {"first": "Hello first", "second": "Hello second"}
        assert stream.outcome().ok
        assert stream.execution == events[0].execution


def test_all_runs_of_a_host_can_be_followed(answers: Node) -> None:
    seen: list[RunEvent] = []
    end = answers.host.subscribe(runs=seen.append)
    assert answers(event_id="e").ok
    assert [each.kind for each in seen] == ["run_started", *["text"] * 6, "run_ended"]
    assert (seen[0].text, seen[-1].text) == ("answers_v1", "returned")
    end()
    assert answers(event_id="e").ok
    assert len(seen) == 8


def test_a_subscriber_that_raises_harms_no_run(answers: Node) -> None:
    def fail(_: RunEvent) -> None:
        raise ValueError("mine")

    end = answers.host.subscribe(runs=fail)
    assert texts(asyncio.run(read_all(answers))[0])["second"] == "Hello second"
    end()


def test_refused_inputs_are_the_outcome(answers: Node) -> None:
    stream = answers.stream(event_id=3)
    assert [each.kind for each in stream] == ["run_ended"]
    refused = stream.outcome().error
    assert refused is not None
    assert refused.code == "bad_input"


class ClosingPages:
    """A server whose pages never end, and which notes when its client closes the connection."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.closed_at: list[float] = []
        self.web = Web()
        self.web.on("/first", self._wait)
        self.web.on("/second", says({}))

    def _wait(self, got: Got, wire: Wire) -> None:
        self.asked.set()
        try:
            data = wire._connection.recv(1)
        except OSError:
            data = b""
        if not data:
            self.closed_at.append(time.monotonic())
        wire.close()


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[tuple[ClosingPages, Node]]:
    server = ClosingPages()
    with server.web as web:
        provider = {"base_url": web.url, "allow_private_addresses": True}
        with host_in(tmp_path, {"providers": {"pages": provider}}) as host:
            yield server, node_from(FETCHES, tmp_path, host)


def check_ended(server: ClosingPages, stopped_at: float) -> None:
    """The connection was closed long before a timeout, and nothing more was asked; `make proof-cancel` measures."""
    eventually(lambda: bool(server.closed_at))
    assert server.closed_at[0] - stopped_at < 5
    time.sleep(0.05)
    assert [each.path for each in server.web.got] == ["/first"]


def test_closing_an_iterator_closes_the_connection(pages: tuple[ClosingPages, Node]) -> None:
    server, node = pages

    async def close() -> tuple[float, Any]:
        stream = node.stream(event_id="e")
        async with stream:
            await asyncio.to_thread(server.asked.wait, 5)
            stopped_at = time.monotonic()
        return stopped_at, await stream.result()

    stopped_at, outcome = asyncio.run(close())
    check_ended(server, stopped_at)
    assert (outcome.error.kind, outcome.error.code) == ("limit_hit", "cancelled")
    recorded = node.host.journal.read(outcome.trace_id)
    assert recorded.summary.status == "ended"


def test_cancelling_the_task_of_a_reader_ends_the_run(pages: tuple[ClosingPages, Node]) -> None:
    server, node = pages

    async def cancel() -> float:
        task = asyncio.create_task(read_all(node))
        await asyncio.to_thread(server.asked.wait, 5)
        stopped_at = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return stopped_at

    check_ended(server, asyncio.run(cancel()))


def test_dropping_an_iterator_ends_the_run(pages: tuple[ClosingPages, Node]) -> None:
    server, node = pages
    stream = node.stream(event_id="e")
    stream.__enter__()
    assert server.asked.wait(5)
    stopped_at = time.monotonic()
    del stream
    gc.collect()
    check_ended(server, stopped_at)


def test_a_stream_that_is_closed_before_it_begins_asks_nothing(pages: tuple[ClosingPages, Node]) -> None:
    server, node = pages

    async def close() -> None:
        stream = node.stream(event_id="e")
        stream._begin_task()
        await stream.aclose()

    asyncio.run(close())
    assert server.web.got == []


def test_a_function_has_no_events(tmp_path: Path) -> None:
    text = """
node_id: plain_v1
type: function
intent: Add one.
inputs: {x: integer}
outputs: {success: {y: integer}}
flow:
  - {operation: return, success: {y: x + 1}}
"""
    with host_in(tmp_path, {}) as host, pytest.raises(TypeError, match="no effects"):
        node_from(text, tmp_path, host).stream(x=1)
