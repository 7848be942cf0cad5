"""Decision tables as Markdown, for review."""

from __future__ import annotations

from collections.abc import Sequence

from vesper.importers.sheets.layout import lines_of_table
from vesper.importers.sheets.model import SheetTable


def markdown_of(title: str, tables: Sequence[SheetTable]) -> str:
    """Return a page with every table under its name."""
    parts = [f"# {title}"]
    for table in tables:
        header, *rows = lines_of_table(table)
        lines = [_line(header), "|" + "---|" * len(header), *map(_line, rows)]
        parts.append(f"## {table.name}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_cell(text) for text in cells) + " |"


def _cell(text: str) -> str:
    for character in "\\`*_<>[]|":
        text = text.replace(character, f"\\{character}")
    return "<br>".join(text.splitlines())
