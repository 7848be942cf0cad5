"""Width and colours of output."""

from __future__ import annotations

import io
import sys

import pytest

from vesper.cli.output.terminal import EscapedStream, columns, escaped_output, has_colours, keep_lines, style, wrap_line


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize("given, width", [("60", 60), ("10", 40), ("900", 200), ("", 100)])
def test_the_width_is_that_of_columns_within_bounds(given: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "__stdout__", io.StringIO())  # no terminal
    monkeypatch.setenv("COLUMNS", given)
    assert columns() == width


def test_no_color_wins_over_force_color(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, terminal = io.StringIO(), Terminal()
    assert (has_colours(pipe), has_colours(terminal)) == (False, True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert (has_colours(pipe), has_colours(terminal)) == (True, True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert (has_colours(pipe), has_colours(terminal)) == (False, False)


@pytest.mark.parametrize(
    "line, wrapped",
    [
        ("a short line", "a short line"),
        ("  note: one two three four five six", "  note: one two three\n    four five six"),
        ("V1  gap  no row of this table matches", "V1  gap  no row of\n         this table\n         matches"),
        ("see /a/path/that/is/longer/than/the/width now", "see\n  /a/path/that/is/longer/than/the/width\n  now"),
        ("名前 名前 名前 名前 名前", "名前 名前 名前 名前\n  名前"),
    ],
)
def test_a_long_line_breaks_between_words(line: str, wrapped: str) -> None:
    assert wrap_line(line, 22) == wrapped


def test_colours_take_no_columns() -> None:
    line = f"{style('ok', 'green')} one two three four"
    assert wrap_line(line, 21) == line
    assert wrap_line(line, 20).endswith("three\n  four")


def test_only_prose_on_a_terminal_is_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    line = "word " * 12
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        EscapedStream(stream).write(line)
    assert "\n" in terminal.getvalue()
    assert pipe.getvalue() == line
    code = Terminal()
    monkeypatch.setattr(sys, "stdout", code)
    with escaped_output():
        keep_lines()
        print(line)
    assert code.getvalue() == line + "\n"
