"""A run that this process owns: it makes lines of entries, chains them, and hands them to the store."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from vesper.journal.audit import audit_text
from vesper.journal.batch import Batch, Birth, rows_of
from vesper.journal.cells import integer
from vesper.journal.entry import AuditEvent, Entry, Kind
from vesper.journal.errors import Fenced, JournalError
from vesper.journal.journal import Status
from vesper.journal.limits import Limits
from vesper.journal.lines import Blob, native_intent, native_line, next_hash, write_line
from vesper.journal.reading import last_hash
from vesper.journal.sealing import RunKey
from vesper.journal.store import Store, fenced
from vesper.journal.typed_json import digest_bytes, digest_of

_RUNNING = Status.RUNNING


@dataclass(frozen=True, slots=True)
class RunHead:
    """The last state of an execution in its store."""

    execution: str
    fence: int
    row: int
    """The key of its row; 0 before the first commit."""
    seq: int
    """The number of the last entry."""
    last_hash: bytes
    is_synced: bool
    """True where each commit waits for the disk."""


class StoreRun:
    """One thread at a time may use it, save `renew`, which any other one may call meanwhile."""

    __slots__ = (
        "_audit", "_birth", "_blobs", "_execution", "_fence", "_hash", "_hashes", "_is_over", "_is_synced",
        "_key", "_lease_us", "_limits", "_lines", "_pid", "_recorded", "_renew_after", "_row", "_seq",
        "_store", "_tried",
    )  # fmt: skip

    def __init__(
        self,
        store: Store,
        limits: Limits,
        head: RunHead,
        *,
        key: RunKey | None,
        birth: Birth | None = None,
        recorded: Sequence[Entry] = (),
    ) -> None:
        self._store = store
        self._limits = limits
        self._execution = head.execution
        self._fence = head.fence
        self._row = head.row
        self._seq = head.seq
        """The number of the last entry, written or only appended; `_hash` is its hash."""
        self._hash = head.last_hash
        self._is_synced = head.is_synced
        self._key = key
        self._birth = birth
        self._recorded = recorded
        self._lines: list[bytes] = []
        self._hashes: list[bytes] = []
        self._blobs: list[Blob] = []
        self._audit: list[bytes] = []
        self._lease_us = int(limits.lease_seconds * 1_000_000)
        self._renew_after = time.monotonic() + limits.lease_seconds / 3
        self._is_over = False
        self._tried = -1
        """Where a commit ended in a way that does not say whether it was written: how many audit events it had."""
        self._pid = os.getpid()

    @property
    def execution(self) -> str:
        return self._execution

    @property
    def fence(self) -> int:
        return self._fence

    @property
    def recorded(self) -> Sequence[Entry]:
        return self._recorded

    def digest(
        self, effect: str, effect_class: str, fixed: Mapping[str, str], arguments: Mapping[str, object], key: str | None
    ) -> str:
        if self._key is None:
            return digest_of(effect, effect_class, fixed, arguments, key)
        return self._key.digest(digest_bytes(effect, effect_class, fixed, arguments, key))

    def append(self, entry: Entry) -> None:
        if self._is_over:
            raise JournalError(f"execution {self._execution} has ended: nothing can be appended to it")
        seq = self._seq + 1
        written = None if self._key is not None else native_line(entry, seq, self._hash, self._limits.max_inline)
        if written is None:
            line, blob = write_line(entry, seq, self._key, self._limits)
            written = line, next_hash(self._hash, line)
            if blob is not None:
                self._blobs.append(blob)
        self._seq = seq
        line, self._hash = written
        self._lines.append(line)
        self._hashes.append(self._hash)
        if entry.kind is Kind.END:
            self._is_over = True

    def intend(self, entry: Entry) -> str:
        if not self._is_over and self._key is None:
            seq = self._seq + 1
            written = native_intent(entry, seq, self._hash, self._limits.max_inline)
            if written is not None:
                self._seq = seq
                line, self._hash, digest = written
                self._lines.append(line)
                self._hashes.append(self._hash)
                return digest
        body = cast("Mapping[str, Any]", entry.body)
        digest = self.digest(entry.effect, entry.effect_class, body["fixed"], body["arguments"], entry.key)
        self.append(replace(entry, digest=digest))
        return digest

    def audit(self, event: AuditEvent) -> None:
        self._audit.append(audit_text(event, self._limits.max_body))

    def commit(self, status: Status = Status.RUNNING, outcome: str | None = None) -> None:
        if os.getpid() != self._pid:
            raise self._forked()
        if self._tried >= 0:
            self._find_out()
        is_changing = status is not _RUNNING
        lines = self._lines
        if not is_changing and not lines and not self._audit:
            self.renew()
            return
        now = time.monotonic()
        rows = rows_of(self._seq - len(lines) + 1, lines, self._hashes) if lines else ()
        batch = Batch(self._execution, self._row, self._fence, rows, self._is_synced)
        batch.head_seq = self._seq
        batch.head_hash = self._hash
        batch.lease_us = self._lease_us
        if is_changing or now >= self._renew_after or self._birth is not None:
            batch.is_prolonged = True
            batch.status = status if is_changing else None
            batch.outcome = outcome
            batch.birth = self._birth
        if self._blobs:
            batch.blobs = self._blobs
        if self._audit:
            batch.audit = self._audit
        self._tried = len(self._audit)
        try:
            self._store.submit(batch)
        except Fenced:
            self._tried = -1
            raise
        self._tried = -1
        self._is_over = self._is_over or is_changing
        self._lines = []
        self._hashes = []
        if batch.is_prolonged or self._blobs or self._audit:  # not of most steps
            self._written(batch, now)

    def renew(self) -> None:
        if os.getpid() != self._pid:
            raise self._forked()
        if self._birth is not None:
            return  # nobody else knows of the run yet
        now = time.monotonic()
        batch = Batch(self._execution, self._row, self._fence, (), is_synced=False)
        batch.is_prolonged = True
        batch.lease_us = self._lease_us
        self._store.submit(batch)
        self._renew_after = now + self._limits.lease_seconds / 3

    def _written(self, batch: Batch, now: float) -> None:
        self._row = batch.run
        self._birth = None
        self._blobs = []
        self._audit = []
        if batch.is_prolonged:
            self._renew_after = now + self._limits.lease_seconds / 3

    def _forked(self) -> Fenced:
        return Fenced(
            f"execution {self._execution} belongs to the process that began it, and this one was forked from it"
        )

    def _find_out(self) -> None:
        """After a commit of which nobody knows: whether it was written. It was written as a whole or not at all."""
        with self._store.reading() as transaction:
            found = transaction.rows("SELECT id, fence FROM vesper_executions WHERE execution = ?", (self._execution,))
            run = integer(found[0][0]) if found else 0
            last = last_hash(transaction, run)
        if found and found[0][1] != self._fence:
            raise fenced(self._execution)
        if last in self._hashes:
            written = self._hashes.index(last) + 1
            self._row = run
            self._birth = None
            # Blobs are kept: one that is there already is not written twice.
            del self._lines[:written], self._hashes[:written], self._audit[: self._tried]
        self._tried = -1
