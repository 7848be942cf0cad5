"""Diagnostics on a terminal: colours, and excerpts that fit its width."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from vesper.cli.output.terminal import style

_SOURCE = re.compile(r"( *\d+ \| )(.*)")
_MARKS = re.compile(r"( +\| )( *)(\^+|-+) ?(.*)")
_FOOTER = re.compile(r"( += )(\w+:) (.*)")
_PLACE = re.compile(r" *--> .*| +\||\.\.\.")
_ELLIPSIS = "…"
_MIN_LABEL_COLUMNS = 30


def decorate(text: str, colour: str, width: int | None) -> str:
    """Return a diagnostic of `render_full` in colours; with a width, cut source lines and wrap labels to it."""
    headline, *lines = text.split("\n")
    shift = 0
    shown = [style(headline, colour, "bold")]
    for index, line in enumerate(lines):
        if source := _SOURCE.fullmatch(line):
            gutter, code = source[1], source[2]
            room = None if width is None else width - len(gutter)
            if room is not None and len(code) > room and code.isascii():
                shift, code = _window(code, room, [_MARKS.fullmatch(each) for each in lines[index + 1 : index + 3]])
            else:
                shift = 0
            shown.append(style(gutter, "dim") + code)
        elif marks := _MARKS.fullmatch(line):
            shown += _mark_lines(marks, shift, colour if marks[3][0] == "^" else "cyan", width)
        elif footer := _FOOTER.fullmatch(line):
            gutter = footer[1]
            first, *rest = _wrap(f"{footer[2]} {footer[3]}", None if width is None else width - len(gutter))
            shown.append(style(gutter, "dim") + style(footer[2], "cyan", "bold") + first.removeprefix(footer[2]))
            shown += [" " * len(gutter) + each for each in rest]
        else:
            shown.append(style(line, "dim") if _PLACE.fullmatch(line) else line)
    return "\n".join(shown)


def _window(code: str, room: int, marks: list[re.Match[str] | None]) -> tuple[int, str]:
    """Cut a source line around the first span that is marked below it.

    Return the number of columns that it moves to the left, and the cut line.
    """
    first = next((each for each in marks if each is not None), None)
    start, end = (0, 0) if first is None else (len(first[2]), len(first[2]) + len(first[3]))
    left = 0 if end < room else max(0, min(start - room // 4, len(code) - room))
    shown = code[left : left + room]
    if left:
        shown = _ELLIPSIS + shown[1:]
    return left, shown[:-1] + _ELLIPSIS if left + room < len(code) else shown


def _mark_lines(marks: re.Match[str], shift: int, colour: str, width: int | None) -> Iterator[str]:
    gutter, indent, signs, label = marks.groups()
    start = max(0, len(indent) - shift)
    head = style(gutter, "dim") + " " * start
    if width is None or len(gutter) + start + len(signs) + 1 + len(label) <= width:
        yield head + style(f"{signs} {label}".rstrip(), colour)
        return
    room = width - len(gutter)
    yield head + style(signs[: max(1, room - start)], colour)
    start = start if room - start >= _MIN_LABEL_COLUMNS else 2
    for each in _wrap(label, room - start):
        yield style(gutter, "dim") + " " * start + style(each, colour)


def _wrap(text: str, width: int | None) -> list[str]:
    if width is None:
        return [text]
    return textwrap.wrap(text, max(20, width), break_long_words=False, break_on_hyphens=False) or [""]
