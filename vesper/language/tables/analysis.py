"""Gaps, overlaps and unreachable rows of a decision table, exact over the columns, in bounded time.

A row is one or more boxes: a set of values for each column. A box is *exact* where its row matches every point of it,
else only an upper bound. The search splits space at the cuts of one column after the other and stops at the first
witness. Its budget counts visited boxes; beyond it the answer is `UNDECIDED`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from vesper.language.tables.axis import Cut, Range, Ranges, intersection

BUDGET = 12_000_000
"""Maximum number of boxes that the searches of one table visit together."""


class Decision(Enum):
    """Result of a search that finds no witness."""

    EXCLUDED = "excluded"
    UNDECIDED = "undecided"


EXCLUDED, UNDECIDED = Decision.EXCLUDED, Decision.UNDECIDED


@dataclass(frozen=True, slots=True)
class Box:
    """Part of a row: a set of values for each column, None for all."""

    row: int
    sets: tuple[Ranges | None, ...]
    is_exact: bool = True


Point: TypeAlias = tuple[Range, ...]
"""One range for each column, all of whose values are witnesses."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two rows that match equal values."""

    first: int
    second: int
    point: Point


class _OutOfBudget(Exception):
    pass


_Span: TypeAlias = tuple[int, int]
_Spans: TypeAlias = tuple[_Span, ...]


class _Part:
    """A box with its cuts as numbers. `spans` has None for a column in which the box has the whole domain."""

    __slots__ = ("is_exact", "row", "spans")

    def __init__(self, row: int, spans: tuple[_Spans | None, ...], is_exact: bool) -> None:
        self.row = row
        self.spans = spans
        self.is_exact = is_exact


