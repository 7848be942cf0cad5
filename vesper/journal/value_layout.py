"""Values as text, for commands and pages. They are never cut.

A value is on one line if it fits there, otherwise in rows, tables and lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from vesper.language.diagnostics.excerpt import display_width
from vesper.values.model import printable, show


def lay_out(rows: Mapping[str, object], columns: int, indent: str = "  ") -> list[str]:
    """Align names and values. A value that does not fit on the line follows below its name."""
    width = max((display_width(name) for name in rows), default=0)
    lines = []
    for name, value in rows.items():
        text = inline(value, is_top=True)
        if is_flat(value) or len(indent) + width + 2 + display_width(text) <= columns:
            lines.append(f"{indent}{pad(name, width)}  {text}".rstrip())
        else:
            lines += [f"{indent}{name}", *_nested_lines(value, columns, indent + "  ")]
    return lines


def inline(value: object, is_top: bool = False) -> str:
    """Render a value on one line; a text at the top level has no quotes."""
    match value:
        case str() if is_top:
            return printable(value)
        case list() | tuple():
            return f"[{', '.join(inline(item) for item in value)}]"
        case set() | frozenset():
            return f"{{{', '.join(inline(item) for item in _sort(value))}}}"
        case dict():
            return f"{{{', '.join(f'{_key(key)}: {inline(item)}' for key, item in value.items())}}}"
        case _:
            return show(value)


def is_flat(value: object) -> bool:
    """Return whether a value has no parts."""
    return not isinstance(value, dict | list | tuple | set | frozenset) or not value


def pad(text: str, width: int, is_number: bool = False) -> str:
    gap = " " * (width - display_width(text))
    return gap + text if is_number else text + gap


def _nested_lines(value: object, columns: int, indent: str) -> list[str]:
    if isinstance(value, dict):
        return lay_out({_key(key): item for key, item in value.items()}, columns, indent)
    assert isinstance(value, list | tuple | set | frozenset)
    items: Sequence[object] = _sort(value) if isinstance(value, set | frozenset) else value
    return _table(items, columns, indent) or [line for item in items for line in _item(item, columns, indent)]


def _item(item: object, columns: int, indent: str) -> list[str]:
    text = inline(item)
    if is_flat(item) or len(indent) + 2 + display_width(text) <= columns:
        return [f"{indent}- {text}"]
    first, *rest = _nested_lines(item, columns, indent + "  ")
    return [f"{indent}- {first.lstrip()}", *rest]


def _table(items: Sequence[object], columns: int, indent: str) -> list[str] | None:
    """Render records with the same flat fields as a table. None for other values, or if it is too wide."""
    records = [item for item in items if isinstance(item, dict) and all(is_flat(each) for each in item.values())]
    if len(records) < 2 or len(records) < len(items) or any(list(each) != list(records[0]) for each in records):
        return None
    names = list(records[0])
    cells = [[inline(record[name], is_top=True) for name in names] for record in records]
    titles = [_key(name) for name in names]
    widths = [max(map(display_width, column)) for column in zip(titles, *cells, strict=True)]
    if not names or len(indent) + sum(widths) + 2 * (len(widths) - 1) > columns:
        return None
    numeric = [all(_is_number(record[name]) for record in records) for name in names]
    rows = [
        "  ".join(pad(text, width, right) for text, width, right in zip(row, widths, numeric, strict=True))
        for row in [titles, *cells]
    ]
    return [f"{indent}{row}".rstrip() for row in rows]


def _is_number(value: object) -> bool:
    return isinstance(value, int | Decimal | float) and not isinstance(value, bool)


def _key(key: object) -> str:
    return printable(key) if isinstance(key, str) else show(key)


def _sort(members: set[object] | frozenset[object]) -> list[object]:
    """Sort the members of a set. They have one type, which Python orders as the language does."""
    return sorted(members)  # type: ignore[type-var]
