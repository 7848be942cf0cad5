"""Tests of one node: its own cases, and properties that hold for every input.

It takes a compiled node and engines. It returns the result of each case, and the smallest generated inputs which
satisfy constraints and preconditions but break a postcondition or an invariant, cause an engine fault, or make engines
diverge. Other failures of the node are counted, not reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TypeAlias

from vesper.compiler import Compiled
from vesper.engines.compare import Disagree, compare
from vesper.engines.engine import Completion, Done, Engine, Limits, Program, Request
from vesper.engines.outcome import ContractBroken, EngineFault, Failed, Outcome
from vesper.language.check.cases import Case
from vesper.language.ir.nodes import walk
from vesper.values.model import show
from vesper.verify.branches import BranchKey, BranchMap, NodeBranch, percent
from vesper.verify.claims import ClaimResult, check_claim
from vesper.verify.differential.case_text import answer_text, case_text
from vesper.verify.differential.verifier import meets
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.inputs.responses import GeneratedResponses, TooManyRequests, UnexpectedRequest, run_case, run_with
from vesper.verify.shrink.inputs import shrink
from vesper.verify.solve.goals import BranchAims

MAX_FAILURES = 3
MAX_DRAWS_PER_EXAMPLE = 10
"""Maximum draws per accepted input, before too few accepted inputs are reported."""
PROMISES = ("postcondition", "invariant")
_CALLER_PHASES = ("constraint", "precondition")

Fingerprint: TypeAlias = tuple[str, int]
"""Phase and index of a broken clause; or `engine_fault` or `disagreement`, and 0."""


@dataclass(frozen=True, slots=True)
class CaseAnswer:
    """Result of a case on one engine."""

    engine: str
    outcome: Outcome | None
    """None if the node made a request that the case does not list."""
    problem: str | None
    is_met: bool


@dataclass(frozen=True, slots=True)
class CaseResult:
    case: Case
    answers: tuple[CaseAnswer, ...]
    disagree: bool
    branches: frozenset[BranchKey] = frozenset()

    @property
    def passed(self) -> bool:
        return not self.disagree and all(answer.is_met for answer in self.answers)

    @property
    def is_our_bug(self) -> bool:
        return self.disagree or any(isinstance(answer.outcome, EngineFault) for answer in self.answers)


@dataclass(frozen=True, slots=True)
class PropertyFailure:
    """A violated property, on the smallest input found."""

    kind: str
    """`postcondition`, `invariant`, `engine_fault` or `disagreement`."""
    index: int
    """Index of the clause; 0 without one."""
    inputs: dict[str, object]
    tried: int
    """Number of inputs drawn until it was found."""
    outcomes: dict[str, Outcome]
    case: str | None
    """The failure as a case for the node; None if an input cannot be written."""

    @property
    def is_our_bug(self) -> bool:
        return self.kind not in PROMISES


@dataclass(frozen=True, slots=True)
class FailedExample:
    """An example on which the node fails."""

    code: str
    at: int | None
    """Index of the failed expression."""
    inputs: dict[str, object]
    size: int
    """Characters of the inputs as text."""


@dataclass(slots=True)
class PropertyReport:
    seed: int
    wanted: int
    drawn: int = 0
    examples: int = 0
    """Inputs that satisfied constraints and preconditions, on which the properties were checked."""
    given_up: int = 0
    """Executions that exceeded the maximum number of requests."""
    outcomes: dict[str, int] = field(default_factory=dict)
    """Counts by kind of outcome, with the code of a failure."""
    first_failed: FailedExample | None = None
    """Shortest example that fails where the first one failed, of a node without effects."""
    broken_by_answers: dict[Fingerprint, int] = field(default_factory=dict)
    """Broken promises of a node with effects. No failures, because completions were drawn by type only."""
    failures: list[PropertyFailure] = field(default_factory=list)
    branches: set[BranchKey] = field(default_factory=set)
    refused: dict[Fingerprint, int] = field(default_factory=dict)
    """Drawn inputs that are no examples, by the clause that they break; `inputs` and 0 for other refusals."""
    distinct: int = 0
    """Examples that differ from each other."""

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def is_starved(self) -> bool:
        """Return whether too few inputs were accepted for the properties to be meaningful."""
        is_refusing = sum(self.refused.values()) > self.wanted // 10
        return self.examples < self.wanted or (is_refusing and self.distinct < min(self.wanted, 10))


@dataclass
class NodeResult:
    """Results of all tests of one node."""

    compiled: Compiled
    cases: list[CaseResult] = field(default_factory=list)
    properties: PropertyReport | None = None
    claims: list[ClaimResult] = field(default_factory=list)
    """Results of `testing.properties`."""

    @cached_property
    def branch_map(self) -> BranchMap:
        return BranchMap(self.compiled)

    @property
    def branches(self) -> set[BranchKey]:
        """Branches covered by cases and examples."""
        of_cases = (each.branches for each in self.cases)
        return set().union(*of_cases, () if self.properties is None else self.properties.branches)

    @property
    def branches_total(self) -> int:
        return len(self.branch_map.branches)

    @property
    def uncovered(self) -> list[NodeBranch]:
        """Branches that neither a case nor an example covered."""
        return self.branch_map.uncovered(self.branches)

    @property
    def coverage_percent(self) -> float:
        return percent(len(self.branches), self.branches_total)

    @property
    def failed_cases(self) -> list[CaseResult]:
        return [each for each in self.cases if not each.passed]

    @property
    def passed(self) -> bool:
        is_met = not self.failed_cases and all(each.passed for each in self.claims)
        return is_met and (self.properties is None or self.properties.passed)

    @property
    def is_our_bug(self) -> bool:
        found = [] if self.properties is None else self.properties.failures
        return any(each.is_our_bug for each in self.failed_cases) or any(each.is_our_bug for each in found)


class NodeTester:
    """Tests of one node, which is loaded into the engines with the first test."""

    def __init__(self, compiled: Compiled, engines: Mapping[str, Engine]) -> None:
        self._compiled = compiled
        self._engines = engines
        self._loaded: dict[str, Program] | None = None

    @cached_property
    def _branch_map(self) -> BranchMap:
        return BranchMap(self._compiled)

    @property
    def _programs(self) -> dict[str, Program]:
        if self._loaded is None:
            self._loaded = {name: engine.load(self._compiled) for name, engine in self._engines.items()}
        return self._loaded

    def run_case(self, case: Case, limits: Limits | None = None) -> CaseResult:
        answers: list[CaseAnswer] = []
        done: list[Done] = []
        for name, program in self._programs.items():
            try:
                ended = run_case(program, case, limits)
            except UnexpectedRequest as problem:
                answers.append(CaseAnswer(name, None, str(problem), False))
                continue
            done.append(ended)
            answers.append(CaseAnswer(name, ended.outcome, None, meets(case, ended.outcome)))
        disagree = _differ(done) or len({answer.problem for answer in answers}) > 1
        branches = self._branch_map.covered_by(done[0]) if done else frozenset[BranchKey]()
        return CaseResult(case, tuple(answers), disagree, branches)

    def run_claims(self, max_examples: int, seed: int) -> list[ClaimResult]:
        """Check the properties that the node declares."""
        claims = self._compiled.properties
        return [check_claim(self._compiled, each, self._engines, self._programs, max_examples, seed) for each in claims]

    def run_properties(
        self, max_examples: int, seed: int, progress: Callable[[int], None] = lambda _: None
    ) -> PropertyReport:
        """Draw inputs until there are enough examples or failures, or too few are accepted."""
        run = _Properties(self._compiled, self._programs, max_examples, seed)
        for number, inputs in enumerate(run.inputs(), start=1):
            run.check(inputs, number)
            progress(run.report.examples)
            if run.is_over:
                break
        return run.report


class _Properties:
    def __init__(self, compiled: Compiled, programs: Mapping[str, Program], wanted: int, seed: int) -> None:
        self._compiled = compiled
        self._node = compiled.node
        self._programs = programs
        self._generator = InputGenerator(compiled.node, seed, examples=[each.inputs for each in compiled.cases])
        self._aims = BranchAims(compiled.node)
        self._responses = GeneratedResponses(compiled)
        self._branch_map = BranchMap(compiled)
        self._expected = {case.breaks for case in compiled.cases if case.breaks is not None}
        asked = (clause for phase, clauses in self._node.phases() if phase in _CALLER_PHASES for clause in clauses)
        self._before = {each.index for clause in asked for each in walk(clause.holds)}
        self._seen: set[Fingerprint] = set()
        self._shown: set[str] = set()
        self._seed = seed
        self.report = PropertyReport(seed, wanted)

    @property
    def is_over(self) -> bool:
        report = self.report
        enough = report.examples >= report.wanted or len(report.failures) >= MAX_FAILURES
        return enough or report.drawn >= report.wanted * MAX_DRAWS_PER_EXAMPLE

    def inputs(self) -> Iterator[dict[str, object]]:
        """Yield the inputs of cases first, because failures are often close to them."""
        for case in self._compiled.cases:
            if not case.effects:
                yield dict(case.inputs)
        while True:
            yield self._generator.draw(self._aims.next(lambda each: ("condition", *each) in self.report.branches))

    def check(self, inputs: dict[str, object], number: int) -> None:
        report = self.report
        report.drawn += 1
        try:
            answers = self._answers(inputs, number)
        except TooManyRequests:
            report.given_up += 1
            return
        reference = next(iter(answers.values()))
        wrong = self._find_failure(answers)
        if wrong is None and self._is_refused(reference.outcome):
            outcome = reference.outcome
            why = (outcome.phase, outcome.index) if isinstance(outcome, ContractBroken) else ("inputs", 0)
            report.refused[why] = report.refused.get(why, 0) + 1
            return
        report.examples += 1
        report.branches |= self._branch_map.covered_by(reference)
        shown = show(dict(sorted(inputs.items())))
        report.distinct += shown not in self._shown
        self._shown.add(shown)
        kind = _kind(reference.outcome)
        report.outcomes[kind] = report.outcomes.get(kind, 0) + 1
        if isinstance(reference.outcome, Failed) and self._node.is_pure():
            self._note_failed(reference.outcome, inputs, len(shown))
        if wrong is None or wrong in self._expected:
            return
        # Completions are drawn by type only, so broken promises about them are no defect.
        if wrong[0] in PROMISES and not self._node.is_pure():
            report.broken_by_answers[wrong] = report.broken_by_answers.get(wrong, 0) + 1
        elif wrong not in self._seen:
            self._seen.add(wrong)
            report.failures.append(self._shrink(wrong, inputs, number))

    def _answers(
        self, inputs: Mapping[str, object], number: int, asked: list[tuple[Request, Completion]] | None = None
    ) -> dict[str, Done]:
        # Seeded by the run's number, so that completions stay the same while shrinking, but for repeated inputs.
        seed = f"{self._seed} {number}"
        respond = self._responses.responder(seed, inputs)
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

    def _find_failure(self, answers: Mapping[str, Done]) -> Fingerprint | None:
        if any(isinstance(done.outcome, EngineFault) for done in answers.values()):
            return "engine_fault", 0
        if _differ(list(answers.values())):
            return "disagreement", 0
        outcome = next(iter(answers.values())).outcome
        if isinstance(outcome, ContractBroken) and outcome.phase in PROMISES:
            return outcome.phase, outcome.index
        return None

    def _is_refused(self, outcome: Outcome) -> bool:
        """Return whether the node rejected its inputs, or a clause before the body failed."""
        if isinstance(outcome, ContractBroken):
            return outcome.phase in _CALLER_PHASES
        return isinstance(outcome, Failed) and (outcome.at is None or outcome.at in self._before)

    def _shrink(self, wrong: Fingerprint, inputs: dict[str, object], number: int) -> PropertyFailure:
        def still_wrong(candidate: dict[str, object]) -> bool:
            try:
                return self._find_failure(self._answers(candidate, number)) == wrong
            except TooManyRequests:
                return False

        small = shrink(self._node, inputs, still_wrong)
        asked: list[tuple[Request, Completion]] = []
        answers = self._answers(small, number, asked)
        outcomes = {name: done.outcome for name, done in answers.items()}
        kind, index = wrong
        return PropertyFailure(kind, index, small, number, outcomes, self._to_case(wrong, small, number, asked))

    def _note_failed(self, failed: Failed, inputs: dict[str, object], size: int) -> None:
        """Keep the shortest of the examples that fail where the first one failed.

        It is not shrunk: executions that come close to a limit of size or digits take seconds together.
        """
        known = self.report.first_failed
        if known is None or ((known.code, known.at) == (failed.code, failed.at) and size < known.size):
            self.report.first_failed = FailedExample(failed.code, failed.at, dict(inputs), size)

    def _to_case(
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
        except ValueError:  # an invalid input, after an engine fault or a divergence in rejecting it
            return None


def _differ(done: list[Done]) -> bool:
    return any(isinstance(compare(done[0], other), Disagree) for other in done[1:])


def _kind(outcome: Outcome) -> str:
    if isinstance(outcome, ContractBroken):
        return f"{outcome.phase} broken"
    if isinstance(outcome, Failed):
        return f"failed {outcome.code}"
    return outcome.kind.replace("_", " ")
