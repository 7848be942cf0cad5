"""Campaigns of random programs: draw, compile, run on every engine, compare, reduce failures.

A failure is a rejected program, an exception or a divergence. Each is a defect of the language or of the generator.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from vesper.codegen.module import generate_module
from vesper.compiler import Compiled, compile_source
from vesper.engines.engine import Engine
from vesper.language.diagnostics.render.full import render_full
from vesper.language.diagnostics.source import SourceFile
from vesper.verify.differential.beat import Beat, ignore_beat
from vesper.verify.differential.verifier import Difference, Verifier
from vesper.verify.differential.ways.repeated import repeated_ways
from vesper.verify.differential.ways.way import WayMaker
from vesper.verify.programs.nodes import draw_program
from vesper.verify.programs.reduce import MAX_TRIES, reduce_program
from vesper.verify.programs.text import Draft

INPUTS_PER_PROGRAM = 20
REDUCTION_SECONDS = 60.0
"""Time limit of one reduction."""
PROGRAMS_PER_GENERATION = 5
"""One in this many programs is also generated as plain Python.

Generation takes as long as all executions of a program. The plain form is not run here; other tests show that it is the
traced form without marks.
"""

_Candidate = TypeVar("_Candidate")


@dataclass(frozen=True, slots=True)
class ProgramFailure:
    """One failing program, reduced."""

    seed: int
    kind: str
    """`refused`, `raised`, `disagreement` or `crashed`."""
    fingerprint: str
    """Key of the failure, which stays the same while it is reduced."""
    text: str
    """The `.vsp` document."""
    detail: str
    """Diagnostic, traceback or crash; empty for a divergence."""
    compiled: Compiled | None = None
    difference: Difference | None = None


@dataclass(slots=True)
class ProgramsReport:
    seed: int
    engines: tuple[str, ...]
    programs: int = 0
    executions: int = 0
    not_comparable: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    ways: dict[str, int] = field(default_factory=dict)
    """Number of compared executions of each way."""
    failures: list[ProgramFailure] = field(default_factory=list)
    elapsed_seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return not self.failures and self.not_comparable * 100 <= self.executions


def program_path(draft: Draft) -> str:
    return f"{draft.node_id}.vsp"


def program_seeds(seed: int, count: int) -> range:
    """Return the seeds of a campaign; those of two campaigns do not overlap."""
    return range(seed * 1_000_000, seed * 1_000_000 + count)


def verify_programs(
    engines: Mapping[str, Engine],
    count: int,
    seed: int,
    inputs_each: int = INPUTS_PER_PROGRAM,
    progress: Callable[[int], None] = lambda _: None,
    stop_after: int = 3,
    max_tries: int = MAX_TRIES,
    seconds: float | None = None,
    first: int = 0,
    ways: Sequence[WayMaker] = (repeated_ways,),
    beat: Beat = ignore_beat,
) -> ProgramsReport:
    """Draw programs and run each on drawn inputs, until a limit of count, time or failures."""
    report = ProgramsReport(seed, tuple(engines))
    begun = time.monotonic()
    for number, each in enumerate(program_seeds(seed, first + count)[first:], start=1):
        report.programs += 1
        beat("draw", 0, "", None)
        draft = draw_program(each)
        failure = examine(draft, engines, each, inputs_each, report, ways, beat)
        if failure is not None:
            report.failures.append(reduce_failure(draft, failure, engines, inputs_each, max_tries, ways, beat))
        progress(number)
        is_over = seconds is not None and time.monotonic() - begun >= seconds
        if is_over or len(report.failures) >= stop_after:
            break
    report.elapsed_seconds = time.monotonic() - begun
    return report


def examine(
    draft: Draft,
    engines: Mapping[str, Engine],
    seed: int,
    inputs_each: int,
    report: ProgramsReport | None = None,
    ways: Sequence[WayMaker] = (repeated_ways,),
    beat: Beat = ignore_beat,
) -> ProgramFailure | None:
    """Compile and run one program; return its failure, or None."""
    source = SourceFile(program_path(draft), draft.text())
    return examine_text(source, engines, seed, inputs_each, report, ways, beat)


def examine_text(
    source: SourceFile,
    engines: Mapping[str, Engine],
    seed: int,
    inputs_each: int,
    report: ProgramsReport | None = None,
    ways: Sequence[WayMaker] = (repeated_ways,),
    beat: Beat = ignore_beat,
) -> ProgramFailure | None:
    """Compile and run the text of a program; return its failure, or None."""
    text = source.text
    try:
        beat("compile", 0, "", None)
        compiled, bag = compile_source(source, judge_contracts=False)
        if compiled is None:
            first = bag.sorted()[0]
            return ProgramFailure(seed, "refused", first.code.name, text, render_full(bag.source, first))
        if seed % PROGRAMS_PER_GENERATION == 0:
            generate_module(compiled.node)  # raises if generation fails
        # Boundary probes cost more than the twenty inputs that would profit from them.
        verifier = Verifier(
            compiled, engines, seed, seeks_boundaries=False, checks_postconditions=False, ways=ways, beat=beat
        )
        found = verifier.run(inputs_each, stop_after=1)
    except Exception as error:  # noqa: BLE001  # a drawn program must not raise anything
        fingerprint = f"{type(error).__name__} {_place(error)}"
        return ProgramFailure(seed, "raised", fingerprint, text, traceback.format_exc())
    if report is not None:
        report.executions += found.executions
        report.not_comparable += found.not_comparable
        for kind, times in found.outcomes.items():
            report.outcomes[kind] = report.outcomes.get(kind, 0) + times
        for way, times in found.ways.items():
            report.ways[way] = report.ways.get(way, 0) + times
    if not found.differences:
        return None
    difference = found.differences[0]
    fingerprint = f"disagreement {difference.way_name or 'engines'}"
    return ProgramFailure(seed, "disagreement", fingerprint, text, "", compiled, difference)


def _place(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename}:{last.lineno}"


def reduce_failure(
    draft: Draft,
    failure: ProgramFailure,
    engines: Mapping[str, Engine],
    inputs_each: int,
    max_tries: int = MAX_TRIES,
    ways: Sequence[WayMaker] = (repeated_ways,),
    beat: Beat = ignore_beat,
) -> ProgramFailure:
    """Return the same failure of a smaller program."""

    def examine_candidate(candidate: Draft) -> ProgramFailure | None:
        return examine(candidate, engines, failure.seed, inputs_each, ways=ways, beat=beat)

    return find_smallest(failure, examine_candidate, lambda fails: reduce_program(draft, fails, max_tries))


def find_smallest(
    failure: ProgramFailure,
    examine_candidate: Callable[[_Candidate], ProgramFailure | None],
    reduce: Callable[[Callable[[_Candidate], bool]], object],
) -> ProgramFailure:
    """Return the last failure of the same kind while `reduce` tries smaller candidates, for some seconds."""
    smallest = failure
    end = time.monotonic() + REDUCTION_SECONDS

    def still_fails(candidate: _Candidate) -> bool:
        nonlocal smallest
        if time.monotonic() >= end:
            return False
        found = examine_candidate(candidate)
        if found is None or (found.kind, found.fingerprint) != (failure.kind, failure.fingerprint):
            return False
        smallest = found
        return True

    reduce(still_fails)
    return smallest
