"""`vesper migrate promote|demote|pin|unpin|kill|resume`: manual commands to the controller.

Each is one transaction on the store, which processes that run the node poll several times a second. No command asks for
confirmation, because a kill must be fast.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from vesper.cli.journal.open_journal import current_user
from vesper.cli.journal.text import document
from vesper.cli.migrate.open_store import (
    OpenStore,
    StoreUnavailable,
    find_key,
    find_keys,
    now_us,
    open_configured_store,
    read_pin_duration,
    short_epoch,
    store_dsn,
)
from vesper.cli.options import NODE, by_option, epoch_option, store_options, style_option, why_option
from vesper.effects.settings import ConfigError
from vesper.journal.moments import time_text
from vesper.migration.control.modes import LADDER, Mode
from vesper.migration.control.state import (
    CONTROLLER,
    Changed,
    Decision,
    Demote,
    Event,
    Kill,
    Latched,
    NodeState,
    Pin,
    PinEnded,
    PinSet,
    PinTo,
    Promote,
    Refused,
    Released,
    Resume,
    Unpin,
)
from vesper.migration.router.alerts import Alerts
from vesper.migration.stores import ledger
from vesper.migration.stores.codec import BadState
from vesper.migration.stores.kill_scope import limit_kill_to_epoch, widen_kill
from vesper.migration.stores.overview import read_node
from vesper.migration.stores.store import NodeKey, keys_of
from vesper.values.model import printable

_MODES = [mode.value for mode in LADDER]
_WEBHOOK_SECONDS = 3.0
"""Time limit for posting to a webhook."""
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
        key = find_key(opened, node, epoch)
        _check_allowed(opened, key, style)
        _send(opened, key, Promote(who, why), style)


def _check_allowed(opened: OpenStore, key: NodeKey, style: str) -> None:
    """Refuse an approval for a mode above `max_mode`, which would have no effect."""
    state = ledger.load(opened.store, key, opened.settings)
    highest = opened.highest(key.node)
    if highest is None or state.mode.level < highest.level:
        return
    why = f"`max_mode` of the configuration allows at most {highest.value}"
    if style == "json":
        click.echo(document(_json(key, ledger.Applied(state, (Refused(Promote("", ""), why),)))))
        raise click.exceptions.Exit(1)
    raise click.ClickException(f"{printable(key.node)}: {why}")


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
        key = find_key(opened, node, epoch)
        wanted = _next_lower_mode(opened, key) if mode is None else Mode(mode)
        _send(opened, key, Demote(wanted, who, why), style)


def _next_lower_mode(opened: OpenStore, key: NodeKey) -> Mode:
    """Return the next lower mode. The controller refuses `python_only`, and names the alternative."""
    now = ledger.load(opened.store, key, opened.settings).mode
    return LADDER[max(now.level - 1, 0)]


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
        key = find_key(opened, node, epoch)
        _send(opened, key, PinTo(Mode(mode), now_us() + length_us, who, why), style)


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
        _send(opened, find_key(opened, node, epoch), Unpin(who, why or "taken off"), style)


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
            for key in keys:
                _mark_kill_scope(opened, key, is_every_epoch=epoch is None)
            _send_each(opened, keys, Kill(who, why), style)
    except StoreUnavailable as problem:
        raise click.ClickException("\n".join([problem.message, *_fallback_lines(node, config, dsn)])) from None


def _mark_kill_scope(opened: OpenStore, key: NodeKey, is_every_epoch: bool) -> None:
    if is_every_epoch:
        widen_kill(opened.store, key)
        return
    with suppress(BadState):  # reported by the kill itself, which follows
        limit_kill_to_epoch(opened.store, key, opened.settings)


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
            if ledger.read_kill_switch(opened.store) is None:
                raise click.ClickException("the nodes are not stopped: nothing to resume")
            ledger.resume_all(opened.store, who, why, now_us())
            _print_all(style, "resumed", "every node is in its former mode; `vesper status` shows the modes")
            return
        key = find_key(opened, node, epoch)
        _send(opened, key, Resume(who, why), style)
        if style == "text" and (pin := ledger.load(opened.store, key, opened.settings).pin) is not None:
            click.echo(f"{printable(key.node)}: {_pin_text(key, pin)}")
        if style == "text" and (others := _latched_epochs(opened, key)):
            listed = ", ".join(short_epoch(each.epoch) for each in others)
            click.echo(f"other epochs are still latched: {listed}; select one with --epoch")


def _pin_text(key: NodeKey, pin: Pin) -> str:
    held = f"until {time_text(pin.until_us)}, by {printable(pin.who)}: {printable(pin.why)}"
    remedy = f"`vesper migrate unpin {printable(key.node)}` removes it"
    return f"the pin to {pin.mode.value} still applies, {held}; {remedy}"


def _kill_all(opened: OpenStore, who: str, why: str, style: str) -> None:
    try:
        before = ledger.read_kill_switch(opened.store)
    except BadState:
        before = None  # an unreadable switch is replaced
    if before is None:
        ledger.kill_all(opened.store, who, why, now_us())
    _print_all(style, "killed", "every node runs on Python only, until `vesper migrate resume --all`")
    if before is not None:
        held = f"since {time_text(before.at_us)}, by {printable(before.who)}: {printable(before.why)}"
        click.echo(f"no change: the nodes were already stopped, {held}", err=True)
    elif not keys_of(opened.store):
        click.echo(
            f"warning: no node was routed with {printable(opened.store.name)}; name another store with --config or "
            "--store",
            err=True,
        )
    if before is None:
        _post_alerts(opened, lambda alerts: alerts.stopped_all(who, why))


def _latched_epochs(opened: OpenStore, key: NodeKey) -> list[NodeKey]:
    found = [read_node(opened.store, each, opened.settings) for each in find_keys(opened.store, key.node)]
    return [each.key for each in found if each.key != key and each.state is not None and each.state.latches]


def _check_one(node: str | None, is_all: bool, epoch: str | None) -> None:
    if (node is None) != is_all:
        raise click.UsageError("name a NODE, or give --all")
    if is_all and epoch is not None:
        raise click.UsageError("--epoch selects an epoch of one node and cannot be combined with --all")


# -- sending --------------------------------------------------------------------------------------


def _send(opened: OpenStore, key: NodeKey, event: Event, style: str) -> None:
    _send_each(opened, [key], event, style)


def _send_each(opened: OpenStore, keys: list[NodeKey], event: Event, style: str) -> None:
    """Send the event for each key and print the decisions; end with exit code 1 after a refusal or a problem.

    A problem of one epoch does not stop the others, so that a kill reaches as many epochs as possible.
    """
    sent: list[tuple[NodeKey, ledger.Applied]] = []
    problems: list[str] = []
    shown: list[dict[str, Any]] = []
    for key in keys:
        where = printable(key.node) + (f" ({short_epoch(key.epoch)})" if len(keys) > 1 else "")
        try:
            applied = _accept_expired_pin(ledger.apply_event(opened.store, key, event, opened.rules, now_us()))
        except BadState as problem:
            problems.append(f"{where}: its state is unreadable, so only Python runs there: {problem}")
            shown.append(_json(key, None, str(problem)))
            continue
        sent.append((key, applied))
        shown.append(_json(key, applied))
        refusals = [each.why for each in applied.decisions if isinstance(each, Refused)]
        problems += [f"{where}: {each}" for each in refusals]
        lines = _decision_lines(applied.decisions)
        if style == "text":
            for line in lines or ([] if refusals else [_unchanged_text(applied.state)]):
                click.echo(f"{where}: {line}")
    if style == "json":
        click.echo(document(shown[0] if len(shown) == 1 else shown))

    def post(alerts: Alerts) -> None:
        for key, applied in sent:
            alerts.ordered(key, applied.decisions)

    _post_alerts(opened, post)
    if problems:
        if style == "json":
            raise click.exceptions.Exit(1)
        raise click.ClickException("\n".join(map(printable, problems)))


def _accept_expired_pin(applied: ledger.Applied) -> ledger.Applied:
    """Drop the refusal of an unpin whose pin expired just before it: the requested state holds."""
    if not any(isinstance(each, PinEnded) for each in applied.decisions):
        return applied
    left = (each for each in applied.decisions if not (isinstance(each, Refused) and isinstance(each.event, Unpin)))
    return replace(applied, decisions=tuple(left))


def _post_alerts(opened: OpenStore, tell: Callable[[Alerts], None]) -> None:
    """Post alerts to the webhook of the configuration, if any, after the change is made and printed.

    An unreachable webhook costs some seconds and does not change the exit code.
    """
    if opened.migration.webhook is None or not opened.is_configured:
        return
    try:
        alerts = Alerts(opened.migration.webhook)
    except ConfigError as problem:
        click.echo(f"warning: no alert was posted: {printable(str(problem))}", err=True)
        return
    tell(alerts)
    alerts.close(_WEBHOOK_SECONDS)


def _decision_lines(decisions: tuple[Decision, ...]) -> list[str]:
    found = []
    for each in decisions:
        match each:
            case Changed(before, after, attempt=attempt, seen=seen):
                restart = f"; evidence restarts, attempt {attempt}" if attempt != seen.attempt else ""
                found.append(f"{before.value} → {after.value}{restart}")
            case PinSet(pin):
                found.append(f"pinned to {pin.mode.value} until {time_text(pin.until_us)}")
            case PinEnded(pin, who):
                expired = f"the pin had expired already: it was to {pin.mode.value} until {time_text(pin.until_us)}"
                found.append(expired if who == CONTROLLER else f"the pin to {pin.mode.value} is removed")
            case Latched(latch):
                found.append(f"latched: {latch.reason.value}")
            case Released(latches):
                found.append(f"released: {', '.join(latch.reason.value for latch in latches)}")
            case _:
                pass
    return found


def _unchanged_text(state: NodeState) -> str:
    """Describe a node that already had the requested state."""
    held = ", ".join(
        f"{latch.reason.value} by {printable(latch.who)} at {time_text(latch.at_us)}" for latch in state.latches
    )
    return f"no change: it is in {state.mode.value}" + (f", latched: {held}" if held else "")


def _json(key: NodeKey, applied: ledger.Applied | None, problem: str | None = None) -> dict[str, Any]:
    decisions = () if applied is None else applied.decisions
    return {
        "node": key.node,
        "epoch": key.epoch,
        "mode": None if applied is None else applied.state.mode.value,
        "refused": next((each.why for each in decisions if isinstance(each, Refused)), None),
        "problem": problem,
        "decisions": [ledger.record_of(each) for each in decisions if not isinstance(each, Refused)],
    }


def _print_all(style: str, done: str, text: str) -> None:
    click.echo(document({"all": done}) if style == "json" else text)


CONTROLLER_COMMANDS = (promote_command, demote_command, pin_command, unpin_command, kill_command, resume_command)
