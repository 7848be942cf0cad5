"""About how many bytes a value takes: what `memory_limit_mb` counts. The same on every machine, so that a node that
runs here runs there."""

from __future__ import annotations

from collections.abc import Mapping

_OBJECT = 32


def size_of(value: object) -> int:
    """32 bytes for each value, and a byte for each byte or character in it."""
    total = 0
    waiting = [value]
    while waiting:
        each = waiting.pop()
        total += _OBJECT
        if isinstance(each, str | bytes):
            total += len(each)
        elif isinstance(each, Mapping):
            waiting += each.keys()
            waiting += each.values()
        elif isinstance(each, list | tuple | set | frozenset):
            waiting += each
    return total
