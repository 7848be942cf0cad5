"""`vesper verify`."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path

import click

from vesper.cli.exits import FINE, OUR_BUG, WRONG_INPUT
from vesper.cli.load_node import find_nodes, nodes_option, print_diagnostics
from vesper.cli.number_ranges import FiniteRange
from vesper.cli.output.outcomes import json_text
from vesper.cli.verify.reports import Found, Verified, verify_json, verify_junit, verify_sarif
from vesper.cli.verify.text import (
    broken_text,
    case_text,
    difference_text,
    failure_text,
    programs_line,
    summary_line,
    total_line,
)
from vesper.compiler import Compiled, compile_file
from vesper.compiler.reading import shown_path
from vesper.engines.engine import Engine
from vesper.engines.registry import REFERENCE
from vesper.verify.differential.against import BadAnswer, CannotImport, Function, import_function
from vesper.verify.differential.forms import COMPARED
from vesper.verify.differential.regressions import FOLDER, save_program, save_regression
from vesper.verify.differential.verifier import Report, Verifier
from vesper.verify.programs.campaign import INPUTS_PER_PROGRAM, ProgramsReport, verify_programs

_MAX_EXAMPLES = 10_000


@click.command("verify")
@click.argument("paths", nargs=-1)
@nodes_option
@click.option(
    "--max-examples",
    type=click.IntRange(1, 10**9),
    default=_MAX_EXAMPLES,
    show_default=True,
    help="Inputs for each node.",
)
@click.option(
    "--seconds",
    type=FiniteRange(0.1, 10**7),
    metavar="S",
    help="End the whole command after about so long, the time shared by the nodes; --max-examples holds too.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed draws the same inputs.")
@click.option(
    "--programs",
    type=click.IntRange(0, 10**6),
    default=0,
    show_default=True,
    help=f"Draw this many random programs and run each on {INPUTS_PER_PROGRAM} inputs. Without PATHS, nothing else.",
)
@click.option(
    "--engine",
    "chosen",
    multiple=True,
    type=click.Choice(list(COMPARED)),
    help=f"An engine to compare with {REFERENCE}; may be given several times. All, unless said.",
)
@click.option(
    "--against",
    metavar="MODULE:FUNCTION",
    help="Compare one pure node with a Python function of yours, called with the inputs as keyword arguments.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json", "junit", "sarif"]),
    default="text",
    show_default=True,
    help="For people, for a program, for a CI server, or for a code host. All but the first go to standard output.",
)
@click.option(
    "--save-to",
    "--save",
    type=click.Path(path_type=Path, file_okay=False),
    default=FOLDER,
    show_default=True,
    help="Where a disagreement is kept as a conformance case.",
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
    style: str,
    save_to: Path,
) -> None:
    """Show that the engines agree on nodes.

    Runs each node's own test cases, then inputs drawn from its types, constraints, literals and cases, on every engine,
    and compares outcomes and intermediate values. A disagreement is shrunk to the smallest input and kept as a case. A
    postcondition that breaks is a defect of the node. A node with errors is reported, and the others are verified.
    PATHS are files, folders or node names; without any, every node under --nodes is verified. Random programs test
    Vesper itself: see docs/how-to/verify-nodes.md.
    """
    begun = time.monotonic()
    engines = _engines(chosen, against)
    only_programs = programs > 0 and not paths and against is None
    files = [] if only_programs else find_nodes(paths, root)
    if not files and not only_programs:
        raise click.UsageError("there are no .vsp files here")
    compiled_nodes, refused = _compiled(files)
    function = None if against is None else _function(against, compiled_nodes, files)
    found = Found([*engines], seed, against, [], refused, None, 0.0)
    waiting = len(compiled_nodes) + (programs > 0)
    for compiled in compiled_nodes:
        share = None if seconds is None else max(0.0, seconds - (time.monotonic() - begun)) / waiting
        verifier = Verifier(compiled, engines, seed, against=function)
        report = _verify(verifier, max_examples, share, shows_progress=style == "text")
        saved = [save_regression(save_to, compiled, difference, against) for difference in report.differences]
        verified = Verified(compiled, report, saved)
        found.nodes.append(verified)
        waiting -= 1
        if style == "text":
            _print_node(verified)
    if programs:
        left = None if seconds is None else max(0.0, seconds - (time.monotonic() - begun))
        found.drawn = _verify_programs(engines, programs, seed, save_to, style, left)
    found.elapsed_seconds = time.monotonic() - begun
    _print_end(found, style, len(files))
    sys.exit(FINE if found.passed else OUR_BUG if found.engines_disagree else WRONG_INPUT)


def _engines(chosen: tuple[str, ...], against: str | None) -> dict[str, Engine]:
    """The engines to run, the reference first; a function of the user's takes its place where it was not asked for."""
    if not chosen:
        return COMPARED
    if against is None:
        if set(chosen) == {REFERENCE}:
            others = ", ".join(name for name in COMPARED if name != REFERENCE)
            raise click.UsageError(f"--engine {REFERENCE} is what the others are compared with: name another, {others}")
        chosen = (REFERENCE, *chosen)
    return {name: engine for name, engine in COMPARED.items() if name in chosen}


