"""Where the decision tables of a text are: their rows, columns and cells as YAML trees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vesper.language.syntax.yaml.edits import entry_of
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree

NOTES = ("annotation", "reason")
"""Keys of a row that no condition and no result is."""
DEFAULT = "otherwise"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the grid. `key` names it in changes: `in:amount`, `when`, `then`, `then:rate`, `reason`."""

    key: str
    name: str
    kind: str
    """`in` for cells, `when` for conditions, `out` for results, `note` for remarks."""
    declared: Tree | None = None
    """Its entry below `columns` or `outputs`."""

    @property
    def path(self) -> tuple[str, ...]:
        """Return the keys that lead from a row to the cell."""
        return tuple(self.key.split(":", 1))


@dataclass(frozen=True, slots=True)
class TableText:
    """A decision table as written."""

    index: int
    """Its position among the tables of the text."""
    name: Scalar
    place: str
    """`step`, `table` or `function`."""
    holder: Mapping
    """The mapping that has the rows: the step, its `parameters`, the table."""

    @property
    def rows(self) -> Tree:
        found = entry_of(self.holder, "rows")
        assert found is not None, "a table has rows"
        return found

    @property
    def listed(self) -> tuple[Tree, ...]:
        """Return the rows that are part of the text."""
        return self.rows.items if isinstance(self.rows, Sequence) else ()

    @property
    def hit(self) -> str:
        found = entry_of(self.holder, "hit")
        return found.text if isinstance(found, Scalar) else "first"

    @property
    def has_default(self) -> bool:
        return bool(self.listed) and entry_of(self.listed[-1], DEFAULT) is not None

    def columns(self) -> list[Column]:
        """Return the columns in the order of the grid: conditions, results, remarks."""
        declared = _entries(entry_of(self.holder, "columns"))
        used = (name for row in self.listed for name in _entries(entry_of(row, "in")))
        names = dict.fromkeys([*declared, *used])
        found = [Column(f"in:{name}", name, "in", declared.get(name)) for name in names]
        if any(entry_of(row, "when") is not None for row in self.listed):
            found.append(Column("when", "when", "when"))
        found += self._results()
        return found + [
            Column(name, name, "note") for name in NOTES if any(entry_of(row, name) is not None for row in self.listed)
        ]

    def _results(self) -> list[Column]:
        outputs = _entries(entry_of(self.holder, "outputs"))
        values = [value for row in self.listed if (value := result_of(row)) is not None]
        if self.hit == "count" and not values and not outputs:
            return []
        names = dict.fromkeys(outputs)
        if values and all(isinstance(value, Mapping) for value in values):
            names |= dict.fromkeys(name for value in values for name in _entries(value))
        elif len(outputs) < 2:
            name, declared = next(iter(outputs.items()), ("result", entry_of(self.holder, "type")))
            return [Column("then", name, "out", declared)]
        return [Column(f"then:{name}", name, "out", outputs.get(name)) for name in names]


def result_of(row: Tree) -> Tree | None:
    """Return the result of a row or of the default row."""
    return entry_of(row, "then") or entry_of(row, DEFAULT)


def cell_of(row: Tree, column: Column) -> Tree | None:
    """Return the tree of a cell; None where the row has none."""
    found: Tree | None = row
    for step, key in enumerate(column.path):
        found = (
            (result_of(found) if found is not None else None) if not step and key == "then" else entry_of(found, key)
        )
    return found


def find_tables(tree: Tree | None) -> list[TableText]:
    """Return the tables of a node or a library in the order of the text: steps, `tables`, functions."""
    found = sorted(_find(tree), key=lambda each: each[2].span.start)
    return [TableText(index, *each) for index, each in enumerate(found)]


def _find(tree: Tree | None) -> Iterator[tuple[Scalar, str, Mapping]]:
    for section, inner in (("tables", None), ("functions", "table")):
        listed = entry_of(tree, section)
        for name, declared in listed.entries if isinstance(listed, Mapping) else ():
            holder = declared if inner is None else entry_of(declared, inner)
            if isinstance(holder, Mapping) and entry_of(holder, "rows") is not None:
                yield name, "table" if inner is None else "function", holder
    yield from _find_steps(entry_of(tree, "flow"))


def _find_steps(tree: Tree | None) -> Iterator[tuple[Scalar, str, Mapping]]:
    operation = entry_of(tree, "operation")
    if isinstance(tree, Mapping) and isinstance(operation, Scalar) and operation.text == "decision_table":
        for holder in (tree, entry_of(tree, "parameters")):
            if isinstance(holder, Mapping) and entry_of(holder, "rows") is not None:
                name = entry_of(tree, "step")
                yield name if isinstance(name, Scalar) else operation, "step", holder
        return
    parts = tree.items if isinstance(tree, Sequence) else tuple(_entries(tree).values())
    for part in parts:
        yield from _find_steps(part)


def _entries(tree: Tree | None) -> dict[str, Tree]:
    return {key.text: value for key, value in tree.entries} if isinstance(tree, Mapping) else {}
