"""`python -m tests.proofs.migration.controller`: what the controller must show under simulated traffic.

- At a true rate of one in ten thousand, at most 3 of 10,000 seeds with a million requests each reach direct_only: with
  divergences left open, and with somebody who closes each one at once without mending anything.
- A path with 3·10⁻⁵ of the traffic that is always wrong never answers, either way.
- A fault of 1 % that appears in direct_only is found after about 10,000 requests, with about 99 wrong answers.
- A million copies of one input never leave shadow.
- Eight processes that share a store all fall back within two seconds after one of them found a fault; in a sample there
  are three, and they have half a minute: the machine may be busy with other tests.
- Clean runs cross at 206, 10,814 and 108,231.

`--sample` takes a fiftieth of the seeds. It prints a table and ends with 1 where a line of it fails.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from tests.unit.migration.support.fleet import fall_back
from tests.unit.migration.support.memory_store import MemoryStore
from vesper.migration.control.modes import Mode
from vesper.migration.control.simulate import Scenario, simulate, simulate_all
from vesper.migration.control.state import Settings
from vesper.migration.stores import ledger
from vesper.migration.stores.store import Batch, NodeKey, SeenOnPath

REQUESTS = 1_000_000
SEEDS = 10_000
MOST_PROMOTED = 3
STORES = ("sqlite", "redis", "postgres")
_CHUNK = 50


@dataclass(frozen=True)
class Line:
    what: str
    found: str
    is_right: bool


def _tallied(scenario: Scenario, seeds: range) -> list[tuple[bool, int, int | None]]:
    return [(run.is_promoted, run.wrong_answers, run.detection_requests) for run in simulate_all(scenario, seeds)]


@dataclass(frozen=True)
class Counts:
    seeds: int
    promoted: int
    wrong: int
    found_after: list[int]


def counted(scenario: Scenario, seeds: int, jobs: int) -> Counts:
    chunks = [range(at, min(at + _CHUNK, seeds)) for at in range(0, seeds, _CHUNK)]
    if jobs == 1:
        rows = [row for chunk in chunks for row in _tallied(scenario, chunk)]
    else:
        with ProcessPoolExecutor(jobs) as pool:
            rows = [row for made in pool.map(partial(_tallied, scenario), chunks) for row in made]
    return Counts(
        len(rows),
        sum(row[0] for row in rows),
        sum(row[1] for row in rows),
        [row[2] for row in rows if row[2] is not None],
    )


def false_promotions(seeds: int, jobs: int, close_after: int | None) -> Line:
    found = counted(Scenario(REQUESTS, 1e-4, close_after=close_after), seeds, jobs)
    how = "left open" if close_after is None else "closed at once"
    return Line(
        f"a rate of 1e-4, divergences {how}: at most {MOST_PROMOTED} of {seeds:,} seeds reach direct_only",
        f"{found.promoted} did",
        found.promoted <= MOST_PROMOTED,
    )


def rare_path(seeds: int, jobs: int, close_after: int | None) -> Line:
    found = counted(Scenario(REQUESTS, 1.0, path_share=3e-5, close_after=close_after), seeds, jobs)
    how = "left open" if close_after is None else "closed at once"
    return Line(
        f"an always wrong path with 3e-5 of the traffic, divergences {how}: no direct answer",
        f"{found.wrong} wrong answers in {seeds:,} seeds, of which {found.promoted:,} reached direct_only",
        found.wrong == 0,
    )


def late_fault(seeds: int, jobs: int) -> Line:
    found = counted(Scenario(REQUESTS, 0.01, appears_in=Mode.DIRECT_ONLY), seeds, jobs)
    wrong, after = found.wrong / found.seeds, sum(found.found_after) / max(1, len(found.found_after))
    tolerance = 5 / found.seeds**0.5  # both are geometric: their deviation is as large as their mean
    return Line(
        "a fault of 1 % that appears in direct_only: found after about 10,000 requests, about 99 wrong answers",
        f"{after:,.0f} requests, {wrong:.1f} wrong answers, found in {len(found.found_after):,} seeds",
        len(found.found_after) == found.seeds
        and abs(after / 10_000 - 1) < tolerance
        and abs(wrong / 99 - 1) < tolerance,
    )


def copies() -> Line:
    """Through the ledger of a store, and then through the simulator."""
    store, key, many = MemoryStore(), NodeKey("copies_v1", "one"), 1000
    for number in range(REQUESTS // many):
        batch = Batch("proof", number + 1, agreed={"main": SeenOnPath(frozenset({42}), many)})
        ledger.apply(store, key, batch, Settings(), 0)
    state = ledger.load(store, key, Settings())
    counted_as_new = state.clean
    run = simulate(Scenario(REQUESTS, 0.0, distinct=1), 0)
    return Line(
        "a million copies of one input: shadow",
        f"{counted_as_new} distinct, {run.state.mode.value}, {len(run.changes)} changes of mode",
        counted_as_new == 1 and state.mode is run.state.mode is Mode.SHADOW_DIRECT and not run.changes,
    )


def crossings() -> Line:
    run = simulate(Scenario(REQUESTS, 0.0), 0)
    found = [each.at_us for each in run.changes]
    return Line("clean runs cross at 206, 10,814 and 108,231", str(found), found == [206, 10_814, 108_231])


def fleet(store: str, processes: int, within: float) -> Line:
    seconds = fall_back(store, processes)
    what = f"{processes} processes over {store} fall back within {within:g} s"
    return Line(what, f"{seconds:.3f} s", seconds < within)


def main() -> None:
    options = argparse.ArgumentParser(description="what the migration controller must show")
    options.add_argument("--sample", action="store_true", help="a fiftieth of the seeds")
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = options.parse_args()
    seeds, fewer = (SEEDS // 50, 50) if given.sample else (SEEDS, 2_000)
    lines: list[Callable[[], Line]] = [
        crossings,
        copies,
        partial(rare_path, fewer, given.jobs, None),
        partial(rare_path, fewer, given.jobs, 0),
        partial(late_fault, fewer, given.jobs),
        partial(false_promotions, seeds, given.jobs, None),
        partial(false_promotions, seeds, given.jobs, 0),
        *([partial(fleet, "sqlite", 3, 30.0)] if given.sample else [partial(fleet, each, 8, 2.0) for each in STORES]),
    ]
    fails = 0
    for make in lines:
        begun = time.monotonic()
        line = make()
        fails += not line.is_right
        print(
            f"{'ok  ' if line.is_right else 'FAIL'} {line.what}\n       {line.found} ({time.monotonic() - begun:.0f} s)"
        )
        sys.stdout.flush()
    sys.exit(1 if fails else 0)


if __name__ == "__main__":
    main()
