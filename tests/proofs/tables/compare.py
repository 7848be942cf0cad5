"""Comparison of a drawn table with its oracle: the analysis, and the values of every engine."""

from __future__ import annotations

from random import Random

from tests.proofs.tables.drawn import Table, Value
from vesper.compiler import compile_source
from vesper.engines.outcome import Returned
from vesper.engines.registry import ENGINES
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.source import SourceFile
from vesper.language.tables.analysis import UNDECIDED, Analysis, Box, Decision, Overlap, Point
from vesper.language.tables.axis import axis_of
from vesper.language.tables.cell_values import read_cell
from vesper.language.tables.model import LIST_HITS
from vesper.values.types import Type, declared_type

_FOUND = frozenset({Code.TABLE_GAP, Code.TABLE_OVERLAP})
MAX_POINTS = 40


def check_analysis(table: Table) -> dict[str, bool]:
    """Compare gap, overlap and unreached rows with the grid; return the answers."""
    types = [declared_type(column.type_text) for column in table.columns]
    axes = [axis_of(type_) for type_ in types]
    boxes = []
    for number, row in enumerate(table.rows):
        sets = [read_cell(text, type_) for text, type_ in zip(row.texts, types, strict=True)]
        ranges = tuple(None if each is None else axis.ranges(each) for each, axis in zip(sets, axes, strict=True))
        boxes.append(Box(number, ranges))
    analysis = Analysis([axis.domain for axis in axes], boxes)
    hits = [table.hits(point) for point in table.points()]
    gap, overlap = analysis.find_gap(), analysis.find_overlap(list(range(len(table.rows))))
    conflict = analysis.find_overlap([row.result for row in table.rows])
    unreached = analysis.find_unreached(len(table.rows))
    assert UNDECIDED not in (gap, overlap, conflict, unreached), "the budget is too small"
    has_gap, has_overlap = any(not each for each in hits), any(len(each) > 1 for each in hits)
    has_conflict = any(len({table.rows[row].result for row in each}) > 1 for each in hits)
    assert isinstance(gap, Decision) != has_gap, f"gap: {gap}, {describe(table)}"
    assert isinstance(overlap, Decision) != has_overlap, f"overlap: {overlap}, {describe(table)}"
    assert isinstance(conflict, Decision) != has_conflict, f"conflict: {conflict}, {describe(table)}"
    assert unreached == tuple(sorted({*range(len(table.rows))} - {each[0] for each in hits if each})), describe(table)
    if not isinstance(gap, Decision):
        assert table.hits(witness(gap, types)) == [], f"{gap} is no gap: {describe(table)}"
    for found in (overlap, conflict):
        if isinstance(found, Overlap):
            matched = table.hits(witness(found.point, types))
            assert {found.first, found.second} <= set(matched), f"{found} is no overlap: {describe(table)}"
    if isinstance(conflict, Overlap):
        assert table.rows[conflict.first].result != table.rows[conflict.second].result
    return {"gap": has_gap, "overlap": has_overlap, "conflict": has_conflict, "unreached": unreached != ()}


def witness(point: Point, types: list[Type]) -> tuple[Value, ...]:
    """Return the values of a point."""
    found = []
    for each, type_ in zip(point, types, strict=True):
        is_known, value = axis_of(type_).example(each)
        assert is_known, f"no value in {each} of {type_}"
        found.append(value)
    return tuple(found)


def describe(table: Table) -> str:
    columns = [f"{column.name}: {column.type_text}" for column in table.columns]
    return f"{columns} {[(row.texts, row.result) for row in table.rows]}"


# -- the whole front end, and the engines ---------------------------------------------------------


def check_values(table: Table, hit: str, has_default: bool, random: Random) -> int:
    """Compare the diagnostics of a node and the values of every engine with the oracle; return the runs."""
    text = write_node(table, hit, has_default)
    node, bag = compile_source(SourceFile("drawn_v1.vsp", text))
    found = {each.code for each in bag.sorted()} & _FOUND
    hits = [table.hits(point) for point in table.points()]
    has_gap = any(not each for each in hits) and not has_default and hit in _NEEDS_HIT
    has_overlap = hit == "unique" and any(len(each) > 1 for each in hits)
    if hit == "any":
        has_overlap = any(len({table.rows[row].result for row in each}) > 1 for each in hits)
    expected = {Code.TABLE_GAP} if has_gap else set()
    expected |= {Code.TABLE_OVERLAP} if has_overlap else set()
    assert found == expected, f"{hit}: {found}, not {expected}\n{text}"
    if node is None:
        assert hit in ("unique", "any"), f"{[str(each) for each in bag.sorted()]}\n{text}"
        assert expected, f"{[str(each) for each in bag.sorted()]}\n{text}"
        return 0
    points = list(table.points())
    chosen = random.sample(points, min(len(points), MAX_POINTS))
    programs = {name: engine.load(node) for name, engine in ENGINES.items()}
    for point in chosen:
        wanted = expected_value(table, hit, has_default, point)
        inputs = {column.name: value for column, value in zip(table.columns, point, strict=True)}
        for name, program in programs.items():
            outcome = program.call(inputs)
            where = f"{name}: {outcome}, not {wanted} for {inputs}\n{text}"
            assert isinstance(outcome, Returned), where
            assert outcome.value["r"] == wanted, where
    return len(chosen) * len(programs)


_NEEDS_HIT = ("first", "unique", "any", "priority", "min", "max")
PRIORITIES = ("high", "middle", "low", "none")


def expected_value(table: Table, hit: str, has_default: bool, point: tuple[Value, ...]) -> Value:
    """Return the value of the table by the definition of its hit policy."""
    results = [table.rows[row].result for row in table.hits(point)]
    is_ranked = hit in ("priority", "output_order")
    if is_ranked:
        results.sort()
    if not results and has_default:
        results = [3]
    values = [PRIORITIES[each] for each in results] if is_ranked else results
    match hit:
        case "sum":
            return sum(results)
        case "count":
            return len(results)
        case "min" | "max":
            return (min if hit == "min" else max)(results) if results else None
        case _ if hit in LIST_HITS:
            return values
        case _:
            return values[0] if values else None


def write_node(table: Table, hit: str, has_default: bool) -> str:
    """Return a node whose output is the value of the table."""
    is_ranked = hit in ("priority", "output_order")
    one = f"enum[{', '.join(PRIORITIES)}]" if is_ranked else "integer"
    type_ = f"array<{one}>" if hit in LIST_HITS else "integer" if hit in ("sum", "count") else f"optional<{one}>"
    lines = ["node_id: drawn_v1", "type: function", "intent: Test", "inputs:"]
    lines += [f"  {column.name}: {column.type_text}" for column in table.columns]
    lines += ["outputs:", "  success:", f"    r: {type_}", "flow:", "  - step: r", "    operation: decision_table"]
    lines += [f"    hit: {hit}", "    outputs:", f"      x: {one}", "    rows:"]
    for row in table.rows:
        cells = [
            f"{column.name}: '{text.replace(chr(39), chr(39) * 2)}'"
            for column, text in zip(table.columns, row.texts, strict=True)
        ]
        result = PRIORITIES[row.result] if is_ranked else row.result
        lines.append(f"      - {{in: {{{', '.join(cells)}}}, then: {result}}}")
    if has_default:
        lines.append(f"      - {{otherwise: {'none' if is_ranked else 3}}}")
    lines += ["  - operation: return", "    success: [r]", ""]
    return "\n".join(lines)
