"""Pauses and dead letters of all topics: rows of kind `topic` in the journal, which all consumers of a group share."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from vesper._direct import RunKey
from vesper.effects.events.event import Event
from vesper.host.host import Host
from vesper.host.masking import SENSITIVE
from vesper.journal.audit import audit_change
from vesper.topics.message import requeued_id
from vesper.values.json_value import parse_json
from vesper.values.problem import ValueProblem
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper.journal.journal import Due, KeyRing

_KIND: Final = "topic"
_PAUSED: Final = "paused"
"""Queue of the rows of pauses; the queue of a dead letter is its topic, which may have the same name."""
_PAGE_ROWS: Final = 1000
_SEALED: Final = ("event_key", "payload", "message")
"""Members of a dead letter that are sealed where its node takes sensitive data."""


class NotRequeued(VesperError):
    """A dead letter that cannot be published again."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A group that takes no messages; an empty group stands for all groups of the topic."""

    topic: str
    group: str
    since_us: int
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class Letter:
    """A message that a group gave up."""

    topic: str
    group: str
    node_id: str
    id: str
    event_key: str | None
    payload: str | None
    """None for a payload over `max_payload`."""
    position: str
    attempts: int
    code: str
    message: str
    execution: str | None
    """The last run in the journal; None where the payload did not fit the node."""
    died_us: int
    is_sensitive: bool

    def masked(self) -> Letter:
        """Return the letter as it is shown: without the values of a sensitive one."""
        if not self.is_sensitive:
            return self
        return replace(self, event_key=SENSITIVE, payload=SENSITIVE, message=SENSITIVE)


class TopicRecords:
    """Reads and writes the rows of a Host's journal, and audits changes by a person. Raises `JournalError`."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._journal = host.journal

    # -- pauses -----------------------------------------------------------------------------------

    def pause(self, topic: str, group: str, by: str, why: str) -> bool:
        """Pause a group, or with an empty group all groups; False where it is paused already."""
        body = json.dumps({"group": group, "by": by, "why": why})
        name, now_us = f"pause:{topic}:{group}", time.time_ns() // 1000
        is_new = self._journal.put_due(_KIND, name, now_us, body, None, queue=_PAUSED, lane=topic)
        if is_new:
            audit_change(self._journal, "topic_pause", "", "", by, topic=topic, group=group, why=why)
        return is_new

    def resume(self, topic: str, group: str, by: str, why: str) -> bool:
        """End a pause; False where there was none."""
        rows = self._journal.due(kind=_KIND, name=f"pause:{topic}:{group}")
        is_ended = any(self._journal.remove(each) for each in rows)
        if is_ended:
            audit_change(self._journal, "topic_resume", "", "", by, topic=topic, group=group, why=why)
        return is_ended

    def pauses(self) -> list[Pause]:
        bodies = [(each, json.loads(each.body)) for each in self._rows("pause:", _PAUSED)]
        return [Pause(row.lane, body["group"], row.due_us or 0, body["by"], body["why"]) for row, body in bodies]

    # -- dead letters -----------------------------------------------------------------------------

    def bury(self, letter: Letter) -> bool:
        """Keep a dead letter; False where it is kept already."""
        name = f"dead:{letter.topic}:{letter.group}:{letter.id}"
        kept = ("node_id", "id", "position", "attempts", "code", "execution")
        body: dict[str, Any] = {each: getattr(letter, each) for each in kept}
        sealed = {each: getattr(letter, each) for each in _SEALED}
        if letter.is_sensitive:
            key = RunKey.new(name)
            master, wrapped = self._keys.wrap(key, name)
            data = key.seal(json.dumps(sealed).encode(), 0)
            sealed = {"master": master, "key": _text(wrapped), "sealed": _text(data)}
        row = json.dumps(body | sealed)
        return self._journal.put_due(_KIND, name, letter.died_us, row, None, queue=letter.topic, lane=letter.group)

    def letters(self, topic: str, group: str | None = None, limit: int | None = None) -> list[Letter]:
        """Return dead letters, oldest first."""
        return [self._letter(each) for each in islice(self._rows("dead:", topic, group), limit)]

    def count(self, topic: str, group: str, limit: int) -> int:
        """Return the number of dead letters, at most `limit`; opens none."""
        return sum(1 for _ in islice(self._rows("dead:", topic, group), limit))

    def drop(self, letter: Letter, by: str, why: str) -> bool:
        """Delete a dead letter; False where it is gone."""
        return self._remove("topic_drop", letter, by, why)

    def requeue(self, letter: Letter, by: str, why: str) -> str:
        """Publish a dead letter again for its group, at the end of its topic; return its new id.

        Raises `NotRequeued`, and `EffectFailed` where the topic cannot be reached.
        """
        if letter.payload is None:
            raise NotRequeued(f"{letter.id}: its payload was too long to be kept; publish it again at its source")
        try:
            payload = parse_json(letter.payload)
        except (ValueError, ValueProblem):
            raise NotRequeued(f"{letter.id}: its payload is no JSON; publish a correct one, and drop this") from None
        new_id, execution = requeued_id(letter.id, letter.group), letter.execution or ""
        event = Event(new_id, letter.topic, payload, letter.event_key, execution, datetime.now(UTC))
        self._host.event_topics().republish(event)
        self._remove("topic_requeue", letter, by, why)
        return new_id

    def _remove(self, action: str, letter: Letter, by: str, why: str) -> bool:
        rows = self._journal.due(kind=_KIND, name=f"dead:{letter.topic}:{letter.group}:{letter.id}")
        is_removed = any(self._journal.remove(each) for each in rows)
        if is_removed:
            facts = {"topic": letter.topic, "group": letter.group, "message": letter.id, "why": why}
            audit_change(self._journal, action, letter.execution or "", letter.node_id, by, **facts)
        return is_removed

    @cached_property
    def _keys(self) -> KeyRing:
        return self._host.key_ring()

    def _rows(self, start: str, queue: str, lane: str | None = None) -> Iterator[Due]:
        """Yield the rows of a queue whose names begin with `start`."""
        after = None
        while page := self._journal.due(kind=_KIND, queue=queue, limit=_PAGE_ROWS, after=after):
            yield from (row for row in page if row.name.startswith(start) and lane in (None, row.lane))
            after = page[-1].id

    def _letter(self, row: Due) -> Letter:
        body = json.loads(row.body)
        is_sensitive = "sealed" in body
        if is_sensitive:
            wrapped, sealed = (base64.b64decode(body.pop(each)) for each in ("key", "sealed"))
            key = self._keys.unwrap(body.pop("master"), wrapped, row.name)
            body |= json.loads(key.open(sealed, 0))
        return Letter(topic=row.queue, group=row.lane, died_us=row.due_us or 0, is_sensitive=is_sensitive, **body)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
