"""The work of a worker process: its tasks, one after the other."""

from __future__ import annotations

import time
import traceback
from dataclasses import replace
from multiprocessing.connection import Connection

from vesper.compiler.reading import shown_path
from vesper.language.diagnostics.source import SourceFile
from vesper.verify.differential.against import BadAnswer
from vesper.verify.differential.verifier import Verifier
from vesper.verify.programs.campaign import (
    INPUTS_PER_PROGRAM,
    ProgramsReport,
    examine_text,
    verify_programs,
)
from vesper.verify.variants.campaign import verify_variants
from vesper.verify.workers.crashes import ending_of_exception
from vesper.verify.workers.process import WorkerLimits, clear_errors
from vesper.verify.workers.reduction import REDUCTION_SECONDS, reduce_crash
from vesper.verify.workers.tasks import (
    Finished,
    Message,
    NodeResult,
    NodeTask,
    ProgramResult,
    ProgramsTask,
    Raised,
    ReductionTask,
    Task,
    Unusable,
    Workload,
)
from vesper.verify.workers.watch import Watch

_MAX_VERIFIERS = 64
"""Loaded nodes that a worker keeps for later rounds."""
_PARTIAL_SECONDS = 1.0
"""Interval at which a report is sent while its task goes on."""
_HANGING_FACTOR = 1 / 3
"""Share of the time limit for a node that has hung before."""


class Worker:
    def __init__(self, work: Workload, limits: WorkerLimits, link: Connection, watch: Watch) -> None:
        self._work = work
        self._limits = limits
        self._link = link
        self._watch = watch
        self._verifiers: dict[int, Verifier] = {}
        """The nodes of the latest tasks, the oldest first."""

    def serve(self) -> None:
        """Do tasks until the parent closes the link."""
        while True:
            try:
                task: Task = self._link.recv()
            except EOFError:
                return
            clear_errors()
            self._send(self._do(task))

    def _do(self, task: Task) -> Message:
        try:
            match task:
                case NodeTask():
                    self._verify_node(task)
                case ProgramsTask():
                    self._verify_programs(task)
                case ReductionTask():
                    self._watch.begin(self._limits.seconds + REDUCTION_SECONDS)
                    reduce_crash(task, self._work, self._watch, self._send)
        except BadAnswer as problem:
            return Unusable(str(problem))
        except BaseException as error:  # noqa: BLE001  # a panic of the engine is no `Exception`; the parent reports it
            return Raised(ending_of_exception(error, self._limits.mebibytes), traceback.format_exc())
        return Finished()

    def _send(self, message: Message) -> None:
        self._link.send(message)

    def _verify_node(self, task: NodeTask) -> None:
        self._watch.begin(self._limits.seconds * (_HANGING_FACTOR if task.is_hanging else 1))
        verifier = self._verifiers.pop(task.node, None)
        if verifier is None:
            work = self._work
            verifier = Verifier(
                work.nodes[task.node],
                work.engines,
                work.seed,
                against=work.function,
                ways=work.ways,
                beat=self._watch.beat,
            )
        verifier.begin_report(task.known, task.left_out)
        before, loaded = verifier.coverage_size, verifier
        sent_at, findings = time.monotonic(), 0

        def send_partial(_: int) -> None:
            nonlocal sent_at, findings
            found = len(loaded.report.differences) + len(loaded.report.broken)
            if found > findings or time.monotonic() - sent_at >= _PARTIAL_SECONDS:
                self._send(NodeResult(loaded.partial_report(), is_partial=True))
                sent_at, findings = time.monotonic(), found

        first = task.numbers[0]
        report = verifier.run(len(task.numbers), send_partial, task.stop_after, task.seconds, first, task.skipped)
        if task.is_continued:
            self._verifiers[task.node] = verifier
            if len(self._verifiers) > _MAX_VERIFIERS:
                del self._verifiers[next(iter(self._verifiers))]
        has_grown = verifier.coverage_size > before
        self._send(NodeResult(report, False, has_grown, verifier.coverage_state() if task.is_continued else None))

    def _verify_programs(self, task: ProgramsTask) -> None:
        begun = time.monotonic()
        for number in task.numbers:
            self._watch.begin(self._limits.seconds)
            self._send(ProgramResult(number, self._verify_program(number, task.is_kept)))
            if task.seconds is not None and time.monotonic() - begun >= task.seconds:
                return

    def _verify_program(self, number: int, is_kept: bool) -> ProgramsReport:
        engines, seed, ways, beat = self._work.engines, self._work.seed, self._work.ways, self._watch.beat
        if is_kept:
            report = ProgramsReport(seed, tuple(engines), programs=1)
            begun = time.monotonic()
            kept = self._work.kept[number]
            source = SourceFile(shown_path(kept.path.as_posix()), kept.text)
            failure = examine_text(source, engines, kept.seed, INPUTS_PER_PROGRAM, report, ways, beat)
            report.failures = [] if failure is None else [failure]
            report.elapsed_seconds = time.monotonic() - begun
        elif self._work.is_variant(number):
            documents = self._work.documents
            report = verify_variants(engines, documents, 1, seed, first=number, ways=ways, beat=beat)
        else:
            report = verify_programs(engines, 1, seed, first=number, ways=ways, beat=beat)
        report.failures = [replace(each, compiled=None) for each in report.failures]
        return report
