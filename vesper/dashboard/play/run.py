"""Runs of the playground: the text on both engines, observed. Effects are answered and never performed."""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from vesper.api.explanation.derive import explain_trace
from vesper.api.explanation.model import MatchedRow
from vesper.api.input_conversion import inputs_of_json
from vesper.api.json_calls import fields_text, outcome_json
from vesper.compiler import Compiled
from vesper.dashboard.play.taken_flow import draw_taken
from vesper.dashboard.problem import BadRequest, Refused, TooMany
from vesper.engines.engine import Limits, Program, Request, limits_of_node
from vesper.engines.outcome import Failed, LimitHit, Outcome
from vesper.engines.registry import PAIR
from vesper.host.masking import Masks
from vesper.host.stub_answers import plain_step
from vesper.language.check.case_effects import ExpectedRequest
from vesper.language.ir.nodes import Node
from vesper.trace.difference import MISSING, parted, step_text
from vesper.trace.masking import masked_trace
from vesper.trace.model import Exchange, Trace
from vesper.trace.places import steps_by_expression
from vesper.trace.recorder import Unanswered, exchange_of, record_trace
from vesper.trace.timeline import timeline
from vesper.values.generated.errors import ErrorCode
from vesper.values.json_forms import input_of_json
from vesper.values.literal_text import value_from_text
from vesper.values.model import ValueProblem, accept, plain, printable, show
from vesper.values.types import TIMESTAMP, Type
from vesper.verify.inputs.responses import GeneratedResponses

MAX_SECONDS = 5.0
"""Time that one engine may compute."""
MAX_RUNS_AT_ONCE = 2
MAX_ROWS = 500
"""Steps, and requests, that an answer lists."""
MAX_REQUESTS = 1_000
MAX_MARKS = 5_000
"""Values of steps and clauses that are compared and shown; the outcome is always compared."""
_TRACED_SECONDS = 0.05
"""Time of the direct engine up to which a run is traced: a trace of a longer run would not fit into memory."""
_MAX_VALUE_CHARACTERS = 2_000
_TIMED_CALLS = 200
_TIMED_SECONDS = 0.2
ENGINE_LABELS = {"python": "python", "interp": "direct"}
_running = threading.BoundedSemaphore(MAX_RUNS_AT_ONCE)


