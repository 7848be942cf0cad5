"""`vesper verify`."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path

import click

from vesper.cli.engine_names import DIRECT
from vesper.cli.exits import FINE, OUR_BUG, WRONG_INPUT
from vesper.cli.load_node import find_nodes, print_diagnostics
from vesper.cli.number_ranges import FiniteRange
from vesper.cli.options import format_option, min_coverage_option, nodes_option
from vesper.cli.output.branches import refusal_notes, uncovered_lines
from vesper.cli.output.outcomes import json_text
from vesper.cli.output.terminal import progress_bar, shows_progress
from vesper.cli.verify.reports import VerifiedNode, VerifyResults, verify_json, verify_junit, verify_sarif
from vesper.cli.verify.text import (
    broken_text,
    case_text,
    difference_text,
    failure_text,
    programs_line,
    summary_line,
    total_line,
)
from vesper.cli.verify.ways.public import WAYS
from vesper.compiler import Compiled, compile_file
from vesper.compiler.reading import shown_path
from vesper.engines.engine import Engine
from vesper.engines.registry import REFERENCE
from vesper.verify.differential.against import BadAnswer, CannotImport, Function, import_function
from vesper.verify.differential.forms import COMPARED
from vesper.verify.differential.regressions import FOLDER, save_program, save_regression
from vesper.verify.differential.verifier import Report, Verifier
from vesper.verify.programs.campaign import INPUTS_PER_PROGRAM, ProgramsReport, verify_programs

_DEFAULT_EXAMPLES = 10_000


@click.command("verify")
@click.argument("paths", nargs=-1)
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
    help="Time limit of the whole command, shared by the nodes; --max-examples applies too.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the generated inputs.")
@click.option(
    "--programs",
    type=click.IntRange(0, 10**6),
    default=0,
    show_default=True,
    help=f"Compare this many random programs on {INPUTS_PER_PROGRAM} inputs each. Without PATHS, verify nothing else.",
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
    is verified. Random programs test Vesper itself: see docs/how-to/verify-nodes.md.
    """
    begun = time.monotonic()
    engines = _choose_engines(chosen, against)
    only_programs = programs > 0 and not paths and against is None
    files = [] if only_programs else find_nodes(paths, root)
    if not files and not only_programs:
        raise click.UsageError("no .vsp files found: name files or folders, or the folder of nodes with --nodes")
    compiled_nodes, refused = _compile_files(files)
    function = None if against is None else _import_function(against, compiled_nodes, files)
    found = VerifyResults([*engines], seed, against, [], refused, None, 0.0, min_coverage)
    waiting = len(compiled_nodes) + (programs > 0)
    for compiled in compiled_nodes:
        share = None if seconds is None else max(0.0, seconds - (time.monotonic() - begun)) / waiting
        verifier = Verifier(compiled, engines, seed, against=function, ways=WAYS)
        report = _verify(verifier, max_examples, share, is_shown=style == "text" and shows_progress())
        saved = [save_regression(save_to, compiled, difference, against) for difference in report.differences]
        verified = VerifiedNode(compiled, report, saved)
        found.nodes.append(verified)
        waiting -= 1
        if style == "text":
            _print_node(verified, found)
    if programs:
        left = None if seconds is None else max(0.0, seconds - (time.monotonic() - begun))
        found.drawn = _verify_programs(engines, programs, seed, save_to, style, left)
    found.elapsed_seconds = time.monotonic() - begun
    _print_end(found, style, len(files))
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


def _verify(verifier: Verifier, max_examples: int, seconds: float | None, is_shown: bool) -> Report:
    try:
        if not is_shown:
            return verifier.run(max_examples, seconds=seconds)
        label = verifier.report.node_id
        with progress_bar(label, max_examples) as bar:
            return verifier.run(max_examples, lambda _: bar.update(1), seconds=seconds)
    except BadAnswer as problem:
        raise click.ClickException(str(problem)) from None


def _verify_programs(
    engines: Mapping[str, Engine], count: int, seed: int, save_to: Path, style: str, seconds: float | None
) -> ProgramsReport:
    if style == "text" and shows_progress():
        with progress_bar("random programs", count) as bar:
            report = verify_programs(engines, count, seed, progress=lambda _: bar.update(1), seconds=seconds, ways=WAYS)
    else:
        report = verify_programs(engines, count, seed, seconds=seconds, ways=WAYS)
    for failure in report.failures:
        saved = save_program(save_to, failure.text)
        case = None
        if failure.compiled is not None and failure.difference is not None:
            case = save_regression(save_to, failure.compiled, failure.difference)
        if style == "text":
            click.echo(failure_text(failure, saved, case) + "\n", err=True)
    return report


def _print_node(verified: VerifiedNode, found: VerifyResults) -> None:
    compiled, report = verified.compiled, verified.report
    for failure in report.case_failures:
        click.echo(case_text(compiled, failure), err=True)
    for difference, path in zip(report.differences, verified.saved, strict=True):
        click.echo(difference_text(compiled, difference, path) + "\n", err=True)
    for broken in report.broken:
        click.echo(broken_text(compiled, broken) + "\n", err=True)
    click.echo(summary_line(report))
    for line in uncovered_lines(compiled.source.path, report.coverage.uncovered):
        click.echo(f"  {line}")
    for note in refusal_notes(compiled, report.broken_clauses, report.executions + report.refused):
        click.echo(f"  note: {note}")
    below = found.below(verified)
    if below is not None:
        click.echo(below, err=True)


def _print_end(found: VerifyResults, style: str, files: int) -> None:
    if style == "json":
        click.echo(json_text(verify_json(found), is_ascii=False))
    elif style == "sarif":
        click.echo(json_text(verify_sarif(found), is_ascii=False))
    elif style == "junit":
        click.echo(verify_junit(found))
    else:
        if len(found.nodes) > 1:
            click.echo(total_line([each.report for each in found.nodes]))
        if found.drawn is not None:
            click.echo(programs_line(found.drawn))
        if found.refused:
            listed = ", ".join(found.refused)
            click.echo(f"{len(found.refused)} of {files} nodes have errors and were not verified: {listed}")
