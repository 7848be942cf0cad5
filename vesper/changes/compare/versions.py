"""Two versions of a node that run on the same inputs, completions and start time.

Both run on the direct engine, which is fast and reports the path; `confirm` repeats an execution on the reference.
Requests of both versions are completed alike: a completion belongs to a step and its occurrence, and a renamed step is
recognised by its effect and its order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TypeAlias

from vesper.compiler import Compiled
from vesper.engines.compare import Agree, NotComparable, same_outcome, same_requests
from vesper.engines.direct_engine import DirectEngine, all_callees
from vesper.engines.engine import Blocked, Completion, Done, Program, Request
from vesper.engines.outcome import EngineFault, Failed, LimitHit, Outcome
from vesper.engines.python_engine import PythonEngine
from vesper.engines.version_outcomes import (
    OUTCOME,
    ChangedOutcome,
    Comparison,
    VersionOutcomes,
    compare_requests,
    ending,
)
from vesper.language.ir.encode import semantic_hash
from vesper.language.ir.nodes import CallNode, Node, Now
from vesper.language.ir.nodes import Request as RequestStep
from vesper.language.ir.statements import all_statements
from vesper.values.node_id import split_node_id
from vesper.values.types import Type
from vesper.verify.differential.against import is_refused
from vesper.verify.inputs.responses import MAX_REQUESTS, GeneratedResponses, Responder, TooManyRequests, run_with

_STEP = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NEUTRAL_ID = "compared_v1"
_KEY = bytes(16)
"""Key of fingerprints, which a comparison does not read."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The completion of a request: a value, or the code of a failure."""

    path: str
    """The path in the version before."""
    occurrence: int
    value: object = None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """All that both executions receive."""

    inputs: Mapping[str, object]
    seed: str
    """Determines the completions that `answers` lacks."""
    now: datetime | None = None
    answers: tuple[Answer, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of one version."""

    outcome: Outcome
    path: bytes = b""
    requests: tuple[Request, ...] = ()
    answers: tuple[Answer, ...] = ()


@dataclass(frozen=True, slots=True)
class RunPair:
    """The executions of both versions, compared."""

    before: Run
    after: Run
    found: Comparison

    @property
    def paths(self) -> tuple[bytes, bytes]:
        return self.before.path, self.after.path


class EnginesDisagree(Exception):
    """The engines differ on one version, which is a fault of Vesper; the message names it."""


class Version:
    """One version, loaded on both engines."""

    def __init__(
        self, compiled: Compiled, own: frozenset[str], others: frozenset[str], names: Mapping[str, str]
    ) -> None:
        """`own` and `others` are inputs that only one version has, `names` the steps whose completions it shares."""
        self._own = own
        self.compiled = compiled
        self.node = compiled.node
        self._others = others
        self._names = names
        self.program = DirectEngine().load(compiled)
        self.points = self.program.points()

    @cached_property
    def reference(self) -> Program:
        return PythonEngine().load(self.compiled)

    def own_inputs(self, inputs: Mapping[str, object]) -> dict[str, object]:
        """Return the inputs that this version receives; undeclared names are received by both."""
        return {name: value for name, value in inputs.items() if name not in self._others}

    def refuses_own(self, outcome: Outcome) -> bool:
        """Return whether the version refuses inputs, and only inputs that the other version lacks."""
        return (
            isinstance(outcome, Failed)
            and bool(outcome.problems)
            and all(_name_of(each.path) in self._own for each in outcome.problems)
        )

    def run(self, given: Given, answer: Answering) -> Run:
        """Run on the direct engine, with the path."""
        inputs = self.own_inputs(given.inputs)
        if not self.program.asks:
            found = self.program.call_pathed(inputs, _KEY, given.now)
            return Run(found.outcome, found.path)
        exchange = _Exchange(self._names, answer)
        execution = self.program.start_pathed(inputs, _KEY, given.now)
        step = execution.advance(())
        while isinstance(step, Blocked):
            if len(exchange.requests) >= MAX_REQUESTS:
                return Run(LimitHit("requests"), execution.path(), tuple(exchange.requests))
            step = execution.advance((exchange.complete(step.requests[0]),))
        return Run(step.outcome, execution.path(), tuple(exchange.requests), tuple(exchange.answers))

    def run_observed(self, given: Given, answer: Answering) -> Done:
        """Run on the reference, with all marks."""
        exchange = _Exchange(self._names, answer)
        try:
            return run_with(self.reference, self.own_inputs(given.inputs), given.now, exchange.complete)
        except TooManyRequests:
            return Done(LimitHit("requests"), ())


class _Exchange:
    """The requests of one execution and their completions."""

    def __init__(self, names: Mapping[str, str], answer: Answering) -> None:
        self._names = names
        self._answer = answer
        self._counts: dict[str, int] = {}
        self.requests: list[Request] = []
        self.answers: list[Answer] = []

    def complete(self, request: Request) -> Completion:
        path = _rename_step(request.path, self._names)
        occurrence = self._counts[path] = self._counts.get(path, 0) + 1
        found = self._answer(replace(request, id=occurrence, path=path))
        self.requests.append(request)
        self.answers.append(found)
        return Completion(request.id, found.value, found.failure)


Answering: TypeAlias = Callable[[Request], Answer]
"""Completes a request, whose id is its occurrence and whose path is that of the version before."""


class VersionPair:
    """Two versions of a node that run on the same inputs and are compared."""

    def __init__(self, before: Compiled, after: Compiled, compares_acceptance: bool = False) -> None:
        """Create a pair. With `compares_acceptance`, versions differ only on inputs that the second alone refuses."""
        self.compares_acceptance = compares_acceptance
        left, right = before.node, after.node
        lefts, rights = ({each.name for each in node.inputs} for node in (left, right))
        names = _shared_steps(left, right)
        self.before = Version(before, frozenset(lefts - rights), frozenset(rights - lefts), {})
        self.after = Version(after, frozenset(rights - lefts), frozenset(lefts - rights), names)
        self.rule = VersionOutcomes(left, right)
        self._types = {each.name: each.type for each in (*right.inputs, *left.inputs)}
        self._responses = {each: GeneratedResponses(each.compiled) for each in (self.before, self.after)}
        self._back = {new: old for old, new in names.items()}

    @property
    def versions(self) -> tuple[Version, Version]:
        return self.before, self.after

    @property
    def reads_now(self) -> bool:
        """Whether the start time of an execution can matter to a version."""
        nodes = [each.node for version in self.versions for each in (version.compiled, *all_callees(version.compiled))]
        return any(isinstance(part, Now) for node in nodes for part in node.expressions())

    @property
    def makes_requests(self) -> bool:
        return any(each.program.asks for each in self.versions)

    def union_node(self, version: Version) -> Node:
        """Return the node with the inputs of both versions, for generators and shrinkers."""
        own = {each.name for each in version.node.inputs}
        other = self.after if version is self.before else self.before
        added = tuple(each for each in other.node.inputs if each.name not in own)
        return replace(version.node, inputs=(*version.node.inputs, *added))

    def make_given(self, inputs: Mapping[str, object], seed: str) -> Given:
        """Return inputs with a start time that the seed determines."""
        return Given(inputs, seed, self._responses[self.before].now(seed))

    def run(self, given: Given) -> RunPair:
        """Run both versions on the direct engine and compare them."""
        answer = self.answering(given)
        before, after = (each.run(given, answer) for each in self.versions)
        return RunPair(before, after, self._compare(before, after))

    def run_before(self, given: Given) -> Run:
        """Run the version before alone on the direct engine."""
        return self.before.run(given, self.answering(given))

    def confirm(self, given: Given) -> tuple[RunPair, tuple[Done, Done]]:
        """Run both versions on both engines. Raises `EnginesDisagree`."""
        pair, answer = self.run(given), self.answering(given)
        observed = []
        for version, run in zip(self.versions, (pair.before, pair.after), strict=True):
            done = version.run_observed(given, answer)
            if not (same_outcome(run.outcome, done.outcome) and same_requests(run.requests, done.requests)):
                raise EnginesDisagree(f"the engines disagree on {version.node.node_id}")
            observed.append(done)
        return pair, (observed[0], observed[1])

    def type_at(self, path: str) -> Type | None:
        """Return the type of the completion at a path of the version before."""
        for version, own in ((self.before, path), (self.after, _rename_step(path, self._back))):
            with suppress(KeyError):
                return self._responses[version].type_of(own)
        return None

    def _compare(self, before: Run, after: Run) -> Comparison:
        for version, run in zip(self.versions, (before, after), strict=True):
            if version.refuses_own(run.outcome):
                return NotComparable("an input that only one version has is missing or malformed")
        if self.compares_acceptance:
            return _compare_acceptance(before.outcome, after.outcome)
        found = self.rule.compare(before.outcome, after.outcome)
        if not isinstance(found, Agree) or not self.makes_requests:
            return found
        return compare_requests(before.requests, after.requests) or found

    def answering(self, given: Given) -> Answering:
        """Return the completions of both versions."""
        listed = {(each.path, each.occurrence): each for each in given.answers}
        drawn: dict[Version, Responder] = {}

        def answer(request: Request) -> Answer:
            found = listed.get((request.path, request.id))
            if found is not None:
                return found
            version, own = self.before, request
            if self._lacks(request.path):
                version, own = self.after, replace(request, path=_rename_step(request.path, self._back))
            if version not in drawn:
                drawn[version] = self._responses[version].responder(given.seed, version.own_inputs(given.inputs))
            completion = drawn[version](own)
            return Answer(request.path, request.id, completion.result, completion.failure)

        return answer

    def _lacks(self, path: str) -> bool:
        try:
            self._responses[self.before].type_of(path)
        except KeyError:
            return True
        return False


def _compare_acceptance(before: Outcome, after: Outcome) -> Comparison:
    """Compare whether the inputs are accepted: of their types, and within constraints and preconditions."""
    for outcome in (before, after):
        if isinstance(outcome, LimitHit | EngineFault):
            return NotComparable(ending(outcome))
    is_refused_now = is_refused(after) and not is_refused(before)
    return ChangedOutcome(OUTCOME, ending(before), ending(after)) if is_refused_now else Agree()


def _name_of(path: str) -> str:
    """Return the input of a problem's path."""
    found = _STEP.match(path)
    return "" if found is None else found[0]


def _rename_step(path: str, names: Mapping[str, str]) -> str:
    """Return a path with another name of its step in the node itself."""
    step = _STEP.match(path)
    return path if step is None else names.get(step[0], step[0]) + path[step.end() :]


def _shared_steps(before: Node, after: Node) -> dict[str, str]:
    """Return the renamed steps with requests: the name after, and the name before.

    A step keeps its name, or is the next one that requests the same.
    """
    left, right = (
        [each for each in all_statements(node.body) if isinstance(each, RequestStep | CallNode)]
        for node in (before, after)
    )
    names = {each.name for each in left} & {each.name for each in right}
    waiting = [each for each in left if each.name not in names]
    found: dict[str, str] = {}
    for each in right:
        match = None if each.name in names else next((one for one in waiting if _kind(one) == _kind(each)), None)
        if match is not None:
            waiting.remove(match)
            found[each.name] = match.name
    return found


def _kind(step: RequestStep | CallNode) -> tuple[object, ...]:
    if isinstance(step, CallNode):
        return "call", (split_node_id(step.node) or (step.node,))[0]
    return step.effect, tuple(sorted(step.fixed)), str(step.result.type)


def has_same_semantics(before: Compiled, after: Compiled) -> bool:
    """Return whether the semantic hashes are equal but for the names of the two nodes."""
    return before.semantic_hash == after.semantic_hash or (
        semantic_hash(replace(before.node, node_id=_NEUTRAL_ID))
        == semantic_hash(replace(after.node, node_id=_NEUTRAL_ID))
    )
