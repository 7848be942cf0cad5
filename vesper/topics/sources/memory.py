"""Messages that this process publishes to a topic in memory: for tests and single processes, lost with the process."""

from __future__ import annotations

import threading

from vesper.effects.events.event import Event
from vesper.effects.events.performer import EventPerformer
from vesper.topics.message import Message, checked_id
from vesper.topics.sources.lanes import Lanes
from vesper.values.json_value import canonical_text


class MemorySource:
    """A full source delays the topic, whose queue then refuses events."""

    keep_seconds = 3600.0

    def __init__(self, topics: EventPerformer, topic: str, is_ordered: bool, capacity: int) -> None:
        self._changed = threading.Condition()
        self._lanes = Lanes(is_ordered)
        self._capacity = capacity
        self._held = 0
        self._is_closed = False
        self._end = topics.subscribe(topic, self._put)

    def take(self, limit: int) -> list[Message]:
        with self._changed:
            found = self._lanes.take(limit)
            self._held += len(found)
            self._changed.notify_all()
            return found

    def finish(self, messages: list[Message]) -> list[Message]:
        with self._changed:
            found = [following for each in messages if (following := self._lanes.finish(each)) is not None]
            self._held += len(found) - len(messages)
            self._changed.notify_all()
            return found

    def keep(self, messages: list[Message]) -> None:
        """Nothing to renew."""

    def release(self, messages: list[Message]) -> None:
        """No other process has them."""

    def lag(self) -> int:
        with self._changed:
            return len(self._lanes) + self._held

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._end()

    def _put(self, event: Event) -> None:
        message = Message(checked_id(event.id, event.id), canonical_text(event.json), event.event_key, event.id)
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or len(self._lanes) < self._capacity)
            self._lanes.add(message)
