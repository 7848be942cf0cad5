"""Relations of random programs: draw, compile, check the relations of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from vesper.compiler import compile_source
from vesper.engines.engine import Engine
from vesper.language.diagnostics.source import SourceFile
from vesper.verify.programs.campaign import program_path, program_seeds
from vesper.verify.programs.nodes import draw_program
from vesper.verify.relations.catalog import ALL_RELATIONS
from vesper.verify.relations.checking import verify_relations
from vesper.verify.relations.report import RelationsReport
from vesper.verify.relations.rewritings import Relation

PROGRAMS_PER_CHECK = 5
"""One in this many programs of a campaign has its relations checked."""
INPUTS_PER_PROGRAM = 6


def verify_program_relations(
    engines: Mapping[str, Engine],
    count: int,
    seed: int,
    every: int = PROGRAMS_PER_CHECK,
    inputs_each: int = INPUTS_PER_PROGRAM,
    relations: Sequence[Relation] = ALL_RELATIONS,
    progress: Callable[[int], None] = lambda _: None,
    stop_after: int = 3,
    seconds: float | None = None,
    first: int = 0,
) -> RelationsReport:
    """Check the relations of one in `every` programs, until a limit is reached.

    A program that the checker refuses is a failure of `verify_programs`, which draws the same ones.
    """
    report = RelationsReport(seed, tuple(engines))
    begun = time.monotonic()
    for number, each in enumerate(program_seeds(seed, first + count)[first::every], start=1):
        draft = draw_program(each)
        compiled, _ = compile_source(SourceFile(program_path(draft), draft.text()), judge_contracts=False)
        if compiled is not None:
            report.add(verify_relations(compiled, engines, each, inputs_each, relations))
        progress(number)
        is_over = seconds is not None and time.monotonic() - begun >= seconds
        if is_over or len(report.failures) >= stop_after:
            break
    report.elapsed_seconds = time.monotonic() - begun
    return report
