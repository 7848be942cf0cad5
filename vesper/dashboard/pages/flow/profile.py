"""Tab Profile of a node: the time of each step on both engines.

Requests are answered by a trace or a case.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

from vesper.compiler import Compiled
from vesper.dashboard.page import BadRequest, Context, Unavailable
from vesper.dashboard.pages.executions.run import checked_id
from vesper.dashboard.pages.flow.download import compiled_node
from vesper.dashboard.problem import TooMany
from vesper.dashboard.stores import require_trusted
from vesper.debug.case_trace import NoAnswer, trace_case
from vesper.engines.direct_engine import DirectEngine, TieredEngine
from vesper.engines.engine import Engine
from vesper.engines.outcome import Returned
from vesper.engines.registry import PAIR, REFERENCE
from vesper.engines.tiering import ALWAYS
from vesper.trace.library import Filters
from vesper.trace.model import Trace
from vesper.trace.profile import TooSlow, profile_steps, time_text
from vesper.values.model import printable

MAX_SECONDS: Final = 2.0
_MAX_TRACES: Final = 20
_running: Final = threading.Lock()
"""Held by the one profile of the process, so that callers cannot occupy its processors."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A trace or a journalled run of the node."""

    id: str
    at_us: int
    outcome: str | None


@dataclass(frozen=True, slots=True)
class TimedStep:
    name: str
    nanoseconds: dict[str, float]
    """By engine."""
    texts: dict[str, str]
    shares: dict[str, float]
    """Of the longest step on any engine."""


@dataclass(frozen=True, slots=True)
class ProfilePage:
    node: str
    cases: tuple[str, ...]
    recorded: tuple[Recorded, ...]
    subject: str | None
    """The trace or case that is timed; None where the node has none."""
    engines: tuple[str, ...]
    steps: tuple[TimedStep, ...]
    """Empty until a run is asked for."""
    total: TimedStep | None
    note: str


def read_profile(context: Context) -> ProfilePage:
    """Return the cases and recorded runs that can be timed, and the times if requested."""
    compiled = compiled_node(context)
    node = compiled.node.node_id
    cases = tuple(each.name for each in compiled.cases)
    recorded = _read_recorded(context, node)
    case, trace = context.text("case"), context.text("trace")
    if case is None and trace is None:
        trace = recorded[0].id if recorded else None
        case = None if trace is not None or not cases else cases[0]
    trace = trace if case is None else None
    subject = f"case {printable(case)}" if case is not None else None if trace is None else f"run {printable(trace)}"
    engines: dict[str, Engine] = {REFERENCE: PAIR[REFERENCE], TieredEngine.name: DirectEngine(ALWAYS)}
    if context.choice("run", ("1",)) is None or subject is None:
        return ProfilePage(node, cases, recorded, subject, tuple(engines), (), None, "")
    if not _running.acquire(blocking=False):
        raise TooMany("another profile is running", f"Load the page again in {MAX_SECONDS:.0f} seconds.")
    try:
        found = _trace(context, compiled, case, trace)
        result = profile_steps(found, engines, MAX_SECONDS)
    except (TooSlow, NoAnswer) as problem:
        raise Unavailable(f"the profile of {subject}", str(problem), f"Run `vesper profile {node}`.") from None
    finally:
        _running.release()
    longest = max(value for each in result.steps for value in each.nanoseconds.values()) or 1.0

    def timed(name: str, times: dict[str, float]) -> TimedStep:
        texts = {engine: time_text(value) for engine, value in times.items()}
        return TimedStep(name, times, texts, {engine: value / longest for engine, value in times.items()})

    steps = tuple(timed(printable(each.name), dict(each.nanoseconds)) for each in result.steps)
    notes: list[str] = []
    if not isinstance(found.outcome, Returned):
        notes.append("This run does not return: steps after its end take no time.")
    if len(steps) < len(compiled.node.body) + 2:
        notes.append(f"Steps are grouped to save time: `vesper profile {node}` times each.")
    total = timed("total", dict(result.total))
    return ProfilePage(node, cases, recorded, subject, tuple(engines), steps, total, " ".join(notes))


def _read_recorded(context: Context, node: str) -> tuple[Recorded, ...]:
    """Return the newest traces and runs of the node; none where nothing is recorded yet."""
    try:
        listed = context.stores.traces.listed(Filters((node,)), _MAX_TRACES)
    except Unavailable:
        return ()
    return tuple(Recorded(each.trace_id, each.started_us, each.outcome) for each in listed.found)


def _trace(context: Context, compiled: Compiled, case: str | None, trace: str | None) -> Trace:
    if trace is not None:
        found = context.stores.traces.find(checked_id(trace))
        if found.node_id != compiled.node.node_id:
            raise BadRequest(f"{printable(trace)} is a run of {found.node_id}", "Choose a run of this node.")
        return found
    wanted = next((each for each in compiled.cases if each.name == case), None)
    if wanted is None:
        raise BadRequest(f"{compiled.node.node_id} has no case {printable(case or '')}", "Choose one of its cases.")
    require_trusted(compiled)
    return trace_case(compiled, wanted)
