"""`vesper compare`: the outcomes that a new version of a node would change."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vesper.cli.compare.recorded import RecordedOptions, compare_recorded, recorded_options
from vesper.cli.exits import FINE, OUR_BUG, WRONG_INPUT
from vesper.cli.load_node import compile_or_exit, find_node
from vesper.cli.number_ranges import FiniteRange
from vesper.cli.options import NODE, nodes_option, style_option

if TYPE_CHECKING:
    from vesper.changes.compare.comparing import CompareLimits, CompareResult
    from vesper.compiler import Compiled

_SECONDS = 10.0
_MAX_INPUTS = 100_000
_MAX_WITNESSES = 5


@click.command("compare")
@click.argument("before", type=NODE)
@click.argument("after", type=NODE, required=False)
@nodes_option
@click.option(
    "--seconds",
    type=FiniteRange(0.1, 10**6),
    metavar="S",
    default=_SECONDS,
    show_default=True,
    help="Time limit of search and solver together; witnesses are shrunk after it.",
)
@click.option(
    "--max-inputs",
    type=click.IntRange(1, 10**9),
    default=_MAX_INPUTS,
    show_default=True,
    help="Inputs that the search runs on both versions.",
)
@click.option(
    "--max-witnesses",
    type=click.IntRange(1, 1_000),
    default=_MAX_WITNESSES,
    show_default=True,
    help="Witnesses to show, one for each pair of paths, the smallest first.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the generated inputs.")
@click.option("--implies", is_flag=True, help="Show only inputs that BEFORE accepts and AFTER refuses.")
@click.option(
    "--monotone",
    metavar="INPUT",
    help="Show two inputs between which an output falls although this input grows; of one node or of both.",
)
@click.option("--output", "outputs", multiple=True, metavar="NAME", help="An output for --monotone; all by default.")
@click.option("--bounds", metavar="OUTPUT", help="Show the smallest and the largest value of an output.")
@click.option(
    "--keep",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the witnesses as cases: into this node, or into a new file.",
)
@recorded_options
@style_option
@click.pass_context
def command(
    context: click.Context,
    /,
    before: str,
    after: str | None,
    root: Path,
    seconds: float,
    max_inputs: int,
    max_witnesses: int,
    seed: int,
    implies: bool,
    monotone: str | None,
    outputs: tuple[str, ...],
    bounds: str | None,
    keep: Path | None,
    style: str,
    **recorded: Any,
) -> None:
    """Show inputs on which two versions of a node differ.

    BEFORE and AFTER are nodes or files. The smallest differing input of each pair of paths is a witness: it ran on both
    engines of both versions. The versions are equal only where that is proven, or all inputs were run; otherwise no
    difference was found. Exit code 1 means different.

    With --on, both versions are replayed on recorded inputs and answers instead, and nothing is performed. Exit code 1
    then means that more outcomes change than --max-changed allows.
    """
    from vesper.changes.compare.comparing import CompareLimits
    from vesper.changes.compare.versions import EnginesDisagree

    options = RecordedOptions.of(recorded)
    if options.on:
        _refuse_search_options(context)
        if after is None:
            raise click.UsageError("name two versions: --on replays both")
        sys.exit(compare_recorded(_compile(before, root), _compile(after, root), options, style))
    options.refuse_without_on()
    if sum((implies, monotone is not None, bounds is not None)) > 1:
        raise click.UsageError("--implies, --monotone and --bounds are different questions: ask one")
    if outputs and monotone is None:
        raise click.UsageError("--output belongs to --monotone")
    is_single = monotone is not None or bounds is not None
    if after is None and not is_single:
        raise click.UsageError("name two versions, or ask --monotone or --bounds of one node")
    if keep is not None and is_single:
        raise click.UsageError("--keep writes witnesses of two versions: it has no meaning for one node")
    nodes = [_compile(each, root) for each in (before, after) if each is not None]
    limits = CompareLimits(seconds, max_inputs, max_witnesses)
    try:
        if is_single:
            sys.exit(_answer_single(nodes, monotone, outputs, bounds, limits, seed, style))
        sys.exit(_compare(nodes, limits, seed, implies, keep, style))
    except EnginesDisagree as problem:
        click.echo(f"error: {problem}: run `vesper verify` on it", err=True)
        sys.exit(OUR_BUG)


def _compare(
    nodes: list[Compiled], limits: CompareLimits, seed: int, implies: bool, keep: Path | None, style: str
) -> int:
    from vesper.changes.compare.comparing import compare_versions
    from vesper.cli.compare.reports import compare_json
    from vesper.cli.compare.text import compare_text
    from vesper.cli.output.outcomes import json_text
    from vesper.cli.output.progress import Progress

    with Progress("comparing", limits.max_inputs) as progress:
        result = compare_versions(nodes[0], nodes[1], limits, seed, progress.reach, implies)
    click.echo(json_text(compare_json(result), is_ascii=False) if style == "json" else compare_text(result))
    if keep is not None:
        _keep(result, keep)
    return WRONG_INPUT if result.witnesses else FINE


def _answer_single(
    nodes: list[Compiled],
    monotone: str | None,
    outputs: tuple[str, ...],
    bounds: str | None,
    limits: CompareLimits,
    seed: int,
    style: str,
) -> int:
    """Answer a question about each node alone."""
    from vesper.changes.compare.search import SearchLimits
    from vesper.changes.compare.single import NotOrdered, SingleSearch
    from vesper.cli.compare.single_text import monotone_json, monotone_text, range_json, range_text
    from vesper.cli.output.outcomes import json_text

    code, reports = FINE, []
    for compiled in nodes:
        within = SearchLimits(limits.max_inputs, time.monotonic() + limits.seconds / len(nodes))
        search = SingleSearch(compiled, seed, within)
        try:
            if monotone is not None:
                found = search.monotone(monotone, outputs)
                code = WRONG_INPUT if found.fall is not None else code
                reports.append((monotone_json(found), monotone_text(found)))
            else:
                assert bounds is not None
                extremes = search.range(bounds)
                reports.append((range_json(extremes), range_text(extremes)))
        except NotOrdered as problem:
            raise click.UsageError(str(problem)) from None
    if style == "json":
        click.echo(json_text([each for each, _ in reports], is_ascii=False))
    else:
        click.echo("\n".join(each for _, each in reports))
    return code


def _refuse_search_options(context: click.Context) -> None:
    """Refuse options of the search beside --on."""
    for each in context.command.params:
        is_given = context.get_parameter_source(each.name or "") is click.core.ParameterSource.COMMANDLINE
        if is_given and each.name not in (*_SHARED_OPTIONS, *RecordedOptions.__dataclass_fields__):
            raise click.UsageError(f"{each.opts[0]} belongs to the search for inputs, and --on replays recorded ones")


_SHARED_OPTIONS = ("before", "after", "root", "style")


def _compile(name: str, root: Path) -> Compiled:
    return compile_or_exit(find_node(name, root))


def _keep(result: CompareResult, path: Path) -> None:
    """Write the witnesses as cases, and report where."""
    from vesper.changes.compare.cases import CannotKeep, keep_witnesses

    try:
        written = keep_witnesses(result, path)
    except CannotKeep as problem:
        raise click.ClickException(str(problem)) from None
    for note in written.notes:
        click.echo(f"note: {note}", err=True)
    click.echo(f"{written.count} case{'s' * (written.count != 1)} written to {path}", err=True)
