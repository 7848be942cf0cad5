"""`vesper migrate fill`: generated inputs for the paths of a node that traffic seldom takes."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vesper.cli.exits import OUR_BUG
from vesper.cli.journal.text import document, number
from vesper.cli.load_node import compile_or_exit, find_node
from vesper.cli.migrate.open_store import Opened, now_us, the_store
from vesper.cli.number_ranges import FiniteRange
from vesper.cli.options import nodes_option, store_options, style_option
from vesper.cli.status.text import path_lack
from vesper.journal.errors import JournalError
from vesper.journal.owner import this_owner
from vesper.migration.compare.transcript import Transcript
from vesper.migration.control.modes import Mode
from vesper.migration.stores import ledger
from vesper.migration.stores.overview import PathOverview, read_paths
from vesper.migration.stores.reservoir import transcripts
from vesper.migration.stores.store import Batch, Happened, NodeKey, Store, keys_of
from vesper.values.model import printable

if TYPE_CHECKING:
    from vesper.compiler import Compiled
    from vesper.migration.workers.path_filling import Filled
    from vesper.migration.workers.rerun import Pair


@click.command("fill")
@click.argument("node")
@click.option(
    "--seconds",
    type=FiniteRange(0.1, 86_400),
    default=10.0,
    show_default=True,
    metavar="S",
    help="End after so long, with what was found until then.",
)
@click.option(
    "--max-examples",
    type=click.IntRange(1, 10**8),
    default=100_000,
    show_default=True,
    metavar="N",
    help="End after so many inputs.",
)
@click.option("--seed", type=click.IntRange(0, 10**12), default=0, show_default=True, help="Another one draws others.")
@store_options
@nodes_option
@style_option
def fill_command(
    node: str,
    seconds: float,
    max_examples: int,
    seed: int,
    config: Path | None,
    dsn: str | None,
    root: Path,
    style: str,
) -> None:
    """Run generated inputs on both engines, as evidence for the paths of NODE that traffic took and that lack it.

    Such a path is compared before its answer leaves, in whatever mode the node is. Generated inputs count for their
    path and never for the node, and only for paths that traffic has taken. A node with effects has none: what these
    answer is nobody's to make up. Exit code 3: the engines disagree, and the divergence is in the store.
    """
    from vesper.migration.compare.comparator import Comparator
    from vesper.migration.workers.rerun import Pair  # engines and generators: the other commands are there at once

    compiled = compile_or_exit(find_node(node, root))
    if not compiled.node.is_pure():
        raise click.ClickException(f"{compiled.node.node_id} asks for effects, and what they answer is not made up")
    with the_store(config, dsn) as opened:
        comparator = Comparator(compiled, opened.migration.of(compiled.node.node_id).tolerances)
        key = _the_key(opened.store, compiled, comparator.version)
        lacking = _lacking(_paths(opened, key))
        filled, fingerprint = _filled(opened, key, Pair(compiled, comparator), seed, max_examples, seconds)
        after = _paths(opened, key) if fingerprint is None else []
    shown = [each for each in after if each.name in lacking]
    if style == "json":
        click.echo(document(_json(key, filled, shown, fingerprint)))
    elif fingerprint is not None:
        click.echo(f"THE ENGINES DISAGREE: `vesper divergences show {fingerprint}`", err=True)
    else:
        _say(key, filled, shown)
    sys.exit(0 if fingerprint is None else OUR_BUG)


def _filled(
    opened: Opened, key: NodeKey, pair: Pair, seed: int, most: int, seconds: float
) -> tuple[Filled, str | None]:
    """What was found and told, and the fingerprint of a divergence. Some of what is found traffic had brought before:
    what is lacking then is drawn again."""
    from vesper.migration.workers.path_filling import Filled, Filler

    until = time.monotonic() + seconds
    filler: Filler | None = None
    total = Filled()
    while lacking := _lacking(_paths(opened, key)):
        if filler is None:
            filler = Filler(pair, opened.store.secret(), seed, _examples(opened.store, key, lacking))
        part = filler.fill(lacking, most - total.tried, lambda: time.monotonic() >= until)
        total.tried += part.tried
        for path, found in part.found.items():
            total.found.setdefault(path, set()).update(found)
        fingerprint = _tell(opened, key, pair, part)
        if fingerprint is not None:
            return total, fingerprint
        if total.tried >= most or time.monotonic() >= until:
            break
    return total, None


def _lacking(paths: Sequence[PathOverview]) -> dict[str, int]:
    """How many runs each path lacks. One with an open divergence lacks that it is closed."""
    return {each.name: each.lacks for each in paths if each.lacks and not each.seen.open}


def _the_key(store: Store, compiled: Compiled, compares: str) -> NodeKey:
    """The node as its source is. Evidence of another definition would be of no use."""
    from vesper.migration.router.epoch import epoch_of

    key = NodeKey(compiled.node.node_id, epoch_of(compiled, compares))
    if key not in keys_of(store):
        raise click.ClickException(
            f"{key.node} was never routed as it is here: its text, its tolerances or the engine differ from what runs, "
            "or a function leads. Traffic comes first: which paths there are, it says"
        )
    return key


def _paths(opened: Opened, key: NodeKey) -> list[PathOverview]:
    state = ledger.load(opened.store, key, opened.settings)
    if state.mode is Mode.PYTHON_ONLY:
        raise click.ClickException(f"{printable(key.node)} is in python_only, where nothing counts as evidence")
    return read_paths(opened.store, state)


def _examples(store: Store, key: NodeKey, lacking: dict[str, int]) -> Sequence[dict[str, object]]:
    """Inputs that took the paths, as far as the store has kept any: what is like them often takes the same."""
    found = []
    for path, kept in transcripts(store, key).items():
        for text in kept.values() if path in lacking else ():
            try:
                found.append(dict(Transcript.from_text(text).inputs))
            except (JournalError, ValueError, KeyError, TypeError):
                continue  # of another version of Vesper, which may have written it in other words
    return found


def _tell(opened: Opened, key: NodeKey, pair: Pair, filled: Filled) -> str | None:
    """Tells the store; the fingerprint of the divergence, where there is one."""
    from vesper.host.plans import plans_of
    from vesper.migration.compare.divergence_record import divergence_of
    from vesper.migration.router.routes import happened_of

    happened: tuple[Happened, ...] = ()
    if filled.trouble is not None:
        kept = divergence_of(filled.trouble, pair.compiled, plans_of(pair.compiled).is_sensitive, now_us())
        happened = (happened_of(filled.trouble, kept),)
    generated = {path: frozenset(found) for path, found in filled.found.items()}
    if happened or generated:
        process = f"{this_owner()}+{secrets.token_hex(4)}"
        batch = Batch(process, 1, happened, generated=generated)
        ledger.apply(opened.store, key, batch, opened.rules, now_us(), is_in_use=False)
    return None if not happened or happened[0].divergence is None else happened[0].divergence.fingerprint


def _say(key: NodeKey, filled: Filled, shown: Sequence[PathOverview]) -> None:
    if not shown:
        click.echo(f"{printable(key.node)}: no path that traffic took lacks evidence that could be generated")
        return
    found = sum(map(len, filled.found.values()))
    click.echo(
        f"{printable(key.node)}: {number(filled.tried, 'input')} tried, {found:,} of them on the "
        f"{number(len(shown), 'path')} that lacked evidence"
    )
    for each in shown:
        click.echo(
            f"  {each.letter}  {each.seen.clean:,} of traffic and {each.seen.generated:,} generated: {path_lack(each)}"
        )


def _json(key: NodeKey, filled: Filled, shown: Sequence[PathOverview], fingerprint: str | None) -> dict[str, Any]:
    return {
        "node": key.node,
        "epoch": key.epoch,
        "tried": filled.tried,
        "divergence": fingerprint,
        "paths": [
            {
                "letter": each.letter,
                "path": each.name,
                "clean": each.seen.clean,
                "generated": each.seen.generated,
                "lacks": each.lacks,
                "is_proven": each.is_proven,
            }
            for each in shown
        ],
    }
