"""Stored traces as cases: recorded executions of pure nodes, which no journal has, and re-executions."""

from __future__ import annotations

from collections.abc import Iterator

from vesper.changes.backtest.cases import Answer, Case, Excluded, not_ended_reason
from vesper.changes.backtest.journal_runs import Selection
from vesper.trace.library import Traces
from vesper.trace.model import Trace, TraceError

_MAX_TRACES = 1 << 40


def trace_runs(traces: Traces, selection: Selection) -> Iterator[Case | Excluded]:
    """Yield the selected traces, newest first."""
    limit = _MAX_TRACES if selection.limit is None else selection.limit
    found = [each for node in selection.nodes for each in traces.store.find(node, selection.since_us, _MAX_TRACES)]
    until = selection.until_us
    newest = sorted(found, key=lambda each: (each.started_us, each.trace_id), reverse=True)
    chosen = [each for each in newest if until is None or each.started_us < until][:limit]
    for summary in chosen:
        try:
            yield trace_case(traces.store.read(summary.trace_id))
        except TraceError:
            yield Excluded(summary.trace_id, "unreadable: the trace is damaged, or its key is missing")


def trace_case(trace: Trace) -> Case | Excluded:
    """Return one trace as a case."""
    if trace.outcome is None:
        return Excluded(trace.trace_id, not_ended_reason("waiting" if trace.waits_at else "cut"))
    if trace.origin is not None:
        return Excluded(trace.trace_id, "a re-execution: its answers may have been changed")
    answers = {
        each.path: Answer(each.effect, each.fixed, each.arguments, each.value, each.failure) for each in trace.exchanges
    }
    return Case(trace.trace_id, trace.inputs, trace.now, answers, trace.outcome, trace.semantic_hash)
