"""No control character of a name or a value reaches the terminal, by any command; colours obey the environment."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from vesper.cli.main import COMMANDS
from vesper.cli.main import vesper as group
from vesper.cli.output.terminal import EscapedStream, control, escape, style

HOSTILE = "evil\x1b]0;owned\x07\x1b[2J\x9b31m\u202egpj\u2066x\x7f\r"
UNSAFE = re.compile("\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
COLOURS = re.compile(r"\x1b\[(?:0|1|2|31|32|33|36)m")
TEXT = """\
node_id: echo_v1
type: function
intent: Return the text
inputs: {text: string}
outputs: {success: {text: string}}
contracts:
  postconditions: [text != 'no']
flow:
  - operation: return
    success: {text: text}
testing:
  test_cases:
    - {name: "evil \\u001b[2J \\u009b", inputs: {text: "\\u001b[2J\\u009b\\u202e"}, expect: {text: other}}
"""


def leaves(command: click.Command, name: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for each in command.list_commands(context):
        found = command.get_command(context, each)
        assert found is not None
        yield from leaves(found, (*name, each))


LEAVES = dict(leaves(group))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "echo_v1.vsp").write_text(TEXT)
    return tmp_path


def check(*arguments: str) -> str:
    done = CliRunner().invoke(group, list(arguments))
    assert not UNSAFE.search(done.output), (arguments, UNSAFE.findall(done.output), done.output)
    assert done.exception is None or isinstance(done.exception, SystemExit), (arguments, done.exception)
    return done.output


def test_every_command_is_tried() -> None:
    assert {name[0] for name in LEAVES} == set(COMMANDS)


@pytest.mark.parametrize("name", LEAVES, ids=" ".join)
def test_hostile_arguments_and_options(project: Path, name: tuple[str, ...]) -> None:
    command = LEAVES[name]
    arguments = [HOSTILE for each in command.params if isinstance(each, click.Argument)]
    shown = [check(*name, "--", *arguments, HOSTILE)]
    if name not in (("dashboard",), ("demo",), ("lsp",), ("kernel", "serve")):  # take no argument, and would start
        shown.append(check(*name, "--", *arguments))
    for each in command.params:
        if isinstance(each, click.Option) and not each.is_flag and not each.count:
            shown.append(check(*name, each.opts[0], HOSTILE, "--", *arguments))
    shown.append(check(*name, f"--{HOSTILE}"))
    assert any("evil" in text for text in shown), "the name is shown, escaped"


def test_hostile_names_of_files(project: Path) -> None:
    name = f"nodes/{HOSTILE.replace('/', '')}_v1.vsp"
    (project / name).write_text(TEXT.replace("text: text}", "text: txt}"))
    for command in (["check"], ["check", "--format", "concise"], ["check", "--format", "json"], ["fmt", "--check"],
                    ["nodes", "list"], ["test"], ["verify"], ["compile", "--all", "nodes", "-o", "out"]):  # fmt: skip
        assert "evil" in check(*command), command


def test_hostile_values(project: Path) -> None:
    value = json.dumps({"text": HOSTILE}, ensure_ascii=True)
    (project / "given.json").write_text(value)
    outputs = [check("run", "echo", "--json", "given.json")]
    outputs.append(check("run", "echo", "--json", "given.json", "--trace"))
    trace = outputs[-1].split()[-1]
    outputs += [check("run", "echo", "--json", "given.json", "--format", "json"), check("traces", "show", trace)]
    outputs += [check("traces", "export", trace), check("traces", "to-test", trace), check("traces", "list")]
    outputs += [check("debug", "echo", "--json", "given.json", "-x", "print text"), check("test", "echo")]
    outputs += [check("replay", trace, "-x", "print text"), check("profile", "echo", "--json", "given.json")]
    outputs += [check("run", "echo", "--case", "evil \x1b[2J \x9b"), check("run", "echo", "-i", f"{HOSTILE}=1")]
    assert json.loads(outputs[2])["outcomes"]["python"]["value"]["text"] == HOSTILE, "JSON keeps the value"
    (project / "trace.json").write_text(outputs[4], encoding="utf-8")
    assert "owned" in check("traces", "show", "trace.json"), "an exported trace stays readable"


@pytest.mark.parametrize("style", ["jsonl", "csv"])
def test_hostile_values_in_journal_and_audit(project: Path, style: str) -> None:
    (project / "nodes" / "echo_v1.vsp").write_text(TEXT + "security: {audit_level: detailed}\n")
    (project / "given.json").write_text(json.dumps({"text": HOSTILE}))
    execution = check("run", "echo", "--json", "given.json").split()[-1]
    for command in (["journal", "list"], ["journal", "show", execution], ["audit", "list"], ["journal", "verify"]):
        check(*command)
    assert "owned" in check("journal", "show", execution, "--format", "json")
    exported = check("audit", "export", "--format", style).replace("\r\n", "\n")
    (project / f"audit.{style}").write_bytes(exported.encode())
    assert "owned" in exported
    done = CliRunner().invoke(group, ["audit", "verify", "--file", f"audit.{style}"])
    assert done.exit_code == 0, done.output


# -- colours --------------------------------------------------------------------------------------


def on_terminal(folder: Path, *arguments: str, **environment: str) -> str:
    """Return what a command writes to a terminal."""
    ours, theirs = pty.openpty()
    inherited = {
        key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "TERM")
    }
    with subprocess.Popen(
        [Path(sys.executable).parent / "vesper", *arguments],
        cwd=folder,
        env={**inherited, "TERM": "xterm", **environment},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ):
        os.close(theirs)
        parts = []
        try:
            while part := os.read(ours, 65_536):
                parts.append(part)
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    return b"".join(parts).decode()


WITHOUT = [{"NO_COLOR": "1"}, {"CLICOLOR": "0"}, {"TERM": "dumb"}]


COLOURFUL = [("check", "nodes/wrong_v1.vsp"), ("test", "echo"), ("debug", "echo", "-x", "next")]


@pytest.mark.parametrize("command", COLOURFUL, ids=lambda each: each[0])
def test_colours_obey_the_environment(project: Path, command: tuple[str, ...]) -> None:
    (project / "nodes" / "wrong_v1.vsp").write_text(
        TEXT.replace("echo_v1", "wrong_v1").replace("text: text}", "text: txt}")
    )
    shown = on_terminal(project, *command)
    assert COLOURS.search(shown)
    assert not UNSAFE.search(COLOURS.sub("", shown).replace("\r\n", "\n").replace("\r\x1b[K", ""))
    for environment in (*WITHOUT, {"NO_COLOR": "0"}):
        shown = on_terminal(project, *command, **environment)
        assert not COLOURS.search(shown), environment
    assert COLOURS.search(on_terminal(project, *command, NO_COLOR="", CLICOLOR="1"))


def test_a_value_cannot_forge_a_colour(capsys: pytest.CaptureFixture[str]) -> None:
    class Terminal(EscapedStream):
        def __init__(self) -> None:
            super().__init__(sys.stdout)
            self._has_colours = True

    forged = control("red").replace(control("red")[1:17], "0" * 16)
    Terminal().write(style("fine", "bold", "red") + "\x1b[31mforged" + forged + "\n")
    assert capsys.readouterr().out == "\x1b[1m\x1b[31mfine\x1b[0m\\x1b[31mforged\\x000000000000000000:red\\x00\n"
    assert escape("tab\tline\n") == "tab\tline\n"
