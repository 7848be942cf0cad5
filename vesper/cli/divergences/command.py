"""`vesper divergences`: differences of the engines on live traffic: list, show, shrink and close."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from vesper.cli.divergences.text import (
    ListedDivergence,
    list_json,
    list_lines,
    show_json,
    show_lines,
    shrunk_json,
    shrunk_lines,
)
from vesper.cli.engine_names import engine_label
from vesper.cli.journal.open_journal import current_user, open_journal
from vesper.cli.journal.text import document
from vesper.cli.load_node import compile_or_exit, find_node, load_or_exit
from vesper.cli.migrate.open_store import (
    NOTHING_YET,
    find_key,
    find_keys,
    find_unreported,
    missing_file,
    now_us,
    open_configured_store,
    store_dsn,
)
from vesper.cli.number_ranges import FiniteRange
from vesper.cli.options import ReadPath, by_option, epoch_option, nodes_option, store_options, style_option, why_option
from vesper.cli.output.progress import Progress
from vesper.journal.moments import number
from vesper.migration.compare.divergence import Divergence
from vesper.migration.compare.paths import PathNote
from vesper.migration.control.state import NodeState
from vesper.migration.stores.configured import OpenStore, short_epoch
from vesper.migration.stores.kept_divergences import (
    CannotClose,
    ChangedNode,
    StoredDivergence,
    check_definition,
    close_divergence,
    current_epochs,
    is_sensitive,
    newest_of,
    read_divergences,
    shrink_stored,
)
from vesper.migration.stores.store import keys_of
from vesper.values.model import printable
from vesper.verify.differential.regressions import FOLDER

if TYPE_CHECKING:
    from vesper.compiler import Compiled
    from vesper.engines.engine import Program
    from vesper.migration.compare.transcript import Transcript

_MAX_NAMED = 10


@click.group("divergences")
def command() -> None:
    """Show, shrink and close differences between the engines on live traffic.

    FINGERPRINT identifies a divergence; a unique prefix is enough. See docs/how-to/investigate-divergences.md.

    Exit codes: 0 success, 1 refused or unreadable, 2 usage, 3 a bug in Vesper.
    """


# -- list -----------------------------------------------------------------------------------------


@command.command("list")
@store_options
@click.option("--node", metavar="NAME", help="Only this node: an id, a name with one version, or a file.")
@click.option("--all", "is_all", is_flag=True, help="Also closed ones, and those of older epochs.")
@style_option
def list_command(config: Path | None, dsn: str | None, node: str | None, is_all: bool, style: str) -> None:
    """List open divergences, last seen first."""
    where, _ = store_dsn(config, dsn)
    absent = missing_file(where)
    if dsn is None and node is None and absent is not None:
        click.echo(NOTHING_YET.format(f"there is no store at {printable(str(absent))}"), err=True)
        if style == "json":
            click.echo("[]")
        return
    with open_configured_store(config, dsn) as opened:
        keys = keys_of(opened.store) if node is None else find_keys(opened.store, node)
        current = current_epochs(opened.store, keys, opened.settings)
        kept, damaged = read_divergences(opened.store, keys)
        found = [ListedDivergence(each.key, each.divergence, each.key in current) for each in kept]
    for each in find_unreported(config, dsn):
        click.echo(f"warning: {printable(each)}", err=True)
    shown = [each for each in found if is_all or (each.is_current and each.divergence.status == "open")]
    shown.sort(key=lambda each: (-each.divergence.last_us, each.divergence.fingerprint))
    if style == "json":
        click.echo(document([list_json(each) for each in shown]))
    else:
        if shown or not damaged:
            none = "no divergences" if is_all else "no open divergences"
            click.echo("\n".join(list_lines(shown)) if shown else none)
        older = sum(each.divergence.status == "open" and not each.is_current for each in found)
        if older and not is_all:
            click.echo(f"\n{number(older, 'divergence')} of older epochs still open; --all shows them")
    if damaged:
        raise click.ClickException("\n".join(damaged))


# -- which one ------------------------------------------------------------------------------------


def _find_divergence(opened: OpenStore, wanted: str, epoch: str | None) -> StoredDivergence:
    """Return the divergence with this prefix; without an epoch, in the newest epoch that has it."""
    if not wanted or not wanted.isprintable() or len(wanted) > 80:
        raise click.ClickException(f"{wanted[:40]!a} is not a fingerprint of a divergence")
    keys = keys_of(opened.store)
    kept, damaged = read_divergences(opened.store, keys)
    found = [each for each in kept if each.divergence.fingerprint.startswith(wanted)]
    if epoch is not None:
        found = [each for each in found if each.key.epoch.startswith(epoch)]
    names = list(dict.fromkeys(each.divergence.fingerprint for each in found))
    if not names:
        within = "" if epoch is None else f" in an epoch `{printable(epoch[:40])}`"
        raise click.ClickException(
            f"the store has no divergence `{printable(wanted)}`{within}; `vesper divergences list --all` lists all"
            + (f" ({len(damaged):,} more are unreadable)" if damaged else "")
        )
    if len(names) > 1:
        shown = [f"  {each}" for each in names[:_MAX_NAMED]]
        more = ["  …"] if len(names) > _MAX_NAMED else []
        raise click.ClickException("\n".join([f"several divergences start with `{wanted}`:", *shown, *more]))
    current = current_epochs(opened.store, keys, opened.settings)
    return newest_of(found, current)


# -- show -----------------------------------------------------------------------------------------


@command.command("show")
@click.argument("fingerprint")
@store_options
@epoch_option
@nodes_option
@style_option
def show_command(
    fingerprint: str, config: Path | None, dsn: str | None, epoch: str | None, root: Path, style: str
) -> None:
    """Show a divergence: answers side by side, inputs, count."""
    with open_configured_store(config, dsn) as opened:
        found = _find_divergence(opened, fingerprint, epoch)
        note = opened.store.paths(found.key).get(found.divergence.path)
    words = [] if note is None else _path_words(PathNote.from_text(note), found.divergence, root)
    if style == "json":
        click.echo(document(show_json(found.key, found.divergence, words)))
        return
    click.echo("\n".join(show_lines(found.key, found.divergence, words)))


def _path_words(note: PathNote, divergence: Divergence, root: Path) -> list[str]:
    """Describe the path; with its conditions only if the source is unchanged."""
    from vesper.compiler import compile_file
    from vesper.engines.direct_engine import DirectEngine
    from vesper.engines.engine import EngineUnavailable
    from vesper.migration.compare.path_words import path_words
    from vesper.repository.locate import NodeNotFound, locate

    try:
        compiled, _ = compile_file(locate(divergence.node, root))
        if compiled is None or compiled.semantic_hash != divergence.extra.get("semantic_hash"):
            return path_words(note, None, ())
        return path_words(note, compiled, DirectEngine().load(compiled).points())
    except (NodeNotFound, EngineUnavailable):
        return path_words(note, None, ())


# -- shrink ---------------------------------------------------------------------------------------


@command.command("shrink")
@click.argument("fingerprint")
@store_options
@epoch_option
@nodes_option
@click.option(
    "--node-file",
    type=ReadPath(),
    help="The node as it was at the divergence, if it has changed since.",
)
@click.option(
    "--against",
    metavar="MODULE:FUNCTION",
    help="For an adopted function: the function, which is called for every attempt and must be harmless.",
)
@click.option(
    "--seconds",
    type=FiniteRange(0.1, 86_400),
    default=10.0,
    show_default=True,
    metavar="S",
    help="Time limit; the smallest case found until then counts.",
)
@click.option(
    "--save",
    type=click.Path(path_type=Path, file_okay=False),
    default=FOLDER,
    show_default=True,
    help="Folder of the case. A case of a sensitive node is written only if this is given.",
)
@click.option(
    "--reveal", is_flag=True, help="For a sensitive node: read its inputs from the journal, and show the smallest case."
)
@style_option
@click.pass_context
def shrink_command(
    context: click.Context,
    fingerprint: str,
    config: Path | None,
    dsn: str | None,
    epoch: str | None,
    root: Path,
    node_file: Path | None,
    against: str | None,
    seconds: float,
    save: Path,
    reveal: bool,
    style: str,
) -> None:
    """Shrink a divergence to its smallest case.

    Reduces inputs and answers while the engines still differ in the same way. Both engines rerun the kept execution; no
    effect is performed. The result is a conformance case that fails until the fault is fixed.
    """
    with open_configured_store(config, dsn) as opened:
        found = _find_divergence(opened, fingerprint, epoch)
        tolerances = opened.migration.of(found.key.node).tolerances
        compiled = _compile_node(found.divergence, root, node_file)
        is_sealed = is_sensitive(compiled)
        shown: Divergence | Transcript = found.divergence
        if is_sealed:
            shown = _read_journalled(found.divergence, config, reveal)
        from vesper.engines.registry import PAIR
        from vesper.migration.compare.comparator import Comparator
        from vesper.migration.compare.shrinking import CannotShrink
        from vesper.migration.compare.tolerances import BadTolerance

        programs: dict[str, Program] = {name: load_or_exit(engine, compiled) for name, engine in PAIR.items()}
        judge = Comparator
        if against is not None:
            from vesper.migration.router.adoption import FunctionComparator

            judge = FunctionComparator
            shown, programs[against] = _adopt_function(found.divergence, against, compiled)
        try:
            comparator = judge(compiled, tolerances)
            with Progress("shrinking", None) as progress:
                report = lambda tries, size: progress.reach(tries, f"{number(size, 'byte')} after {tries:,} tries")  # noqa: E731  # used once
                small = shrink_stored(opened.store, found, shown, programs, comparator, compiled, seconds, report)
        except (CannotShrink, BadTolerance) as problem:
            raise click.ClickException(f"{found.divergence.fingerprint}: {printable(str(problem))}") from None
    is_named = context.get_parameter_source("save") is not ParameterSource.DEFAULT
    saved = small.save(save) if is_named or not is_sealed else None
    if style == "json":
        click.echo(document(shrunk_json(found.divergence, small, saved)))
        return
    click.echo("\n".join(shrunk_lines(found.divergence, small, saved)))


def _compile_node(divergence: Divergence, root: Path, node_file: Path | None) -> Compiled:
    """Compile the node of the divergence; another definition ends the command."""
    path = node_file or find_node(divergence.node, root)
    compiled = compile_or_exit(path)
    try:
        check_definition(compiled, divergence, path)
    except ChangedNode as problem:
        is_other = compiled.node.node_id != divergence.node
        hint = "" if is_other else "; name the former file with --node-file"
        raise click.ClickException(f"{problem}{hint}") from None
    return compiled


def _adopt_function(divergence: Divergence, against: str, compiled: Compiled) -> tuple[Divergence, Program]:
    """Return the divergence with the name of the function here, and the function as a program.

    In the service the name may differ: the main module is called `__main__`.
    """
    from vesper.migration.router.adoption import FunctionProgram
    from vesper.verify.differential.against import CannotImport, import_function

    leader, follower = divergence.engines
    if ":" not in leader:
        raise click.UsageError(
            f"--against applies to an adopted function; here {engine_label(leader)} and {engine_label(follower)} differ"
        )
    try:
        function = import_function(against, Path.cwd())
    except CannotImport as problem:
        raise click.UsageError(f"--against {printable(against)}: {problem}") from None
    return replace(divergence, engines=(against, follower)), FunctionProgram(function, compiled)


def _read_journalled(divergence: Divergence, config: Path | None, reveal: bool) -> Transcript:
    """Read the inputs and answers of a sensitive node from the journal, which alone has them."""
    from vesper.journal.journal import JournalError
    from vesper.migration.compare.journalled import NotJournalled, journalled_transcript

    if not reveal:
        raise click.ClickException(
            f"{divergence.node} is sensitive: only the journal has its inputs. --reveal reads them there, and shows "
            "the smallest case"
        )
    problems = []
    with open_journal(config, None) as journal:
        for exemplar in divergence.exemplars:
            try:
                recorded = journal.read(exemplar.execution)
                return journalled_transcript([each.entry for each in recorded.entries])
            except (JournalError, NotJournalled) as problem:
                problems.append(f"  {printable(exemplar.execution)}: {printable(str(problem))}")
    raise click.ClickException("\n".join(["the journal has none of the executions of this divergence:", *problems]))


# -- close ----------------------------------------------------------------------------------------


@command.command("close")
@click.argument("fingerprint", required=False)
@click.option("--all", "node", metavar="NODE", help="All open divergences of this node, instead of one.")
@store_options
@epoch_option
@why_option(is_required=True)
@by_option
@style_option
def close_command(
    fingerprint: str | None,
    node: str | None,
    config: Path | None,
    dsn: str | None,
    epoch: str | None,
    why: str,
    by: str | None,
    style: str,
) -> None:
    """Close a divergence after review.

    It no longer blocks the promotion of its node. The divergence opens again when it occurs again. A latch stays until
    `vesper migrate resume`.
    """
    if (fingerprint is None) == (node is None):
        raise click.UsageError("name a FINGERPRINT, or a node with --all NODE")
    who = by or current_user()
    with open_configured_store(config, dsn) as opened:
        if fingerprint is not None:
            found = _find_divergence(opened, fingerprint, epoch)
            chosen = [found]
        else:
            chosen = _find_open(opened, node or "", epoch)
        closed = [(each, _close(opened, each, who, why)) for each in chosen]
    if style == "json":
        listed = [_closed_json(each, state, who, why) for each, state in closed]
        click.echo(document(listed if node is not None else listed[0]))
        return
    for each, state in closed:
        left = len(state.open) + len(state.noise)
        more = f"{number(left, 'divergence')} still open" if left else "none is open"
        name = f"{printable(each.key.node)} ({short_epoch(each.key.epoch)})"
        click.echo(f"closed: {each.divergence.fingerprint} of {name}; {more}")
    key, last = closed[-1][0].key, closed[-1][1]
    if last.latches:
        click.echo(f"the node is latched in python_only; release it with `vesper migrate resume {printable(key.node)}`")


def _find_open(opened: OpenStore, node: str, epoch: str | None) -> list[StoredDivergence]:
    key = find_key(opened, node, epoch)
    kept, damaged = read_divergences(opened.store, [key])
    found = [each for each in kept if each.divergence.status != "closed"]
    if damaged:
        click.echo(f"warning: {damaged[0]}; it is not changed", err=True)
    if not found:
        raise click.ClickException(f"{printable(key.node)} ({short_epoch(key.epoch)}) has no open divergence")
    return found


def _close(opened: OpenStore, found: StoredDivergence, who: str, why: str) -> NodeState:
    try:
        return close_divergence(opened.store, found, who, why, opened.rules, now_us())
    except CannotClose as problem:
        raise click.ClickException(str(problem)) from None


def _closed_json(found: StoredDivergence, state: NodeState, who: str, why: str) -> dict[str, object]:
    return {
        "fingerprint": found.divergence.fingerprint,
        "node": found.key.node,
        "epoch": found.key.epoch,
        "status": "closed",
        "by": who,
        "why": why,
        "open": len(state.open) + len(state.noise),
        "mode": state.mode.value,
    }
