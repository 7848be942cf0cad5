"""A message as consumers have it: its id is the key of its run."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Final, Protocol

from vesper.host.run_context import MAX_KEY_CHARACTERS
from vesper.values.vesper_error import VesperError

_ID: Final = re.compile(r"[!-~]{1,200}")
_REQUEUED: Final = re.compile(r"#requeued-([0-9]{1,6})@([a-z][a-z0-9_.-]{0,63})\Z", re.ASCII)
"""Mark of a requeued message: how often, and for which group."""


class TopicUnavailable(VesperError):
    """The place of a topic cannot be used now."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message of one topic."""

    id: str
    payload: str
    """Text as it was published; not checked."""
    event_key: str | None
    position: str
    """Place in the topic, for people: an entry of Redis, `PARTITION/OFFSET` of Kafka, a row."""
    token: Any = None
    """Data of the source."""

    @property
    def event_id(self) -> str:
        """The id without the mark of a requeued message, so that keyed effects recognise it."""
        return _REQUEUED.sub("", self.id)

    def is_for(self, group: str) -> bool:
        """Return whether a group runs the message: a requeued one belongs to the group that gave it up."""
        found = _REQUEUED.search(self.id)
        return found is None or found[2] == group

    def run_key(self, attempt: int) -> str:
        """Return the key of the run of an attempt; the first one has the id of the message."""
        key = self.id if attempt == 1 else f"{self.id} {attempt}"
        return key if len(key) <= MAX_KEY_CHARACTERS else _hashed(key)


def checked_id(given: str | None, position: str) -> str:
    """Return the id of a message: its own, the hash of one that is no key, or its position."""
    if given is None:
        return position
    return given if _ID.fullmatch(_REQUEUED.sub("", given)) else _hashed(given)


def requeued_id(message_id: str, group: str) -> str:
    """Return the id of a message that is published again for a group: its runs start with the first attempt."""
    found = _REQUEUED.search(message_id)
    return f"{_REQUEUED.sub('', message_id)}#requeued-{1 if found is None else int(found[1]) + 1}@{group}"


def _hashed(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


class Source(Protocol):
    """The messages of a topic for one consumer group. One thread uses it. Raises `TopicUnavailable`.

    A message is handed out only when all earlier ones of its key are finished, in any process. A source may hand out
    one message twice, to any process, until it is finished.
    """

    keep_seconds: float
    """Interval of `keep`."""

    def take(self, limit: int) -> list[Message]:
        """Return messages that may run now."""
        ...

    def finish(self, messages: list[Message]) -> list[Message]:
        """Mark messages as done for the group; return later ones of their keys that may run now."""
        ...

    def keep(self, messages: list[Message]) -> None:
        """Renew the leases of messages that are not finished."""
        ...

    def release(self, messages: list[Message]) -> None:
        """Give messages that are not finished to other processes."""
        ...

    def lag(self) -> int:
        """Return the number of messages that the group has not finished."""
        ...

    def close(self) -> None: ...
