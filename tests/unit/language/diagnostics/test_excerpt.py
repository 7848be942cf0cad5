"""Position and width of carets in a terminal."""

from __future__ import annotations

import pytest

from vesper.language.diagnostics.diagnostic import Label
from vesper.language.diagnostics.excerpt import display_width, render_excerpt
from vesper.language.diagnostics.source import SourceFile, Span


@pytest.mark.parametrize(
    "text, width",
    [
        ("abc", 3),
        ("é", 1),
        ("e\u0301", 1),
        ("金額", 4),
        ("ｱ", 1),
        ("Ａ", 2),
        ("😀", 2),
        ("नि", 2),
        ("", 0),
    ],
)
def test_width(text: str, width: int) -> None:
    assert display_width(text) == width


@pytest.mark.parametrize("before, columns", [("ab", 2), ("e\u0301e\u0301", 2), ("金額", 4), ("\t", 4), ("\u202e", 6)])
def test_caret_is_under_its_text(before: str, columns: int) -> None:
    text = f"{before}wrong rest"
    span = Span(len(before), len(before) + 5)
    shown = render_excerpt(SourceFile("x.vsp", text), "title", Label(span, "here"))
    assert shown.splitlines()[-1] == f"  | {' ' * columns}^^^^^ here"


def test_caret_is_as_wide_as_its_span() -> None:
    shown = render_excerpt(SourceFile("x.vsp", "a 金額 b"), "title", Label(Span(2, 4), ""))
    assert shown.splitlines()[-1] == "  |   ^^^^"
