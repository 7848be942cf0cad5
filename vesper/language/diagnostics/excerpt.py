"""Excerpts of source files with marked spans."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from vesper.language.diagnostics.diagnostic import Label
from vesper.language.diagnostics.source import SourceFile

_TAB_WIDTH = 4
_MAX_LINE = 160
_MAX_COLUMNS = 2 * _MAX_LINE


def render_excerpt(
    source: SourceFile, title: str, primary: Label, secondary: Sequence[Label] = (), footer: Sequence[str] = ()
) -> str:
    """Return a title, the location, the lines with carets under the spans, and the footer."""
    line, column = source.position(primary.span.start)
    marks = [(primary, "^"), *((label, "-") for label in secondary)]
    numbered = sorted((source.position(label.span.start)[0], index) for index, (label, _) in enumerate(marks))
    gutter = " " * len(str(numbered[-1][0]))
    out = [title, f"{gutter}--> {source.path}:{line}:{column}"]
    if source.text:
        out.append(f"{gutter} |")
        last_line = None
        for number, index in numbered:
            label, sign = marks[index]
            if number != last_line:
                if last_line is not None and number > last_line + 1:
                    out.append("...")
                out.append(f"{number:>{len(gutter)}} | {display_line(source.line_text(number))}".rstrip())
                last_line = number
            out.append(f"{gutter} | {_underline(source, label, sign)}".rstrip())
    if footer:
        out.append(f"{gutter} |")
        out += [f"{gutter} = {line}" for line in footer]
    return "\n".join(out)


def _underline(source: SourceFile, label: Label, sign: str) -> str:
    line, column = source.position(label.span.start)
    text = source.line_text(line)
    before = display_width(display_line(text[: column - 1]))
    # A span over several lines is underlined to the end of its first.
    pointed_at = text[column - 1 : column - 1 + label.span.end - label.span.start].rstrip()
    width = max(1, display_width(display_line(pointed_at)))
    return f"{' ' * min(before, _MAX_COLUMNS)}{sign * min(width, _MAX_COLUMNS)} {label.text}"


def display_width(text: str) -> int:
    """Return the terminal columns of a text: none for combining marks, two for wide characters."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def display_line(text: str) -> str:
    """Return a line for display: tabs widened, control characters escaped, very long lines cut."""
    shown = "".join(
        " " * _TAB_WIDTH if character == "\t" else character if character.isprintable() else f"\\u{ord(character):04x}"
        for character in text[: _MAX_LINE + 1]
    )
    return shown if len(shown) <= _MAX_LINE else shown[: _MAX_LINE - 3] + "..."
