"""One recorded run: steps over time, requests, inputs, contracts, outcome."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from vesper.api.explanation.derive import explain_trace
from vesper.dashboard.draw.timeline import MAX_ROWS, TimelineRow, draw_timeline
from vesper.dashboard.page import Context, NotFound
from vesper.dashboard.words import duration_text
from vesper.journal.errors import JournalError, UnknownExecution
from vesper.replay.text import step_lines
from vesper.trace.difference import outcome_text, step_text
from vesper.trace.masking import masked_trace
from vesper.trace.model import Trace, TraceError
from vesper.trace.search import FoundRun, Result, of_summary
from vesper.trace.spans import Part, StepSpan, spans_of
from vesper.trace.timeline import SIGNS, effect_text
from vesper.values.model import printable, show

_ID: Final = re.compile(r"[0-9A-Za-z_-]{1,200}")
_MAX_SHOWN: Final = 2_000
"""Maximum characters of a value on the page; the API has the same text."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One evaluated clause of the contracts."""

    phase: str
    number: int
    text: str
    holds: bool
    values: Mapping[str, str]
    """Values of the names in a broken clause."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the run."""

    number: int
    path: str
    title: str
    status: str
    """`ok`, `failed`, `skipped` or `open`: still without an answer."""
    effect: str
    """Request of the step; empty for a computed value."""
    result: str
    after_us: int
    """Time from the start of the run to the begin of the step."""
    took_us: int | None
    attempts: int
    """Attempts of the request; 0 for a computed value."""
    parts: tuple[Part, ...]
    lines: tuple[str, ...]
    """Request, decisions of policies, answer and known values."""

    @property
    def sign(self) -> str:
        return SIGNS.get(self.status, "…")

    @property
    def facts(self) -> str:
        """Return the step in words, for the drawing."""
        took = "" if self.took_us is None else f", {duration_text(self.took_us)}"
        again = f", {self.attempts} attempts" if self.attempts > 1 else ""
        return f"{self.path}{': ' + self.result if self.status != 'ok' else ''}{took}{again}"


@dataclass(frozen=True, slots=True)
class Run:
    """One recorded run. Sensitive values are masked."""

    execution: str
    node_id: str
    semantic_hash: str
    is_stored: bool
    result: Result | None
    outcome: str
    started_us: int
    duration_us: int | None
    engines: tuple[str, ...]
    caller: Mapping[str, str]
    inputs: Mapping[str, str]
    contracts: tuple[Clause, ...]
    steps: tuple[Step, ...]
    reasons: tuple[str, ...]
    divergence: str | None
    origin: str | None
    """Id of the run that this one was made from."""
    changes: tuple[str, ...]
    waits_at: str | None
    is_sensitive: bool
    problem: str | None
    """Why the run has no steps here: its key, its definition or its entries cannot be read."""
    end_us: int
    """End of the drawn time."""

    @property
    def picture(self) -> Markup | None:
        """Return the drawing over time; None for a run without requests, whose steps have no times."""
        if not any(each.parts for each in self.steps):
            return None
        rows = [
            TimelineRow(each.title, each.sign, each.status, each.facts, self.started_us + each.after_us, each.parts)
            for each in self.steps
        ]
        return draw_timeline(rows, self.started_us, self.end_us)

    @property
    def undrawn(self) -> int:
        return max(0, len(self.steps) - MAX_ROWS)


def id_of(context: Context) -> str:
    """Return the id in the address. Raises `NotFound`."""
    return checked_id(context.path["execution"])


def checked_id(execution: str) -> str:
    """Return the id of a run. Raises `NotFound` for a file, which the commands accept as well."""
    if not _ID.fullmatch(execution):
        raise NotFound(f"{execution[:40]!a} is not an id of a run", "Choose a run on the page Executions.")
    return execution


def find_trace(context: Context) -> Trace:
    """Return the trace of the run in the address. Raises `NotFound`."""
    try:
        return context.stores.traces.find(id_of(context))
    except TraceError as problem:
        raise NotFound(str(problem), "Choose a run on the page Executions.") from None


def read_run(context: Context) -> Run:
    """Return the run in the address, or its summary where it has no trace."""
    execution = id_of(context)
    traces = context.stores.traces
    try:
        trace = traces.find(execution)
    except (TraceError, JournalError) as problem:
        if traces.journal is None:
            raise NotFound(str(problem), "Choose a run on the page Executions.") from None
        try:
            found = of_summary(traces.journal.read(execution).summary)
        except UnknownExecution:
            raise NotFound(str(problem), "Choose a run on the page Executions.") from None
        except JournalError as damage:
            raise NotFound(str(damage), "Run `vesper journal verify` to see what is damaged.") from None
        return _without_trace(found, str(problem))
    is_stored = trace.trace_id in traces.store.ids(trace.trace_id, 1)
    result = None if trace.outcome is None else Result.SUCCESS if trace.outcome.kind == "returned" else Result.FAILED
    if not is_stored and traces.journal is not None:
        result = of_summary(traces.journal.read(trace.trace_id).summary).result
    return _of_trace(trace, context.now_us, is_stored, result)


def _without_trace(found: FoundRun, problem: str) -> Run:
    return Run(
        found.execution, found.node_id, "", False, found.result, found.outcome.replace("_", " "), found.started_us,
        found.duration_us, found.engines, {}, {}, (), (), (), None, None, (), None, found.is_sensitive, problem,
        found.started_us,
    )  # fmt: skip


def _of_trace(given: Trace, now_us: int, is_stored: bool, result: Result | None) -> Run:
    trace = masked_trace(given)
    spans = spans_of(trace, now_us)
    ends = [each.end_us or now_us for each in spans]
    end_us = max([trace.started_us + (trace.duration_us or 0), *ends])
    return Run(
        trace.trace_id,
        trace.node_id,
        trace.semantic_hash,
        is_stored,
        result,
        _cut(outcome_text(trace.outcome)),
        trace.started_us,
        trace.duration_us,
        trace.engines,
        dict(trace.caller),
        _texts(trace.inputs),
        tuple(
            Clause(each.phase, each.index + 1, each.text, each.holds, _texts(each.values)) for each in trace.contracts
        ),
        tuple(_step(trace, each) for each in spans),
        tuple(explain_trace(trace).reasons),
        trace.divergence,
        None if trace.origin is None else trace.origin.trace_id,
        () if trace.origin is None else trace.origin.changes,
        trace.waits_at,
        trace.is_sensitive,
        None,
        end_us,
    )


def _step(trace: Trace, span: StepSpan) -> Step:
    step = span.step
    exchange = None if step.exchange is None else trace.exchanges[step.exchange]
    is_open = span.end_us is None
    return Step(
        step.number,
        step.path,
        step.title,
        "open" if is_open else step.status,
        "" if exchange is None else effect_text(exchange),
        "waits for an answer" if is_open else _cut(step_text(step)),
        span.begin_us - trace.started_us,
        None if exchange is None else exchange.took_us,
        max((each.number for each in span.parts if each.kind == "attempt"), default=0),
        span.parts,
        () if is_open else tuple(_cut(line) for line in step_lines(trace, step))[1:],
    )


def _texts(values: Mapping[str, object]) -> dict[str, str]:
    return {name: _cut(show(each)) for name, each in values.items()}


def _cut(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _MAX_SHOWN else shown[: _MAX_SHOWN - 1] + "…"
