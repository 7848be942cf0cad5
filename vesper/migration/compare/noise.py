"""A/A: does an engine agree with itself?

The same engine runs twice on the same inputs and the same answers. The language is deterministic, so that an engine of
ours never differs from itself, unless it is broken; a function of the user's own may (it asks the clock, iterates over
a set, caches). Where it does, agreement is luck and disagreement says nothing: the node does not rise until somebody
has looked (`vesper divergences`). It is checked on a few percent of what agrees.
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
EVERY = 50
"""One in so many agreements is checked."""


def is_checked(fingerprint: int) -> bool:
    """Whether an execution is among those that are run twice: by the fingerprint of what it read, which is a keyed hash
    already, so that nothing more is computed for the others."""
    return fingerprint % EVERY == 0


def noise_of(program: Program, compiled: Compiled, transcript: Transcript, comparator: Comparator) -> Difference | None:
    """Where an engine differs from itself on an execution that was written down; None where it does not. Nothing is
    performed."""
    # Both load the parser, which nobody needs before there is something to look at twice.
    from vesper.migration.compare.rerun_from_log import Given, compared, done_of
    from vesper.verify.differential.verifier import steps_by_expression

    given = Given.of(transcript, compiled.node)
    steps = steps_by_expression(compiled.node)
    return twice(lambda: done_of(program, given), lambda one, other: compared(one, other, comparator, steps))


def twice(run: Callable[[], T], judge: Callable[[T, T], Verdict]) -> Difference | None:
    """Where two runs of the same thing differ; None where they do not, or nobody can say."""
    verdict = judge(run(), run())
    return replace(verdict, kind="noise") if isinstance(verdict, Difference) else None


def noise_between(first: Agreement, again: Report | None) -> Difference | None:
    """Where a follower that agreed did something else when it followed the same records once more; None where it did
    not, or where that came to nothing. A fault is a fault, whoever finds it."""
    match again:
        case Disagreement(difference):
            return replace(difference, kind="noise")
        case Agreement(note, fingerprint) if (note.name, fingerprint) != (first.note.name, first.fingerprint):
            what = "the path" if note.name != first.note.name else "what was read"
            return Difference("noise", what, first.note.ending, note.ending)
        case _:
            return None


def checked(follow: Callable[[], Report | None], transcript: Transcript, execution: str | None = None) -> Report | None:
    """What following comes to; of one in so many agreements, after following once more. Noise is reported in the place
    of the agreement."""
    report = follow()
    if not isinstance(report, Agreement) or not is_checked(report.fingerprint):
        return report
    again = follow()
    if isinstance(again, Fault):
        return again
    difference = noise_between(report, again)
    return report if difference is None else Disagreement(difference, None, None, transcript, None, execution)
