"""The journal of the extension (`_direct.Journal`), with the parts that are easier in Python: iterators, and its file.

The extension opens the file of a journal with its own SQLite library. Two libraries in one process damage a file, so no
Python code of a process may open it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from vesper._direct import Journal as NativeJournal
from vesper._direct import forget_journals, hold_journals, release_journals
from vesper.journal.audit import decode_audit_line
from vesper.journal.errors import JournalError
from vesper.storage.after_fork import Order, register
from vesper.storage.durability import is_volatile
from vesper.storage.sqlite_file import make_file, path_of_dsn

_AUDIT_PAGE = 1_000
"""Lines that `audit_page` returns at most."""


class StoreJournal(NativeJournal):
    """A journal; see `vesper.journal.journal.Journal`."""

    @property
    def volatile_reason(self) -> str | None:
        """Return why the file may vanish. None for a server, whose durability only its administrator knows."""
        return None if self.path is None else is_volatile(self.path)

    def executions(self, prefix: str = "", after: str | None = None) -> Iterator[str]:
        last = after
        while page := self.executions_page(prefix, last):
            yield from page
            last = page[-1]

    def put_schedule(self, name: str, due_us: int, body: str, expected_due_us: int | None) -> bool:
        return self.put_due("schedule", name, due_us, body, expected_due_us)

    def audit_rows(self) -> Iterator[tuple[int, bytes, bytes]]:
        last = None
        while page := self.audit_page(last):
            yield from page
            last = page[-1][0]

    def newest_audit_rows(self, before: int | None = None) -> Iterator[tuple[int, bytes, bytes]]:
        count, _ = self.audit_head()
        last = count if before is None else min(count, before - 1)
        while last > 0:
            first = max(0, last - _AUDIT_PAGE)
            page = [row for row in self.audit_page(first) if row[0] <= last]
            if not page:
                why = "`vesper audit verify` reports all damage"
                raise JournalError(f"{self.name}: lines {first + 1} to {last} of the audit log are missing; {why}")
            yield from reversed(page)
            last = first

    def audit_events(self) -> Iterator[Mapping[str, object]]:
        previous = bytes(32)
        for seq, line, hash_ in self.audit_rows():
            yield {**decode_audit_line(seq, line), "hash": hash_.hex(), "previous": previous.hex()}
            previous = hash_


def path_of(rest: str) -> Path:
    """Return the file in a DSN, from the text behind `sqlite:`."""
    path = path_of_dsn(rest)
    if path is None and rest.startswith("//"):
        raise JournalError(f"`sqlite:{rest[:80]}` names no file: `sqlite:journal.db`, `sqlite:///folder/journal.db`")
    if path is None:
        raise JournalError("a journal is a file: `sqlite:PATH`; one in memory would keep nothing")
    return path


def make_journal_file(path: Path) -> None:
    """Create the file of a journal if there is none. Refuses one that another user may have written."""
    make_file(path, "journal", JournalError)


register(order=Order.STORAGE, before=hold_journals, after_in_parent=release_journals, after_in_child=forget_journals)
