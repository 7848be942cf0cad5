"""Fields for background work: `schedule`, `queue`, `events`, and the tree of a supervisor.

They are not part of the semantics, as `http` is not: neither the IR nor the semantic hash contains them.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays between attempts: `base_us`, then each `factor` times the one before, at most `max_us`."""

    base_us: int = 1_000_000
    factor: int = 2
    max_us: int = 3_600_000_000

    def wait_us(self, attempt: int) -> int:
        """Return the delay after this attempt; the first attempt is 1."""
        growth: int = self.factor ** min(attempt - 1, 64)
        return min(self.max_us, self.base_us * growth)


@dataclass(frozen=True, slots=True)
class ScheduleField:
    """The field `schedule` of a `scheduled_job`."""

    cron: str
    zone: str
    """IANA name; by default `UTC`."""
    jitter_us: int
    overlap: str
    """`skip`, `queue` or `allow`."""
    missed: str
    """`skip`, `latest` or `all`."""
    inputs_json: str
    """JSON object of the fixed inputs, by outside names, as `run_json` takes it."""
    time_field: str | None
    """Outside name of the input `scheduled_at`, which gets the due time; None where the job has none."""


@dataclass(frozen=True, slots=True)
class QueueField:
    """The field `queue` of a node."""

    name: str = "default"
    by: str | None = None
    """Input whose value selects the lane; the limits below hold for each lane."""
    concurrency: int | None = None
    rate_limit: int | None = None
    rate_per_us: int | None = None
    """Present exactly where `rate_limit` is."""
    priority: int = 0
    """Higher ones run first."""
    debounce_us: int | None = None
    is_singleton: bool = False
    attempts: int = 3
    backoff: Backoff = Backoff()


@dataclass(frozen=True, slots=True)
class EventsField:
    """The field `events` of an `event_handler`."""

    topic: str
    group: str
    """Consumer group; by default the id of the node."""
    concurrency: int = 1
    attempts: int = 5
    backoff: Backoff = Backoff()
    is_ordered: bool = True
    """Messages with the same key are handled one after another (`order_by: event_key`)."""
    fields: tuple[tuple[str, str], ...] = ()
    """Parts of a message that the handler takes (`event_id`, `event_key`, `payload`), with outside names of inputs."""


STRATEGIES = ("one_for_one", "one_for_all", "rest_for_one", "restart_all")
REACTIONS = ("restart", "stop", "escalate")


@dataclass(frozen=True, slots=True)
class ChildField:
    """A child of a supervisor: an agent, which is a node, or another supervisor."""

    name: str
    node: str | None = None
    """The node that handles its messages; None for a supervisor."""
    reaction: str = "restart"
    """Reaction to its failure: one of `REACTIONS`."""
    supervisor: SupervisorField | None = None

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"name": self.name, "reaction": self.reaction}
        return found | ({"node": self.node} if self.supervisor is None else self.supervisor.to_json())

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ChildField:
        supervisor = SupervisorField.from_json(data) if "children" in data else None
        return cls(data["name"], data.get("node"), data["reaction"], supervisor)


@dataclass(frozen=True, slots=True)
class SupervisorField:
    """A supervisor: its children in order, and the rules of their restarts."""

    children: tuple[ChildField, ...]
    strategy: str = "one_for_one"
    """One of `STRATEGIES`."""
    max_restarts: int = 3
    window_us: int = 60_000_000
    """One restart more than `max_restarts` in this time fails the supervisor."""
    backoff: Backoff = Backoff(100_000, 2, 5_000_000)
    """Wait before a restart; it grows with the restarts in the window."""
    attempts: int = 3
    """Runs of one message until it is a dead letter."""

    def to_json(self) -> dict[str, Any]:
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("children", "backoff")}
        return own | {"backoff": astuple(self.backoff), "children": [each.to_json() for each in self.children]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SupervisorField:
        own = {each.name: data[each.name] for each in fields(cls) if each.name not in ("children", "backoff")}
        children = tuple(map(ChildField.from_json, data["children"]))
        return cls(children=children, backoff=Backoff(*data["backoff"]), **own)


@dataclass(frozen=True, slots=True)
class WorkBindings:
    """The fields of a node for background work. A missing field is None."""

    schedule: ScheduleField | None = None
    queue: QueueField | None = None
    events: EventsField | None = None
    supervisor: SupervisorField | None = None

    def to_data(self) -> tuple[Any, ...]:
        """Return plain data, which `marshal` can write."""
        flat = tuple(None if each is None else astuple(each) for each in (self.schedule, self.queue, self.events))
        return (*flat, None if self.supervisor is None else self.supervisor.to_json())

    @classmethod
    def from_data(cls, data: tuple[Any, ...]) -> WorkBindings:
        """Return the bindings of plain data."""
        schedule, queue, events, supervisor = data
        return cls(
            None if schedule is None else _restore(ScheduleField, schedule),
            None if queue is None else _restore(QueueField, queue),
            None if events is None else _restore(EventsField, events),
            None if supervisor is None else SupervisorField.from_json(supervisor),
        )


def _restore(kind: type[Any], values: tuple[Any, ...]) -> Any:
    given = dict(zip((each.name for each in fields(kind)), values, strict=True))
    if "backoff" in given:
        given["backoff"] = Backoff(*given["backoff"])
    return kind(**given)


class _HasWork(Protocol):
    @property
    def work(self) -> WorkBindings | None: ...


def schedule_of(compiled: _HasWork) -> ScheduleField | None:
    """Return the `schedule` of a compiled node."""
    return None if compiled.work is None else compiled.work.schedule


def queue_of(compiled: _HasWork) -> QueueField | None:
    """Return the `queue` of a compiled node."""
    return None if compiled.work is None else compiled.work.queue


def events_of(compiled: _HasWork) -> EventsField | None:
    """Return the `events` of a compiled node."""
    return None if compiled.work is None else compiled.work.events


def supervisor_of(compiled: _HasWork) -> SupervisorField | None:
    """Return the tree of a compiled supervisor."""
    return None if compiled.work is None else compiled.work.supervisor
