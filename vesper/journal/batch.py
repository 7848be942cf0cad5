"""What one run wants written, in one transaction or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vesper.journal.entry import Definition
from vesper.journal.errors import JournalError
from vesper.journal.lines import Blob

if TYPE_CHECKING:
    from vesper.journal.journal import Status, Summary

_ROW_BYTES = 256 << 10
_ROW_LINES = 1024


class Birth:
    """What the first commit of a run needs besides its entries."""

    __slots__ = ("definition", "is_synced", "key", "summary")

    def __init__(
        self, summary: Summary, definition: Definition, is_synced: bool, key: tuple[str, bytes] | None
    ) -> None:
        self.summary = summary
        self.definition = definition
        self.is_synced = is_synced
        self.key = key


class Batch:
    """One commit of one run. A store fills in `run` for a new one, and `error` where it refuses; then it is `done`.

    Most are only lines: what those do not need are attributes of the class, because setting them takes time."""

    is_prolonged = False
    """True where the row of the execution is written: its lease, its head."""
    head_seq = 0
    head_hash = b""
    lease_us = 0
    status: Status | None = None
    """None: it stays as it is."""
    outcome: str | None = None
    birth: Birth | None = None
    blobs: Sequence[Blob] = ()
    audit: Sequence[bytes] = ()
    """Events as `audit_text` writes them."""
    done = False
    error: JournalError | None = None

    def __init__(
        self, execution: str, run: int, fence: int, rows: Sequence[tuple[int, bytes, bytes]], is_synced: bool
    ) -> None:
        self.execution = execution
        self.run = run
        self.fence = fence
        self.rows = rows
        """The number of the first line, the lines, and their hashes."""
        self.is_synced = is_synced

    @staticmethod
    def of_audit(events: Sequence[bytes]) -> Batch:
        """Lines of the audit log that belong to no run."""
        batch = Batch("", 0, 0, (), is_synced=True)
        batch.audit = events
        return batch

    @property
    def is_of_run(self) -> bool:
        return self.run != 0 or self.birth is not None

    @property
    def is_plain(self) -> bool:
        """True where nothing but one row of lines is to be written: one statement does it."""
        return not (self.is_prolonged or self.blobs or self.audit) and len(self.rows) == 1


def rows_of(first: int, lines: Sequence[bytes], hashes: Sequence[bytes]) -> list[tuple[int, bytes, bytes]]:
    """Lines as rows: one, unless they are so many that nobody wants to read them at once."""
    if len(lines) <= 2:  # what nearly every commit has
        return [(first, b"\n".join(lines), b"".join(hashes))]
    rows = []
    start = size = 0
    for index, line in enumerate(lines):
        if index > start and (size + len(line) > _ROW_BYTES or index - start >= _ROW_LINES):
            rows.append((first + start, b"\n".join(lines[start:index]), b"".join(hashes[start:index])))
            start, size = index, 0
        size += len(line)
    rows.append((first + start, b"\n".join(lines[start:]), b"".join(hashes[start:])))
    return rows
