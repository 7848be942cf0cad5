"""The lessons of the tutorial, run as a reader does: files, changes and commands of a page, in their order.

A lesson starts with the files of the lessons before it. `console server` is the command of a second terminal. `TRACE`
is the first id of the list of traces that was printed last.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
import urllib.error
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.docs.test_serve_nodes import curl
from tests.support.console import ROOT, Command, check_printed, parse_session
from tests.support.prepared import vesper

FOLDER = ROOT / "docs" / "tutorial"
LESSONS = sorted(FOLDER.glob("[1-6]-*.md"))
PORT = "8000"
WAIT_SECONDS = 60
_BLOCK = re.compile(r"^```(console|diff|yaml|toml|python) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_VOLATILE = re.compile(r"^nodes that change things are journalled .*\n|^warning: (?:.*\n)+?(?=\n)", re.MULTILINE)
"""Warnings about the folder for temporary files, where the tests run and readers do not."""


class Reader:
    """Follow a page in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = PORT
        self.trace = ""
        self.terminals = ExitStack()

    def read(self, page: Path, *, is_typing: bool) -> None:
        text = page.read_text(encoding="utf-8")
        for block in _BLOCK.finditer(text):
            kind, name, body = block.groups()
            if kind != "console":
                self.write(kind, name, body)
            elif is_typing:
                for command in parse_session(body, text.count("\n", 0, block.start(3)) + 1):
                    self.serve(command) if name == "server" else self.type(command)

    def write(self, kind: str, name: str, body: str) -> None:
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        if kind == "diff":
            lines = body.splitlines(keepends=True)
            before, after = ("".join(line[1:] for line in lines if line[0] in " " + sign) for sign in "-+")
            old = file.read_text(encoding="utf-8")
            assert old.count(before) == 1, f"{name} has the lines of a change once:\n{before}"
            body = old.replace(before, after)
        file.write_text(body, encoding="utf-8")

    def type(self, command: Command) -> None:
        """Run a command and compare its output; `vesper status` until the evidence has reached the store."""
        until = time.monotonic() + (WAIT_SECONDS if command.text == "vesper status" else 0)
        while True:
            printed, code = self.run(command)
            try:
                return check_printed(command, _VOLATILE.sub("", printed).replace(self.port, PORT), code)
            except AssertionError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def run(self, command: Command) -> tuple[str, int]:
        text = command.text.replace("TRACE", self.trace).replace(PORT, self.port)
        program, *words = shlex.split(text)
        if program == "curl":
            return response(text), 0
        if program == "python":
            script = (self.folder / words[0]).read_text(encoding="utf-8").replace(PORT, self.port)
            done = self.start([sys.executable, "-c", script, *words[1:]])
            return done.communicate(timeout=WAIT_SECONDS)[0], done.returncode
        assert program == "vesper", f"line {command.line}: a lesson runs vesper, curl and python"
        printed, code = vesper(words, self.folder)
        if words[:2] == ["traces", "list"]:
            self.trace = printed.splitlines()[1].split()[0]
        return printed, code

    def start(self, words: list[str]) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(
            words, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def serve(self, command: Command) -> None:
        process = self.start([sys.executable, "-m", *shlex.split(command.text.replace(PORT, "0"))])
        self.terminals.callback(process.communicate, timeout=WAIT_SECONDS)
        self.terminals.callback(process.terminate)
        assert process.stdout is not None
        line = next((line for line in process.stdout if line.startswith("serving ")), "")
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        assert found, f"line {command.line}: nothing is served"
        self.port = found[1]
        check_printed(command, line.replace(self.port, PORT), 0)


def response(command: str) -> str:
    """Return the body of a response, also of a refusal."""
    try:
        return curl(command)
    except urllib.error.HTTPError as error:
        with error:
            return error.read().decode()


@pytest.mark.parametrize("page", LESSONS, ids=lambda page: page.stem)
def test_lesson(page: Path, tmp_path: Path) -> None:
    assert len(LESSONS) == 6
    reader = Reader(tmp_path)
    for earlier in LESSONS[: LESSONS.index(page)]:
        reader.read(earlier, is_typing=False)
    with reader.terminals:
        reader.read(page, is_typing=True)
