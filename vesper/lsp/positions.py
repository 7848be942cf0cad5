"""Positions of the Language Server Protocol: lines from 0, columns in UTF-16 code units."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types
from pygls import uris

from vesper.language.diagnostics.source import SourceFile, Span


def to_position(source: SourceFile, offset: int) -> types.Position:
    """Return the position of an offset in code points."""
    line, column = source.position(offset)
    start = offset - column + 1
    return types.Position(line - 1, _units(source.text[start:offset]))


def to_range(source: SourceFile, span: Span) -> types.Range:
    """Return the range of a span."""
    return types.Range(to_position(source, span.start), to_position(source, span.end))


def to_offset(source: SourceFile, position: types.Position) -> int:
    """Return the offset of a position; beyond the end of a line, the end of that line."""
    line = position.line + 1
    text = source.line_text(line)
    if line > source.position(len(source.text))[0]:
        return len(source.text)
    start = source.offset(line, 1)
    if text.isascii():
        return start + min(position.character, len(text))
    units = 0
    for column, character in enumerate(text):
        if units >= position.character:
            return start + column
        units += _units(character)
    return start + len(text)


def to_span(source: SourceFile, range_: types.Range) -> Span:
    """Return the span of a range."""
    return Span(to_offset(source, range_.start), to_offset(source, range_.end))


def uri_of(path: Path | str) -> str:
    """Return the URI of a file."""
    return str(uris.from_fs_path(str(path)))


def path_of(uri: str) -> Path | None:
    """Return the path of a URI; None for a document that is no file."""
    path = uris.to_fs_path(uri)
    return None if path is None else Path(path)


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
