"""Orders of a person to the controller: promote, demote, pin, unpin, kill, resume.

Each is one transaction per epoch, which processes that run the node poll several times a second. The commands and the
dashboard give the same orders and show the same texts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from vesper.compiler import Compiled
from vesper.effects.settings import ConfigError
from vesper.journal.moments import time_text
from vesper.migration.candidates.decisions import Order, give
from vesper.migration.candidates.overview import NameOverview
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
    Promote,
    Refused,
    Released,
    Resume,
    Unpin,
)
from vesper.migration.router.alerts import Alerts
from vesper.migration.stores import ledger
from vesper.migration.stores.codec import BadState
from vesper.migration.stores.configured import OpenStore, short_epoch
from vesper.migration.stores.kill_scope import limit_kill_to_epoch, widen_kill
from vesper.migration.stores.overview import read_node
from vesper.migration.stores.store import NodeKey, keys_of, name_key
from vesper.values.model import printable

_WEBHOOK_SECONDS = 3.0
"""Time limit for posting to a webhook."""
STOPPED = "every node runs on Python only, until `vesper migrate resume --all`"
RESUMED = "every node is in its former mode; `vesper status` shows the modes"
NOT_STOPPED = "the nodes are not stopped: nothing to resume"


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of an order for one epoch of a node."""

    key: NodeKey
    applied: ledger.Applied | None
    """None where the state cannot be read."""
    lines: Sequence[str]
    """Changes as texts, with the name of the node."""
    problems: Sequence[str]
    """Refusals, and an unreadable state."""
    damage: str | None = None


# -- candidates -----------------------------------------------------------------------------------


def decide_candidate(
    opened: OpenStore, found: NameOverview, order: Order, compile_version: Callable[[str], Compiled | None]
) -> str:
    """Store and post a decision about a candidate, and return its effect as text. Raises `Refused`."""
    text = give(opened.store, found, order, compile_version)
    alerts = Alerts(opened.migration.webhook)
    said = f"{text}; by {order.who}: {order.why}"
    alerts.candidate(name_key(found.name), f"candidate_{order.kind}", said, logging.WARNING)
    alerts.close(_WEBHOOK_SECONDS)
    return text


# -- one node -------------------------------------------------------------------------------------


def promote(opened: OpenStore, key: NodeKey, who: str, why: str, now_us: int) -> list[Answer]:
    """Approve the next mode. Refuses a mode above `max_mode`, where an approval would have no effect."""
    highest = opened.highest(key.node)
    if highest is not None:
        state = ledger.load(opened.store, key, opened.settings)
        if state.mode.level >= highest.level:
            refused = Refused(Promote(who, why), f"`max_mode` of the configuration allows at most {highest.value}")
            return [_answer(key, ledger.Applied(state, (refused,)), printable(key.node))]
    return send(opened, [key], Promote(who, why), now_us)


def demote(opened: OpenStore, key: NodeKey, mode: Mode | None, who: str, why: str, now_us: int) -> list[Answer]:
    """Demote a node, by default by one mode. The controller refuses `python_only`, and names the alternative."""
    if mode is None:
        mode = LADDER[max(ledger.load(opened.store, key, opened.settings).mode.level - 1, 0)]
    return send(opened, [key], Demote(mode, who, why), now_us)


def kill(
    opened: OpenStore, keys: Sequence[NodeKey], who: str, why: str, now_us: int, is_every_epoch: bool = True
) -> list[Answer]:
    """Stop the direct engine in these epochs; with `is_every_epoch` also in later ones."""
    for key in keys:
        if is_every_epoch:
            widen_kill(opened.store, key)
            continue
        with suppress(BadState):  # reported by the kill itself, which follows
            limit_kill_to_epoch(opened.store, key, opened.settings)
    return send(opened, keys, Kill(who, why), now_us)


def resume(opened: OpenStore, key: NodeKey, who: str, why: str, now_us: int) -> tuple[list[Answer], list[str]]:
    """Release the latches of a node. Also returns notes about a pin or latches of other epochs."""
    answers = send(opened, [key], Resume(who, why), now_us)
    notes = []
    if not any(each.problems for each in answers):
        if (pin := ledger.load(opened.store, key, opened.settings).pin) is not None:
            notes.append(f"{printable(key.node)}: {_pin_text(key, pin)}")
        if others := _latched_epochs(opened, key):
            listed = ", ".join(short_epoch(each.epoch) for each in others)
            notes.append(f"other epochs are still latched: {listed}; select one with --epoch")
    return answers, notes


