"""A/A comparison: detection of an engine that differs from itself.

The same engine runs twice on the same inputs and completions. The language is deterministic, so an engine differs from
itself only if it is broken; a user's function may (clock, iteration over a set, cache). Then neither agreement nor
disagreement is evidence, and the node does not rise until the noise is closed (`vesper divergences`). A small share of
the agreements is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from vesper.compiler import Compiled
from vesper.engines.engine import Program
from vesper.migration.compare.comparator import Comparator, Verdict
from vesper.migration.compare.reports import Agreement, Difference, Disagreement, Fault, Report
from vesper.migration.compare.transcript import Transcript

T = TypeVar("T")
CHECK_INTERVAL = 50
"""One in this many agreements is checked."""


def is_checked(fingerprint: int) -> bool:
    """Return True where an execution is run twice.

    The choice uses the fingerprint, which is a keyed hash already, so that it costs nothing for the others.
    """
    return fingerprint % CHECK_INTERVAL == 0


def noise_of(program: Program, compiled: Compiled, transcript: Transcript, comparator: Comparator) -> Difference | None:
    """Return where an engine differs from itself on a recorded execution; None where it does not.

    Nothing is performed.
    """
    # Imported late: both load the parser, which a process without noise checks does not need.
    from vesper.migration.compare.rerun_from_log import Given, compare_done, run_to_end
    from vesper.verify.differential.verifier import steps_by_expression

    given = Given.of(transcript, compiled.node)
    steps = steps_by_expression(compiled.node)
    return compare_runs(
        lambda: run_to_end(program, given), lambda one, other: compare_done(one, other, comparator, steps)
    )


def compare_runs(run: Callable[[], T], judge: Callable[[T, T], Verdict]) -> Difference | None:
    """Return where two runs differ; None where they agree or are incomparable."""
    verdict = judge(run(), run())
    return replace(verdict, kind="noise") if isinstance(verdict, Difference) else None


def noise_between(first: Agreement, again: Report | None) -> Difference | None:
    """Return where a follower differs from its earlier agreement on the same records.

    None if it does not, or if the second run has no verdict. A fault is reported as such by the caller.
    """
    match again:
        case Disagreement(difference):
            return replace(difference, kind="noise")
        case Agreement(note, fingerprint) if (note.name, fingerprint) != (first.note.name, first.fingerprint):
            what = "the path" if note.name != first.note.name else "what was read"
            return Difference("noise", what, first.note.ending, note.ending)
        case _:
            return None


def follow_with_check(
    follow: Callable[[], Report | None], transcript: Transcript, execution: str | None = None
) -> Report | None:
    """Return the report of a follower, with a second run for one in `CHECK_INTERVAL` agreements.

    Noise replaces the agreement in the report.
    """
    report = follow()
    if not isinstance(report, Agreement) or not is_checked(report.fingerprint):
        return report
    again = follow()
    if isinstance(again, Fault):
        return again
    difference = noise_between(report, again)
    return report if difference is None else Disagreement(difference, None, None, transcript, None, execution)
