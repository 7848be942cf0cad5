"""What counts as evidence for a node in an epoch, by semantic path, and how it merges over processes.

Agreement is counted in distinct fingerprints, divergence in occurrences: a million copies of one input are one piece of
evidence, and a fault that one input shows a hundred times is a hundred divergences. A fingerprint that ever diverged is
no agreement any more. Generated inputs fill a path's own evidence and never count as traffic.

Every part only grows, and merging takes the larger: sets unite, a counter is kept by process and the higher count of a
process wins, and a part that was begun afresh replaces what was before it. So evidence may be merged in any order, any
number of times, by anybody, and comes out the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from vesper.migration.decide.fingerprints import LIMIT, FingerprintSet

MAX_PATHS = 4096
"""So many semantic paths have evidence of their own. On others nothing is agreement, so they are always compared."""
MAX_ENUMERATED = 10**6
"""A finite input domain up to this size is run through completely."""

Count: TypeAlias = dict[str, int]
"""By process. Each process only counts its own up."""


def total(count: Mapping[str, int]) -> int:
    return sum(count.values())


def _higher(one: Mapping[str, int], other: Mapping[str, int]) -> Count:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in sorted({*one, *other})}


@dataclass
class PathEvidence:
    """What was seen on one path since its evidence was begun afresh."""

    round: int = 1
    limit: int = LIMIT
    agreed: FingerprintSet = field(init=False)
    diverged: FingerprintSet = field(init=False)
    generated: FingerprintSet = field(init=False)
    divergences: Count = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.agreed, self.diverged, self.generated = (FingerprintSet(limit=self.limit) for _ in range(3))

    @property
    def clean(self) -> int:
        """Distinct inputs of traffic that agreed whenever they were seen."""
        return len(self.agreed) - sum(each in self.agreed for each in self.diverged)

    @property
    def generated_only(self) -> int:
        """Distinct generated inputs that traffic did not bring as well."""
        return sum(each not in self.agreed and each not in self.diverged for each in self.generated)

    def merged(self, other: PathEvidence) -> PathEvidence:
        if self.round != other.round:
            return max(self, other, key=lambda each: each.round).copy()
        both = PathEvidence(self.round, self.limit)
        both.agreed = self.agreed.union(other.agreed)
        both.diverged = self.diverged.union(other.diverged)
        both.generated = self.generated.union(other.generated)
        both.divergences = _higher(self.divergences, other.divergences)
        return both

    def copy(self) -> PathEvidence:
        again = PathEvidence(self.round, self.limit)
        again.agreed, again.diverged = self.agreed.copy(), self.diverged.copy()
        again.generated, again.divergences = self.generated.copy(), dict(self.divergences)
        return again


@dataclass
class Evidence:
    """All that was seen of a node in an epoch, by one process or by all of them."""

    process: str
    """Whose counts this evidence adds to."""
    limit: int = LIMIT
    round: int = 1
    """Which attempt of the node it belongs to."""
    paths: dict[str, PathEvidence] = field(default_factory=dict)
    compared: Count = field(default_factory=dict)
    unknown: Count = field(default_factory=dict)
    """Comparisons that were admitted and then lost, or that timed out."""
    diverged: Count = field(default_factory=dict)
    """Occurrences of divergences on all paths, also those beyond the number that is kept. None is lost."""

    def agree(self, path: str, fingerprint: int) -> bool:
        """Counts a comparison of traffic that came out equal; whether it is a new piece of evidence."""
        self._count(self.compared)
        seen = self._path(path)
        return seen is not None and fingerprint not in seen.diverged and seen.agreed.add(fingerprint)

    def agree_generated(self, path: str, fingerprint: int) -> bool:
        """Counts an agreement on a generated input; whether it adds to the path's own evidence."""
        seen = self._path(path)
        if seen is None or fingerprint in seen.agreed or fingerprint in seen.diverged:
            return False
        return seen.generated.add(fingerprint)

    def diverge(self, path: str, fingerprint: int) -> bool:
        """Counts one occurrence; whether it takes back an agreement, because the same input had counted as one."""
        self._count(self.compared)
        self._count(self.diverged)
        seen = self._path(path)
        if seen is None:
            return False
        was_clean = fingerprint in seen.agreed and fingerprint not in seen.diverged
        seen.diverged.add(fingerprint)
        self._count(seen.divergences)
        return was_clean

    def lose(self) -> None:
        self._count(self.unknown)

    def refresh_path(self, path: str, to_round: int) -> None:
        """Begins the evidence of a path afresh: what was seen before it was demoted does not bring it back."""
        seen = self._path(path)
        if seen is not None and to_round > seen.round:
            self.paths[path] = PathEvidence(to_round, self.limit)

    def refresh(self, to_round: int) -> None:
        """Begins all of it afresh, after the node was demoted. The process counts from zero in the new round."""
        if to_round > self.round:
            self.round = to_round
            self.paths, self.compared, self.unknown, self.diverged = {}, {}, {}, {}

    @property
    def divergences(self) -> int:
        return total(self.diverged)

    @property
    def clean(self) -> int:
        return sum(each.clean for each in self.paths.values())

    def merged(self, other: Evidence) -> Evidence:
        """Both together, for the process of `self`. Of more paths than are kept, those whose names sort first stay."""
        if self.limit != other.limit:
            raise ValueError(f"evidence of up to {self.limit} and of up to {other.limit} fingerprints does not merge")
        if self.round != other.round:
            newer = max(self, other, key=lambda each: each.round)
            return newer.merged(Evidence(newer.process, newer.limit, newer.round))._of(self.process)
        names = sorted({*self.paths, *other.paths})
        both = Evidence(self.process, self.limit, self.round)
        for name in names[:MAX_PATHS]:
            mine, theirs = self.paths.get(name), other.paths.get(name)
            both.paths[name] = mine.merged(theirs) if mine and theirs else (mine or theirs or PathEvidence()).copy()
        both.compared = _higher(self.compared, other.compared)
        both.unknown = _higher(self.unknown, other.unknown)
        both.diverged = _higher(self.diverged, other.diverged)
        return both

    def _of(self, process: str) -> Evidence:
        self.process = process
        return self

    def _path(self, path: str) -> PathEvidence | None:
        if path not in self.paths and len(self.paths) < MAX_PATHS:
            self.paths[path] = PathEvidence(limit=self.limit)
        return self.paths.get(path)

    def _count(self, count: Count) -> None:
        count[self.process] = count.get(self.process, 0) + 1


def is_too_unknown(compared: int, unknown: int) -> bool:
    """Whether more than 0.1 % of the admitted comparisons came to nothing."""
    return unknown * 1000 > compared + unknown
