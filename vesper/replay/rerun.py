"""An execution run again from its trace: just as it was, or changed.

Replaying feeds the node what it was answered and performs nothing; a request that is not the recorded one is an error.
A changed execution takes the recorded answers of requests that are the same, and asks somebody for the others: whoever
replays, a file, or, after consent, the world.
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
from vesper.engines.engine import EngineUnavailable, Request
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
from vesper.replay.changes import AnswerChange, Change, InputChange, NotChanged, SourceChange
from vesper.replay.source_edit import NotEdited, edit_step
from vesper.trace.model import Exchange, Origin, Trace
from vesper.trace.programs import compiled_of, program_of
from vesper.trace.recorder import Unanswered, exchange_of, traced_run
from vesper.trace.timeline import TimelineStep, timeline
from vesper.values.node_id import split_node_id
from vesper.values.vesper_error import VesperError

Ask: TypeAlias = Callable[[Request], Exchange | None]
"""Somebody who may know what a request is answered with; None where they do not."""


class Unrecorded(VesperError):
    """The node asks for something that was not recorded, and nobody says what it is answered. Nothing was sent."""


def engine_of(trace: Trace, wanted: str | None = None) -> str:
    """The engine to replay on: the one wanted, or the first that ran it and is here."""
    chosen = wanted or next((each for each in trace.engines if each in ENGINES), REFERENCE)
    if chosen not in ENGINES:
        raise EngineUnavailable(f"there is no engine `{chosen}` here; the engines are {', '.join(ENGINES)}")
    return chosen


# -- as it was ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Replayed:
    trace: Trace
    """What it did this time."""
    difference: str | None
    """Where that is not what the trace says; None where all is the same."""


def replay(trace: Trace, engine: str | None = None, compiled: Compiled | None = None) -> Replayed:
    """Runs the node once more on what it was answered. Raises `Unrecorded`; performs nothing. `compiled` is another
    definition of the node, to be tried on the same records."""
    node = compiled or compiled_of(trace.definition)
    chosen = engine_of(trace, engine)
    has_stopped = trace.outcome is None or _is_of_host(trace)

    def answer(request: Request, before: Sequence[Exchange]) -> Exchange:
        if len(before) >= len(trace.exchanges):
            if has_stopped:  # it was stopped here the first time as well
                raise Unanswered
            raise Unrecorded(f"`{plain_step(request.path)}` asks for {request.effect}, and no more was recorded")
        recorded = trace.exchanges[len(before)]
        told = _other(request, recorded)
        if told is not None:
            raise Unrecorded(told)
        return recorded

    again = traced_run(
        node, program_of(node, chosen), chosen, trace.trace_id, trace.inputs, trace.now, answer, origin=trace.origin
    )
    if again.outcome is None and has_stopped:
        again = replace(again, outcome=trace.outcome)
    return Replayed(again, _difference(trace, again, is_same_node=compiled is None))


def _is_of_host(trace: Trace) -> bool:
    """True where the Host ended the execution, and not the node."""
    return isinstance(trace.outcome, Denied) or (
        isinstance(trace.outcome, LimitHit) and trace.outcome.limit not in ("fuel", "time")
    )


def _other(request: Request, recorded: Exchange) -> str | None:
    """Why a request is not the recorded one; None where it is."""
    where = plain_step(request.path)
    if request.path != recorded.path:
        return f"`{where}` asks for {request.effect}, and what was recorded next is `{plain_step(recorded.path)}`"
    return None if is_same_request(request, recorded) else f"`{where}` asks for {_something_else(request, recorded)}"


def _something_else(request: Request, recorded: Exchange) -> str:
    names = [name for name in request.arguments if _differs(request.arguments, recorded.arguments, name)]
    told = f" (`{names[0]}` is another)" if names else ""
    return f"something else than was recorded{told}"


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
        return f"the node ended, and never asked for `{left}`"
    if is_same_node:
        for one, other in zip_longest(trace.marks, again.marks):
            # By their bytes: a trace does not keep the order of the names of a record.
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
class Changed:
    """What a changed execution is run with."""

    trace: Trace
    compiled: Compiled
    inputs: Mapping[str, object]
    changes: tuple[Change, ...]
    from_step: TimelineStep | None
    """None is the beginning."""
    answers: Mapping[str, AnswerChange] = field(default_factory=dict)
    anew: frozenset[str] = frozenset()
    """Paths whose recorded answers do not count any more: of steps whose parameters were changed."""
    first_exchange: int = 0
    """The first that is not simply taken from the trace."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """The place of each recorded exchange, by its path."""

    @property
    def has_fix(self) -> bool:
        return any(isinstance(each, SourceChange) for each in self.changes)

    def origin(self) -> Origin:
        number = None if self.from_step is None else self.from_step.number
        return Origin(self.trace.trace_id, number, tuple(str(each) for each in self.changes))

    def known(self, request: Request) -> Exchange | None:
        """What is known to come of a request without asking anybody."""
        given = self.answers.get(request.path)
        if given is not None:
            return exchange_of(request, given.value, given.failure, "changed")
        number = self.numbers.get(request.path)
        if number is None:
            return None
        recorded = self.trace.exchanges[number]
        if request.path not in self.anew and is_same_request(request, recorded):
            return recorded
        if number < self.first_exchange and not self.changes:
            raise Unrecorded(_other(request, recorded) or f"`{recorded.path}` differs")
        return None

    def why_unknown(self, request: Request) -> str:
        """Why what was recorded is no answer to a request."""
        number = self.numbers.get(request.path)
        if number is None:
            return "it was not recorded"
        if request.path in self.anew:
            return "its own parameters were changed"
        return f"it asks for {_something_else(request, self.trace.exchanges[number])}"

    def is_before(self, request: Request) -> bool:
        """True for what comes before the step that it is run from."""
        number = self.numbers.get(request.path)
        return number is not None and number < self.first_exchange and request.path not in self.anew


def changed(trace: Trace, changes: Sequence[Change], from_step: TimelineStep | None = None) -> Changed:
    """Prepares an execution with these changes. Raises `NotChanged` with the diagnostics of a text that is wrong."""
    compiled = compiled_of(trace.definition)
    text = compiled.source.text
    steps = timeline(trace)
    anew: set[str] = set()
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
                except NotEdited as problem:
                    raise NotChanged(str(problem)) from None
                anew |= {
                    trace.exchanges[one.exchange].path
                    for one in steps
                    if one.exchange is not None and one.path.partition("[")[0] == step
                }
    if text != compiled.source.text:
        compiled = recompiled(compiled, text)
    first = 0 if from_step is None else _first_exchange(steps, from_step)
    numbers = {each.path: number for number, each in reversed([*enumerate(trace.exchanges)])}  # the first of its path
    return Changed(trace, compiled, inputs, tuple(changes), from_step, answers, frozenset(anew), first, numbers)


def _first_exchange(steps: Sequence[TimelineStep], from_step: TimelineStep) -> int:
    after = [each.exchange for each in steps[from_step.number - 1 :] if each.exchange is not None]
    before = [each.exchange for each in steps[: from_step.number - 1] if each.exchange is not None]
    return after[0] if after else (before[-1] + 1 if before else 0)


def rerun(changed: Changed, engine: str, asks: Sequence[Ask], takes_records: bool = True) -> Trace:
    """Runs it. What is not known is asked of each of `asks` in turn. Raises `Unrecorded` where nobody knows.

    A request from the chosen step on that is the same as a recorded one takes the recorded answer, unless somebody
    gives another; without `takes_records` it must be given."""
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
        raise Unrecorded(
            f"`{plain_step(request.path)}` asks for {request.effect}, and nobody says what it is answered: "
            f"{changed.why_unknown(request)}. Give a response at the prompt, with --responses FILE, or let it be "
            "performed with --live"
        )

    name = trace_id(time.time_ns())
    program = program_of(node, engine)
    return traced_run(node, program, engine, name, changed.inputs, changed.trace.now, answer, origin=changed.origin())


class _Carried(Neighbours):
    """The nodes that a trace carries: a changed text calls those, whatever has become of their files."""

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


def recompiled(compiled: Compiled, text: str) -> Compiled:
    """The node with another text. Raises `NotChanged`."""
    source = SourceFile(compiled.source.path, text)
    found, bag = compile_source(source, _Carried(compiled))
    if found is None:
        told = "\n\n".join(render_full(source, each) for each in bag.sorted())
        raise NotChanged(f"with this change {compiled.node.node_id} is no node any more\n\n{told}")
    return found
