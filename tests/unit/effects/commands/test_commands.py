"""Commands: allowed arguments, and a sandbox that a command cannot leave."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import eventually
from tests.unit.effects.ask_of import ask_of
from vesper.effects.commands.performer import CommandPerformer
from vesper.effects.commands.settings import CommandSettings
from vesper.effects.performer import EffectFailed
from vesper.effects.settings import ConfigError, Table
from vesper.language.check.flow.requests import COMMAND_RESULT

SHELL: dict[str, object] = {"program": "/bin/sh", "arguments": ["-c", {"pattern": ".*", "option": True}]}


def run(
    table: dict[str, object], arguments: object, stdin: str | None = None, timeout: float | None = None
) -> dict[str, Any]:
    settings = CommandSettings.from_table("tool", Table("commands.tool", table))
    given = {"arguments": arguments} | ({} if stdin is None else {"stdin": stdin})
    ask = ask_of("command_run", {"command": "tool"}, given, COMMAND_RESULT, "read", timeout=timeout)
    found = CommandPerformer({"tool": settings}).perform(ask)
    assert isinstance(found, dict)
    return found


def code_of(table: dict[str, object], arguments: object, stdin: str | None = None) -> str:
    with pytest.raises(EffectFailed) as failure:
        run(table, arguments, stdin)
    return failure.value.code


def test_a_command_gets_its_arguments_unread_by_a_shell() -> None:
    table: dict[str, object] = {"program": "/bin/echo", "arguments": [{"pattern": ".*", "most": 3}]}
    found = run(table, ["$HOME", "a b", "; ls"])
    assert found == {"exit_code": 0, "stdout": "$HOME a b ; ls\n", "stderr": "", "is_truncated": False}


@pytest.mark.parametrize(
    "arguments",
    [
        ["log"],
        ["log", "main", "more"],
        ["push", "main"],
        ["log", "--output=/etc/passwd"],
        ["log", "main;id"],
        ["log", "main\n"],
        ["log", "x" * 5000],
        ["log", "a\0b"],
    ],
)
def test_other_arguments_are_not_allowed(arguments: list[str]) -> None:
    table: dict[str, object] = {"program": "/bin/echo", "arguments": ["log", {"pattern": "[a-z]+"}]}
    assert run(table, ["log", "main"])["exit_code"] == 0
    assert code_of(table, arguments) == "not_allowed"


def test_arguments_are_texts() -> None:
    assert code_of({"program": "/bin/echo"}, "log main") == "invalid_argument"
    assert code_of({"program": "/bin/echo"}, [1]) == "invalid_argument"


def test_stdin_is_given_only_where_it_is_allowed() -> None:
    assert run({"program": "/bin/cat", "stdin": True}, [], "text")["stdout"] == "text"
    assert code_of({"program": "/bin/cat"}, [], "text") == "not_allowed"


def test_output_is_bounded() -> None:
    found = run(
        {**SHELL, "max_output": "1 KiB"}, ["-c", "head -c 300000 /dev/urandom | tr -dc a; head -c 5000 /bin/sh >&2"]
    )
    assert found["is_truncated"]
    assert len(found["stderr"]) <= 1024


def test_a_late_command_is_killed_with_its_children() -> None:
    mark = f"{os.getpid()}77"
    with pytest.raises(EffectFailed, match=r"took longer than 0\.4 s") as failure:
        run(SHELL, ["-c", f"sleep {mark} & sleep {mark}"], timeout=0.4)
    assert failure.value.may_have_happened
    eventually(lambda: not [line for line in command_lines() if mark.encode() in line])


def command_lines() -> Iterator[bytes]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            yield path.read_bytes()


ESCAPES = {
    "read a file outside": "cat /etc/passwd",
    "read the folder of the project": f"ls {Path(__file__).parent}",
    "read the environment of the caller": "cat /proc/$PPID/environ",
    "write outside": "echo x > /tmp/vesper-escaped",
    "write to a system folder": "echo x > /usr/bin/vesper-escaped",
    "signal the caller": "kill -TERM $PPID",
    "leave the group": "setsid true",
    "new namespace": "unshare -r true",
    "connect": "bash -c 'exec 3<>/dev/tcp/127.0.0.1/1'",
}


@pytest.mark.parametrize("script", ESCAPES.values(), ids=list(ESCAPES))
def test_a_command_does_not_leave_the_sandbox(script: str) -> None:
    found = run(SHELL, ["-c", script])
    assert found["exit_code"] != 0
    assert "denied" in found["stderr"].lower() or "not permitted" in found["stderr"].lower()
    assert not Path("/tmp/vesper-escaped").exists()


def test_the_network_is_there_only_when_it_is_granted() -> None:
    script = ["-c", "bash -c 'exec 3<>/dev/tcp/127.0.0.1/1'"]
    assert "Operation not permitted" in run(SHELL, script)["stderr"]
    assert "Connection refused" in run({**SHELL, "network": True}, script)["stderr"]


def test_a_command_has_an_empty_folder_and_a_small_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_CALLER", "s3cret")
    found = run(
        {**SHELL, "environment": {"ZONE": "utc"}}, ["-c", "ls -A; env | cut -d= -f1 | sort; echo kept > file; cat file"]
    )
    assert found["stdout"].split() == ["HOME", "LANG", "PATH", "PWD", "TMPDIR", "ZONE", "kept"]


@pytest.mark.parametrize(
    "table, problem",
    [
        ({"program": "git"}, "absolute path of a program"),
        ({"program": "/no/such"}, "absolute path of a program"),
        ({"program": "/bin/echo", "arguments": [{"pattern": "("}]}, "no pattern"),
        ({"program": "/bin/echo", "arguments": [{"pattern": "a", "most": 2}, "b"]}, "only the last entry"),
        ({"program": "/bin/echo", "read": ["/"]}, "root of the file system"),
        ({"program": "/bin/echo", "write": ["/no/such"]}, "there is no"),
        ({"program": "/bin/echo", "shell": True}, "no such setting"),
    ],
)
def test_settings_that_cannot_be_used(table: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        CommandSettings.from_table("tool", Table("commands.tool", table))
