"""Execution of a trace again: unchanged, or with changes.

A replay feeds the recorded completions to the node and performs nothing; a request that differs from the record is an
error. A changed execution reuses completions of equal requests. Other requests go to the prompt, a file, or, after
consent, to the Host.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import TypeAlias

from vesper.compiler import Compiled, compile_source
from vesper.compiler.callees import Collection, Neighbours, interface_of
from vesper.engines.engine import EngineUnavailable, Limits, Request
from vesper.engines.outcome import Denied, LimitHit
from vesper.engines.registry import ENGINES, REFERENCE
from vesper.host.outcomes import outcome_record
from vesper.host.stub_answers import plain_step
from vesper.journal.execution_id import trace_id
from vesper.journal.typed_json import encode
from vesper.language.check.callees import Interface, NotCallable
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.render.full import render_full
from vesper.language.diagnostics.source import SourceFile
from vesper.replay.changes import AnswerChange, Change, ChangeRejected, InputChange, SourceChange
from vesper.replay.source_edit import EditRejected, edit_step
from vesper.trace.model import Exchange, Origin, Trace
from vesper.trace.programs import compiled_of, program_of
from vesper.trace.recorder import Unanswered, exchange_of, record_trace
from vesper.trace.timeline import TimelineStep, timeline
from vesper.values.node_id import split_node_id
from vesper.values.vesper_error import VesperError

AnswerSource: TypeAlias = Callable[[Request], Exchange | None]
"""Returns the exchange of a request; None if this source has none."""


class UnrecordedRequest(VesperError):
    """A request was not recorded, and no source has an answer. Nothing was sent."""


def engine_of(trace: Trace, wanted: str | None = None) -> str:
    """Return the wanted engine, or the first available one that ran the trace."""
    chosen = wanted or next((each for each in trace.engines if each in ENGINES), REFERENCE)
    if chosen not in ENGINES:
        raise EngineUnavailable(f"there is no engine `{chosen}`; the engines are {', '.join(ENGINES)}")
    return chosen


# -- unchanged ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReplayResult:
    trace: Trace
    """Trace of the replay."""
    difference: str | None
    """First difference from the recorded trace; None without one."""


def replay(trace: Trace, engine: str | None = None, compiled: Compiled | None = None) -> ReplayResult:
    """Run the node again on its recorded completions; performs nothing. Raises `UnrecordedRequest`.

    `compiled` is another definition of the node to run on the same records.
    """
    node = compiled or compiled_of(trace.definition)
    chosen = engine_of(trace, engine)
    has_stopped = trace.outcome is None or _is_of_host(trace)

    def answer(request: Request, before: Sequence[Exchange]) -> Exchange:
        if len(before) >= len(trace.exchanges):
            if has_stopped:  # the recorded run was stopped here too
                raise Unanswered
            raise UnrecordedRequest(f"`{plain_step(request.path)}` requests {request.effect}, which was not recorded")
        recorded = trace.exchanges[len(before)]
        told = _describe_mismatch(request, recorded)
        if told is not None:
            raise UnrecordedRequest(told)
        return recorded

    again = record_trace(
        node, program_of(node, chosen), chosen, trace.trace_id, trace.inputs, trace.now, answer, origin=trace.origin
    )
    if again.outcome is None and has_stopped:
        again = replace(again, outcome=trace.outcome)
    return ReplayResult(again, _difference(trace, again, is_same_node=compiled is None))


def _is_of_host(trace: Trace) -> bool:
    """Return whether the Host ended the execution, rather than the node."""
    return isinstance(trace.outcome, Denied) or (
        isinstance(trace.outcome, LimitHit) and trace.outcome.limit not in ("fuel", "memory", "time")
    )


def _describe_mismatch(request: Request, recorded: Exchange) -> str | None:
    """Return why a request differs from the recorded one; None if they are equal."""
    where = plain_step(request.path)
    if request.path != recorded.path:
        return f"`{where}` requests {request.effect}, but the next recorded request is `{plain_step(recorded.path)}`"
    return (
        None if is_same_request(request, recorded) else f"`{where}` makes {_describe_other_request(request, recorded)}"
    )


def _describe_other_request(request: Request, recorded: Exchange) -> str:
    names = [name for name in request.arguments if _differs(request.arguments, recorded.arguments, name)]
    told = f" (`{names[0]}` differs)" if names else ""
    return f"another request than recorded{told}"


def is_same_request(request: Request, recorded: Exchange) -> bool:
    return (
        (request.path, request.effect, request.effect_class, request.key)
        == (recorded.path, recorded.effect, recorded.effect_class, recorded.key)
        and dict(request.fixed) == dict(recorded.fixed)
        and encode(dict(request.arguments)) == encode(dict(recorded.arguments))
    )


def _differs(left: Mapping[str, object], right: Mapping[str, object], name: str) -> bool:
    return name not in right or encode(left[name]) != encode(right[name])


def _difference(trace: Trace, again: Trace, *, is_same_node: bool) -> str | None:
    if len(again.exchanges) < len(trace.exchanges):
        left = plain_step(trace.exchanges[len(again.exchanges)].path)
        return f"the node ended without the recorded request `{left}`"
    if is_same_node:
        for one, other in zip_longest(trace.marks, again.marks):
            # Compared as bytes: a trace does not preserve the order of a record's fields.
            if one is None or other is None or encode([one.index, one.value]) != encode([other.index, other.value]):
                known = one or other
                assert known is not None
                return f"a value differs: {known.step or f'expression {known.index}'}"
    if trace.outcome is None or again.outcome is None or _is_of_host(trace):
        return None
    is_same = encode(outcome_record(trace.outcome)) == encode(outcome_record(again.outcome))
    return None if is_same else "the outcomes differ"


# -- changed --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChangedExecution:
    """Parameters of a changed execution."""

    trace: Trace
    compiled: Compiled
    inputs: Mapping[str, object]
    changes: tuple[Change, ...]
    from_step: TimelineStep | None
    """First step to execute again; None means the start."""
    answers: Mapping[str, AnswerChange] = field(default_factory=dict)
    voided: frozenset[str] = frozenset()
    """Paths whose recorded completions are void, because the step's parameters changed."""
    first_exchange: int = 0
    """Index of the first exchange that is not copied from the trace."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """Index of each recorded exchange, by path."""

    @property
    def has_fix(self) -> bool:
        return any(isinstance(each, SourceChange) for each in self.changes)

    def origin(self) -> Origin:
        number = None if self.from_step is None else self.from_step.number
        return Origin(self.trace.trace_id, number, tuple(str(each) for each in self.changes))

    def known(self, request: Request) -> Exchange | None:
        """Return the recorded or changed exchange of a request; None if there is none."""
        given = self.answers.get(request.path)
        if given is not None:
            return exchange_of(request, given.value, given.failure, "changed")
        number = self.numbers.get(request.path)
        if number is None:
            return None
        recorded = self.trace.exchanges[number]
        if request.path not in self.voided and is_same_request(request, recorded):
            return recorded
        if number < self.first_exchange and not self.changes:
            raise UnrecordedRequest(_describe_mismatch(request, recorded) or f"`{recorded.path}` differs")
        return None

    def why_unknown(self, request: Request) -> str:
        """Return why the record has no answer for a request."""
        number = self.numbers.get(request.path)
        if number is None:
            return "it was not recorded"
        if request.path in self.voided:
            return "its own parameters were changed"
        return f"it makes {_describe_other_request(request, self.trace.exchanges[number])}"

    def is_before(self, request: Request) -> bool:
        """Return whether a request precedes the step from which the execution is changed."""
        number = self.numbers.get(request.path)
        return number is not None and number < self.first_exchange and request.path not in self.voided


def changed(trace: Trace, changes: Sequence[Change], from_step: TimelineStep | None = None) -> ChangedExecution:
    """Prepare an execution with changes. Raises `ChangeRejected` with the diagnostics of an invalid text."""
    compiled = compiled_of(trace.definition)
    text = compiled.source.text
    steps = timeline(trace)
    voided: set[str] = set()
    inputs = dict(trace.inputs)
    answers: dict[str, AnswerChange] = {}
    for each in changes:
        match each:
            case InputChange(name, value):
                inputs[name] = value
            case AnswerChange(path):
                answers[path] = each
            case SourceChange(step, keys, _, after):
                try:
                    text = edit_step(SourceFile(compiled.source.path, text), step, keys, after).text
                except EditRejected as problem:
                    raise ChangeRejected(str(problem)) from None
                voided |= {
                    trace.exchanges[one.exchange].path
                    for one in steps
                    if one.exchange is not None and one.path.partition("[")[0] == step
                }
    if text != compiled.source.text:
        compiled = recompile(compiled, text)
    first = 0 if from_step is None else _first_exchange(steps, from_step)
    numbers = {each.path: number for number, each in reversed([*enumerate(trace.exchanges)])}  # the first of its path
    return ChangedExecution(
        trace, compiled, inputs, tuple(changes), from_step, answers, frozenset(voided), first, numbers
    )


def _first_exchange(steps: Sequence[TimelineStep], from_step: TimelineStep) -> int:
    after = [each.exchange for each in steps[from_step.number - 1 :] if each.exchange is not None]
    before = [each.exchange for each in steps[: from_step.number - 1] if each.exchange is not None]
    return after[0] if after else (before[-1] + 1 if before else 0)


def rerun(
    changed: ChangedExecution,
    engine: str,
    asks: Sequence[AnswerSource],
    takes_records: bool = True,
    limits: Limits | None = None,
    most_marks: int | None = None,
) -> Trace:
    """Run a changed execution.

    Requests that are not known go to each of `asks` in turn; `UnrecordedRequest` is raised if none has an answer.
    From the chosen step on, a request equal to a recorded one takes the recorded completion unless `asks` gives
    another; without `takes_records` an answer is required.
    """
    node = changed.compiled

    def answer(request: Request, _: Sequence[Exchange]) -> Exchange:
        known = changed.known(request)
        if known is not None and (known.origin == "changed" or changed.is_before(request)):
            return known
        for ask in asks:
            found = ask(request)
            if found is not None:
                return found
        if known is not None and takes_records:
            return known
        raise UnrecordedRequest(
            f"`{plain_step(request.path)}` requests {request.effect} and has no answer: "
            f"{changed.why_unknown(request)}. Give a response at the prompt or with --responses FILE, or let it be "
            "performed with --live"
        )

    name = trace_id(time.time_ns())
    program = program_of(node, engine)
    return record_trace(
        node, program, engine, name, changed.inputs, changed.trace.now, answer, limits, changed.origin(), most_marks
    )


class _CarriedNodes(Neighbours):
    """The nodes that a trace carries, which a changed text calls independently of their files."""

    def __init__(self, compiled: Compiled) -> None:
        super().__init__(Collection(Path("nodes")), (compiled.node.node_id,))
        self._carried = {each.node.node_id: each for each in compiled.callees}

    def find(self, wanted: str) -> Interface | NotCallable:
        for node_id, compiled in self._carried.items():
            parts = split_node_id(node_id)
            if wanted == node_id or (parts is not None and parts[0] == wanted):
                self.called[node_id] = compiled
                return interface_of(compiled)
        return NotCallable(Code.UNKNOWN_NODE, {"node": wanted}, "the trace carries no such node")


def recompile(compiled: Compiled, text: str) -> Compiled:
    """Compile the node with another text. Raises `ChangeRejected`."""
    source = SourceFile(compiled.source.path, text)
    found, bag = compile_source(source, _CarriedNodes(compiled))
    if found is None:
        told = "\n\n".join(render_full(source, each) for each in bag.sorted())
        raise ChangeRejected(f"with this change, {compiled.node.node_id} is not valid\n\n{told}")
    return found
