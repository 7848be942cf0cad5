"""Characters of a scalar, each with its offset in the file.

An expression may be a plain, quoted, folded or literal scalar. The tokenizer reads it from here, so every token and
caret has an exact span in any quoting. Line breaks inside a scalar are white space in an expression, so only the
escapes of quoted scalars are decoded, and YAML's folding is not repeated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.syntax.yaml.scalars import BREAK, ESCAPES, HEX_ESCAPES
from vesper.language.syntax.yaml_tree import Scalar

_LINE_BREAK = re.compile(BREAK)


@dataclass(frozen=True, slots=True)
class PlacedText:
    """Characters and the offset of each in the file. `end` is the offset after the last one."""

    text: str
    offsets: Sequence[int]
    end: int

    def span(self, start: int, end: int) -> Span:
        """Return the span of the file from which characters `start:end` come."""
        offsets = self.offsets
        count = len(offsets)
        first = offsets[start] if start < count else self.end
        if end <= start:
            return Span(first, first)
        # The character before `end` may be an escape of several, so the span reaches to the start of the next one.
        return Span(first, offsets[end] if end < count else self.end)


def place_text(source: SourceFile, scalar: Scalar) -> PlacedText:
    """Return the characters of a scalar with their offsets."""
    raw = source.slice(scalar.span)
    start = scalar.span.start
    if scalar.style == "'":
        placed = _single_quoted(raw, start)
    elif scalar.style == '"':
        placed = _double_quoted(raw, start)
    elif scalar.style in ("|", ">"):
        line_break = _LINE_BREAK.search(raw)
        header = len(raw) if line_break is None else line_break.end()
        placed = _verbatim(raw[header:].rstrip(), start + header)
    else:
        placed = _verbatim(raw, start)
    # INVARIANT: apart from white space this equals the text that YAML read; otherwise carets would be misplaced.
    assert placed.text == scalar.text or "".join(placed.text.split()) == "".join(scalar.text.split()), (
        f"scalar at offset {start} misread"
    )
    return placed


def _verbatim(raw: str, start: int) -> PlacedText:
    return PlacedText(raw, range(start, start + len(raw)), start + len(raw))


def _single_quoted(raw: str, start: int) -> PlacedText:
    characters: list[str] = []
    offsets: list[int] = []
    index = 1
    while index < len(raw) - 1:
        characters.append(raw[index])
        offsets.append(start + index)
        index += 2 if raw[index] == "'" else 1
    return PlacedText("".join(characters), tuple(offsets), start + len(raw) - 1)


def _double_quoted(raw: str, start: int) -> PlacedText:
    characters: list[str] = []
    offsets: list[int] = []
    index = 1
    while index < len(raw) - 1:
        offset = start + index
        if raw[index] != "\\":
            character, width = raw[index], 1
        elif raw[index + 1] in HEX_ESCAPES:
            digits = HEX_ESCAPES[raw[index + 1]]
            character, width = chr(int(raw[index + 2 : index + 2 + digits], 16)), 2 + digits
        elif raw[index + 1] in "\r\n":
            character, width = "\n", 2
        else:
            character, width = ESCAPES[raw[index + 1]], 2
        characters.append(character)
        offsets.append(offset)
        index += width
    return PlacedText("".join(characters), tuple(offsets), start + len(raw) - 1)
