"""`vesper verify`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import click

from vesper import __version__
from vesper.cli.engine_names import DIRECT
from vesper.cli.exits import FINE, OUR_BUG, WRONG_INPUT
from vesper.cli.load_node import find_nodes, print_diagnostics
from vesper.cli.number_ranges import FiniteRange
from vesper.cli.options import NODE, format_option, min_coverage_option, nodes_option
from vesper.cli.output.outcomes import json_text
from vesper.cli.verify.display import Display
from vesper.cli.verify.relations import check_relations, relations_line
from vesper.cli.verify.reports import VerifyResults, verify_json, verify_junit, verify_sarif
from vesper.cli.verify.text import programs_line, total_line
from vesper.cli.verify.ways.public import WAYS
from vesper.compiler import Compiled, compile_file
from vesper.compiler.reading import shown_path
from vesper.config.locate import nearest_config
from vesper.engines.engine import Engine
from vesper.engines.registry import REFERENCE
from vesper.storage.file_access import STATE_FOLDER
from vesper.values.model import printable
from vesper.verify.corpus import KeptProgram, kept_programs
from vesper.verify.differential.against import CannotImport, Function, import_function
from vesper.verify.differential.forms import COMPARED
from vesper.verify.differential.regressions import FOLDER
from vesper.verify.programs.campaign import INPUTS_PER_PROGRAM
from vesper.verify.relations.campaign import PROGRAMS_PER_CHECK
from vesper.verify.run_history import append_run, run_of
from vesper.verify.variants.draw import NoVariants, draw_variant
from vesper.verify.workers.orders import Plan
from vesper.verify.workers.process import WorkerLimits
from vesper.verify.workers.run import GuardedRun, UnusableFunction
from vesper.verify.workers.state import RunState, UnreadableState, read_state
from vesper.verify.workers.tasks import Workload

_DEFAULT_EXAMPLES = 10_000
_MAX_PROGRAMS = 10**6
_MAX_DEFAULT_JOBS = 4
_DEFAULT_LIMITS = WorkerLimits()


class ProgramCount(click.IntRange):
    """A number of random programs, or `unlimited`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found: int = _MAX_PROGRAMS if value == "unlimited" else super().convert(value, param, ctx)
        return found


@click.command("verify")
@click.argument("paths", type=NODE, nargs=-1)
@nodes_option
@click.option(
    "--max-examples",
    type=click.IntRange(1, 10**9),
    default=_DEFAULT_EXAMPLES,
    show_default=True,
    help="Generated inputs of each node.",
)
@click.option(
    "--seconds",
    type=FiniteRange(0.1, 10**7),
    metavar="S",
    help="Time limit of the command, spent in rounds where coverage grows; --max-examples and --programs apply too.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the generated inputs.")
