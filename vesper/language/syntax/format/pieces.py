"""The formatter's first step: text to YAML tokens, each with the comments and line breaks that stand before it.

In: text that `read_yaml` accepts, with `\\n` at the end of its lines. Out: pieces in the order of the text. Together
they hold all of it apart from white space. Nothing is decided here about how the text should look.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, auto

import yaml


class Kind(Enum):
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


_KINDS: dict[type[yaml.Token], Kind] = {
    yaml.BlockMappingStartToken: Kind.MAPPING_START,
    yaml.BlockSequenceStartToken: Kind.SEQUENCE_START,
    yaml.BlockEndToken: Kind.BLOCK_END,
    yaml.KeyToken: Kind.KEY,
    yaml.ValueToken: Kind.VALUE,
    yaml.BlockEntryToken: Kind.ENTRY,
    yaml.FlowMappingStartToken: Kind.OPEN,
    yaml.FlowSequenceStartToken: Kind.OPEN,
    yaml.FlowMappingEndToken: Kind.CLOSE,
    yaml.FlowSequenceEndToken: Kind.CLOSE,
    yaml.FlowEntryToken: Kind.COMMA,
    yaml.ScalarToken: Kind.SCALAR,
    yaml.DirectiveToken: Kind.DIRECTIVE,
    yaml.DocumentStartToken: Kind.DOCUMENT,
    yaml.DocumentEndToken: Kind.DOCUMENT,
    yaml.StreamEndToken: Kind.END,
}


@dataclass(frozen=True, slots=True)
class Comment:
    text: str
    column: int
    gap: int
    """White space between it and what stands before it on its line."""
    own_line: bool
    blank: bool
    """A blank line stands before it."""


@dataclass(frozen=True, slots=True)
class BlockText:
    """A literal or folded scalar: its header and its lines without the indentation that YAML takes off."""

    header: str
    digit: int | None
    """The indentation indicator."""
    keeps: bool
    """Chomping `+`: blank lines after it belong to it."""
    comment: Comment | None
    lines: list[str]


@dataclass(slots=True)
class Piece:
    kind: Kind
    text: str
    """As it stands in the file. Empty for the tokens that YAML only infers, such as the start of a mapping."""
    style: str
    line: int
    column: int
    block: BlockText | None = None
    comments: list[Comment] = field(default_factory=list)
    """Those between the last piece that has text and this one."""
    newline: bool = False
    """It is the first on its line."""
    blank: bool = False
    """A blank line stands between it and what is above it."""
    whole_line: bool = True
    """Nothing that starts on its line goes on to another one."""


def read_pieces(text: str) -> list[Piece]:
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
        if kind in (Kind.MAPPING_START, Kind.SEQUENCE_START):
            indents.append(start.column)
        elif kind is Kind.BLOCK_END:
            indents.pop()
        elif kind is Kind.OPEN:
            opened.append(start.line)
        elif kind is Kind.CLOSE:
            line = opened.pop()
            if line != start.line:
                broken.add(line)
        if not raw and kind is not Kind.END:
            continue
        _read_gap(text[end : start.index], column, at_line_start, piece)
        end, column = token.end_mark.index, token.end_mark.column
        at_line_start = False
        if piece.style in ("|", ">"):
            broken.add(start.line)
            piece.block, end = _read_block(text, start.index, end, start.column, indents[-1])
            column, at_line_start = 0, True
        elif token.end_mark.line != start.line and kind is Kind.SCALAR:
            broken.update((start.line, token.end_mark.line))
    for piece in pieces:
        piece.whole_line = piece.line not in broken
    return pieces


def _read_gap(text: str, column: int, at_line_start: bool, piece: Piece) -> None:
    """Fill in what stands before a piece: comments, line breaks and blank lines. The gap starts in `column`."""
    lines = text.split("\n")
    piece.newline = at_line_start or len(lines) > 1
    for number, line in enumerate(lines):
        own_line = number > 0 or at_line_start
        content = line.strip(" \t")
        if content:
            # INVARIANT: tokens cover all that is not white space or comment.
            assert content[0] == "#", f"{content!r} is in no token"
            gap = len(line) - len(line.lstrip(" \t"))
            piece.comments.append(Comment(_spaced(content), column + gap, gap, own_line, piece.blank))
            piece.blank = False
        elif own_line and number < len(lines) - 1:
            piece.blank = True
        column = 0


def _spaced(comment: str) -> str:
    """`#text` with its space; rulers (`####`) and `#!` are left alone."""
    return f"# {comment[1:]}" if re.match(r"#[^\s#!]", comment) else comment


def _read_block(text: str, start: int, end: int, column: int, parent: int) -> tuple[BlockText, int]:
    """A literal or folded scalar, and the offset at which what belongs to it ends."""
    head, has_body, body = text[start:end].partition("\n")
    match = re.fullmatch(r"(?P<header>[|>][-+0-9]*)(?P<gap>[ \t]*)(?P<comment>#.*)?", head)
    assert match is not None, f"{head!r} is not the header of a block scalar"
    header = match["header"]
    comment = None
    if match["comment"] is not None:
        note = _spaced(match["comment"].rstrip(" \t"))
        comment = Comment(note, column + match.start("comment"), len(match["gap"]), own_line=False, blank=False)
    digits = re.sub(r"\D", "", header)
    digit = int(digits) if digits else None
    lines = body.split("\n")
    last = lines.pop()
    if digit is not None:
        indent = max(parent, 0) + digit
    else:
        indent = _found_indent([*lines, last], parent)
    if len(last.rstrip(" ")) > 0 or len(last) > indent:
        # The file ends inside the last line, so the value has no line break at its end. The file gets one; `-`
        # says that it is not part of the value.
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


def _found_indent(lines: list[str], parent: int) -> int:
    """The indentation of a block scalar that does not state it: that of its first line, or of a longer blank one."""
    found = max(parent + 1, 1)
    for line in lines:
        found = max(found, len(line) - len(line.lstrip(" ")))
        if line.strip(" "):
            break
    return found
