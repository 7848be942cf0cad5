"""`vesper migrate history`: the decisions about nodes with their evidence, and a check of the hash chain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from vesper.cli.journal.text import document
from vesper.cli.migrate.open_store import find_key, find_keys, open_configured_store
from vesper.cli.options import NODE, epoch_option, since_option, store_options, style_option
from vesper.journal.moments import number, time_text
from vesper.migration.stores.configured import short_epoch
from vesper.migration.stores.history_text import parse_record, record_lines
from vesper.migration.stores.ledger import verify_history
from vesper.migration.stores.store import WHOLE, Line, NodeKey, Store, keys_of, name_key, names_of
from vesper.values.model import printable


@click.command("history")
@click.argument("node", type=NODE, required=False)
@store_options
@epoch_option
@since_option
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Show the newest N of each node; all are checked.")
@style_option
def history_command(
    node: str | None,
    config: Path | None,
    dsn: str | None,
    epoch: str | None,
    since_us: int | None,
    limit: int | None,
    style: str,
) -> None:
    """Show and check the decisions about nodes.

    By default all nodes are shown. Each line has the hash of the previous one. With a changed line the exit code is 1,
    and the message names it.
    """
    if epoch is not None and node is None:
        raise click.UsageError("--epoch selects an epoch of one node: name the NODE")
    with open_configured_store(config, dsn) as opened:
        store = opened.store
        if node is None:
            keys = [WHOLE, *map(name_key, names_of(store)), *keys_of(store)]
        elif epoch is None and node in names_of(store):
            keys = [name_key(node)]
        else:
            keys = find_keys(store, node) if epoch is None else [find_key(opened, node, epoch)]
        found = _read_histories(store, keys)
    shown = {
        key: [each for each in lines if _is_since(each, since_us)][-limit if limit is not None else 0 :]
        for key, lines in found.items()
    }
    problems = {key: problem for key, lines in found.items() if (problem := verify_history(lines)) is not None}
    if style == "json":
        click.echo(document([_json(key, lines, problems.get(key)) for key, lines in shown.items()]))
    else:
        for key, lines in shown.items():
            if lines:
                click.echo("\n".join([_title(key), *(line for each in lines for line in _lines(each)), ""]))
        total = sum(map(len, found.values()))
        if not problems:
            click.echo(f"{number(total, 'line')}: no line was changed" if total else "no decisions yet")
    if problems:
        key, problem = next(iter(problems.items()))
        more = f" (and {len(problems) - 1:,} more)" if len(problems) > 1 else ""
        raise click.ClickException(f"the history of {_title(key)} is damaged: {problem}{more}")


def _read_histories(store: Store, keys: Sequence[NodeKey]) -> dict[NodeKey, Sequence[Line]]:
    found = {key: store.history(key) for key in keys}
    return {key: lines for key, lines in found.items() if lines or key != WHOLE}


def _title(key: NodeKey) -> str:
    if not key.epoch:
        return printable(key.node) or "all nodes"
    return f"{printable(key.node)}, epoch {short_epoch(key.epoch)}"


def _is_since(line: Line, since_us: int | None) -> bool:
    at_us = parse_record(line).get("at_us")
    return since_us is None or type(at_us) is not int or at_us >= since_us


def _json(key: NodeKey, lines: Sequence[Line], problem: str | None) -> dict[str, Any]:
    return {
        "node": key.node,
        "epoch": key.epoch,
        "problem": problem,
        "lines": [
            {"number": each.number, "hash": each.hash, **(parse_record(each) or {"text": each.text})} for each in lines
        ],
    }


def _lines(line: Line) -> list[str]:
    record = parse_record(line)
    at_us = record.get("at_us")
    when = time_text(at_us) if type(at_us) is int else "?"
    head, *rest = record_lines(record) or [printable(line.text[:200])]
    gap = " " * (len(f"{line.number:>5}  {when}") + 2)
    return [f"{line.number:>5}  {when}  {head}", *(gap + each for each in rest)]
