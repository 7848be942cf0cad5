"""The flow of the editor's node, with the path that a run took."""

from __future__ import annotations

from vesper.compiler import Compiled
from vesper.dashboard.draw.flow import draw_flow
from vesper.dashboard.draw.flow.evidence import ways_of
from vesper.dashboard.draw.flow.parts import parts_of
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.engine import Blocked, Limits
from vesper.migration.compare.paths import PathNote, ending_of, settled_text
from vesper.trace.model import Trace

_KEY = bytes(16)
"""Key of the fingerprint, which is not used."""


def draw_taken(compiled: Compiled, trace: Trace, limits: Limits) -> str:
    """Return the flow as SVG with the path of a trace.

    The direct engine receives the trace's answers again.
    """
    program = DirectEngine().load(compiled)
    execution = program.start_pathed(trace.inputs, _KEY, trace.now, limits)
    step = execution.advance(())
    for exchange in trace.exchanges:
        if isinstance(step, Blocked):
            step = execution.advance((exchange.completion(step.requests[0]),))
    settled = tuple(sorted({settled_text(each.path, each.failure) for each in trace.exchanges}))
    ending = "" if trace.outcome is None else ending_of(trace.outcome)
    note = PathNote(execution.path(), settled, ending)
    return draw_flow(compiled, taken=ways_of(parts_of(compiled), program.points(), note))
