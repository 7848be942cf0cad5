"""`vesper status`: modes, evidence and traffic of nodes, and what they still need for promotion."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vesper.cli.journal.text import document
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
from vesper.cli.options import NODE, epoch_option, nodes_option, store_options, style_option
from vesper.cli.output.terminal import columns, control
from vesper.cli.settings import read_settings
from vesper.cli.status.text import Detail, detail_json, detail_lines, head_lines, overview_json, overview_lines
from vesper.cli.versions.command import compiler_of
from vesper.cli.versions.text import list_lines
from vesper.config.migration import MigrationSettings, Tolerance
from vesper.migration.candidates.overview import NameOverview, read_names
from vesper.migration.candidates.overview import overview_json as names_json
from vesper.migration.stores.configured import OpenStore
from vesper.migration.stores.overview import Overview, open_divergences, read_node, read_overview, read_paths
from vesper.migration.stores.store import NodeKey, names_of
from vesper.values.model import printable

if TYPE_CHECKING:
    from vesper.compiler import Compiled
    from vesper.engines.path import Point

"""Columns without a terminal: in a file, a log, a pipe."""
_REFRESH_SECONDS = 1.0


@click.command("status")
@click.argument("node", type=NODE, required=False)
@store_options
@epoch_option
@click.option("--all-epochs", is_flag=True, help="Show every epoch, not only the one in use.")
@nodes_option
@click.option("--watch", is_flag=True, help="Refresh every second, until Ctrl-C.")
@style_option
def command(
    node: str | None,
    config: Path | None,
    dsn: str | None,
    epoch: str | None,
    all_epochs: bool,
    root: Path,
    watch: bool,
    style: str,
) -> None:
    """Show the mode of every node and what it still needs for promotion; with NODE, all its details.

    Confidence is the lower bound of the share of runs that agree; n is the number of distinct agreeing runs. See
    docs/how-to/roll-out-a-node.md.
    """
    if watch and style == "json":
        raise click.UsageError("--watch cannot be combined with --format json")
    if watch and not sys.stdout.isatty():
        raise click.UsageError("--watch needs a terminal: omit it to print once")
    if epoch is not None and node is None:
        raise click.UsageError("--epoch selects an epoch of one node: name the NODE")
    if epoch is not None and all_epochs:
        raise click.UsageError("--epoch and --all-epochs exclude each other: omit one")

    def paint() -> str:
        return _render(node, config, dsn, epoch, all_epochs, root, style)

    if watch:
        _watch(paint, lambda: time.sleep(_REFRESH_SECONDS))
        return
    where, migration = store_dsn(config, dsn)
    absent = missing_file(where)
    if node is None and dsn is None and absent is not None:
        bad = _bad_tolerances(migration, root)
        for each in bad:
            click.echo(f"warning: {printable(each)}", err=True)
        click.echo(NOTHING_YET.format(f"there is no store at {printable(str(absent))}"), err=True)
        if style == "json":
            click.echo(document(overview_json(Overview(str(absent), bad, None, ()), {}, now_us())))
        return
    click.echo(paint())


def _watch(paint: Callable[[], str], wait: Callable[[], None]) -> None:
    """Refresh until Ctrl-C. An unreachable store is reported and polled again."""
    try:
        while True:
            try:
                text = paint()
            except click.ClickException as problem:
                text = f"error: {problem.format_message()}"
            click.echo(f"{control('clear-screen')}{text}")
            wait()
    except KeyboardInterrupt:
        click.echo()


def _render(
    node: str | None, config: Path | None, dsn: str | None, epoch: str | None, all_epochs: bool, root: Path, style: str
) -> str:
    width = columns()
    with open_configured_store(config, dsn) as opened:
        notices = [*find_unreported(config, dsn), *_bad_tolerances(opened.migration, root)]
        if node is not None and not all_epochs:
            key = find_key(opened, node, epoch)
            overview = read_overview(opened.store, opened.settings, node=key.node)
            overview = replace(overview, warnings=(*overview.warnings, *notices))
            detail = _read_detail(opened, key, root)
            if style == "json":
                return document(detail_json(overview, detail, now_us()))
            return "\n".join(detail_lines(overview, detail, now_us(), width))
        wanted = None if node is None else find_keys(opened.store, node)[0].node
        overview = read_overview(opened.store, opened.settings, all_epochs, wanted)
        overview = replace(overview, warnings=(*overview.warnings, *notices))
        if overview.nodes and node is None:
            overview = replace(overview, warnings=(*overview.warnings, *opened.unknown_names()))
        highest = {each.key.node: opened.highest(each.key.node) for each in overview.nodes}
        names = _read_names(opened, config, dsn, root) if node is None else []
        if style == "json":
            return document({**overview_json(overview, highest, now_us()), "names": list(map(names_json, names))})
        if not overview.nodes and not names:
            return _empty_text(overview, width)
        lines = overview_lines(overview, highest, now_us(), width)
        return "\n".join([*lines, "", *list_lines(names, now_us())] if names else lines)


def _read_names(opened: OpenStore, config: Path | None, dsn: str | None, root: Path) -> list[NameOverview]:
    """Return the names with a lead and a candidate; those of another store without their settings."""
    configured = read_settings(config).versions if dsn is None else {}
    if not configured and not names_of(opened.store):
        return []
    return read_names(opened.store, configured, compiler_of(root))


def _bad_tolerances(migration: MigrationSettings, root: Path) -> list[str]:
    """Return problems of tolerances that do not fit their node. Skips nodes that are missing here or have errors."""
    names = [name for name, each in migration.nodes.items() if each.tolerances]
    if not names:
        return []
    from vesper.compiler import compile_file
    from vesper.migration.compare.tolerances import BadTolerance, allowances_of
    from vesper.repository.locate import NodeNotFound, locate

    found = []
    for name in names:
        try:
            compiled, _ = compile_file(locate(name, root))
            if compiled is not None:
                allowances_of(compiled.node, migration.of(compiled.node.node_id).tolerances)
        except BadTolerance as problem:
            found.append(str(problem))
        except NodeNotFound:
            continue
    return list(dict.fromkeys(found))


def _empty_text(overview: Overview, width: int) -> str:
    return "\n".join([*head_lines(overview, now_us(), width), NOTHING_YET.format("the store is empty")])


def _read_detail(opened: OpenStore, key: NodeKey, root: Path) -> Detail:
    node = read_node(opened.store, key, opened.settings)
    if node.state is None:
        raise click.ClickException(f"{printable(key.node)}: {printable(node.problem or '')}")
    paths = read_paths(opened.store, node.state)
    words: dict[str, Sequence[str]] = {}
    why_not = None
    if paths:
        from vesper.migration.compare.path_words import path_words

        compiled, points, why_not = _read_source(key, root, opened.migration.of(key.node).tolerances)
        words = {each.name: path_words(each.note, compiled, points) for each in paths if each.note is not None}
    return Detail(
        node,
        node.state,
        opened.highest(key.node),
        paths,
        words,
        why_not,
        open_divergences(opened.store, node.state),
        opened.store.history(key),
    )


def _read_source(
    key: NodeKey, root: Path, tolerances: Sequence[Tolerance]
) -> tuple[Compiled | None, Sequence[Point], str | None]:
    """Return the node and its points, or why conditions have no source text.

    Points are numbered by epoch, so the source of another epoch does not fit.
    """
    from vesper.compiler import compile_file
    from vesper.migration.router.points import PointsUnavailable, points_of_epoch
    from vesper.repository.locate import NodeNotFound, locate

    try:
        path = locate(key.node, root)
        compiled, _ = compile_file(path)
        if compiled is None:
            return None, (), f"conditions are not shown: {path.as_posix()} has errors"
        return compiled, points_of_epoch(compiled, path.as_posix(), key.epoch, tolerances), None
    except (NodeNotFound, PointsUnavailable) as problem:
        return None, (), f"conditions are not shown: {problem}"
