"""`vesper run --trace` of a node without effects: runs it on each engine and keeps one trace."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from vesper.cli.journal.open_journal import read_journal_settings
from vesper.cli.traces.open_traces import report_trace_errors
from vesper.compiler import Compiled
from vesper.engines.engine import Limits, Program
from vesper.engines.outcome import Outcome
from vesper.host.performers import Performers
from vesper.journal.execution_id import trace_id
from vesper.trace.difference import parted
from vesper.trace.recorder import record_trace
from vesper.trace.store import TraceStore


def run_traced(
    compiled: Compiled,
    programs: Mapping[str, Program],
    inputs: Mapping[str, object],
    now: datetime,
    limits: Limits,
    config: Path | None,
) -> tuple[dict[str, Outcome], str]:
    """Return the outcome on each engine and the id of their trace, which records where the engines differ."""
    name = trace_id(time.time_ns())
    with report_trace_errors():
        # The store opens before the run, so that a run whose trace cannot be kept does not start.
        settings = read_journal_settings(config, None)
        store = TraceStore(settings.trace_settings(), Performers(replace(settings, modules=()), {}).key_ring())
        traces = {
            engine: record_trace(compiled, program, engine, name, inputs, now, limits=limits)
            for engine, program in programs.items()
        }
        leader, *followers = traces.values()
        divergence = next((found for each in followers if (found := parted(leader, each))), None)
        store.add(replace(leader, engines=tuple(traces), divergence=divergence))
    outcomes = {engine: each.outcome for engine, each in traces.items()}
    return {engine: outcome for engine, outcome in outcomes.items() if outcome is not None}, name
