"""`vesper divergences`: where the engines differed on live traffic, made small, kept as a case, and closed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from vesper.cli.divergences.text import (
    Listed,
    list_json,
    list_lines,
    show_json,
    show_lines,
    shrunk_json,
    shrunk_lines,
)
from vesper.cli.journal.open_journal import by_option, style_option, the_journal, this_user
from vesper.cli.journal.text import document, number
from vesper.cli.load_node import compile_or_exit, find_node, load_or_exit, nodes_option
from vesper.cli.migrate.open_store import (
    NOTHING_YET,
    Opened,
    epoch_option,
    found_and_untold,
    missing_file,
    now_us,
    short_epoch,
    store_dsn,
    store_options,
    the_key,
    the_keys,
    the_store,
    why_option,
)
from vesper.cli.number_ranges import FiniteRange
from vesper.migration.compare.divergence import Divergence
from vesper.migration.compare.paths import PathNote
from vesper.migration.control.state import Close, NodeState, Refused
from vesper.migration.stores import ledger
from vesper.migration.stores.overview import newest, read_node
from vesper.migration.stores.store import NodeKey, Store, Transaction, keys_of
from vesper.values.model import printable
from vesper.verify.differential.regressions import FOLDER

if TYPE_CHECKING:
    from vesper.compiler import Compiled
    from vesper.engines.engine import Program
    from vesper.migration.compare.shrinking import Shrunk
    from vesper.migration.compare.transcript import Transcript

_MOST_NAMED = 10


@click.group("divergences")
def command() -> None:
    """See where the engines differ on live traffic, and make the smallest case of it.

    FINGERPRINT is that of a divergence, or as much of its beginning as is unique. See
    docs/how-to/look-at-divergences.md.

    Exit codes: 0 fine, 1 refused or cannot be read, 2 usage, 3 a bug in Vesper.
    """


@dataclass(frozen=True, slots=True)
class _Found:
    key: NodeKey
    divergence: Divergence


# -- list -----------------------------------------------------------------------------------------


@command.command("list")
@store_options
@click.option("--node", metavar="NAME", help="Only those of this node: an id, a name with one version, or a file.")
@click.option("--all", "is_all", is_flag=True, help="Those that are closed, and those of older epochs, too.")
@style_option
def list_command(config: Path | None, dsn: str | None, node: str | None, is_all: bool, style: str) -> None:
    """List the divergences that are open, the last seen first."""
    where, _ = store_dsn(config, dsn)
    absent = missing_file(where)
    if dsn is None and node is None and absent is not None:
        click.echo(NOTHING_YET.format(f"there is no store at {printable(str(absent))}"), err=True)
        if style == "json":
            click.echo("[]")
        return
    with the_store(config, dsn) as opened:
        keys = keys_of(opened.store) if node is None else the_keys(opened.store, node)
        current = _current(opened, keys)
        kept, damaged = _kept(opened.store, keys)
        found = [Listed(each.key, each.divergence, each.key in current) for each in kept]
    for each in found_and_untold(config, dsn):
        click.echo(f"warning: {printable(each)}", err=True)
    shown = [each for each in found if is_all or (each.is_current and each.divergence.status == "open")]
    shown.sort(key=lambda each: (-each.divergence.last_us, each.divergence.fingerprint))
    if style == "json":
        click.echo(document([list_json(each) for each in shown]))
    else:
        if shown or not damaged:
            none = "there is no divergence, open or closed" if is_all else "no divergence is open"
            click.echo("\n".join(list_lines(shown)) if shown else none)
        older = sum(each.divergence.status == "open" and not each.is_current for each in found)
        if older and not is_all:
            click.echo(f"\n{number(older, 'divergence')} of older epochs of these nodes never closed; --all shows them")
    if damaged:
        raise click.ClickException("\n".join(damaged))


def _current(opened: Opened, keys: Sequence[NodeKey]) -> set[NodeKey]:
    """Of each node the epoch that was written last."""
    return {each.key for each in newest(read_node(opened.store, key, opened.settings) for key in keys)}


def _kept(store: Store, keys: Sequence[NodeKey]) -> tuple[list[_Found], list[str]]:
    """All that can be read, and what is wrong with the others: one that is damaged hides no other."""
    found: list[_Found] = []
    damaged: list[str] = []
    for key in keys:
        for text in store.divergences(key):
            try:
                found.append(_Found(key, Divergence.from_text(text)))
            except (ValueError, TypeError, KeyError, AttributeError) as problem:
                damaged.append(
                    f"the store holds a divergence of {printable(key.node)} that cannot be read: "
                    f"{printable(str(problem))}"
                )
    return found, damaged


# -- which one ------------------------------------------------------------------------------------


def _the_divergence(opened: Opened, wanted: str, epoch: str | None) -> _Found:
    """The one that starts so; in the newest epoch that has it, where none is named."""
    if not wanted or not wanted.isprintable() or len(wanted) > 80:
        raise click.ClickException(f"{wanted[:40]!a} cannot be the fingerprint of a divergence")
    keys = keys_of(opened.store)
    kept, damaged = _kept(opened.store, keys)
    found = [each for each in kept if each.divergence.fingerprint.startswith(wanted)]
    if epoch is not None:
        found = [each for each in found if each.key.epoch.startswith(epoch)]
    names = list(dict.fromkeys(each.divergence.fingerprint for each in found))
    if not names:
        within = "" if epoch is None else f" in an epoch `{printable(epoch[:40])}`"
        raise click.ClickException(
            f"the store has no divergence `{printable(wanted)}`{within}; `vesper divergences list --all` lists those "
            "there are" + (f" ({len(damaged):,} more cannot be read)" if damaged else "")
        )
    if len(names) > 1:
        shown = [f"  {each}" for each in names[:_MOST_NAMED]]
        more = ["  …"] if len(names) > _MOST_NAMED else []
        raise click.ClickException("\n".join([f"several divergences start with `{wanted}`:", *shown, *more]))
    current = _current(opened, keys)
    return max(found, key=lambda each: (each.key in current, each.divergence.last_us, each.key.epoch))


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
    """Show a divergence: both answers side by side, the inputs, what effects answered, how often it came."""
    with the_store(config, dsn) as opened:
        found = _the_divergence(opened, fingerprint, epoch)
        note = opened.store.paths(found.key).get(found.divergence.path)
    words = [] if note is None else _path_words(PathNote.from_text(note), found.divergence, root)
    if style == "json":
        click.echo(document(show_json(found.key, found.divergence, words)))
        return
    click.echo("\n".join(show_lines(found.key, found.divergence, words)))


def _path_words(note: PathNote, divergence: Divergence, root: Path) -> list[str]:
    """The path in words; its conditions only where the source is what it was."""
    from vesper.cli.output.path_words import path_words
    from vesper.compiler import compile_file
    from vesper.engines.direct_engine import DirectEngine
    from vesper.engines.engine import EngineUnavailable
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
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The node as it was when they differed, where it means something else now.",
)
@click.option(
    "--against",
    metavar="MODULE:FUNCTION",
    help="Of an adopted function: the function. It is called for every try, so only where that does no harm.",
)
@click.option(
    "--seconds",
    type=FiniteRange(0.1, 86_400),
    default=10.0,
    show_default=True,
    metavar="S",
    help="End after so long, with what is smallest until then.",
)
@click.option(
    "--save",
    type=click.Path(path_type=Path, file_okay=False),
    default=FOLDER,
    show_default=True,
    help="Where the case is kept. That of a sensitive node is kept only where this is given.",
)
@click.option(
    "--reveal", is_flag=True, help="Of a sensitive node: read its inputs in the journal, and show what is left."
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
    """Make the inputs, and what effects answered, as small as they get while the engines differ in the same way.

    Both engines run again on what was kept; nothing is performed. What is left becomes a conformance case that fails
    until the fault is mended.
    """
    with the_store(config, dsn) as opened:
        found = _the_divergence(opened, fingerprint, epoch)
        tolerances = opened.migration.of(found.key.node).tolerances
        compiled = _the_node(found.divergence, root, node_file)
        is_sensitive = _is_sensitive(compiled)
        shown: Divergence | Transcript = found.divergence
        if is_sensitive:
            shown = _journalled(found.divergence, config, reveal)
        from vesper.engines.registry import PAIR
        from vesper.migration.compare.comparator import Comparator
        from vesper.migration.compare.shrinking import CannotShrink, shrink_divergence
        from vesper.migration.compare.tolerances import BadTolerance

        programs: dict[str, Program] = {name: load_or_exit(engine, compiled) for name, engine in PAIR.items()}
        judge = Comparator
        if against is not None:
            from vesper.migration.router.adoption import FunctionComparator

            judge = FunctionComparator
            shown, programs[against] = _asked(found.divergence, against, compiled)
        try:
            comparator = judge(compiled, tolerances)
            with _progress(style) as told:
                small = shrink_divergence(compiled, shown, programs, comparator, seconds, told)
        except (CannotShrink, BadTolerance) as problem:
            raise click.ClickException(f"{found.divergence.fingerprint}: {printable(str(problem))}") from None
        if not is_sensitive:
            _keep(opened.store, found, small)
    is_named = context.get_parameter_source("save") is not ParameterSource.DEFAULT
    saved = small.save(save) if is_named or not is_sensitive else None
    if style == "json":
        click.echo(document(shrunk_json(found.divergence, small, saved)))
        return
    click.echo("\n".join(shrunk_lines(found.divergence, small, saved)))


def _the_node(divergence: Divergence, root: Path, node_file: Path | None) -> Compiled:
    """The node as it was when the engines differed; otherwise the message says what to do."""
    path = node_file or find_node(divergence.node, root)
    compiled = compile_or_exit(path)
    if compiled.node.node_id != divergence.node:
        raise click.ClickException(f"{path} is {compiled.node.node_id}, and the divergence is of {divergence.node}")
    wanted = divergence.extra.get("semantic_hash")
    if wanted is not None and compiled.semantic_hash != wanted:
        raise click.ClickException(
            f"{path} means something else than the node on which the engines differed (its semantic hash is "
            f"{compiled.semantic_hash[:12]}, and was {str(wanted)[:12]}); --node-file names the node as it was"
        )
    return compiled


def _asked(divergence: Divergence, against: str, compiled: Compiled) -> tuple[Divergence, Program]:
    """The divergence with the function under the name by which it is asked here, and the function as a program. In the
    service it may have had another one: the module that is run is called `__main__`."""
    from vesper.migration.router.adoption import FunctionProgram
    from vesper.verify.differential.against import CannotImport, import_function

    leader, follower = divergence.engines
    if ":" not in leader:
        raise click.UsageError(f"--against is of an adopted function, and here {leader} and {follower} differ")
    try:
        function = import_function(against, Path.cwd())
    except CannotImport as problem:
        raise click.UsageError(f"--against {printable(against)}: {problem}") from None
    return replace(divergence, engines=(against, follower)), FunctionProgram(function, compiled)


def _is_sensitive(compiled: Compiled) -> bool:
    from vesper.host.plans import plans_of

    return plans_of(compiled).is_sensitive


def _journalled(divergence: Divergence, config: Path | None, reveal: bool) -> Transcript:
    """The inputs and answers of a sensitive node: the journal alone has them."""
    from vesper.journal.journal import JournalError
    from vesper.migration.compare.journalled import NotJournalled, journalled_transcript

    if not reveal:
        raise click.ClickException(
            f"{divergence.node} is sensitive: its inputs are in the journal and nowhere else. --reveal reads them "
            "there, and shows what is left of them"
        )
    problems = []
    with the_journal(config, None) as journal:
        for exemplar in divergence.exemplars:
            try:
                recorded = journal.read(exemplar.execution)
                return journalled_transcript([each.entry for each in recorded.entries])
            except (JournalError, NotJournalled) as problem:
                problems.append(f"  {printable(exemplar.execution)}: {printable(str(problem))}")
    raise click.ClickException("\n".join(["the journal has none of the executions that show it:", *problems]))


@contextmanager
def _progress(style: str) -> Iterator[Callable[[int, int], None] | None]:
    """A line on standard error that says how far it is, where somebody watches."""
    if style != "text" or not sys.stderr.isatty():
        yield None
        return

    def told(tries: int, size: int) -> None:
        click.echo(f"\r{number(size, 'byte')} after {tries:,} tries\x1b[K", err=True, nl=False)

    try:
        yield told
    finally:
        click.echo("\r\x1b[K", err=True, nl=False)


def _keep(store: Store, found: _Found, small: Shrunk) -> None:
    """Puts the smallest case beside the divergence, whatever else became of it meanwhile."""

    def work(transaction: Transaction) -> None:
        text = transaction.divergence(found.divergence.fingerprint)
        if text is not None:
            known = Divergence.from_text(text)
            after = replace(known, small=small.case, odd=small.odd or known.odd)
            transaction.put_divergence(known.fingerprint, after.to_text())

    store.transact(found.key, work)


# -- close ----------------------------------------------------------------------------------------


@command.command("close")
@click.argument("fingerprint", required=False)
@click.option("--all", "node", metavar="NODE", help="All that are open of this node, in place of one.")
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
    """Say that a divergence was looked at and is done with: it keeps its node from rising no more.

    It is open again as soon as it is seen again. A latch stays until `vesper migrate resume` releases it.
    """
    if (fingerprint is None) == (node is None):
        raise click.UsageError("name one divergence by its FINGERPRINT, or a node by --all NODE")
    who = by or this_user()
    with the_store(config, dsn) as opened:
        if fingerprint is not None:
            found = _the_divergence(opened, fingerprint, epoch)
            if found.divergence.status == "closed":
                known = found.divergence
                raise click.ClickException(
                    f"{known.fingerprint} is closed already, by {printable(known.closed_by or '?')}: "
                    f"{printable(known.closed_why or '')}"
                )
            chosen = [found]
        else:
            chosen = _open_of(opened, node or "", epoch)
        closed = [(each, _closed(opened, each, who, why)) for each in chosen]
    if style == "json":
        said = [_closed_json(each, state, who, why) for each, state in closed]
        click.echo(document(said if node is not None else said[0]))
        return
    for each, state in closed:
        left = len(state.open) + len(state.noise)
        more = (
            f"{number(left, 'divergence')} of it {'is' if left == 1 else 'are'} still open" if left else "none is open"
        )
        name = f"{printable(each.key.node)} ({short_epoch(each.key.epoch)})"
        click.echo(f"closed: {each.divergence.fingerprint} of {name}; {more}")
    key, last = closed[-1][0].key, closed[-1][1]
    if last.latches:
        click.echo(f"the node is latched in python_only; `vesper migrate resume {printable(key.node)}` releases it")


def _open_of(opened: Opened, node: str, epoch: str | None) -> list[_Found]:
    key = the_key(opened, node, epoch)
    kept, damaged = _kept(opened.store, [key])
    found = [each for each in kept if each.divergence.status != "closed"]
    if damaged:
        click.echo(f"warning: {damaged[0]}; it stays as it is", err=True)
    if not found:
        raise click.ClickException(f"no divergence of {printable(key.node)} ({short_epoch(key.epoch)}) is open")
    return found


def _closed(opened: Opened, found: _Found, who: str, why: str) -> NodeState:
    closing = Close(found.divergence.fingerprint, who, why)
    applied = ledger.apply_event(opened.store, found.key, closing, opened.rules, now_us())
    refused = next((each for each in applied.decisions if isinstance(each, Refused)), None)
    if refused is not None:
        raise click.ClickException(printable(refused.why))
    return applied.state


def _closed_json(found: _Found, state: NodeState, who: str, why: str) -> dict[str, object]:
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
