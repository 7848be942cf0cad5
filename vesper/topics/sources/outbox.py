"""The table `vesper_outbox` of a database as a topic.

A row is claimed only where no earlier row of its key is unfinished; a claim is a lease and decides no order. The row
of the last group that finishes it is deleted. On PostgreSQL claims skip rows that another process is claiming.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any, Final

from vesper.effects.events.performer import EventPerformer
from vesper.effects.events.settings import EventSettings
from vesper.effects.performer import EffectFailed
from vesper.topics.message import Message, TopicUnavailable, checked_id
from vesper.values.model import Value
from vesper.values.types import INTEGER, STRING, ArrayOf, OptionalOf, Record, Type

_DONE: Final = (1 << 63) - 1
"""`until_us` of a row that the group has finished."""
_TYPES: Final[Mapping[str, Type]] = {
    **dict.fromkeys(("grp", "owner", "topic"), STRING),
    **dict.fromkeys(("done", "is_ordered", "most", "now", "seq", "until"), INTEGER),
}
_ROW: Final = Record((("seq", INTEGER), ("id", STRING), ("payload", STRING), ("event_key", OptionalOf(STRING))))
_UNFINISHED: Final = """\
NOT EXISTS (SELECT 1 FROM vesper_outbox_claims AS d WHERE d.grp = :grp AND d.seq = {}.seq AND d.until_us = :done)"""
_CLAIM: Final = f"""\
INSERT INTO vesper_outbox_claims (grp, seq, owner, until_us)
SELECT :grp, o.seq, :owner, :until FROM vesper_outbox AS o
WHERE o.topic = :topic
  AND NOT EXISTS (SELECT 1 FROM vesper_outbox_claims AS c WHERE c.grp = :grp AND c.seq = o.seq AND c.until_us > :now)
  AND (:is_ordered = 0 OR o.event_key IS NULL OR NOT EXISTS (
    SELECT 1 FROM vesper_outbox AS p
    WHERE p.topic = o.topic AND p.event_key = o.event_key AND p.seq < o.seq AND {_UNFINISHED.format("p")}))
ORDER BY o.seq LIMIT :most{{}}
ON CONFLICT (grp, seq) DO UPDATE SET owner = excluded.owner, until_us = excluded.until_us
WHERE vesper_outbox_claims.until_us <= :now"""  # noqa: S608  # all parts are constants
_CLAIMED: Final = (
    "SELECT o.seq, o.id, o.payload, o.event_key FROM vesper_outbox AS o "
    "JOIN vesper_outbox_claims AS c ON c.seq = o.seq AND c.grp = :grp WHERE c.owner = :owner ORDER BY o.seq"
)
_SET: Final = "UPDATE vesper_outbox_claims SET until_us = :until WHERE grp = :grp AND seq = :seq"
_RENEW: Final = f"{_SET} AND owner = :owner AND until_us < :done"
_DELETE: Final = """\
DELETE FROM vesper_outbox WHERE seq = :seq AND
  (SELECT count(*) FROM vesper_outbox_groups AS g WHERE g.topic = :topic) <=
  (SELECT count(*) FROM vesper_outbox_claims AS d WHERE d.seq = :seq AND d.until_us = :done)"""
_FORGET: Final = (
    "DELETE FROM vesper_outbox_claims WHERE seq = :seq "
    "AND NOT EXISTS (SELECT 1 FROM vesper_outbox AS o WHERE o.seq = :seq)"
)
_LAG: Final = f"SELECT count(*) AS n FROM vesper_outbox AS o WHERE o.topic = :topic AND {_UNFINISHED.format('o')}"  # noqa: S608  # as above
_JOIN: Final = "INSERT INTO vesper_outbox_groups (topic, grp) VALUES (:topic, :grp) ON CONFLICT DO NOTHING"


class OutboxSource:
    def __init__(
        self, settings: EventSettings, group: str, is_ordered: bool, topics: EventPerformer, is_sqlite: bool
    ) -> None:
        assert settings.database is not None
        self._database = settings.database
        self._topic = settings.name
        self._group = group
        self._lease_us = round(settings.lease * 1_000_000)
        self._is_ordered = int(is_ordered)
        self._topics = topics
        self._skips = "" if is_sqlite else " FOR UPDATE OF o SKIP LOCKED"
        self._is_ready = False
        self.keep_seconds = settings.lease / 3

    def take(self, limit: int) -> list[Message]:
        self._make_ready()
        now, owner = _now_us(), uuid.uuid4().hex
        claim: dict[str, Value] = {"owner": owner, "topic": self._topic, "is_ordered": self._is_ordered, "most": limit}
        if not self._run(_CLAIM.format(self._skips), INTEGER, now=now, until=now + self._lease_us, **claim):
            return []
        rows = self._run(_CLAIMED, ArrayOf(_ROW), owner=owner)
        return [
            Message(checked_id(row["id"], str(row["seq"])), row["payload"], row["event_key"], str(row["seq"]), owner)
            for row in rows
        ]

    def finish(self, messages: list[Message]) -> list[Message]:
        """Delete the rows that all groups have finished; the next `take` claims the next ones of their keys."""
        for each in messages:
            seq = int(each.position)
            self._run(_SET, INTEGER, seq=seq, until=_DONE)
            self._run(_DELETE, INTEGER, seq=seq, topic=self._topic)
            self._run(_FORGET, INTEGER, seq=seq)
        return []

    def keep(self, messages: list[Message]) -> None:
        for each in messages:
            self._run(_RENEW, INTEGER, seq=int(each.position), owner=each.token, until=_now_us() + self._lease_us)

    def release(self, messages: list[Message]) -> None:
        for each in messages:
            self._run(_RENEW, INTEGER, seq=int(each.position), owner=each.token, until=0)

    def lag(self) -> int:
        (row,) = self._run(_LAG, ArrayOf(Record((("n", INTEGER),))), topic=self._topic)
        return int(row["n"])

    def close(self) -> None:
        """The Host closes its databases."""

    def _make_ready(self) -> None:
        if not self._is_ready:
            self._run(_JOIN, INTEGER, topic=self._topic)
            self._is_ready = True

    def _run(self, sql: str, gives: Type, **values: Value) -> Any:
        given: dict[str, Value] = {"grp": self._group, "done": _DONE, **values}
        used = {name: value for name, value in given.items() if f":{name}" in sql}
        try:
            return self._topics.run_sql(self._database, sql, _TYPES, gives, **used)
        except EffectFailed as failure:
            advice = " (docs/how-to/consume-events.md has the tables that consumers need)"
            raise TopicUnavailable(f"the outbox of the topic `{self._topic}`: {failure.message}{advice}") from None


def _now_us() -> int:
    return time.time_ns() // 1000
