"""`vesper migrate fill`: evidence for rare paths, from generated inputs."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vesper.cli.exits import OUR_BUG
from vesper.cli.journal.text import document
from vesper.cli.load_node import compile_or_exit, find_node
from vesper.cli.migrate.open_store import now_us, open_configured_store
from vesper.cli.number_ranges import FiniteRange
from vesper.cli.options import NODE, nodes_option, store_options, style_option
from vesper.journal.errors import JournalError
from vesper.journal.moments import number
from vesper.journal.owner import this_owner
from vesper.migration.compare.transcript import Transcript
from vesper.migration.control.modes import Mode
from vesper.migration.stores import ledger
from vesper.migration.stores.configured import OpenStore
from vesper.migration.stores.overview import PathOverview, read_paths
from vesper.migration.stores.reservoir import transcripts
from vesper.migration.stores.status_text import path_need
from vesper.migration.stores.store import Batch, Happened, NodeKey, Store, keys_of
from vesper.values.model import printable

if TYPE_CHECKING:
    from vesper.compiler import Compiled
    from vesper.migration.workers.path_filling import Filled
    from vesper.migration.workers.rerun import Pair


@click.command("fill")
@click.argument("node", type=NODE)
@click.option(
    "--seconds",
    type=FiniteRange(0.1, 86_400),
    default=10.0,
    show_default=True,
    metavar="S",
    help="Time limit; evidence found until then counts.",
)
@click.option(
    "--max-examples",
    type=click.IntRange(1, 10**8),
    default=100_000,
    show_default=True,
    metavar="N",
    help="Limit on generated inputs.",
)
@click.option(
    "--seed", type=click.IntRange(0, 10**12), default=0, show_default=True, help="Seed of the generated inputs."
)
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
    """Generate evidence for rare paths of NODE.

    Generated inputs run on both engines, for paths that traffic took and that still need evidence. A path without
    enough evidence is compared before it answers, in every mode. Generated inputs count for their path, never for the
    node, and only for paths that traffic has taken. A node with effects cannot be filled, because answers of effects
    are not generated. Exit code 3: the engines disagree, and the divergence is in the store.
    """
    from vesper.migration.compare.comparator import Comparator
    from vesper.migration.workers.rerun import Pair  # imported late, for a fast start of the other commands

    compiled = compile_or_exit(find_node(node, root))
    if not compiled.node.is_pure():
        raise click.ClickException(f"{compiled.node.node_id} has effects, whose answers are not generated")
    with open_configured_store(config, dsn) as opened:
        comparator = Comparator(compiled, opened.migration.of(compiled.node.node_id).tolerances)
        key = _find_key(opened.store, compiled, comparator.version)
        lacking = _needed_runs(_read_evidence(opened, key))
        filled, fingerprint = _fill(opened, key, Pair(compiled, comparator), seed, max_examples, seconds)
        after = _read_evidence(opened, key) if fingerprint is None else []
    shown = [each for each in after if each.name in lacking]
    if style == "json":
        click.echo(document(_json(key, filled, shown, fingerprint)))
    elif fingerprint is not None:
        click.echo(f"THE ENGINES DISAGREE: `vesper divergences show {fingerprint}`", err=True)
    else:
        _print_text(key, filled, shown)
    sys.exit(0 if fingerprint is None else OUR_BUG)


def _fill(
    opened: OpenStore, key: NodeKey, pair: Pair, seed: int, most: int, seconds: float
) -> tuple[Filled, str | None]:
    """Generate evidence and report it; also return the fingerprint of a divergence.

    Inputs that traffic already had add no evidence, so generation repeats until no path lacks evidence, or a limit is
    reached.
    """
    from vesper.migration.workers.path_filling import Filled, Filler

    until = time.monotonic() + seconds
    filler: Filler | None = None
    total = Filled()
    while lacking := _needed_runs(_read_evidence(opened, key)):
        if filler is None:
            filler = Filler(pair, opened.store.secret(), seed, _kept_inputs(opened.store, key, lacking))
        part = filler.fill(lacking, most - total.tried, lambda: time.monotonic() >= until)
        total.tried += part.tried
        for path, found in part.found.items():
            total.found.setdefault(path, set()).update(found)
        fingerprint = _report(opened, key, pair, part)
        if fingerprint is not None:
            return total, fingerprint
        if total.tried >= most or time.monotonic() >= until:
            break
    return total, None


def _needed_runs(paths: Sequence[PathOverview]) -> dict[str, int]:
    """Return the runs that each path still needs, without paths that have an open divergence."""
    return {each.name: each.lacks for each in paths if each.lacks and not each.seen.open}


def _find_key(store: Store, compiled: Compiled, compares: str) -> NodeKey:
    """Return the node in the epoch of its source; evidence of another definition does not count."""
    from vesper.migration.router.epoch import epoch_of

    key = NodeKey(compiled.node.node_id, epoch_of(compiled, compares))
    if key not in keys_of(store):
        raise click.ClickException(
            f"{key.node} was not routed with this definition: its text, its tolerances or the engine differ from what "
            "runs, or a function leads. Route traffic first, which determines the paths"
        )
    return key


def _read_evidence(opened: OpenStore, key: NodeKey) -> list[PathOverview]:
    state = ledger.load(opened.store, key, opened.settings)
    if state.mode is Mode.PYTHON_ONLY:
        raise click.ClickException(f"{printable(key.node)} is in python_only, where no run counts as evidence")
    return read_paths(opened.store, state)


def _kept_inputs(store: Store, key: NodeKey, lacking: dict[str, int]) -> Sequence[dict[str, object]]:
    """Return kept inputs of these paths; similar inputs often take the same path."""
    found = []
    for path, kept in transcripts(store, key).items():
        for text in kept.values() if path in lacking else ():
            try:
                found.append(dict(Transcript.from_text(text).inputs))
            except (JournalError, ValueError, KeyError, TypeError):
                continue  # written by another version of Vesper
    return found


def _report(opened: OpenStore, key: NodeKey, pair: Pair, filled: Filled) -> str | None:
    """Report to the store; return the fingerprint of the divergence, if any."""
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


def _print_text(key: NodeKey, filled: Filled, shown: Sequence[PathOverview]) -> None:
    if not shown:
        click.echo(f"{printable(key.node)}: no path of traffic needs evidence that can be generated")
        return
    found = sum(map(len, filled.found.values()))
    click.echo(
        f"{printable(key.node)}: {number(filled.tried, 'input')} tried, {found:,} of them on the "
        f"{number(len(shown), 'path')} that needed evidence"
    )
    for each in shown:
        click.echo(
            f"  {each.letter}  {each.seen.clean:,} of traffic and {each.seen.generated:,} generated: {path_need(each)}"
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
