"""Cells of the store's tables. Whoever can write a table can write anything: what is of another type is an error."""

from __future__ import annotations

from vesper.journal.errors import JournalError


def integer(cell: object) -> int:
    if type(cell) is not int:
        raise _wrong("a whole number", cell)
    return cell


def data(cell: object) -> bytes:
    if type(cell) is bytes:
        return cell
    if isinstance(cell, memoryview | bytearray):
        return bytes(cell)
    raise _wrong("bytes", cell)


def text(cell: object) -> str:
    if type(cell) is not str:
        raise _wrong("a text", cell)
    return cell


def _wrong(expected: str, cell: object) -> JournalError:
    return JournalError(
        f"a cell of the journal's tables holds {repr(cell)[:40]} where {expected} belongs: somebody changed the journal"
    )
