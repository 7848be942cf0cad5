"""Ids of executions: UUIDs of version 7 (RFC 9562), so that they sort by time."""

from __future__ import annotations

import os
from collections.abc import Callable

_FRACTIONS = 4096
_MILLISECOND = 1_000_000


def trace_id(at_ns: int, random_bytes: Callable[[int], bytes] = os.urandom) -> str:
    """Return a new id for an execution at a time in nanoseconds since 1970.

    It has 48 bits of milliseconds, 12 bits of their fraction (method 3 of the RFC) and 62 random bits. These come from
    the operating system, so two processes that were forked from one make different ids.
    """
    milliseconds, rest = divmod(at_ns, _MILLISECOND)
    fraction = rest * _FRACTIONS // _MILLISECOND
    random = int.from_bytes(random_bytes(8), "big") & (1 << 62) - 1
    bits = (milliseconds & (1 << 48) - 1) << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | random
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
