"""The consumers of a process: one for each loaded `event_handler` with the field `events`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from vesper.host.background import Repeating
from vesper.host.background_work import Nodes, WorkState
from vesper.host.host import Host
from vesper.language.work_bindings import events_of
from vesper.topics.consumer import Consumer
from vesper.topics.message import TopicUnavailable
from vesper.topics.records import TopicRecords

_PAUSE_SECONDS: Final = 0.5
"""Age of the known pauses; consumers of all processes obey a new one within a second."""
_LAG_SECONDS: Final = 5.0


class TopicConsumers:
    """Background work of `vesper serve` and `vesper work`. Raises `ConfigError` for a topic that is not configured."""

    def __init__(self, host: Host, nodes: Nodes) -> None:
        self._pauses = _Pauses(host)
        bound = [(node, field) for node in nodes if (field := events_of(node._compiled)) is not None]
        self._consumers = [
            Consumer(host, node, field, self._pauses.checker(field.topic, field.group)) for node, field in bound
        ]
        self._gauges = Repeating("vesper-topic-lag", _LAG_SECONDS, self._measure)
        self._is_running = False

    def start(self) -> None:
        if not self._is_running and self._consumers:
            self._is_running = True
            self._gauges.start()
            for each in self._consumers:
                each.start()

    def stop(self, timeout: float | None = None) -> bool:
        self._is_running = False
        until = None if timeout is None else time.monotonic() + timeout
        for each in self._consumers:
            each.request_stop()
        ended = [each.stop(None if until is None else max(0.0, until - time.monotonic())) for each in self._consumers]
        self._gauges.stop()
        return all(ended)

    def state(self) -> WorkState:
        problem = next((each.problem for each in self._consumers if each.problem is not None), None)
        return WorkState("topics", self._is_running, problem, {"groups": [each.facts() for each in self._consumers]})

    def _measure(self) -> None:
        for each in self._consumers:
            with suppress(TopicUnavailable):  # the consumer reports it
                each.measure()


class _Pauses:
    """The pauses in the journal, read by one thread of the process at a time."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._lock = threading.Lock()
        self._known: frozenset[tuple[str, str]] = frozenset()
        self._next_read = 0.0

    def checker(self, topic: str, group: str) -> Callable[[], bool]:
        """Return a function that reports whether a group is paused. It raises `JournalError`."""
        paused = {(topic, group), (topic, "")}
        return lambda: not paused.isdisjoint(self._read())

    def _read(self) -> frozenset[tuple[str, str]]:
        with self._lock:
            if time.monotonic() >= self._next_read:
                found = TopicRecords(self._host).pauses()
                self._known = frozenset((each.topic, each.group) for each in found)
                self._next_read = time.monotonic() + _PAUSE_SECONDS
            return self._known
