"""The span of a run of a Host, around the steps that drive it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vesper.engines.outcome import Outcome, outcome_code
from vesper.host.in_doubt import InDoubt
from vesper.host.stub_answers import plain_step
from vesper.host.waiting import RunWaits
from vesper.observe.context import CURRENT_RUN, CurrentRun

if TYPE_CHECKING:
    from vesper.host.driving import Steps
    from vesper.host.prepared import Prepared
    from vesper.host.run_context import RunContext
    from vesper.observe.spans import RunSpan, Tracing


def drive_traced(
    steps: Steps[Outcome], tracing: Tracing, prepared: Prepared, execution: str, context: RunContext | None
) -> Steps[Outcome]:
    """Drive the steps of a run inside its span, if it has one. Log lines name the run in either case."""
    node = prepared.compiled.node
    traceparent, tracestate = (None, None) if context is None else (context.traceparent, context.tracestate)
    span = tracing.begin(prepared.compiled, execution, traceparent, tracestate)
    token = CURRENT_RUN.set(CurrentRun(node.node_id, execution, traceparent if span is None else span.traceparent))
    try:
        if span is None:
            return (yield from steps)
        return (yield from _drive_in_span(steps, span, prepared))
    finally:
        CURRENT_RUN.reset(token)


def _drive_in_span(steps: Steps[Outcome], span: RunSpan, prepared: Prepared) -> Steps[Outcome]:
    span.enter()
    running, kind, code = None, "interrupted", None
    try:
        found = next(steps)
        running = found[0]
        running.set_trace(span.traceparent, span.tracestate, span.has_effect_spans)
        try:
            outcome = yield found
        except BaseException as error:  # noqa: BLE001  # the steps decide what it is
            steps.throw(error)
        else:
            steps.send(outcome)
        raise AssertionError("a run is driven once")
    except StopIteration as end:
        ended: Outcome = end.value
        # A code may be computed from sensitive data.
        kind, code = ended.kind, outcome_code(prepared.masks().outcome(ended) if prepared.plans.is_sensitive else ended)
        return ended
    except (InDoubt, RunWaits) as error:
        kind = "in_doubt" if isinstance(error, InDoubt) else "waiting"
        raise
    finally:
        effects = [] if running is None else running.take_spans()
        span.end(prepared.engine, kind, code, [(plain_step(each[0]), *each[1:]) for each in effects])
