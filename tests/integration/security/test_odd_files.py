"""Options that read a file: a device, a FIFO, a socket or a folder is an error at once, never an endless read."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import vesper
from tests.integration.security.test_terminal_output import LEAVES
from vesper.cli.main import vesper as group
from vesper.cli.options import ReadFile, ReadPath

KINDS = ("zero", "fifo", "socket", "folder", "large")
MAX_SECONDS = 5.0
NODE = """\
node_id: fee_v1
type: function
intent: Charge a fee
inputs: {amount: decimal}
outputs: {success: {fee: decimal}}
flow:
  - operation: return
    success: {fee: amount}
testing:
  test_cases:
    - {name: one, inputs: {amount: 1}, expect: {fee: 1}}
"""
TABLE = """\
node_id: fee_v1
type: function
intent: Charge a fee
inputs: {amount: integer}
outputs: {success: {fee: integer}}
flow:
  - step: price
    operation: decision_table
    outputs: {fee: integer}
    rows:
      - {when: {amount: "< 5"}, then: {fee: 1}}
      - {when: {amount: ">= 5"}, then: {fee: 2}}
  - operation: return
    success: {fee: price}
"""
WRITTEN = {
    "output",
    "folder",
    "path",
    "record",
    "save",
    "save_to",
    "root",
    "picture",
    "paths",
    "corpus",
    "state_folder",
    "keep",
    "html",
    "target",
}
"""Parameters that name a file to write or a folder."""


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "fee_v1.vsp").write_text(NODE)
    os.mkfifo(tmp_path / "fifo")
    server = socket.socket(socket.AF_UNIX)
    server.bind("socket")
    server.close()
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", 1 << 40)
    return {kind: tmp_path / kind for kind in KINDS} | {"zero": Path("/dev/zero"), "folder": tmp_path / "nodes"}


def file_options(command: click.Command) -> list[click.Option]:
    return [
        each
        for each in command.params
        if isinstance(each, click.Option)
        and isinstance(each.type, click.File | click.Path)
        and each.name not in WRITTEN
    ]


READING = [(name, option.opts[0]) for name, command in LEAVES.items() for option in file_options(command)]
BOUNDED = ("--json", "--commands", "--responses", "--input")
"""Options with a limit of their own; readers of the others have theirs."""
CASES = [(*each, kind) for each in READING for kind in KINDS if kind != "large" or each[1] in BOUNDED]


def test_every_option_that_reads_a_file_is_tried() -> None:
    assert {option for _, option in READING} == {
        *BOUNDED,
        "--config",
        "--file",
        "--batch",
        "--ca",
        "--certificate",
        "--key",
        "--node-file",
        "--overlay",
        "--tests",
    }
    for command in LEAVES.values():
        for option in file_options(command):
            assert isinstance(option.type, ReadFile | ReadPath) or option.opts[0] in ("--batch", "--input")


@pytest.mark.parametrize(
    "name, option, kind", CASES, ids=lambda each: each if isinstance(each, str) else " ".join(each)
)
def test_an_odd_file_is_an_error_at_once(odd: dict[str, Path], name: tuple[str, ...], option: str, kind: str) -> None:
    arguments = ["fee" for each in LEAVES[name].params if isinstance(each, click.Argument)]
    given = [option, str(odd[kind])]
    if option == "--batch":
        Path("odd.csv").symlink_to(odd[kind])
        given = [option, "odd.csv", "-o", "out.csv"]
    began = time.monotonic()
    done = CliRunner().invoke(group, [*name, *arguments, *given])
    assert time.monotonic() - began < MAX_SECONDS
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code in (1, 2), done.output
    words = ("regular file is needed", "is a directory", "larger than", "is a folder", "no file in this folder")
    assert any(each in done.output for each in words), done.output


@pytest.mark.parametrize("kind", ["zero", "fifo", "folder", "large"])
def test_an_odd_settings_file_of_the_environment(
    odd: dict[str, Path], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("VESPER_CONFIG", str(odd[kind]))
    with pytest.raises(vesper.ConfigError, match=r"cannot be read: (it is|Is a directory)"):
        vesper.Host.from_file(odd[kind])
    began = time.monotonic()
    with pytest.raises(vesper.ConfigError, match="cannot be read"):
        vesper.load("fee", engine="auto")
    assert time.monotonic() - began < MAX_SECONDS


@pytest.mark.parametrize("kind", ["zero", "fifo", "large"])
def test_an_odd_output_file_is_not_read_either(odd: dict[str, Path], kind: str) -> None:
    done = CliRunner().invoke(group, ["compile", "fee", "-o", str(odd[kind])])
    assert done.exit_code in (1, 2), done.output
    assert isinstance(done.exception, SystemExit), done.exception


@pytest.mark.parametrize("kind", ["zero", "fifo", "socket", "folder"])
@pytest.mark.parametrize("form", ["md", "xlsx"])
def test_an_export_does_not_replace_an_odd_file(odd: dict[str, Path], form: str, kind: str) -> None:
    Path("nodes/fee_v1.vsp").write_text(TABLE)
    before = odd[kind].stat()
    done = CliRunner().invoke(group, ["export", form, "fee", "--out", str(odd[kind])])
    assert done.exit_code in (1, 2), done.output
    assert isinstance(done.exception, SystemExit), done.exception
    assert any(each in done.output for each in ("regular file is needed", "is a directory")), done.output
    after = odd[kind].stat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)


# -- python -m ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["click", "json", "tomllib", "yaml", "typing", "sqlite3", "hashlib", "readline"])
def test_python_m_does_not_import_from_the_working_folder(tmp_path: Path, name: str) -> None:
    """Of what Vesper imports. `python -m` itself imports a few modules first, for which there is `python -P -m`."""
    (tmp_path / f"{name}.py").write_text("print('planted code runs')\nraise SystemExit(9)\n")
    for command in (["-m", "vesper", "nodes", "list", "--nodes", "."], ["-m", "vesper", "--version"]):
        done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "planted" not in done.stdout
        assert done.returncode in (0, 2), done.stderr
