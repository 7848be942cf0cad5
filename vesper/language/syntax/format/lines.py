"""The formatter's last step: lines of parts to text. It decides the columns of what may be aligned.

In: lines whose parts have fixed gaps, or slots: gaps in which an author may have aligned something. Out: text. Parts
that start in one column on consecutive lines of one collection keep a common column, the leftmost one that leaves each
a space; all other gaps become one space. Trailing comments on consecutive lines move together in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from vesper.language.syntax.format.pieces import Comment

Path = tuple[int, ...]
"""Which gap of a row a slot is; in one row, a smaller path is further left."""

COMMENT_GAP = 2


@dataclass(frozen=True, slots=True)
class Slot:
    path: Path
    part: int
    column: int
    """Where the author let the part start, from the start of the row."""


@dataclass(slots=True)
class Line:
    indent: int
    blank: bool = False
    """A blank line comes before it."""
    parts: list[str] = field(default_factory=list)
    gaps: list[int] = field(default_factory=list)
    """Spaces before each part."""
    width: int = 0
    comment: Comment | None = None
    note: bool = False
    """It holds a comment and nothing else."""
    sealed: bool = False
    """It ends a block scalar: what comes below is no continuation of its comment."""
    keeps: bool = False
    """It ends a block scalar to which following blank lines would belong."""
    owner: int | None = None
    """The collection of which it is one row; None when nothing on it may be aligned."""
    row: int = 0
    """The part at which the row starts."""
    row_column: int = 0
    slots: list[Slot] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.width = self.indent

    def put(self, text: str, gap: int) -> None:
        gap = gap if self.parts else 0
        self.parts.append(text)
        self.gaps.append(gap)
        self.width += gap + len(text)

    def text(self) -> str:
        return " " * self.indent + "".join(
            " " * gap + part for gap, part in zip(self.gaps, self.parts, strict=True)
        )  # fmt: skip


def lines_to_text(lines: list[Line]) -> str:
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
    """How far the columns of a row are settled."""

    part: int
    end: int


def _align_slots(lines: list[Line]) -> None:
    # Sorted by path: when a slot is settled, those to its left are, in every row.
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
                _settle(run, lines, cursors)
                run = []
        run.append((slot, number))
    _settle(run, lines, cursors)


def _settle(run: list[tuple[Slot, int]], lines: list[Line], cursors: dict[int, _Cursor]) -> None:
    """Give the slots of a run, one in each of some consecutive rows, their common column."""
    for slot, number in run:
        line, cursor = lines[number], cursors[number]
        for part in range(cursor.part, slot.part):
            cursor.end += len(line.parts[part]) + (line.gaps[part] if part > line.row else 0)
        cursor.part = slot.part
    column = max((cursors[number].end + 1 for _, number in run), default=0)
    for slot, number in run:
        lines[number].gaps[slot.part] = column - cursors[number].end


def _align_comments(lines: list[Line], texts: list[str]) -> None:
    """Add trailing comments to the texts of their lines."""
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
        # Set apart by the author, maybe in line with comments further away: it stays in its column if it can.
        column = max(column, trailing[0][1].column)
    for number, comment in comments:
        texts[number] = texts[number].ljust(column) + comment.text
