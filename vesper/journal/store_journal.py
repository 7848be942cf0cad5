"""The journal over any store: what it means to begin, to take over, to read, to resolve, to erase and to prune."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence

from vesper.journal.audit import audit_text
from vesper.journal.batch import Batch, Birth
from vesper.journal.cells import data, integer, text
from vesper.journal.entry import AuditEvent, Definition, Entry, Kind
from vesper.journal.errors import JournalError, NotTaken, UnknownExecution
from vesper.journal.journal import Beginning, Recorded, Status, Summary
from vesper.journal.limits import Limits
from vesper.journal.lines import first_hash, next_hash, write_line
from vesper.journal.owner import is_dead, this_owner
from vesper.journal.reading import SUMMARY, ExecutionRow, execution_row, last_hash, places_of, read_entries, run_key
from vesper.journal.run import RunHead, StoreRun
from vesper.journal.sealing import KeyRing, RunKey
from vesper.journal.store import Ending, Store, write_rows
from vesper.journal.typed_json import decode
from vesper.journal.verifying import definition_problems, row_problems, stray_problems, use_problems
from vesper.storage.transaction import Transaction

_PAGE = 1000
_CALLS = 64
"""Calls in one another; the language allows half as many."""


class StoreJournal:
    """A journal; see `vesper.journal.journal.Journal`."""

    def __init__(self, store: Store, owner: str | None, keys: KeyRing, limits: Limits) -> None:
        if owner is not None and not 0 < len(owner) <= 500:
            raise JournalError("the owner of runs has a name of 1 to 500 signs")
        self._store = store
        self._owner = owner
        self._keys = keys
        self._limits = limits
        store.audit_key = keys.audit

    @property
    def keys_lie_beside_data(self) -> bool:
        return not self._keys.has_master

    @property
    def audit_key(self) -> bytes | None:
        return self._keys.audit

    @property
    def volatile_reason(self) -> str | None:
        return self._store.volatile_reason

    @property
    def owner(self) -> str:
        return self._owner if self._owner is not None else this_owner()

    # -- runs -------------------------------------------------------------------------------------

    def begin(self, beginning: Beginning) -> StoreRun:
        execution = beginning.execution
        if not 0 < len(execution) <= 200 or not execution.isprintable():
            raise JournalError(f"{execution[:40]!r} cannot be the id of an execution: 1 to 200 printable signs")
        now = time.time_ns() // 1000
        definition = beginning.definition
        key = RunKey.new(execution) if beginning.is_sensitive else None
        summary = Summary(
            execution=execution,
            node_id=definition.node_id,
            semantic_hash=definition.semantic_hash,
            status=Status.RUNNING,
            outcome=None,
            started_us=now,
            updated_us=now,
            owner=self.owner,
            fence=1,
            engine=beginning.engine,
            is_joined=beginning.is_joined,
            is_sensitive=beginning.is_sensitive,
        )
        run = StoreRun(
            self._store,
            self._limits,
            RunHead(execution, 1, 0, 0, first_hash(execution), beginning.writes),
            key=key,
            birth=Birth(
                summary, definition, beginning.writes, None if key is None else self._keys.wrap(key, execution)
            ),
        )
        body = {
            "inputs": beginning.inputs,
            "now": beginning.now,
            "node_id": definition.node_id,
            "semantic_hash": definition.semantic_hash,
            "engine": beginning.engine,
        }
        run.append(Entry(Kind.START, body=body, at_us=now))
        return run

    def take_over(self, execution: str, engine: str) -> StoreRun:
        # Read before the store is ours: nobody waits while a long run is read. It is read again where it went on.
        with self._store.reading() as transaction:
            row = self._row(transaction, execution)
            self._check_takable(row, transaction.now_us())
            key = run_key(transaction, row, self._keys)
            entries, last = read_entries(transaction, row, key, self._store.name)
        with Ending(self._store.writing()) as writing, writing as transaction:
            row = self._row(transaction, row.execution)
            now = transaction.now_us()
            self._check_takable(row, now)
            key = run_key(transaction, row, self._keys)
            if row.summary.is_sensitive and key is None:
                raise NotTaken(f"execution {row.execution} cannot be taken over: its key was deleted")
            if last_hash(transaction, row.id) != last:
                entries, last = read_entries(transaction, row, key, self._store.name)
            body = {"from": row.summary.owner, "to": self.owner, "engine": engine, "fence": row.summary.fence + 1}
            seq = len(entries) + 1
            handoff = Entry(Kind.HANDOFF, body=body, at_us=time.time_ns() // 1000)
            line, blob = write_line(handoff, seq, key, self._limits)
            last = next_hash(last, line)
            taken = transaction.run(
                "UPDATE vesper_executions SET owner = ?, engine = ?, fence = fence + 1, lease_until_us = ?, "
                "updated_us = ?, head_seq = ?, head_hash = ? WHERE id = ? AND fence = ? AND status = 'running'",
                (
                    self.owner, engine, now + int(self._limits.lease_seconds * 1_000_000), now, seq, last, row.id,
                    row.summary.fence,
                ),
            )  # fmt: skip
            if not taken:
                raise NotTaken(f"execution {row.execution} cannot be taken over: another process was faster")
            write_rows(transaction, row.id, [(seq, line, last)], [] if blob is None else [blob])
        return StoreRun(
            self._store,
            self._limits,
            RunHead(row.execution, row.summary.fence + 1, row.id, seq, last, row.is_synced),
            key=key,
            recorded=tuple(stored.entry for stored in entries),
        )

    def _check_takable(self, row: ExecutionRow, now: int) -> None:
        summary = row.summary
        why = None
        if summary.status is Status.ENDED:
            why = f"it has ended ({summary.outcome})"
        elif summary.status is Status.IN_DOUBT:
            why = "it is in doubt whether a request was performed; say what came of it first (`resolve`)"
        elif summary.is_joined:
            why = "it is part of a transaction of its caller, and nobody else can finish it"
        elif row.lease_until_us > now and summary.owner != self.owner and not is_dead(summary.owner):
            seconds = (row.lease_until_us - now) / 1e6
            why = f"it belongs to {summary.owner}, whose lease runs for another {seconds:.1f} s"
        if why is not None:
            raise NotTaken(f"execution {row.execution} cannot be taken over: {why}")

    def unfinished(self, limit: int = 100) -> list[Summary]:
        gone: dict[str, bool] = {}
        found: list[Summary] = []
        last = 0
        while len(found) < limit:
            with self._store.reading() as transaction:
                now = transaction.now_us()
                rows = transaction.rows(
                    f"SELECT {SUMMARY} FROM vesper_executions "  # noqa: S608
                    "WHERE status = 'running' AND is_joined = 0 AND id > ? ORDER BY id LIMIT ?",
                    (last, _PAGE),
                )
            for values in rows:
                row = execution_row(values)
                last = row.id
                owner = row.summary.owner
                if row.lease_until_us <= now or gone.setdefault(owner, is_dead(owner)):
                    found.append(row.summary)
            if len(rows) < _PAGE:
                break
        return found[:limit]

    def find(
        self,
        *,
        status: Status | None = None,
        node: str | None = None,
        since_us: int | None = None,
        limit: int = 100,
    ) -> list[Summary]:
        conditions = {"status = ?": status, "node_id = ?": node, "started_us >= ?": since_us}
        wanted = {condition: value for condition, value in conditions.items() if value is not None}
        where = " AND ".join(wanted) or "1 = 1"
        values = [str(value) if isinstance(value, Status) else value for value in wanted.values()]
        with self._store.reading() as transaction:
            rows = transaction.rows(
                f"SELECT {SUMMARY} FROM vesper_executions WHERE {where} "  # noqa: S608
                "ORDER BY started_us DESC, id DESC LIMIT ?",
                (*values, limit),
            )
        return [execution_row(row).summary for row in rows]

    def read(self, execution: str) -> Recorded:
        with self._store.reading() as transaction:
            row = self._row(transaction, execution)
            key = run_key(transaction, row, self._keys)
            entries, _ = read_entries(transaction, row, key, self._store.name)
        return Recorded(row.summary, entries)

    def verify(self, execution: str) -> list[str]:
        with self._store.reading() as transaction:
            row = self._row(transaction, execution)
            key = run_key(transaction, row, self._keys)
            entries, _ = read_entries(transaction, row, key, self._store.name)
            found = [*row_problems(row, entries), *use_problems(transaction, row)]
        return [f"{self._store.name}: {each}" for each in found]

    def verify_shared(self) -> list[str]:
        with self._store.reading() as transaction:
            found = [*definition_problems(transaction), *stray_problems(transaction)]
        return [f"{self._store.name}: {each}" for each in found]

    def _row(self, transaction: Transaction, execution: str) -> ExecutionRow:
        """The execution of this id, or the only one whose id starts so."""
        rows = transaction.rows(
            f"SELECT {SUMMARY} FROM vesper_executions "  # noqa: S608
            f"WHERE execution >= ? AND execution < ? ORDER BY execution LIMIT 2{transaction.locking}",
            (execution, execution + "\U0010ffff"),
        )
        if not rows or not execution:
            raise UnknownExecution(f"{self._store.name}: the journal has no execution `{execution[:80]}`")
        row = execution_row(rows[0])
        if row.execution != execution and len(rows) > 1:
            raise UnknownExecution(
                f"{self._store.name}: several executions start with `{execution[:80]}`, {row.execution} and "
                f"{execution_row(rows[1]).execution} among them; give more of the id"
            )
        return row

    def executions(self, prefix: str = "") -> Iterator[str]:
        last, end = prefix, prefix + "\U0010ffff"
        comparison = ">="
        while True:
            with self._store.reading() as transaction:
                rows = transaction.rows(
                    f"SELECT execution FROM vesper_executions WHERE execution {comparison} ? AND execution < ? "  # noqa: S608
                    "ORDER BY execution LIMIT ?",
                    (last, end, _PAGE),
                )
            for (execution,) in rows:
                last = str(execution)
                yield last
            comparison = ">"
            if len(rows) < _PAGE:
                return

    def node_ids(self) -> list[str]:
        with self._store.reading() as transaction:
            rows = transaction.rows("SELECT DISTINCT node_id FROM vesper_definitions ORDER BY node_id")
        return [str(node_id) for (node_id,) in rows]

    def definition(self, semantic_hash: str) -> Definition:
        with self._store.reading() as transaction:
            return self._definition(transaction, semantic_hash, {}, [])

    def _definition(
        self, transaction: Transaction, semantic_hash: str, known: dict[str, Definition], callers: list[str]
    ) -> Definition:
        if semantic_hash in known:
            return known[semantic_hash]
        rows = transaction.rows(
            "SELECT node_id, path, source, ir, callees FROM vesper_definitions WHERE semantic_hash = ?",
            (semantic_hash,),
        )
        if not rows:
            raise JournalError(f"{self._store.name}: the journal has no definition {semantic_hash[:80]}")
        if semantic_hash in callers or len(callers) > _CALLS:
            raise JournalError(f"{self._store.name}: the definition {semantic_hash[:80]} calls itself: it was changed")
        node_id, path, source, ir, callees = rows[0]
        below = [*callers, semantic_hash]
        found = Definition(
            semantic_hash,
            text(node_id),
            text(path),
            text(source),
            data(ir),
            tuple(self._definition(transaction, each, known, below) for each in _hashes(callees)),
        )
        known[semantic_hash] = found
        return found

    # -- what somebody decides --------------------------------------------------------------------

    def resolve(
        self, execution: str, path: str, result: object, failure: str | None, by: str, why: str, not_done: bool = False
    ) -> None:
        said: dict[str, object] = {"value": result} if failure is None else {"code": failure}
        if not_done:
            said = {"not_done": True}
        with Ending(self._store.writing()) as writing, writing as transaction:
            row = self._row(transaction, execution)
            if row.summary.status is not Status.IN_DOUBT:
                raise JournalError(f"execution {row.execution} is not in doubt: it is {row.summary.status}")
            key = run_key(transaction, row, self._keys)
            if row.summary.is_sensitive and key is None:
                raise JournalError(f"execution {row.execution} cannot be resolved: its key was deleted")
            entries, last = read_entries(transaction, row, key, self._store.name)
            open_ones: dict[str, Entry] = {}
            for stored in entries:
                if stored.entry.kind is Kind.IN_DOUBT:
                    open_ones[stored.entry.path] = stored.entry
                elif stored.entry.kind is Kind.RESOLVED:
                    open_ones.pop(stored.entry.path, None)
            asked = open_ones.pop(path, None)
            if asked is None:
                places = ", ".join(f"`{each}`" for each in open_ones) or "none"
                raise JournalError(f"execution {row.execution} has no request in doubt at `{path}`; in doubt: {places}")
            body = {**said, "by": by, "why": why}
            entry = Entry(
                Kind.RESOLVED,
                path,
                asked.effect,
                asked.effect_class,
                asked.key,
                asked.digest,
                body,
                time.time_ns() // 1000,
            )
            seq = len(entries) + 1
            line, blob = write_line(entry, seq, key, self._limits)
            last = next_hash(last, line)
            now = transaction.now_us()
            # The fence moves: whoever had the run may write no more of it. Nobody has it until somebody takes it.
            taken = transaction.run(
                "UPDATE vesper_executions SET status = ?, owner = '', fence = fence + 1, lease_until_us = 0, "
                "updated_us = ?, head_seq = ?, head_hash = ? WHERE id = ? AND fence = ? AND status = 'in_doubt'",
                (
                    (Status.IN_DOUBT if open_ones else Status.RUNNING).value, now, seq, last, row.id, row.summary.fence,
                ),
            )  # fmt: skip
            if not taken:
                raise JournalError(f"execution {row.execution} was changed by somebody else meanwhile; look again")
            write_rows(transaction, row.id, [(seq, line, last)], [] if blob is None else [blob])

    def erase(self, execution: str) -> bool:
        with Ending(self._store.writing()) as writing, writing as transaction:
            row = self._row(transaction, execution)
            was_there = transaction.run("DELETE FROM vesper_keys WHERE run = ?", (row.id,)) > 0
        # Also where the key was gone before: the last attempt may have ended here.
        self._store.scrub()
        return was_there

    def prune(self, before_us: int, node: str | None = None) -> int:
        """In parts, so that nobody waits long for the store."""
        pruned = 0
        while part := self._prune_some(before_us, node):
            pruned += part
        if pruned:
            self._prune_shared()
        return pruned

    def prunable(self, before_us: int, node: str | None = None) -> int:
        condition, values = _to_prune(before_us, node)
        with self._store.reading() as transaction:
            rows = transaction.rows(f"SELECT COUNT(*) FROM vesper_executions WHERE {condition}", values)  # noqa: S608
        return int(rows[0][0])

    def _prune_some(self, before_us: int, node: str | None) -> int:
        condition, values = _to_prune(before_us, node)
        with Ending(self._store.writing()) as writing, writing as transaction:
            runs = transaction.rows(
                f"SELECT id FROM vesper_executions WHERE {condition} ORDER BY id LIMIT 200",  # noqa: S608
                values,
            )
            for (run,) in runs:
                transaction.run("DELETE FROM vesper_commits WHERE place >= ? AND place < ?", places_of(run))
                transaction.run("DELETE FROM vesper_blob_uses WHERE run = ?", (run,))
                transaction.run("DELETE FROM vesper_keys WHERE run = ?", (run,))
                transaction.run("DELETE FROM vesper_executions WHERE id = ?", (run,))
        return len(runs)

    def _prune_shared(self) -> None:
        """Blobs that no run uses, and definitions that no run is pinned to, not even by a call."""
        with Ending(self._store.writing()) as writing, writing as transaction:
            self._store.lock_for_prune(transaction)
            transaction.run(
                "DELETE FROM vesper_blobs WHERE NOT EXISTS "
                "(SELECT 1 FROM vesper_blob_uses WHERE vesper_blob_uses.name = vesper_blobs.name)"
            )
            callees = {
                text(name): _hashes(called)
                for name, called in transaction.rows("SELECT semantic_hash, callees FROM vesper_definitions")
            }
            pinned = transaction.rows("SELECT DISTINCT semantic_hash FROM vesper_executions")
            waiting = [text(name) for (name,) in pinned]
            needed: set[str] = set()
            while waiting:
                name = waiting.pop()
                if name not in needed:
                    needed.add(name)
                    waiting.extend(callees.get(name, ()))
            for name in callees.keys() - needed:
                transaction.run("DELETE FROM vesper_definitions WHERE semantic_hash = ?", (name,))

    # -- the audit log ----------------------------------------------------------------------------

    def audit(self, events: Sequence[AuditEvent]) -> None:
        if events:
            self._store.submit(Batch.of_audit([audit_text(event, self._limits.max_body) for event in events]))

    def audit_head(self) -> tuple[int, str]:
        with self._store.reading() as transaction:
            rows = transaction.rows("SELECT count, hash FROM vesper_audit_head WHERE one = 1")
        if not rows:
            raise JournalError(f"{self._store.name}: the audit log has lost its head: somebody changed the journal")
        return integer(rows[0][0]), data(rows[0][1]).hex()

    def audit_rows(self) -> Iterator[tuple[int, bytes, bytes]]:
        last: int | None = None
        while True:
            with self._store.reading() as transaction:
                rows = transaction.rows(
                    f"SELECT seq, line, hash FROM vesper_audit {'' if last is None else 'WHERE seq > ?'} "  # noqa: S608
                    "ORDER BY seq LIMIT ?",
                    (_PAGE,) if last is None else (last, _PAGE),
                )
            for seq, line, hash_ in rows:
                last = integer(seq)
                yield last, data(line), data(hash_)
            if len(rows) < _PAGE:
                return

    def audit_events(self) -> Iterator[Mapping[str, object]]:
        previous = bytes(32)
        for seq, line, hash_ in self.audit_rows():
            event = decode(line)
            if not isinstance(event, dict):
                raise JournalError(f"{self._store.name}: line {seq} of the audit log cannot be read")
            yield {**event, "seq": seq, "hash": hash_.hex(), "previous": previous.hex()}
            previous = hash_

    def close(self) -> None:
        self._store.close()


def _to_prune(before_us: int, node: str | None) -> tuple[str, tuple[object, ...]]:
    """The condition for runs that ended before, and its parameters."""
    condition = "status = 'ended' AND updated_us < ? AND started_us < ?"
    if node is None:
        return condition, (before_us, before_us)
    return condition + " AND node_id = ?", (before_us, before_us, node)


def _hashes(cell: object) -> list[str]:
    """The semantic hashes of called nodes."""
    try:
        found = json.loads(text(cell))
    except ValueError:
        found = None
    if type(found) is not list or not all(type(each) is str for each in found):
        raise JournalError("the called nodes of a definition cannot be read: somebody changed the journal")
    return found
