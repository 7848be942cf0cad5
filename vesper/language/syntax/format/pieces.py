r"""First step of the formatter: YAML tokens with the comments and line breaks before them.

Takes a text with `\n` line ends and its tree, and returns pieces in source order. Together they hold the whole text
apart from white space. Nothing here decides the layout.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, auto

from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.syntax.yaml_tree import Scalar, Sequence, Tree


class PieceKind(Enum):
    """Kind of a YAML token."""

    MAPPING_START = auto()
    SEQUENCE_START = auto()
    BLOCK_END = auto()
    VALUE = auto()
    ENTRY = auto()
    OPEN = auto()
    CLOSE = auto()
    COMMA = auto()
    SCALAR = auto()
    DOCUMENT = auto()
    END = auto()


_INDICATOR = re.compile(r"#[^\n]*|---|\.\.\.|[-:,\[\]{}]")
"""Everything but white space that is outside scalars."""
_KINDS = {
    "-": PieceKind.ENTRY,
    ":": PieceKind.VALUE,
    ",": PieceKind.COMMA,
    "[": PieceKind.OPEN,
    "{": PieceKind.OPEN,
    "]": PieceKind.CLOSE,
    "}": PieceKind.CLOSE,
    "---": PieceKind.DOCUMENT,
    "...": PieceKind.DOCUMENT,
}


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment with its position."""

    text: str
    column: int
    gap: int
    """Width of the white space before it on its line."""
    own_line: bool
    blank: bool
    """True if a blank line precedes it."""


@dataclass(frozen=True, slots=True)
class BlockText:
    """A literal or folded scalar: its header, and its lines without YAML's indentation."""

    header: str
    digit: int | None
    """The indentation indicator."""
    keeps: bool
    """True for chomping `+`: following blank lines belong to the scalar."""
    comment: Comment | None
    lines: list[str]


@dataclass(slots=True)
class Piece:
    """A YAML token with its position and preceding comments."""

    kind: PieceKind
    text: str
    """Source text. Empty for tokens that YAML infers, such as the start of a mapping."""
    style: str
    line: int
    column: int
    block: BlockText | None = None
    comments: list[Comment] = field(default_factory=list)
    """Comments between the previous piece with text and this one."""
    newline: bool = False
    """True if it is the first on its line."""
    blank: bool = False
    """True if a blank line separates it from the text above."""
    whole_line: bool = True
    """True if no piece that starts on its line continues on another one."""


class _Tokens:
    """The tokens of a text, by a walk along its tree. Indicators are all that is between two scalars."""

    def __init__(self, text: str, tree: Tree) -> None:
        self._text = text
        self._at = 0
        self.found: list[tuple[PieceKind, Span, str]] = []
        self._node(tree, is_in_flow=False)
        self._indicators(len(text))
        self._add(PieceKind.END)

    def _add(self, kind: PieceKind) -> None:
        self.found.append((kind, Span(self._at, self._at), ""))

    def _indicators(self, end: int) -> None:
        for match in _INDICATOR.finditer(self._text, self._at, end):
            if match[0][0] != "#":
                self.found.append((_KINDS[match[0]], Span(match.start(), match.end()), ""))
        self._at = end

    def _node(self, tree: Tree, is_in_flow: bool) -> None:
        self._indicators(tree.span.start)
        if isinstance(tree, Scalar):
            if tree.span.end > tree.span.start:
                self.found.append((PieceKind.SCALAR, tree.span, tree.style))
                self._at = tree.span.end
            return
        is_flow = is_in_flow or self._text[tree.span.start] in "[{"
        is_sequence = isinstance(tree, Sequence)
        if not is_flow:
            self._add(PieceKind.SEQUENCE_START if is_sequence else PieceKind.MAPPING_START)
        for each in tree.items if isinstance(tree, Sequence) else (part for entry in tree.entries for part in entry):
            self._node(each, is_flow)
        if is_flow:
            self._indicators(tree.span.end)
        else:
            self._indicators(max(tree.span.end, self._at))
            self._add(PieceKind.BLOCK_END)


