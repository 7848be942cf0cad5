"""Layout step of the formatter: from pieces to lines.

Takes the pieces of a text and returns lines with indentation, gaps and comments. Line breaks are those of the source;
only indentation and gaps are decided here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from vesper.language.syntax.format.lines import Line, Path, Slot
from vesper.language.syntax.format.pieces import Comment, Piece, PieceKind

STEP = 2
HEAD_KEYS = frozenset({"node_id", "type", "intent"})
"""Top-level keys that form the head of a node; every other one begins a section."""

_MARKER = re.compile(r"(?:---|\.\.\.)(?:\s|$)")
_VALUE_PATH: Path = (1,)
_INSIDE_PATH: Path = (2,)


@dataclass(frozen=True, slots=True)
class _Block:
    """A block collection: its column in the source, and its column in the output."""

    old: int
    new: int


_TOP = _Block(-1, -STEP)
_MARGIN = _Block(-1, 0)


@dataclass(slots=True)
class _Frame:
    """An open flow collection."""

    owner: int
    inside: int
    """Column of its elements that start a line."""
    closer: int
    path: Path | None
    index: int = 0
    begun: bool = False
    """True after the first piece of the current element."""


def lay_out(pieces: list[Piece]) -> list[Line]:
    """Return the lines of a text in the standard layout."""
    layout = _Layout(pieces)
    layout.document()
    return layout.lines


class _Layout:
    """Walks the pieces along YAML's grammar. `read_yaml` bounds the nesting."""

    def __init__(self, pieces: list[Piece]) -> None:
        self._pieces = pieces
        self._at = 0
        self._owners = 0
        self._closed: list[_Block] = []
        """Blocks that ended after the last line. A comment may still belong to one of them."""
        self.lines: list[Line] = []

    def document(self) -> None:
        while (piece := self._peek()).kind is not PieceKind.END:
            if piece.kind is PieceKind.DOCUMENT:
                self._begin(_MARGIN)
                self._line.put(self._take().text.rstrip(" \t"), 1)
                continue
            before = self._at
            self._node(_TOP, simple=False)
            assert self._at > before, f"nothing can start with {piece.kind}"
        self._comments(self._peek(), _MARGIN)

    # Reading

    def _peek(self) -> Piece:
        return self._pieces[self._at]

    def _take(self) -> Piece:
        self._at += 1
        return self._pieces[self._at - 1]

    def _next_text(self) -> Piece:
        """Return the next piece that has text, or the end."""
        at = self._at
        while not self._pieces[at].text and self._pieces[at].kind is not PieceKind.END:
            at += 1
        return self._pieces[at]

    # Writing

    @property
    def _line(self) -> Line:
        return self.lines[-1]

    def _begin(self, block: _Block, section: bool = False) -> None:
        """Start a line of a block for the next piece, below its preceding comments."""
        piece = self._next_text()
        first_note = len(self.lines)
        self._comments(piece, block)
        line = Line(block.new, piece.blank)
        self.lines.append(line)
        if not section:
            return
        # The blank line of a section goes above the comments directly before it.
        top = len(self.lines) - 1
        while not self.lines[top].blank and top > first_note and self._belongs_to_block(self.lines[top - 1], block):
            top -= 1
        self.lines[top].blank = not (top > 0 and self.lines[top - 1].keeps)

    @staticmethod
    def _belongs_to_block(line: Line, block: _Block) -> bool:
        return line.note and line.comment is None and line.indent == block.new

    def _comments(self, piece: Piece, block: _Block) -> None:
        closed, self._closed = self._closed, []
        for comment in piece.comments:
            if not comment.own_line:
                self._line.comment = comment
            elif self._continues(comment):
                self.lines.append(Line(0, note=True, comment=comment))
            else:
                indent = block.new
                if comment.column > block.old:
                    indent = max([indent, *(each.new for each in closed if each.old <= comment.column)])
                note = Line(indent, comment.blank, note=True)
                note.put(comment.text, 0)
                self.lines.append(note)

    def _continues(self, comment: Comment) -> bool:
        """Return whether a comment continues the trailing comment above it, in the same column."""
        if not self.lines or comment.blank or self._line.sealed:
            return False
        above = self._line.comment
        return above is not None and above.column == comment.column

    def _mark_row(self, owner: int, piece: Piece) -> None:
        """Mark the rest of the line as a row, if it holds the whole row."""
        line = self._line
        line.owner = owner if piece.whole_line else None
        line.row = len(line.parts)
        line.row_column = piece.column

    def _new_owner(self) -> int:
        self._owners += 1
        return self._owners

    def _put(self, piece: Piece, gap: int, path: Path | None = None) -> None:
        line = self._line
        if path is not None and line.owner is not None and line.parts:
            line.slots.append(Slot(path, len(line.parts), piece.column - line.row_column))
        line.put(piece.text, gap)

    # Blocks

    def _node(self, parent: _Block, *, simple: bool, owner: int | None = None) -> None:
        """Lay out the node after an indicator, or after a key if `simple`. It may be empty."""
        piece = self._peek()
        inner = parent.new + STEP if parent is not _TOP else self._margin(piece.column)
        if piece.kind in (PieceKind.MAPPING_START, PieceKind.SEQUENCE_START):
            block = _Block(piece.column, inner)
            if self._next_text().newline:
                self._begin(block)
            if piece.kind is PieceKind.MAPPING_START:
                self._mapping(block, top=parent is _TOP)
            else:
                self._sequence(block)
        elif piece.kind in (PieceKind.SCALAR, PieceKind.OPEN):
            if piece.newline:
                self._begin(_Block(piece.column, inner))
            path = _VALUE_PATH if simple else None
            if piece.kind is PieceKind.SCALAR:
                self._scalar(self._take(), 1, path, parent, max(inner, STEP))
                return
            if owner is not None and not piece.newline:
                self._mark_row(owner, piece)
            self._flow(parent.new if simple and not piece.newline else inner, inner, path)

    def _margin(self, column: int) -> int:
        """Return the column of the document. It is zero, unless a document marker would then start a line."""
        at_margin = (piece.text for piece in self._pieces if piece.newline and piece.column == column)
        return STEP if column > 0 and any(map(_MARKER.match, at_margin)) else 0

    def _mapping(self, block: _Block, top: bool) -> None:
        self._take()
        owner = self._new_owner()
        first = True
        while self._peek().kind is not PieceKind.BLOCK_END:
            if not first:
                self._begin(block, section=top and self._key_text() not in HEAD_KEYS)
            first = False
            self._entry(block, owner)
        self._take()
        self._closed.append(block)

    def _key_text(self) -> str:
        return self._peek().text.strip("'\"")

    def _entry(self, block: _Block, owner: int) -> None:
        self._mark_row(owner, self._peek())
        self._put(self._take(), 1)
        self._put(self._take(), 0)
        self._node(block, simple=True)

    def _sequence(self, block: _Block) -> None:
        self._take()
        owner = self._new_owner()
        first = True
        while self._peek().kind is PieceKind.ENTRY:
            if not first:
                self._begin(block)
            first = False
            self._put(self._take(), 1)
            self._node(block, simple=False, owner=owner)
        self._take()
        self._closed.append(block)

    # Scalars

    def _scalar(self, piece: Piece, gap: int, path: Path | None, parent: _Block, hanging: int) -> None:
        """Place a scalar. Its further lines keep their offset to the first one, or start in column `hanging`."""
        if piece.block is not None:
            self._block_text(piece, max(parent.new, 0))
            return
        if "\n" not in piece.text:
            self._put(piece, gap, path)
            return
        first, *rest = (_trim(line, piece.style) for line in piece.text.split("\n"))
        self._line.put(first, gap)
        margins = [len(line) - len(line.lstrip(" \t")) for line in rest]
        least = min(margin for margin, line in zip(margins, rest, strict=True) if line)
        start = self._line.width - len(first)
        # Column zero is excluded: there `---`, `...` and `%` are markers.
        column = max(start + least - piece.column, STEP) if least >= piece.column else hanging
        for margin, line in zip(margins, rest, strict=True):
            self.lines.append(Line(margin - least + column if line else 0))
            self._line.put(line.lstrip(" \t"), 0)

    def _block_text(self, piece: Piece, parent: int) -> None:
        block = piece.block
        assert block is not None
        self._line.put(block.header, 1)
        self._line.comment = block.comment
        margin = " " * (parent + (STEP if block.digit is None else block.digit))
        for text in block.lines:
            self.lines.append(Line(0))
            self._line.put(margin + text if text else "", 0)
        self._line.sealed = True
        self._line.keeps = block.keeps

    # Flow collections

    def _flow(self, base: int, least: int, path: Path | None) -> None:
        """Place a flow collection.

        Elements after a bracket at the end of a line are indented from column `base`. No line starts before column
        `least`, because YAML requires an indentation deeper than the key, also for the closing bracket.
        """
        frames: list[_Frame] = []
        previous: PieceKind | None = None
        while frames or previous is None:
            piece = self._take()
            kind = piece.kind
            frame = frames[-1] if frames else None
            if frame is not None and piece.newline:
                base = self._flow_line(piece, frames)
            gap = _flow_gap(kind, previous)
            slot = path if frame is None else _flow_slot(piece, previous, frame)
            if kind is PieceKind.SCALAR:
                self._scalar(piece, gap, slot, _TOP, base + STEP)
            else:
                self._put(piece, gap, slot)
            if kind is PieceKind.OPEN:
                if frame is not None:
                    frame.begun = True
                frames.append(self._frame(base, least, frame))
            elif kind is PieceKind.CLOSE:
                frames.pop()
            elif kind is PieceKind.COMMA:
                assert frame is not None
                frame.index += 1
                frame.begun = False
            elif frame is not None:
                frame.begun = True
            previous = kind

    def _frame(self, base: int, least: int, around: _Frame | None) -> _Frame:
        """Return the frame of the flow collection whose bracket was placed last."""
        path: Path | None = _INSIDE_PATH
        if around is not None:
            path = None if around.path is None else (*around.path, around.index, 2)
        if self._next_text().newline:
            return _Frame(self._new_owner(), base + STEP, max(base, least), path)
        return _Frame(self._new_owner(), self._line.width, self._line.width - 1, path)

    def _flow_line(self, piece: Piece, frames: list[_Frame]) -> int:
        """Start a line inside a flow collection and return its column."""
        frame = frames[-1]
        if piece.kind is PieceKind.CLOSE:
            column = frame.closer
        elif frame.begun and piece.kind is not PieceKind.COMMA:
            column = frame.inside + STEP
        else:
            column = frame.inside
        self._comments(piece, _Block(piece.column, frame.inside))
        self.lines.append(Line(column, piece.blank))
        for each in frames:
            each.path = None
        if not frame.begun and piece.kind in (PieceKind.SCALAR, PieceKind.OPEN):
            frame.path, frame.index = (), 0
            self._mark_row(frame.owner, piece)
        return column


def _flow_gap(kind: PieceKind, previous: PieceKind | None) -> int:
    if previous is PieceKind.OPEN:
        return 0
    if kind in (PieceKind.COMMA, PieceKind.CLOSE):
        # Some YAML readers reject `{a:}`, so a key without a value keeps a space after it.
        return 1 if previous is PieceKind.VALUE else 0
    if kind is PieceKind.VALUE:
        return 0 if previous in (PieceKind.SCALAR, PieceKind.CLOSE) else 1
    return 1


def _flow_slot(piece: Piece, previous: PieceKind | None, frame: _Frame) -> Path | None:
    if frame.path is None or piece.kind not in (PieceKind.SCALAR, PieceKind.OPEN):
        return None
    if previous is PieceKind.COMMA:
        return (*frame.path, frame.index, 0)
    return (*frame.path, frame.index, 1) if previous is PieceKind.VALUE else None


def _trim(line: str, style: str) -> str:
    """Return a line of a scalar without trailing white space. YAML ignores it in quoted and plain scalars."""
    short = line.rstrip(" \t")
    escapes = len(short) - len(short.rstrip("\\"))
    if style == '"' and escapes % 2 == 1 and len(short) < len(line):
        return line[: len(short) + 1]
    return short
