"""A store of migration state in plain values: the reference for the real ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from vesper.migration.stores.store import Line, NodeKey, Transaction

T = TypeVar("T")


class PlainTransaction:
    def __init__(self) -> None:
        self.text: str | None = None
        self.version = 0
        self.batches: dict[str, int] = {}
        self.sets: dict[str, set[int]] = {}
        self.lines: list[Line] = []
        self.divergences: dict[str, str] = {}
        self.paths: dict[str, str] = {}
        self.documents: dict[str, str] = {}

    def copy(self) -> PlainTransaction:
        again = PlainTransaction()
        again.text, again.version, again.lines = self.text, self.version, [*self.lines]
        again.batches, again.divergences, again.paths = {**self.batches}, {**self.divergences}, {**self.paths}
        again.sets = {name: {*each} for name, each in self.sets.items()}
        again.documents = {**self.documents}
        return again

    def state(self) -> str | None:
        return self.text

    def put_state(self, text: str) -> None:
        self.text, self.version = text, self.version + 1

    def applied(self, process: str) -> int:
        return self.batches.get(process, 0)

    def put_applied(self, process: str, number: int) -> None:
        self.batches[process] = number

    def known(self, scope: str, fingerprints: Iterable[int]) -> set[int]:
        return self.sets.get(scope, set()).intersection(fingerprints)

    def add(self, scope: str, fingerprints: Iterable[int]) -> None:
        self.sets.setdefault(scope, set()).update(fingerprints)

    def remove(self, scope: str, fingerprint: int) -> None:
        self.sets.get(scope, set()).discard(fingerprint)

    def size(self, scope: str) -> int:
        return len(self.sets.get(scope, ()))

    def drop(self, prefix: str) -> None:
        self.sets = {name: each for name, each in self.sets.items() if not name.startswith(prefix)}

    def head(self) -> tuple[int, str]:
        return (len(self.lines), self.lines[-1].hash) if self.lines else (0, "")

    def append(self, line: Line) -> None:
        self.lines.append(line)

    def divergence(self, fingerprint: str) -> str | None:
        return self.divergences.get(fingerprint)

    def put_divergence(self, fingerprint: str, text: str) -> None:
        self.divergences.pop(fingerprint, None)
        self.divergences[fingerprint] = text

    def path(self, path: str) -> str | None:
        return self.paths.get(path)

    def put_path(self, path: str, text: str) -> None:
        self.paths[path] = text

    def document(self, name: str) -> str | None:
        return self.documents.get(name)

    def put_document(self, name: str, text: str) -> None:
        self.documents[name] = text

    def clear(self) -> None:
        self.documents, self.paths = {}, {}


class PlainStore:
    """A store in memory, for one thread."""

    name = "plain"

    def __init__(self) -> None:
        self.nodes: dict[NodeKey, PlainTransaction] = {}

    def copy(self) -> PlainStore:
        again = PlainStore()
        again.nodes = {key: each.copy() for key, each in self.nodes.items()}
        return again

    def node(self, key: NodeKey) -> PlainTransaction:
        return self.nodes.get(key) or PlainTransaction()

    def transact(self, key: NodeKey, work: Callable[[Transaction], T]) -> T:
        after = self.node(key).copy()
        done = work(after)
        self.nodes[key] = after
        return done

    def versions(self) -> Mapping[NodeKey, int]:
        return {key: each.version for key, each in self.nodes.items() if each.version}

    def read(self, key: NodeKey) -> str | None:
        return self.node(key).text

    def states(self) -> Mapping[NodeKey, str | None]:
        return {key: self.node(key).text for key in self.versions()}

    def documents(self, name: str) -> Mapping[NodeKey, str]:
        return {key: self.nodes[key].documents[name] for key in self.versions() if name in self.nodes[key].documents}

    def histories(self, kind: str) -> Mapping[NodeKey, Sequence[Line]]:
        lines = {key: self.nodes[key].lines for key in self.versions() if self.nodes[key].lines}
        return {
            key: [line for line in each if line.number == 1 or f'"kind":"{kind}"' in line.text]
            for key, each in lines.items()
        }

    def history(self, key: NodeKey) -> Sequence[Line]:
        return self.node(key).lines

    def divergences(self, key: NodeKey) -> Sequence[str]:
        return [*reversed(self.node(key).divergences.values())]

    def all_divergences(self) -> Mapping[NodeKey, Sequence[str]]:
        return {key: self.divergences(key) for key in self.versions() if self.nodes[key].divergences}

    def paths(self, key: NodeKey) -> Mapping[str, str]:
        return self.node(key).paths

    def document(self, key: NodeKey, name: str) -> str | None:
        return self.node(key).documents.get(name)

    def secret(self) -> bytes:
        return bytes(16)

    def warnings(self) -> Sequence[str]:
        return ()

    def close(self) -> None:
        pass
