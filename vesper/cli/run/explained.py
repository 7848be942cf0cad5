"""`vesper run --explain`: the reasons for the outcome of a run."""

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
from vesper.trace.masking import masked_trace
from vesper.trace.model import Trace
from vesper.trace.programs import program_of
from vesper.trace.recorder import record_trace


def explain_run(request: RunRequest, limits: Limits, execution: str | None = None) -> Explanation:
    """Return the explanation of a finished run.

    A journalled run is explained by its trace, any other by a traced execution.
    """
    compiled, options = request.compiled, request.options
    engine = options.engines[0] if options.engines[0] in ENGINES else REFERENCE
    with report_trace_errors():
        trace = _trace(request, engine, limits) if execution is None else _read_journalled(request, execution, engine)
        explanations = [_explain(trace, engine, limits, options.reveal)]
        for other in options.engines[1:]:
            again = _trace(request, other, limits) if execution is None else _read_journalled(request, execution, other)
            explanations.append(_explain(again, other, limits, options.reveal))
    if any(each != explanations[0] for each in explanations):
        raise click.ClickException(f"the engines explain {compiled.node.node_id} differently; this is a bug in Vesper")
    return explanations[0]


def _explain(trace: Trace, engine: str, limits: Limits, reveals: bool) -> Explanation:
    """Return the explanation of a trace; without the nearest input, which has values, where they are masked."""
    if reveals or not trace.is_sensitive:
        return explain_execution(trace, engine, limits)
    return explain_execution(masked_trace(trace), engine, limits, has_nearest=False)


def _trace(request: RunRequest, engine: str, limits: Limits) -> Trace:
    program = program_of(request.compiled, engine)
    name = trace_id(time.time_ns())
    return record_trace(request.compiled, program, engine, name, request.inputs, request.now, limits=limits)


def _read_journalled(request: RunRequest, execution: str, engine: str) -> Trace:
    with open_configured_traces(request.options.config, None) as traces:
        return traces.find(execution, engine)
