"""Source files and spans. Offsets count code points; lines and columns start at 1."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property


# Never changed, but not frozen: every node has hundreds, and a frozen one takes three times as long to create.
@dataclass(slots=True, unsafe_hash=True)
class Span:
    """A span of a source text: `text[start:end]`."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """Return the span from the start of this one to the end of the other."""
        return Span(self.start, other.end)


@dataclass(frozen=True)
class SourceFile:
    """The text of one `.vsp` file and its path for messages."""

    path: str
    text: str = field(repr=False)

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        position = self.text.find("\n")
        while position != -1:
            starts.append(position + 1)
            position = self.text.find("\n", position + 1)
        return starts

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def positions(self, span: Span) -> tuple[int, int, int, int]:
        """Return line and column of the start and the end of a span."""
        starts, start, end = self._line_starts, span.start, span.end
        line = bisect_right(starts, start)
        column = start - starts[line - 1] + 1
        if line == len(starts) or end < starts[line]:  # nearly all spans end on their first line
            return line, column, line, column + end - start
        return line, column, *self.position(end)

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a line and column."""
        return self._line_starts[line - 1] + column - 1

    def line_text(self, line: int) -> str:
        """Return the text of a line without its line break."""
        if line > len(self._line_starts):
            return ""
        start = self._line_starts[line - 1]
        end = self._line_starts[line] - 1 if line < len(self._line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r")

    def character(self, offset: int) -> Span:
        """Return the span of the character at an offset.

        At the end of the text it is the last character; in an empty file it is empty.
        """
        start = max(0, min(offset, len(self.text) - 1))
        return Span(start, min(start + 1, len(self.text)))

    def slice(self, span: Span) -> str:
        return self.text[span.start : span.end]
