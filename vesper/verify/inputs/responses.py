"""Executions with effects but without a Host: completions come from a case or a seed.

A case lists the expected requests and their answers. A generated answer depends only on the seed, the inputs, the path
and the effect, so that engines with equal requests get equal completions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeAlias, cast

from vesper.compiler import Compiled
from vesper.engines.engine import Blocked, Completion, Done, Limits, Program, Request
from vesper.engines.outcome import LimitHit
from vesper.language.check.case_effects import ExpectedRequest, includes
from vesper.language.check.cases import Case
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements
from vesper.values.generated.effects import EFFECTS
from vesper.values.inputs import accept_inputs
from vesper.values.model import Value, ValueProblem, plain, show
from vesper.values.times import SleepClock
from vesper.values.types import ArrayOf, OptionalOf, Record, Type
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.inputs.model_answers import ModelAnswers

Responder: TypeAlias = Callable[[Request], Completion]
MAX_REQUESTS = 1_000
"""Maximum requests of a run, because a loop may request endlessly."""
NOON = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
_FAILURE_SHARE = 0.2
_CASE_SHARE = 0.5
_DEPARTURE_SHARE = 0.1
_VARIED_SHARE = 0.3
_REPEATING_SHARE = 0.4
"""Share of the answers that repeat values of the inputs."""
_SAME_NAME_SHARE = 0.6
_SAME_TYPE_SHARE = 0.1
_HTTP_CODES = ("http_400", "http_402", "http_404", "http_409", "http_429", "http_500", "http_503")

_MODEL_CALL = "model_call"
_FIXED_ANSWERS = ("state_transition", "sleep")
"""Effects whose possible answers depend on the request."""


class UnexpectedRequest(Exception):
    """The node made a request that the case does not list next; the message names both."""


class TooManyRequests(Exception):
    """The run exceeded the maximum number of requests."""


def run_with(
    program: Program,
    inputs: Mapping[str, object],
    now: datetime | None,
    respond: Responder,
    limits: Limits | None = None,
) -> Done:
    """Run one observed execution to its end; the result includes its requests."""
    execution = program.start(inputs, now, limits)
    asked: list[Request] = []
    failed: list[tuple[str, str]] = []
    step = execution.advance(())
    while isinstance(step, Blocked):
        request = step.requests[0]
        asked.append(request)
        if len(asked) > MAX_REQUESTS:
            raise TooManyRequests
        completion = respond(request)
        if completion.failure is not None:
            failed.append((request.path, completion.failure))
        step = execution.advance((completion,))
    return replace(step, requests=tuple(asked), failed=tuple(failed)) if asked else step


# -- cases ----------------------------------------------------------------------------------------


def run_case(program: Program, case: Case, limits: Limits | None = None) -> Done:
    """Run a case to its end. Raises `UnexpectedRequest` for an unlisted or missing request."""
    waiting = list(case.effects)
    now = case.now if isinstance(case.now, datetime) else NOON
    clock = SleepClock(now)

    def respond(request: Request) -> Completion:
        if request.effect == "sleep" and (not waiting or _differs_in_path(request, waiting[0])):
            return complete_sleep(clock, request)
        if not waiting:
            raise UnexpectedRequest(f"requests {describe(request)}, but the case lists no more requests")
        expected = waiting.pop(0)
        problem = _differs(request, expected)
        if problem is not None:
            raise UnexpectedRequest(problem)
        if expected.fails is not None:
            return Completion(request.id, failure=expected.fails)
        if request.effect == "sleep":
            return complete_sleep(clock, request, expected.returns)
        return Completion(request.id, plain(expected.returns))

    done = run_with(program, dict(case.inputs), now, respond, limits)
    if waiting and not isinstance(done.outcome, LimitHit):
        raise UnexpectedRequest(f"ends without the listed request `{waiting[0].path}`")
    return done


def complete_sleep(clock: SleepClock, request: Request, due: object = None) -> Completion:
    """Complete a sleep with the time at which it is due, or with the given one."""
    try:
        return Completion(request.id, clock.sleep(request.arguments, due))
    except ValueProblem:
        return Completion(request.id, failure="invalid_argument")


def describe(request: Request) -> str:
    return f"`{request.path}` ({request.effect})"


def _differs(request: Request, expected: ExpectedRequest) -> str | None:
    if _differs_in_path(request, expected):
        return f"requests {describe(request)}, but the case lists `{expected.path}` next"
    for name, wanted in expected.request.items():
        found: object = request.fixed.get(name)
        if name in request.arguments:
            found = request.arguments[name]
        elif name == "key" and request.key is not None:
            found = request.key
        if not includes(plain(cast(Value, found)), plain(wanted)):
            shown = f"`{name}` is {show(found)}, but the case has {show(wanted)}"
            return f"requests {describe(request)}: {shown}"
    return None


def _differs_in_path(request: Request, expected: ExpectedRequest) -> bool:
    """Return whether a request is of another step. A path without iterations is that of the step in any of them."""
    path = request.path if "[" in expected.path else _without_iterations(request.path)
    return path.lstrip("_") != expected.path.lstrip("_")


# -- generated ------------------------------------------------------------------------------------


class GeneratedResponses:
    """Answers drawn by type, one in five a declared failure; or the answers of a case.

    In half of the runs of a node whose cases have requests, one case answers the requests that it lists, because random
    answers end a long flow early. Such an answer is sometimes varied. Some answers repeat values of the inputs, because
    flows compare a stored row with the input that selected it.
    """

    def __init__(self, compiled: Compiled) -> None:
        self._types: dict[str, Type] = {}
        self._collect(compiled, "")
        self._declared = compiled.node.declared_inputs
        self._values = InputGenerator(compiled.node, 0, seeks_boundaries=False)
        self._models = ModelAnswers(compiled.node)
        self._cases = [_answers_of(case) for case in compiled.cases if case.effects]

    def _collect(self, compiled: Compiled, prefix: str) -> None:
        callees = {each.node.node_id: each for each in compiled.callees}
        for statement in all_statements(compiled.node.body):
            if isinstance(statement, ir.Request):
                self._types[prefix + statement.name] = statement.result.type
            elif isinstance(statement, ir.CallNode):
                self._collect(callees[statement.node], f"{prefix}{statement.name}/")

    def responder(self, seed: str, inputs: Mapping[str, object] | None = None) -> Responder:
        """Return the answers of a seed, equal for every engine with equal requests.

        With the inputs of the execution, some answers repeat values of them.
        """
        case = self._case(seed)
        values = {} if inputs is None or not self._types else accept_inputs(self._declared, dict(inputs))[0]
        known = {name: (_present(type_), plain(values[name])) for name, type_, _ in self._declared if name in values}

        def respond(request: Request) -> Completion:
            completion = draw(request)
            chance = random.Random(f"{seed} {request.path} {request.id} inputs")
            has_value = completion.failure is None and request.effect not in _FIXED_ANSWERS
            if not known or not has_value or chance.random() >= _REPEATING_SHARE:
                return completion
            value = _repeat(known, chance, "", self.type_of(request.path), completion.result)
            return replace(completion, result=value)

        def draw(request: Request) -> Completion:
            chance = random.Random(f"{seed} {request.path} {request.id}")
            listed = case.get(_without_iterations(request.path).lstrip("_"), ())
            expected = listed[min(_round_of(request.path), len(listed) - 1)] if listed else None
            if expected is not None and chance.random() >= _DEPARTURE_SHARE:
                return self._answer_as_listed(request, expected, chance)
            if chance.random() < _FAILURE_SHARE:
                codes = EFFECTS[request.effect].codes()
                code = chance.choice(codes)
                return Completion(request.id, failure=chance.choice(_HTTP_CODES) if code == "http_error" else code)
            if request.effect == "state_transition":  # the Host accepts transitions only from these states
                return Completion(request.id, chance.choice(request.fixed["from"].split(",")))
            if request.effect == "sleep":  # the Host gives the time at which it is due
                return complete_sleep(SleepClock(self.now(f"{seed} {request.id}")), request)
            if request.effect == _MODEL_CALL:
                answer = self._models.draw(plain(request.arguments["request"]), chance)
                if answer is not None:
                    return Completion(request.id, answer)
            return Completion(
                request.id, self._values.draw_value(self.type_of(request.path), f"{seed} {request.path} {request.id}")
            )

        return respond

    def _case(self, seed: str) -> Mapping[str, list[ExpectedRequest]]:
        chance = random.Random(f"{seed} case")
        return chance.choice(self._cases) if self._cases and chance.random() < _CASE_SHARE else {}

    def _answer_as_listed(self, request: Request, expected: ExpectedRequest, chance: random.Random) -> Completion:
        if expected.fails is not None:
            return Completion(request.id, failure=expected.fails)
        if request.effect == "sleep":
            return complete_sleep(SleepClock(self.now(f"{chance.random()}")), request, expected.returns)
        value: object = plain(expected.returns)
        if request.effect not in _FIXED_ANSWERS and chance.random() < _VARIED_SHARE:
            type_ = self._types[_without_iterations(request.path)]
            value = self._values.vary_value(value, type_, f"{chance.random()}")
        return Completion(request.id, value)

    def type_of(self, path: str) -> Type:
        """Return the type of the completion at this path."""
        return self._types[_without_iterations(path)]

    def now(self, seed: str) -> datetime:
        chance = random.Random(f"{seed} now")
        return NOON + timedelta(microseconds=chance.randrange(-(10**15), 10**15))


def _present(type_: Type) -> Type:
    return type_.inner if isinstance(type_, OptionalOf) else type_


def _repeat(
    known: Mapping[str, tuple[Type, object]], chance: random.Random, name: str, type_: Type, value: object
) -> object:
    """Return a value with some parts replaced by inputs of the same type, most often of the same name."""
    match type_, value:
        case _, None:
            return None
        case OptionalOf(inner), _:
            return _repeat(known, chance, name, inner, value)
        case ArrayOf(element), list():
            return [_repeat(known, chance, name, element, each) for each in value]
        case Record(fields), dict():
            return {
                field: _repeat(known, chance, field, each, value[field]) for field, each in fields if field in value
            }
        case _:
            alike = [each for each, (its_type, found) in known.items() if its_type == type_ and found is not None]
            if name in alike and chance.random() < _SAME_NAME_SHARE:
                return known[name][1]
            return known[chance.choice(alike)][1] if alike and chance.random() < _SAME_TYPE_SHARE else value


def _answers_of(case: Case) -> dict[str, list[ExpectedRequest]]:
    """Return the answers of a case by step, in a loop one for each round. The last one applies to all later rounds."""
    found: dict[str, list[ExpectedRequest]] = {}
    for expected in case.effects:
        found.setdefault(_without_iterations(expected.path).lstrip("_"), []).append(expected)
    return found


def _round_of(path: str) -> int:
    """Return the round of the innermost loop around a request, from 0."""
    found = path.rpartition("[")[2].partition("]")[0]
    return int(found) if "[" in path else 0


def _without_iterations(path: str) -> str:
    return "/".join(part.partition("[")[0] for part in path.split("/"))
