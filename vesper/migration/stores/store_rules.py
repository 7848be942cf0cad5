"""Checks that all stores share."""

from __future__ import annotations

from vesper.migration.stores.store import Line, StoreError

SECRET_BYTES = 16
PROCESS_RETENTION_US = 7 * 24 * 3600 * 10**6
"""Microseconds without a batch after which the number of a process is deleted. Process names are random, and a batch is
sent again within seconds or never."""
_SPACE = 2**64


def check_fingerprint(fingerprint: int) -> int:
    if not 0 <= fingerprint < _SPACE:
        raise ValueError("a fingerprint is a whole number of 64 bits")
    return fingerprint


def check_secret(found: object, name: str) -> bytes:
    """Return the secret of a store. Raises `StoreError` for another length: the secret keys all evidence."""
    secret = bytes(found) if isinstance(found, bytes | bytearray | memoryview) else b""
    if len(secret) != SECRET_BYTES:
        raise StoreError(f"{name}: the secret of the store is damaged: it was changed. Restore the last backup")
    return secret


def next_line(head: tuple[int, str], line: Line, name: str) -> tuple[int, str]:
    """Return the head of a history after `line`. Raises `StoreError` unless it is the next one."""
    count = head[0]
    if line.number != count + 1:
        raise StoreError(f"{name}: the history has {count} lines, and line {line.number} is not the next one")
    return line.number, line.hash
