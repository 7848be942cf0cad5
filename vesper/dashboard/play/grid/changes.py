"""Changes of a decision table as edits of its text: unchanged parts keep their bytes.

Each change is proved before it is returned: the new text is read again, and its tree must be the old one with this
change and no other. A table whose columns are aligned stays aligned.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from vesper.dashboard.play.grid.layout import DEFAULT, NOTES, Column, TableText, cell_of, find_tables, result_of
from vesper.dashboard.play.grid.row_text import (
    IN_TEXT,
    inverse_cell,
    is_same,
    plain,
    plain_without,
    read_row,
    read_value,
    without_cell,
    write_cell,
)
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.syntax.yaml.edits import (
    Edit,
    EditRejected,
    apply_edits,
    entry_of,
    insert_entry,
    insert_item,
    is_flow,
    item_span,
    line_start,
    move_item,
    newline_of,
    remove_entry,
    remove_item,
    write_scalar,
)
from vesper.language.syntax.yaml_tree import Mapping as Entries
from vesper.language.syntax.yaml_tree import Scalar, Sequence, Tree
from vesper.language.tables.model import HITS
from vesper.lsp.features.knowledge import read_tree
from vesper.lsp.features.tables import align_table

Change: TypeAlias = Mapping[str, Any]
MAX_CELL_CHARACTERS = 4_000
_MAX_PADDING = 1_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_PADDING = re.compile(r"[,{] {2,}[^ }]|: {2,}[^ ]")


@dataclass(frozen=True, slots=True)
class Edited:
    """A text after a change, and the change that takes it back."""

    text: str
    inverse: dict[str, Any]


@dataclass(slots=True)
class _TableEdit:
    """Edits of the text, the holder of the table as plain data afterwards, and the inverse."""

    edits: list[Edit]
    expected: dict[str, Any]
    inverse: dict[str, Any] = field(default_factory=dict)


def edit_table(text: str, index: int, change: Change) -> Edited:
    """Return the text after a change of one of its tables. Raises `EditRejected`."""
    is_ended = text.endswith("\n")
    whole = text if is_ended else text + newline_of(text)
    source, tree = read_tree(SourceFile("", whole))
    tables = find_tables(tree)
    if tree is None or not 0 <= index < len(tables):
        raise EditRejected("the text has no such table any more: read the tables again")
    editor = _Editor(whole, tables[index])
    action: Callable[[_Editor, Change], _TableEdit] | None = _ACTIONS.get(str(change.get("kind")))
    if action is None:
        raise EditRejected(f"there is no change `{change.get('kind')}`: use one of {', '.join(_ACTIONS)}")
    if not editor.rows and not editor.is_empty:
        raise EditRejected("the rows of this table are in a file: change the file")
    is_aligned = change["align"] is True if "align" in change else _is_aligned(source, tree, editor)
    done = action(editor, change)
    edited = apply_edits(whole, done.edits)
    expected = plain(tree, {id(editor.table.holder): done.expected})
    edited_source, edited_tree = _check_change(edited, expected)
    if is_aligned or change.get("kind") == "align":
        rows = find_tables(edited_tree)[index].rows
        edits = align_table(edited_source, edited_tree, rows.span)
        if edits:
            edited = apply_edits(edited, edits)
            _check_change(edited, expected)
    return Edited(edited if is_ended else edited.removesuffix(newline_of(text)), {**done.inverse, "align": is_aligned})


def _check_change(text: str, expected: Any) -> tuple[SourceFile, Tree]:
    source, tree = read_tree(SourceFile("", text))
    if tree is None:
        raise EditRejected("the text would be no YAML any more, or too large: a document has at most 8,192 values")
    if not is_same(expected, plain(tree)):
        raise EditRejected(f"this change would change more than the table: {IN_TEXT}")
    return source, tree


def _is_aligned(source: SourceFile, tree: Tree, editor: _Editor) -> bool:
    rows = [source.slice(each.span) for each in editor.rows]
    is_padded = any(_PADDING.search(each) for each in rows) and not any("\n" in each for each in rows)
    return is_padded and not align_table(source, tree, editor.table.rows.span)


# -- changes --------------------------------------------------------------------------------------


class _Editor:
    """One table, ready for a change."""

    def __init__(self, text: str, table: TableText) -> None:
        self.text = text
        self.table = table
        self.rows = table.listed
        self.is_empty = isinstance(table.rows, Sequence) and not table.rows.items
        self.columns = table.columns()
        self.data: dict[str, Any] = plain(table.holder)

    @property
    def items(self) -> Sequence:
        assert isinstance(self.table.rows, Sequence)
        return self.table.rows

    def column(self, key: object) -> Column:
        found = next((each for each in self.columns if each.key == key), None)
        if found is None and key in ("when", *NOTES):
            return Column(str(key), str(key), "when" if key == "when" else "note")
        if found is None:
            raise EditRejected(f"the table has no column `{key}`")
        return found

    def row(self, change: Change, key: str = "row", is_end_allowed: bool = False) -> int:
        number = change.get(key)
        last = len(self.rows) - (0 if is_end_allowed else 1)
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= last:
            raise EditRejected("the table has no such row any more: read the tables again")
        return number

    def span(self, row: int) -> Span:
        return item_span(self.text, self.items, row, with_comments=False)

    def cells(self, given: Mapping[str, Any]) -> list[tuple[Column, str]]:
        return [(self.column(key), _checked_text(text)) for key, text in given.items()]

    # -- cells ------------------------------------------------------------------------------------

    def set(self, change: Change) -> _TableEdit:
        """Set cells: `{cells: [{row, column, text}]}`, or `{row, column, text}` for one. The text null removes it."""
        listed = change.get("cells", [change])
        if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
            raise EditRejected("`cells` is a list of `{row, column, text}`")
        rows: dict[int, str] = {}
        undone: list[dict[str, Any]] = []
        for each in listed:
            number, column = self.row(each), self.column(each.get("column"))
            value = None if each.get("text") is None else _checked_text(each.get("text"))
            source = each.get("source")
            if value is None and column.kind == "out" and self.table.hit != "count":
                raise EditRejected("a row needs a result: change it, or delete the row")
            if column.kind in ("in", "when") and entry_of(self.rows[number], DEFAULT) is not None:
                raise EditRejected("the default row has no conditions: insert a row above it")
            before = rows.get(number)
            if before is None:
                span = self.span(number)
                before = self.text[span.start : span.end]
            padding = each.get("padding")
            rows[number] = write_cell(
                before,
                self.columns,
                column,
                value,
                None if source is None else str(source),
                padding if isinstance(padding, int) and 0 < padding <= _MAX_PADDING else None,
            )
            undone.insert(0, {"row": number, "column": column.key, **inverse_cell(before, column)})
            self._expect(number, column, value, source)
        edits = [(self.span(number), text) for number, text in rows.items()]
        return _TableEdit(edits, self.data, {"kind": "set", "cells": undone})

    def _expect(self, number: int, column: Column, value: str | None, source: object = None) -> None:
        row = self.data["rows"][number]
        if value is None:
            self.data["rows"][number] = plain_without(row, column)
            return
        key = DEFAULT if column.path[0] == "then" and DEFAULT in row else column.path[0]
        holder, name = (row, key) if len(column.path) == 1 else (row.setdefault(key, {}), column.name)
        if source is not None or isinstance(holder.get(name), list | dict):
            holder[name] = read_value(str(source) if source is not None else value)
        else:
            holder[name] = (value, None)

    # -- rows -------------------------------------------------------------------------------------

    def insert(self, change: Change) -> _TableEdit:
        """Insert a row: `{row, cells: {column: text}}`; other cells match everything, results are those above."""
        at = self.row(change, is_end_allowed=True)
        if at == len(self.rows) and self.table.has_default:
            raise EditRejected("rows below the default would never be reached: insert it above")
        source = change.get("source")
        if source is None:
            source = self._new_row(at, self.cells(change.get("cells") or {}))
        return self._insert_row_text(at, str(source))

    def _insert_row_text(self, at: int, written: str) -> _TableEdit:
        self.data["rows"].insert(at, plain(read_row(written)))
        return _TableEdit([insert_item(self.text, self.items, at, written)], self.data, {"kind": "delete", "row": at})

    def _new_row(self, at: int, cells: list[tuple[Column, str]]) -> str:
        listed = self.rows[:-1] if self.table.has_default else self.rows
        if listed:
            span = self.span(max(0, at - 1))
            written, row = self.text[span.start : span.end], read_row(self.text[span.start : span.end])
            given = {column.key for column, _ in cells}
            for column in self.columns:
                has_cells = entry_of(row, "in") is not None
                if column.key in given:
                    continue
                if column.kind == "in" and cell_of(row, column) is not None:
                    written = write_cell(written, self.columns, column, "-")
                elif column.kind == "note" or (column.kind == "when" and has_cells):
                    written = write_cell(written, self.columns, column, None)
                elif column.kind == "when":
                    written = write_cell(written, self.columns, column, "false")
        else:
            result = result_of(self.rows[0]) if self.rows else None
            then = "" if result is None else self.text[result.span.start : result.span.end]
            then = "null" if "\n" in then or not then else then
            written = self._as_item(f"{{when: false, then: {then}}}")
        for column, text in cells:
            written = write_cell(written, self.columns, column, text)
        row = read_row(written)
        is_new_condition = any(column.kind in ("in", "when") for column, _ in cells)
        when = entry_of(row, "when")
        if is_new_condition and isinstance(when, Scalar) and when.text == "false" and entry_of(row, "in") is not None:
            written = write_cell(written, self.columns, self.column("when"), None)
        return written

    def _as_item(self, written: str) -> str:
        if is_flow(self.text, self.items):
            return written
        start = self.items.span.start
        return f"{' ' * (start - line_start(self.text, start))}- {written}{newline_of(self.text)}"

    def delete(self, change: Change) -> _TableEdit:
        """Delete a row with its comments: `{row}`."""
        at = self.row(change)
        if len(self.rows) == 1:
            raise EditRejected("a table needs a row: change this one, or delete the table in the text")
        del self.data["rows"][at]
        span = item_span(self.text, self.items, at)
        source = self.text[span.start : span.end]
        return _TableEdit(
            [remove_item(self.text, self.items, at)], self.data, {"kind": "insert", "row": at, "source": source}
        )

    def duplicate(self, change: Change) -> _TableEdit:
        """Insert a copy below a row: `{row}`."""
        at = self.row(change)
        if at == len(self.rows) - 1 and self.table.has_default:
            raise EditRejected("a table has one default row")
        span = self.span(at)
        return self._insert_row_text(at + 1, self.text[span.start : span.end])

    def move(self, change: Change) -> _TableEdit:
        """Move a row with its comments: `{row, to}`."""
        at, to = self.row(change), self.row(change, "to")
        if self.table.has_default and len(self.rows) - 1 in (at, to):
            raise EditRejected("the default row is the last one")
        self.data["rows"].insert(to, self.data["rows"].pop(at))
        edits = [] if at == to else move_item(self.text, self.items, at, to)
        return _TableEdit(edits, self.data, {"kind": "move", "row": to, "to": at})

    def set_default(self, change: Change) -> _TableEdit:
        """Set the results of the default row, or remove it: `{cells: {column: text}}`, `{cells: null}`."""
        given, last = change.get("cells"), len(self.rows) - 1
        if given is None:
            if not self.table.has_default:
                raise EditRejected("the table has no default row")
            return self.delete({"row": last})
        cells = self.cells(given)
        if not cells or any(column.kind != "out" for column, _ in cells):
            raise EditRejected("the default row has results only")
        if self.table.has_default:
            return self.set({"cells": [{"row": last, "column": key, "text": text} for key, text in given.items()]})
        if len(cells[0][0].path) == 1:
            written = write_scalar(cells[0][1], True)
        else:
            written = f"{{{', '.join(f'{each.name}: {write_scalar(text, True)}' for each, text in cells)}}}"
        return self._insert_row_text(last + 1, self._as_item(f"{{{DEFAULT}: {written}}}"))

    # -- columns ----------------------------------------------------------------------------------

    def add_column(self, change: Change) -> _TableEdit:
        """Add a column: `{name, cell}` for cells, with `value` an expression; `{name, type, cell}` for results."""
        name, type_, value = (change.get(key) for key in ("name", "type", "value"))
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise EditRejected("a column needs a name: letters, digits and `_`")
        is_result = type_ is not None
        if is_result and not all(each.key.startswith("then:") for each in self.columns if each.kind == "out"):
            raise EditRejected(f"the results of this table are no mappings with names: {IN_TEXT}")
        column = Column(f"then:{name}" if is_result else f"in:{name}", name, "out" if is_result else "in")
        if any(each.key == column.key for each in self.columns):
            raise EditRejected(f"the table has a column `{name}` already")
        if len(self.rows) == self.table.has_default:
            raise EditRejected("the table has no row for a cell: insert one first")
        edits: list[Edit] = []
        declared = type_ if is_result else value
        section = "outputs" if is_result else "columns"
        if declared is not None and (not is_result or entry_of(self.table.holder, section) is not None):
            edits.append(self._declare(section, name, _checked_text(declared)))
        self.columns.append(column)
        cell = _checked_text(change.get("cell", "null" if is_result else "-"))
        edits += self._in_all_rows(lambda text: write_cell(text, self.columns, column, cell), is_result)
        for number, row in enumerate(self.data["rows"]):
            if is_result or DEFAULT not in row:
                self._expect(number, column, cell)
        return _TableEdit(edits, self.data, {"kind": "remove_column", "column": column.key})

    def _declare(self, section: str, name: str, value: str) -> Edit:
        holder = self.table.holder
        found = entry_of(holder, section)
        self.data.setdefault(section, {})[name] = (value, None)
        if isinstance(found, Entries):
            written = write_scalar(value, is_flow(self.text, found))
            return insert_entry(self.text, found, len(found.entries), name, written)
        written = f"{{{name}: {write_scalar(value, True)}}}"
        return insert_entry(self.text, holder, self._header_place(), section, written)

    def _header_place(self) -> int:
        """Return the position of a new key: before the rows and the keys that describe their columns."""
        keys = [key.text for key, _ in self.table.holder.entries]
        return next(n for n, key in enumerate(keys) if key in ("columns", "outputs", "type", "rows"))

    def _in_all_rows(self, write: Callable[[str], str], with_default: bool) -> list[Edit]:
        edits: list[Edit] = []
        for number, row in enumerate(self.rows):
            if with_default or entry_of(row, DEFAULT) is None:
                span = self.span(number)
                edits.append((span, write(self.text[span.start : span.end])))
        return edits

    def remove_column(self, change: Change) -> _TableEdit:
        """Remove a column with all of its cells: `{column}`."""
        column = self.column(change.get("column"))
        if column.kind == "out" and (column.key == "then" or len([c for c in self.columns if c.kind == "out"]) == 1):
            raise EditRejected("a table needs a result")
        edits = self._in_all_rows(lambda text: without_cell(text, column), column.kind != "in")
        self.data["rows"] = [plain_without(row, column) for row in self.data["rows"]]
        for section in ("columns", "outputs") if column.declared is not None else ():
            listed = entry_of(self.table.holder, section)
            if section == ("columns" if column.kind == "in" else "outputs") and isinstance(listed, Entries):
                del self.data[section][column.name]
                holder, name = (self.table.holder, section) if len(listed.entries) == 1 else (listed, column.name)
                if holder is not listed:
                    del self.data[section]
                at = next(n for n, (key, _) in enumerate(holder.entries) if key.text == name)
                edits.append(remove_entry(self.text, holder, at))
        return _TableEdit(edits, self.data, {"kind": "add_column", "name": column.name})

    # -- the table --------------------------------------------------------------------------------

    def set_hit(self, change: Change) -> _TableEdit:
        """Set the hit policy, or remove it: `{hit}`, `{hit: null}`."""
        hit, holder = change.get("hit"), self.table.holder
        if hit is not None and hit not in HITS:
            raise EditRejected(f"there is no hit policy `{hit}`: use one of {', '.join(HITS)}")
        at = next((n for n, (key, _) in enumerate(holder.entries) if key.text == "hit"), None)
        before = None if at is None else self.data["hit"][0]
        edits: list[Edit] = []
        if hit is None:
            edits += [] if at is None else [remove_entry(self.text, holder, at)]
            self.data.pop("hit", None)
        else:
            self.data["hit"] = (hit, None)
            if at is None:
                edits.append(insert_entry(self.text, holder, self._header_place(), "hit", hit))
            else:
                edits.append((holder.entries[at][1].span, hit))
        return _TableEdit(edits, self.data, {"kind": "set_hit", "hit": before})

    def align(self, change: Change) -> _TableEdit:
        """Align the columns of the rows, where each row is on one line."""
        return _TableEdit([], self.data, {"kind": "align"})


def _checked_text(text: object) -> str:
    if not isinstance(text, str) or len(text) > MAX_CELL_CHARACTERS:
        raise EditRejected(f"a cell is a text of at most {MAX_CELL_CHARACTERS:,} characters")
    return text.strip()


_ACTIONS: dict[str, Callable[[_Editor, Change], _TableEdit]] = {
    each.__name__: each
    for each in (
        _Editor.set, _Editor.insert, _Editor.delete, _Editor.move, _Editor.duplicate, _Editor.add_column,
        _Editor.remove_column, _Editor.set_hit, _Editor.set_default, _Editor.align,
    )
}  # fmt: skip
