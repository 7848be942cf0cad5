"""`vesper migrate promote|demote|pin|unpin|kill|resume`: manual commands to the controller.

Each is one transaction on the store, which processes that run the node poll several times a second. No command asks for
confirmation, because a kill must be fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from vesper.cli.journal.open_journal import current_user
from vesper.cli.journal.text import document
from vesper.cli.migrate.open_store import (
    StoreUnavailable,
    find_key,
    find_keys,
    now_us,
    open_configured_store,
    read_pin_duration,
    store_dsn,
)
from vesper.cli.options import NODE, by_option, epoch_option, store_options, style_option, why_option
from vesper.migration.control.modes import LADDER, Mode
from vesper.migration.control.state import PinTo, Refused, Unpin
from vesper.migration.router import orders
from vesper.migration.router.orders import Answer
from vesper.migration.stores import ledger
from vesper.migration.stores.configured import OpenStore
from vesper.values.model import printable

_MODES = [mode.value for mode in LADDER]
all_option = click.option("--all", "is_all", is_flag=True, help="Every node in the store.")


@click.command("promote")
@click.argument("node", type=NODE)
@store_options
@epoch_option
@why_option(is_required=True)
@by_option
@style_option
def promote_command(
    node: str, config: Path | None, dsn: str | None, epoch: str | None, why: str, by: str | None, style: str
) -> None:
    """Approve the next mode, if the settings require approval. The node still needs its evidence."""
    who = by or current_user()
    with open_configured_store(config, dsn) as opened:
        _report(opened, orders.promote(opened, find_key(opened, node, epoch), who, why, now_us()), style)


@click.command("demote")
@click.argument("node", type=NODE)
@click.option(
    "--to",
    "mode",
    type=click.Choice(_MODES),
    metavar="MODE",
    help=f"{', '.join(_MODES)}. By default the next lower mode.",
)
@store_options
@epoch_option
@why_option(is_required=True)
@by_option
@style_option
def demote_command(
    node: str,
    mode: str | None,
    config: Path | None,
    dsn: str | None,
    epoch: str | None,
    why: str,
    by: str | None,
    style: str,
) -> None:
    """Demote a node. Its evidence restarts and needs more runs; a pin keeps the evidence."""
    who = by or current_user()
    with open_configured_store(config, dsn) as opened:
        key, wanted = find_key(opened, node, epoch), None if mode is None else Mode(mode)
        _report(opened, orders.demote(opened, key, wanted, who, why, now_us()), style)


@click.command("pin")
@click.argument("node", type=NODE)
@click.argument("mode", type=click.Choice(_MODES), metavar="MODE")
@click.option(
    "--for", "length_us", required=True, metavar="TIME", callback=read_pin_duration, help="Duration, such as 12h or 7d."
)
@store_options
@epoch_option
@why_option(is_required=True)
@by_option
@style_option
def pin_command(
    node: str,
    mode: str,
    length_us: int,
    config: Path | None,
    dsn: str | None,
    epoch: str | None,
    why: str,
    by: str | None,
    style: str,
) -> None:
    """Hold a node in MODE, at most its present one. It keeps its evidence, and can be promoted after the pin expires.

    MODE is python_only, shadow_direct, canary_direct, dual_verify or direct_only.
    """
    who = by or current_user()
    with open_configured_store(config, dsn) as opened:
        pin = PinTo(Mode(mode), now_us() + length_us, who, why)
        _report(opened, orders.send(opened, [find_key(opened, node, epoch)], pin, now_us()), style)


@click.command("unpin")
@click.argument("node", type=NODE)
@store_options
@epoch_option
@why_option(is_required=False)
@by_option
@style_option
def unpin_command(
    node: str, config: Path | None, dsn: str | None, epoch: str | None, why: str | None, by: str | None, style: str
) -> None:
    """Remove the pin before it expires."""
    who = by or current_user()
    with open_configured_store(config, dsn) as opened:
        unpin = Unpin(who, why or "taken off")
        _report(opened, orders.send(opened, [find_key(opened, node, epoch)], unpin, now_us()), style)


@click.command("kill")
@click.argument("node", type=NODE, required=False)
@all_option
@store_options
@click.option("--epoch", metavar="HASH", help="Only this epoch; by default every epoch, also later ones.")
@why_option(is_required=True)
@by_option
@style_option
def kill_command(
    node: str | None,
    is_all: bool,
    config: Path | None,
    dsn: str | None,
    epoch: str | None,
    why: str,
    by: str | None,
    style: str,
) -> None:
    """Stop the direct engine for a node or for all nodes.

    Within a second only Python runs, in every epoch of the node, also in later ones, until `vesper migrate resume`.
    The evidence of a killed node restarts; --all keeps modes and evidence. If the store is unreachable, the command
    prints other ways to stop nodes.
    """
    who = by or current_user()
    _check_one(node, is_all, epoch)
    try:
        with open_configured_store(config, dsn) as opened:
            if node is None:
                _kill_all(opened, who, why, style)
                return
            keys = find_keys(opened.store, node) if epoch is None else [find_key(opened, node, epoch)]
            _report(opened, orders.kill(opened, keys, who, why, now_us(), is_every_epoch=epoch is None), style)
    except StoreUnavailable as problem:
        raise click.ClickException("\n".join([problem.message, *_fallback_lines(node, config, dsn)])) from None


def _fallback_lines(node: str | None, config: Path | None, dsn: str | None) -> list[str]:
    """Describe how nodes stop without the store."""
    where, migration = store_dsn(config, dsn)
    hold = f"{migration.hold:g} s (`hold`)" if where == migration.store else "the `hold` of their configuration"
    nodes = "NODE] of every NODE" if node is None else f"{printable(Path(node).stem)}]"
    return [
        "the command may not have reached the store; if so, the direct engine continues",
        f"  processes that cannot reach the store run on Python only after {hold}",
        f'  immediately: set `max_mode = "python_only"` under [migration.nodes.{nodes} in vesper.toml, and restart',
    ]


@click.command("resume")
@click.argument("node", type=NODE, required=False)
@all_option
@store_options
@epoch_option
@why_option(is_required=True)
@by_option
@style_option
def resume_command(
    node: str | None,
    is_all: bool,
    config: Path | None,
    dsn: str | None,
    epoch: str | None,
    why: str,
    by: str | None,
    style: str,
) -> None:
    """Release the latches of a node, or the stop of all nodes.

    A released node starts in shadow_direct and gathers evidence. After `resume --all` every node returns to its former
    mode; latches of single nodes stay.
    """
    who = by or current_user()
    _check_one(node, is_all, epoch)
    with open_configured_store(config, dsn) as opened:
        if node is None:
            if not orders.resume_all(opened, who, why, now_us()):
                raise click.ClickException(orders.NOT_STOPPED)
            _print_all(style, "resumed", orders.RESUMED)
            return
        answers, notes = orders.resume(opened, find_key(opened, node, epoch), who, why, now_us())
        _report(opened, answers, style)
        for note in notes if style == "text" else ():
            click.echo(note)


def _kill_all(opened: OpenStore, who: str, why: str, style: str) -> None:
    is_new, note = orders.kill_all(opened, who, why, now_us())
    _print_all(style, "killed", orders.STOPPED)
    _warn(note)
    if is_new:
        _warn(orders.post_stop(opened, who, why))


def _check_one(node: str | None, is_all: bool, epoch: str | None) -> None:
    if (node is None) != is_all:
        raise click.UsageError("name a NODE, or give --all")
    if is_all and epoch is not None:
        raise click.UsageError("--epoch selects an epoch of one node and cannot be combined with --all")


# -- printing -------------------------------------------------------------------------------------


def _report(opened: OpenStore, answers: Sequence[Answer], style: str) -> None:
    """Print the results of an order, then post alerts.

    End with exit code 1 after a refusal or a problem.
    """
    if style == "json":
        shown = [_json(each) for each in answers]
        click.echo(document(shown[0] if len(shown) == 1 else shown))
    else:
        for line in [line for each in answers for line in each.lines]:
            click.echo(line)
    _warn(orders.post_alerts(opened, answers))
    problems = [text for each in answers for text in each.problems]
    if problems and style == "json":
        raise click.exceptions.Exit(1)
    if problems:
        raise click.ClickException("\n".join(map(printable, problems)))


def _warn(text: str | None) -> None:
    if text is not None:
        click.echo(text, err=True)


def _json(answer: Answer) -> dict[str, Any]:
    applied = answer.applied
    decisions = () if applied is None else applied.decisions
    return {
        "node": answer.key.node,
        "epoch": answer.key.epoch,
        "mode": None if applied is None else applied.state.mode.value,
        "refused": next((each.why for each in decisions if isinstance(each, Refused)), None),
        "problem": answer.damage,
        "decisions": [ledger.record_of(each) for each in decisions if not isinstance(each, Refused)],
    }


def _print_all(style: str, done: str, text: str) -> None:
    click.echo(document({"all": done}) if style == "json" else text)


CONTROLLER_COMMANDS = (promote_command, demote_command, pin_command, unpin_command, kill_command, resume_command)
