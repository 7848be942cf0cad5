"""Changes to an execution before it runs again: an input, an answer, a step's parameter.

Each change is parsed and checked against the trace's own node before anything runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from vesper.compiler import Compiled
from vesper.effects.performer import EffectFailed
from vesper.effects.stored_json import stored_value
from vesper.host.plans import plans_of
from vesper.host.stub_answers import plain_step
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.trace.failure_codes import no_such_code
from vesper.trace.model import Trace
from vesper.trace.timeline import TimelineStep, step_of, timeline
from vesper.values.inputs import accept_inputs
from vesper.values.json_forms import input_of_json
from vesper.values.literal_text import value_from_text
from vesper.values.model import ValueProblem, plain, show
from vesper.values.strict_json import forms_of_json
from vesper.values.types import JSON, Enum, OptionalOf, Primitive, Type, without_null
from vesper.values.vesper_error import VesperError

_CHANGE = re.compile(r"(?P<what>[A-Za-z_][\w.]*)\s*(?:=|:|\s)\s*(?P<value>.*\S)\s*", re.DOTALL)
_ARROW = re.compile(r"(?P<before>.*\S)\s+->\s+(?P<after>.*\S)", re.DOTALL)
RESPONSE, FAILS = "response", "fails"


class ChangeRejected(VesperError):
    """A change that cannot be made; the message gives the reason. Nothing was run."""


@dataclass(frozen=True, slots=True)
class InputChange:
    name: str
    value: object
    before: str

    def __str__(self) -> str:
        return f"input.{self.name}: {self.before} -> {show(self.value)}"


@dataclass(frozen=True, slots=True)
class AnswerChange:
    path: str
    """Path of the request."""
    value: object
    failure: str | None
    before: str

    def __str__(self) -> str:
        after = show(self.value) if self.failure is None else f"fails {self.failure}"
        return f"{plain_step(self.path)}.response: {self.before} -> {after}"


@dataclass(frozen=True, slots=True)
class SourceChange:
    """A parameter of a step in the node's text. Only such a change can become a fix."""

    step: str
    keys: tuple[str, ...]
    before: str | None
    after: str

    def __str__(self) -> str:
        return f"{self.step}.{'.'.join(self.keys)}: {self.before or 'nothing'} -> {self.after}"


Change: TypeAlias = InputChange | AnswerChange | SourceChange


def read_setting(trace: Trace, compiled: Compiled, text: str) -> tuple[Change, TimelineStep | None]:
    """Parse `STEP.PARAM=VALUE` or `input.NAME=VALUE`; return the change and its step."""
    target, equals, value = text.partition("=")
    where, dot, what = target.strip().partition(".")
    if not equals or not dot or not what:
        raise ChangeRejected(f"`{text[:80]}`: write STEP.PARAM=VALUE, such as `3.timeout=60s`, or input.NAME=VALUE")
    if where == "input":
        return input_change(trace, compiled, what, value.strip()), None
    step = find_step(trace, where)
    return step_change(trace, compiled, step, what, value.strip()), step


def read_change(trace: Trace, compiled: Compiled, step: TimelineStep, text: str) -> Change:
    """Parse a change of a step: `timeout 60s`, `timeout 30s -> 60s`, `response {…}`, `fails http_402`."""
    found = _CHANGE.fullmatch(text.strip())
    if found is None:
        raise ChangeRejected(
            f"`{text.strip()[:80]}`: write a parameter and its value: "
            '`timeout 60s`, `response {"id": "x"}`, `fails timeout`'
        )
    return step_change(trace, compiled, step, found["what"], found["value"])


def find_step(trace: Trace, wanted: str) -> TimelineStep:
    """Return the step of a number or a name. Raises `ChangeRejected`."""
    steps = timeline(trace)
    found = step_of(steps, wanted)
    if found is None:
        hint = did_you_mean(wanted, [each.path for each in steps])
        told = hint or f"it has {len(steps)} steps, from 1"
        raise ChangeRejected(f"trace {trace.trace_id} has no step `{wanted[:80]}`; {told}")
    return found


