"""The supervision machine: how a tree of agents reacts to failures, stops and links. Pure: no clock, no I/O.

`transition` maps a tree, an event and a time to the new tree and its effects. The journal holds the tree; the caller
stores it and then performs the effects (`vesper.supervision.trees`).

An agent has a path within its tree: names joined by `/`, `""` for a tree of a single agent. Its address is the name of
the tree and the path. A restart is a new incarnation: no object dies, because an agent is a row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from vesper.language.work_bindings import ChildField, SupervisorField

NORMAL = "normal"
"""Reason of an exit that is no failure."""
RUNNING, STOPPED, FAILED = "running", "stopped", "failed"


@dataclass(frozen=True, slots=True)
class Agent:
    """The state of one agent."""

    status: str = RUNNING
    """`running`, `stopped` (by itself or a person) or `failed` (by a reaction, or with its supervisor)."""
    incarnation: int = 1
    ready_us: int = 0
    """End of the backoff: no message starts before."""
    reason: str = ""
    """Why the last incarnation ended."""
    cause: str = ""
    """Id of the last failure that reached it: the same one counts once."""
    is_held: bool = False
    """True where a person stopped it: only a person starts it again."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A supervisor with all below it."""

    name: str
    field: SupervisorField
    agents: dict[str, Agent]
    """By path."""
    restarts: dict[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    """Times of the restarts in the window, by the path of the supervisor."""
    links: frozenset[tuple[str, str]] = frozenset()
    """Path of an agent here, address of the other one; both ends record a link."""
    monitors: frozenset[tuple[str, str]] = frozenset()
    """Path of an agent here, address of the agent that is notified."""

    @classmethod
    def start(cls, name: str, supervisor: SupervisorField) -> Tree:
        """Return the tree with all agents running."""
        return cls(name, supervisor, {path: Agent() for path, _ in agents_of(supervisor)})

    def address(self, path: str) -> str:
        return f"{self.name}/{path}" if path else self.name


@dataclass(frozen=True, slots=True)
class Failed:
    """An incarnation of an agent failed. `cause` identifies the failure."""

    path: str
    reason: str
    cause: str
    incarnation: int | None = None
    """The incarnation that failed; None for the present one. An older one was restarted already."""


@dataclass(frozen=True, slots=True)
class Exited:
    """An agent ended itself without a failure."""

    path: str
    reason: str = NORMAL


@dataclass(frozen=True, slots=True)
class Stop:
    """A person stops an agent, or all below a supervisor."""

    path: str
    reason: str = "stopped"


@dataclass(frozen=True, slots=True)
class Start:
    """A person starts an agent, or all below a supervisor, again."""

    path: str


@dataclass(frozen=True, slots=True)
class Link:
    path: str
    other: str
    """Address of the other agent."""
    is_removed: bool = False


@dataclass(frozen=True, slots=True)
class Monitor:
    path: str
    watcher: str
    """Address of the agent that is notified."""
    is_removed: bool = False


Event: TypeAlias = Failed | Exited | Stop | Start | Link | Monitor


@dataclass(frozen=True, slots=True)
class Down:
    """Notify a monitoring agent: an incarnation ended."""

    watcher: str
    address: str
    incarnation: int
    reason: str


@dataclass(frozen=True, slots=True)
class Signal:
    """Fail a linked agent of another tree."""

    address: str
    reason: str
    cause: str


Effect: TypeAlias = Down | Signal


class UnknownAgent(LookupError):
    """The tree has no agent or supervisor of this path."""


def agents_of(supervisor: SupervisorField, path: str = "") -> Iterator[tuple[str, ChildField]]:
    """Yield the agents below a supervisor with their paths, in order."""
    for child in supervisor.children:
        own = _join(path, child.name)
        if child.supervisor is None:
            yield own, child
        else:
            yield from agents_of(child.supervisor, own)


def owner_of(supervisor: SupervisorField, path: str, at: str = "") -> tuple[str, SupervisorField]:
    """Return the supervisor of an agent, with its path. Raises `UnknownAgent`."""
    for child in supervisor.children:
        own = _join(at, child.name)
        if child.supervisor is None and own == path:
            return at, supervisor
        if child.supervisor is not None and path.startswith(f"{own}/"):
            return owner_of(child.supervisor, path, own)
    raise UnknownAgent(path)


def transition(tree: Tree, event: Event, now_us: int) -> tuple[Tree, tuple[Effect, ...]]:
    """Return the tree after an event, and the effects to perform. Raises `UnknownAgent`."""
    machine = _Machine(tree, now_us)
    machine.handle(event)
    return machine.tree(), tuple(machine.effects)


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path and name else path or name


class _Machine:
    def __init__(self, tree: Tree, now_us: int) -> None:
        self._tree = tree
        self._now_us = now_us
        self._agents = dict(tree.agents)
        self._restarts = dict(tree.restarts)
        self._links = set(tree.links)
        self._monitors = set(tree.monitors)
        self.effects: list[Effect] = []

    def tree(self) -> Tree:
        return replace(
            self._tree,
            agents=self._agents,
            restarts={path: times for path, times in self._restarts.items() if times},
            links=frozenset(self._links),
            monitors=frozenset(self._monitors),
        )

    def handle(self, event: Event) -> None:
        match event:
            case Failed(path, reason, cause, incarnation):
                agent = self._agent(path)
                if agent.status == RUNNING and incarnation in (None, agent.incarnation):
                    self._fail(path, reason, cause)
            case Exited(path, reason):
                if self._agent(path).status == RUNNING:
                    self._end(path, STOPPED, reason)
            case Stop(path, reason):
                for each in self._below(path):
                    if self._agents[each].status == RUNNING:
                        self._end(each, STOPPED, reason)
                    self._agents[each] = replace(self._agents[each], is_held=True)
            case Start(path):
                for each in self._below(path):
                    if self._agents[each].status != RUNNING:
                        self._revive(each, 0)
                self._forget_restarts(path)
            case Link(path, other, is_removed):
                self._agent(path)
                (self._links.discard if is_removed else self._links.add)((path, other))
            case Monitor(path, watcher, is_removed):
                self._agent(path)
                (self._monitors.discard if is_removed else self._monitors.add)((path, watcher))

    # -- failures ---------------------------------------------------------------------------------

    def _fail(self, path: str, reason: str, cause: str) -> None:
        """An agent failed: its supervisor reacts, then its links fail. One cause reaches an agent once."""
        if self._agents[path].cause == cause:
            return
        self._agents[path] = replace(self._agents[path], cause=cause)
        at, supervisor = owner_of(self._tree.field, path)
        number = next(n for n, each in enumerate(supervisor.children) if _join(at, each.name) == path)
        self._react(at, supervisor, number, reason, cause)
        own = self._tree.address(path)
        for here, other in sorted(self._links):
            if here != path:
                continue
            local = self._local(other)
            if local is None:
                self.effects.append(Signal(other, f"linked to {own}: {reason}", cause))
            elif local in self._agents and self._agents[local].status == RUNNING:
                self._fail(local, f"linked to {own}: {reason}", cause)

    def _react(self, at: str, supervisor: SupervisorField, number: int, reason: str, cause: str) -> None:
        """React to the failure of a child, an agent or a supervisor."""
        child = supervisor.children[number]
        if child.reaction == "stop":
            self._end_all(_join(at, child.name), child, FAILED, reason)
        elif child.reaction == "escalate":
            self._fail_supervisor(at, f"{_join(at, child.name)} escalated: {reason}", cause)
        else:
            since = self._now_us - supervisor.window_us
            times = (*(each for each in self._restarts.get(at, ()) if each > since), self._now_us)
            self._restarts[at] = times
            if len(times) > supervisor.max_restarts:
                why = (
                    f"more than {supervisor.max_restarts} restarts in {supervisor.window_us / 1_000_000:g} s: {reason}"
                )
                self._fail_supervisor(at, why, cause)
                return
            ready_us = self._now_us + supervisor.backoff.wait_us(len(times))
            for place, each in enumerate(supervisor.children):
                if place == number or _is_restarted_too(supervisor.strategy, place, number):
                    why = reason if place == number else f"restarted with {_join(at, child.name)}: {reason}"
                    is_revived = place == number or supervisor.strategy == "restart_all"
                    self._restart(_join(at, each.name), each, ready_us, why, cause, is_revived)

    def _fail_supervisor(self, path: str, reason: str, cause: str) -> None:
        """A supervisor failed: its own supervisor reacts; without one the tree has failed."""
        if path:
            above, supervisor, number = self._place_of(path)
            self._react(above, supervisor, number, reason, cause)
        else:
            for each in self._agents:
                self._agents[each] = replace(self._agents[each], cause=cause)
                if self._agents[each].status == RUNNING:
                    self._end(each, FAILED, reason)
            self._forget_restarts("")

    def _restart(self, path: str, child: ChildField, ready_us: int, reason: str, cause: str, is_revived: bool) -> None:
        """Begin a new incarnation of all running agents of a child; with `is_revived` also of those that ended."""
        if child.supervisor is not None:
            self._forget_restarts(path)
        for each in self._below(path):
            agent = self._agents[each]
            if agent.status == RUNNING:
                self._notify(each, reason)
            elif agent.is_held or not is_revived:
                continue
            self._agents[each] = replace(agent, cause=cause, reason=reason)
            self._revive(each, ready_us)

    def _end_all(self, path: str, child: ChildField, status: str, reason: str) -> None:
        if child.supervisor is not None:
            self._forget_restarts(path)
        for each in self._below(path):
            if self._agents[each].status == RUNNING:
                self._end(each, status, reason)

    def _end(self, path: str, status: str, reason: str) -> None:
        self._notify(path, reason)
        self._agents[path] = replace(self._agents[path], status=status, reason=reason)

    def _revive(self, path: str, ready_us: int) -> None:
        agent = self._agents[path]
        number = agent.incarnation + 1
        self._agents[path] = replace(agent, status=RUNNING, incarnation=number, ready_us=ready_us, is_held=False)

    def _notify(self, path: str, reason: str) -> None:
        """Notify the monitors that the present incarnation ends."""
        number = self._agents[path].incarnation
        for here, watcher in sorted(self._monitors):
            if here == path:
                self.effects.append(Down(watcher, self._tree.address(path), number, reason))

    # -- places -----------------------------------------------------------------------------------

    def _agent(self, path: str) -> Agent:
        if path not in self._agents:
            raise UnknownAgent(path)
        return self._agents[path]

    def _below(self, path: str) -> list[str]:
        """Return the agents at or below a path."""
        found = [each for each in self._agents if not path or each == path or each.startswith(f"{path}/")]
        if not found:
            raise UnknownAgent(path)
        return found

    def _forget_restarts(self, path: str) -> None:
        for each in list(self._restarts):
            if not path or each == path or each.startswith(f"{path}/"):
                del self._restarts[each]

    def _place_of(self, path: str) -> tuple[str, SupervisorField, int]:
        """Return the supervisor above a supervisor, its path, and the number of the child."""
        at, supervisor = "", self._tree.field
        while True:
            for number, each in enumerate(supervisor.children):
                own = _join(at, each.name)
                if each.supervisor is None:
                    continue
                if own == path:
                    return at, supervisor, number
                if path.startswith(f"{own}/"):
                    at, supervisor = own, each.supervisor
                    break
            else:
                raise UnknownAgent(path)

    def _local(self, address: str) -> str | None:
        """Return the path of an address in this tree; None for one of another tree."""
        tree, _, path = address.partition("/")
        return path if tree == self._tree.name else None


def _is_restarted_too(strategy: str, place: int, failed: int) -> bool:
    """Return whether the failure of one child restarts another one."""
    return strategy in ("one_for_all", "restart_all") or (strategy == "rest_for_one" and place > failed)
