"""What one execution may take: time, memory, room in the journal; and a provider that sends more than anybody asked
for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.web import Got, Script, Web, Wire, hangs, message, says
from tests.unit.host.small import entries, host_in, kinds, message_of, node_from
from vesper.engines.registry import ENGINES
from vesper.host.host import Host
from vesper.journal.entry import Kind
from vesper.journal.journal import JournalError, Status
from vesper.migration.shadow.journal_replay import follow

NODE = """
node_id: bounded_v1
type: event_handler
intent: Ask twice, within limits
inputs:
  event_id: string
  given: {type: string, default: ""}
outputs:
  success: {first: json, second: json}
flow:
  - step: first
    operation: external_api_call
    provider: shop
    method: POST
    endpoint: /first
    body: {given: "{given}"}
    effect: EFFECT
    HANDLER
  - step: second
    operation: external_api_call
    provider: shop
    method: POST
    endpoint: /second
    effect: keyed
    key: event_id + ' 2'
  - operation: return
    success: {first: first, second: second}
PERFORMANCE
security:
  capabilities_required: [network.http_client.shop]
  audit_level: detailed
"""
HANDLER = """on_error:
      timeout, bad_response, unavailable:
        compensate:
          - step: undo
            operation: external_api_call
            provider: shop
            method: POST
            endpoint: /undo
            effect: keyed
            key: event_id + ' undo'
        value: parse_json('null')
