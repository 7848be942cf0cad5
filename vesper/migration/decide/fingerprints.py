"""Sets of 8-byte fingerprints that union, in bounded memory.

A fingerprint stands for the values that guards and operations of a run read, and the responses of its effects. Two runs
with the same fingerprint are one piece of evidence. A collision of 64 bits makes two pieces one, so it can only
understate.

A set is exact up to its limit. Beyond, it keeps the smallest fingerprints and counts no more: the smallest ones of a
union are the same in whatever order sets were united, so a full set still merges like any other.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import pairwise

LIMIT = 2**20
"""Eight MiB for a path. Ten times what `direct_only` needs, so that a few divergences can be outweighed."""

_SPACE = 2**64
_BATCH = 1024
_PERSON = b"vesper.evidence1"


def fingerprint(values: bytes, key: bytes) -> int:
    """The fingerprint of the canonical bytes of what a run read. Keyed: nobody outside can aim at collisions."""
    return int.from_bytes(hashlib.blake2b(values, digest_size=8, key=key, person=_PERSON).digest(), "big")


class FingerprintSet:
    """Sorted fingerprints, and a small set of those that came in since they were sorted."""

    __slots__ = ("_limit", "_recent", "_sorted")

    def __init__(self, fingerprints: Iterable[int] = (), limit: int = LIMIT) -> None:
        if limit < 1:
            raise ValueError(f"a set holds at least one fingerprint, and {limit} is fewer")
        self._limit = limit
        self._sorted: array[int] = array("Q")
        self._recent: set[int] = set()
        for each in fingerprints:
            self.add(each)

    def __len__(self) -> int:
        return len(self._sorted) + len(self._recent)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and (value in self._recent or self._is_sorted_in(value))

    def __iter__(self) -> Iterator[int]:
        self._settle()
        return iter(self._sorted)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FingerprintSet):
            return NotImplemented
        return self._limit == other._limit and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # it changes

    @property
    def is_full(self) -> bool:
        return len(self) >= self._limit

    def add(self, value: int) -> bool:
        """Whether the set has one more than before. A full one never has, though it may keep another."""
        if not 0 <= value < _SPACE:
            raise ValueError("a fingerprint is a whole number of 64 bits")
        if value in self:
            return False
        if self.is_full:
            self._settle()
            if value < self._sorted[-1]:
                self._sorted.pop()
                self._sorted.insert(bisect_left(self._sorted, value), value)
            return False
        self._recent.add(value)
        if len(self._recent) >= max(_BATCH, len(self._sorted) // 8):
            self._settle()
        return True

    def union(self, other: FingerprintSet) -> FingerprintSet:
        if self._limit != other._limit:
            raise ValueError(f"sets of up to {self._limit} and of up to {other._limit} fingerprints do not merge")
        both = FingerprintSet(limit=self._limit)
        both._sorted = array("Q", sorted({*self, *other})[: self._limit])
        return both

    def copy(self) -> FingerprintSet:
        again = FingerprintSet(limit=self._limit)
        again._sorted, again._recent = self._sorted[:], set(self._recent)
        return again

    def to_bytes(self) -> bytes:
        """Eight bytes each, most significant first, in order."""
        self._settle()
        return b"".join(each.to_bytes(8, "big") for each in self._sorted)

    @staticmethod
    def from_bytes(data: bytes, limit: int = LIMIT) -> FingerprintSet:
        """Reads strictly: what is damaged is refused, because a set that grew by itself would be false evidence."""
        if len(data) % 8:
            raise ValueError(f"a set of fingerprints has 8 bytes each, and {len(data)} is no multiple of 8")
        if len(data) // 8 > limit:
            raise ValueError(f"{len(data) // 8} fingerprints are more than the {limit} that are kept")
        values = array("Q", (int.from_bytes(data[at : at + 8], "big") for at in range(0, len(data), 8)))
        if any(first >= second for first, second in pairwise(values)):
            raise ValueError("the fingerprints of a set are in order, each once, and these are not")
        read = FingerprintSet(limit=limit)
        read._sorted = values
        return read

    def _is_sorted_in(self, value: int) -> bool:
        at = bisect_left(self._sorted, value)
        return at < len(self._sorted) and self._sorted[at] == value

    def _settle(self) -> None:
        if self._recent:
            self._sorted = array("Q", sorted([*self._sorted, *self._recent]))
            self._recent = set()
