"""Orders of an operator: those of `vesper migrate promote|demote|pin|unpin|kill|resume`, with equal texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vesper.config.moments import parse_duration
from vesper.dashboard.access.caller import Role
from vesper.dashboard.action import Action, Done
from vesper.dashboard.page import Context, filled
from vesper.dashboard.problem import BadRequest, NotFound, Refused
from vesper.dashboard.service import open_configured
from vesper.migration.control.modes import LADDER, Mode
from vesper.migration.control.state import MAX_PIN_US, PinTo, Unpin
from vesper.migration.router import orders
from vesper.migration.router.orders import Answer
from vesper.migration.stores.configured import OpenStore
from vesper.migration.stores.overview import newest_epochs, read_node
from vesper.migration.stores.store import NodeKey, keys_of
from vesper.values.model import printable

Fields = Mapping[str, str]
_OPERATOR = Role.OPERATOR


def find_node_keys(opened: OpenStore, node: str) -> list[NodeKey]:
    """Return every epoch of a node. Raises `NotFound`."""
    found = [each for each in keys_of(opened.store) if each.node == node]
    if not found:
        raise NotFound(f"no node `{printable(node[:80])}` was routed with this store", "Choose one of the fleet.")
    return found


def find_node_key(opened: OpenStore, node: str, epoch: str | None) -> NodeKey:
    """Return the node in this epoch, by default in the one written last. Raises `NotFound`."""
    keys = find_node_keys(opened, node)
    if epoch is None:
        return newest_epochs(read_node(opened.store, key, opened.settings) for key in keys)[0].key
    if NodeKey(node, epoch) not in keys:
        raise NotFound(f"{printable(node)} has no epoch `{printable(epoch[:80])}`", "Its page lists its epochs.")
    return NodeKey(node, epoch)


def _promote(context: Context, fields: Fields) -> Done:
    opened, key = _target(context, fields)
    answers = orders.promote(opened, key, context.caller.name, fields["reason"], context.now_us)
    return _done(context, opened, answers)


def _demote(context: Context, fields: Fields) -> Done:
    opened, key = _target(context, fields)
    mode = _mode(fields) if fields.get("mode") else None
    answers = orders.demote(opened, key, mode, context.caller.name, fields["reason"], context.now_us)
    return _done(context, opened, answers)


def _pin(context: Context, fields: Fields) -> Done:
    opened, key = _target(context, fields)
    text = fields.get("duration", "")
    seconds = parse_duration(text)
    if seconds is None or not 0 < seconds * 1_000_000 <= MAX_PIN_US:
        raise BadRequest(f"`{printable(text[:40])}` is not a duration up to 366 days", "Write `90m`, `12h` or `7d`.")
    until_us = context.now_us + int(seconds * 1_000_000)
    pin = PinTo(_mode(fields), until_us, context.caller.name, fields["reason"])
    return _done(context, opened, orders.send(opened, [key], pin, context.now_us))


def _unpin(context: Context, fields: Fields) -> Done:
    opened, key = _target(context, fields)
    unpin = Unpin(context.caller.name, fields["reason"])
    return _done(context, opened, orders.send(opened, [key], unpin, context.now_us))


def _kill(context: Context, fields: Fields) -> Done:
    opened = open_configured(context.stores)
    keys = find_node_keys(opened, context.path["node"])
    answers = orders.kill(opened, keys, context.caller.name, fields["reason"], context.now_us)
    return _done(context, opened, answers)


def _resume(context: Context, fields: Fields) -> Done:
    opened, key = _target(context, fields)
    answers, notes = orders.resume(opened, key, context.caller.name, fields["reason"], context.now_us)
    return _done(context, opened, answers, notes)


def _kill_all(context: Context, fields: Fields) -> Done:
    opened = open_configured(context.stores)
    is_new, note = orders.kill_all(opened, context.caller.name, fields["reason"], context.now_us)
    warning = orders.post_stop(opened, context.caller.name, fields["reason"]) if is_new else None
    return Done("; ".join(filter(None, (orders.STOPPED, note, warning))), "/")


def _resume_all(context: Context, fields: Fields) -> Done:
    opened = open_configured(context.stores)
    if not orders.resume_all(opened, context.caller.name, fields["reason"], context.now_us):
        raise Refused(orders.NOT_STOPPED, "The fleet shows the modes.")
    return Done(orders.RESUMED, "/")


def _target(context: Context, fields: Fields) -> tuple[OpenStore, NodeKey]:
    opened = open_configured(context.stores)
    return opened, find_node_key(opened, context.path["node"], fields.get("epoch") or None)


def _mode(fields: Fields) -> Mode:
    try:
        return Mode(fields.get("mode", ""))
    except ValueError:
        raise BadRequest("`mode` names no mode", f"Use one of {', '.join(each.value for each in LADDER)}.") from None


def _done(context: Context, opened: OpenStore, answers: Sequence[Answer], notes: Sequence[str] = ()) -> Done:
    """Post alerts, then report. Raises `Refused` with the problems of all epochs."""
    warning = orders.post_alerts(opened, answers)
    problems = [text for each in answers for text in each.problems]
    lines = [*(text for each in answers for text in each.lines), *notes, *([] if warning is None else [warning])]
    if problems:
        raise Refused("; ".join([*problems, *lines]), "The page of the node shows what holds it and what it lacks.")
    return Done("; ".join(lines), filled("/nodes/{node}", {"node": context.path["node"]}))


ACTIONS = (
    Action("promote", "/nodes/{node}/promote", _OPERATOR, _promote, "Approve the next mode; evidence is needed too."),
    Action("demote", "/nodes/{node}/demote", _OPERATOR, _demote, "Demote the node; its evidence restarts."),
    Action("pin", "/nodes/{node}/pin", _OPERATOR, _pin, "Hold the node in a mode for a time; its evidence stays."),
    Action("unpin", "/nodes/{node}/unpin", _OPERATOR, _unpin, "Remove the pin before it expires."),
    Action("kill", "/nodes/{node}/kill", _OPERATOR, _kill, "Run the node on Python only until it is resumed."),
    Action("resume", "/nodes/{node}/resume", _OPERATOR, _resume, "Release the latches; it starts in shadow_direct."),
    Action("kill_all", "/kill", _OPERATOR, _kill_all, "Run every node on Python only; modes and evidence stay."),
    Action("resume_all", "/resume", _OPERATOR, _resume_all, "Return every node to its former mode."),
)  # fmt: skip
