"""Campaigns of given texts: variants of nodes, and kept programs, on every engine.

A variant that the checker refuses is dropped and counted; anything else that is wrong is a failure, as for a random
program.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from vesper.engines.engine import Engine
from vesper.language.diagnostics.source import SourceFile
from vesper.verify.corpus import KeptProgram
from vesper.verify.differential.beat import Beat, ignore_beat
from vesper.verify.differential.ways.repeated import repeated_ways
from vesper.verify.differential.ways.way import WayMaker
from vesper.verify.programs.campaign import (
    INPUTS_PER_PROGRAM,
    ProgramFailure,
    ProgramsReport,
    examine_text,
    find_smallest,
    program_seeds,
)
from vesper.verify.variants.draw import draw_variant, variant_id
from vesper.verify.variants.reduce import MAX_TRIES, reduce_document

INPUTS_PER_KEPT = 6
"""Inputs of a kept program; it was kept for what these reach."""


@dataclass(slots=True)
class VariantsReport(ProgramsReport):
    """Results of a campaign of variants; `programs` are those that were run."""

    refused: int = 0
    """Variants that the checker refused."""


def verify_variants(
    engines: Mapping[str, Engine],
    documents: Sequence[str],
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
) -> VariantsReport:
    """Draw variants of documents and run each on drawn inputs, until a limit of count, time or failures.

    Raises `NoVariants` if none of the documents compiles on its own.
    """
    report = VariantsReport(seed, tuple(engines))
    begun = time.monotonic()
    for number, each in enumerate(program_seeds(seed, first + count)[first:], start=1):
        beat("draw", 0, "", None)
        text = draw_variant(documents, each)
        failure = examine_text(variant_source(text, each), engines, each, inputs_each, report, ways, beat)
        if failure is not None and failure.kind == "refused":
            report.refused += 1
        else:
            report.programs += 1
        if failure is not None and failure.kind != "refused":
            report.failures.append(reduce_failure(failure, engines, inputs_each, max_tries, ways, beat))
        progress(number)
        is_over = seconds is not None and time.monotonic() - begun >= seconds
        if is_over or len(report.failures) >= stop_after:
            break
    report.elapsed_seconds = time.monotonic() - begun
    return report


def verify_kept(
    engines: Mapping[str, Engine],
    kept: Sequence[KeptProgram],
    inputs_each: int = INPUTS_PER_KEPT,
    ways: Sequence[WayMaker] = (repeated_ways,),
    beat: Beat = ignore_beat,
) -> ProgramsReport:
    """Run every kept program on the inputs of its seed. One that the checker refuses is a failure too."""
    report = ProgramsReport(0, tuple(engines))
    begun = time.monotonic()
    for each in kept:
        report.programs += 1
        failure = examine_text(
            SourceFile(each.path.name, each.text), engines, each.seed, inputs_each, report, ways, beat
        )
        if failure is not None:
            report.failures.append(failure)
    report.elapsed_seconds = time.monotonic() - begun
    return report


def variant_source(text: str, seed: int) -> SourceFile:
    return SourceFile(f"{variant_id(seed)}.vsp", text)


def reduce_failure(
    failure: ProgramFailure,
    engines: Mapping[str, Engine],
    inputs_each: int,
    max_tries: int = MAX_TRIES,
    ways: Sequence[WayMaker] = (repeated_ways,),
    beat: Beat = ignore_beat,
) -> ProgramFailure:
    """Return the same failure of a smaller text."""

    def examine_candidate(text: str) -> ProgramFailure | None:
        source = variant_source(text, failure.seed)
        return examine_text(source, engines, failure.seed, inputs_each, None, ways, beat)

    name = variant_id(failure.seed)
    return find_smallest(
        failure, examine_candidate, lambda fails: reduce_document(failure.text, name, fails, max_tries)
    )
