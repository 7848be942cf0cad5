"""The verifier: draws inputs, runs them on every engine, compares, shrinks and reports.

It takes a compiled node and the engines, and returns a report of what was really compared, with the smallest input of
each divergence. The reference is the python engine; the report lists the outcome of each engine without judging. With a
function of the user, the engines must also agree with the function.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count, islice
from typing import TypeAlias

from vesper.compiler import Compiled
from vesper.engines.compare import Agree, Disagree, NotComparable, compare, same_outcome
from vesper.engines.engine import Completion, Done, Engine, Program, Request, Unobserved
from vesper.engines.outcome import ContractBroken, DeclaredError, EngineFault, Failed, LimitHit, Outcome, Returned
from vesper.language.check.cases import Case
from vesper.language.ir.nodes import Node, Raise, Require, Return, walk
from vesper.language.ir.statements import all_statements, expressions_of
from vesper.values.model import same
from vesper.verify.differential.against import Function, compare_with_function, is_refused
from vesper.verify.differential.beat import Beat, ignore_beat
from vesper.verify.differential.coverage import Coverage, CoverageCollector, CoverageState
from vesper.verify.differential.forms import FormsProgram
from vesper.verify.differential.ways.comparison import WaysComparison
from vesper.verify.differential.ways.repeated import repeated_ways
from vesper.verify.differential.ways.way import Answer, Given, Subject, Way, WayMaker
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.inputs.responses import (
    GeneratedResponses,
    Responder,
    TooManyRequests,
    UnexpectedRequest,
    run_case,
    run_with,
)
from vesper.verify.shrink.inputs import shrink
from vesper.verify.solve.goals import BranchAims

MAX_DISAGREEMENTS = 3


@dataclass(frozen=True, slots=True)
class Difference:
    """One shrunk divergence."""

    inputs: dict[str, object]
    tried: int
    """Number of inputs drawn until it was found."""
    answers: dict[str, Done]
    place: int | None
    """Index of the first expression whose values differ; None if only the outcomes differ."""
    step: str | None
    """Step of that expression."""
    with_function: bool = False
    """True if the engines agree with each other but not with the user's function."""
    responses: tuple[tuple[str, Completion], ...] = ()
    """Completions by request path, of the engine with the most requests."""
    now: datetime | None = None
    """Start time of the executions, for a node that reads it."""
    way: str | None = None
    """The way that differs from the reference where the engines agree, with its parameters.

    Its answer is the last one.
    """

    @property
    def way_name(self) -> str | None:
        """The way without its parameters."""
        return None if self.way is None else self.way.partition(" (")[0]


@dataclass(frozen=True, slots=True)
class CaseFailure:
    case: Case
    engine: str
    outcome: Outcome | None
    """None if the node made a request that the case does not list."""
    problem: str | None = None

    def is_like(self, other: CaseFailure) -> bool:
        """Return whether another engine failed the case in the same way."""
        if self.outcome is None or other.outcome is None:
            return self.problem == other.problem
        return same_outcome(self.outcome, other.outcome)


@dataclass(frozen=True, slots=True)
class BrokenPostcondition:
    """A postcondition that breaks on inputs which satisfy constraints and preconditions."""

    index: int
    """Index of the postcondition."""
    inputs: dict[str, object]
    """Shrunk inputs."""
    tried: int
    outcome: ContractBroken


@dataclass(slots=True)
class Report:
    node_id: str
    semantic_hash: str
    engines: tuple[str, ...]
    seed: int
    executions: int = 0
    not_comparable: int = 0
    cases: int = 0
    case_failures: list[CaseFailure] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    broken: list[BrokenPostcondition] = field(default_factory=list)
    outcomes: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    """Counts of failed executions by code."""
    broken_clauses: dict[tuple[str, int], int] = field(default_factory=dict)
    """Inputs that broke a constraint or precondition, by phase and index of the clause."""
    coverage: Coverage = field(default_factory=Coverage)
    against: str | None = None
    """Name of the function that the node was compared with."""
    refused: int = 0
    """Number of inputs that the node rejects, on which the function was not called."""
    elapsed_seconds: float = 0.0
    ways: dict[str, int] = field(default_factory=dict)
    """Number of compared executions of each way."""

    @property
    def too_many_lost(self) -> bool:
        return self.not_comparable * 100 > self.executions

    @property
    def is_function_unused(self) -> bool:
        """Return whether the user's function was never called, so that nothing was verified."""
        return self.against is not None and self.executions == 0

    @property
    def passed(self) -> bool:
        is_wrong = self.differences or self.case_failures or self.broken
        return not (is_wrong or self.too_many_lost or self.is_function_unused)


