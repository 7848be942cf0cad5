"""The line of progress: its text, and that other output is never mixed with it."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import pytest

from vesper.cli.output import progress as module
from vesper.cli.output.progress import Progress
from vesper.cli.output.terminal import escaped_output


class Terminal(io.StringIO):
    """A terminal that keeps what is written to it."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def wait_for(terminal: Terminal, pattern: str) -> None:
    end = time.monotonic() + 30
    while not re.search(pattern, terminal.getvalue()):
        assert time.monotonic() < end, terminal.getvalue()
        time.sleep(0.01)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(module, "_FIRST_SECONDS", 0.01)
    monkeypatch.setattr(module, "_REFRESH_SECONDS", 0.01)
    return Terminal()


@contextmanager
def writing_to(terminal: Terminal) -> Iterator[None]:
    """Replace the streams inside of a test: pytest replaces those of a fixture."""
    with redirect_stdout(terminal), redirect_stderr(terminal), escaped_output():
        yield


def test_a_line_moves_while_a_step_takes_long_and_is_erased_by_other_output(terminal: Terminal) -> None:
    with writing_to(terminal), Progress("testing", 3) as progress:
        for name in progress.over(["a_v1", "b_v1"]):
            wait_for(terminal, f"testing .*{name}")
            print(f"{name} passed")
    text = re.sub(r"\r\x1b\[K[^\r\n]*(?=\r\x1b\[K)", "", terminal.getvalue())  # drawn lines that the next one replaces
    assert re.sub(r"\r\x1b\[K", "", text) == "a_v1 passed\nb_v1 passed\n"


def test_names_cannot_move_the_cursor(terminal: Terminal) -> None:
    with writing_to(terminal), Progress("testing", 2) as progress:
        progress.reach(1, "evil\x1b[2J")
        wait_for(terminal, re.escape("evil\\x1b[2J"))
    assert "\x1b[2J" not in terminal.getvalue()


def test_a_pipe_gets_no_progress(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_SECONDS", 0.0)
    with Progress("testing", 2) as progress:
        assert list(progress.over("ab")) == ["a", "b"]
    assert capsys.readouterr() == ("", "")


def test_the_text_has_share_count_time_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    progress = Progress("verifying", 4_000)
    assert progress.text(101, 79) == "verifying [....................]   0% 0/4,000 0:01"
    now = 130.0
    progress.reach(1_000, "fee_v1")
    assert progress.text(130, 79) == "verifying [#####...............]  25% 1,000/4,000 0:30, 1:30 left fee_v1"
    assert progress.text(140, 79).endswith(" 0:40, 1:20 left fee_v1")  # counts down between steps
    assert progress.text(140, 41) == "verifying  25% 1,000/4,000 0:40, 1:20 lef"
    shares, unknown = Progress("running", 1.0), Progress("shrinking", None)
    shares.reach(0.5, "12 rows")
    unknown.reach(12, "80 bytes")
    assert shares.text(now + 3_700, 79) == "running [##########..........]  50% 1:01:40, 0:00 left 12 rows"
    assert unknown.text(now + 2, 79) == "shrinking 0:02 80 bytes"
