"""Shares of reached edges by crate, and the listing of places that nothing reached."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.proofs.coverage.build import CRATES
from tests.proofs.coverage.edges import Place, members

UNREACHABLE = Path(__file__).parent / "unreachable.toml"


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Functions that no program can reach, and why."""

    crate: str
    file: str
    """Pattern of files below `src`."""
    function: str
    """Pattern of names."""
    reason: str

    def covers(self, place: Place) -> bool:
        is_there = place.crate == self.crate and fnmatchcase(place.file, self.file)
        return is_there and fnmatchcase(place.function, self.function)


def read_unreachable(path: Path = UNREACHABLE) -> list[Unreachable]:
    """Return the functions that are left out of the reachable ones. Raises `TypeError` for an unknown field."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["unreachable"]
    return [Unreachable(**{"function": "*", **entry}) for entry in entries]


class EdgeMap:
    """The edges of our crates by source position: copies by inlining and type arguments count once."""

    def __init__(self, places: Sequence[Place | None], unreachable: Iterable[Unreachable]) -> None:
        """Create a map from the place of every counter; None is a counter outside of our crates."""
        merged: dict[tuple[str, str, int, int], int] = {}
        self.places: list[Place] = []
        self._edge_of: list[int | None] = []
        for place in places:
            if place is None:
                self._edge_of.append(None)
                continue
            key = (place.crate, place.file, place.line, place.column)
            if key not in merged:
                merged[key] = len(self.places)
                self.places.append(place)
            self._edge_of.append(merged[key])
        listed = list(unreachable)
        covered = [[each for each in listed if each.covers(place)] for place in self.places]
        self.unreachable = edge_set(index for index, found in enumerate(covered) if found)
        used = {id(each) for found in covered for each in found}
        self.unused = [each for each in listed if id(each) not in used]
        """Entries that match no function: the sources have changed."""
        self._of_crate = {
            crate: edge_set(index for index, place in enumerate(self.places) if place.crate == crate)
            for crate in CRATES
        }

    def merge(self, counted: int) -> int:
        """Return the edges of a set of counters."""
        found = (self._edge_of[index] for index in members(counted))
        return edge_set(edge for edge in found if edge is not None)

    def shares(self, reached: int) -> dict[str, dict[str, Any]]:
        """Return counts and shares by crate, and of all."""
        everything = edge_set(range(len(self.places)))
        return {crate: self._share(edges, reached) for crate, edges in {**self._of_crate, "all": everything}.items()}

    def _share(self, edges: int, reached: int) -> dict[str, Any]:
        # An edge that is reached is reachable, whatever the list says.
        reachable = (edges & ~self.unreachable) | (edges & reached)
        count = (edges & reached).bit_count()
        return {
            "edges": edges.bit_count(),
            "reachable": reachable.bit_count(),
            "reached": count,
            "share": _ratio(count, edges.bit_count()),
            "share_of_reachable": _ratio(count, reachable.bit_count()),
        }

    def reached_by_crate(self, reached: int) -> dict[str, int]:
        return {crate: (edges & reached).bit_count() for crate, edges in self._of_crate.items()}

    def functions(self, edges: int) -> set[str]:
        """Return the names of the functions of some edges."""
        return {self.places[index].function for index in members(edges)}

    def listing(self, reached: int) -> str:
        """Return the functions with unreached edges by crate and file, the largest first."""
        missing: dict[tuple[str, str, str], list[int]] = defaultdict(list)
        total: dict[tuple[str, str, str], int] = defaultdict(int)
        for index, place in enumerate(self.places):
            key = (place.crate, place.file, place.function)
            total[key] += 1
            if not (reached | self.unreachable) >> index & 1:
                missing[key].append(place.line)
        lines = []
        for crate in sorted(CRATES, key=lambda each: -_sum(missing, (each,))):
            lines += [f"## {crate}: {_sum(missing, (crate,))} edges unreached", ""]
            counts = {key[1]: _sum(missing, key[:2]) for key in missing if key[0] == crate}
            for file in sorted(counts, key=lambda each: (-counts[each], each)):
                lines.append(f"### {crate}/src/{file}: {counts[file]}")
                functions = [key for key in missing if key[:2] == (crate, file)]
                for key in sorted(functions, key=lambda key: (-len(missing[key]), key)):
                    is_whole = ", never entered" if len(missing[key]) == total[key] else ""
                    counted = f"{len(missing[key])} of {total[key]}{is_whole}"
                    lines.append(f"- `{key[2]}` {counted}: lines {ranges(missing[key])}")
                lines.append("")
        return "\n".join(lines)


def edge_set(indices: Iterable[int]) -> int:
    """Return the set of some indices."""
    marked = sorted(indices)
    if not marked:
        return 0
    flags = bytearray(marked[-1] // 8 + 1)
    for index in marked:
        flags[index // 8] |= 1 << index % 8
    return int.from_bytes(flags, "little")


def _ratio(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 1.0


def _sum(missing: Mapping[tuple[str, str, str], list[int]], start: tuple[str, ...]) -> int:
    return sum(len(lines) for key, lines in missing.items() if key[: len(start)] == start)


def ranges(lines: Iterable[int]) -> str:
    """Return line numbers as text, neighbours as a range."""
    distinct = sorted(set(lines))
    found = []
    for _, group in groupby(enumerate(distinct), key=lambda each: each[1] - each[0]):
        run = [line for _, line in group]
        found.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return ", ".join(found)
