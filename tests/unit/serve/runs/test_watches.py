"""Long polls and streams of a worker: changes, the end of an epoch, clients that are gone, a journal that is away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.waiting import eventually
from vesper.journal.journal import JournalError
from vesper.serve.asgi import _LoadedNodes
from vesper.serve.runs import watches
from vesper.serve.runs.operations import Watch
from vesper.serve.runs.state import RunState
from vesper.serve.runs.watches import Watches, WatchPlaces

QUEUED, WAITING = RunState(b"queued", "queued:", False), RunState(b"waiting", "waiting:a", False)
ENDED = RunState(b"ended", "ended:", True)


class Stream:
    def __init__(self) -> None:
        self.sent = b""
        self.is_closed = self.is_gone = False

    def send(self, part: bytes) -> bool:
        self.sent += part
        return not self.is_gone

    def close(self) -> None:
        self.is_closed = True


class Call:
    is_abandoned = False
    via = "key"
    actor: str | None = None

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.stream_ = Stream()

    def send(self, status: int, _: object, body: bytes) -> None:
        self.answers.append((status, body))

    def refuse(self, name: str, *_: object) -> None:
        self.answers.append(name)

    def stream(self, status: int, _: object) -> Stream:
        return self.stream_


class Run:
    """A run whose state a test sets."""

    def __init__(self) -> None:
        self.state: RunState | JournalError = QUEUED

    def look(self, version: str | None) -> RunState | None:
        if isinstance(self.state, JournalError):
            raise self.state
        return None if self.state.version == version else self.state

    def watch(self, is_stream: bool = False, seconds: float = 60.0) -> Watch:
        return Watch(self.look, QUEUED, seconds, is_stream)


@pytest.fixture
def add(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setattr(watches, "POLL_SECONDS", 0.005)
    kept = Watches()

    def begin(run: Run, owner: object = None, actor: str | None = None, **how: Any) -> Any:
        call: Any = Call()
        call.actor = actor
        kept.add(call, run.watch(**how), owner or run)
        call.end = kept.end
        return call

    return begin


def test_a_long_poll_is_answered_by_a_change_and_at_its_limit(add: Callable[..., Any]) -> None:
    run = Run()
    changed, late = add(run), add(Run(), seconds=0.02)
    run.state = WAITING
    eventually(lambda: changed.answers == [(200, b"waiting")])
    eventually(lambda: late.answers == [(200, b"queued")])


def test_a_stream_has_each_change_until_the_end(add: Callable[..., Any]) -> None:
    run = Run()
    call = add(run, is_stream=True)
    assert call.stream_.sent == QUEUED.event
    run.state = WAITING
    eventually(lambda: call.stream_.sent == QUEUED.event + WAITING.event)
    run.state = ENDED
    eventually(lambda: call.stream_.is_closed)
    assert call.stream_.sent.endswith(ENDED.event)


def test_the_end_of_a_service_ends_its_watches_only(add: Callable[..., Any]) -> None:
    old, new = object(), object()
    first, stream, other = add(Run(), old), add(Run(), old, is_stream=True), add(Run(), new)
    first.end(old)
    eventually(lambda: first.answers == [(200, b"queued")] and stream.stream_.is_closed)
    assert not other.answers
    first.end()
    eventually(lambda: other.answers == [(200, b"queued")])
    later = add(Run(), new)
    eventually(lambda: later.answers == [(200, b"queued")])


def test_what_breaks_ends_one_watch(add: Callable[..., Any]) -> None:
    broken, whole = Run(), Run()
    away, fine = add(broken), add(whole)
    broken.state = JournalError("away")
    eventually(lambda: away.answers == ["journal"])
    whole.state = ENDED
    eventually(lambda: fine.answers == [(200, b"ended")])


def test_a_stream_ends_at_its_age(add: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, "_MAX_STREAM_SECONDS", 0.01)
    call = add(Run(), is_stream=True)
    eventually(lambda: call.stream_.is_closed)
    assert call.stream_.sent == QUEUED.event


def test_places_are_limited_for_each_caller_and_for_all(
    add: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "_MAX_WATCHES_OF_CALLER", 1)
    monkeypatch.setattr(watches, "_MAX_WATCHES", 3)
    run = Run()
    first, second = add(run, actor="ann"), add(run, actor="ann")
    assert second.answers == ["overloaded"]
    others = [add(run), add(run, actor="bob"), add(run)]
    assert [each.answers for each in others] == [[], [], ["overloaded"]]
    run.state = ENDED
    eventually(lambda: first.answers == [(200, b"ended")])
    again = Run()
    eventually(lambda: add(again, actor="ann").answers == [])


def test_a_server_in_python_limits_its_watches_and_reports_a_journal_that_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watches, "POLL_SECONDS", 0.005)
    monkeypatch.setattr(watches, "_MAX_WATCHES", 1)
    opened: Any = object.__new__(_LoadedNodes)
    opened.watch_places, opened._watch_pool = WatchPlaces(), ThreadPoolExecutor(1)
    opened._service = SimpleNamespace(host=SimpleNamespace(redact=str))
    run = Run()
    run.state = JournalError("away")
    call: Any = Call()
    assert opened.watch_places.take(call)
    assert not opened.watch_places.take(Call())
    asyncio.run(opened._poll(call, run.watch()))
    assert call.answers == ["journal"]
    assert opened.watch_places.take(call), "the place is free again"
    opened._watch_pool.shutdown()