class Verifier:
    def __init__(
        self,
        compiled: Compiled,
        engines: Mapping[str, Engine],
        seed: int,
        seeks_boundaries: bool = True,
        checks_postconditions: bool = True,
        against: Function | None = None,
        ways: Sequence[WayMaker] = (repeated_ways,),
        beat: Beat = ignore_beat,
    ) -> None:
        """Create a verifier.

        `checks_postconditions` is false for random programs, whose postconditions are arbitrary. `ways` are compared
        where the engines have unobserved forms of the direct engine. `beat` is called before every engine and way
        loads or runs, so that a watchdog can name it afterwards.
        """
        self._node = compiled.node
        self._cases = compiled.cases
        self._beat = beat
        self._programs: dict[str, Program] = {}
        for name, engine in engines.items():
            beat("load", 0, name, None)
            self._programs[name] = engine.load(compiled)
        self._seeks_boundaries = seeks_boundaries
        self._generator = self._new_generator(seed)
        self._aims = BranchAims(compiled.node)
        self._responses = GeneratedResponses(compiled)
        self._against = against
        self._watch = CoverageCollector(compiled)
        self._places = steps_by_expression(compiled.node)
        self.report = Report(compiled.node.node_id, compiled.semantic_hash, tuple(engines), seed)
        self.report.coverage = self._watch.coverage
        self.report.against = None if against is None else against.name
        self._checks_postconditions = checks_postconditions
        self._seen: set[_DivergenceKey] = set()
        forms = {name: each.program for name, each in self._programs.items() if isinstance(each, FormsProgram)}
        reference = next(iter(self._programs.values()))
        self.subject = Subject(compiled, reference, forms, self._responses, seed, not checks_postconditions)
        self._ways = WaysComparison(self.subject, ways if forms else (), self.report.ways, beat)
        # A postcondition that a case expects to break is not reported.
        self._expected_to_break = {case.breaks for case in compiled.cases if case.breaks is not None}

    def run(
        self,
        max_examples: int,
        progress: Callable[[int], None] = lambda _: None,
        stop_after: int = MAX_DISAGREEMENTS,
        seconds: float | None = None,
        first: int = 1,
        skipped: Collection[int] = (),
    ) -> Report:
        """Run the node's cases, then drawn inputs, until a limit of count, time or failures.

        `first` continues an earlier run: the cases are done, and the inputs have a seed of their own. Inputs whose
        number is `skipped` are drawn and not run; case N has the number -N.
        """
        begun = time.monotonic()
        if first == 1:
            self._run_cases(skipped)
        else:
            self._generator = self._new_generator(random.Random(f"{self.report.seed} {first}").getrandbits(64))
        for number, inputs in enumerate(islice(self._inputs(first), max_examples), start=first):
            if number not in skipped:
                self._compare_on(inputs, number)
            if self._ways.is_due:
                self._compare_ways()
            progress(number)
            is_over = seconds is not None and time.monotonic() - begun >= seconds
            if is_over or len(self.report.differences) >= stop_after:
                break
        self._compare_ways()
        self._watch.finish()
        self.report.elapsed_seconds = time.monotonic() - begun
        return self.report

    def begin_report(self, known: CoverageState | None = None, left_out: Collection[str] = ()) -> None:
        """Begin a new report, with the coverage so far and that of an earlier run, without the ways `left_out`."""
        before = self.report
        self._watch.begin(known)
        self.report = Report(before.node_id, before.semantic_hash, before.engines, before.seed, against=before.against)
        self.report.coverage = self._watch.coverage
        self._ways.begin(self.report.ways, left_out)

    def partial_report(self) -> Report:
        """Return the report of a run that goes on."""
        self._watch.finish()
        return self.report

    def rerun(self, inputs: Mapping[str, object], number: int) -> None:
        """Run inputs on every engine and compare nothing; the number selects the completions."""
        self._answers(inputs, number)

    @property
    def coverage_size(self) -> int:
        """Amount of coverage so far; it grows as long as inputs show something new."""
        return self._watch.size

    def coverage_state(self) -> CoverageState:
        return self._watch.state()

    def _new_generator(self, seed: int) -> InputGenerator:
        return InputGenerator(self._node, seed, self._seeks_boundaries, [each.inputs for each in self._cases])

    def _inputs(self, first: int) -> Iterator[dict[str, object]]:
        listed = [case for case in self._cases if first == 1 and not case.effects]
        for case in listed:
            yield dict(case.inputs)
        for number in count(first + len(listed)):
            self._beat("draw", number, "", None)
            yield self._generator.draw(self._aims.next(self.report.coverage.guards.__contains__))

    def _run_cases(self, skipped: Collection[int]) -> None:
        for number, case in enumerate(self._cases, start=1):
            if -number in skipped:
                continue
            self.report.cases += 1
            told: list[CaseFailure] = []
            for name, program in self._programs.items():
                self._beat("case", -number, name, case.inputs)
                failure = _case_failure(program, case, name)
                # A wrong case fails on every form: an unobserved form reports only a failure that no other has.
                is_known = isinstance(program, Unobserved) and failure is not None and any(map(failure.is_like, told))
                if failure is not None and not is_known:
                    told.append(failure)
            self.report.case_failures += told

    def _compare_on(self, inputs: dict[str, object], number: int) -> None:
        answers = self._answers(inputs, number)
        reference = next(iter(answers.values()))
        self._cover(reference)
        result = self._compare(answers)
        if self._against is not None and self._against.name not in answers:
            self.report.refused += 1
        else:
            self.report.executions += 1
        if isinstance(result, NotComparable):
            self.report.not_comparable += 1
        elif isinstance(result, Disagree):
            self._report_difference(inputs, number)
        else:
            self._ways.add(Given(number, inputs, reference))
            if isinstance(reference.outcome, ContractBroken) and reference.outcome.phase == "postcondition":
                self._report_broken(inputs, number, reference.outcome)

    def _compare_ways(self) -> None:
        for way, answer in self._ways.differences():
            if (None, way.name, False) not in self._seen:
                self._seen.add((None, way.name, False))
                self._report_way(way, answer)

    def _report_way(self, way: Way, answer: Answer) -> None:
        """Report the way's answer on the smallest inputs; one that needs its whole chunk is not shrunk."""
        number = answer.given.number

        def differing(candidate: dict[str, object]) -> Answer | None:
            answers = self._answers(candidate, number)
            if not isinstance(self._compare(answers), Agree):
                return None
            given = Given(number, candidate, next(iter(answers.values())))
            return next((each for each in way.answers([given]) if each.differs), None)

        small = answer.given.inputs
        if differing(small) is not None:
            small = shrink(self._node, small, lambda candidate: differing(candidate) is not None)
            answer = differing(small) or answer
        name = f"{way.name} ({answer.detail})" if answer.detail else way.name
        wanted = replace(answer.given.done, outcome=answer.wanted, marks=())
        answers = {next(iter(self._programs)): wanted, name: Done(answer.found, ())}
        self._add_difference(small, number, answers, way=name)

    def _answers(self, inputs: Mapping[str, object], number: int) -> dict[str, Done]:
        # Seeded by the run's number, so that completions stay the same while shrinking, but for repeated inputs.
        seed = f"{self.report.seed} {number}"
        now, respond = self._responses.now(seed), self._responses.responder(seed, inputs)
        answers: dict[str, Done] = {}
        for name, program in self._programs.items():
            self._beat("run", number, name, inputs)
            answers[name] = _run_to_end(program, inputs, now, respond)
        if self._against is not None and not is_refused(next(iter(answers.values())).outcome):
            self._beat("run", number, self._against.name, inputs)
            answers[self._against.name] = self._against.answer(inputs)
        return answers

    def _compare(self, answers: Mapping[str, Done]) -> Agree | Disagree | NotComparable:
        """Compare the engines with each other, then with the function."""
        engines = {name: done for name, done in answers.items() if name in self._programs}
        result = _first_divergence(engines)
        if isinstance(result, Agree) and self._against is not None and self._against.name in answers:
            return compare_with_function(answers[self._against.name], next(iter(engines.values())))
        return result

    def _cover(self, done: Done) -> None:
        self._watch.observe(done)
        outcome = done.outcome
        if isinstance(outcome, ContractBroken) and outcome.phase in ("constraint", "precondition"):
            clause = (outcome.phase, outcome.index)
            self.report.broken_clauses[clause] = self.report.broken_clauses.get(clause, 0) + 1
        kind = f"{outcome.phase}_broken" if isinstance(outcome, ContractBroken) else outcome.kind
        self.report.outcomes[kind] = self.report.outcomes.get(kind, 0) + 1
        if isinstance(outcome, Failed):
            self.report.failures[outcome.code] = self.report.failures.get(outcome.code, 0) + 1

    def _report_difference(self, inputs: dict[str, object], number: int) -> None:
        fingerprint = self._divergence_key(inputs, number)
        assert fingerprint is not None
        if fingerprint in self._seen:
            return
        self._seen.add(fingerprint)
        small = shrink(self._node, inputs, lambda candidate: self._divergence_key(candidate, number) == fingerprint)
        place, step, with_function = fingerprint
        self._add_difference(small, number, self._answers(small, number), place, step, with_function)

    def _add_difference(
        self,
        small: dict[str, object],
        number: int,
        answers: dict[str, Done],
        place: int | None = None,
        step: str | None = None,
        with_function: bool = False,
        way: str | None = None,
    ) -> None:
        seed = f"{self.report.seed} {number}"
        asked: Sequence[Request] = max((done.requests for done in answers.values()), key=len)
        respond = self._responses.responder(seed, small)
        responses = tuple((each.path, respond(each)) for each in asked)
        now = None if self._node.type == "function" else self._responses.now(seed)
        found = Difference(small, number, answers, place, step, with_function, responses, now, way)
        self.report.differences.append(found)

    def _report_broken(self, inputs: dict[str, object], number: int, outcome: ContractBroken) -> None:
        """Report the first input that breaks a postcondition, shrunk on the reference engine."""
        index = outcome.index
        # Completions are drawn by type only, so broken postconditions about them are no defect.
        expected = ("postcondition", index) in self._expected_to_break
        if not self._checks_postconditions or not self._node.is_pure() or expected:
            return
        if any(each.index == index for each in self.report.broken):
            return
        reference = next(iter(self._programs))

        def breaks(candidate: dict[str, object]) -> ContractBroken | None:
            found = self._answers(candidate, number)[reference].outcome
            same_clause = isinstance(found, ContractBroken) and (found.phase, found.index) == ("postcondition", index)
            return found if isinstance(found, ContractBroken) and same_clause else None

        small = shrink(self._node, inputs, lambda candidate: breaks(candidate) is not None)
        self.report.broken.append(BrokenPostcondition(index, small, number, breaks(small) or outcome))

    def _divergence_key(self, inputs: dict[str, object], number: int) -> _DivergenceKey | None:
        """Return the place and step of a divergence on these inputs; None if the engines agree."""
        answers = self._answers(inputs, number)
        result = self._compare(answers)
        if not isinstance(result, Disagree):
            return None
        engines = {name: done for name, done in answers.items() if name in self._programs}
        if isinstance(_first_divergence(engines), Agree):
            return None, None, True
        for done in engines.values():
            if result.mark is not None and result.mark < len(done.marks):
                index = done.marks[result.mark][0]
                return index, self._places.get(index), False
        return None, None, False


