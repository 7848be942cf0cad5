"""One node held to what it says of itself: its own cases, and what must be true of every input.

In: a compiled node and the engines to run it on. Out: for each case how it came out, and for generated inputs that
meet the constraints and preconditions the smallest ones that break a postcondition or an invariant, or on which an
engine is at fault or two engines differ. How a node fails otherwise is counted, and held against nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from vesper.compiler import Compiled
from vesper.engines.compare import Disagree, compare
from vesper.engines.engine import Completion, Done, Engine, Program, Request
from vesper.engines.outcome import ContractBroken, EngineFault, Failed, Outcome
from vesper.engines.path import guards
from vesper.language.check.cases import Case
from vesper.language.ir.nodes import walk
from vesper.verify.differential.case_text import answer_text, case_text
from vesper.verify.differential.verifier import meets
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.inputs.responses import GeneratedResponses, TooManyRequests, UnexpectedRequest, run_case, run_with
from vesper.verify.shrink.inputs import shrink

MAX_FAILURES = 3
DRAWS_FOR_EACH = 10
"""So many inputs may be drawn for each one that the node takes, before it is said that few are."""
PROMISES = ("postcondition", "invariant")
_ASKED_OF_CALLERS = ("constraint", "precondition")

Fingerprint: TypeAlias = tuple[str, int]
"""What is wrong: a phase and the index of its clause; or `engine_fault` or `disagreement`, and 0."""


@dataclass(frozen=True, slots=True)
class CaseAnswer:
    """How a case came out on one engine."""

    engine: str
    outcome: Outcome | None
    """None where it asked for something that the case does not list."""
    problem: str | None
    is_met: bool


@dataclass(frozen=True, slots=True)
class CaseResult:
    case: Case
    answers: tuple[CaseAnswer, ...]
    disagree: bool
    branches: frozenset[tuple[int, bool]] = frozenset()

    @property
    def passed(self) -> bool:
        return not self.disagree and all(answer.is_met for answer in self.answers)

    @property
    def is_our_bug(self) -> bool:
        return self.disagree or any(isinstance(answer.outcome, EngineFault) for answer in self.answers)


@dataclass(frozen=True, slots=True)
class PropertyFailure:
    """What must never happen and does, on the smallest input found."""

    kind: str
    """`postcondition`, `invariant`, `engine_fault` or `disagreement`."""
    index: int
    """Of the clause; 0 where there is none."""
    inputs: dict[str, object]
    tried: int
    """How many inputs were drawn until it was found."""
    outcomes: dict[str, Outcome]
    case: str | None
    """The same as a case to paste into the node; None where an input is none that can be written down."""

    @property
    def is_our_bug(self) -> bool:
        return self.kind not in PROMISES


@dataclass(slots=True)
class PropertyReport:
    seed: int
    wanted: int
    drawn: int = 0
    examples: int = 0
    """Inputs that met the constraints and the preconditions: what the properties were held against."""
    given_up: int = 0
    """Executions that asked for more than anybody would answer."""
    outcomes: dict[str, int] = field(default_factory=dict)
    """How the examples ended: the kind, of a failure with its code."""
    broken_by_answers: dict[Fingerprint, int] = field(default_factory=dict)
    """Promises of a node with effects that broke: its answers were drawn by type alone, so it is no failure."""
    failures: list[PropertyFailure] = field(default_factory=list)
    branches: set[tuple[int, bool]] = field(default_factory=set)

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def is_starved(self) -> bool:
        """True when so few of the drawn inputs were taken that the properties say little."""
        return self.examples < min(self.wanted, 10)


@dataclass(slots=True)
class NodeResult:
    """All that a run of the tests of one node found."""

    compiled: Compiled
    cases: list[CaseResult] = field(default_factory=list)
    properties: PropertyReport | None = None

    @property
    def branches(self) -> set[tuple[int, bool]]:
        """The branches that cases and examples took."""
        of_cases = (each.branches for each in self.cases)
        return set().union(*of_cases, () if self.properties is None else self.properties.branches)

    @property
    def branches_total(self) -> int:
        return 2 * len(guards(self.compiled.node))

    @property
    def failed_cases(self) -> list[CaseResult]:
        return [each for each in self.cases if not each.passed]

    @property
    def passed(self) -> bool:
        return not self.failed_cases and (self.properties is None or self.properties.passed)

    @property
    def is_our_bug(self) -> bool:
        found = [] if self.properties is None else self.properties.failures
        return any(each.is_our_bug for each in self.failed_cases) or any(each.is_our_bug for each in found)


class NodeTester:
    """Tests one node. The node is loaded into the engines when the first test runs."""

    def __init__(self, compiled: Compiled, engines: Mapping[str, Engine]) -> None:
        self._compiled = compiled
        self._engines = engines
        self._loaded: dict[str, Program] | None = None

    @property
    def _programs(self) -> dict[str, Program]:
        if self._loaded is None:
            self._loaded = {name: engine.load(self._compiled) for name, engine in self._engines.items()}
        return self._loaded

    def run_case(self, case: Case) -> CaseResult:
        answers: list[CaseAnswer] = []
        done: list[Done] = []
        for name, program in self._programs.items():
            try:
                ended = run_case(program, case)
            except UnexpectedRequest as problem:
                answers.append(CaseAnswer(name, None, str(problem), False))
                continue
            done.append(ended)
            answers.append(CaseAnswer(name, ended.outcome, None, meets(case, ended.outcome)))
        disagree = _differ(done) or len({answer.problem for answer in answers}) > 1
        branches = _branches(done[0], guards(self._compiled.node)) if done else frozenset()
        return CaseResult(case, tuple(answers), disagree, branches)

    def run_properties(
        self, max_examples: int, seed: int, progress: Callable[[int], None] = lambda _: None
    ) -> PropertyReport:
        """Draw until there are enough examples, enough is wrong, or nearly nothing that is drawn is taken."""
        run = _Properties(self._compiled, self._programs, max_examples, seed)
        for number, inputs in enumerate(run.inputs(), start=1):
            run.hold_against(inputs, number)
            progress(run.report.examples)
            if run.is_over:
                break
        return run.report


class _Properties:
    def __init__(self, compiled: Compiled, programs: Mapping[str, Program], wanted: int, seed: int) -> None:
        self._compiled = compiled
        self._node = compiled.node
        self._programs = programs
        self._generator = InputGenerator(compiled.node, seed)
        self._responses = GeneratedResponses(compiled)
        self._conditions = guards(compiled.node)
        self._expected = {case.breaks for case in compiled.cases if case.breaks is not None}
        asked = (clause for phase, clauses in self._node.phases() if phase in _ASKED_OF_CALLERS for clause in clauses)
        self._before = {each.index for clause in asked for each in walk(clause.holds)}
        self._seen: set[Fingerprint] = set()
        self._seed = seed
        self.report = PropertyReport(seed, wanted)

    @property
    def is_over(self) -> bool:
        report = self.report
        enough = report.examples >= report.wanted or len(report.failures) >= MAX_FAILURES
        return enough or report.drawn >= report.wanted * DRAWS_FOR_EACH

    def inputs(self) -> Iterator[dict[str, object]]:
        """What the cases give first: where there is something to find, it is often beside them."""
        for case in self._compiled.cases:
            if not case.effects:
                yield dict(case.inputs)
        while True:
            yield self._generator.draw()

    def hold_against(self, inputs: dict[str, object], number: int) -> None:
        report = self.report
        report.drawn += 1
        try:
            answers = self._answers(inputs, number)
        except TooManyRequests:
            report.given_up += 1
            return
        reference = next(iter(answers.values()))
        wrong = self._wrong(answers)
        if wrong is None and self._is_refused(reference.outcome):
            return
        report.examples += 1
        report.branches |= _branches(reference, self._conditions)
        kind = _kind(reference.outcome)
        report.outcomes[kind] = report.outcomes.get(kind, 0) + 1
        if wrong is None or wrong in self._expected:
            return
        # Answers of effects are drawn by type alone: what a node promises about them is not held against it.
        if wrong[0] in PROMISES and not self._node.is_pure():
            report.broken_by_answers[wrong] = report.broken_by_answers.get(wrong, 0) + 1
        elif wrong not in self._seen:
            self._seen.add(wrong)
            report.failures.append(self._shrunk(wrong, inputs, number))

    def _answers(
        self, inputs: Mapping[str, object], number: int, asked: list[tuple[Request, Completion]] | None = None
    ) -> dict[str, Done]:
        # Of the run and not of the inputs: while a failure is made smaller, its answers stay what they were.
        seed = f"{self._seed} {number}"
        respond = self._responses.responder(seed)
        noted: list[tuple[Request, Completion]] = []

        def noting(request: Request) -> Completion:
            noted.append((request, respond(request)))
            return noted[-1][1]

        found: dict[str, Done] = {}
        for name, program in self._programs.items():
            noted.clear()
            found[name] = run_with(program, dict(inputs), self._now(number), noting)
            if asked is not None and len(found) == 1:
                asked += noted
        return found

    def _now(self, number: int) -> datetime:
        return self._responses.now(f"{self._seed} {number}")

    def _wrong(self, answers: Mapping[str, Done]) -> Fingerprint | None:
        if any(isinstance(done.outcome, EngineFault) for done in answers.values()):
            return "engine_fault", 0
        if _differ(list(answers.values())):
            return "disagreement", 0
        outcome = next(iter(answers.values())).outcome
        if isinstance(outcome, ContractBroken) and outcome.phase in PROMISES:
            return outcome.phase, outcome.index
        return None

    def _is_refused(self, outcome: Outcome) -> bool:
        """True where the node was asked what it does not answer: the inputs do not fit, or what it asks of callers does
        not hold, or fails."""
        if isinstance(outcome, ContractBroken):
            return outcome.phase in _ASKED_OF_CALLERS
        return isinstance(outcome, Failed) and (outcome.at is None or outcome.at in self._before)

    def _shrunk(self, wrong: Fingerprint, inputs: dict[str, object], number: int) -> PropertyFailure:
        def still_wrong(candidate: dict[str, object]) -> bool:
            try:
                return self._wrong(self._answers(candidate, number)) == wrong
            except TooManyRequests:
                return False

        small = shrink(self._node, inputs, still_wrong)
        asked: list[tuple[Request, Completion]] = []
        answers = self._answers(small, number, asked)
        outcomes = {name: done.outcome for name, done in answers.items()}
        kind, index = wrong
        return PropertyFailure(kind, index, small, number, outcomes, self._as_case(wrong, small, number, asked))

    def _as_case(
        self, wrong: Fingerprint, inputs: dict[str, object], number: int, asked: list[tuple[Request, Completion]]
    ) -> str | None:
        kind, index = wrong
        clause = f"{dict(self._node.phases())[kind][index].text} must hold" if kind in PROMISES else kind
        now = None if self._node.type == "function" else self._now(number)
        try:
            effects = [
                (request.path, answer_text(self._responses.type_of(request.path), answer.result, answer.failure))
                for request, answer in asked
            ]
            return case_text(self._node, f"found: {clause}", inputs, "{}", now, effects)
        except ValueError:  # a wrong input: of an engine at fault, or of two that do not refuse it alike
            return None


def _branches(done: Done, conditions: set[int]) -> frozenset[tuple[int, bool]]:
    return frozenset((index, bool(value)) for index, value in done.marks if index in conditions)


def _differ(done: list[Done]) -> bool:
    return any(isinstance(compare(done[0], other), Disagree) for other in done[1:])


def _kind(outcome: Outcome) -> str:
    if isinstance(outcome, ContractBroken):
        return f"{outcome.phase} broken"
    if isinstance(outcome, Failed):
        return f"failed {outcome.code}"
    return outcome.kind.replace("_", " ")