@dataclass(frozen=True, slots=True)
class EngineResult:
    """The end of a run on one engine."""

    engine: str
    outcome: Mapping[str, Any] | None
    """The outcome as `vesper serve` sends it; None where the run waits for an answer."""
    median_us: float | None
    """Median time of a call; None for a node with effects."""
    calls: int
    """Number of timed calls."""


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step with its value on each engine."""

    path: str
    line: int | None
    status: str
    values: tuple[str, ...]
    """One for each engine, in their order."""


@dataclass(frozen=True, slots=True)
class ClauseRow:
    """One evaluated clause of the contracts."""

    phase: str
    text: str
    line: int
    holds: bool
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RequestRow:
    """A request with its answer; without one, the run waits for it."""

    path: str
    effect: str
    arguments: Mapping[str, str]
    answer: str
    origin: str
    """`typed`, or the name of the case that gave the answer."""
    type: str
    json: str | None = None
    """The answer as JSON, for a form that changes it; None for a failure, and where values are masked."""


@dataclass(frozen=True, slots=True)
class RunResult:
    node: str
    has_effects: bool
    engines: tuple[EngineResult, ...]
    difference: str | None
    """Where the engines diverge; None if they agree or cannot be compared."""
    is_compared: bool
    steps: tuple[StepRow, ...]
    contracts: tuple[ClauseRow, ...]
    requests: tuple[RequestRow, ...]
    waits: RequestRow | None
    """The request without an answer."""
    omitted: int
    """Steps and requests beyond the maximum."""
    is_traced: bool = True
    """False for a run that is too long for values of its steps."""
    flow: str | None = None
    """The flow with the path taken, as SVG; None where the inputs were refused."""
    rows: tuple[MatchedRow, ...] = ()
    """Rows of decision tables that matched."""


def run_text(
    compiled: Compiled,
    inputs: object,
    answers: Mapping[str, object],
    case: str | None = None,
    engines: Sequence[str] = tuple(ENGINE_LABELS.values()),
    now: str | None = None,
) -> RunResult:
    """Run a node on the engines with these inputs. Raises `TooMany`, and `BadRequest` for an answer of a wrong form.

    `answers` are `{"returns": JSON}` or `{"fails": code}` by the path of the request; others come from the cases.
    """
    with run_slot():
        return _Run(compiled, inputs, answers, case, engines, now).result()


def trace_text(
    compiled: Compiled,
    inputs: object,
    answers: Mapping[str, object],
    case: str | None = None,
    now: str | None = None,
) -> Trace:
    """Return the execution on the reference. Raises `Refused` where the engines do not end with one outcome."""
    with run_slot():
        return _Run(compiled, inputs, answers, case, tuple(ENGINE_LABELS.values()), now).agreed_trace()


@contextmanager
def run_slot() -> Iterator[None]:
    """Hold one of the slots for runs; wait until one is free. Raises `TooMany`."""
    if not _running.acquire(timeout=MAX_SECONDS):
        raise TooMany(f"{MAX_RUNS_AT_ONCE} runs are under way", "Wait for them, or stop the other pages.")
    try:
        yield
    finally:
        _running.release()


class _Run:
    def __init__(
        self,
        compiled: Compiled,
        inputs: object,
        answers: Mapping[str, object],
        case: str | None,
        engines: Sequence[str],
        now: str | None,
    ) -> None:
        self._compiled = compiled
        self._plain = inputs_of_json(compiled.node.inputs, json.dumps(inputs))
        self._plain.source = None  # the form has no lines that a message could name
        self._answers = _Answers(compiled, answers, case)
        self._now = _start(now) or self._answers.now or datetime.now(UTC)
        limits = Limits(seconds=MAX_SECONDS)
        self._limits = limits_of_node(limits, compiled.node.grants.policy) or limits
        self._programs = {name: PAIR[name].load(compiled) for name in PAIR if ENGINE_LABELS[name] in engines}

    def result(self) -> RunResult:
        node = self._compiled.node
        has_effects = not node.is_pure()
        if self._plain.refused:
            refusal = Failed(ErrorCode.BAD_INPUT, None, self._plain.refused)
            refused = tuple(self._engine(name, refusal, None, 0) for name in self._programs)
            return RunResult(node.node_id, has_effects, refused, None, True, (), (), (), None, 0)
        is_traced = self._is_short()
        traces = [self._trace(name, program, MAX_MARKS * is_traced) for name, program in self._programs.items()]
        ended = [each.outcome for each in traces if each.outcome is not None]
        is_timed = not has_effects and not any(isinstance(each, LimitHit) or _is_refusal(each) for each in ended)
        results = []
        for (name, program), trace in zip(self._programs.items(), traces, strict=True):
            median_us, calls = self._median_us(program) if is_timed else (None, 0)
            results.append(self._engine(name, trace.outcome, median_us, calls))
        is_compared = len(ended) == 2 and not any(isinstance(each, LimitHit) and not each.is_counted for each in ended)
        shown = [masked_trace(each) for each in traces]
        steps = self._steps(shown)
        requests = tuple(self._request(each, traces[0].is_sensitive) for each in shown[0].exchanges)
        return RunResult(
            node.node_id,
            has_effects,
            tuple(results),
            parted(traces[0], traces[1]) if is_compared else None,
            is_compared,
            steps[:MAX_ROWS],
            _clauses(node, shown[0]),
            requests[:MAX_ROWS],
            self._answers.waiting,
            max(0, len(steps) - MAX_ROWS) + max(0, len(requests) - MAX_ROWS),
            is_traced,
            None if any(map(_is_refusal, ended)) else draw_taken(self._compiled, traces[0], self._limits),
            explain_trace(shown[0]).rows,
        )

    def agreed_trace(self) -> Trace:
        """Return the trace of the reference. Raises `Refused` where there is no outcome to expect."""
        if not self._plain.refused:
            first, second = (self._trace(name, program) for name, program in self._programs.items())
            is_over = first.outcome is not None and second.outcome is not None and not _is_refusal(first.outcome)
            if is_over and parted(first, second) is None:
                return first
        raise Refused("this run has no outcome to expect", "Run it until both engines end with the same outcome.")

    def _is_short(self) -> bool:
        """Return whether the run is short enough for a trace, from an untraced run on the fastest engine."""
        name, program = list(self._programs.items())[-1]
        start = time.perf_counter()
        self._trace(name, program, 0)
        return time.perf_counter() - start <= _TRACED_SECONDS

    def _trace(self, engine: str, program: Program, most_marks: int = MAX_MARKS) -> Trace:
        self._answers.waiting = None
        return record_trace(
            self._compiled,
            program,
            engine,
            "",
            self._plain.inputs,
            self._now,
            self._answers.respond,
            self._limits,
            most_marks=most_marks,
        )

    def _engine(self, name: str, outcome: Outcome | None, median_us: float | None, calls: int) -> EngineResult:
        if isinstance(outcome, Failed):
            problems = tuple(map(self._plain.caller_problem, outcome.problems))
            outcome = Failed(outcome.code, outcome.at, problems, outcome.why)
        form = None if outcome is None else json.loads(outcome_json(self._compiled, outcome, self._plain))
        return EngineResult(ENGINE_LABELS[name], form, median_us, calls)

    def _median_us(self, program: Program) -> tuple[float, int]:
        """Return the median time of repeated calls, and their number."""
        samples: list[float] = []
        deadline = time.perf_counter() + _TIMED_SECONDS
        while len(samples) < _TIMED_CALLS and (not samples or time.perf_counter() < deadline):
            start = time.perf_counter()
            program.call(self._plain.inputs, self._now, self._limits)
            samples.append(time.perf_counter() - start)
        return statistics.median(samples) * 1e6, len(samples)

    def _steps(self, traces: Sequence[Trace]) -> tuple[StepRow, ...]:
        """Pair the steps of the engines by position: engines that agree have equal steps."""
        lines = _step_lines(self._compiled.node)
        columns = [timeline(each) for each in traces]
        rows = []
        for position in range(max(map(len, columns))):
            steps = [each[position] if position < len(each) else None for each in columns]
            known = next(each for each in steps if each is not None)
            values = tuple(MISSING if each is None else _short(step_text(each)) for each in steps)
            rows.append(StepRow(known.title, lines.get(known.name), known.status, values))
        return tuple(rows)

    def _request(self, exchange: Exchange, is_masked: bool) -> RequestRow:
        type_ = self._answers.type_of(exchange.path)
        if exchange.failure is not None:
            return _request_row(exchange, f"fails: {exchange.failure}", exchange.origin, type_)
        row = _request_row(exchange, _short(show(exchange.value)), exchange.origin, type_)
        text = None if is_masked else fields_text({"answer": type_}, {"answer": exchange.value})
        return replace(row, json=text and text.removeprefix('{"answer":').removesuffix("}"))


class _Answers:
    """Answers to the requests of one run: typed ones first, then those of a case."""

    def __init__(self, compiled: Compiled, typed: Mapping[str, object], case: str | None) -> None:
        self._typed = typed
        self._masks = Masks(compiled)
        self.type_of: Callable[[str], Type] = GeneratedResponses(compiled).type_of
        self.waiting: RequestRow | None = None
        self._listed: dict[str, tuple[ExpectedRequest, str]] = {}
        chosen = [each for each in compiled.cases if case is None or each.name == case]
        moments = [each.now for each in chosen if isinstance(each.now, datetime)]
        self.now = moments[0] if case is not None and moments else None
        for each in chosen:
            for expected in each.effects:
                path = plain_step(expected.path)
                self._listed.setdefault(path, (expected, each.name))
                self._listed.setdefault(_without_rounds(path), (expected, each.name))

    def respond(self, request: Request, before: Sequence[Exchange]) -> Exchange:
        """Return the answer of a request. Raises `Unanswered` where there is none."""
        path = plain_step(request.path)
        keys = (path, _without_rounds(path))
        typed = next((self._typed[each] for each in keys if each in self._typed), None)
        listed = next((self._listed[each] for each in keys if each in self._listed), None)
        if typed is not None:
            return self._typed_answer(request, typed)
        if listed is None or len(before) >= MAX_REQUESTS:
            arguments = self._masks.request(request.path).mask_arguments(request.arguments)
            waiting = replace(exchange_of(request), arguments=arguments)
            self.waiting = _request_row(waiting, "", "", self.type_of(request.path))
            raise Unanswered
        expected, name = listed
        value = None if expected.fails is not None else plain(expected.returns)
        return exchange_of(request, value, expected.fails, f"case {name}")

    def _typed_answer(self, request: Request, answer: object) -> Exchange:
        path = printable(plain_step(request.path))
        match answer:
            case {"fails": str(code)}:
                return exchange_of(request, None, code, "typed")
            case {"returns": form}:
                type_ = self.type_of(request.path)
                try:
                    return exchange_of(request, plain(accept(type_, input_of_json(type_, form))), None, "typed")
                except ValueProblem as problem:
                    raise BadRequest(
                        f"the answer to `{path}` is not of its type: {problem.kind.value}",
                        f"Type JSON of the type {type_}.",
                    ) from None
        raise BadRequest(f"the answer to `{path}` has no form", 'Send {"returns": JSON} or {"fails": code}.')


def _request_row(exchange: Exchange, answer: str, origin: str, type_: Type) -> RequestRow:
    arguments = {**exchange.fixed, **{name: show(value) for name, value in exchange.arguments.items()}}
    shown = {name: _short(value) for name, value in arguments.items()}
    return RequestRow(plain_step(exchange.path), exchange.effect, shown, answer, origin, str(type_))


def _clauses(node: Node, trace: Trace) -> tuple[ClauseRow, ...]:
    phases = dict(node.phases())
    return tuple(
        ClauseRow(
            each.phase,
            each.text,
            phases[each.phase][each.index].holds.place.line,
            each.holds,
            {name: _short(show(value)) for name, value in each.values.items()},
        )
        for each in trace.contracts[:MAX_ROWS]
    )


def _step_lines(node: Node) -> dict[str, int]:
    """Return the first line of each step."""
    lines: dict[str, int] = {}
    expressions = node.expressions()
    for index, step in steps_by_expression(node).items():
        line = expressions[index].place.line
        lines[step] = min(line, lines.get(step, line))
    return lines


def _is_refusal(outcome: Outcome) -> bool:
    return isinstance(outcome, Failed) and outcome.at is None


def _start(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        value = value_from_text(TIMESTAMP, text)
    except ValueProblem as problem:
        raise BadRequest(f"`now` is {problem.kind.value}", "Write 2026-11-15T12:00:00Z.") from None
    assert isinstance(value, datetime)
    return value


def _without_rounds(path: str) -> str:
    return "/".join(part.partition("[")[0] for part in path.split("/"))


def _short(text: str) -> str:
    return text if len(text) <= _MAX_VALUE_CHARACTERS else f"{text[:_MAX_VALUE_CHARACTERS]}…"
