"""The audit log: one chain of lines for the whole store, in which nothing can be changed without being seen.

Each line is canonical bytes that hold its own number; its hash is made of the hash before and the line, with a secret
where one is configured (`KeyRing.audit`). A head says how many lines there are and what the last hash is: without a
secret it shows damage and clumsy changes, with one it shows every change by somebody who does not have it, save that a
copy of the whole store from an earlier time is put in its place.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Protocol

from vesper.journal.entry import AuditEvent
from vesper.journal.errors import JournalError, TooLarge
from vesper.journal.typed_json import decode, encode

FIRST = bytes(32)
"""The hash before the first line."""


class AuditLog(Protocol):
    """What can be verified: the log of a journal, or a file that it was exported to."""

    @property
    def audit_key(self) -> bytes | None: ...
    def audit_head(self) -> tuple[int, str]: ...
    def audit_rows(self) -> Iterator[tuple[int, bytes, bytes]]: ...


def audit_text(event: AuditEvent, most: int) -> bytes:
    """An event as it is written, but for its number, which comes last and is known when it is stored. Raises
    `JournalError` for one that cannot be written: here, where only whoever made it is told."""
    text = encode(
        {
            "action": event.action,
            "at_us": event.at_us,
            "execution": event.execution,
            "fields": event.fields,
            "level": event.level,
            "node_id": event.node_id,
        }
    )
    if len(text) > most:
        raise TooLarge(f"an audit event `{event.action[:80]}` has {len(text):,} bytes, and the journal takes {most:,}")
    return text[:-1]


def chained(texts: Iterable[bytes], count: int, last: bytes, key: bytes | None) -> Iterator[tuple[int, bytes, bytes]]:
    """Number, line and hash of events that follow `count` lines, the last of which has the hash `last`."""
    for seq, text in enumerate(texts, start=count + 1):
        line = b'%s,"seq":%d}' % (text, seq)
        last = audit_hash(last, line, key)
        yield seq, line, last


def audit_hash(before: bytes, line: bytes, key: bytes | None) -> bytes:
    return sha256(before + line).digest() if key is None else hmac.digest(key, before + line, "sha256")


def verify_audit(log: AuditLog, most: int = 20) -> list[str]:
    """What is wrong with the audit log, the first place first; nothing where it is whole. At most `most` problems."""
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
            if len(problems) >= most:
                return [*problems, "there may be more"]
    except JournalError as error:
        return [*problems, str(error)]
    if expected - 1 < count:
        problems.append(f"{_lines(expected, count)} missing at the end: the log was cut")
    elif expected - 1 > count:
        problems.append(f"line {count + 1} was added by somebody who did not move the head of the log")
    elif before.hex() != head:
        problems.append(f"the head of the log is not the hash of line {count}")
    return problems


def _lines(first: int, last: int) -> str:
    return f"line {first} is" if first == last else f"lines {first} to {last} are"


def _own_number(line: bytes) -> object:
    found = decode(line)
    return found.get("seq") if isinstance(found, dict) else None
