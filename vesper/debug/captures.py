"""Evaluate the breakpoints of running services on executions that have ended.

No run stops: its trace is debugged again, by the same session that people use, so breakpoints keep their meaning. The
files of breakpoints and captures are in `vesper/trace/armed_breakpoints.py`. Services import this module when there is
a breakpoint (`vesper/api/run_captures.py`).
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from vesper.debug.breakpoints import BadBreakpoint
from vesper.debug.responses import Unanswered
from vesper.debug.start import subject_of_trace
from vesper.engines.registry import PAIR
from vesper.trace.armed_breakpoints import ArmedWatch, Capture
from vesper.trace.expressions import BadExpression, Loader

if TYPE_CHECKING:
    from vesper.trace.model import Trace

_log = logging.getLogger("vesper.debug")


class BreakpointEvaluator:
    """The evaluation of the armed breakpoints of one process."""

    def __init__(self, watch: ArmedWatch) -> None:
        self._watch = watch
        self._loader = Loader()

    def met_by(self, trace: Trace) -> str | None:
        """Return the first breakpoint that an execution meets; its trace is debugged and performs nothing."""
        engines: list[Any] = list(PAIR.values())
        for text in self._watch.texts:
            needed = engines if text.startswith("divergence") else engines[:1]
            session = subject_of_trace(trace, needed, self._loader).session()
            try:
                session.add_breakpoint(text)
                if session.resume(from_start=True).breakpoints:
                    return text
            except (BadBreakpoint, BadExpression):
                continue  # it is about other nodes
            except Unanswered:
                continue  # the run was stopped at this request, and met nothing before it
        return None

    def capture(self, trace: Trace) -> bool:
        """Note an execution in the list of captures if it meets a breakpoint; return whether it does."""
        text = self.met_by(trace)
        if text is None:
            return False
        self._watch.armed.note(Capture(trace.trace_id, trace.node_id, text, time.time_ns() // 1000))
        _log.info("%s of %s meets `%s`", trace.trace_id, trace.node_id, text)
        return True
