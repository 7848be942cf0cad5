"""`vesper run --explain`: why the run came to its outcome."""

from __future__ import annotations

import time

import click

from vesper.api.explanation.entry import explain_execution
from vesper.api.explanation.model import Explanation
from vesper.cli.run.options import RunRequest
from vesper.cli.traces.open_traces import open_configured_traces, report_trace_errors
from vesper.engines.engine import Limits
from vesper.engines.registry import ENGINES, REFERENCE
from vesper.journal.execution_id import trace_id
from vesper.trace.model import Trace
from vesper.trace.programs import program_of
from vesper.trace.recorder import record_trace


def explain_run(request: RunRequest, limits: Limits, execution: str | None = None) -> Explanation:
    """Return the explanation of a finished run: of a journalled one by its trace, else by a traced execution."""
    compiled, options = request.compiled, request.options
    engine = options.engines[0] if options.engines[0] in ENGINES else REFERENCE
    with report_trace_errors():
        trace = _trace(request, engine, limits) if execution is None else _journalled(request, execution, engine)
        explanations = [explain_execution(trace, engine, limits)]
        for other in options.engines[1:]:
            again = _trace(request, other, limits) if execution is None else _journalled(request, execution, other)
            explanations.append(explain_execution(again, other, limits))
    if any(each != explanations[0] for each in explanations):
        raise click.ClickException(f"the engines explain {compiled.node.node_id} differently; this is a bug in Vesper")
    return explanations[0]


def _trace(request: RunRequest, engine: str, limits: Limits) -> Trace:
    program = program_of(request.compiled, engine)
    name = trace_id(time.time_ns())
    return record_trace(request.compiled, program, engine, name, request.inputs, request.now, limits=limits)


def _journalled(request: RunRequest, execution: str, engine: str) -> Trace:
    with open_configured_traces(request.options.config, None) as traces:
        return traces.find(execution, engine)