def _function(name: str, compiled_nodes: list[Compiled], files: list[Path]) -> Function:
    if len(files) != 1 or not compiled_nodes:
        what = "has errors" if len(files) == 1 else f"and here are {len(files)}"
        raise click.UsageError(f"--against compares one node, {what}; name one")
    (compiled,) = compiled_nodes
    if not compiled.node.is_pure():
        raise click.UsageError(
            f"--against: {compiled.node.node_id} asks for effects; only a pure node can be compared with a function"
        )
    try:
        return Function(name, import_function(name, Path.cwd()), compiled)
    except CannotImport as problem:
        raise click.UsageError(f"--against {name}: {problem}") from None


def _compiled(files: list[Path]) -> tuple[list[Compiled], list[str]]:
    """The nodes to verify, and the files with errors, after saying which ones."""
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


def _verify(verifier: Verifier, max_examples: int, seconds: float | None, shows_progress: bool) -> Report:
    try:
        if not shows_progress or not sys.stderr.isatty():
            return verifier.run(max_examples, seconds=seconds)
        label = verifier.report.node_id
        with click.progressbar(length=max_examples, label=label, file=sys.stderr) as bar:
            return verifier.run(max_examples, lambda _: bar.update(1), seconds=seconds)
    except BadAnswer as problem:
        raise click.ClickException(str(problem)) from None


def _verify_programs(
    engines: Mapping[str, Engine], count: int, seed: int, save_to: Path, style: str, seconds: float | None
) -> ProgramsReport:
    if style == "text" and sys.stderr.isatty():
        with click.progressbar(length=count, label="random programs", file=sys.stderr) as bar:
            report = verify_programs(engines, count, seed, progress=lambda _: bar.update(1), seconds=seconds)
    else:
        report = verify_programs(engines, count, seed, seconds=seconds)
    for failure in report.failures:
        saved = save_program(save_to, failure.text)
        case = None
        if failure.compiled is not None and failure.difference is not None:
            case = save_regression(save_to, failure.compiled, failure.difference)
        if style == "text":
            click.echo(failure_text(failure, saved, case) + "\n", err=True)
    return report


def _print_node(verified: Verified) -> None:
    compiled, report = verified.compiled, verified.report
    for failure in report.case_failures:
        click.echo(case_text(compiled, failure), err=True)
    for difference, path in zip(report.differences, verified.saved, strict=True):
        click.echo(difference_text(compiled, difference, path) + "\n", err=True)
    for broken in report.broken:
        click.echo(broken_text(compiled, broken) + "\n", err=True)
    click.echo(summary_line(report))


def _print_end(found: Found, style: str, files: int) -> None:
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
