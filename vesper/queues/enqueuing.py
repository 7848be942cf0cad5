"""Puts runs into queues: priorities, delays, debounce and singletons (docs/spec/queues.md)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from vesper.host.host import Host
from vesper.host.keyed_runs import run_of_key
from vesper.host.prepared import Prepared
from vesper.host.run_context import RunContext, current_context, entered
from vesper.journal.errors import KeyTaken, NotTaken
from vesper.journal.journal import Status
from vesper.kernels.raised import BadInput
from vesper.language.work_bindings import QueueField, queue_of
from vesper.observe.metrics import count
from vesper.queues.rules import QUEUED, Terms, lane_of
from vesper.values.generated.metrics import QUEUES_ENQUEUED
from vesper.values.inputs import read_inputs

MAX_PRIORITY = 1_000
_PAGE = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_DUE = datetime(9999, 1, 1, tzinfo=UTC)
_SUPERSEDED = "superseded by execution {}"


def enqueue(
    host: Host,
    prepared: Prepared,
    inputs: Mapping[str, object],
    *,
    key: str | None = None,
    delay: float | timedelta | None = None,
    priority: int | None = None,
    at: datetime | None = None,
) -> str:
    """Record a run in the queue of its node, and return its id; durable on return.

    Raises `BadInput`, `KeyReused` for a key with other inputs, `ValueError` for an invalid argument, and
    `JournalError`. A key that a run with the same inputs has returns that run.
    """
    node = prepared.compiled.node
    node_id = node.node_id
    field = queue_of(prepared.compiled) or QueueField()
    chosen = field.priority if priority is None else priority
    if type(chosen) is not int or not -MAX_PRIORITY <= chosen <= MAX_PRIORITY:
        raise ValueError(f"`priority` is a whole number from -{MAX_PRIORITY:,} to {MAX_PRIORITY:,}, not {chosen!r}")
    _, refusals = read_inputs(node.declared_inputs, dict(inputs))
    if refusals:  # before a singleton's run is returned
        raise BadInput(refusals)
    is_later = (delay, at, field.debounce_us) != (None, None, None)
    now = _EPOCH + timedelta(microseconds=host.journal.now_us()) if is_later else host.moment()
    due = _due(now, delay, at)
    if field.debounce_us is not None:
        due = max(due, now + timedelta(microseconds=field.debounce_us))
    lane, tenant = lane_of(node, field, inputs), (current_context() or RunContext()).tenant
    if field.is_singleton and (other := _others(host, field.name, lane, node_id, tenant)):
        return other[0]
    with ExitStack() as stack:
        if key is not None:
            stack.enter_context(entered(replace(current_context() or RunContext(), key=key)))
        try:
            execution = host.put_run(
                prepared,
                inputs,
                due,
                queue=field.name,
                lane=lane,
                priority=chosen,
                due_us=None if due <= now else (due - _EPOCH) // timedelta(microseconds=1),
                body=Terms(field.attempts, field.backoff, lane, tenant=tenant).to_body(),
            )
        except KeyTaken:
            return run_of_key(host.journal, prepared, inputs)
    count(QUEUES_ENQUEUED, (field.name, node_id))
    if field.is_singleton or field.debounce_us is not None:
        return _settle_lane(host, field, lane, node_id, tenant, execution)
    return execution


def _due(now: datetime, delay: float | timedelta | None, at: datetime | None) -> datetime:
    if delay is not None and at is not None:
        raise ValueError("give either `delay` or `at`, not both")
    if at is not None:
        try:
            if at.utcoffset() is None:
                raise ValueError("`at` is a datetime with a time zone")
            return max(now, at.astimezone(UTC))
        except OverflowError:
            raise ValueError("`at` is a datetime within the years 1 to 9999 of UTC") from None
    seconds = delay.total_seconds() if isinstance(delay, timedelta) else 0 if delay is None else delay
    if type(seconds) not in (int, float) or not 0 <= seconds <= (_LAST_DUE - now).total_seconds():
        raise ValueError("`delay` is a number of seconds or a timedelta from 0 on that ends before the year 9999")
    return now + timedelta(seconds=seconds)


def _others(host: Host, queue: str, lane: str, node_id: str, tenant: str | None) -> list[str]:
    """Return the runs of a node and tenant that are queued or running in a lane, in the order of their rows."""
    rows = host.journal.due(kind=QUEUED, queue=queue, lane=lane, node=node_id, limit=_PAGE)
    rows = [each for each in rows if each.status is not Status.ENDED and Terms.from_body(each.body).tenant == tenant]
    return [each.execution for each in rows if each.execution]


def _settle_lane(host: Host, field: QueueField, lane: str, node_id: str, tenant: str | None, execution: str) -> str:
    """Cancel all queued runs of a lane but the first of a singleton or the last of a debounce; return the caller's run.

    Processes that enqueue at the same time may see their rows in any order, but the last one to look sees all, and all
    keep the same row. A run that a worker has begun meanwhile goes on.
    """
    runs = _others(host, field.name, lane, node_id, tenant)
    if execution not in runs:  # a worker was faster
        return execution
    kept = runs[0] if field.is_singleton else runs[-1]
    for each in runs:
        if each != kept:
            with suppress(NotTaken):
                host.journal.cancel(each, _SUPERSEDED.format(kept), None)
    is_kept = host.journal.summary(execution).status is not Status.ENDED
    return kept if field.is_singleton and not is_kept else execution