@click.option(
    "--programs",
    type=ProgramCount(0, _MAX_PROGRAMS),
    default=0,
    show_default=True,
    metavar="N",
    help=f"Compare this many random programs on {INPUTS_PER_PROGRAM} inputs each; `unlimited` with --seconds is as "
    "many as fit. Without PATHS, verify nothing else.",
)
@click.option(
    "--corpus",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of kept programs, which run before random ones. Without PATHS, verify nothing else.",
)
@click.option(
    "--relations",
    "checks_relations",
    is_flag=True,
    help=f"Check also that rewritings of each node, and of one in {PROGRAMS_PER_CHECK} random programs, have the same "
    "outcomes; --seconds does not limit them.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    help=f"Worker processes. By default one for each processor, at most {_MAX_DEFAULT_JOBS}.",
)
@click.option(
    "--state",
    "state_folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder in which a run stores what it has done; the same seed continues there, and seeds share coverage.",
)
@click.option(
    "--input-seconds",
    type=FiniteRange(0.1, 10**5),
    metavar="S",
    default=_DEFAULT_LIMITS.seconds,
    show_default=True,
    help="Time limit of an engine on one input; a longer execution is reported as a hang.",
)
@click.option(
    "--input-memory",
    type=click.IntRange(64, 10**6),
    metavar="MIB",
    default=_DEFAULT_LIMITS.mebibytes,
    show_default=True,
    help="Memory limit of a worker in MiB; an execution that needs more is reported.",
)
@click.option(
    "--engine",
    "chosen",
    multiple=True,
    type=click.Choice([REFERENCE, DIRECT, *(name for name in COMPARED if name != REFERENCE)]),
    help=f"Engine to compare with {REFERENCE}; repeat for more. All by default; {DIRECT} is all its tiers.",
)
@click.option(
    "--against",
    metavar="MODULE:FUNCTION",
    help="Compare one pure node with a Python function, called with the inputs as keyword arguments.",
)
@min_coverage_option
@format_option(
    "text",
    "json",
    "junit",
    "sarif",
    help="Output format; all but text go to standard output.",
)
@click.option(
    "--save-to",
    "--save",
    type=click.Path(path_type=Path, file_okay=False),
    default=FOLDER,
    show_default=True,
    help="Folder for disagreements, as conformance cases.",
)
def command(
    paths: tuple[str, ...],
    root: Path,
    max_examples: int,
    seconds: float | None,
    seed: int,
    programs: int,
    corpus: Path | None,
    checks_relations: bool,
    jobs: int | None,
    state_folder: Path | None,
    input_seconds: float,
    input_memory: int,
    chosen: tuple[str, ...],
    against: str | None,
    min_coverage: float | None,
    style: str,
    save_to: Path,
) -> None:
    """Check that the engines agree on nodes.

    Runs the cases of each node, then inputs generated from its types, constraints, literals and cases, on every engine,
    and compares outcomes and intermediate values. A disagreement is shrunk to the smallest input and saved as a case. A
    broken postcondition is a defect of the node. Branches that no input covered are named. A node with errors is
    reported, and the others are verified. PATHS are files, folders or node names; by default every node under --nodes
    is verified. Engines run in worker processes: one that hangs, crashes or needs too much memory is reported with its
    input. Random programs test Vesper itself: see docs/how-to/verify-nodes.md.
    """
    begun = time.monotonic()
    engines = _choose_engines(chosen, against)
    if programs == _MAX_PROGRAMS and seconds is None:
        raise click.UsageError("--programs unlimited needs --seconds, which ends it")
    if state_folder is not None and against is not None:
        raise click.UsageError("--state stores comparisons of the engines, and cannot be used with --against")
    only_programs = (programs > 0 or corpus is not None) and not paths and against is None
    files = [] if only_programs else find_nodes(paths, root)
    if not files and not only_programs:
        raise click.UsageError("no .vsp files found: name files or folders, or the folder of nodes with --nodes")
    compiled_nodes, refused = _compile_files(files)
    function = None if against is None else _import_function(against, compiled_nodes, files)
    work = Workload(
        compiled_nodes, engines, seed, function, WAYS, _kept_programs(corpus), _documents(compiled_nodes, programs)
    )
    left = None if seconds is None else max(0.1, seconds - (time.monotonic() - begun))
    workers = jobs or min(_processors(), _MAX_DEFAULT_JOBS)
    plan = Plan(max_examples, programs, left, workers, WorkerLimits(input_seconds, input_memory))
    found = VerifyResults([*engines], seed, against, [], refused, None, 0.0, min_coverage)
    state = None if state_folder is None else _read_state(state_folder, work)
    _verify(found, work, plan, state, Display(found, save_to, style == "text"))
    if checks_relations and not found.is_interrupted:
        found.relations = check_relations(work, 0 if found.drawn is None else found.drawn.programs, style == "text")
    found.elapsed_seconds = time.monotonic() - begun
    _print_end(found, style, files)
    _record(found)
    sys.exit(FINE if found.passed else OUR_BUG if found.engines_disagree else WRONG_INPUT)


def _choose_engines(chosen: tuple[str, ...], against: str | None) -> dict[str, Engine]:
    """Return the engines to run, the reference first; with `--against` the reference is optional."""
    if not chosen:
        return COMPARED
    tiers = tuple(name for name in COMPARED if name != REFERENCE)
    chosen = tuple(name for each in chosen for name in (tiers if each == DIRECT else (each,)))
    if against is None:
        if set(chosen) == {REFERENCE}:
            others = ", ".join((DIRECT, *tiers))
            raise click.UsageError(f"--engine {REFERENCE} is the reference of the comparison: name another, {others}")
        chosen = (REFERENCE, *chosen)
    return {name: engine for name, engine in COMPARED.items() if name in chosen}


