"""New attempts of runs that ended: a new run with the inputs, the definition and the caller of the old one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from vesper.compiler import Compiled, compile_source
from vesper.engines.outcome import EngineFault, Failed, LimitHit, Outcome
from vesper.host.host import Host
from vesper.host.prepared import compiled_from
from vesper.journal.entry import Definition
from vesper.journal.errors import JournalError, KeyTaken
from vesper.journal.journal import Beginning, Recorded, Status
from vesper.language.diagnostics.source import SourceFile
from vesper.language.work_bindings import QueueField, queue_of
from vesper.policies.retry import DEFAULT_CODES
from vesper.queues.rules import DEAD_SUFFIX, QUEUED, Terms, lane_of

_FINAL_KINDS = frozenset(("returned", "declared_error"))
"""Outcomes after which there is no other attempt."""
_TIME_LIMITS = frozenset(("time", "timeout_seconds", "deadline"))
"""Limits that another attempt may keep, unlike those of fuel and memory."""


def is_retryable(outcome: Outcome) -> bool:
    """Return whether another attempt may succeed: a provider was unavailable, time ran out, or an engine broke."""
    match outcome:
        case Failed(code):
            return str(code) in DEFAULT_CODES
        case LimitHit(limit):
            return limit in _TIME_LIMITS
        case _:
            return isinstance(outcome, EngineFault)


def is_settled(outcome: Outcome) -> bool:
    """Return whether a run leaves its queue for good: it returned, declared an error, or was cancelled."""
    return outcome.kind in _FINAL_KINDS or outcome == LimitHit("cancelled")


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a run in a queue."""

    queue: str
    priority: int
    terms: Terms


def place_of(host: Host, recorded: Recorded) -> Place:
    """Return the place that a run has by the `queue` of its definition."""
    definition = host.journal.definition(recorded.summary.semantic_hash)
    compiled = _compiled(definition)
    field = (None if compiled is None else queue_of(compiled)) or QueueField()
    node = (compiled or compiled_from(definition)).node
    lane, tenant = lane_of(node, field, _start(recorded, "inputs")), _context(recorded).get("tenant")
    return Place(field.name, field.priority, Terms(field.attempts, field.backoff, lane, tenant=tenant))


@lru_cache(maxsize=256)
def _compiled(definition: Definition) -> Compiled | None:
    """Return a recorded definition with its `queue`, which its IR does not have; None where it has errors by now."""
    return compile_source(SourceFile(definition.path, definition.source))[0]


def retry_key(execution: str) -> str:
    """Return the idempotency key of the next attempt: a run is repeated once, by the first process that tries."""
    return f"retry:{execution}:1"


def retry(host: Host, recorded: Recorded, place: Place, due_us: int | None = None) -> str | None:
    """Queue another attempt of a run, and return its id; None where the run was repeated already."""
    summary = recorded.summary
    definition = host.journal.definition(summary.semantic_hash)
    beginning = Beginning(
        host.new_execution(),
        definition,
        _start(recorded, "inputs"),
        host.moment(),
        summary.engine,
        summary.is_sensitive,
        context=_context(recorded),
    )
    try:
        return host.journal.begin_queued(
            beginning, place.queue, place.terms.lane, place.priority, due_us, place.terms.to_body()
        )
    except KeyTaken:
        return None


def next_attempt(host: Host, execution: str) -> tuple[str | None, bool]:
    """Return the attempt after a run that failed, and whether there is none to wait for."""
    if any(not each.queue.endswith(DEAD_SUFFIX) for each in host.journal.due(QUEUED, execution=execution, limit=1)):
        return None, False  # a worker has not settled it yet
    recorded = host.journal.read(execution)
    found = host.journal.keyed(recorded.summary.node_id, _context(recorded))
    return (None, True) if found is None else (found[0].execution, False)


def last_attempt(host: Host, execution: str) -> tuple[str, bool]:
    """Return the attempt that goes on for a run, and whether it is the last where it has ended."""
    while True:
        summary = host.journal.summary(execution)
        if summary.status is not Status.ENDED or summary.outcome in _FINAL_KINDS or _is_erased(host, execution):
            return execution, True
        follower, is_over = next_attempt(host, execution)
        if follower is None:
            return execution, is_over
        execution = follower


def _is_erased(host: Host, execution: str) -> bool:
    return host.journal.read(execution).entries[0].is_erased


def _context(recorded: Recorded) -> dict[str, str]:
    """Return the context of the next attempt: the same caller with the key of the attempt."""
    texts = {name: str(text) for name, text in _start(recorded, "context").items()}
    return {**texts, "key": retry_key(recorded.summary.execution)}


def _start(recorded: Recorded, name: str) -> Mapping[str, object]:
    """Return a mapping of the run's START. Raises `JournalError` for a run that was erased."""
    start = recorded.entries[0]
    found = None if start.is_erased else start.entry.body.get(name, {})
    if not isinstance(found, Mapping):
        raise JournalError(f"execution {recorded.summary.execution} cannot be repeated: its inputs were erased")
    return found
