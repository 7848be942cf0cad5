"""A topic in the memory of one process: a bounded queue, and a thread that delivers its events."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from vesper.effects.events.event import Event
from vesper.effects.performer import EffectFailed
from vesper.storage.per_process import PerProcess

Subscriber: TypeAlias = Callable[[Event], object]
_LOG = logging.getLogger("vesper.effects.events.performer")
_MAX_KEYS: Final = 100_000
"""So many keys are remembered; past that the oldest is forgotten before its time."""
_CLOSE_SECONDS: Final = 5.0


@dataclass(slots=True)
class _ProcessState:
    """The queue, keys and thread of a topic in one process."""

    waiting: queue.Queue[Event | None]
    lock: threading.Lock = field(default_factory=threading.Lock)
    keys: OrderedDict[str, tuple[str, float]] = field(default_factory=OrderedDict)
    thread: threading.Thread | None = None


class MemoryTopic:
    """A topic that delivers events at most once. A forked process inherits the subscribers, but none of the events."""

    def __init__(
        self, name: str, max_waiting: int, key_ttl: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        self._max_waiting = max_waiting
        self._key_ttl = key_ttl
        self._clock = clock
        self._subscribers: tuple[Subscriber, ...] = ()
        self._running = PerProcess(lambda: _ProcessState(queue.Queue(max_waiting)))

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        running = self._running.get()
        with running.lock:
            self._subscribers = (*self._subscribers, subscriber)

        def end() -> None:
            with self._running.get().lock:
                self._subscribers = tuple(each for each in self._subscribers if each is not subscriber)

        return end

    def publish(self, event: Event, payload: str, key: str | None, timeout: float | None) -> str:
        running = self._running.get()
        with running.lock:
            if key is not None:
                now = self._clock()
                while running.keys and next(iter(running.keys.values()))[1] <= now:
                    running.keys.popitem(last=False)
                first = running.keys.get(key)
                if first is not None:
                    return first[0]
            if self._subscribers:
                self._enqueue(running, event)
            if key is not None:
                running.keys[key] = (event.id, self._clock() + self._key_ttl)
                if len(running.keys) > _MAX_KEYS:
                    running.keys.popitem(last=False)
        return event.id

    def _enqueue(self, running: _ProcessState, event: Event) -> None:
        try:
            running.waiting.put_nowait(event)
        except queue.Full:
            message = f"{self._max_waiting:,} events of the topic `{self._name}` wait for their subscribers already"
            raise EffectFailed("unavailable", message) from None
        if running.thread is None:
            running.thread = threading.Thread(
                target=self._deliver, args=(running,), name=f"vesper-events-{self._name}", daemon=True
            )
            running.thread.start()

    def _deliver(self, running: _ProcessState) -> None:
        while (event := running.waiting.get()) is not None:
            for subscriber in self._subscribers:
                try:
                    subscriber(event)
                except Exception:  # noqa: BLE001  # it is logged, and the others get theirs
                    _LOG.exception("a subscriber of the topic `%s` failed with event %s", self._name, event.id)

    def close(self) -> None:
        """Wait a few seconds for the delivery of queued events."""
        running = self._running.drop()
        if running is None or running.thread is None:
            return
        try:
            running.waiting.put(None, timeout=_CLOSE_SECONDS)
        except queue.Full:
            _LOG.error("a subscriber of the topic `%s` does not come to an end: its events are lost", self._name)
            return
        if running.thread is threading.current_thread():
            return  # a subscriber closes us: it ends after what it does now
        running.thread.join(_CLOSE_SECONDS)
        if running.thread.is_alive():
            _LOG.error("a subscriber of the topic `%s` does not come to an end", self._name)
