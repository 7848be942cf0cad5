"""Effects of the steps `send` and `exit`: performed through `custom`, on the Host that runs the step.

The registry takes them from `EFFECTS` when a step first needs one.
"""

from __future__ import annotations

from typing import Final

from vesper.agents.messages import mailboxes_of
from vesper.effects.custom.registry import Context, Registered, check_function
from vesper.effects.performer import EffectFailed
from vesper.host.host import Host, running_host
from vesper.host.run_context import KeyReused, current_context
from vesper.kernels.raised import BadInput
from vesper.supervision.machine import NORMAL, Exited, Failed
from vesper.supervision.mailboxes import QUEUE_PREFIX
from vesper.supervision.trees import UnknownAddress
from vesper.values.types import STRING


def address_of_run() -> str | None:
    """Return the address of the agent whose message this thread or task handles; None outside of agents."""
    context = current_context()
    via = None if context is None else context.via
    return via.removeprefix(QUEUE_PREFIX) if via is not None and via.startswith(QUEUE_PREFIX) else None


def _send(agent: str, message: object, context: Context, priority: int = 0, is_broadcast: bool = False) -> str:
    """Send a message; return its execution, and of a broadcast the number of messages."""
    if not isinstance(message, dict):
        raise EffectFailed("effect_failed", "a message is a record: the inputs of the agent's node")
    mailboxes, sender = mailboxes_of(_host(context)), address_of_run()
    key = context.receipt
    try:
        if is_broadcast:
            return str(len(mailboxes.broadcast(agent, message, sender=sender, key=key, priority=priority)))
        return mailboxes.send(agent, message, sender=sender, key=key, priority=priority)
    except (UnknownAddress, BadInput, KeyReused, ValueError) as error:
        raise EffectFailed("effect_failed", str(error), may_have_happened=False) from None


def _exit(reason: str, context: Context) -> str:
    """End the agent of this run: without a failure for `normal`, else as a failure that its supervisor handles."""
    address = address_of_run()
    if address is None:
        raise EffectFailed("effect_failed", "this run is no message of an agent", may_have_happened=False)
    mailboxes = mailboxes_of(_host(context))

    def ended(path: str) -> Exited | Failed:
        return Exited(path) if reason == NORMAL else Failed(path, reason, context.execution)

    try:
        mailboxes.trees.perform(mailboxes.trees.apply(address, ended), mailboxes.notify)
    except UnknownAddress as error:
        raise EffectFailed("effect_failed", str(error), may_have_happened=False) from None
    return reason


def _host(context: Context) -> Host:
    host = running_host(context.execution)
    if host is None:
        raise EffectFailed("unavailable", "the run has no Host here", may_have_happened=False)
    return host


EFFECTS: Final = (
    Registered("agent_send", "txn", None, STRING, _send, None),
    Registered("agent_exit", "txn", None, STRING, _exit, None),
)
for _effect in EFFECTS:
    check_function(_effect)
