"""Lookups in the tables of IR documents. An engine provides the tables of a node before the node runs.

A table is known by its hash, so that a node means the same rows everywhere. Rows are kept by the columns whose cells
are single values: a dict finds the rows for the keys of these columns. Many rows in one place are found through a tree
over the ranges of another column.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vesper.kernels.work import count_work
from vesper.values.model import from_json
from vesper.values.types import Enum, Record, Type, without_null

_FEW = 8
"""Number of rows that are tried one after the other."""
_NULL = -2
_EVERYTHING = ((_NULL, 2**40),)


@dataclass(frozen=True, slots=True)
class LookupTable:
    """A table as its document has it: types of keys and results, and the rows.

    Each row has its cells and its results.
    """

    keys: Record
    results: Record
    rows: list[tuple[list[Any], list[Any]]]


_readers: dict[str, Callable[[], LookupTable]] = {}
_indexes: dict[str, _Index] = {}


def provide(table: str, read: Callable[[], LookupTable]) -> None:
    """Make a table known by its hash. It is read at its first lookup."""
    _readers.setdefault(table, read)


def find(table: str, keys: Mapping[str, Any]) -> Any:
    """Return the results of the first row that matches; None if there is none, unless the table covers everything."""
    index = _indexes.get(table) or _load(table)
    row = index.first(keys)
    return None if row is None else index.results[row]


def find_all(table: str, keys: Mapping[str, Any]) -> list[dict[str, Any]]:
    index = _indexes.get(table) or _load(table)
    return [index.results[row] for row in index.every(keys)]


def _load(table: str) -> _Index:
    read = _readers.get(table)
    if read is None:
        raise RuntimeError("the rows of a table are not loaded: run this node with `vesper.load`, which reads them")
    index = _indexes[table] = _Index(read())
    return index


@dataclass(slots=True)
class _Bucket:
    """Rows with the same single values. Many of them have a tree over the ranges of `column`."""

    rows: list[int]
    column: int | None = None
    ends: list[int] = field(default_factory=list)
    nodes: dict[int, list[int]] = field(default_factory=dict)


class _Index:
    """The rows of a table, found by their keys.

    A column orders the values that its cells mention. The place of a value is an even number if a cell mentions it,
    and an odd one between two such values; that of null is below all. A cell is a tuple of ranges of places.
    """

    def __init__(self, table: LookupTable) -> None:
        rows = table.rows
        names = [name for name, _ in table.results.fields]
        columns = [
            [from_json(type_, values[place]) for _, values in rows]
            for place, (_, type_) in enumerate(table.results.fields)
        ]
        self.results = [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
        self._columns = [
            _Column(name, type_, [cells[place] for cells, _ in rows])
            for place, (name, type_) in enumerate(table.keys.fields)
        ]
        self._groups: dict[tuple[int, ...], dict[tuple[int, ...], _Bucket]] = {}
        self._group(len(rows))

    def first(self, keys: Mapping[str, Any]) -> int | None:
        places = [column.place(keys[column.name]) for column in self._columns]
        best = len(self.results)
        for rows in self._candidates(places):
            for row in rows:
                if row >= best:
                    break
                if self._matches(row, places):
                    best = row
                    break
        return best if best < len(self.results) else None

    def every(self, keys: Mapping[str, Any]) -> list[int]:
        places = [column.place(keys[column.name]) for column in self._columns]
        # Tests of one cell may overlap; then its row occurs several times.
        return sorted({row for rows in self._candidates(places) for row in rows if self._matches(row, places)})

    def _candidates(self, places: list[int]) -> list[list[int]]:
        found = []
        for columns, buckets in self._groups.items():
            bucket = buckets.get(tuple([places[column] for column in columns]))
            if bucket is None:
                continue
            if bucket.column is None:
                found.append(bucket.rows)
                continue
            node = len(bucket.ends) + bisect_right(bucket.ends, places[bucket.column]) - 1
            while node:
                if node in bucket.nodes:
                    found.append(bucket.nodes[node])
                node >>= 1
        return found

    def _matches(self, row: int, places: list[int]) -> bool:
        for column, place in zip(self._columns, places, strict=True):
            if not any(low <= place < high for low, high in column.ranges[row]):
                return False
        return True

    def _group(self, rows: int) -> None:
        ranges = [column.ranges for column in self._columns]
        for row in range(rows):
            columns, values = [], []
            for column, cells in enumerate(ranges):
                cell = cells[row]
                if len(cell) == 1 and cell[0][1] - cell[0][0] == 1:
                    columns.append(column)
                    values.append(cell[0][0])
            buckets = self._groups.setdefault(tuple(columns), {})
            place = tuple(values)
            if place in buckets:
                buckets[place].rows.append(row)
            else:
                buckets[place] = _Bucket([row])
        for fixed, buckets in self._groups.items():
            for bucket in buckets.values():
                if len(bucket.rows) > _FEW:
                    self._plant(bucket, [column for column in range(len(ranges)) if column not in fixed])

    def _plant(self, bucket: _Bucket, columns: list[int]) -> None:
        """Give the bucket a tree over the column that excludes rows most often."""
        excluding = [
            (sum(self._columns[column].ranges[row] is not _EVERYTHING for row in bucket.rows), -column)
            for column in columns
        ]
        if not excluding or max(excluding)[0] == 0:
            return
        bucket.column = -max(excluding)[1]
        ranges = self._columns[bucket.column].ranges
        bucket.ends = sorted({end for row in bucket.rows for both in ranges[row] for end in both})
        places = {end: len(bucket.ends) + place for place, end in enumerate(bucket.ends)}
        for row in bucket.rows:
            for low, high in ranges[row]:
                left, right = places[low], places[high]
                while left < right:
                    if left & 1:
                        bucket.nodes.setdefault(left, []).append(row)
                        left += 1
                    if right & 1:
                        right -= 1
                        bucket.nodes.setdefault(right, []).append(row)
                    left >>= 1
                    right >>= 1


class _Column:
    """One column: its values in order, and the ranges of places of each of its cells."""

    def __init__(self, name: str, type_: Type, cells: list[Any]) -> None:
        self.name = name
        plain = without_null(type_)
        self._members = {member: place for place, member in enumerate(plain.members)} if isinstance(plain, Enum) else {}
        read: dict[Any, Any] = {}
        tests = [test for cell in cells if cell is not None for test in (cell if isinstance(cell, list) else [cell])]
        for test in tests:
            for form in test.values():
                if form is not None and form not in read:
                    read[form] = self._ordered(from_json(plain, form))
        self._values: list[Any] = sorted(set(read.values()))
        self._points = {value: 2 * place for place, value in enumerate(self._values)}
        self._read = read
        known: dict[Any, tuple[tuple[int, int], ...]] = {}
        self.ranges = [_EVERYTHING if cell is None else self._cell(cell, known) for cell in cells]

    def place(self, value: Any) -> int:
        if value is None:
            return _NULL
        value = self._ordered(value)
        found = self._points.get(value)
        return 2 * bisect_left(self._values, value) - 1 if found is None else found

    def _ordered(self, value: Any) -> Any:
        """Return a value that Python orders as the language orders this one."""
        return self._members[value] if self._members else value

    def _cell(self, cell: Any, known: dict[Any, tuple[tuple[int, int], ...]]) -> tuple[tuple[int, int], ...]:
        if isinstance(cell, list):
            return tuple([self._test(test) for test in cell])
        written = tuple(cell.items())
        if written not in known:
            known[written] = (self._test(cell),)
        return known[written]

    def _test(self, test: dict[str, Any]) -> tuple[int, int]:
        if "is" in test:
            place = _NULL if test["is"] is None else self._at(test["is"])
            return place, place + 1
        low, high = _NULL + 1, 2 * len(self._values)
        if "from" in test:
            low = self._at(test["from"])
        elif "above" in test:
            low = self._at(test["above"]) + 1
        if "to" in test:
            high = self._at(test["to"]) + 1
        elif "below" in test:
            high = self._at(test["below"])
        return low, max(low, high)

    def _at(self, form: Any) -> int:
        return self._points[self._read[form]]


count_work("lookup", globals())
