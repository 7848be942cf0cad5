"""`vesper migrate prune`: takes the evidence of old definitions out of the store."""

from __future__ import annotations

from pathlib import Path

import click

from vesper.cli.journal.open_journal import by_option, seconds_of, style_option, this_user
from vesper.cli.journal.text import document, number, time_text, took_text
from vesper.cli.migrate.open_store import now_us, short_epoch, store_options, the_keys, the_store, why_option
from vesper.migration.control.state import Forget
from vesper.migration.stores.pruning import DAY_US, KEPT_EPOCHS, OldEpoch, old_epochs, prune
from vesper.values.model import printable

_MOST_DAYS = 3660
"""As `retention` may be."""


def _read_age(_context: click.Context, _parameter: click.Parameter, text: str | None) -> int | None:
    """`--older-than`, in microseconds."""
    if text is None:
        return None
    seconds = seconds_of(text)
    if seconds is None or seconds > _MOST_DAYS * 86_400:
        raise click.BadParameter(
            f"`{printable(text[:40])}` is no length of time up to {_MOST_DAYS} days: write `0s`, `12h` or `30d`"
        )
    return round(seconds * 1_000_000)


@click.command("prune")
@click.argument("node", required=False)
@click.option(
    "--older-than",
    "length_us",
    metavar="TIME",
    callback=_read_age,
    help="What was not used for so long, such as 30d; `retention` of the settings, unless said.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
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

    Processes that route a node do it by themselves when they start. The two definitions that were used last stay,
    however old; so do the history and the divergences of all. A definition that comes back begins in shadow_direct.
    """
    event = Forget(by or this_user(), why or "pruned")
    with the_store(config, dsn) as opened:
        wanted = None if node is None else the_keys(opened.store, node)[0].node
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
    what = "would go" if dry_run else "gone"
    days, left = divmod(kept_us, DAY_US)
    age = took_text(kept_us) if left else number(days, "day")
    stay = f"not used for {age}, the {KEPT_EPOCHS} newest of each node aside"
    click.echo(f"the evidence of {number(len(found), 'old definition')} {what}: those {stay}")


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
