"""Offsets of code points and positions in UTF-16."""

from __future__ import annotations

import pytest
from lsprotocol.types import Position

from vesper.language.diagnostics.source import SourceFile
from vesper.lsp.positions import to_offset, to_position

TEXT = "a: é\nb: 😀x\n\nlast"


@pytest.mark.parametrize("offset", range(len(TEXT) + 1))
def test_offsets_and_positions_are_inverse(offset: int) -> None:
    source = SourceFile("x", TEXT)
    assert to_offset(source, to_position(source, offset)) == offset


def test_columns_count_utf_16_units_and_end_with_their_line() -> None:
    source = SourceFile("x", TEXT)
    assert to_position(source, TEXT.index("x")) == Position(1, 5)
    assert to_offset(source, Position(1, 99)) == TEXT.index("x") + 1
    assert to_offset(source, Position(99, 0)) == len(TEXT)
