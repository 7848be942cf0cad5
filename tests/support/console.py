"""Console sessions as tests: `$ command` and its expected output.

`…` in an expected line matches anything on that line; a line `...` matches any lines. Output is standard output and
standard error together. A session runs in a copy of the repository's `nodes/`.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.prepared import vesper

ROOT = Path(__file__).parents[2]


@dataclass
class Command:
    text: str
    line: int
    expected: list[str] = field(default_factory=list)
    exit_code: int | None = None
    """Expected exit code, from a line `exit N` at the end; None if not given."""


def parse_session(text: str, first_line: int = 1) -> list[Command]:
    commands: list[Command] = []
    continues = False
    for number, line in enumerate(text.split("\n"), start=first_line):
        if continues:
            commands[-1].text += " " + line.strip().removesuffix("\\")
        elif line.startswith("$ "):
            commands.append(Command(line[2:].removesuffix("\\"), number))
        elif commands and re.fullmatch(r"exit [0-9]+", line):
            commands[-1].exit_code = int(line[5:])
            continue
        elif commands:
            commands[-1].expected.append(line)
        continues = line.endswith("\\")
    for command in commands:
        while command.expected and not command.expected[-1]:
            command.expected.pop()
    return commands


def markdown_sessions(path: Path) -> list[list[Command]]:
    """Return the ```console blocks of a page."""
    found = []
    lines = path.read_text(encoding="utf-8").split("\n")
    start: int | None = None
    for number, line in enumerate(lines, start=1):
        if line == "```console":
            start = number
        elif line == "```" and start is not None:
            found.append(parse_session("\n".join(lines[start : number - 1]), start + 1))
            start = None
    return found


def markdown_files(path: Path) -> dict[str, str]:
    """Return the files of a page: ```yaml, ```csv and ```toml blocks with a file name."""
    text = path.read_text(encoding="utf-8")
    return dict(re.findall(r"^```(?:yaml|csv|toml) (\S+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def run_session(commands: list[Command], folder: Path, files: Mapping[str, str] | None = None) -> None:
    for name, body in (files or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(body, encoding="utf-8")
    # One node, so that new nodes of the repository do not change sessions.
    (folder / "nodes" / "payments").mkdir(parents=True)
    shutil.copy(ROOT / "nodes/payments/payment_decision_v1.vsp", folder / "nodes/payments")
    for command in commands:
        words = shlex.split(command.text, comments=True)
        if words[0] == "make":
            continue  # `make` runs these tests itself
        allowed = {"vesper", "sed", "cat", "touch", "chmod"}
        assert words[0] in allowed, f"line {command.line}: a session runs vesper, not `{words[0]}`"
        if words[0] == "vesper":
            check_printed(command, *vesper(words[1:], folder))
            continue
        done = subprocess.run(
            words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120
        )
        check_printed(command, done.stdout, done.returncode)


def check_printed(command: Command, text: str, code: int) -> None:
    """Assert the printed text and the exit code of a command."""
    printed = [line.rstrip() for line in text.rstrip("\n").split("\n")]
    pattern = "\n".join(_pattern(line) for line in command.expected)
    pattern = pattern.replace("\n" + _ANY_LINES, "(?:\n.*)*").replace(_ANY_LINES + "\n", "(?:.*\n)*")
    if command.expected:
        assert re.fullmatch(pattern, "\n".join(printed)), (
            f"line {command.line}: `{command.text}` printed\n{text}\ninstead of\n" + "\n".join(command.expected)
        )
    wanted = command.exit_code if command.exit_code is not None else 0
    assert code == wanted, f"line {command.line}: `{command.text}` ended with {code}\n{text}"


_ANY_LINES = "(?:any lines)"


def _pattern(line: str) -> str:
    if line.strip() == "...":
        return _ANY_LINES
    return ".*".join(re.escape(part) for part in line.rstrip().split("…"))
