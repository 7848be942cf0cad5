"""`vesper migrate`: how nodes are moved from one engine to the other."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor

import click

from vesper.cli.migrate.controller_commands import ORDERS
from vesper.cli.migrate.fill import fill_command
from vesper.cli.migrate.history import history_command
from vesper.cli.migrate.plot import plot_command
from vesper.cli.migrate.prune import prune_command
from vesper.cli.number_ranges import FiniteRange
from vesper.cli.options import style_option
from vesper.cli.output.outcomes import json_text
from vesper.migration.control.modes import LADDER, Mode
from vesper.migration.control.simulate import Result, Run, Scenario, Tally, simulate_all

_MOST_SPECIAL = 10**8
"""Requests that may have to be looked at one by one: a few hours on a processor, at the worst."""
_CHUNK = 25
_MODES = [mode.value for mode in LADDER[1:]]


@click.group("migrate")
def command() -> None:
    """Move nodes from one engine to the other, and see what that would take.

    A node rises on its own, on evidence. NODE is an id such as payment_decision_v1, a name of which one version was
    routed, or a file. See docs/how-to/move-a-node-over.md.

    Exit codes: 0 fine, 1 refused, broken or cannot be read, 2 usage, 3 a bug in Vesper.
    """


for each in (*ORDERS, fill_command, history_command, plot_command, prune_command):
    command.add_command(each)


@command.command("simulate")
@click.option(
    "--fault-rate",
    type=FiniteRange(0, 1),
    required=True,
    metavar="Q",
    help="The share of requests (on the path with the fault) that the direct engine gets wrong.",
)
@click.option("--requests", type=click.IntRange(1, 10**9), required=True, metavar="N", help="Requests for each seed.")
@click.option(
    "--seeds", type=click.IntRange(1, 10**6), default=100, show_default=True, metavar="S", help="How many histories."
)
@click.option(
    "--path-share",
    type=FiniteRange(0, 1),
    default=1.0,
    show_default=True,
    metavar="P",
    help="The share of traffic on the path with the fault.",
)
@click.option(
    "--appears-in",
    type=click.Choice(_MODES),
    help="The fault is there once the node first enters this mode. From the beginning, unless said.",
)
@click.option(
    "--close-after",
    type=click.IntRange(0, 10**9),
    metavar="N",
    help="Somebody closes a divergence N requests after it was found, and mends nothing. Nobody does, unless said.",
)
@click.option(
    "--distinct",
    type=click.IntRange(1, 10**9),
    metavar="N",
    help="Traffic brings at most N distinct inputs. Each request brings its own, unless said.",
)
@click.option("--first-seed", type=click.IntRange(0, 10**12), default=0, show_default=True, help="Where seeds begin.")
@click.option("--jobs", type=click.IntRange(1, 256), help="Processes to share the work. All processors, unless said.")
@style_option
def simulate_command(
    fault_rate: float,
    requests: int,
    seeds: int,
    path_share: float,
    appears_in: str | None,
    close_after: int | None,
    distinct: int | None,
    first_seed: int,
    jobs: int | None,
    style: str,
) -> None:
    """Run the migration controller under simulated traffic with a fault in it.

    Says how many seeds ever entered direct_only, how many wrong answers left, and how soon the fault was found. It is
    the controller that moves real nodes; only the traffic is made up. See docs/how-to/simulate-a-migration.md.
    """
    mode = None if appears_in is None else Mode(appears_in)
    scenario = Scenario(requests, fault_rate, path_share, mode, close_after, distinct)
    special = scenario.special_share * requests * seeds
    if special > _MOST_SPECIAL:
        raise click.UsageError(
            f"about {special:.0e} requests would be faults or on the path with the fault, and each is looked at by "
            f"itself; up to {_MOST_SPECIAL:.0e} are simulated: lower --seeds or --requests"
        )
    begun = time.monotonic()
    tally = Tally(scenario)
    runs = _runs(scenario, range(first_seed, first_seed + seeds), jobs or os.cpu_count() or 1)
    if style == "text" and sys.stderr.isatty():
        with click.progressbar(length=seeds, label="seeds", file=sys.stderr) as bar:
            for run in runs:
                tally.add(run)
                bar.update(1)
    else:
        for run in runs:
            tally.add(run)
    elapsed = time.monotonic() - begun
    result = tally.result()
    click.echo(json_text(_json(result, first_seed, elapsed)) if style == "json" else _text(result))


def _runs(scenario: Scenario, seeds: range, jobs: int) -> Generator[Run, None, None]:
    """The runs in the order of their seeds, whoever made them."""
    if jobs == 1 or len(seeds) <= _CHUNK:
        yield from simulate_all(scenario, seeds)
        return
    with ProcessPoolExecutor(jobs, initializer=_leave_interrupts) as pool:
        chunks = (seeds[at : at + _CHUNK] for at in range(0, len(seeds), _CHUNK))
        try:
            for made in pool.map(_chunk, ((scenario, chunk) for chunk in chunks)):
                yield from made
        except BaseException:
            # Whoever interrupts does not want to wait for what the processes have before them: minutes, at the worst.
            for process in multiprocessing.active_children():
                process.terminate()
            raise


def _leave_interrupts() -> None:
    """Ctrl-C on a terminal reaches every process; the first one says what becomes of the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _chunk(work: tuple[Scenario, range]) -> list[Run]:
    """What one process does at a time."""
    return list(simulate_all(*work))


def _json(result: Result, first_seed: int, elapsed: float) -> dict[str, object]:
    scenario = dataclasses.asdict(result.scenario)
    scenario["appears_in"] = result.scenario.appears_in and result.scenario.appears_in.value
    return {
        "promoted": result.promoted,
        "wrong_answers_mean": result.wrong_answers_mean,
        "wrong_answers_max": result.wrong_answers_max,
        "detection_requests_mean": result.detection_requests_mean,
        "detected": result.detected,
        "final_modes": result.final_modes,
        "seeds": result.seeds,
        "first_seed": first_seed,
        "scenario": scenario,
        "elapsed_seconds": round(elapsed, 3),
    }


def _text(result: Result) -> str:
    ended = ", ".join(f"{count:,} {mode}" for mode, count in result.final_modes.items() if count)
    found = "never found"
    if result.detection_requests_mean is not None:
        found = f"found in {result.detected:,} seeds, after {result.detection_requests_mean:,.1f} requests on average"
    return "\n".join(
        [
            f"{result.seeds:,} seeds of {result.scenario.requests:,} requests",
            f"  entered direct_only  {result.promoted:,} seeds",
            f"  wrong answers        {result.wrong_answers_mean:,.2f} on average, {result.wrong_answers_max:,} at most",
            f"  the fault            {found}",
            f"  ended in             {ended}",
        ]
    )
