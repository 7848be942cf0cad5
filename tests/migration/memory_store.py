"""A store of migration state that is gone with the process: for tests of what stands on a store, and of nothing else.

A transaction works on a copy that takes the place of the original when it comes to its end, so that one that raises
has done nothing, as the protocol says.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import TypeVar

from vesper.migration.stores.store import Line, NodeKey, Transaction

T = TypeVar("T")


@dataclass
class _Node:
    """All that is kept of one node in an epoch."""

    text: str | None = None
    version: int = 0
    batches: dict[str, int] = field(default_factory=dict)
    sets: dict[str, set[int]] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    found: dict[str, str] = field(default_factory=dict)
    """Divergences, the newest last."""
    notes: dict[str, str] = field(default_factory=dict)
    documents: dict[str, str] = field(default_factory=dict)


class _Transaction:
    def __init__(self, node: _Node) -> None:
        self._node = node

    def state(self) -> str | None:
        return self._node.text

    def put_state(self, text: str) -> None:
        self._node.text = text
        self._node.version += 1

    def applied(self, process: str) -> int:
        return self._node.batches.get(process, 0)

    def put_applied(self, process: str, number: int) -> None:
        self._node.batches[process] = number

    def known(self, scope: str, fingerprints: Iterable[int]) -> set[int]:
        return self._node.sets.get(scope, set()) & set(fingerprints)

    def add(self, scope: str, fingerprints: Iterable[int]) -> None:
        self._node.sets.setdefault(scope, set()).update(fingerprints)

    def remove(self, scope: str, fingerprint: int) -> None:
        self._node.sets.get(scope, set()).discard(fingerprint)

    def size(self, scope: str) -> int:
        return len(self._node.sets.get(scope, ()))

    def drop(self, prefix: str) -> None:
        for name in [each for each in self._node.sets if each.startswith(prefix)]:
            del self._node.sets[name]

    def head(self) -> tuple[int, str]:
        return (self._node.lines[-1].number, self._node.lines[-1].hash) if self._node.lines else (0, "")

    def append(self, line: Line) -> None:
        self._node.lines.append(line)

    def divergence(self, fingerprint: str) -> str | None:
        return self._node.found.get(fingerprint)

    def put_divergence(self, fingerprint: str, text: str) -> None:
        self._node.found.pop(fingerprint, None)
        self._node.found[fingerprint] = text

    def path(self, path: str) -> str | None:
        return self._node.notes.get(path)

    def put_path(self, path: str, text: str) -> None:
        self._node.notes[path] = text

    def document(self, name: str) -> str | None:
        return self._node.documents.get(name)

    def put_document(self, name: str, text: str) -> None:
        self._node.documents[name] = text


class MemoryStore:
    """`vesper.migration.stores.store.Store` in a dict. Threads may share it, processes cannot."""

    def __init__(self) -> None:
        self._nodes: dict[NodeKey, _Node] = {}
        self._lock = RLock()

    @property
    def name(self) -> str:
        return "memory"

    def transact(self, key: NodeKey, work: Callable[[Transaction], T]) -> T:
        with self._lock:
            changed = copy.deepcopy(self._nodes.get(key) or _Node())
            result = work(_Transaction(changed))
            self._nodes[key] = changed
            return result

    def versions(self) -> Mapping[NodeKey, int]:
        with self._lock:
            return {key: node.version for key, node in self._nodes.items()}

    def read(self, key: NodeKey) -> str | None:
        return self._node(key).text

    def history(self, key: NodeKey) -> Sequence[Line]:
        return tuple(self._node(key).lines)

    def divergences(self, key: NodeKey) -> Sequence[str]:
        return tuple(reversed(self._node(key).found.values()))

    def paths(self, key: NodeKey) -> Mapping[str, str]:
        return dict(self._node(key).notes)

    def document(self, key: NodeKey, name: str) -> str | None:
        return self._node(key).documents.get(name)

    def warnings(self) -> Sequence[str]:
        return ()

    def secret(self) -> bytes:
        return b"memory 16 bytes."

    def close(self) -> None:
        """Nothing is open."""

    def _node(self, key: NodeKey) -> _Node:
        with self._lock:
            return self._nodes.get(key) or _Node()
