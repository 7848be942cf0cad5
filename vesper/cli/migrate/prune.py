"""`vesper migrate prune`: removes evidence of old definitions."""

from __future__ import annotations

from pathlib import Path

import click

from vesper.cli.journal.open_journal import current_user
from vesper.cli.journal.text import document
from vesper.cli.migrate.open_store import find_keys, now_us, open_configured_store
from vesper.cli.options import NODE, by_option, store_options, style_option, why_option
from vesper.config.moments import parse_duration
from vesper.journal.moments import number, time_text, took_text
from vesper.migration.control.state import Forget
from vesper.migration.stores.configured import short_epoch
from vesper.migration.stores.pruning import DAY_US, KEPT_EPOCHS, OldEpoch, old_epochs, prune
from vesper.values.model import printable

_MAX_DAYS = 3660
"""The limit of `retention`."""


def _read_age(_context: click.Context, _parameter: click.Parameter, text: str | None) -> int | None:
    """Read `--older-than` as microseconds."""
    if text is None:
        return None
    seconds = parse_duration(text)
    if seconds is None or seconds > _MAX_DAYS * 86_400:
        raise click.BadParameter(
            f"`{printable(text[:40])}` is not a duration up to {_MAX_DAYS} days: write `0s`, `12h` or `30d`"
        )
    return round(seconds * 1_000_000)


@click.command("prune")
@click.argument("node", type=NODE, required=False)
@click.option(
    "--older-than",
    "length_us",
    metavar="TIME",
    callback=_read_age,
    help="Definitions unused for so long, such as 30d; by default `retention` of the settings.",
)
@click.option("--dry-run", is_flag=True, help="Only list what would be removed.")
@store_options
@why_option(is_required=False)
@by_option
@style_option
def prune_command(
    node: str | None,
    length_us: int | None,
    dry_run: bool,
    config: Path | None,
    dsn: str | None,
    why: str | None,
    by: str | None,
    style: str,
) -> None:
    """Remove the evidence of old definitions of NODE, or of all nodes.

    Processes that route a node prune automatically when they start. The two definitions that were used last stay, and
    so do all histories and divergences. A definition that is used again starts in shadow_direct.
    """
    event = Forget(by or current_user(), why or "pruned")
    with open_configured_store(config, dsn) as opened:
        wanted = None if node is None else find_keys(opened.store, node)[0].node
        kept_us = round(opened.migration.retention * 1_000_000) if length_us is None else length_us
        if dry_run:
            found = old_epochs(opened.store, opened.settings, now_us() - kept_us, wanted)
        else:
            found = [*prune(opened.store, opened.settings, now_us(), kept_us, event, wanted)]
    if style == "json":
        click.echo(document({"is_dry_run": dry_run, "epochs": [_json(each) for each in found]}))
        return
    for each in found:
        click.echo(_text(each))
    verb = "would be removed" if dry_run else "removed"
    days, left = divmod(kept_us, DAY_US)
    age = took_text(kept_us) if left else number(days, "day")
    rule = f"unused for {age}, except the {KEPT_EPOCHS} newest of each node"
    click.echo(f"evidence of {number(len(found), 'old definition')} {verb}: {rule}")


def _text(old: OldEpoch) -> str:
    name = f"{printable(old.key.node)}, epoch {short_epoch(old.key.epoch)}"
    runs = number(old.state.clean, "distinct run")
    return f"{name}: {runs} on {number(len(old.state.paths), 'path')}, last used {time_text(old.written_us)}"


def _json(old: OldEpoch) -> dict[str, object]:
    return {
        "node": old.key.node,
        "epoch": old.key.epoch,
        "written_us": old.written_us,
        "mode": old.state.mode.value,
        "clean": old.state.clean,
        "paths": len(old.state.paths),
    }
