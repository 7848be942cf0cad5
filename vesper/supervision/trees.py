"""Supervision trees as rows of the journal: one row for each tree, changed by compare-and-swap.

A change stores the new state together with its effects (the outbox); effects are performed after that, and again where
a process died in between. Each is idempotent: a notification has the key of its incarnation, a signal its cause.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from vesper.journal.due import Due
from vesper.journal.journal import Journal
from vesper.language.work_bindings import ChildField, SupervisorField
from vesper.supervision.machine import Agent, Down, Effect, Event, Failed, Signal, Tree, UnknownAgent, agents_of
from vesper.supervision.machine import transition as machine_transition
from vesper.values.vesper_error import VesperError

AGENT: Final = "agent"
"""Kind of the rows of trees."""
TREES: Final = "trees"
NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")
MAX_AGENTS: Final = 1_000
"""Agents of one tree: its state is one row."""
_OUTBOX: Final = "outbox"
"""Lane of trees with effects that are not performed yet."""
_PAGE: Final = 500
_log = logging.getLogger("vesper.supervision")


class UnknownAddress(VesperError):
    """No agent has this address."""


class NameTaken(VesperError):
    """Another tree has this name."""


@dataclass(frozen=True, slots=True)
class StoredTree:
    """A tree as the journal has it."""

    tree: Tree
    version: int
    """Time of the last change; a change names the version that it replaces."""
    node_id: str | None
    """The supervisor node that declares it; None for a spawned agent."""
    outbox: tuple[Effect, ...] = ()

    def to_body(self) -> str:
        tree = self.tree
        return json.dumps({
            "field": tree.field.to_json(),
            "agents": {path: list(asdict(each).values()) for path, each in tree.agents.items()},
            "restarts": tree.restarts,
            "links": sorted(tree.links),
            "monitors": sorted(tree.monitors),
            "node": self.node_id,
            "outbox": [[type(each).__name__, asdict(each)] for each in self.outbox],
        })  # fmt: skip

    @classmethod
    def from_row(cls, row: Due) -> StoredTree:
        found: dict[str, Any] = json.loads(row.body)
        tree = Tree(
            row.name,
            SupervisorField.from_json(found["field"]),
            {path: Agent(*values) for path, values in found["agents"].items()},
            {path: tuple(times) for path, times in found["restarts"].items()},
            frozenset((here, other) for here, other in found["links"]),
            frozenset((here, watcher) for here, watcher in found["monitors"]),
        )
        kinds = {"Down": Down, "Signal": Signal}
        outbox = tuple(kinds[kind](**values) for kind, values in found["outbox"])
        return cls(tree, row.due_us or 0, found["node"], outbox)


Notify = Callable[[Down], None]


class Trees:
    """The trees of a Host's journal. Raises `JournalError`."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._read: dict[str, tuple[int, StoredTree]] = {}
        """The last reading of a few trees, by name, with the version: a mailbox reads its tree for each message."""

    def now_us(self) -> int:
        return self._journal.now_us()

    # -- reading ----------------------------------------------------------------------------------

    def find(self, name: str) -> StoredTree | None:
        for row in self._journal.due(kind=AGENT, name=name, limit=1):
            known = self._read.get(name)
            if known is not None and known[0] == row.due_us:
                return known[1]
            found = StoredTree.from_row(row)
            if len(self._read) >= _PAGE:
                self._read.clear()
            self._read[name] = (row.due_us or 0, found)
            return found
        return None

    def of(self, address: str) -> tuple[StoredTree, str]:
        """Return the tree of an address, and the path in it. Raises `UnknownAddress`."""
        name, _, path = address.partition("/")
        found = self.find(name)
        if found is None:
            raise UnknownAddress(f"no agent `{address}`: `vesper agents tree` lists them")
        return found, path

    def agent(self, address: str) -> tuple[StoredTree, ChildField, Agent]:
        """Return an agent with its declaration. Raises `UnknownAddress`."""
        found, path = self.of(address)
        if path not in found.tree.agents:
            inside = ", ".join(found.tree.address(each) for each in list(found.tree.agents)[:5])
            raise UnknownAddress(f"no agent `{address}`; the tree has {inside}")
        child = next(each for own, each in agents_of(found.tree.field) if own == path)
        return found, child, found.tree.agents[path]

    def all(self) -> Iterator[StoredTree]:
        """Yield all trees in the order in which they were started."""
        yield from self._rows("")

    # -- changing ---------------------------------------------------------------------------------

    def start(self, name: str, field: SupervisorField, node_id: str | None = None) -> StoredTree:
        """Start a tree, or give a declared one its present form: agents that stay keep their state.

        Raises `NameTaken` for a tree of another declaration.
        """
        check_tree(name, field)
        while True:
            found = self.find(name)
            if found is None:
                new = StoredTree(Tree.start(name, field), self._journal.now_us(), node_id)
            elif found.node_id != node_id:
                owner = "a spawned agent" if found.node_id is None else f"`{found.node_id}`"
                raise NameTaken(f"the name `{name}` belongs to {owner}")
            elif found.tree.field == field:
                return found
            else:
                agents = {path: found.tree.agents.get(path, Agent()) for path, _ in agents_of(field)}
                links, monitors = (
                    frozenset(each for each in pairs if each[0] in agents)
                    for pairs in (found.tree.links, found.tree.monitors)
                )
                tree = replace(found.tree, field=field, agents=agents, links=links, monitors=monitors)
                new = replace(found, tree=tree)
            if (stored := self._store(found, new)) is not None:
                return stored

    def apply(self, address: str, event: Callable[[str], Event]) -> StoredTree:
        """Apply an event to the path of an address. Raises `UnknownAddress`."""
        while True:
            found, path = self.of(address)
            now_us = self._journal.now_us()
            try:
                tree, effects = machine_transition(found.tree, event(path), now_us)
            except UnknownAgent:
                raise UnknownAddress(f"no agent `{address}`: `vesper agents tree` lists them") from None
            if tree == found.tree and not effects:
                return found
            stored = self._store(found, replace(found, tree=tree, outbox=(*found.outbox, *effects)))
            if stored is not None:
                return stored

    def remove(self, name: str) -> bool:
        """Delete a tree; its messages that wait become dead letters."""
        self._read.pop(name, None)
        return any(self._journal.remove(each) for each in self._journal.due(kind=AGENT, name=name, limit=1))

    def perform_outboxes(self, notify: Notify) -> int:
        """Perform the effects of all trees that have some; return their number."""
        number = 0
        for found in self._rows(_OUTBOX):
            number += len(found.outbox)
            self.perform(found, notify)
        return number

    def perform(self, found: StoredTree, notify: Notify) -> None:
        """Perform the effects of a tree and of those that its signals reach, each before it leaves its outbox."""
        reached = [found.tree.name]
        while reached:
            current = self.find(reached.pop())
            if current is None or not current.outbox:
                continue
            for effect in current.outbox:
                try:
                    if isinstance(effect, Down):
                        notify(effect)
                    else:
                        reached.append(self.apply(effect.address, _failing(effect)).tree.name)
                except UnknownAddress:
                    _log.info("%s is gone: its link or monitor has no effect", effect)
            self._clear(current)

    def _clear(self, performed: StoredTree) -> None:
        """Take the effects that were performed out of an outbox; others may have been added meanwhile."""
        current: StoredTree | None = performed
        while current is not None:
            left = tuple(each for each in current.outbox if each not in performed.outbox)
            if left == current.outbox or self._store(current, replace(current, outbox=left)):
                return
            current = self.find(performed.tree.name)

    # -- rows -------------------------------------------------------------------------------------

    def _store(self, found: StoredTree | None, new: StoredTree) -> StoredTree | None:
        """Store a tree in place of the version that was read; None where another process was faster."""
        version = new.version if found is None else max(self._journal.now_us(), found.version + 1)
        stored = replace(new, version=version)
        lane = _OUTBOX if new.outbox else ""
        expected = None if found is None else found.version
        is_stored = self._journal.put_due(
            AGENT, new.tree.name, version, stored.to_body(), expected, queue=TREES, lane=lane
        )
        return stored if is_stored else None

    def _rows(self, lane: str) -> Iterator[StoredTree]:
        after = None
        while rows := self._journal.due(kind=AGENT, limit=_PAGE, after=after, lane=lane or None):
            yield from map(StoredTree.from_row, rows)
            after = rows[-1].id


def _failing(signal: Signal) -> Callable[[str], Event]:
    return lambda path: Failed(path, signal.reason, signal.cause)


def check_tree(name: str, field: SupervisorField) -> None:
    """Check names and size. Raises `ValueError`; the checker reports the same for declared trees."""
    names = [name, *_names(field)]
    for each in names:
        if not (NAME.fullmatch(each) or (each == "" and len(names) == 2)) or each == "dead":
            raise ValueError(f"`{each}` is no name of an agent: a lower-case letter, then letters, digits, `_`, `-`")
    number = sum(1 for _ in agents_of(field))
    if not 1 <= number <= MAX_AGENTS:
        raise ValueError(f"a tree has 1 to {MAX_AGENTS:,} agents, not {number}: spawn agents beside it")


def _names(field: SupervisorField) -> Iterator[str]:
    for each in field.children:
        yield each.name
        if each.supervisor is not None:
            yield from _names(each.supervisor)