def _import_function(name: str, compiled_nodes: list[Compiled], files: list[Path]) -> Function:
    if len(files) != 1 or not compiled_nodes:
        problem = "the node has errors" if len(files) == 1 else f"{len(files)} were given"
        raise click.UsageError(f"--against compares one node without errors: {problem}")
    (compiled,) = compiled_nodes
    if not compiled.node.is_pure():
        raise click.UsageError(
            f"--against: {compiled.node.node_id} has effects; only a pure node can be compared with a function"
        )
    try:
        return Function(name, import_function(name, Path.cwd()), compiled)
    except CannotImport as problem:
        raise click.UsageError(f"--against {name}: {problem}") from None


def _compile_files(files: list[Path]) -> tuple[list[Compiled], list[str]]:
    """Compile the files and print diagnostics; return the nodes, and the files with errors."""
    compiled_nodes: list[Compiled] = []
    refused: list[str] = []
    for path in files:
        compiled, bag = compile_file(path)
        print_diagnostics(bag.source, bag.sorted(), "full")
        if compiled is None:
            refused.append(shown_path(path.as_posix()))
        else:
            compiled_nodes.append(compiled)
    return compiled_nodes, refused


def _documents(nodes: list[Compiled], programs: int) -> list[str]:
    """Return the texts of which variants are drawn; they are read here, once for all workers."""
    texts = [each.source.text for each in nodes]
    try:
        if programs and texts:
            draw_variant(texts, 0)
            return texts
    except NoVariants:
        pass
    return []


def _kept_programs(folder: Path | None) -> list[KeptProgram]:
    try:
        return [] if folder is None else kept_programs(folder)
    except (OSError, UnicodeDecodeError) as problem:
        raise click.UsageError(f"--corpus: {problem}") from None


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read_state(folder: Path, work: Workload) -> RunState:
    try:
        return read_state(folder, work.seed, tuple(work.engines), work.nodes)
    except UnreadableState as problem:
        raise click.UsageError(f"--state {folder.as_posix()}: {problem}") from None


def _verify(found: VerifyResults, work: Workload, plan: Plan, state: RunState | None, display: Display) -> None:
    """Run the workers; Ctrl-C ends them and leaves the results so far."""
    run = GuardedRun(work, plan, display, state)
    display.begin(run.nodes, plan, len(work.kept))
    try:
        run.execute()
    except KeyboardInterrupt:
        found.is_interrupted = True
    except UnusableFunction as problem:
        raise click.ClickException(str(problem)) from None
    display.end(found.is_interrupted)
    if plan.max_programs or work.kept:
        found.drawn = run.programs.finish()
        display.show_programs(found.drawn)


def _record(found: VerifyResults) -> None:
    """Add the run to the history of the project; without a `vesper.toml` there is none."""
    config = nearest_config()
    if config is None:
        return
    try:
        append_run(config.parent.resolve(), run_of(verify_json(found), __version__))
    except OSError as problem:
        reason = printable(f"{problem.filename or STATE_FOLDER}: {problem.strerror or problem}")
        click.echo(f"warning: the run is not in the history of the project: {reason}", err=True)


def _print_end(found: VerifyResults, style: str, files: list[Path]) -> None:
    if style == "json":
        click.echo(json_text(verify_json(found), is_ascii=False))
    elif style == "sarif":
        click.echo(json_text(verify_sarif(found), is_ascii=False))
    elif style == "junit":
        click.echo(verify_junit(found))
    else:
        if len(found.nodes) > 1:
            wrong = sum(not each.passed for each in found.nodes)
            click.echo(total_line([each.report for each in found.nodes], wrong))
        if found.drawn is not None:
            click.echo(programs_line(found.drawn))
        if found.relations is not None:
            click.echo(relations_line(found.relations))
        if found.refused:
            listed = ", ".join(found.refused)
            click.echo(f"{len(found.refused)} of {len(files)} nodes have errors and were not verified: {listed}")
        if found.is_interrupted:
            begun = len(found.nodes)
            click.echo(f"stopped: {begun} of {len(files) - len(found.refused)} nodes were begun", err=True)
