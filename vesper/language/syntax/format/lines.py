"""Last step of the formatter: from lines of parts to text. It decides the columns of aligned parts.

Takes lines whose parts have fixed gaps, or slots: gaps that an author may have used for alignment. Parts that start in
one column on consecutive lines of one collection keep a common column, the leftmost that leaves each a space; all other
gaps become one space. Trailing comments on consecutive lines move together in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from vesper.language.syntax.format.pieces import Comment

Path = tuple[int, ...]
"""Position of a gap within a row; a smaller path is further left."""

COMMENT_GAP = 2


@dataclass(frozen=True, slots=True)
class Slot:
    """A gap of a row that may be aligned with gaps of neighbouring rows."""

    path: Path
    part: int
    column: int
    """Source column of the part, relative to the start of the row."""


@dataclass(slots=True)
class Line:
    """A line of output: indentation, parts, gaps and comment."""

    indent: int
    blank: bool = False
    """True if a blank line precedes it."""
    parts: list[str] = field(default_factory=list)
    gaps: list[int] = field(default_factory=list)
    """Number of spaces before each part."""
    width: int = 0
    comment: Comment | None = None
    note: bool = False
    """True if it holds only a comment."""
    sealed: bool = False
    """True if it ends a block scalar; a comment below does not continue its comment."""
    keeps: bool = False
    """True if it ends a block scalar to which following blank lines would belong."""
    owner: int | None = None
    """Number of the collection of which it is a row. None if nothing on it may be aligned."""
    row: int = 0
    """Index of the part at which the row starts."""
    row_column: int = 0
    slots: list[Slot] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.width = self.indent

    def put(self, text: str, gap: int) -> None:
        """Append a part after `gap` spaces; the first part has no gap."""
        gap = gap if self.parts else 0
        self.parts.append(text)
        self.gaps.append(gap)
        self.width += gap + len(text)

    def text(self) -> str:
        return " " * self.indent + "".join(
            " " * gap + part for gap, part in zip(self.gaps, self.parts, strict=True)
        )  # fmt: skip


def lines_to_text(lines: list[Line]) -> str:
    """Align the slots and comments of the lines, and return the text of all lines."""
    _align_slots([line for line in lines if not line.note])
    texts = [line.text() for line in lines]
    _align_comments(lines, texts)
    written = []
    for number, (line, text) in enumerate(zip(lines, texts, strict=True)):
        if line.blank and number:
            written.append("")
        written.append(text)
    return "\n".join(written) + "\n"


@dataclass(slots=True)
class _Cursor:
    """Progress of the alignment within a row."""

    part: int
    end: int


def _align_slots(lines: list[Line]) -> None:
    # Slots are sorted by path, so everything to the left of a slot is aligned before it, in every row.
    slots = sorted(
        ((slot, number) for number, line in enumerate(lines) for slot in line.slots),
        key=lambda found: (found[0].path, found[1]),
    )
    cursors = {number: _Cursor(lines[number].row, 0) for _, number in slots}
    run: list[tuple[Slot, int]] = []
    for slot, number in slots:
        if run:
            last, above = run[-1]
            joined = last.path == slot.path and last.column == slot.column
            if not (joined and number == above + 1 and lines[number].owner == lines[above].owner):
                _align_run(run, lines, cursors)
                run = []
        run.append((slot, number))
    _align_run(run, lines, cursors)


def _align_run(run: list[tuple[Slot, int]], lines: list[Line], cursors: dict[int, _Cursor]) -> None:
    """Set the common column of slots in consecutive rows."""
    for slot, number in run:
        line, cursor = lines[number], cursors[number]
        for part in range(cursor.part, slot.part):
            cursor.end += len(line.parts[part]) + (line.gaps[part] if part > line.row else 0)
        cursor.part = slot.part
    column = max((cursors[number].end + 1 for _, number in run), default=0)
    for slot, number in run:
        lines[number].gaps[slot.part] = column - cursors[number].end


def _align_comments(lines: list[Line], texts: list[str]) -> None:
    """Append trailing comments to their lines, aligned in one column per block."""
    group: list[int] = []
    for number, line in enumerate(lines):
        above = lines[group[-1]].comment if group else None
        if above is not None and (line.comment is None or line.comment.column != above.column):
            _place_comments(group, lines, texts)
            group = []
        if line.comment is not None:
            group.append(number)
    _place_comments(group, lines, texts)


def _place_comments(group: list[int], lines: list[Line], texts: list[str]) -> None:
    comments = [(number, comment) for number in group if (comment := lines[number].comment) is not None]
    trailing = [(number, comment) for number, comment in comments if not comment.own_line]
    if not trailing:
        return
    column = max(len(texts[number]) for number, _ in trailing) + COMMENT_GAP
    if all(comment.gap > COMMENT_GAP for _, comment in trailing):
        # The author set the comment apart, perhaps aligned with distant ones; it keeps its column if possible.
        column = max(column, trailing[0][1].column)
    for number, comment in comments:
        texts[number] = texts[number].ljust(column) + comment.text