_DivergenceKey: TypeAlias = tuple[int | None, str | None, bool]
"""Diverging expression, its step, and whether only the function diverges."""


def _case_failure(program: Program, case: Case, engine: str) -> CaseFailure | None:
    try:
        outcome = run_case(program, case).outcome
    except UnexpectedRequest as problem:
        return CaseFailure(case, engine, None, str(problem))
    return None if meets(case, outcome) else CaseFailure(case, engine, outcome)


def meets(case: Case, outcome: Outcome) -> bool:
    """Return whether an outcome is the expected one. Outputs that the case omits are ignored."""
    if case.breaks is not None:
        return isinstance(outcome, ContractBroken) and (outcome.phase, outcome.index) == case.breaks
    if case.error is not None:
        return isinstance(outcome, DeclaredError) and all(
            same(outcome.value[name], expected) for name, expected in case.error.items()
        )
    if case.fails is not None:
        return isinstance(outcome, Failed) and outcome.code == case.fails
    assert case.expect is not None
    return isinstance(outcome, Returned) and all(
        same(outcome.value[name], expected) for name, expected in case.expect.items()
    )


def _run_to_end(program: Program, inputs: Mapping[str, object], now: datetime, respond: Responder) -> Done:
    """Run an execution to its end; one with endless requests is stopped as not comparable."""
    try:
        return run_with(program, dict(inputs), now, respond)
    except TooManyRequests:
        return Done(LimitHit("requests"), ())


def _first_divergence(answers: Mapping[str, Done]) -> Agree | Disagree | NotComparable:
    """Compare each engine with the first and return the first divergence.

    A single engine must not end with a fault.
    """
    reference, *others = answers.values()
    if isinstance(reference.outcome, EngineFault):
        return Disagree("an engine is at fault", None)
    for other in others:
        result = compare(reference, other)
        if not isinstance(result, Agree):
            return result
    # The reference has no path: engines with a path are compared with the first of them.
    ways = [other for other in others if other.way is not None]
    for other in ways[1:]:
        result = compare(ways[0], other)
        if not isinstance(result, Agree):
            return result
    return Agree()


def steps_by_expression(node: Node) -> dict[int, str]:
    """Return the innermost step of each expression of the body."""
    places: dict[int, str] = {}
    for statement in all_statements(node.body):
        if isinstance(statement, Return | Raise | Require):
            continue
        # An inner statement follows its outer one and overwrites its entries.
        for root in expressions_of((statement,)):
            for expression in walk(root):
                places[expression.index] = statement.name.lstrip("_")
    return places
