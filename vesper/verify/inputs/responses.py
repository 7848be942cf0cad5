"""Executions with effects, without a Host: what a request is completed with comes from a case or from a seed.

A case lists the requests that must be made and what each is answered. For generated runs the answer to a request
depends on the seed, the path and the effect alone, so that two engines that ask the same are told the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
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
from vesper.values.model import Value, plain, same, show
from vesper.values.types import Type
from vesper.verify.inputs.generator import InputGenerator

Responder: TypeAlias = Callable[[Request], Completion]
MAX_REQUESTS = 1_000
"""More than these, and a run is given up: a loop may ask for ever."""
NOON = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
_FAILS = 0.2
_LIKE_A_CASE = 0.5
_LEAVES_CASE = 0.1
_CHANGED = 0.3
_HTTP_CODES = ("http_400", "http_402", "http_404", "http_409", "http_429", "http_500", "http_503")


class UnexpectedRequest(Exception):
    """The node asked for something that the case does not list next; the message says what and what was listed."""


class TooManyRequests(Exception):
    """The run was given up."""


def run_with(
    program: Program,
    inputs: Mapping[str, object],
    now: datetime | None,
    respond: Responder,
    limits: Limits | None = None,
) -> Done:
    """One observed execution to its end; what it asked for is part of what it did."""
    execution = program.start(inputs, now, limits)
    asked: list[Request] = []
    step = execution.advance(())
    while isinstance(step, Blocked):
        request = step.requests[0]
        asked.append(request)
        if len(asked) > MAX_REQUESTS:
            raise TooManyRequests
        step = execution.advance((respond(request),))
    return Done(step.outcome, step.marks, tuple(asked), step.is_observed, step.way) if asked else step


# -- cases ----------------------------------------------------------------------------------------


def run_case(program: Program, case: Case, limits: Limits | None = None) -> Done:
    """A case to its end, or an `UnexpectedRequest`; a request that is listed and not made is one too."""
    waiting = list(case.effects)

    def respond(request: Request) -> Completion:
        if not waiting:
            raise UnexpectedRequest(f"asks for {describe(request)}, and the case lists no more requests")
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
        raise UnexpectedRequest(f"ends, and `{waiting[0].path}` was not asked for")
    return done


def describe(request: Request) -> str:
    return f"`{request.path}` ({request.effect})"


def _differs(request: Request, expected: ExpectedRequest) -> str | None:
    if request.path.lstrip("_") != expected.path.lstrip("_"):
        return f"asks for {describe(request)}, and the case lists `{expected.path}` next"
    for name, wanted in expected.request.items():
        found: object = request.fixed.get(name)
        if name in request.arguments:
            found = request.arguments[name]
        elif name == "key" and request.key is not None:
            found = request.key
        if not _has(plain(cast(Value, found)), plain(wanted)):
            shown = f"`{name}` is {show(found)}, and the case says {show(wanted)}"
            return f"asks for {describe(request)}: {shown}"
    return None


def _has(found: object, wanted: object) -> bool:
    """True where a value is the wanted one; a wanted record may name fewer fields."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(name in found and _has(found[name], part) for name, part in wanted.items())
    return same(found, wanted)


# -- generated ------------------------------------------------------------------------------------


class GeneratedResponses:
    """Answers drawn by type, one in five a failure with a code that its effect declares; or those of a case.

    In half of the runs of a node that has cases with requests, one case answers what it lists: a long flow ends at its
    first answer that fits nothing, and cases get to the end. Now and then such an answer is changed.
    """

    def __init__(self, compiled: Compiled) -> None:
        self._types: dict[str, Type] = {}
        self._collect(compiled, "")
        self._values = InputGenerator(compiled.node, 0, seeks_boundaries=False)
        self._cases = [_answers_of(case) for case in compiled.cases if case.effects]

    def _collect(self, compiled: Compiled, prefix: str) -> None:
        callees = {each.node.node_id: each for each in compiled.callees}
        for statement in all_statements(compiled.node.body):
            if isinstance(statement, ir.Request):
                self._types[prefix + statement.name] = statement.result.type
            elif isinstance(statement, ir.CallNode):
                self._collect(callees[statement.node], f"{prefix}{statement.name}/")

    def responder(self, seed: str) -> Responder:
        """What this seed answers; the same to every engine that asks the same."""

        case = self._case(seed)

        def respond(request: Request) -> Completion:
            chance = random.Random(f"{seed} {request.path} {request.id}")
            expected = case.get(_without_iterations(request.path).lstrip("_"))
            if expected is not None and chance.random() >= _LEAVES_CASE:
                return self._as_listed(request, expected, chance)
            if chance.random() < _FAILS:
                codes = EFFECTS[request.effect].codes()
                code = chance.choice(codes)
                return Completion(request.id, failure=chance.choice(_HTTP_CODES) if code == "http_error" else code)
            if request.effect == "state_transition":  # the Host moves an entity from these states and no others
                return Completion(request.id, chance.choice(request.fixed["from"].split(",")))
            return Completion(
                request.id, self._values.draw_value(self.type_of(request.path), f"{seed} {request.path} {request.id}")
            )

        return respond

    def _case(self, seed: str) -> Mapping[str, ExpectedRequest]:
        chance = random.Random(f"{seed} case")
        return chance.choice(self._cases) if self._cases and chance.random() < _LIKE_A_CASE else {}

    def _as_listed(self, request: Request, expected: ExpectedRequest, chance: random.Random) -> Completion:
        if expected.fails is not None:
            return Completion(request.id, failure=expected.fails)
        value: object = plain(expected.returns)
        if request.effect != "state_transition" and chance.random() < _CHANGED:
            type_ = self._types[_without_iterations(request.path)]
            value = self._values.vary_value(value, type_, f"{chance.random()}")
        return Completion(request.id, value)

    def type_of(self, path: str) -> Type:
        """The type of what the request at this path is completed with."""
        return self._types[_without_iterations(path)]

    def now(self, seed: str) -> datetime:
        chance = random.Random(f"{seed} now")
        return NOON + timedelta(microseconds=chance.randrange(-(10**15), 10**15))


def _answers_of(case: Case) -> dict[str, ExpectedRequest]:
    """What a case answers, by the step that asks; in a loop the first answer stands for all."""
    found: dict[str, ExpectedRequest] = {}
    for expected in case.effects:
        found.setdefault(_without_iterations(expected.path).lstrip("_"), expected)
    return found


def _without_iterations(path: str) -> str:
    return "/".join(part.partition("[")[0] for part in path.split("/"))
