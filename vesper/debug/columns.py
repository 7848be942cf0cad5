"""Layout of rows in one column per engine, with differences marked, for a terminal's width."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vesper.debug.view import Row
from vesper.language.diagnostics.excerpt import display_width

RUNTIMES = {"python": "PYTHON RUNTIME", "interp": "DIRECT RUNTIME"}
MIN_TWO_COLUMN_WIDTH = 60
"""Terminal width below which the engines are printed one below the other."""
MARKER = "≠"
_MAX_CHARACTER_COLUMNS = 2
"""Maximum terminal columns of one character."""
_MAX_ENTRY_CHARACTERS = 400
"""Maximum characters of an entry that is equal on all sides; `print` shows a whole value."""

Style = Callable[[str, str], str]
"""Function of a text and its role: `differs`, `title` or `dim`."""


def plain_style(text: str, _: str) -> str:
    return text


def lay_out(rows: Sequence[Row], engines: Sequence[str], width: int, style: Style = plain_style) -> list[str]:
    titles = [RUNTIMES.get(name, f"{name.upper()} RUNTIME") for name in engines]
    if len(engines) == 1:
        return [style(titles[0], "title"), "-" * min(width, 40), *_one_column(rows, 0, width)]
    if width < MIN_TWO_COLUMN_WIDTH:
        return [
            line
            for number, title in enumerate(titles)
            for line in (style(title, "title"), "-" * len(title), *_one_column(rows, number, width))
        ]
    return _two_columns(rows, titles, width, style)


def _two_columns(rows: Sequence[Row], titles: Sequence[str], width: int, style: Style) -> list[str]:
    inner = (width - 3) // 2
    room = max([display_width(title) for title in titles] + [_widest_entry(rows)])
    inner = min(inner, max(28, room))
    left, right = (_pad(title, inner) for title in titles)
    lines = [f"{style(left, 'title')}| {style(right.rstrip(), 'title')}", f"{'-' * inner}+{'-' * inner}"]
    for section, group in _sections(rows):
        if section == "Location":
            for row in group:
                lines += _pair(["Location: " + (text or "-") for text in row.texts], row.differs, inner, style)
            continue
        lines += _pair([f"{section}:", f"{section}:"], False, inner, style)
        for row in group:
            texts = ["" if text is None else f"  {_entry(row.key, text)}" for text in row.texts]
            lines += _pair(texts, row.differs, inner, style)
    return lines


def _widest_entry(rows: Sequence[Row]) -> int:
    """Return the width of the widest entry, so that no column is wider than needed."""
    texts = [_entry(row.key, text) for row in rows for text in row.texts if text is not None]
    return max(map(display_width, texts), default=0) + 12


def _entry(key: str, text: str) -> str:
    is_named = bool(key) and not key.startswith(
        ("constraint ", "precondition ", "validation ", "postcondition ", "inv")
    )
    return f"{key}: {text}" if is_named else text


def _pair(texts: Sequence[str], differs: bool, inner: int, style: Style) -> list[str]:
    columns = [_wrap(text if differs else _shorten(text), inner - 1) for text in texts]
    height = max(map(len, columns))
    lines = []
    for number in range(height):
        left, right = (column[number] if number < len(column) else "" for column in columns)
        sign = MARKER if differs and number == 0 else "|"
        line = f"{_pad(left, inner)}{sign} {right}".rstrip()
        lines.append(style(line, "differs") if differs else line)
    return lines


def _one_column(rows: Sequence[Row], number: int, width: int) -> list[str]:
    lines: list[str] = []
    for section, group in _sections(rows):
        texts = [(row.key, row.texts[number], row.differs) for row in group if row.texts[number] is not None]
        if section == "Location":
            lines += [f"Location: {text}" for _, text, _ in texts]
            continue
        if texts:
            lines.append(f"{section}:")
        for key, text, differs in texts:
            sign = f" {MARKER}" if differs else ""
            entry = f"  {_entry(key, text or '')}"
            lines += _wrap(f"{entry if differs else _shorten(entry)}{sign}", width)
    return lines


def _sections(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.section, []).append(row)
    return list(found.items())


def _shorten(text: str) -> str:
    """Cut a long entry and report the number of characters left out.

    Entries that differ are never cut, because they may differ at the end.
    """
    if len(text) <= _MAX_ENTRY_CHARACTERS:
        return text
    return f"{text[:_MAX_ENTRY_CHARACTERS]} … ({len(text) - _MAX_ENTRY_CHARACTERS} characters more)"


def _wrap(text: str, width: int) -> list[str]:
    """Wrap a text to a width, with continuation lines indented and nothing cut.

    Each character is measured once: a text may have a million of them.
    """
    lines: list[str] = []
    indent = " " * min(len(text) - len(text.lstrip(" ")) + 2, max(0, width - 2))  # leaves room for a wide character
    start, before = 0, ""
    while width >= _MAX_CHARACTER_COLUMNS and (end := _fit_end(text, start, width - len(before))) < len(text):
        line = before + text[start:end]
        space = line.rfind(" ", len(indent))
        at = space if space > width // 2 else len(line)
        lines.append(line[:at].rstrip())
        start += at - len(before)
        while start < len(text) and text[start] == " ":
            start += 1
        before = indent
    return [*lines, before + text[start:]]


def _fit_end(text: str, start: int, width: int) -> int:
    """Return the end of the part from `start` that fits into `width`, at least one character."""
    used = 0
    for number in range(start, len(text)):
        used += display_width(text[number])
        if used > width:
            return max(start + 1, number)
    return len(text)


def _pad(text: str, width: int) -> str:
    return text + " " * max(0, width - display_width(text))
