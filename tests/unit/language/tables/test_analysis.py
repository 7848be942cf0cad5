"""Bounds of the analysis, and answers about rows that it does not decide. Random tables are in tests/proofs/tables."""

from __future__ import annotations

import time

from vesper.language.tables.analysis import EXCLUDED, UNDECIDED, Analysis, Box, Overlap
from vesper.language.tables.axis import Ranges, axis_of
from vesper.language.tables.cell_values import read_cell
from vesper.language.tables.witness import show_point
from vesper.values.types import DECIMAL, INTEGER, STRING, Type


def sets(types: list[Type], *texts: str) -> tuple[Ranges | None, ...]:
    values = [read_cell(text, type_) for text, type_ in zip(texts, types, strict=True)]
    return tuple(
        None if each is None else axis_of(type_).ranges(each) for each, type_ in zip(values, types, strict=True)
    )


def analysis(types: list[Type], *rows: tuple[str, ...] | tuple[tuple[str, ...], bool]) -> Analysis:
    boxes = []
    for number, row in enumerate(rows):
        texts, is_exact = row if isinstance(row[0], tuple) else (row, True)
        boxes.append(Box(number, sets(types, *texts), bool(is_exact)))
    return Analysis([axis_of(type_).domain for type_ in types], boxes)


def test_a_row_that_is_undecided_neither_closes_nor_shows_a_gap() -> None:
    assert analysis([INTEGER], ("< 5",), ((">= 5",), False)).find_gap() is UNDECIDED
    assert analysis([INTEGER], ("< 5",), (("-",), False)).find_gap() is UNDECIDED
    assert analysis([INTEGER], ("< 5",), ((">= 3",), False), (">= 4",)).find_gap() is EXCLUDED
    gap = analysis([INTEGER], ("< 5",), (("> 5",), False)).find_gap()
    assert gap not in (EXCLUDED, UNDECIDED)
    assert show_point(["n"], [INTEGER], gap) == "n = 5"  # type: ignore[arg-type]


def test_a_row_that_is_undecided_excludes_no_overlap() -> None:
    table = analysis([INTEGER], ("< 5",), (("[3..7]",), False), ("> 7",))
    assert table.find_overlap([0, 1, 2]) is UNDECIDED
    assert analysis([INTEGER], ("< 5",), (("[5..7]",), False)).find_overlap([0, 1]) is EXCLUDED


def test_rows_of_one_class_may_overlap() -> None:
    rows = (("< 5",), ("< 7",), ("> 6",))
    assert analysis([INTEGER], *rows[:2]).find_overlap(["a", "a"]) is EXCLUDED
    assert analysis([DECIMAL], *rows).find_overlap(["a", "a", "a"]) is EXCLUDED
    found = analysis([DECIMAL], *rows).find_overlap(["a", "a", "b"])
    assert isinstance(found, Overlap)
    assert (found.first, found.second) == (1, 2)
    assert analysis([DECIMAL], *rows).find_overlap(["a", "a", None]) is UNDECIDED


def test_integers_have_neighbours_and_decimals_none() -> None:
    assert analysis([INTEGER], ("<= 4",), (">= 5",)).find_gap() is EXCLUDED
    assert analysis([DECIMAL], ("<= 4",), (">= 5",)).find_gap() is not EXCLUDED


def test_the_budget_bounds_the_search() -> None:
    # Every pair of rows overlaps in all columns but one: no order of the columns separates them.
    types: list[Type] = [INTEGER] * 12
    rows = [
        tuple("-" if place != number % 12 else f"[{number}..{number + 500}]" for place in range(12))
        for number in range(400)
    ]
    before = time.process_time()
    found = Analysis(
        [axis_of(type_).domain for type_ in types],
        [Box(number, sets(types, *row), is_exact=True) for number, row in enumerate(rows)],
        budget=200_000,
    )
    assert found.find_unreached(len(rows)) is UNDECIDED
    assert time.process_time() - before < 5


def test_many_rows_of_two_columns() -> None:
    types: list[Type] = [STRING, DECIMAL]
    bands = ("< 10", "[10..20)", "[20..30)", ">= 30")
    boxes = [
        Box(4 * key + place, sets(types, f"k{key}", band)) for key in range(500) for place, band in enumerate(bands)
    ]
    domains = [axis_of(type_).domain for type_ in types]
    assert Analysis(domains, boxes, budget=40_000).find_overlap(list(range(2_000))) is EXCLUDED
    doubled = [*boxes, Box(2_000, sets(types, "k77", "15"))]
    overlap = Analysis(domains, doubled, budget=40_000).find_overlap(list(range(2_001)))
    assert isinstance(overlap, Overlap)
    assert (overlap.first, overlap.second) == (4 * 77 + 1, 2_000)
    assert show_point(["key", "amount"], types, overlap.point) == "key = 'k77', amount = 15"
