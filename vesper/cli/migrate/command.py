"""`vesper migrate`: rollout of nodes to the direct engine."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import signal
import time
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor

import click

from vesper.cli.migrate.controller_commands import CONTROLLER_COMMANDS
from vesper.cli.migrate.fill import fill_command
from vesper.cli.migrate.history import history_command
from vesper.cli.migrate.plot import plot_command
from vesper.cli.migrate.prune import prune_command
from vesper.cli.number_ranges import FiniteRange
from vesper.cli.options import style_option
from vesper.cli.output.outcomes import json_text
from vesper.cli.output.progress import Progress
from vesper.migration.control.modes import LADDER, Mode
from vesper.migration.control.simulate import Result, Run, Scenario, Tally, simulate_all

_MAX_SPECIAL = 10**8
"""Limit on requests that are simulated one by one: at most a few hours on a processor."""
_CHUNK_SIZE = 25
_MODES = [mode.value for mode in LADDER[1:]]


@click.group("migrate")
def command() -> None:
    """Roll nodes out to the direct engine; simulate a rollout.

    A node is promoted automatically, on evidence. NODE is an id such as payment_decision_v1, a name with one routed
    version, or a file. See docs/how-to/roll-out-a-node.md.

    Exit codes: 0 success, 1 refused, damaged or unreadable, 2 usage, 3 a bug in Vesper.
    """


for each in (*CONTROLLER_COMMANDS, fill_command, history_command, plot_command, prune_command):
    command.add_command(each)


@command.command("simulate")
@click.option(
    "--fault-rate",
    type=FiniteRange(0, 1),
    required=True,
    metavar="Q",
    help="Share of requests on the faulty path that the direct engine answers wrongly.",
)
@click.option("--requests", type=click.IntRange(1, 10**9), required=True, metavar="N", help="Requests for each seed.")
@click.option(
    "--seeds",
    type=click.IntRange(1, 10**6),
    default=100,
    show_default=True,
    metavar="S",
    help="Number of simulated histories.",
)
@click.option(
    "--path-share",
    type=FiniteRange(0, 1),
    default=1.0,
    show_default=True,
    metavar="P",
    help="Share of traffic on the faulty path.",
)
@click.option(
    "--appears-in",
    type=click.Choice(_MODES),
    help="Mode in which the fault appears; by default it exists from the start.",
)
@click.option(
    "--close-after",
    type=click.IntRange(0, 10**9),
    metavar="N",
    help="Close each divergence N requests after it was found, without a fix; never by default.",
)
@click.option(
    "--distinct",
    type=click.IntRange(1, 10**9),
    metavar="N",
    help="Number of distinct inputs; by default each request has its own.",
)
@click.option("--first-seed", type=click.IntRange(0, 10**12), default=0, show_default=True, help="First seed.")
@click.option("--jobs", type=click.IntRange(1, 256), help="Processes; by default one per processor.")
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
    """Run the migration controller on simulated traffic with a fault.

    Reports how many seeds entered direct_only, how many wrong answers were given, and how soon the fault was found. The
    controller is the real one; only the traffic is simulated. See docs/how-to/simulate-a-migration.md.
    """
    mode = None if appears_in is None else Mode(appears_in)
    scenario = Scenario(requests, fault_rate, path_share, mode, close_after, distinct)
    special = scenario.special_share * requests * seeds
    if special > _MAX_SPECIAL:
        raise click.UsageError(
            f"about {special:.0e} requests are on the faulty path and are simulated one by one; the limit is "
            f"{_MAX_SPECIAL:.0e}: lower --seeds or --requests"
        )
    begun = time.monotonic()
    tally = Tally(scenario)
    runs = _simulate(scenario, range(first_seed, first_seed + seeds), jobs or os.cpu_count() or 1)
    with Progress("simulating", seeds) as progress:
        for run in runs:
            tally.add(run)
            progress.advance()
    elapsed = time.monotonic() - begun
    result = tally.result()
    click.echo(json_text(_json(result, first_seed, elapsed)) if style == "json" else _text(result))


def _simulate(scenario: Scenario, seeds: range, jobs: int) -> Generator[Run, None, None]:
    """Yield the runs in the order of their seeds, from one process or several."""
    if jobs == 1 or len(seeds) <= _CHUNK_SIZE:
        yield from simulate_all(scenario, seeds)
        return
    with ProcessPoolExecutor(jobs, initializer=_ignore_interrupts) as pool:
        chunks = (seeds[at : at + _CHUNK_SIZE] for at in range(0, len(seeds), _CHUNK_SIZE))
        try:
            for made in pool.map(_simulate_chunk, ((scenario, chunk) for chunk in chunks)):
                yield from made
        except BaseException:
            # An interrupt does not wait for the pending work of the processes, which may take minutes.
            for process in multiprocessing.active_children():
                process.terminate()
            raise


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C, which a terminal sends to every process; the parent ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _simulate_chunk(work: tuple[Scenario, range]) -> list[Run]:
    """Simulate one unit of work of a process."""
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
