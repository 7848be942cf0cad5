"""The audit log: one chain of lines for the whole store, in which every change can be detected.

Each line is canonical bytes that contain its own number; its hash covers the hash before and the line, with a secret if
one is configured (`KeyRing.audit`). A head has the number of lines and the hash of the last one: without a secret it
reveals damage and simple changes, with one it reveals every change made without that secret, except that an earlier
copy of the whole store is put in its place.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

from vesper.journal.entry import AuditEvent
from vesper.journal.errors import JournalError
from vesper.journal.typed_json import decode

if TYPE_CHECKING:
    from vesper.journal.journal import Journal

FIRST = bytes(32)
"""The hash before the first line."""
_REPORTED_LINES = 1_000


class AuditLog(Protocol):
    """An audit log that can be verified: that of a journal, or a file to which it was exported."""

    @property
    def audit_key(self) -> bytes | None: ...
    def audit_head(self) -> tuple[int, str]: ...
    def audit_rows(self) -> Iterator[tuple[int, bytes, bytes]]: ...


def audit_hash(before: bytes, line: bytes, key: bytes | None) -> bytes:
    return sha256(before + line).digest() if key is None else hmac.digest(key, before + line, "sha256")


def decode_audit_line(seq: int, line: bytes) -> dict[str, object]:
    """Return a line of the log with its number. Raises `JournalError` for a malformed one."""
    event = decode(line)
    if not isinstance(event, dict):
        raise JournalError(f"line {seq} of the audit log cannot be read")
    return {**event, "seq": seq}


def verify_audit(log: AuditLog, most: int = 20, report: Callable[[int, int], None] | None = None) -> list[str]:
    """Return the problems of the audit log, the first place first and at most `most`. An intact log has none.

    `report` is called repeatedly with the number of verified lines and of all lines.
    """
    problems: list[str] = []
    expected, before = 1, FIRST
    try:
        count, head = log.audit_head()
        for seq, line, hash_ in log.audit_rows():
            if seq != expected:
                problems.append(
                    f"{_lines(expected, seq - 1)} missing" if seq > expected else f"line {seq} was inserted"
                )
            elif audit_hash(before, line, log.audit_key) != hash_:
                problems.append(f"line {seq} was changed, inserted, or moved here: its hash does not follow")
            elif (own := _own_number(line)) != seq:
                problems.append(f"line {seq} was moved here: it says that it is line {own}")
            expected, before = seq + 1, hash_
            if report is not None and seq % _REPORTED_LINES == 0:
                report(seq, count)
            if len(problems) >= most:
                return [*problems, "there may be more"]
    except JournalError as error:
        return [*problems, str(error)]
    if expected - 1 < count:
        problems.append(f"{_lines(expected, count)} missing at the end: the log was cut")
    elif expected - 1 > count:
        problems.append(f"line {count + 1} was added without moving the head of the log")
    elif before.hex() != head:
        problems.append(f"the head of the log is not the hash of line {count}")
    return problems


def _lines(first: int, last: int) -> str:
    return f"line {first} is" if first == last else f"lines {first} to {last} are"


def _own_number(line: bytes) -> object:
    found = decode(line)
    return found.get("seq") if isinstance(found, dict) else None


def audit_change(journal: Journal, action: str, execution: str, node_id: str, by: str, **fields: object) -> None:
    """Write a manual change of the journal to the audit log, at any audit level."""
    event = AuditEvent(time.time_ns() // 1000, execution, node_id, "basic", action, {"by": by, **fields})
    journal.audit([event])
