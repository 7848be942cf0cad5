"""A/A: does an engine agree with itself?

The same engine runs twice on the same inputs and the same answers. The language is deterministic, so that an engine of
ours never differs from itself; a function of the user's own may (it asks the clock, iterates over a set, caches). Where
it does, agreement of two engines is luck and disagreement says nothing: the node does not rise until somebody has
looked (`vesper divergences`). It is checked on a few percent of what is compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from vesper.compiler import Compiled
from vesper.engines.engine import Program
from vesper.migration.again import Given, compared, done_of
from vesper.migration.comparator import Comparator, Verdict
from vesper.migration.diverged import divergence_of
from vesper.migration.reports import Difference, Disagreement
from vesper.migration.routing import Salt, is_below, ticket
from vesper.migration.state import Noisy
from vesper.migration.store import Happened
from vesper.migration.transcript import Transcript
from vesper.verify.differential import steps_by_expression

T = TypeVar("T")
SHARE = 200
"""Of ten thousand comparisons."""


def is_checked(node: str, execution: bytes, key: bytes) -> bool:
    """Whether this execution is among those that are run twice; drawn apart from canary and sample."""
    return is_below(ticket(node, execution, key, Salt.NOISE), SHARE)


def noise_of(program: Program, compiled: Compiled, transcript: Transcript, comparator: Comparator) -> Difference | None:
    """Where an engine differs from itself on an execution that was written down; None where it does not. Nothing is
    performed."""
    given = Given.of(transcript, compiled.node)
    steps = steps_by_expression(compiled.node)
    return twice(lambda: done_of(program, given), lambda one, other: compared(one, other, comparator, steps))


def twice(run: Callable[[], T], judge: Callable[[T, T], Verdict]) -> Difference | None:
    """Where two runs of the same thing differ; None where they do not, or nobody can say."""
    verdict = judge(run(), run())
    return replace(verdict, kind="noise") if isinstance(verdict, Difference) else None


def happened_of_noise(
    difference: Difference,
    engine: str,
    compiled: Compiled,
    transcript: Transcript,
    is_sensitive: bool,
    now_us: int,
    execution: str | None = None,
) -> Happened:
    """What the store is told: the event, and what is kept to look at. It is closed as a divergence is."""
    report = Disagreement(difference, None, None, transcript, None, execution)
    kept = divergence_of(report, compiled, is_sensitive, now_us, (engine, engine))
    return Happened(Noisy(kept.fingerprint, kept.where), kept)
