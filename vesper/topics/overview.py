"""The consumer groups of all topics, for `vesper topics` and the dashboard."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from vesper.effects.performer import EffectFailed
from vesper.host.host import Host
from vesper.language.work_bindings import EventsField
from vesper.topics.message import TopicUnavailable
from vesper.topics.records import TopicRecords
from vesper.topics.sources import open_source

MAX_COUNTED_LETTERS: Final = 1000


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A group of a topic; a topic that no node consumes has a line without a group."""

    topic: str
    transport: str
    """`memory`, `redis`, `outbox`, `kafka`, or empty for a topic that is not configured."""
    group: str = ""
    node_id: str = ""
    lag: int | None = None
    """None where only a running consumer knows it: in memory, or while the server is away."""
    dead: int = 0
    """Dead letters, counted up to `MAX_COUNTED_LETTERS`."""
    paused_us: int | None = None
    paused_by: str = ""
    why: str = ""
    problem: str | None = None


def overview(host: Host, declared: Iterable[tuple[str, EventsField]]) -> list[GroupLine]:
    """Return all groups by topic; `declared` are node ids with their `events`. Raises `JournalError`."""
    lines = [_group_line(host, node_id, field) for node_id, field in declared]
    consumed = {each.topic for each in lines}
    topics = host.event_topics()
    lines += [GroupLine(name, topics.settings_of(name).kind) for name in topics.topics() if name not in consumed]
    return sorted(lines, key=lambda each: (each.topic, each.group))


def _group_line(host: Host, node_id: str, field: EventsField) -> GroupLine:
    records = TopicRecords(host)
    topic, group = field.topic, field.group
    paused = [each for each in records.pauses() if each.topic == topic and each.group in ("", group)]
    since, by, why = (paused[0].since_us, paused[0].by, paused[0].why) if paused else (None, "", "")
    dead = records.count(topic, group, MAX_COUNTED_LETTERS)
    transport, lag, problem = "", None, None
    try:
        transport = host.event_topics().settings_of(topic).kind
        if transport != "memory":
            source = open_source(host, topic, group)
            try:
                lag = source.lag()
            finally:
                source.close()
    except (EffectFailed, TopicUnavailable) as failure:
        problem = str(failure)
    return GroupLine(topic, transport, group, node_id, lag, dead, since, by, why, problem)