def read_pieces(text: str, tree: Tree) -> list[Piece]:
    """Return the YAML tokens of a text with their comments and line breaks."""
    source = SourceFile("", text)
    pieces: list[Piece] = []
    indents = [-1]
    opened: list[int] = []
    broken: set[int] = set()
    end = end_column = 0
    at_line_start = True
    for kind, span, style in _Tokens(text, tree).found:
        line, column, last_line, last_column = (each - 1 for each in source.positions(span))
        raw = text[span.start : span.end]
        piece = Piece(kind, raw, style, line, column)
        pieces.append(piece)
        if kind in (PieceKind.MAPPING_START, PieceKind.SEQUENCE_START):
            indents.append(column)
        elif kind is PieceKind.BLOCK_END:
            indents.pop()
        elif kind is PieceKind.OPEN:
            opened.append(line)
        elif kind is PieceKind.CLOSE:
            first_line = opened.pop()
            if first_line != line:
                broken.add(first_line)
        if not raw and kind is not PieceKind.END:
            continue
        _read_gap(text[end : span.start], end_column, at_line_start, piece)
        end, end_column = span.end, last_column
        at_line_start = False
        if piece.style in ("|", ">"):
            broken.add(line)
            piece.block, end = _read_block(text, span.start, end, column, indents[-1])
            end_column, at_line_start = 0, True
        elif last_line != line and kind is PieceKind.SCALAR:
            broken.update((line, last_line))
    for piece in pieces:
        piece.whole_line = piece.line not in broken
    return pieces


def _read_gap(text: str, column: int, at_line_start: bool, piece: Piece) -> None:
    """Record comments, line breaks and blank lines before a piece. The gap starts in `column`."""
    lines = text.split("\n")
    piece.newline = at_line_start or len(lines) > 1
    for number, line in enumerate(lines):
        own_line = number > 0 or at_line_start
        content = line.strip(" \t")
        if content:
            # INVARIANT: tokens cover everything except white space and comments.
            assert content[0] == "#", f"{content!r} is in no token"
            gap = len(line) - len(line.lstrip(" \t"))
            piece.comments.append(Comment(_add_space(content), column + gap, gap, own_line, piece.blank))
            piece.blank = False
        elif own_line and number < len(lines) - 1:
            piece.blank = True
        column = 0


def _add_space(comment: str) -> str:
    """Return a comment with a space after `#`; rulers (`####`) and `#!` stay unchanged."""
    return f"# {comment[1:]}" if re.match(r"#[^\s#!]", comment) else comment


def _read_block(text: str, start: int, end: int, column: int, parent: int) -> tuple[BlockText, int]:
    """Return a literal or folded scalar, and the offset at which it ends."""
    head, has_body, body = text[start:end].partition("\n")
    match = re.fullmatch(r"(?P<header>[|>][-+0-9]*)(?P<gap>[ \t]*)(?P<comment>#.*)?", head)
    assert match is not None, f"{head!r} is not the header of a block scalar"
    header = match["header"]
    comment = None
    if match["comment"] is not None:
        note = _add_space(match["comment"].rstrip(" \t"))
        comment = Comment(note, column + match.start("comment"), len(match["gap"]), own_line=False, blank=False)
    digits = re.sub(r"\D", "", header)
    digit = int(digits) if digits else None
    lines = body.split("\n")[:-1]
    indent = _detect_indent(lines, parent) if digit is None else max(parent, 0) + digit
    keeps = "+" in header
    size = len(lines)
    while not keeps and size and not lines[size - 1].rstrip(" ") and len(lines[size - 1]) <= indent:
        size -= 1
    rest = sum(len(line) + 1 for line in lines[size:])
    content = [line[indent:] if line[:indent].strip(" ") == "" else line for line in lines[:size]]
    return BlockText(header, digit, keeps, comment, content), end - rest if has_body else end


def _detect_indent(lines: list[str], parent: int) -> int:
    """Return the indentation of a block scalar without indicator. Its first line, or a longer blank one, decides."""
    found = max(parent + 1, 1)
    for line in lines:
        found = max(found, len(line) - len(line.lstrip(" ")))
        if line.strip(" "):
            break
    return found
