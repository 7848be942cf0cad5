"""How large the answer of a child may be, before anybody reads it.

A short text can stand for a great many objects: 128 MiB of brackets are gigabytes to who reads them. So whoever is
given an answer looks at its text first, and a child that means well does the same before it says one (`serving`).
"""

from __future__ import annotations

import re
from itertools import accumulate

from vesper.values.model import MAX_ENTRIES

MAX_ANSWER = 64 << 20
"""Bytes. The longest text of the language has fewer, however it is written."""
MAX_PARTS = 4 * MAX_ENTRIES + 10_000
"""Brackets that open, and commas: four for each entry of the largest map, a pair of a key and a decimal. Those that
stand in texts count as well: a text may be read as a `json`."""
MAX_NESTING = 620
"""Of brackets. A dict is three deep (`packed.pack`), and a value that can be sent is at most 200."""

_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
"""Also one that does not end: otherwise it would be looked at again from each quote in it."""
_WRITTEN = (b"\\u002", b"\\u005", b"\\u007")
"""How a comma or a bracket may be written in a text, and nobody who means well does."""
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""One further in, or one out, as signed bytes."""
_OTHERS = bytes(set(range(256)) - set(b"[]{}"))


def what_is_wrong(text: bytes) -> str | None:
    """Why a text is no answer that anybody may read; None for one that may be read."""
    if len(text) <= 2 * MAX_NESTING:
        return None  # most are short, and all of this stands on every request that is followed
    if len(text) > MAX_ANSWER:
        return f"it has {len(text):,} bytes, and {MAX_ANSWER:,} are the most"
    opened = text.count(b"[") + text.count(b"{")
    closed = text.count(b"]") + text.count(b"}")
    if (parts := max(opened, closed) + text.count(b",") + sum(map(text.count, _WRITTEN))) > MAX_PARTS:
        return f"it has {parts:,} parts, and {MAX_PARTS:,} are the most"
    if opened > MAX_NESTING and _is_too_deep(text):
        return f"it is nested more than {MAX_NESTING} deep"
    return None


def _is_too_deep(text: bytes) -> bool:
    """Brackets that do not belong to each other are found by who reads it."""
    steps = memoryview(_TEXT.sub(b"", text).translate(_STEPS, _OTHERS)).cast("b")
    return max(accumulate(steps), default=0) > MAX_NESTING