def input_change(trace: Trace, compiled: Compiled, name: str, text: str) -> InputChange:
    """Parse another value of an input, as in a node; a list, map or record as JSON."""
    inputs = {each.name: each for each in compiled.node.inputs}
    if name not in inputs:
        hint = did_you_mean(name, list(inputs)) or f"its inputs are {', '.join(inputs)}"
        raise ChangeRejected(f"{compiled.node.node_id} has no input `{name[:80]}`; {hint}")
    type_ = inputs[name].type
    if arrow := _ARROW.fullmatch(text):
        text = arrow["after"]
    try:
        value = _input_value(type_, text)
    except (ValueProblem, ValueError) as problem:
        reason = problem.kind.value if isinstance(problem, ValueProblem) else str(problem)
        raise ChangeRejected(f"`{text[:80]}` is not a {type_} for the input `{name}`: {reason}") from None
    _, problems = accept_inputs([(name, type_, None)], {name: value})
    if problems:
        raise ChangeRejected(f"`{text[:80]}` is not a {type_} for the input `{name}`: {problems[0].kind.value}")
    before = show(trace.inputs[name]) if name in trace.inputs else "not given"
    return InputChange(name, value, before)


def _input_value(type_: Type, text: str) -> object:
    if text == "null" and isinstance(type_, OptionalOf):
        return None
    scalar = without_null(type_)
    if isinstance(scalar, Primitive | Enum) and scalar != JSON:
        return plain(value_from_text(scalar, text))
    return input_of_json(type_, forms_of_json(text))


def step_change(trace: Trace, compiled: Compiled, step: TimelineStep, what: str, text: str) -> Change:
    """Parse a change of a step: of its answer, or of a parameter in the node's text."""
    if what in (RESPONSE, FAILS):
        return _answer_change(trace, compiled, step, what, text)
    if "/" in step.path:
        caller = step.path.partition("/")[0]
        raise ChangeRejected(
            f"`{step.path}` is a step of a node that `{caller}` calls, not of {trace.node_id}; "
            "change its answer (`response`, `fails`), or replay a run of that node"
        )
    from vesper.replay.source_edit import EditRejected, edit_step

    expected = None
    if (arrow := _ARROW.fullmatch(text)) is not None:
        expected, text = arrow["before"], arrow["after"]
    keys = tuple(what.split("."))
    try:
        edited = edit_step(compiled.source, step.name, keys, text)
    except EditRejected as problem:
        raise ChangeRejected(str(problem)) from None
    if expected is not None and expected not in (edited.before, (edited.before or "nothing").strip("'\"")):
        raise ChangeRejected(f"`{step.name}.{what}` is {edited.before or 'not set'}, not {expected}")
    if edited.before == text:
        raise ChangeRejected(f"`{step.name}.{what}` is already {text}")
    return SourceChange(step.name, keys, edited.before, text)


def _answer_change(trace: Trace, compiled: Compiled, step: TimelineStep, what: str, text: str) -> AnswerChange:
    if step.exchange is None:
        raise ChangeRejected(f"`{step.path}` makes no request: change an input or its text instead")
    exchange = trace.exchanges[step.exchange]
    value, failure = read_answer(compiled, exchange.path, f"fails {text}" if what == FAILS else text)
    before = show(exchange.value) if exchange.failure is None else f"fails {exchange.failure}"
    return AnswerChange(exchange.path, value, failure, before)


def read_answer(compiled: Compiled, path: str, text: str) -> tuple[object, str | None]:
    """Parse an answer: JSON of the step's declared type, or `fails CODE`."""
    plan = plans_of(compiled).of(path)
    words = text.split()
    if len(words) == 2 and words[0] in ("fails", "fail"):
        return None, _check_code(plan.effect, path, words[1])
    try:
        return stored_value(plan.gives, text, "the response"), None
    except EffectFailed as failure:
        raise ChangeRejected(
            f"{failure.message}; `{plain_step(path)}` gives {plan.gives}, as JSON, or `fails CODE`"
        ) from None


def _check_code(effect: str, path: str, code: str) -> str:
    problem = no_such_code(effect, plain_step(path), code)
    if problem is not None:
        raise ChangeRejected(problem)
    return code
