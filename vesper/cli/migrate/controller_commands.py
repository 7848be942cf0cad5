"""`vesper migrate promote|demote|pin|unpin|kill|resume`: what a person says to the controller.

Each is one transaction on the store; whoever runs the node looks there several times a second. Nothing asks back: who
kills a node is in a hurry.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from vesper.cli.journal.open_journal import by_option, style_option, this_user
from vesper.cli.journal.text import document, time_text
from vesper.cli.migrate.open_store import (
    Opened,
    StoreTrouble,
    epoch_option,
    now_us,
    read_length,
    short_epoch,
    store_dsn,
    store_options,
    the_key,
    the_keys,
    the_store,
    why_option,
)
from vesper.effects.settings import ConfigError
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
_PATIENCE = 3.0
"""Seconds for a webhook to take what is posted."""
all_option = click.option("--all", "is_all", is_flag=True, help="Every node that shares the store.")


@click.command("promote")
@click.argument("node")
@store_options
@epoch_option
@why_option(is_required=True)
@by_option
@style_option
def promote_command(
    node: str, config: Path | None, dsn: str | None, epoch: str | None, why: str, by: str | None, style: str
) -> None:
    """Approve of the next mode, where the settings ask for it. The evidence is needed all the same."""
    who = by or this_user()
    with the_store(config, dsn) as opened:
        key = the_key(opened, node, epoch)
        _check_allowed(opened, key, style)
        _tell(opened, key, Promote(who, why), style)


def _check_allowed(opened: Opened, key: NodeKey, style: str) -> None:
    """An approval for a mode in which the configuration does not let the node run would look as if it did."""
    state = ledger.load(opened.store, key, opened.settings)
    highest = opened.highest(key.node)
    if highest is None or state.mode.level < highest.level:
        return
    why = f"`max_mode` of the configuration allows no more than {highest.value}"
    if style == "json":
        click.echo(document(_json(key, ledger.Applied(state, (Refused(Promote("", ""), why),)))))
        raise click.exceptions.Exit(1)
    raise click.ClickException(f"{printable(key.node)}: {why}")


@click.command("demote")
@click.argument("node")
@click.option(
    "--to",
    "mode",
    type=click.Choice(_MODES),
    metavar="MODE",
    help=f"{', '.join(_MODES)}. The one below, unless said.",
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
    """Take a node down. Its evidence begins afresh, at a higher price; a pin holds it down without that."""
    who = by or this_user()
    with the_store(config, dsn) as opened:
        key = the_key(opened, node, epoch)
        wanted = _below(opened, key) if mode is None else Mode(mode)
        _tell(opened, key, Demote(wanted, who, why), style)


def _below(opened: Opened, key: NodeKey) -> Mode:
    """The next lower mode. Where that is `python_only` the controller refuses, and says what to do instead."""
    now = ledger.load(opened.store, key, opened.settings).mode
    return LADDER[max(now.level - 1, 0)]


@click.command("pin")
@click.argument("node")
@click.argument("mode", type=click.Choice(_MODES), metavar="MODE")
@click.option(
    "--for", "length_us", required=True, metavar="TIME", callback=read_length, help="How long, such as 12h or 7d."
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
    """Hold a node in a MODE that is not higher than its own. It keeps its evidence and rises when the pin is over.

    MODE is python_only, shadow_direct, canary_direct, dual_verify or direct_only.
    """
    who = by or this_user()
    with the_store(config, dsn) as opened:
        key = the_key(opened, node, epoch)
        _tell(opened, key, PinTo(Mode(mode), now_us() + length_us, who, why), style)


@click.command("unpin")
@click.argument("node")
@store_options
@epoch_option
@why_option(is_required=False)
@by_option
@style_option
def unpin_command(
    node: str, config: Path | None, dsn: str | None, epoch: str | None, why: str | None, by: str | None, style: str
) -> None:
    """Take the pin off before its time is over."""
    who = by or this_user()
    with the_store(config, dsn) as opened:
        _tell(opened, the_key(opened, node, epoch), Unpin(who, why or "taken off"), style)


@click.command("kill")
@click.argument("node", required=False)
@all_option
@store_options
@click.option(
    "--epoch",
    metavar="HASH",
    help="Only this epoch. By default every epoch of the node, also later ones.",
)
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
    """Stop the direct engine for a node, in every epoch, or for all nodes: Python runs alone, within a second.

    It holds until it is resumed, also in epochs that begin later. A killed node begins its evidence afresh; the switch
    for all nodes changes nothing else. If the store cannot be reached, the message lists other ways to stop nodes.
    """
    who = by or this_user()
    _check_one(node, is_all, epoch)
    try:
        with the_store(config, dsn) as opened:
            if node is None:
                _kill_all(opened, who, why, style)
                return
            keys = the_keys(opened.store, node) if epoch is None else [the_key(opened, node, epoch)]
            for key in keys:
                _mark_kill_scope(opened, key, is_every_epoch=epoch is None)
            _tell_each(opened, keys, Kill(who, why), style)
    except StoreTrouble as problem:
        raise click.ClickException("\n".join([problem.message, *_what_stops_now(node, config, dsn)])) from None


def _mark_kill_scope(opened: Opened, key: NodeKey, is_every_epoch: bool) -> None:
    if is_every_epoch:
        widen_kill(opened.store, key)
        return
    with suppress(BadState):  # reported by the kill itself, which follows
        limit_kill_to_epoch(opened.store, key, opened.settings)


def _what_stops_now(node: str | None, config: Path | None, dsn: str | None) -> list[str]:
    """What is left to who wants nodes stopped and cannot reach the store."""
    where, migration = store_dsn(config, dsn)
    hold = f"{migration.hold:g} s (`hold`)" if where == migration.store else "the `hold` of their configuration"
    nodes = "NODE] of every NODE" if node is None else f"{printable(Path(node).stem)}]"
    return [
        "the order may not have come through: where it has not, the direct engine goes on",
        f"  processes that cannot use the store either run on Python alone after {hold}",
        f'  at once: `max_mode = "python_only"` under [migration.nodes.{nodes} in vesper.toml, and a restart',
    ]


@click.command("resume")
@click.argument("node", required=False)
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
    """Release the latches of a node, or the switch that stopped all nodes.

    The node is in shadow_direct then and gathers evidence. After the switch for all every node is in the mode that it
    had; latches of their own stay.
    """
    who = by or this_user()
    _check_one(node, is_all, epoch)
    with the_store(config, dsn) as opened:
        if node is None:
            if ledger.read_kill_switch(opened.store) is None:
                raise click.ClickException("nobody stopped all nodes: there is nothing to resume")
            ledger.resume_all(opened.store, who, why, now_us())
            _say_all(style, "resumed", "every node is again in the mode that it had; `vesper status` shows them")
            return
        key = the_key(opened, node, epoch)
        _tell(opened, key, Resume(who, why), style)
        if style == "text" and (pin := ledger.load(opened.store, key, opened.settings).pin) is not None:
            click.echo(f"{printable(key.node)}: {_still_pinned(key, pin)}")
        if style == "text" and (others := _still_latched(opened, key)):
            listed = ", ".join(short_epoch(each.epoch) for each in others)
            click.echo(f"other epochs of it are still latched: {listed}; --epoch names one")


def _still_pinned(key: NodeKey, pin: Pin) -> str:
    held = f"until {time_text(pin.until_us)}, by {printable(pin.who)}: {printable(pin.why)}"
    off = f"`vesper migrate unpin {printable(key.node)}` takes it off"
    return f"the pin to {pin.mode.value} still holds it, {held}; {off}"


def _kill_all(opened: Opened, who: str, why: str, style: str) -> None:
    try:
        before = ledger.read_kill_switch(opened.store)
    except BadState:
        before = None  # whatever the switch says, it is on from now on
    if before is None:
        ledger.kill_all(opened.store, who, why, now_us())
    _say_all(style, "killed", "every node runs on Python alone, until `vesper migrate resume --all`")
    if before is not None:
        held = f"since {time_text(before.at_us)}, by {printable(before.who)}: {printable(before.why)}"
        click.echo(f"nothing changes: they were stopped before, {held}", err=True)
    elif not keys_of(opened.store):
        click.echo(
            f"warning: no node was ever routed with {printable(opened.store.name)}; --config or --store names another "
            "store",
            err=True,
        )
    if before is None:
        _pass_on(opened, lambda alerts: alerts.stopped_all(who, why))


def _still_latched(opened: Opened, key: NodeKey) -> list[NodeKey]:
    found = [read_node(opened.store, each, opened.settings) for each in the_keys(opened.store, key.node)]
    return [each.key for each in found if each.key != key and each.state is not None and each.state.latches]


def _check_one(node: str | None, is_all: bool, epoch: str | None) -> None:
    if (node is None) != is_all:
        raise click.UsageError("name a NODE, or say --all")
    if is_all and epoch is not None:
        raise click.UsageError("--epoch is of one node, and --all means every node")


# -- telling --------------------------------------------------------------------------------------


def _tell(opened: Opened, key: NodeKey, event: Event, style: str) -> None:
    _tell_each(opened, [key], event, style)


def _tell_each(opened: Opened, keys: list[NodeKey], event: Event, style: str) -> None:
    """Tells the store, says what came of it, and ends with exit code 1 where something was not done. What cannot be
    done for one epoch is done for the others: who kills a node must not have killed it by half."""
    told: list[tuple[NodeKey, ledger.Applied]] = []
    problems: list[str] = []
    shown: list[dict[str, Any]] = []
    for key in keys:
        where = printable(key.node) + (f" ({short_epoch(key.epoch)})" if len(keys) > 1 else "")
        try:
            applied = _unless_over(ledger.apply_event(opened.store, key, event, opened.rules, now_us()))
        except BadState as problem:
            problems.append(f"{where}: its state cannot be read, so that Python runs alone there: {problem}")
            shown.append(_json(key, None, str(problem)))
            continue
        told.append((key, applied))
        shown.append(_json(key, applied))
        refusals = [each.why for each in applied.decisions if isinstance(each, Refused)]
        problems += [f"{where}: {each}" for each in refusals]
        lines = _said(applied.decisions)
        if style == "text":
            for line in lines or ([] if refusals else [_unchanged(applied.state)]):
                click.echo(f"{where}: {line}")
    if style == "json":
        click.echo(document(shown[0] if len(shown) == 1 else shown))

    def ordered(alerts: Alerts) -> None:
        for key, applied in told:
            alerts.ordered(key, applied.decisions)

    _pass_on(opened, ordered)
    if problems:
        if style == "json":
            raise click.exceptions.Exit(1)
        raise click.ClickException("\n".join(map(printable, problems)))


def _unless_over(applied: ledger.Applied) -> ledger.Applied:
    """A pin whose time was over ended before the order to take it off was looked at. What was asked for holds, and that
    there is no pin any more is no refusal."""
    if not any(isinstance(each, PinEnded) for each in applied.decisions):
        return applied
    left = (each for each in applied.decisions if not (isinstance(each, Refused) and isinstance(each.event, Unpin)))
    return replace(applied, decisions=tuple(left))


def _pass_on(opened: Opened, tell: Callable[[Alerts], None]) -> None:
    """Posts what others should know, where the configuration of the store names a webhook. It is done and said by then:
    a webhook that is away costs some seconds, and the exit code says nothing of it."""
    if opened.migration.webhook is None or not opened.is_configured:
        return
    try:
        alerts = Alerts(opened.migration.webhook)
    except ConfigError as problem:
        click.echo(f"warning: nobody else is told: {printable(str(problem))}", err=True)
        return
    tell(alerts)
    alerts.close(_PATIENCE)


def _said(decisions: tuple[Decision, ...]) -> list[str]:
    found = []
    for each in decisions:
        match each:
            case Changed(before, after, attempt=attempt, seen=seen):
                afresh = f"; evidence begins afresh, attempt {attempt}" if attempt != seen.attempt else ""
                found.append(f"{before.value} → {after.value}{afresh}")
            case PinSet(pin):
                found.append(f"pinned to {pin.mode.value} until {time_text(pin.until_us)}")
            case PinEnded(pin, who):
                until = f"the pin was over already: it was to {pin.mode.value} until {time_text(pin.until_us)}"
                found.append(until if who == CONTROLLER else f"the pin to {pin.mode.value} is off")
            case Latched(latch):
                found.append(f"latched: {latch.reason.value}")
            case Released(latches):
                found.append(f"released: {', '.join(latch.reason.value for latch in latches)}")
            case _:
                pass
    return found


def _unchanged(state: NodeState) -> str:
    """Nothing was decided: what was asked for held before."""
    held = ", ".join(
        f"{latch.reason.value} by {printable(latch.who)} at {time_text(latch.at_us)}" for latch in state.latches
    )
    return f"nothing changes: it is in {state.mode.value}" + (f", latched: {held}" if held else "")


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


def _say_all(style: str, done: str, text: str) -> None:
    click.echo(document({"all": done}) if style == "json" else text)


ORDERS = (promote_command, demote_command, pin_command, unpin_command, kill_command, resume_command)