def _pin_text(key: NodeKey, pin: Pin) -> str:
    held = f"until {time_text(pin.until_us)}, by {printable(pin.who)}: {printable(pin.why)}"
    remedy = f"`vesper migrate unpin {printable(key.node)}` removes it"
    return f"the pin to {pin.mode.value} still applies, {held}; {remedy}"


def _latched_epochs(opened: OpenStore, key: NodeKey) -> list[NodeKey]:
    others = [each for each in keys_of(opened.store) if each.node == key.node and each != key]
    found = [read_node(opened.store, each, opened.settings) for each in others]
    return [each.key for each in found if each.state is not None and each.state.latches]


# -- all nodes ------------------------------------------------------------------------------------


def kill_all(opened: OpenStore, who: str, why: str, now_us: int) -> tuple[bool, str | None]:
    """Stop every node.

    Returns whether this order stopped them, and a note where nothing changed or no node was routed.
    """
    try:
        before = ledger.read_kill_switch(opened.store)
    except BadState:
        before = None  # an unreadable switch is replaced
    if before is not None:
        held = f"since {time_text(before.at_us)}, by {printable(before.who)}: {printable(before.why)}"
        return False, f"no change: the nodes were already stopped, {held}"
    ledger.kill_all(opened.store, who, why, now_us)
    if keys_of(opened.store):
        return True, None
    name = printable(opened.store.name)
    return True, f"warning: no node was routed with {name}; name another store with --config or --store"


def resume_all(opened: OpenStore, who: str, why: str, now_us: int) -> bool:
    """Return every node to its former mode; False where they were not stopped."""
    if ledger.read_kill_switch(opened.store) is None:
        return False
    ledger.resume_all(opened.store, who, why, now_us)
    return True


# -- sending --------------------------------------------------------------------------------------


def send(opened: OpenStore, keys: Sequence[NodeKey], event: Event, now_us: int) -> list[Answer]:
    """Send an order for each key. A problem of one epoch does not stop the others, so that a kill reaches most."""
    found = []
    for key in keys:
        where = printable(key.node) + (f" ({short_epoch(key.epoch)})" if len(keys) > 1 else "")
        try:
            applied = _accept_expired_pin(ledger.apply_event(opened.store, key, event, opened.rules, now_us))
        except BadState as problem:
            text = f"{where}: its state is unreadable, so only Python runs there: {problem}"
            found.append(Answer(key, None, (), (text,), str(problem)))
            continue
        found.append(_answer(key, applied, where))
    return found


def _answer(key: NodeKey, applied: ledger.Applied, where: str) -> Answer:
    refusals = [each.why for each in applied.decisions if isinstance(each, Refused)]
    lines = _decision_lines(applied.decisions) or ([] if refusals else [_unchanged_text(applied.state)])
    return Answer(key, applied, [f"{where}: {each}" for each in lines], [f"{where}: {each}" for each in refusals])


def _accept_expired_pin(applied: ledger.Applied) -> ledger.Applied:
    """Drop the refusal of an unpin whose pin expired just before. The requested state holds already."""
    if not any(isinstance(each, PinEnded) for each in applied.decisions):
        return applied
    left = (each for each in applied.decisions if not (isinstance(each, Refused) and isinstance(each.event, Unpin)))
    return replace(applied, decisions=tuple(left))


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


# -- alerts ---------------------------------------------------------------------------------------


def post_alerts(opened: OpenStore, answers: Sequence[Answer]) -> str | None:
    """Post the decisions to the webhook of the configuration, if any; return why none was posted.

    An unreachable webhook costs some seconds and does not change the result of the order.
    """

    def post(alerts: Alerts) -> None:
        for each in answers:
            if each.applied is not None:
                alerts.ordered(each.key, each.applied.decisions)

    return _post(opened, post)


def post_stop(opened: OpenStore, who: str, why: str) -> str | None:
    """Post the stop of all nodes, as `post_alerts` does."""
    return _post(opened, lambda alerts: alerts.stopped_all(who, why))


def _post(opened: OpenStore, tell: Callable[[Alerts], None]) -> str | None:
    if opened.migration.webhook is None or not opened.is_configured:
        return None
    try:
        alerts = Alerts(opened.migration.webhook)
    except ConfigError as problem:
        return f"warning: no alert was posted: {printable(str(problem))}"
    tell(alerts)
    alerts.close(_WEBHOOK_SECONDS)
    return None
