r"""First step of the formatter: YAML tokens with the comments and line breaks before them.

Takes text that `read_yaml` accepts, with `\n` line ends, and returns pieces in source order. Together they hold the
whole text apart from white space. Nothing here decides the layout.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, auto

import yaml


class PieceKind(Enum):
    """Kind of a YAML token."""

    MAPPING_START = auto()
    SEQUENCE_START = auto()
    BLOCK_END = auto()
    KEY = auto()
    VALUE = auto()
    ENTRY = auto()
    OPEN = auto()
    CLOSE = auto()
    COMMA = auto()
    SCALAR = auto()
    DIRECTIVE = auto()
    DOCUMENT = auto()
    END = auto()


_KINDS: dict[type[yaml.Token], PieceKind] = {
    yaml.BlockMappingStartToken: PieceKind.MAPPING_START,
    yaml.BlockSequenceStartToken: PieceKind.SEQUENCE_START,
    yaml.BlockEndToken: PieceKind.BLOCK_END,
    yaml.KeyToken: PieceKind.KEY,
    yaml.ValueToken: PieceKind.VALUE,
    yaml.BlockEntryToken: PieceKind.ENTRY,
    yaml.FlowMappingStartToken: PieceKind.OPEN,
    yaml.FlowSequenceStartToken: PieceKind.OPEN,
    yaml.FlowMappingEndToken: PieceKind.CLOSE,
    yaml.FlowSequenceEndToken: PieceKind.CLOSE,
    yaml.FlowEntryToken: PieceKind.COMMA,
    yaml.ScalarToken: PieceKind.SCALAR,
    yaml.DirectiveToken: PieceKind.DIRECTIVE,
    yaml.DocumentStartToken: PieceKind.DOCUMENT,
    yaml.DocumentEndToken: PieceKind.DOCUMENT,
    yaml.StreamEndToken: PieceKind.END,
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


def read_pieces(text: str) -> list[Piece]:
    """Return the YAML tokens of a text with their comments and line breaks."""
    pieces: list[Piece] = []
    indents = [-1]
    opened: list[int] = []
    broken: set[int] = set()
    end = column = 0
    at_line_start = True
    for token in yaml.scan(text, Loader=yaml.CSafeLoader):
        kind = _KINDS.get(type(token))
        if kind is None:
            continue
        start = token.start_mark
        raw = text[start.index : token.end_mark.index]
        piece = Piece(kind, raw, getattr(token, "style", None) or "", start.line, start.column)
        pieces.append(piece)
        if kind in (PieceKind.MAPPING_START, PieceKind.SEQUENCE_START):
            indents.append(start.column)
        elif kind is PieceKind.BLOCK_END:
            indents.pop()
        elif kind is PieceKind.OPEN:
            opened.append(start.line)
        elif kind is PieceKind.CLOSE:
            line = opened.pop()
            if line != start.line:
                broken.add(line)
        if not raw and kind is not PieceKind.END:
            continue
        _read_gap(text[end : start.index], column, at_line_start, piece)
        end, column = token.end_mark.index, token.end_mark.column
        at_line_start = False
        if piece.style in ("|", ">"):
            broken.add(start.line)
            piece.block, end = _read_block(text, start.index, end, start.column, indents[-1])
            column, at_line_start = 0, True
        elif token.end_mark.line != start.line and kind is PieceKind.SCALAR:
            broken.update((start.line, token.end_mark.line))
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
    lines = body.split("\n")
    last = lines.pop()
    if digit is not None:
        indent = max(parent, 0) + digit
    else:
        indent = _detect_indent([*lines, last], parent)
    if len(last.rstrip(" ")) > 0 or len(last) > indent:
        # The file ends inside the last line, so the value has no final line break. The file gets one, and `-` excludes
        # it from the value.
        lines.append(last)
        header = re.sub(r"[-+]", "", header) + "-"
        last = ""
    keeps = "+" in header
    size = len(lines)
    while not keeps and size and not lines[size - 1].rstrip(" ") and len(lines[size - 1]) <= indent:
        size -= 1
    rest = sum(len(line) + 1 for line in lines[size:]) + len(last)
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
