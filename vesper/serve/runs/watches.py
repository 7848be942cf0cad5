"""Requests that wait for a change of their run: long polls and event streams. They need no thread each."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from vesper.journal.journal import JournalError
from vesper.serve.run_call import JSON_HEADERS
from vesper.serve.runs.operations import EVENT_HEADERS, Watch

if TYPE_CHECKING:
    from vesper._direct import HttpCall, HttpStream

_log = logging.getLogger("vesper.serve")
POLL_SECONDS = 0.25
_MAX_WATCHES = 1_000
_MAX_WATCHES_OF_CALLER = 100
_MAX_STREAM_SECONDS = 900.0
"""Age at which a stream ends; its client connects again, with the credentials that it has then."""
_SILENCE_SECONDS = 15.0
"""Time after which a comment shows that a stream is alive, and finds clients that are gone."""
_COMMENT = b": still here\n\n"


class Follower:
    """The progress of one watch; each `poll` returns what its client gets next."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._version = watch.first.version
        self._until = time.monotonic() + (_MAX_STREAM_SECONDS if watch.is_stream else watch.seconds)
        self._spoken = time.monotonic()
        self.has_ended = watch.is_stream and watch.first.is_ended

    def poll(self, is_last: bool = False) -> bytes | None:
        """Return the next event or the body of a long poll. Raises as `Watch.look`."""
        now = time.monotonic()
        is_over = is_last or now >= self._until
        state = self._watch.look(self._version if not is_over else None)
        if self._watch.is_stream:
            self.has_ended = is_over or (state is not None and state.is_ended)
        else:
            self.has_ended = is_over or state is not None
        if state is None or (self._watch.is_stream and state.version == self._version):
            is_silent = self._watch.is_stream and now - self._spoken >= _SILENCE_SECONDS
            self._spoken = now if is_silent else self._spoken
            return _COMMENT if is_silent else None
        self._version, self._spoken = state.version, now
        return state.event if self._watch.is_stream else state.body


class Caller(Protocol):
    """A call with the identity of its caller."""

    @property
    def actor(self) -> str | None: ...
    @property
    def via(self) -> str | None: ...


class WatchPlaces:
    """Bounds on open watches: of all callers together, and of each named caller."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: Counter[tuple[str | None, str | None]] = Counter()

    def take(self, call: Caller) -> bool:
        """Take a place until `release`; return False where there is none."""
        caller = call.actor, call.via
        with self._lock:
            is_full = self._taken.total() >= _MAX_WATCHES
            if is_full or (call.actor is not None and self._taken[caller] >= _MAX_WATCHES_OF_CALLER):
                return False
            self._taken[caller] += 1
            return True

    def release(self, call: Caller) -> None:
        with self._lock:
            self._taken[call.actor, call.via] -= 1
            self._taken += Counter()  # forgets callers without a watch


@dataclass(slots=True)
class _Entry:
    call: HttpCall
    owner: object
    follower: Follower
    stream: HttpStream | None = None
    is_last: bool = False
    """True where the next poll answers, whatever it finds."""


class Watches:
    """The watches of a worker. Their one thread starts with the first watch."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._places = WatchPlaces()
        self._entries: list[_Entry] = []
        self._is_ending = False
        self._thread: threading.Thread | None = None

    def add(self, call: HttpCall, watch: Watch, owner: object) -> None:
        """Answer a call when its run changes. `owner` is the service whose end ends the watch."""
        with self._changed:
            if not self._places.take(call):
                return call.refuse("overloaded", None, 1.0, None)
            entry = _Entry(call, owner, Follower(watch), is_last=self._is_ending)
            if watch.is_stream:
                entry.stream = call.stream(200, EVENT_HEADERS)
                entry.stream.send(watch.first.event)
            if not entry.follower.has_ended:
                self._entries.append(entry)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="vesper-watches", daemon=True)
                    self._thread.start()
                self._changed.notify()
            else:
                self._places.release(call)
        return None

    def end(self, owner: object | None = None) -> None:
        """Answer all watches, or those of one service, with the state of their runs. Clients then ask again."""
        with self._changed:
            self._is_ending = self._is_ending or owner is None
            for each in self._entries:
                each.is_last = each.is_last or owner in (None, each.owner)
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._entries))
                self._changed.wait_for(lambda: any(each.is_last for each in self._entries), POLL_SECONDS)
                entries = list(self._entries)
            done = {id(each): each for each in entries if self._is_done(each)}
            with self._changed:
                self._entries = [each for each in self._entries if id(each) not in done]
            for each in done.values():
                self._places.release(each.call)

    def _is_done(self, entry: _Entry) -> bool:
        """Serve one watch; return whether it has ended."""
        if entry.stream is None and entry.call.is_abandoned:
            return True
        try:
            found = entry.follower.poll(entry.is_last)
            if entry.stream is None:
                if found is not None:
                    entry.call.send(200, JSON_HEADERS, found)
            elif found is not None and not entry.stream.send(found):
                return True  # the client is gone
        except Exception as error:  # noqa: BLE001  # one watch must not end the others
            _log.error("a watch of a run broke: %s", type(error).__name__)
            if entry.stream is None:
                is_journal = isinstance(error, JournalError)
                entry.call.refuse("journal" if is_journal else "internal", None, 1.0 if is_journal else None, None)
            return True
        if entry.follower.has_ended and entry.stream is not None:
            entry.stream.close()
        return entry.follower.has_ended


async def follow(
    watch: Watch, in_thread: Callable[[Callable[[], bytes | None]], Awaitable[bytes | None]]
) -> AsyncIterator[bytes]:
    """Yield the events of a watch, or the one body of a long poll. For servers that are written in Python."""
    follower = Follower(watch)
    if watch.is_stream:
        yield watch.first.event
    while not follower.has_ended:
        await asyncio.sleep(POLL_SECONDS)
        found = await in_thread(follower.poll)
        if found is not None:
            yield found