class Analysis:
    """Searches over the boxes of one table. `domains` has the possible values of each column."""

    def __init__(self, domains: Sequence[Ranges], boxes: Sequence[Box], budget: int = BUDGET) -> None:
        self._cuts: list[list[Cut]] = []
        self._domains: list[_Spans] = []
        self.budget = budget
        """Number of boxes that searches may still visit."""
        numbered = [self._number(column, domain, boxes) for column, domain in enumerate(domains)]
        self._is_empty = any(not domain for domain in domains)
        self._parts: list[_Part] = []
        for position, box in enumerate(boxes):
            spans = tuple(column[position] for column in numbered)
            if () not in spans:  # a box without values matches nothing
                self._parts.append(_Part(box.row, spans, box.is_exact))
        self._all = tuple(range(len(domains)))

    def _number(self, column: int, domain: Ranges, boxes: Sequence[Box]) -> list[_Spans | None]:
        """Return the spans of a column for each box, after numbering its cuts."""
        known: dict[int, Ranges | None] = {}
        found: list[Ranges | None] = []
        for box in boxes:
            given = box.sets[column]
            if given is not None and id(given) not in known:
                within = intersection(given, domain)
                known[id(given)] = None if within == domain else within
            found.append(None if given is None else known[id(given)])
        cuts = sorted({cut for ranges in (domain, *known.values()) for each in ranges or () for cut in each})
        number = {cut: position for position, cut in enumerate(cuts)}
        self._cuts.append(cuts)
        self._domains.append(tuple((number[low], number[high]) for low, high in domain))
        spans = {
            key: None if ranges is None else tuple((number[low], number[high]) for low, high in ranges)
            for key, ranges in known.items()
        }
        return [None if box.sets[column] is None else spans[id(box.sets[column])] for box in boxes]

    # -- searches ---------------------------------------------------------------------------------

    def find_gap(self) -> Point | Decision:
        """Return values that no row matches, or `EXCLUDED` if there are none."""
        is_decided = [True]
        try:
            found = None if self._is_empty else self._gap(self._parts, self._all, is_decided)
        except _OutOfBudget:
            return UNDECIDED
        if found is not None:
            return self._point(found)
        return EXCLUDED if is_decided[0] else UNDECIDED

    def find_gaps(self, most: int) -> list[tuple[Range | None, ...]]:
        """Return up to `most` disjoint gaps, each with a range for each column.

        The range is None if the gap has all values of the column.
        """
        found: list[tuple[Range | None, ...]] = []
        parts = list(self._parts)
        try:
            while len(found) < most and not self._is_empty:
                gap = self._gap(parts, self._all, [True])
                if gap is None:
                    break
                spans = [gap.get(column) for column in self._all]
                spans = [None if (each,) == self._domains[n] else each for n, each in enumerate(spans)]
                found.append(
                    tuple(
                        None if span is None else (self._cuts[column][span[0]], self._cuts[column][span[1]])
                        for column, span in enumerate(spans)
                    )
                )
                parts.append(_Part(-1, tuple(None if each is None else (each,) for each in spans), True))
        except _OutOfBudget:
            pass  # those found until here are gaps
        return found

    def find_overlap(self, classes: Sequence[Hashable | None]) -> Overlap | Decision:
        """Return two rows of different classes that match equal values.

        `EXCLUDED` if there are none. Rows of one class may overlap. The class None differs from every class, but it is
        no evidence that the results differ.
        """
        by_row = [("row", row) if each is None else ("class", each) for row, each in enumerate(classes)]
        exact = [part for part in self._parts if part.is_exact and classes[part.row] is not None]
        try:
            found = self._overlap(exact, self._all, by_row)
            if found is not None:
                first, second, spans = found
                return Overlap(min(first, second), max(first, second), self._point(spans))
            if len(exact) == len(self._parts):
                return EXCLUDED
            return EXCLUDED if self._overlap(self._parts, self._all, by_row) is None else UNDECIDED
        except _OutOfBudget:
            return UNDECIDED

    def find_unreached(self, count: int) -> tuple[int, ...] | Decision:
        """Return the rows whose values all match earlier rows."""
        reached: set[int] = set()
        try:
            if not self._is_empty:
                self._reach(sorted(self._parts, key=lambda part: part.row), self._all, reached)
        except _OutOfBudget:
            return UNDECIDED
        return tuple(row for row in range(count) if row not in reached)

    # -- recursion --------------------------------------------------------------------------------

    def _gap(self, parts: list[_Part], columns: tuple[int, ...], is_decided: list[bool]) -> dict[int, _Span] | None:
        self._spend(len(parts) + 1)
        if not parts:
            return {}
        restricted = _restricting_parts(parts, columns)
        if len(restricted) < len(parts):
            free = [part for part in parts if not any(part.spans[column] is not None for column in columns)]
            if any(part.is_exact for part in free):
                return None
            # An upper bound covers all that is left: a gap cannot be shown here, only excluded.
            if self._gap([part for part in restricted if part.is_exact], columns, [True]) is not None:
                is_decided[0] = False
            return None
        column = self._choose(parts, columns)
        rest = tuple(each for each in columns if each != column)
        for span, members in self._sweep(parts, column):
            found = self._gap(members, rest, is_decided)
            if found is not None:
                return {**found, column: span}
        return None

    def _overlap(
        self, parts: list[_Part], columns: tuple[int, ...], classes: Sequence[Hashable]
    ) -> tuple[int, int, dict[int, _Span]] | None:
        self._spend(len(parts) + 1)
        if len(parts) < 2:
            return None
        first = parts[0].row
        other = next((part.row for part in parts if classes[part.row] != classes[first]), None)
        if other is None:
            return None
        open_columns = tuple(column for column in columns if any(part.spans[column] is not None for part in parts))
        if not open_columns:
            return first, other, {}
        if len(open_columns) == 1:
            return self._overlap_in(parts, open_columns[0], classes)
        column = self._choose(parts, open_columns)
        rest = tuple(each for each in open_columns if each != column)
        for span, members in self._sweep(parts, column):
            found = self._overlap(members, rest, classes)
            if found is not None:
                return found[0], found[1], {**found[2], column: span}
        return None

    def _overlap_in(
        self, parts: list[_Part], column: int, classes: Sequence[Hashable]
    ) -> tuple[int, int, dict[int, _Span]] | None:
        """Search one column for overlapping spans of two classes.

        In ascending order, each span is compared with the farthest ends of two classes before it.
        """
        domain = self._domains[column]
        spans = sorted((low, high, part.row) for part in parts for low, high in part.spans[column] or domain)
        ends: list[tuple[int, int]] = []
        for low, high, row in spans:
            for end, before in ends:
                if end > low and classes[before] != classes[row]:
                    return before, row, {column: (low, min(high, end))}
            same = next((n for n, (_, before) in enumerate(ends) if classes[before] == classes[row]), None)
            if same is None:
                ends.append((high, row))
            elif high > ends[same][0]:
                ends[same] = (high, row)
            ends = sorted(ends, reverse=True)[:2]
        return None

    def _reach(self, parts: list[_Part], columns: tuple[int, ...], reached: set[int]) -> None:
        """Add the first rows that match somewhere. The parts are in the order of their rows."""
        self._spend(len(parts) + 1)
        for position, part in enumerate(parts):
            if any(part.spans[column] is not None for column in columns):
                parts = parts[position:]
                break
            reached.add(part.row)
            if part.is_exact:
                return
        else:
            return
        if all(part.row in reached for part in parts):
            return
        column = self._choose(parts, columns)
        rest = tuple(each for each in columns if each != column)
        for _, members in self._sweep(parts, column):
            self._reach(sorted(members, key=lambda part: part.row), rest, reached)

    # -- splitting --------------------------------------------------------------------------------

    def _choose(self, parts: list[_Part], columns: tuple[int, ...]) -> int:
        """Return the column whose cuts separate the parts best. Its split has the least members."""
        best, least = columns[0], -1
        for column in columns:
            spans = [part.spans[column] for part in parts]
            cuts = sorted({cut for each in spans for span in each or () for cut in span})
            if not cuts:
                continue
            wild = sum(each is None for each in spans)
            members = (len(cuts) + 1) * wild
            for each in spans:
                for low, high in each or ():
                    members += bisect_left(cuts, high) - bisect_left(cuts, low)
            if least < 0 or members < least:
                best, least = column, members
        self._spend(len(parts))
        return best

    def _sweep(self, parts: list[_Part], column: int) -> Iterator[tuple[_Span, list[_Part]]]:
        """Yield the spans of a column between cuts, each with the parts that contain it."""
        wild: list[_Part] = []
        changes: dict[int, tuple[list[_Part], list[_Part]]] = {}
        for part in parts:
            spans = part.spans[column]
            if spans is None:
                wild.append(part)
            else:
                for low, high in spans:
                    changes.setdefault(low, ([], []))[0].append(part)
                    changes.setdefault(high, ([], []))[1].append(part)
        members: dict[int, _Part] = {}
        at = sorted(changes)
        position = 0
        for first, last in self._domains[column]:
            low = first
            while low < last:
                while position < len(at) and at[position] <= low:
                    begun, ended = changes[at[position]]
                    for part in ended:
                        members.pop(id(part), None)
                    for part in begun:
                        members[id(part)] = part
                    position += 1
                high = min(at[position], last) if position < len(at) else last
                self._spend(len(members) + len(wild))
                yield (low, high), [*wild, *members.values()]
                low = high

    def _spend(self, count: int) -> None:
        self.budget -= count
        if self.budget < 0:
            raise _OutOfBudget

    def _point(self, spans: dict[int, _Span]) -> Point:
        found: list[Range] = []
        for column in self._all:
            cuts, domain = self._cuts[column], self._domains[column]
            usual = next((each for each in domain if cuts[each[0]][0] == 1), domain[0])
            low, high = spans.get(column, usual)
            found.append((cuts[low], cuts[high]))
        return tuple(found)


def _restricting_parts(parts: list[_Part], columns: tuple[int, ...]) -> list[_Part]:
    return [part for part in parts if any(part.spans[column] is not None for column in columns)]
