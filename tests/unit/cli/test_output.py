"""Output that nobody takes, and names that are no text: a message and exit code 1, never a bug report."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.nodes import PAYMENT_DECISION

COMMANDS = [
    ["check", "nodes", "--no-cache"],
    ["check", "nodes", "--no-cache", "--format", "json"],
    ["nodes", "list", "--no-cache"],
    ["nodes", "show", "payment_decision", "--format", "json"],
    ["compile", "payment_decision"],
    ["explain"],
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / PAYMENT_DECISION.name).write_bytes(PAYMENT_DECISION.read_bytes())
    return tmp_path


def _run(arguments: list[str], folder: Path, stdout: int) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    # Output is buffered, as for most users; images of containers often set it otherwise.
    environment.pop("PYTHONUNBUFFERED", None)
    command = [sys.executable, "-m", "vesper", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, stdout=stdout, stderr=subprocess.PIPE, timeout=60, check=False
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_full_disk(arguments: list[str], folder: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        result = _run(arguments, folder, full.fileno())
    assert (result.returncode, result.stderr) == (1, b"error: cannot write the output: No space left on device\n")


@pytest.mark.parametrize("arguments", COMMANDS[:3], ids=" ".join)
def test_a_reader_that_has_gone(arguments: list[str], folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        result = _run(arguments, folder, write)
    finally:
        os.close(write)
    assert (result.returncode, result.stderr) == (1, b"")


@pytest.mark.parametrize("style", ["full", "json", "sarif"])
def test_a_name_that_is_not_text(style: str, folder: Path) -> None:
    odd = os.fsencode(folder) + b"/nodes/b\xffd_v1.vsp"
    try:
        Path(os.fsdecode(odd)).write_bytes(b"node_id: bad_v1\n")
    except OSError:
        pytest.skip("the system has no such names")
    result = _run(["check", "nodes", "--no-cache", "--format", style], folder, subprocess.PIPE)
    assert result.returncode == 1
    said = result.stdout + result.stderr
    assert b"its name is not UTF-8" in said
    assert b"b\\xffd_v1.vsp" in said.replace(b"\\\\", b"\\") or b"b%5Cxffd_v1.vsp" in said
    assert b"bug in Vesper" not in said
