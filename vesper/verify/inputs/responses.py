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
from vesper.language.check.case_effects import ExpectedRequest
from vesper.language.check.cases import Case
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements
from vesper.values.generated.effects import EFFECTS
from vesper.values.inputs import accept_inputs
from vesper.values.model import Value, plain, same, show
from vesper.values.types import ArrayOf, OptionalOf, Record, Type
from vesper.verify.inputs.generator import InputGenerator

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

    def respond(request: Request) -> Completion:
        if not waiting:
            raise UnexpectedRequest(f"requests {describe(request)}, but the case lists no more requests")
        expected = waiting.pop(0)
        problem = _differs(request, expected)
        if problem is not None:
            raise UnexpectedRequest(problem)
        if expected.fails is not None:
            return Completion(request.id, failure=expected.fails)
        return Completion(request.id, plain(expected.returns))

    now = case.now if isinstance(case.now, datetime) else NOON
    done = run_with(program, dict(case.inputs), now, respond, limits)
    if waiting and not isinstance(done.outcome, LimitHit):
        raise UnexpectedRequest(f"ends without the listed request `{waiting[0].path}`")
    return done


def describe(request: Request) -> str:
    return f"`{request.path}` ({request.effect})"


def _differs(request: Request, expected: ExpectedRequest) -> str | None:
    if request.path.lstrip("_") != expected.path.lstrip("_"):
        return f"requests {describe(request)}, but the case lists `{expected.path}` next"
    for name, wanted in expected.request.items():
        found: object = request.fixed.get(name)
        if name in request.arguments:
            found = request.arguments[name]
        elif name == "key" and request.key is not None:
            found = request.key
        if not _has(plain(cast(Value, found)), plain(wanted)):
            shown = f"`{name}` is {show(found)}, but the case has {show(wanted)}"
            return f"requests {describe(request)}: {shown}"
    return None


def _has(found: object, wanted: object) -> bool:
    """Return whether a value matches; a wanted record may name fewer fields."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(name in found and _has(found[name], part) for name, part in wanted.items())
    return same(found, wanted)


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
            has_value = completion.failure is None and request.effect != "state_transition"
            if not known or not has_value or chance.random() >= _REPEATING_SHARE:
                return completion
            value = _repeat(known, chance, "", self.type_of(request.path), completion.result)
            return replace(completion, result=value)

        def draw(request: Request) -> Completion:
            chance = random.Random(f"{seed} {request.path} {request.id}")
            expected = case.get(_without_iterations(request.path).lstrip("_"))
            if expected is not None and chance.random() >= _DEPARTURE_SHARE:
                return self._answer_as_listed(request, expected, chance)
            if chance.random() < _FAILURE_SHARE:
                codes = EFFECTS[request.effect].codes()
                code = chance.choice(codes)
                return Completion(request.id, failure=chance.choice(_HTTP_CODES) if code == "http_error" else code)
            if request.effect == "state_transition":  # the Host accepts transitions only from these states
                return Completion(request.id, chance.choice(request.fixed["from"].split(",")))
            return Completion(
                request.id, self._values.draw_value(self.type_of(request.path), f"{seed} {request.path} {request.id}")
            )

        return respond

    def _case(self, seed: str) -> Mapping[str, ExpectedRequest]:
        chance = random.Random(f"{seed} case")
        return chance.choice(self._cases) if self._cases and chance.random() < _CASE_SHARE else {}

    def _answer_as_listed(self, request: Request, expected: ExpectedRequest, chance: random.Random) -> Completion:
        if expected.fails is not None:
            return Completion(request.id, failure=expected.fails)
        value: object = plain(expected.returns)
        if request.effect != "state_transition" and chance.random() < _VARIED_SHARE:
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


def _answers_of(case: Case) -> dict[str, ExpectedRequest]:
    """Return the answers of a case by step; in a loop, the first one counts for all rounds."""
    found: dict[str, ExpectedRequest] = {}
    for expected in case.effects:
        found.setdefault(_without_iterations(expected.path).lstrip("_"), expected)
    return found


def _without_iterations(path: str) -> str:
    return "/".join(part.partition("[")[0] for part in path.split("/"))
