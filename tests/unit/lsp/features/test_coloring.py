"""Semantic tokens and inlay hints."""

from __future__ import annotations

from lsprotocol import types

from tests.unit.lsp.features.workspace import FEE, open_files
from vesper.lsp.features.coloring import KINDS, tokens
from vesper.lsp.features.hints import inlay_hints
from vesper.lsp.view import View

WHOLE = types.Range(types.Position(0, 0), types.Position(99, 0))


def words(view: View, range_: types.Range | None = None) -> list[str]:
    """Return the tokens as `text kind`."""
    data, lines = tokens(view, range_).data, view.source.text.splitlines()
    found, line, column = [], 0, 0
    for index in range(0, len(data), 5):
        step, first, length, kind, _ = data[index : index + 5]
        line, column = line + step, first + (0 if step else column)
        text = lines[line].encode("utf-16-le")[2 * column : 2 * (column + length)].decode("utf-16-le")
        found.append(f"{text} {KINDS[kind]}")
    return found


def test_tokens_of_an_expression() -> None:
    view = open_files(fee_v1=FEE)
    line = FEE.splitlines().index("    value: capped(amount * rate, 5) + pieces")
    range_ = types.Range(types.Position(line, 0), types.Position(line, 60))
    assert words(view, range_) == [
        "capped function", "amount parameter", "* operator", "rate variable", "5 number", "+ operator",
        "pieces variable",
    ]  # fmt: skip


def test_tokens_of_the_other_parts() -> None:
    found = words(open_files(fee_v1=FEE))
    for each in ("SUM keyword", "line variable", "qty property", "DE enumMember", "Line type", "array type"):
        assert each in found


def test_tokens_behind_characters_of_two_units() -> None:
    text = FEE.replace("amount * rate", "IF 'ä😀' == 'x' THEN amount ELSE rate")
    assert ["IF keyword", "'ä😀' string", "== operator"] == [
        each for each in words(open_files(fee_v1=text)) if each[:2] in ("IF", "'ä", "==")
    ]


def test_tokens_of_an_unfinished_expression() -> None:
    text = FEE.replace("capped(amount * rate, 5) + pieces", "capped(amount * rate, 'op")
    assert "rate variable" in words(open_files(fee_v1=text))


def test_hints_are_the_types_of_steps_without_one() -> None:
    text = FEE.replace("  - step: fee\n", "  - step: fee\n    type: decimal\n")
    found = inlay_hints(open_files(fee_v1=text), WHOLE)
    assert [(each.position.line, each.label) for each in found] == [(20, ": integer")]
