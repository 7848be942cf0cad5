"""Output to a terminal: escapes control characters of values, adds colours, wraps long lines.

Names and values may hold escape sequences that rewrite a terminal or a log. `escaped_output` replaces standard output
and standard error for the time of a command, so a command cannot forget to escape. `style` and `control` mark our own
sequences with a random word of this process; a value cannot contain it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

_COLOURS = {
    "bold": "\x1b[1m",
    "dim": "\x1b[2m",
    "red": "\x1b[31m",
    "green": "\x1b[32m",
    "yellow": "\x1b[33m",
    "cyan": "\x1b[36m",
}
_RESET = "reset"
_ERASE_LINE = "\r\x1b[K"
_CURSOR = {"restart-line": _ERASE_LINE, "clear-screen": "\x1b[H\x1b[2J"}
_SEQUENCES = {**_COLOURS, _RESET: "\x1b[0m", **_CURSOR}
_WORD = os.urandom(8).hex()
_MARK = re.compile(rf"\x00{_WORD}:([a-z-]+)\x00")
_UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]|\r(?!\n)"
)
"""Control characters except tab and line ends, and those that change the direction of text."""
_MIN_COLUMNS, _DEFAULT_COLUMNS, _MAX_COLUMNS = 40, 100, 200
_LAST_GAP = re.compile(r".*\S  +(?=\S)|\s*")
"""The part of a line before its last column: up to the last gap of two spaces, else its indentation."""


def style(text: str, *names: str) -> str:
    """Return a text in colours: `bold`, `dim`, `red`, `green`, `yellow`, `cyan`. The stream decides whether to show."""
    return "".join(map(control, names)) + text + control(_RESET)


def control(name: str) -> str:
    """Return the placeholder of a terminal sequence: a colour, `restart-line` or `clear-screen`."""
    assert name in _SEQUENCES
    return f"\x00{_WORD}:{name}\x00"


def escape(text: str) -> str:
    """Return a text with every unsafe character escaped, in a form that keeps JSON valid."""
    return _UNSAFE.sub(lambda found: _escape_code(ord(found[0])), text)


def _escape_code(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}"


def has_colours(stream: TextIO) -> bool:
    """Return whether a stream shows colours: by NO_COLOR, then by FORCE_COLOR, else whether it is a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("CLICOLOR") != "0" and not _is_dumb() and stream.isatty()


def columns() -> int:
    """Return the width for output, from 40 to 200.

    It is that of `COLUMNS`, else of the terminal; 100 without a terminal.
    """
    return max(_MIN_COLUMNS, min(_MAX_COLUMNS, shutil.get_terminal_size((_DEFAULT_COLUMNS, 24)).columns))


def wrap_line(line: str, width: int) -> str:
    """Break a line between words, and indent the rest.

    The rest begins at the last column of the line, or two columns after its start. A word that is longer than the
    width, such as a path, stays in one piece.
    """
    from vesper.language.diagnostics.excerpt import (
        display_width,
    )  # most lines are short, and most output is no terminal

    plain = _MARK.sub("", line)
    if display_width(plain) <= width:
        return line
    found = _LAST_GAP.match(plain)
    assert found is not None
    first = len(plain) - len(plain.lstrip())
    hanging = found.end() if first < found.end() <= width // 2 else first + 2
    parts: list[str] = []
    at = 0
    for gap, word in re.findall(r"( *)([^ ]+)", line):
        size = display_width(_MARK.sub("", word))
        if parts and at + len(gap) + size > width:
            parts.append("\n" + " " * hanging + word)
            at = hanging + size
        else:
            parts.append(gap + word)
            at += len(gap) + size
    return "".join(parts)


def shows_progress() -> bool:
    """Return whether standard error is a terminal that can rewrite a line."""
    return sys.stderr is not None and sys.stderr.isatty() and not _is_dumb()


def _is_dumb() -> bool:
    return os.environ.get("TERM") == "dumb"


class LiveLine:
    """The line of a terminal that is rewritten in place. Other output erases it first."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._is_drawn = False

    def draw(self, text: str) -> None:
        with self.lock:
            self._write(_ERASE_LINE + escape(text))
            self._is_drawn = True

    def erase(self) -> None:
        with self.lock:
            if self._is_drawn:
                self._is_drawn = False
                self._write(_ERASE_LINE)

    def reset_after_fork(self) -> None:
        """Reset the lock and the drawn state in a forked process.

        No thread there would release a lock that another thread holds.
        """
        self.lock = threading.RLock()
        self._is_drawn = False

    @staticmethod
    def _write(text: str) -> None:
        stream = sys.stderr.stream if isinstance(sys.stderr, EscapedStream) else sys.stderr
        stream.write(text)
        stream.flush()


LIVE_LINE = LiveLine()


class EscapedStream:
    """A text stream that escapes all text; marks of `style` and `control` become sequences, or nothing."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.is_wrapped = stream.isatty() and not _is_dumb()
        self._has_colours = has_colours(stream)

    def write(self, text: str) -> int:
        shown = text
        if self.is_wrapped and len(text) > _MIN_COLUMNS:
            width = columns()
            shown = "\n".join(wrap_line(line, width) for line in text.split("\n"))
        parts = _MARK.split(shown)
        parts[::2] = map(escape, parts[::2])
        parts[1::2] = map(self._sequence, parts[1::2])
        with LIVE_LINE.lock:
            LIVE_LINE.erase()
            self.stream.write("".join(parts))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def _sequence(self, name: str) -> str:
        is_shown = not _is_dumb() and self.stream.isatty() if name in _CURSOR else self._has_colours
        return _SEQUENCES[name] if is_shown else ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class EscapedBytes:
    """Standard output for UTF-8 lines, escaped as text is."""

    def write(self, content: bytes) -> int:
        sys.stdout.write(content.decode("utf-8"))
        return len(content)


@contextmanager
def escaped_output() -> Iterator[None]:
    """Escape standard output and standard error."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_escaped_stream, before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def keep_lines() -> None:
    """Do not wrap lines of standard output: code and documents may be copied from a terminal."""
    if isinstance(sys.stdout, EscapedStream):
        sys.stdout.is_wrapped = False


def _escaped_stream(stream: TextIO | None) -> Any:
    if stream is None or isinstance(stream, EscapedStream):
        return stream
    if stream.encoding and stream.encoding.lower() in ("ascii", "us-ascii", "ansi_x3.4-1968"):
        getattr(stream, "reconfigure", lambda **_: None)(encoding="utf-8")  # click would bypass an ASCII stream
    return EscapedStream(stream)
