"""Agents as commands and pages show them, and what people change about them. Changes are audit lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from vesper.journal.audit import audit_change
from vesper.journal.journal import Journal
from vesper.language.work_bindings import ChildField, SupervisorField
from vesper.queues.rules import DEAD_SUFFIX
from vesper.supervision.machine import FAILED, RUNNING, STOPPED, Agent, Start, Stop, Tree
from vesper.supervision.mailboxes import QUEUE_PREFIX, Mailboxes
from vesper.supervision.trees import StoredTree, Trees, UnknownAddress

_MAX_QUEUES = 100_000


@dataclass(frozen=True, slots=True)
class AgentLine:
    """A supervisor or an agent, with its mailbox."""

    address: str
    depth: int
    """Supervisors above it."""
    kind: str
    """`supervisor` or `agent`."""
    status: str
    """`running`, `restarting`, `stopped` or `failed`; of a supervisor that of its agents, `mixed` where they differ."""
    node: str | None = None
    strategy: str | None = None
    on_failure: str = "restart"
    incarnation: int | None = None
    restarts: int | None = None
    """Restarts of a supervisor in its window, as of the last one."""
    max_restarts: int | None = None
    waiting: int = 0
    """Messages that have not begun."""
    running: int = 0
    dead: int = 0
    reason: str = ""
    """Why the last incarnation ended."""
    links: tuple[str, ...] = ()
    watchers: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Depth:
    waiting: int = 0
    running: int = 0
    dead: int = 0


def agent_lines(journal: Journal, address: str | None = None) -> list[AgentLine]:
    """Return all trees, or the part at and below an address. Raises `UnknownAddress`."""
    trees, now_us, depths = Trees(journal), journal.now_us(), _depths(journal)
    if address is None:
        return [line for found in trees.all() for line in _lines(found, depths, now_us)]
    found, _ = trees.of(address)
    lines = [
        each
        for each in _lines(found, depths, now_us)
        if each.address == address or each.address.startswith(f"{address}/")
    ]
    if not lines:
        raise UnknownAddress(f"no agent `{address}`: `vesper agents tree` lists them")
    return lines


def stop_agents(mailboxes: Mailboxes, address: str, by: str, why: str) -> list[str]:
    """Stop the agents at and below an address, and return those that ran."""
    before, _ = mailboxes.trees.of(address)
    stored = mailboxes.trees.apply(address, lambda path: Stop(path, why or "stopped"))
    audit_change(mailboxes.journal, "agent_stop", "", before.node_id or "", by, agent=address, why=why)
    mailboxes.trees.perform(stored, mailboxes.notify)
    return _changed(before.tree, stored.tree, RUNNING)


def start_agents(mailboxes: Mailboxes, address: str, by: str, why: str) -> list[str]:
    """Start the agents at and below an address again, and return those that did not run."""
    before, _ = mailboxes.trees.of(address)
    stored = mailboxes.trees.apply(address, Start)
    audit_change(mailboxes.journal, "agent_start", "", before.node_id or "", by, agent=address, why=why)
    mailboxes.trees.perform(stored, mailboxes.notify)
    mailboxes.wake_forgotten()
    return [each for status in (STOPPED, FAILED) for each in _changed(before.tree, stored.tree, status)]


def _changed(before: Tree, after: Tree, status: str) -> list[str]:
    """Return the addresses of agents that had a status and have another one."""
    return [
        before.address(each)
        for each, agent in before.agents.items()
        if agent.status == status and after.agents[each].status != status
    ]


def _depths(journal: Journal) -> dict[str, _Depth]:
    found: dict[str, _Depth] = {}
    for each in journal.queue_depths(None, _MAX_QUEUES):
        if not each.queue.startswith(QUEUE_PREFIX):
            continue
        address = each.queue.removeprefix(QUEUE_PREFIX)
        known = found.get(address.removesuffix(DEAD_SUFFIX), _Depth())
        if address.endswith(DEAD_SUFFIX):
            found[address.removesuffix(DEAD_SUFFIX)] = _Depth(known.waiting, known.running, each.count)
        else:
            found[address] = _Depth(each.waiting + each.delayed, each.running, known.dead)
    return found


def _lines(found: StoredTree, depths: dict[str, _Depth], now_us: int) -> Iterator[AgentLine]:
    field = found.tree.field
    if found.node_id is None:
        yield _agent_line(found.tree, "", field.children[0], 0, depths, now_us)
    else:
        yield from _supervisor_lines(found.tree, "", field, "restart", 0, depths, now_us)


def _supervisor_lines(
    tree: Tree,
    path: str,
    field: SupervisorField,
    reaction: str,
    depth: int,
    depths: dict[str, _Depth],
    now_us: int,
) -> Iterator[AgentLine]:
    below: list[AgentLine] = []
    for child in field.children:
        own = f"{path}/{child.name}" if path else child.name
        if child.supervisor is None:
            below.append(_agent_line(tree, own, child, depth + 1, depths, now_us))
        else:
            below += _supervisor_lines(tree, own, child.supervisor, child.reaction, depth + 1, depths, now_us)
    statuses = {each.status for each in below}
    yield AgentLine(
        tree.address(path),
        depth,
        "supervisor",
        statuses.pop() if len(statuses) == 1 else "mixed",
        strategy=field.strategy,
        on_failure=reaction,
        restarts=len(tree.restarts.get(path, ())),
        max_restarts=field.max_restarts,
    )
    yield from below


def _agent_line(
    tree: Tree, path: str, child: ChildField, depth: int, depths: dict[str, _Depth], now_us: int
) -> AgentLine:
    agent: Agent = tree.agents[path]
    box = depths.get(tree.address(path), _Depth())
    return AgentLine(
        tree.address(path),
        depth,
        "agent",
        "restarting" if agent.status == RUNNING and agent.ready_us > now_us else agent.status,
        node=child.node,
        on_failure=child.reaction,
        incarnation=agent.incarnation,
        waiting=box.waiting,
        running=box.running,
        dead=box.dead,
        reason=agent.reason,
        links=tuple(sorted(other for here, other in tree.links if here == path)),
        watchers=tuple(sorted(watcher for here, watcher in tree.monitors if here == path)),
    )
