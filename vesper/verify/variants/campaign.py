"""Campaigns of given texts: variants of nodes, and kept programs, on every engine.

A variant that the checker refuses is dropped and counted; anything else that is wrong is a failure, as for a random
program.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from vesper.compiler import compile_source
from vesper.engines.engine import Engine
from vesper.language.diagnostics.render.full import render_full
from vesper.language.diagnostics.source import SourceFile
from vesper.verify.corpus import KeptProgram
from vesper.verify.differential.verifier import Verifier
from vesper.verify.programs.campaign import INPUTS_PER_PROGRAM, ProgramFailure, ProgramsReport, program_seeds
from vesper.verify.variants.draw import draw_variant
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
) -> VariantsReport:
    """Draw variants of documents and run each on drawn inputs, until a limit of count, time or failures.

    Raises `NoVariants` if none of the documents compiles on its own.
    """
    report = VariantsReport(seed, tuple(engines))
    begun = time.monotonic()
    for number, each in enumerate(program_seeds(seed, first + count)[first:], start=1):
        text = draw_variant(documents, each)
        failure = examine_text(text, variant_id(each), engines, each, inputs_each, report)
        if failure is not None and failure.kind == "refused":
            report.refused += 1
        else:
            report.programs += 1
        if failure is not None and failure.kind != "refused":
            report.failures.append(reduce_failure(failure, variant_id(each), engines, inputs_each, max_tries))
        progress(number)
        is_over = seconds is not None and time.monotonic() - begun >= seconds
        if is_over or len(report.failures) >= stop_after:
            break
    report.elapsed_seconds = time.monotonic() - begun
    return report


def verify_kept(
    engines: Mapping[str, Engine], kept: Sequence[KeptProgram], inputs_each: int = INPUTS_PER_KEPT
) -> ProgramsReport:
    """Run every kept program on the inputs of its seed. One that the checker refuses is a failure too."""
    report = ProgramsReport(0, tuple(engines))
    begun = time.monotonic()
    for each in kept:
        report.programs += 1
        failure = examine_text(each.text, each.path.stem, engines, each.seed, inputs_each, report)
        if failure is not None:
            report.failures.append(failure)
    report.elapsed_seconds = time.monotonic() - begun
    return report


def variant_id(seed: int) -> str:
    return f"variant_{seed}_v1"


def examine_text(
    text: str,
    node_id: str,
    engines: Mapping[str, Engine],
    seed: int,
    inputs_each: int,
    report: ProgramsReport | None = None,
) -> ProgramFailure | None:
    """Compile and run one text; return its failure, or None."""
    try:
        compiled, bag = compile_source(SourceFile(f"{node_id}.vsp", text), judge_contracts=False)
        if compiled is None:
            first = bag.sorted()[0]
            return ProgramFailure(seed, "refused", first.code.name, text, render_full(bag.source, first))
        verifier = Verifier(compiled, engines, seed, seeks_boundaries=False, holds_to_promises=False)
        found = verifier.run(inputs_each, stop_after=1)
    except Exception as error:  # noqa: BLE001  # whatever a text raises is a defect of Vesper
        last = traceback.extract_tb(error.__traceback__)[-1]
        fingerprint = f"{type(error).__name__} {last.filename}:{last.lineno}"
        return ProgramFailure(seed, "raised", fingerprint, text, traceback.format_exc())
    if report is not None:
        report.executions += found.executions
        report.not_comparable += found.not_comparable
        for kind, times in found.outcomes.items():
            report.outcomes[kind] = report.outcomes.get(kind, 0) + times
    if not found.differences:
        return None
    return ProgramFailure(seed, "disagreement", "disagreement", text, "", compiled, found.differences[0])


def reduce_failure(
    failure: ProgramFailure, node_id: str, engines: Mapping[str, Engine], inputs_each: int, max_tries: int = MAX_TRIES
) -> ProgramFailure:
    """Return the same failure of a smaller text."""
    smallest = failure

    def still_fails(text: str) -> bool:
        nonlocal smallest
        found = examine_text(text, node_id, engines, failure.seed, inputs_each)
        if found is None or (found.kind, found.fingerprint) != (failure.kind, failure.fingerprint):
            return False
        smallest = found
        return True

    reduce_document(failure.text, node_id, still_fails, max_tries)
    return replace(smallest, seed=failure.seed)
