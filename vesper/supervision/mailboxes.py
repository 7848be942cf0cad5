"""Durable mailboxes: a message is a queued run of the agent's node, in a queue of its own for each agent.

START, the place in the mailbox and the idempotency key are one commit of the journal: a message is neither lost nor
doubled. A mailbox with work has a row of kind `agent_turn`; the worker that claims it handles messages of this agent
one after the other. A sleeping agent has no such row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from vesper.host.host import Host
from vesper.host.keyed_runs import run_of_key
from vesper.host.prepared import Prepared
from vesper.host.run_context import RunContext, current_context, entered
from vesper.journal.errors import KeyTaken
from vesper.kernels.raised import BadInput
from vesper.queues.enqueuing import MAX_PRIORITY
from vesper.queues.rules import QUEUED, Terms
from vesper.supervision.machine import RUNNING, Down, owner_of
from vesper.supervision.trees import StoredTree, Trees
from vesper.values.inputs import read_inputs
from vesper.values.types import STRING, Type

TURN: Final = "agent_turn"
"""Kind of the row of an agent with work; due when its next message may start."""
QUEUE_PREFIX: Final = "agent:"
DOWN_PRIORITY: Final = 500
"""Priority of a notification that a monitored agent ended."""
SELF: Final = "agent_self"
SENDER: Final = "agent_sender"
_FEATURES: Final = {SELF: STRING, SENDER: STRING}
"""Inputs of a node that a mailbox gives."""
_MAX_QUEUES: Final = 100_000
_PAGE: Final = 100

Resolve = Callable[[str], Prepared]
"""Returns the node of a name or id as the Host runs it; raises `VesperError` where there is none."""


def mailbox(address: str) -> str:
    """Return the queue of an agent."""
    return QUEUE_PREFIX + address


class Mailboxes:
    """Sends messages to agents of a Host's journal."""

    def __init__(self, host: Host, resolve: Resolve) -> None:
        self._host = host
        self._resolve = resolve
        self.journal = host.journal
        self.trees = Trees(host.journal)

    def send(
        self,
        address: str,
        inputs: Mapping[str, object],
        *,
        sender: str | None = None,
        key: str | None = None,
        priority: int = 0,
        delay: float | timedelta | None = None,
    ) -> str:
        """Put a message into a mailbox, and return its execution; durable on return.

        A message to a stopped agent waits for its start. A `key` that a message of this node has returns that message.
        Raises `UnknownAddress`, `BadInput`, `KeyReused` and `ValueError`.
        """
        if type(priority) is not int or not -MAX_PRIORITY <= priority <= MAX_PRIORITY:
            raise ValueError(f"`priority` is a whole number from -{MAX_PRIORITY:,} to {MAX_PRIORITY:,}")
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else (delay or 0)
        if not 0 <= seconds <= 366 * 86_400:
            raise ValueError("`delay` is a number of seconds or a timedelta from 0 to a year")
        found, child, _ = self.trees.agent(address)
        assert child.node is not None  # only supervisors have none
        prepared = self._resolve(child.node)
        given = _with_own_inputs(prepared, inputs, address, sender)
        supervisor = owner_of(found.tree.field, address.partition("/")[2])[1]
        journal = self._host.journal
        due_us = journal.now_us() + round(seconds * 1_000_000) if seconds else None
        context = (current_context() or RunContext()).of_nested_run()
        with entered(replace(context, key=key, actor=sender or context.actor, via=mailbox(address), deadline=None)):
            try:
                execution = self._host.put_run(
                    prepared,
                    given,
                    self._host.moment(),
                    queue=mailbox(address),
                    priority=priority,
                    due_us=due_us,
                    body=Terms(supervisor.attempts, supervisor.backoff, "", tenant=context.tenant).to_body(),
                )
            except KeyTaken:
                execution = run_of_key(journal, prepared, given)
        self.wake(address, due_us)
        return execution

    def broadcast(
        self,
        address: str,
        inputs: Mapping[str, object],
        *,
        sender: str | None = None,
        key: str | None = None,
        priority: int = 0,
    ) -> list[str]:
        """Send a message to each agent at or below an address, but not to its sender; return the executions."""
        found, path = self.trees.of(address)
        paths = [each for each in found.tree.agents if not path or each == path or each.startswith(f"{path}/")]
        targets = [each for each in map(found.tree.address, paths) if each != sender]
        if not paths:
            self.trees.agent(address)  # raises
        return [
            self.send(each, inputs, sender=sender, key=None if key is None else f"{key}@{each}", priority=priority)
            for each in targets
        ]

    def notify(self, down: Down) -> None:
        """Send a monitoring agent the end of an incarnation, with the inputs that its node declares."""
        _, child, _ = self.trees.agent(down.watcher)
        assert child.node is not None
        declared = {each.name for each in self._resolve(child.node).compiled.node.inputs}
        facts = {"agent": down.address, "incarnation": down.incarnation, "reason": down.reason}
        given = {name: fact for name, fact in facts.items() if name in declared}
        key = f"down:{down.address}#{down.incarnation}@{down.watcher}"
        self.send(down.watcher, given, sender=down.address, key=key, priority=DOWN_PRIORITY)

    def check_watcher(self, address: str) -> None:
        """Check that an agent takes notifications. Raises `UnknownAddress` and `ValueError`."""
        _, child, _ = self.trees.agent(address)
        assert child.node is not None
        prepared = self._resolve(child.node)
        declared = {each.name for each in prepared.compiled.node.inputs}
        facts: dict[str, object] = {"agent": "a", "incarnation": 1, "reason": "r"}
        given = _with_own_inputs(prepared, {n: each for n, each in facts.items() if n in declared}, address, "a")
        _, refusals = read_inputs(prepared.compiled.node.declared_inputs, given)
        if refusals:
            raise ValueError(
                f"`{child.node}` takes no notifications: its inputs are of `agent: string`, `incarnation: integer`, "
                f"`reason: string`, and others have defaults ({BadInput(refusals)})"
            )

    def wake(self, address: str, due_us: int | None = None) -> None:
        """Let a worker handle the mailbox, at once or at a time."""
        journal = self._host.journal
        at_us = journal.now_us() if due_us is None else due_us
        while not journal.put_due(TURN, address, at_us, "{}", None):
            rows = journal.due(kind=TURN, name=address, limit=1)
            if not rows:
                continue
            row = rows[0]
            if row.owner or row.due_us is None or row.due_us <= at_us:  # its worker looks again before it lets go
                return
            if journal.put_due(TURN, address, at_us, "{}", row.due_us):
                return

    def next_us(self, address: str) -> int | None:
        """Return the time of the next message of a mailbox; None where it is empty."""
        rows = self._host.journal.due(kind=QUEUED, queue=mailbox(address), limit=_PAGE)
        times = [each.due_us for each in rows if each.due_us is not None]
        return min(times) if times else None

    def wake_forgotten(self) -> None:
        """Wake the mailboxes whose sender or worker died before it did."""
        for address in self.filled():
            found, path = self._found(address)
            if found is None or path not in found.tree.agents or found.tree.agents[path].status == RUNNING:
                next_us = self.next_us(address)
                if next_us is not None:
                    self.wake(address, next_us)

    def filled(self) -> Iterator[str]:
        """Yield the addresses of mailboxes that have messages."""
        for each in self._host.journal.queue_depths(None, _MAX_QUEUES):
            if each.queue.startswith(QUEUE_PREFIX) and not each.queue.endswith("/dead"):
                yield each.queue.removeprefix(QUEUE_PREFIX)

    def _found(self, address: str) -> tuple[StoredTree | None, str]:
        name, _, path = address.partition("/")
        return self.trees.find(name), path


def _with_own_inputs(
    prepared: Prepared, inputs: Mapping[str, object], address: str, sender: str | None
) -> dict[str, object]:
    """Add the inputs that a mailbox gives: the agent's own address and the sender's."""
    values: dict[str, object] = {SELF: address, SENDER: sender or ""}
    given = dict(inputs)
    for each in prepared.compiled.node.inputs:
        wanted: Type | None = _FEATURES.get(each.name)
        if wanted is not None and each.type == wanted:
            given[each.name] = values[each.name]
    return given
