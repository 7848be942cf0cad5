"""One row of a table as text: its cells are written, removed and read back.

Trees become plain data here, so that they can be compared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from vesper.dashboard.play.grid.layout import DEFAULT, NOTES, Column, cell_of
from vesper.language.syntax.yaml.edits import (
    EditRejected,
    apply_edits,
    entry_of,
    insert_entry,
    is_flow,
    read_part,
    remove_entry,
    write_scalar,
)
from vesper.language.syntax.yaml_tree import Mapping as Entries
from vesper.language.syntax.yaml_tree import Scalar, Sequence, Tree

IN_TEXT = "edit it in the text"
_GAP = re.compile(r"(\}*,)( +)")
_ROW_ORDER = ("in", "when", "then", DEFAULT, *NOTES)


# -- plain data of trees --------------------------------------------------------------------------


def plain(tree: Tree, replaced: Mapping[int, Any] | None = None) -> Any:
    """Return a tree without spans: dicts, lists, and scalars as text and style. `replaced` has other values by id."""
    if replaced and id(tree) in replaced:
        return replaced[id(tree)]
    match tree:
        case Scalar():
            return tree.text, tree.style
        case Sequence():
            return [plain(each, replaced) for each in tree.items]
        case Entries():
            return {key.text: plain(value, replaced) for key, value in tree.entries}


def is_same(expected: Any, found: Any) -> bool:
    """Return whether plain data is as expected; an expected scalar without a style has any."""
    match expected, found:
        case dict(), dict():
            return expected.keys() == found.keys() and all(is_same(each, found[key]) for key, each in expected.items())
        case list(), list():
            return len(expected) == len(found) and all(map(is_same, expected, found))
        case (str() as text, None), (str() as other, _):
            return text == other
        case _:
            return bool(expected == found)


def _without_styles(data: Any) -> Any:
    match data:
        case dict():
            return {key: _without_styles(each) for key, each in data.items()}
        case list():
            return [_without_styles(each) for each in data]
        case _:
            return data[0], None


def read_value(written: str) -> Any:
    """Return a value as written in a flow mapping, as plain data of any style."""
    tree = read_part(f"{{k: {written}}}")
    if not isinstance(tree, Entries) or [key.text for key, _ in tree.entries] != ["k"]:
        raise EditRejected(f"`{written}` is no YAML value")
    return _without_styles(plain(tree.entries[0][1]))


# -- one row --------------------------------------------------------------------------------------


def read_row(text: str) -> Entries:
    tree = read_part(text)
    row = tree.items[0] if isinstance(tree, Sequence) and len(tree.items) == 1 else tree
    if not isinstance(row, Entries):
        raise EditRejected(f"this row is no mapping: {IN_TEXT}")
    return row


def write_cell(
    text: str,
    columns: list[Column],
    column: Column,
    value: str | None,
    source: str | None = None,
    padding: int | None = None,
) -> str:
    """Return the text of a row with another cell; None removes it.

    `source` is the cell as YAML, and `padding` the number of blanks behind it, where they are known.
    """
    if value is None:
        return without_cell(text, column)
    row = read_row(text)
    key = DEFAULT if column.path[0] == "then" and entry_of(row, DEFAULT) is not None else column.path[0]
    holder, name, order = row, key, list(_ROW_ORDER)
    if len(column.path) == 2:
        inner = entry_of(row, key)
        if inner is None:
            written = f"{{{column.name}: {source or write_scalar(value, True)}}}"
            return apply_edits(text, [insert_entry(text, row, _place(row, key, order), key, written)])
        if not isinstance(inner, Entries):
            raise EditRejected(f"the result of this row is no mapping of results: {IN_TEXT}")
        holder, name = inner, column.name
        order = [each.name for each in columns if each.kind == column.kind]
    at = next((n for n, (word, _) in enumerate(holder.entries) if word.text == name), None)
    if at is None:
        written = source or write_scalar(value, is_flow(text, holder))
        return apply_edits(text, [insert_entry(text, holder, _place(holder, name, order), name, written)])
    old = holder.entries[at][1]
    old_text = text[old.span.start : old.span.end]
    if source is None:
        source = _cell_text(text, old, value, is_flow(text, holder))
    gap = " " if text[old.span.start - 1 : old.span.start] == ":" else ""
    return (
        text[: old.span.start]
        + gap
        + source
        + _adjust_padding(text[old.span.end :], len(source) - len(old_text), padding)
    )


def _adjust_padding(rest: str, growth: int, padding: int | None) -> str:
    """Return the text after a cell with adjusted padding: the next key stays in its column."""
    found = _GAP.match(rest)
    if found is None or (padding is None and len(found[2]) < 2):
        return rest
    width = max(1, len(found[2]) - growth) if padding is None else padding
    return found[1] + " " * width + rest[found.end() :]


def _cell_text(text: str, old: Tree, value: str, in_flow: bool) -> str:
    if not isinstance(old, Scalar):
        if not is_flow(text, old) or "\n" in text[old.span.start : old.span.end]:
            raise EditRejected(f"this cell has several lines: {IN_TEXT}")
        return value
    if old.style in ("|", ">"):
        raise EditRejected(f"this cell has several lines: {IN_TEXT}")
    return write_scalar(value, in_flow, old.style)


def _place(holder: Entries, name: str, order: list[str]) -> int:
    """Return the position of a new entry: before the first one that follows it in the order."""
    rank = order.index(name) if name in order else len(order)
    after = (n for n, (key, _) in enumerate(holder.entries) if key.text in order and order.index(key.text) > rank)
    return next(after, len(holder.entries))


def inverse_cell(row_text: str, column: Column) -> dict[str, Any]:
    found = cell_of(read_row(row_text), column)
    if found is None:
        return {"text": None}
    source = row_text[found.span.start : found.span.end]
    padding = _GAP.match(row_text, found.span.end)
    kept = {} if padding is None else {"padding": len(padding[2])}
    return {"text": found.text if isinstance(found, Scalar) else source, "source": source, **kept}


def without_cell(text: str, column: Column) -> str:
    """Return a row without a cell.

    A mapping of cells is removed with its last cell if the row has a `when`; otherwise it becomes `{}`.
    """
    row = read_row(text)
    key = DEFAULT if column.path[0] == "then" and entry_of(row, DEFAULT) is not None else column.path[0]
    holder: Entries = row
    if len(column.path) == 2:
        inner = entry_of(row, key)
        if not isinstance(inner, Entries):
            return text
        if len(inner.entries) > 1 or (inner.entries and inner.entries[0][0].text != column.name):
            holder, key = inner, column.name
        elif inner.entries and entry_of(row, "when") is None:
            return text[: inner.span.start].rstrip() + " {}" + text[inner.span.end :]
    at = next((n for n, (word, _) in enumerate(holder.entries) if word.text == key), None)
    if at is None:
        return text
    if key == "when" and entry_of(row, "in") is None:
        raise EditRejected("a row has no other condition than this one: give it cells first")
    return apply_edits(text, [remove_entry(text, holder, at)])


def plain_without(row: dict[str, Any], column: Column) -> dict[str, Any]:
    key = DEFAULT if column.path[0] == "then" and DEFAULT in row else column.path[0]
    if len(column.path) == 1:
        return {name: each for name, each in row.items() if name != key}
    inner = row.get(key)
    if not isinstance(inner, dict) or column.name not in inner:
        return row
    left = {name: each for name, each in inner.items() if name != column.name}
    return {name: each for name, each in (row | {key: left}).items() if left or name != key or "when" not in row}
