"""Results of one run so far: nodes, their crashes, and programs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from vesper.compiler import Compiled, compile_source
from vesper.language.diagnostics.source import SourceFile
from vesper.verify.differential.coverage import CoverageState
from vesper.verify.differential.regressions import program_name
from vesper.verify.differential.verifier import MAX_DISAGREEMENTS, Report
from vesper.verify.programs.campaign import ProgramFailure, ProgramsReport, program_seeds
from vesper.verify.programs.nodes import draw_program
from vesper.verify.variants.draw import draw_variant
from vesper.verify.workers.crashes import Crash, crash_lines
from vesper.verify.workers.merging import add_report, empty_report
from vesper.verify.workers.state import RunState
from vesper.verify.workers.tasks import ProgramResult, Reduced, Workload

MAX_CRASHES = 3
"""Crashes after which a node is given up."""
MAX_PROGRAM_FAILURES = 3


@dataclass(slots=True)
class NodeProgress:
    """Progress and results of one node."""

    compiled: Compiled
    report: Report
    partial: Report | None = None
    """Report of a task that goes on."""
    crashes: list[Crash] = field(default_factory=list)
    skipped: frozenset[int] = frozenset()
    left_out: frozenset[str] = frozenset()
    """Ways that crashed."""
    coverage: CoverageState | None = None
    is_begun: bool = False
    is_done: bool = False
    is_given_up: bool = False

    @property
    def is_hanging(self) -> bool:
        return any(each.ending.kind == "hang" for each in self.crashes)

    @property
    def missing_differences(self) -> int:
        return MAX_DISAGREEMENTS - len(self.report.differences)

    def leave_out(self, crash: Crash) -> None:
        """Exclude the crashed way or input from later tasks; of a case, also the input that repeats it."""
        if crash.stage == "way":
            self.left_out |= {crash.engine}
            return
        listed = [-each for each, case in enumerate(self.compiled.cases, start=1) if not case.effects]
        self.skipped |= {crash.number}
        if crash.number in listed:
            self.skipped |= {listed.index(crash.number) + 1}

    def keep_partial(self) -> None:
        """Add the report of a task that will not end."""
        if self.partial is not None:
            add_report(self.report, self.partial)
            self.partial = None

    def take_partial(self, report: Report) -> None:
        """Keep the longer of two reports: a repeated task begins anew."""
        if self.partial is None or report.executions >= self.partial.executions:
            self.partial = report


def first_progress(work: Workload, state: RunState | None) -> list[NodeProgress]:
    """Return the progress of each node before a run, with the coverage of earlier runs."""
    against = None if work.function is None else work.function.name
    nodes = []
    for each in work.nodes:
        known = None if state is None else state.nodes[each.semantic_hash].coverage
        report = empty_report(each, tuple(work.engines), work.seed, against, known)
        nodes.append(NodeProgress(each, report, coverage=known))
    return nodes


class ProgramsProgress:
    """Results of kept and random programs.

    In order, the report is that of a run of one program after the other, which stops after some failures.
    """

    def __init__(self, work: Workload, is_ordered: bool) -> None:
        self._work = work
        self._is_ordered = is_ordered
        self._waiting: dict[int, ProgramsReport] = {}
        """Results whose predecessors are missing."""
        self._next = 0
        self._kept = 0
        """Failures of kept programs, which stop nothing."""
        self.report = ProgramsReport(work.seed, tuple(work.engines))

    @property
    def is_over(self) -> bool:
        """Return whether enough random programs failed."""
        waiting = sum(len(each.failures) for each in self._waiting.values())
        return len(self.report.failures) - self._kept + waiting >= MAX_PROGRAM_FAILURES

    def take(self, result: ProgramResult, is_kept: bool) -> None:
        part = result.report
        part.failures = [_with_node(each) for each in part.failures]
        if is_kept or not self._is_ordered:
            self._kept += len(part.failures) if is_kept else 0
            add_report(self.report, part)
            return
        self._waiting[result.number] = part
        while self._next in self._waiting and len(self.report.failures) - self._kept < MAX_PROGRAM_FAILURES:
            add_report(self.report, self._waiting.pop(self._next))
            self._next += 1

    def take_crash(self, number: int, is_kept: bool, crash: Crash, reduced: Reduced | None) -> None:
        """Add a program that crashed as a failure."""
        seed = self._work.kept[number].seed if is_kept else program_seeds(self._work.seed, number + 1)[number]
        if is_kept:
            text = self._work.kept[number].text
        elif reduced is not None and reduced.text is not None:
            text = reduced.text
            crash = replace(crash, inputs=reduced.inputs, is_reduced=True)
        elif crash.stage == "draw":
            text = ""
        elif self._work.is_variant(number):
            text = draw_variant(self._work.documents, seed)
        else:
            text = draw_program(seed).text()
        detail = "\n".join([f"{crash.subject} {crash.ending.text} {crash.place}", *crash_lines(crash, seed)])
        failure = ProgramFailure(seed, "crashed", crash.ending.kind, text, detail)
        part = ProgramsReport(self._work.seed, self.report.engines, programs=1, failures=[failure])
        self.take(ProgramResult(number, part), is_kept)

    def finish(self) -> ProgramsReport:
        """Return the report; after an interruption, with the results that followed a gap."""
        if len(self.report.failures) - self._kept < MAX_PROGRAM_FAILURES:
            for _, part in sorted(self._waiting.items()):
                add_report(self.report, part)
        self.report.failures.sort(key=lambda each: each.seed)
        return self.report


def _with_node(failure: ProgramFailure) -> ProgramFailure:
    """Return a failure with its compiled node, which a worker cannot send."""
    if failure.difference is None:
        return failure
    compiled, _ = compile_source(SourceFile(program_name(failure.text), failure.text), judge_contracts=False)
    return replace(failure, compiled=compiled)
