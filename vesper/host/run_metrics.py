"""Counts of runs, and alerts about runs in doubt and outboxes that are not emptied."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from vesper.journal.journal import Journal, Status
from vesper.observe.error_labels import outcome_label
from vesper.observe.metrics import count, observe, set_gauge
from vesper.values.generated.metrics import (
    EXECUTION_DURATION,
    EXECUTIONS_ERRORS,
    EXECUTIONS_IN_DOUBT,
    EXECUTIONS_TOTAL,
    OUTBOX_AGE,
    OUTBOX_PENDING,
    RECOVERIES,
)

if TYPE_CHECKING:
    from vesper.engines.outcome import Outcome
    from vesper.host.prepared import Prepared, Recovered
    from vesper.host.run_context import RunContext

STUCK_SECONDS = 300.0
"""Age of an event from which on its outbox is stuck."""
_MAX_COUNTED = 1000
_log = logging.getLogger("vesper.host")


@dataclass(frozen=True, slots=True)
class HostAlert:
    """An event of a Host that needs the attention of a person."""

    kind: str
    text: str


class RunTimer:
    """Counts a run of a node with effects at its end."""

    def __init__(self, prepared: Prepared, context: RunContext | None) -> None:
        self._trace_id = None if context is None else _trace_id(context.traceparent)
        self._began = monotonic()
        self._labels = prepared.compiled.node.node_id, "python" if prepared.engine == "python" else "direct"

    def ended(self, outcome: Outcome) -> None:
        self._count(None if outcome.kind == "returned" else outcome_label(outcome))

    def failed(self, error: str) -> None:
        """Count a run that ended with an exception."""
        self._count(error)

    def _count(self, error: str | None) -> None:
        count(EXECUTIONS_TOTAL, self._labels)
        observe(EXECUTION_DURATION, self._labels, monotonic() - self._began, self._trace_id)
        if error is not None:
            count(EXECUTIONS_ERRORS, (self._labels[0], error))


def _trace_id(traceparent: str | None) -> str | None:
    """Return the trace id of a W3C trace context, which is version, trace, span and flags."""
    return None if traceparent is None else traceparent.split("-")[1]


def count_recovery(recovered: Recovered) -> None:
    is_done = recovered.outcome is not None or recovered.is_waiting
    count(RECOVERIES, (recovered.node_id, "finished" if is_done else "unfinished"))


class HostWatch:
    """Sets the gauges of a Host's stores, and reports each trouble once."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[HostAlert], None]] = []
        self._in_doubt = 0
        self._stuck: set[str] = set()

    def look_at_journal(self, journal: Journal) -> None:
        """Count the runs in doubt. Raises `JournalError`."""
        found = len(journal.find(status=Status.IN_DOUBT, limit=_MAX_COUNTED))
        set_gauge(EXECUTIONS_IN_DOUBT, (), found)
        if found > self._in_doubt:
            number = f"{found}{' or more' if found == _MAX_COUNTED else ''}"
            self._report(
                "in_doubt",
                f"{number} runs have an unknown outcome: `vesper journal list --status in_doubt` lists them, "
                "`vesper journal resolve` decides",
            )
        self._in_doubt = found

    def look_at_outbox(self, database: str, pending: int, age_seconds: float) -> None:
        set_gauge(OUTBOX_PENDING, (database,), pending)
        set_gauge(OUTBOX_AGE, (database,), age_seconds * 1000)
        if age_seconds < STUCK_SECONDS:
            self._stuck.discard(database)
        elif database not in self._stuck:
            self._stuck.add(database)
            age = f"the oldest for {age_seconds:.0f} s"
            self._report("outbox_stuck", f"{pending} events wait in the outbox of `{database}`, {age}")

    def _report(self, kind: str, text: str) -> None:
        _log.warning("%s", text)
        for tell in self.listeners:
            tell(HostAlert(kind, text))
