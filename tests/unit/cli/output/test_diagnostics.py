"""Diagnostics within the width of a terminal."""

from __future__ import annotations

import io
import re

import pytest

from vesper.cli.output.diagnostics import decorate
from vesper.cli.output.terminal import EscapedStream

TEXT = """\
error[VSP1102]: no input is named `imput`
  --> a_v1.vsp:16:52
   |
 7 |   input: decimal
   |   ----- `input` is declared here, and it is a decimal
...
16 |     value: amount * 1.5 + another_amount + one_more + imput + amount
   |                                                       ^^^^^ unknown name
   |
   = help: did you mean `input`? A name is an input, a constant or an earlier step
"""


def shown(width: int | None) -> str:
    stream = io.StringIO()
    EscapedStream(stream).write(decorate(TEXT.rstrip("\n"), "red", width))
    return stream.getvalue()


def test_without_a_width_the_text_is_unchanged() -> None:
    assert shown(None) == TEXT.rstrip("\n")
    assert shown(120) == TEXT.rstrip("\n")


def test_a_narrow_excerpt_is_cut_around_the_span_and_labels_wrap() -> None:
    lines = shown(44).split("\n")
    assert max(map(len, lines)) <= 44
    assert lines[3:] == [
        " 7 |   input: decimal",
        "   |   -----",
        "   |   `input` is declared here, and it is a",
        "   |   decimal",
        "...",
        "16 | …her_amount + one_more + imput + amount",
        "   |                          ^^^^^",
        "   |   unknown name",
        "   |",
        "   = help: did you mean `input`? A name is",
        "     an input, a constant or an earlier step",
    ]


@pytest.mark.parametrize("width", [40, 41, 50, 57, 60, 64, 72])
def test_the_caret_stays_below_its_span(width: int) -> None:
    lines = shown(width).split("\n")
    at = next(index for index, line in enumerate(lines) if re.search(r"\^{5}", line))
    start = lines[at].index("^")
    assert lines[at - 1][start : start + 5] == "imput"


def test_carets_and_help_are_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    text = shown(None)
    assert "\x1b[31m^^^^^ unknown name\x1b[0m" in text
    assert "\x1b[36m----- `input`" in text
    assert "\x1b[36m\x1b[1mhelp:\x1b[0m did you" in text
