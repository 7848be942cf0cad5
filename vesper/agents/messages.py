"""Messages to agents from Python: `spawn`, `send`, `ask`, `send_async`, `gather`, `broadcast`, `stop`, links.

    coder = vesper.agents.spawn("coder", name="coder-1")
    reply = vesper.agents.ask(coder, {"task": "sort a list"})

Everything is in the journal of a Host: any process with it can send, and `vesper serve`, `vesper work` or
`vesper.agents.working()` handle the messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from datetime import timedelta
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from vesper.agents.node_table import node_table
from vesper.api.default_hosts import default_host
from vesper.api.runs import RunHandle
from vesper.host.host import Host
from vesper.host.run_context import current_context
from vesper.language.work_bindings import Backoff, ChildField, SupervisorField
from vesper.supervision.machine import NORMAL, Event, Exited, Failed, Link, Monitor
from vesper.supervision.mailboxes import Mailboxes, Resolve
from vesper.supervision.overview import AgentLine, agent_lines, start_agents, stop_agents
from vesper.supervision.trees import StoredTree
from vesper.supervision.workers import AgentWorkers

if TYPE_CHECKING:
    from vesper.api.node import Node

_lock = Lock()
_mailboxes: WeakKeyDictionary[Host, Mailboxes] = WeakKeyDictionary()


def mailboxes_of(host: Host | None) -> Mailboxes:
    """Return the mailboxes of a Host, by default that of the nearest `vesper.toml`."""
    host = default_host(None) if host is None else host
    resolve: Resolve = node_table(host)
    with _lock:
        if host not in _mailboxes:
            _mailboxes[host] = Mailboxes(host, resolve)
        return _mailboxes[host]


def spawn(
    node: str | Node,
    *,
    name: str,
    reaction: str = "restart",
    max_restarts: int = 3,
    window: float = 60.0,
    backoff: Backoff | None = None,
    attempts: int = 3,
    linked_to: str | None = None,
    host: Host | None = None,
) -> str:
    """Start an agent under a supervisor of its own, and return its address.

    An agent of this name and declaration that exists is returned. Raises `NameTaken`, `ValueError` and `JournalError`.
    """
    if not isinstance(node, str):
        host = node.host if host is None else host
    mailboxes = mailboxes_of(host)
    if not isinstance(node, str):
        node_table(node.host).add(node)
    child = ChildField("", node if isinstance(node, str) else node.id, reaction)
    default = SupervisorField(())
    field = SupervisorField(
        (child,), "one_for_one", max_restarts, round(window * 1_000_000), backoff or default.backoff, attempts
    )
    mailboxes.trees.start(name, field)
    if linked_to is not None:
        link(name, linked_to, host=host)
    return name


def send(
    address: str,
    message: Mapping[str, object],
    *,
    key: str | None = None,
    priority: int = 0,
    delay: float | timedelta | None = None,
    host: Host | None = None,
) -> RunHandle:
    """Put a message into the mailbox of an agent, and return the handle of its run; durable on return."""
    host = default_host(None) if host is None else host
    mailboxes = mailboxes_of(host)
    execution = mailboxes.send(address, message, sender=self_address(), key=key, priority=priority, delay=delay)
    return RunHandle(host, execution)


def ask(
    address: str,
    message: Mapping[str, object],
    *,
    timeout: float | None = None,
    key: str | None = None,
    priority: int = 0,
    host: Host | None = None,
) -> Any:
    """Send a message, wait for its end, and return the outputs. Raises its error, and `RunNotEnded`."""
    return send(address, message, key=key, priority=priority, host=host).wait(timeout).unwrap()


async def send_async(
    address: str,
    message: Mapping[str, object],
    *,
    timeout: float | None = None,  # noqa: ASYNC109  # as `ask`
    key: str | None = None,
    priority: int = 0,
    host: Host | None = None,
) -> Any:
    """Send a message as `ask` does, and return its outputs, without a thread."""
    handle = await asyncio.to_thread(send, address, message, key=key, priority=priority, host=host)
    return (await handle.wait_async(timeout)).unwrap()


def gather(handles: Iterable[RunHandle], timeout: float | None = None) -> list[Any]:
    """Return the outcomes of messages, in the order of their handles; a failed one is an outcome too."""
    return [each.wait(timeout) for each in handles]


def broadcast(
    address: str,
    message: Mapping[str, object],
    *,
    key: str | None = None,
    priority: int = 0,
    host: Host | None = None,
) -> list[RunHandle]:
    """Send a message to each agent at or below an address, but not to the sender."""
    host = default_host(None) if host is None else host
    sent = mailboxes_of(host).broadcast(address, message, sender=self_address(), key=key, priority=priority)
    return [RunHandle(host, each) for each in sent]


def self_address() -> str | None:
    """Return the address of the agent whose message is handled here; None outside of agents."""
    from vesper.agents.flow_steps import address_of_run

    return address_of_run()


def stop(address: str, reason: str = "stopped", *, host: Host | None = None) -> None:
    """Stop an agent, or all below a supervisor: its message under way ends, later ones wait for `start`."""
    stop_agents(mailboxes_of(host), address, _actor(), reason)


def start(address: str, *, host: Host | None = None) -> None:
    """Start an agent, or all below a supervisor, again: a new incarnation handles the messages that wait."""
    start_agents(mailboxes_of(host), address, _actor(), "")


def exit(reason: str = NORMAL, *, address: str | None = None, host: Host | None = None) -> None:  # noqa: A001  # its name in Erlang
    """End an agent, by default the one whose message is handled here.

    Any reason but `normal` is a failure: its supervisor and its links react.
    """
    target = self_address() if address is None else address
    if target is None:
        raise ValueError("name the `address` of an agent: no message of one is handled here")
    now_us = mailboxes_of(host).trees.now_us()
    change(
        target, lambda path: Exited(path) if reason == NORMAL else Failed(path, reason, f"exit:{target}:{now_us}"), host
    )


def link(address: str, other: str, *, host: Host | None = None) -> None:
    """Link two agents: the failure of one is a failure of the other."""
    mailboxes = mailboxes_of(host)
    mailboxes.trees.agent(address), mailboxes.trees.agent(other)
    change(address, lambda path: Link(path, other), host)
    change(other, lambda path: Link(path, address), host)


def unlink(address: str, other: str, *, host: Host | None = None) -> None:
    """End the link of two agents."""
    change(address, lambda path: Link(path, other, is_removed=True), host)
    change(other, lambda path: Link(path, address, is_removed=True), host)


def monitor(address: str, watcher: str, *, host: Host | None = None) -> None:
    """Send `watcher` a message with `agent`, `incarnation` and `reason` when an incarnation of an agent ends."""
    mailboxes = mailboxes_of(host)
    mailboxes.check_watcher(watcher)
    change(address, lambda path: Monitor(path, watcher), host)


def demonitor(address: str, watcher: str, *, host: Host | None = None) -> None:
    """End the notifications of `monitor`."""
    change(address, lambda path: Monitor(path, watcher, is_removed=True), host)


def state(address: str, *, host: Host | None = None) -> AgentLine:
    """Return the status, mailbox and restarts of an agent or a supervisor. Raises `UnknownAddress`."""
    return agent_lines(mailboxes_of(host).journal, address)[0]


def change(address: str, event: Callable[[str], Event], host: Host | None) -> StoredTree:
    """Apply an event of the machine to an agent, and perform its effects."""
    mailboxes = mailboxes_of(host)
    stored = mailboxes.trees.apply(address, event)
    mailboxes.trees.perform(stored, mailboxes.notify)
    return stored


@contextmanager
def working(host: Host | None = None) -> Generator[AgentWorkers, None, None]:
    """Handle the messages of a Host's journal in this process; `vesper serve` and `vesper work` do it by themselves."""
    host = default_host(None) if host is None else host
    host.start()
    workers = AgentWorkers(host, node_table(host))
    workers.start()
    try:
        yield workers
    finally:
        workers.stop(30)


def _actor() -> str:
    context = current_context()
    return (context.actor if context is not None else None) or ""