"""


def _node(performance: str = "", handler: str = "", effect: str = "keyed") -> str:
    found = NODE.replace("EFFECT", effect).replace("    HANDLER\n", f"    {handler}" if handler else "")
    return found.replace("PERFORMANCE\n", f"performance: {{{performance}}}\n" if performance else "")


@dataclass
class Place:
    folder: Path
    web: Web
    host: Host

    def run(self, text: str, engine: str, **given: Any) -> Any:
        outcome = node_from(text, self.folder, self.host, engine)(event_id="e", **given)
        for other in ENGINES.values():
            program = other.load(node_from(text, self.folder, self.host)._compiled)
            assert follow(program, entries(self.host, outcome)).difference is None
        return outcome

    def paths(self) -> list[str]:
        return [got.path for got in self.web.got]


def _place(folder: Path, journal: dict[str, Any] | None = None, **provider: Any) -> Iterator[Place]:
    with Web() as web:
        web.on("/first", says(1))
        web.on("/second", says(2))
        web.on("/undo", says(3))
        shop = {"base_url": web.url, "allow_private_addresses": True, "max_response": "16 MiB", **provider}
        own = {"dsn": f"sqlite:{folder / 'journal.db'}", **(journal or {})}
        with host_in(folder, {"providers": {"shop": shop}, "journal": own}) as host:
            yield Place(folder, web, host)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    yield from _place(tmp_path)


@pytest.fixture
def small_journal(tmp_path: Path) -> Iterator[Place]:
    yield from _place(tmp_path, {"max_body": "64 KiB"})


# -- time -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_that_takes_too_long_is_ended(place: Place, engine: str) -> None:
    place.web.on("/first", hangs)
    began = time.monotonic()
    outcome = place.run(_node("timeout_seconds: 1"), engine)
    assert time.monotonic() - began < 15
    assert (outcome.error.kind, outcome.error.code) == ("limit_hit", "timeout_seconds")
    assert place.paths() == ["/first"]
    assert kinds(place.host, outcome) == ["START", "INTENT first", "FAILED first", "END"]


@pytest.mark.parametrize("engine", ENGINES)
def test_its_handlers_run_when_the_time_is_up(place: Place, engine: str) -> None:
    """What was begun is undone, however late; what comes after that is not begun."""
    place.web.on("/first", hangs)
    outcome = place.run(_node("timeout_seconds: 1", HANDLER), engine)
    assert (outcome.error.kind, outcome.error.code) == ("limit_hit", "timeout_seconds")
    assert place.paths() == ["/first", "/undo"]
    assert kinds(place.host, outcome) == [
        "START", "INTENT first", "FAILED first", "INTENT undo", "RESULT undo", "FAILED second", "END",
    ]  # fmt: skip


def test_a_step_that_waits_for_less_is_a_failure_and_no_limit(place: Place) -> None:
    place.web.on("/first", hangs)
    text = _node("timeout_seconds: 60").replace("endpoint: /first", "endpoint: /first\n    timeout: 200ms")
    outcome = place.run(text, "python")
    assert (outcome.error.kind, outcome.error.code) == ("failed", "timeout")


def test_a_slow_run_is_said_to_be_slow(place: Place) -> None:
    outcome = place.run(_node("expected_latency_ms: 1"), "python")
    assert outcome.ok
    assert entries(place.host, outcome)[-1].body["slow"] is True


# -- memory ---------------------------------------------------------------------------------------


def _text(size: int) -> Script:
    return lambda _, wire: wire.send(message(200, b'"' + b"x" * size + b'"', {"Content-Type": "application/json"}))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("effect", ["keyed", "unsafe"])
def test_an_answer_over_the_memory_of_the_node(place: Place, engine: str, effect: str) -> None:
    place.web.on("/first", _text(2_000_000))
    outcome = place.run(_node("memory_limit_mb: 1", HANDLER, effect), engine)
    assert (outcome.error.kind, outcome.error.code) == ("limit_hit", "memory_limit_mb")
    # It has happened: that, and what came of it, stands in the journal.
    assert kinds(place.host, outcome) == ["START", "INTENT first", "RESULT first", "END"]


def test_answers_add_up(place: Place) -> None:
    place.web.on("/first", _text(700_000))
    place.web.on("/second", _text(700_000))
    assert place.run(_node("memory_limit_mb: 1"), "python").error.code == "memory_limit_mb"
    assert place.run(_node("memory_limit_mb: 2"), "python").ok


@pytest.mark.parametrize("engine", ENGINES)
def test_inputs_over_the_memory_of_the_node(place: Place, engine: str) -> None:
    outcome = place.run(_node("memory_limit_mb: 1"), engine, given="x" * 1_100_000)
    assert outcome.error.code == "memory_limit_mb"
    assert place.web.connections == 0


# -- the journal ----------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("effect", ["keyed", "unsafe"])
def test_an_answer_that_the_journal_cannot_keep_is_a_bad_one(small_journal: Place, engine: str, effect: str) -> None:
    """And the run ends: whoever recovers does not send it again for ever."""
    place = small_journal
    place.web.on("/first", _text(100_000))
    outcome = place.run(_node(effect=effect), engine)
    assert (outcome.error.kind, outcome.error.code) == ("failed", "bad_response")
    told = message_of(place.host, outcome)
    assert "step `first`" in told
    assert "max_body" in told
    (failed,) = [each for each in entries(place.host, outcome) if each.kind is Kind.FAILED]
    assert failed.body["may_have_happened"] is True
    assert place.host.journal.unfinished() == []
    assert {each.status for each in place.host.journal.find()} == {Status.ENDED}


def test_the_handlers_run_for_it(small_journal: Place) -> None:
    small_journal.web.on("/first", _text(100_000))
    outcome = small_journal.run(_node(handler=HANDLER), "python")
    assert outcome.ok, outcome.error
    assert small_journal.paths() == ["/first", "/undo", "/second"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_request_that_the_journal_cannot_keep_is_not_sent(small_journal: Place, engine: str) -> None:
    """It is made of inputs that fit: each letter of them is six in JSON."""
    text = _node().replace('body: {given: "{given}"}', 'body: ["{given}", "{given}", "{given}"]')
    outcome = small_journal.run(text, engine, given="x" * 30_000)
    assert (outcome.error.kind, outcome.error.code) == ("failed", "invalid_argument")
    assert message_of(small_journal.host, outcome).startswith("nothing was sent: the INTENT of step `first`")
    assert small_journal.web.connections == 0
    assert small_journal.host.journal.unfinished() == []


@pytest.mark.parametrize("engine", ENGINES)
def test_outputs_that_the_journal_cannot_keep_end_the_run(small_journal: Place, engine: str) -> None:
    place = small_journal
    place.web.on("/first", _text(40_000))
    place.web.on("/second", _text(40_000))
    outcome = place.run(_node(), engine)
    assert (outcome.error.kind, outcome.error.code) == ("limit_hit", "max_body")
    assert entries(place.host, outcome)[-1].body["limit"] == "max_body"
    assert place.host.journal.unfinished() == []
    assert [event["fields"]["result"] for event in place.host.journal.audit_events()][-1] == "limit max_body"  # type: ignore[index]


def test_inputs_that_the_journal_cannot_keep_are_refused_before_anything(small_journal: Place) -> None:
    with pytest.raises(JournalError, match="max_body"):
        small_journal.run(_node(), "python", given="x" * 100_000)
    assert small_journal.web.connections == 0
    assert small_journal.host.journal.find() == []


# -- providers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_a_provider_that_sends_twenty_megabytes(tmp_path: Path, engine: str) -> None:
    sent: list[int] = []

    def floods(got: Got, wire: Wire) -> None:
        wire.send(b"HTTP/1.1 200 -\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(320):
            wire.send(b"10000\r\n" + b"1" * 65_536 + b"\r\n")
            sent.append(65_536)
        wire.close()

    for place in _place(tmp_path, max_response="1 MiB"):
        place.web.on("/first", floods)
        outcome = place.run(_node(), engine)
        assert (outcome.error.kind, outcome.error.code) == ("failed", "bad_response")
        assert len(message_of(place.host, outcome)) < 500
        assert sum(sent) < 20 << 20, "it was not read to its end"


def test_a_provider_that_says_how_much_it_will_send_is_not_listened_to(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 -\r\nContent-Type: application/json\r\nContent-Length: 20971520\r\n\r\n"
    for place in _place(tmp_path, max_response="1 MiB"):
        place.web.on("/first", lambda _, wire: wire.send(head))
        began = time.monotonic()
        outcome = place.run(_node(), "python")
        assert outcome.error.code == "bad_response"
        assert time.monotonic() - began < 15


def test_an_answer_as_deep_as_it_is_long(place: Place) -> None:
    deep = b"[" * 200_000 + b"]" * 200_000
    place.web.on("/first", lambda _, wire: wire.send(message(200, deep, {"Content-Type": "application/json"})))
    outcome = place.run(_node(), "python")
    assert outcome.error.code == "bad_response"
