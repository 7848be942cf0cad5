"""The only way of text to a terminal: control characters of values are escaped, and our own colours are added.

Names and values may hold escape sequences that rewrite a terminal or a log. `escaped_output` replaces standard output
and standard error for the time of a command, so a command cannot forget to escape. `style` and `control` mark our own
sequences with a random word of this process; a value cannot contain it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import click

_COLOURS = {
    "bold": "\x1b[1m",
    "dim": "\x1b[2m",
    "red": "\x1b[31m",
    "green": "\x1b[32m",
    "yellow": "\x1b[33m",
    "cyan": "\x1b[36m",
}
_RESET = "reset"
_CURSOR = {"restart-line": "\r\x1b[K", "clear-screen": "\x1b[H\x1b[2J"}
_SEQUENCES = {**_COLOURS, _RESET: "\x1b[0m", **_CURSOR}
_WORD = os.urandom(8).hex()
_MARK = re.compile(rf"\x00{_WORD}:([a-z-]+)\x00")
_UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]|\r(?!\n)"
)
"""Control characters except tab and line ends, and those that change the direction of text."""


def style(text: str, *names: str) -> str:
    """Return a text in colours: `bold`, `dim`, `red`, `green`, `yellow`, `cyan`. The stream decides whether to show."""
    return "".join(map(control, names)) + text + control(_RESET)


def control(name: str) -> str:
    """Return the mark of a sequence of ours: a colour, `restart-line` or `clear-screen`."""
    assert name in _SEQUENCES
    return f"\x00{_WORD}:{name}\x00"


def escape(text: str) -> str:
    """Return a text with every unsafe character escaped, in a form that keeps JSON valid."""
    return _UNSAFE.sub(lambda found: _escaped(ord(found[0])), text)


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}"


def has_colours(stream: TextIO) -> bool:
    """Return whether a stream shows colours: it is a terminal, and the environment does not refuse them."""
    refused = os.environ.get("NO_COLOR") or os.environ.get("CLICOLOR") == "0" or _is_dumb()
    return not refused and stream.isatty()


def shows_progress() -> bool:
    """Return whether standard error is a terminal that can rewrite a line."""
    return sys.stderr is not None and sys.stderr.isatty() and not _is_dumb()


def _is_dumb() -> bool:
    return os.environ.get("TERM") == "dumb"


def progress_bar(label: str, length: int | None = None, items: Any = None) -> Any:
    """Return a progress bar on standard error. It moves the cursor, so it writes to the stream behind the escaping."""
    stream = sys.stderr.stream if isinstance(sys.stderr, EscapedStream) else sys.stderr
    return click.progressbar(items, length, label=escape(label), file=stream)


class EscapedStream:
    """A text stream that escapes what it is given; our own marks become sequences, or nothing."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._has_colours = has_colours(stream)

    def write(self, text: str) -> int:
        parts = _MARK.split(text)
        parts[::2] = map(escape, parts[::2])
        parts[1::2] = map(self._sequence, parts[1::2])
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


def _escaped_stream(stream: TextIO | None) -> Any:
    if stream is None or isinstance(stream, EscapedStream):
        return stream
    if stream.encoding and stream.encoding.lower() in ("ascii", "us-ascii", "ansi_x3.4-1968"):
        getattr(stream, "reconfigure", lambda **_: None)(encoding="utf-8")  # click would bypass an ASCII stream
    return EscapedStream(stream)
