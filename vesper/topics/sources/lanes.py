"""Messages of one process in order per key, for sources whose broker does not keep that order for us."""

from __future__ import annotations

from collections import deque

from vesper.topics.message import Message


class Lanes:
    """Hands out one message of each key at a time."""

    def __init__(self, is_ordered: bool) -> None:
        self._is_ordered = is_ordered
        self._ready: deque[Message] = deque()
        self._waiting: dict[str, deque[Message]] = {}
        """Messages behind the one of their key that is handed out or ready."""

    def __len__(self) -> int:
        return len(self._ready) + sum(map(len, self._waiting.values()))

    def add(self, message: Message) -> None:
        key = message.event_key if self._is_ordered else None
        if key is None:
            self._ready.append(message)
        elif key in self._waiting:
            self._waiting[key].append(message)
        else:
            self._waiting[key] = deque()
            self._ready.append(message)

    def take(self, limit: int) -> list[Message]:
        return [self._ready.popleft() for _ in range(min(limit, len(self._ready)))]

    def finish(self, message: Message) -> Message | None:
        """Return the next message of the key."""
        key = message.event_key
        if not self._is_ordered or key is None or key not in self._waiting:
            return None
        if self._waiting[key]:
            return self._waiting[key].popleft()
        del self._waiting[key]
        return None
