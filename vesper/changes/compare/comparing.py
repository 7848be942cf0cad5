"""`compare`: two versions are different with witnesses, equal, or without a difference in N inputs.

The order: equal semantic hashes, all inputs where they are few, a short search, the solver, and the search again for
the time that is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from vesper.changes.compare.search import PLATEAU, Search, SearchLimits, SearchResult
from vesper.changes.compare.solving import solve
from vesper.changes.compare.versions import VersionPair, has_same_semantics
from vesper.changes.compare.witness import Witness, WitnessMaker
from vesper.compiler import Compiled

DEFAULT_SECONDS = 10.0
DEFAULT_INPUTS = 100_000
DEFAULT_WITNESSES = 5
_FIRST_SHARE = 0.3
"""Share of the time until the solver begins."""
_FIRST_INPUTS = 1_500
_SOLVER_SHARE = 0.8
"""Share of the time until the search goes on."""
Verdict = Literal["different", "equal", "none found"]


@dataclass(frozen=True, slots=True)
class CompareLimits:
    seconds: float = DEFAULT_SECONDS
    max_inputs: int = DEFAULT_INPUTS
    max_witnesses: int = DEFAULT_WITNESSES
    plateau: int = PLATEAU
    """Inputs without a new differing pair of paths after which the search ends."""


@dataclass
class CompareResult:
    """The answer to one comparison."""

    pair: VersionPair
    verdict: Verdict
    reason: str
    """Why the versions are equal, or what the search was limited by."""
    witnesses: list[Witness] = field(default_factory=list)
    searched: SearchResult = field(default_factory=SearchResult)
    seconds: float = 0.0
    seed: int = 0
    solver: str = ""
    """What the solver found, or why it was not used."""

    @property
    def interface(self) -> tuple[str, ...]:
        return tuple(each.text for each in self.pair.rule.interface)


def compare_versions(
    before: Compiled,
    after: Compiled,
    limits: CompareLimits | None = None,
    seed: int = 0,
    progress: Callable[[int], None] = lambda _: None,
    compares_acceptance: bool = False,
) -> CompareResult:
    """Compare two versions of a node. Raises `EnginesDisagree`.

    With `compares_acceptance`, only inputs that the version before accepts and the other refuses are witnesses.
    """
    limits, begun = limits or CompareLimits(), time.monotonic()
    pair = VersionPair(before, after, compares_acceptance)
    result = CompareResult(pair, "equal", "the two have the same semantics", seed=seed)
    if not has_same_semantics(before, after):
        _compare(pair, limits, seed, begun, progress, result)
    result.seconds = time.monotonic() - begun
    return result


def _compare(
    pair: VersionPair,
    limits: CompareLimits,
    seed: int,
    begun: float,
    progress: Callable[[int], None],
    result: CompareResult,
) -> None:
    search = Search(pair, seed, progress)
    result.searched = search.result
    until = begun + limits.seconds
    bounds = SearchLimits(limits.max_inputs, until, limits.plateau)
    if search.enumerate(bounds):
        result.reason = f"all {search.result.enumerated:,} inputs have the same outcome"
    else:
        first = min(_FIRST_INPUTS, limits.max_inputs)
        search.run(replace(bounds, max_inputs=first, until=begun + limits.seconds * _FIRST_SHARE))
        solved = solve(search, limits.max_witnesses, begun + limits.seconds * _SOLVER_SHARE)
        result.solver, result.reason = solved.why, solved.why
        if solved.is_equal:
            result.solver = ""
            return
        search.run(bounds)
        result.verdict, result.reason = "none found", f"in {search.result.tried:,} inputs"
    if search.result.found:
        result.verdict, result.reason = "different", ""
        result.witnesses = _witnesses(pair, search.result, limits, until)


def _witnesses(pair: VersionPair, found: SearchResult, limits: CompareLimits, until: float) -> list[Witness]:
    """Shrink the differing inputs, nearly smallest first, until the time is over; return the smallest."""
    maker = WitnessMaker(pair)
    made: list[Witness] = []
    for given in sorted(found.found.values(), key=lambda each: len(repr(each.inputs))):
        made.append(maker.witness(given))
        if time.monotonic() >= until and len(made) >= limits.max_witnesses:
            break
    return sorted(made, key=lambda each: each.size)[: limits.max_witnesses]
