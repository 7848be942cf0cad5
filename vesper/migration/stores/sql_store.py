"""The part that the SQLite and PostgreSQL stores share. Statements use `?` for parameters."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Protocol, TypeVar

from vesper.migration.stores.sql_tables import Dialect, check_format
from vesper.migration.stores.store import Line, NodeKey, StoreError, Transaction, kind_text
from vesper.migration.stores.store_rules import (
    PROCESS_RETENTION_US,
    SECRET_BYTES,
    check_fingerprint,
    check_secret,
    next_line,
)
from vesper.storage.ending import Ending
from vesper.storage.transaction import Transaction as SqlTransaction

T = TypeVar("T")
CHUNK_SIZE = 10_000
"""Fingerprints per statement."""
_MAX_SWEPT = 5_000
"""Members of dropped sets that one transaction deletes."""
_HALF, _SPACE = 2**63, 2**64

_NODE = (
    "SELECT id, state, (SELECT MAX(version) FROM vesper_control_format) FROM vesper_control_nodes "
    "WHERE node = ? AND epoch = ?"
)
_NEW_NODE = (
    "INSERT INTO vesper_control_nodes (node, epoch, version) VALUES (?, ?, 0) ON CONFLICT (node, epoch) DO NOTHING"
)
_PUT_APPLIED = (
    "INSERT INTO vesper_control_batches (node, process, number, at_us) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (node, process) DO UPDATE SET number = excluded.number, at_us = excluded.at_us"
)
_PUT_DIVERGENCE = (
    "INSERT INTO vesper_control_divergences (node, fingerprint, turn, divergence) VALUES (?, ?, "
    "(SELECT COALESCE(MAX(turn), 0) + 1 FROM vesper_control_divergences WHERE node = ?), ?) "
    "ON CONFLICT (node, fingerprint) DO UPDATE SET turn = excluded.turn, divergence = excluded.divergence"
)
_PUT_PATH = (
    "INSERT INTO vesper_control_paths (node, path, note) VALUES (?, ?, ?) "
    "ON CONFLICT (node, path) DO UPDATE SET note = excluded.note"
)
_PUT_DOCUMENT = (
    "INSERT INTO vesper_control_documents (node, name, document) VALUES (?, ?, ?) "
    "ON CONFLICT (node, name) DO UPDATE SET document = excluded.document"
)
_WITH_KEYS = (
    "FROM vesper_control_{} AS of_nodes JOIN vesper_control_nodes AS nodes "
    "ON nodes.id = of_nodes.node AND nodes.version > 0"
)
_OF_NODE = "(SELECT id FROM vesper_control_nodes WHERE node = ? AND epoch = ?)"


class Database(Protocol):
    """The database that holds the tables. It raises `StoreError` and `StoreAway`."""

    @property
    def name(self) -> str: ...
    def writing(self) -> AbstractContextManager[SqlTransaction]: ...
    def looking(self) -> AbstractContextManager[SqlTransaction]:
        """Open a transaction for one read statement."""
        ...

    def warnings(self) -> Sequence[str]: ...
    def close(self) -> None: ...


class SqlMigrationStore:
    """The store in a SQL database: see `store.Store`."""

    def __init__(self, place: Database, dialect: Dialect, array: Callable[[list[int]], object]) -> None:
        self._database = place
        self._dialect = dialect
        self._array = array
        """Conversion of integers into one parameter of the driver."""

    @property
    def name(self) -> str:
        return self._database.name

    def warnings(self) -> Sequence[str]:
        return self._database.warnings()

    def transact(self, key: NodeKey, work: Callable[[Transaction], T]) -> T:
        with Ending(self._database.writing()) as writing, writing as transaction:
            node, state = self._lock_node(transaction, key)
            change = _Change(transaction, self, node, state)
            done = work(change)
            change.sweep()
            return done

    def _lock_node(self, transaction: SqlTransaction, key: NodeKey) -> tuple[int, str | None]:
        """Lock the row of a node until the transaction ends; return its id and state."""
        select, values = _NODE + transaction.locking, (key.node, key.epoch)
        found = transaction.rows(select, values)
        if not found:
            transaction.run(_NEW_NODE, values)
            found = transaction.rows(select, values)
        node, state, version = found[0]
        check_format(self.integer(version), self.name)
        return self.integer(node), None if state is None else self.text(state)

    def versions(self) -> Mapping[NodeKey, int]:
        rows = self._rows("SELECT node, epoch, version FROM vesper_control_nodes WHERE version > 0")
        return {self._key(*names): self.integer(version) for *names, version in rows}

    def read(self, key: NodeKey) -> str | None:
        rows = self._rows("SELECT state FROM vesper_control_nodes WHERE node = ? AND epoch = ?", key)
        return None if not rows or rows[0][0] is None else self.text(rows[0][0])

    def states(self) -> Mapping[NodeKey, str | None]:
        rows = self._rows("SELECT node, epoch, state FROM vesper_control_nodes WHERE version > 0")
        return {self._key(*names): None if state is None else self.text(state) for *names, state in rows}

    def documents(self, name: str) -> Mapping[NodeKey, str]:
        rows = self._rows(
            f"SELECT nodes.node, epoch, document {_WITH_KEYS.format('documents')} WHERE name = ?", None, name
        )
        return {self._key(*names): self.text(document) for *names, document in rows}

    def histories(self, kind: str) -> Mapping[NodeKey, Sequence[Line]]:
        found: dict[NodeKey, list[Line]] = {}
        select = f"SELECT nodes.node, epoch, number, line, hash {_WITH_KEYS.format('history')}"
        wanted = "WHERE number = 1 OR line LIKE ? ORDER BY nodes.id, number"
        for node, epoch, number, line, hash_ in self._rows(f"{select} {wanted}", None, f"%{kind_text(kind)}%"):
            lines = found.setdefault(self._key(node, epoch), [])
            lines.append(Line(self.integer(number), self.text(line), self.text(hash_)))
        return found

    def history(self, key: NodeKey) -> Sequence[Line]:
        rows = self._rows(
            f"SELECT number, line, hash FROM vesper_control_history WHERE node = {_OF_NODE} ORDER BY number",  # noqa: S608
            key,
        )
        return [Line(self.integer(number), self.text(line), self.text(hash_)) for number, line, hash_ in rows]

    def divergences(self, key: NodeKey) -> Sequence[str]:
        rows = self._rows(
            f"SELECT divergence FROM vesper_control_divergences WHERE node = {_OF_NODE} ORDER BY turn DESC",  # noqa: S608
            key,
        )
        return [self.text(row[0]) for row in rows]

    def all_divergences(self) -> Mapping[NodeKey, Sequence[str]]:
        found: dict[NodeKey, list[str]] = {}
        select = f"SELECT nodes.node, epoch, divergence {_WITH_KEYS.format('divergences')} ORDER BY nodes.id, turn DESC"
        for node, epoch, divergence in self._rows(select):
            found.setdefault(self._key(node, epoch), []).append(self.text(divergence))
        return found

    def paths(self, key: NodeKey) -> Mapping[str, str]:
        rows = self._rows(f"SELECT path, note FROM vesper_control_paths WHERE node = {_OF_NODE} ORDER BY path", key)  # noqa: S608
        return {self.text(path): self.text(note) for path, note in rows}

    def document(self, key: NodeKey, name: str) -> str | None:
        select = f"SELECT document FROM vesper_control_documents WHERE node = {_OF_NODE} AND name = ?"  # noqa: S608
        rows = self._rows(select, key, name)
        return self.text(rows[0][0]) if rows else None

    def secret(self) -> bytes:
        select = "SELECT secret FROM vesper_control_secret WHERE one = 1"
        found = self._rows(select)
        if not found:
            with Ending(self._database.writing()) as writing, writing as transaction:
                insert = "INSERT INTO vesper_control_secret (one, secret) VALUES (1, ?) ON CONFLICT (one) DO NOTHING"
                transaction.run(insert, (secrets.token_bytes(SECRET_BYTES),))
            found = self._rows(select)  # of two concurrent inserts, both processes read the one that won
        return check_secret(found[0][0], self.name)

    def close(self) -> None:
        self._database.close()

    def _rows(self, sql: str, key: NodeKey | None = None, *more: str) -> list[tuple[object, ...]]:
        with self._database.looking() as transaction:
            return list(transaction.rows(sql, (*(() if key is None else (key.node, key.epoch)), *more)))

    def _key(self, node: object, epoch: object) -> NodeKey:
        return NodeKey(self.text(node), self.text(epoch))

    # -- what a `_Change` asks --------------------------------------------------------------------

    @property
    def numbers(self) -> str:
        return self._dialect.numbers

    @property
    def among(self) -> str:
        return self._dialect.among

    def chunks(self, fingerprints: Iterable[int]) -> Iterator[object]:
        """Yield the fingerprints in chunks, each as one parameter. SQL integers are signed."""
        left = iter(fingerprints)
        while chunk := sorted(
            map(_to_signed, islice(left, CHUNK_SIZE))
        ):  # sorted: neighbouring rows are written together
            yield self._array(chunk)

    def integer(self, cell: object) -> int:
        if type(cell) is not int:
            raise self._cell_error(cell, "a whole number")
        return cell

    def text(self, cell: object) -> str:
        if type(cell) is not str:
            raise self._cell_error(cell, "a text")
        return cell

    def _cell_error(self, cell: object, expected: str) -> StoreError:
        return StoreError(
            f"{self.name}: a cell of the migration state holds {repr(cell)[:40]} where {expected} belongs: somebody "
            "changed the tables"
        )


class _Change:
    """One transaction on one node: see `store.Transaction`."""

    def __init__(self, transaction: SqlTransaction, store: SqlMigrationStore, node: int, state: str | None) -> None:
        self._sql = transaction
        self._store = store
        self._node = node
        self._state = state
        self._sets: dict[str, tuple[int, int] | None] = {}
        """Ids and sizes of sets that were read; None for a set that does not exist."""
        self._head: tuple[int, str] | None = None
        self._is_changed = False

    def state(self) -> str | None:
        return self._state

    def put_state(self, text: str) -> None:
        self._run("UPDATE vesper_control_nodes SET state = ?, version = version + 1 WHERE id = ?", text, self._node)
        self._state = text

    def applied(self, process: str) -> int:
        found = self._first_row("SELECT number FROM vesper_control_batches WHERE node = ? AND process = ?", process)
        return 0 if found is None else self._store.integer(found[0])

    def put_applied(self, process: str, number: int) -> None:
        now_us = self._sql.now_us()
        if self.applied(process) == 0:
            # A new process also deletes the rows of long-ended ones.
            old = now_us - PROCESS_RETENTION_US
            self._run("DELETE FROM vesper_control_batches WHERE node = ? AND at_us < ?", self._node, old)
        self._run(_PUT_APPLIED, self._node, process, number, now_us)

    def known(self, scope: str, fingerprints: Iterable[int]) -> set[int]:
        found = self._set(scope)
        if found is None:
            return set()
        select = (
            "SELECT fingerprint FROM vesper_control_members WHERE owner = ? "  # noqa: S608
            f"AND fingerprint {self._store.among}"
        )
        return {
            self._store.integer(row[0]) % _SPACE
            for chunk in self._store.chunks(fingerprints)
            for row in self._sql.rows(select, (found[0], chunk))
        }

    def add(self, scope: str, fingerprints: Iterable[int]) -> None:
        insert = (
            "INSERT INTO vesper_control_members (owner, fingerprint) "  # noqa: S608
            f"SELECT ?, given.value FROM {self._store.numbers} WHERE 1 = 1 ON CONFLICT (owner, fingerprint) DO NOTHING"
        )
        for chunk in self._store.chunks(fingerprints):
            owner, size = self._set(scope) or self._new_set(scope)
            self._resize(scope, owner, size + self._run(insert, owner, chunk))

    def remove(self, scope: str, fingerprint: int) -> None:
        found = self._set(scope)
        if found is not None:
            owner, size = found
            delete = "DELETE FROM vesper_control_members WHERE owner = ? AND fingerprint = ?"
            self._resize(scope, owner, size - self._run(delete, owner, _to_signed(fingerprint)))

    def size(self, scope: str) -> int:
        found = self._set(scope)
        return 0 if found is None else found[1]

    def drop(self, prefix: str) -> None:
        update = "UPDATE vesper_control_sets SET scope = NULL WHERE node = ? AND substr(scope, 1, ?) = ?"
        self._run(update, self._node, len(prefix), prefix)
        self._sets = {scope: each for scope, each in self._sets.items() if not scope.startswith(prefix)}

    def head(self) -> tuple[int, str]:
        if self._head is None:
            select = "SELECT number, hash FROM vesper_control_history WHERE node = ? ORDER BY number DESC LIMIT 1"
            found = self._first_row(select)
            self._head = (0, "") if found is None else (self._store.integer(found[0]), self._store.text(found[1]))
        return self._head

    def append(self, line: Line) -> None:
        self._head = next_line(self.head(), line, self._store.name)
        insert = "INSERT INTO vesper_control_history (node, number, line, hash) VALUES (?, ?, ?, ?)"
        self._run(insert, self._node, line.number, line.text, line.hash)

    def divergence(self, fingerprint: str) -> str | None:
        select = "SELECT divergence FROM vesper_control_divergences WHERE node = ? AND fingerprint = ?"
        return self._text_of(self._first_row(select, fingerprint))

    def put_divergence(self, fingerprint: str, text: str) -> None:
        self._run(_PUT_DIVERGENCE, self._node, fingerprint, self._node, text)

    def path(self, path: str) -> str | None:
        return self._text_of(self._first_row("SELECT note FROM vesper_control_paths WHERE node = ? AND path = ?", path))

    def put_path(self, path: str, text: str) -> None:
        self._run(_PUT_PATH, self._node, path, text)

    def document(self, name: str) -> str | None:
        select = "SELECT document FROM vesper_control_documents WHERE node = ? AND name = ?"
        return self._text_of(self._first_row(select, name))

    def put_document(self, name: str, text: str) -> None:
        self._run(_PUT_DOCUMENT, self._node, name, text)

    def clear(self) -> None:
        self._run("DELETE FROM vesper_control_documents WHERE node = ?", self._node)
        self._run("DELETE FROM vesper_control_paths WHERE node = ?", self._node)

    def sweep(self) -> None:
        """Delete some members of dropped sets, if the transaction writes anything."""
        if not self._is_changed:
            return
        dropped = self._sql.rows(
            "SELECT id FROM vesper_control_sets WHERE node = ? AND scope IS NULL LIMIT 50", (self._node,)
        )
        room = _MAX_SWEPT
        for (owner,) in dropped:
            room -= self._run(
                "DELETE FROM vesper_control_members WHERE owner = ? AND fingerprint IN "
                "(SELECT fingerprint FROM vesper_control_members WHERE owner = ? LIMIT ?)",
                owner, owner, room,
            )  # fmt: skip
            if room <= 0:
                break
            self._run("DELETE FROM vesper_control_sets WHERE id = ?", owner)

    def _set(self, scope: str) -> tuple[int, int] | None:
        if scope not in self._sets:
            found = self._first_row("SELECT id, size FROM vesper_control_sets WHERE node = ? AND scope = ?", scope)
            self._sets[scope] = (
                None if found is None else (self._store.integer(found[0]), self._store.integer(found[1]))
            )
        return self._sets[scope]

    def _new_set(self, scope: str) -> tuple[int, int]:
        self._is_changed = True
        insert = "INSERT INTO vesper_control_sets (node, scope, size) VALUES (?, ?, 0) RETURNING id"
        made = (self._store.integer(self._sql.rows(insert, (self._node, scope))[0][0]), 0)
        self._sets[scope] = made
        return made

    def _resize(self, scope: str, owner: int, size: int) -> None:
        self._run("UPDATE vesper_control_sets SET size = ? WHERE id = ?", size, owner)
        self._sets[scope] = (owner, size)

    def _first_row(self, sql: str, *values: object) -> tuple[object, ...] | None:
        """Return the first row of this node."""
        found = self._sql.rows(sql, (self._node, *values))
        return found[0] if found else None

    def _text_of(self, row: tuple[object, ...] | None) -> str | None:
        return None if row is None else self._store.text(row[0])

    def _run(self, sql: str, *values: object) -> int:
        self._is_changed = True
        return self._sql.run(sql, values)


def _to_signed(fingerprint: int) -> int:
    check_fingerprint(fingerprint)
    return fingerprint - _SPACE if fingerprint >= _HALF else fingerprint
