"""Topics: consumer groups with lag, pauses and dead letters; pause, resume, deliver again, drop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from vesper.dashboard.action import Action, Context, Done, Refused, Role
from vesper.dashboard.page import NotFound, Page, filled
from vesper.dashboard.stores import Topic
from vesper.effects.performer import EffectFailed
from vesper.host.finishing import quiet_host
from vesper.host.host import Host
from vesper.language.work_bindings import EventsField, events_of
from vesper.topics.message import TopicUnavailable
from vesper.topics.overview import GroupLine, overview
from vesper.topics.records import Letter, NotRequeued, TopicRecords
from vesper.values.model import printable

_LETTERS_SHOWN = 50
_LOOK_AGAIN = "Nothing was changed. Load the page again: another person may have been faster."


@dataclass(frozen=True, slots=True)
class Topics:
    """All consumer groups, by topic."""

    lines: tuple[GroupLine, ...]


@dataclass(frozen=True, slots=True)
class GroupView:
    """One consumer group with its oldest dead letters."""

    line: GroupLine
    letters: tuple[Letter, ...]
    """Values of nodes with sensitive data are masked."""


def read_topics(context: Context) -> Topics:
    """Read the groups of the configured topics."""
    with _open_host(context) as host:
        return Topics(tuple(overview(host, _find_handlers(context))))


def read_group(context: Context) -> GroupView:
    """Read the group of the path. Raises `NotFound`."""
    topic, group = context.path["topic"], context.path["group"]
    with _open_host(context) as host:
        for line in overview(host, [each for each in _find_handlers(context) if each[1].topic == topic]):
            if (line.topic, line.group) == (topic, group):
                letters = TopicRecords(host).letters(topic, group, _LETTERS_SHOWN)
                return GroupView(line, tuple(each.masked() for each in letters))
    raise NotFound(
        f"no node consumes `{printable(topic[:80])}` as `{printable(group[:80])}`",
        "The page Topics lists all groups; its node may have been renamed or removed.",
    )


def pause_group(context: Context, fields: Mapping[str, str]) -> Done:
    """Let the group take no messages in any process until it is resumed."""
    topic, group = context.path["topic"], context.path["group"]
    with _open_host(context) as host:
        if not TopicRecords(host).pause(topic, group, context.caller.name, fields["reason"]):
            raise Refused("the group is paused already", _LOOK_AGAIN)
    return _done(context, f"{printable(group)} takes no messages of {printable(topic)}; those under way end.")


def resume_group(context: Context, fields: Mapping[str, str]) -> Done:
    """End the pause of the group, or that of the whole topic."""
    topic, group = context.path["topic"], context.path["group"]
    with _open_host(context) as host:
        records = TopicRecords(host)
        ended = [each for each in (group, "") if records.resume(topic, each, context.caller.name, fields["reason"])]
    if not ended:
        raise Refused("the group is not paused", _LOOK_AGAIN)
    who = "All groups take" if "" in ended else f"{printable(group)} takes"
    return _done(context, f"{who} messages of {printable(topic)} again.")


def requeue(context: Context, fields: Mapping[str, str]) -> Done:
    """Publish a dead letter again, at the end of its topic."""
    with _open_host(context) as host:
        letter = _letter(context, host, fields)
        try:
            new_id = TopicRecords(host).requeue(letter, context.caller.name, fields["reason"])
        except NotRequeued as problem:
            raise Refused(printable(str(problem)), "Nothing was changed.") from None
    return _done(context, f"{printable(letter.id)} is published again as {printable(new_id)}.")


def drop(context: Context, fields: Mapping[str, str]) -> Done:
    """Delete a dead letter."""
    with _open_host(context) as host:
        letter = _letter(context, host, fields)
        if not TopicRecords(host).drop(letter, context.caller.name, fields["reason"]):
            raise Refused("the dead letter is gone", _LOOK_AGAIN)
    return _done(context, f"Dropped the dead letter {printable(letter.id)}.")


def _letter(context: Context, host: Host, fields: Mapping[str, str]) -> Letter:
    for each in TopicRecords(host).letters(context.path["topic"], context.path["group"]):
        if each.id == fields.get("message"):
            return each
    raise Refused("there is no such dead letter", _LOOK_AGAIN)


def _find_handlers(context: Context) -> Iterator[tuple[str, EventsField]]:
    """Yield the event handlers of the project; `vesper check` reports those with errors."""
    nodes = context.stores.nodes
    for node, path in nodes.paths().items():
        if b"event_handler" in path.read_bytes():
            compiled, _ = nodes.compiled(node)
            if compiled is not None and (field := events_of(compiled)) is not None:
                yield node, field


@contextmanager
def _open_host(context: Context) -> Iterator[Host]:
    """Open a Host without background work; a topic that cannot be used is a refusal."""
    _ = context.stores.journal  # a page must not create it
    with quiet_host(context.stores.config, finishes=False) as host:
        try:
            yield host
        except (EffectFailed, TopicUnavailable) as problem:
            raise Refused(printable(str(problem)), "Look whether the server of the topic can be reached.") from None


def _done(context: Context, message: str) -> Done:
    return Done(message, filled("/workload/topics/{topic}/{group}", context.path))


PAGES = (
    Page(
        name="topics",
        path="/workload/topics",
        title="Topics",
        read=read_topics,
        template="topics/list.html",
        summary="Consumer groups of topics with their lag, dead letters and pauses.",
        topics=frozenset({Topic.JOURNAL, Topic.FILES}),
    ),
    Page(
        name="topic_group",
        path="/workload/topics/{topic}/{group}",
        title="{group} of {topic}",
        read=read_group,
        template="topics/group.html",
        summary="One consumer group with its oldest dead letters.",
    ),
)

ACTIONS = (
    Action(
        name="pause_group",
        path="/workload/topics/{topic}/{group}/pause",
        role=Role.OPERATOR,
        perform=pause_group,
        summary="All processes take no more messages within a second. Messages under way end.",
    ),
    Action(
        name="resume_group",
        path="/workload/topics/{topic}/{group}/resume",
        role=Role.OPERATOR,
        perform=resume_group,
        summary="Messages are taken again, from where the group stopped. A pause of the whole topic ends, too.",
    ),
    Action(
        name="requeue_message",
        path="/workload/topics/{topic}/{group}/requeue",
        role=Role.OPERATOR,
        perform=requeue,
        summary="Publishes the message again at the end of its topic. Its attempts start anew.",
    ),
    Action(
        name="drop_message",
        path="/workload/topics/{topic}/{group}/drop",
        role=Role.OPERATOR,
        perform=drop,
        summary="Deletes the dead letter permanently. A run that it had stays in the journal.",
    ),
)
