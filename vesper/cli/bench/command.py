"""`vesper bench`."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from vesper.api.node import Node
from vesper.cli.bench.inputs import cases_that_return, read_file
from vesper.cli.bench.interpreter import this_interpreter
from vesper.cli.bench.rounds import Timing, Way, interleaved, ratio, time_text
from vesper.cli.engine_names import DIRECT, TIERS
from vesper.cli.exits import OUR_BUG, WRONG_INPUT
from vesper.cli.journal.text import table
from vesper.cli.load_node import compile_or_exit, find_node, has_effects, load_programs
from vesper.cli.number_ranges import FiniteRange
from vesper.cli.options import NODE, nodes_option, style_option
from vesper.cli.output.outcomes import json_text, json_value, one_line
from vesper.compiler import Compiled
from vesper.engines.compare import same_outcome
from vesper.engines.engine import Program
from vesper.engines.outcome import Outcome, Returned
from vesper.engines.registry import REFERENCE
from vesper.journal.moments import number
from vesper.values.model import plain
from vesper.verify.inputs.responses import run_case

_NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
_STARTS = 3
_FIRST_CALL = """
import sys, time
begun = time.perf_counter()
import vesper
imported = time.perf_counter()
outcome = vesper.load(sys.argv[1], engine=sys.argv[2])(sys.argv[3])
print(imported - begun, time.perf_counter() - imported)
outcome.unwrap()
"""


@dataclass(frozen=True)
class StartTimes:
    """Start-up times of a new process, in seconds."""

    imported: float
    called: float
    """From `vesper.load` to the first outcome."""


@dataclass(frozen=True)
class Calls:
    """The calls to time, equal on every engine."""

    inputs: Sequence[Any]
    outcome: Callable[[Program, Any], Outcome]
    way: Callable[[str, Program], Callable[[Any], Any]]
    what: str
    first: str | None
    """Inputs of the first call of a process, as JSON text; None for a node with effects."""


@click.command("bench")
@click.argument("node", type=NODE)
@nodes_option
@click.option(
    "--input",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Inputs as JSON: one object, an array of objects, or an object on each line (.jsonl). "
    "By default, the cases of the node that return.",
)
@click.option("--case", "case_name", metavar="NAME", help="Only this case of the node.")
@click.option(
    "--engine",
    "engines",
    multiple=True,
    type=click.Choice([REFERENCE, DIRECT, *TIERS]),
    help="Engine or tier; repeat for more. All by default; direct is all its tiers.",
)
@click.option(
    "--seconds",
    type=FiniteRange(0.01, 3_600),
    default=3.0,
    show_default=True,
    metavar="S",
    help="Measuring time of all engines together, without first calls.",
)
@click.option("--no-first-call", "skips_first", is_flag=True, help="Do not time the first call of a new process.")
@style_option
def command(
    node: str,
    root: Path,
    file: Path | None,
    case_name: str | None,
    engines: tuple[str, ...],
    seconds: float,
    skips_first: bool,
    style: str,
) -> None:
    """Time a node on every engine side by side, with your inputs.

    The engines must agree on every input first. They are then called in short alternating rounds, so that other load
    affects all alike: compare the ratios of the best rounds, not the times. A spread (median round over best round) far
    above 1.1 indicates a busy machine.

    For a node without effects `node.call` is timed, with a dict as input and output. For a node with effects a case is
    run with the answers that it lists: no effect is performed or timed.

    Exit codes: 0 success, 1 an input does not return, 2 usage, or there are no inputs, 3 the engines disagree.
    """
    path = find_node(node, root)
    compiled = compile_or_exit(path)
    names = _expand(engines)
    calls = _choose_calls(compiled, file, case_name)
    programs = load_programs(compiled, names)
    _check_agreement(compiled, programs, calls)
    ways = {name: Way(calls.way(name, program), calls.inputs) for name, program in programs.items()}
    timings = interleaved(ways, seconds=seconds)
    first = (
        {}
        if skips_first or calls.first is None
        else {name: _time_first_call(path, name, calls.first) for name in names}
    )
    interpreter = this_interpreter()
    if not interpreter.is_optimised:
        click.echo(
            f"warning: {interpreter.implementation} {interpreter.version} was built without profile-guided "
            "optimisation (--enable-optimizations): it runs Python slower than usual builds, which flatters every "
            "ratio to python. Use the Python of your distribution or of python.org",
            err=True,
        )
    if style == "json":
        click.echo(json_text(_json(compiled, calls, timings, first)))
    else:
        click.echo("\n".join(_lines(compiled, calls, timings, first)))


def _expand(engines: tuple[str, ...]) -> list[str]:
    """Return the engines to time; `direct` is all its tiers."""
    chosen = [tier for name in engines for tier in (TIERS if name == DIRECT else (name,))]
    return list(dict.fromkeys(chosen)) or [REFERENCE, *TIERS]


# -- calls ----------------------------------------------------------------------------------------


def _choose_calls(compiled: Compiled, file: Path | None, case_name: str | None) -> Calls:
    if file is not None and case_name is not None:
        raise click.UsageError("give --input or --case, not both")
    node = compiled.node
    if has_effects(compiled):
        if file is not None:
            raise click.UsageError(
                f"{node.node_id} has effects, and a file of inputs has no answers for them: omit --input to time its "
                "cases, with the answers that they list"
            )
        cases = cases_that_return(compiled, case_name)
        what = f"{number(len(cases), 'case')} with answers"
        return Calls(cases, lambda program, case: run_case(program, case).outcome, _case_runner, what, None)
    inputs: list[dict[str, Any]]
    if file is not None:
        inputs = read_file(compiled, file)
    else:
        inputs = [
            {name: plain(value) for name, value in each.inputs.items()}
            for each in cases_that_return(compiled, case_name)
        ]
    types = {each.name: each.type for each in node.inputs}
    first = json_text({name: json_value(value, types.get(name)) for name, value in inputs[0].items()})
    now = None if node.type == "function" else _NOW

    def call(name: str, program: Program) -> Callable[[Any], Any]:
        found = Node(compiled, program, name, None, ()).call
        return found if now is None else partial(found, now=now)

    return Calls(
        inputs, lambda program, each: program.call(each, now), call, number(len(inputs), "input") + " in turn", first
    )


def _case_runner(_: str, program: Program) -> Callable[[Any], Any]:
    return partial(run_case, program)


def _check_agreement(compiled: Compiled, programs: Mapping[str, Program], calls: Calls) -> None:
    """End the command where the engines disagree on an input, or where a call does not return."""
    for position, each in enumerate(calls.inputs, start=1):
        outcomes = {name: calls.outcome(program, each) for name, program in programs.items()}
        (first, expected), *others = outcomes.items()
        for name, outcome in others:
            if not same_outcome(expected, outcome):
                text = f"{first}: {one_line(compiled.node, expected)}\n{name}: {one_line(compiled.node, outcome)}"
                click.echo(f"THE ENGINES DISAGREE on input {position}; this is a bug in Vesper\n{text}", err=True)
                sys.exit(OUR_BUG)
        if not isinstance(expected, Returned):
            text = one_line(compiled.node, expected)
            click.echo(
                f"error: input {position} does not return: {text}\n  only calls that return are timed: remove it",
                err=True,
            )
            sys.exit(WRONG_INPUT)


def _time_first_call(path: Path, engine: str, text: str) -> StartTimes | None:
    """Return the fastest first call of a few new processes, without the start of Python itself.

    None where a process fails.
    """
    found = []
    for _ in range(_STARTS):
        arguments = [sys.executable, "-c", _FIRST_CALL, os.fspath(path), engine, text]
        ran = subprocess.run(arguments, capture_output=True, text=True, check=False)
        if ran.returncode:
            message = (ran.stderr.strip().splitlines() or ["no error message"])[-1]
            click.echo(f"warning: the first call on {engine} could not be timed: {message}", err=True)
            return None
        imported, called = ran.stdout.split()
        found.append(StartTimes(float(imported), float(called)))
    return min(found, key=lambda each: each.imported + each.called)


# -- output ---------------------------------------------------------------------------------------


def _base_engine(timings: Mapping[str, Timing]) -> str:
    """Return the engine that ratios refer to: the reference, if it is timed."""
    return REFERENCE if REFERENCE in timings else next(iter(timings))


def _lines(
    compiled: Compiled, calls: Calls, timings: Mapping[str, Timing], first: Mapping[str, StartTimes | None]
) -> list[str]:
    base = _base_engine(timings)
    heading = ["engine", "best", "median", "spread", f"of {base}"]
    rows = [[*heading, "import", "first call"] if first else heading]
    for name, timing in timings.items():
        row = [name, time_text(timing.best), time_text(timing.median), f"{timing.spread:.2f}"]
        row.append(f"{ratio(timings, name, base):.3f}")
        if first:
            started = first[name]
            row += ["", ""] if started is None else [time_text(started.imported), time_text(started.called)]
        rows.append(row)
    rounds = min(each.rounds for each in timings.values())
    return [
        f"{compiled.node.node_id}, {calls.what}, {rounds:,} rounds; {this_interpreter().described()}",
        "",
        *table(rows),
    ]


def _json(
    compiled: Compiled, calls: Calls, timings: Mapping[str, Timing], first: Mapping[str, StartTimes | None]
) -> dict[str, Any]:
    base = _base_engine(timings)
    interpreter = this_interpreter()
    engines = {}
    for name, timing in timings.items():
        started = first.get(name)
        engines[name] = {
            "best_ns": round(timing.best * 1e9, 1),
            "median_ns": round(timing.median * 1e9, 1),
            "spread": round(timing.spread, 3),
            "rounds": timing.rounds,
            "ratio": round(ratio(timings, name, base), 4),
            "import_ms": None if started is None else round(started.imported * 1e3, 2),
            "first_call_ms": None if started is None else round(started.called * 1e3, 2),
        }
    return {
        "node": compiled.node.node_id,
        "semantic_hash": compiled.semantic_hash,
        "inputs": len(calls.inputs),
        "base": base,
        "python": {
            "implementation": interpreter.implementation,
            "version": interpreter.version,
            "optimised": interpreter.is_optimised,
        },
        "machine": platform.machine(),
        "engines": engines,
    }
