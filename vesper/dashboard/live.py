"""Live updates: one poller reads the versions of the stores for all watchers of `/events`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from typing import Final

from starlette.concurrency import run_in_threadpool

from vesper.dashboard.problem import TooMany
from vesper.dashboard.stores import Stores, Topic

POLL_SECONDS: Final = 1.0
HEARTBEAT_SECONDS: Final = 15.0
MAX_WATCHERS: Final = 200
_RETRY_MILLISECONDS: Final = 2_000


class Watcher:
    """One stream of events; holds the topics that changed since its last event."""

    def __init__(self, topics: frozenset[Topic]) -> None:
        self.topics = topics
        self.changed: set[Topic] = set()
        self.wakeup = asyncio.Event()


class Live:
    """The watchers of this process, and the poller that runs while there are any."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._watchers: set[Watcher] = set()
        self._poller: asyncio.Task[None] | None = None
        self._seen: dict[Topic, object] = {}
        self.changes = dict.fromkeys(Topic, 0)
        """Number of changes that the poller saw."""
        self._is_closed = False

    def watch(self, topics: Iterable[Topic]) -> AsyncIterator[bytes]:
        """Return the text of a stream of events. Raises `TooMany`."""
        if len(self._watchers) >= MAX_WATCHERS:
            raise TooMany(f"{MAX_WATCHERS} pages are already live", "Reload by hand, or close other windows.")
        watcher = Watcher(frozenset(topics))
        self._watchers.add(watcher)
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll())
        return self._events(watcher)

    async def _events(self, watcher: Watcher) -> AsyncIterator[bytes]:
        try:
            for topic in watcher.topics - self._seen.keys():
                self._seen[topic] = await run_in_threadpool(self._stores.version, topic)
            yield f"retry: {_RETRY_MILLISECONDS}\n\n".encode()
            while not self._is_closed:
                try:
                    await asyncio.wait_for(watcher.wakeup.wait(), HEARTBEAT_SECONDS)
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                watcher.wakeup.clear()
                changed, watcher.changed = watcher.changed, set()
                if changed:
                    names = json.dumps(sorted(each.value for each in changed))
                    yield f"event: change\ndata: {names}\n\n".encode()
        finally:
            self._watchers.discard(watcher)

    async def _poll(self) -> None:
        """Compare versions once a second, until the last watcher is gone."""
        while self._watchers and not self._is_closed:
            await asyncio.sleep(POLL_SECONDS)
            for topic in {topic for each in self._watchers for topic in each.topics} & self._seen.keys():
                version = await run_in_threadpool(self._stores.version, topic)
                if self._seen[topic] != version:
                    self._seen[topic] = version
                    self.changes[topic] += 1
                    for watcher in self._watchers:
                        if topic in watcher.topics:
                            watcher.changed.add(topic)
                            watcher.wakeup.set()

    def close(self) -> None:
        """End all streams."""
        self._is_closed = True
        for watcher in self._watchers:
            watcher.wakeup.set()
