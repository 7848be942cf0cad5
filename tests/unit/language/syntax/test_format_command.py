"""`vesper fmt`: written files, untouched files and exit codes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from vesper.cli.fmt import command as fmt
from vesper.language.syntax.format.formatter import FormatFault

UGLY = "node_id:   a_v1\ninputs: {a: [ 1,2 ]}\n"
GOOD = "node_id: a_v1\n\ninputs: {a: [1, 2]}\n"


def run(*arguments: str | Path, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(fmt.command, [str(each) for each in arguments], input=stdin)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_files_are_written_in_place_with_their_mode(tmp_path: Path) -> None:
    ugly, good = tmp_path / "ugly.vsp", tmp_path / "good.vsp"
    ugly.write_text(UGLY)
    good.write_text(GOOD)
    ugly.chmod(0o640)
    unchanged = good.stat().st_ino
    result = run(tmp_path)
    assert result.exit_code == 0
    assert result.stdout == f"formatted {ugly.as_posix()}\n1 file formatted, 1 unchanged\n"
    assert ugly.read_text() == good.read_text() == GOOD
    assert ugly.stat().st_mode & 0o777 == 0o640
    assert good.stat().st_ino == unchanged
    assert names(tmp_path) == ["good.vsp", "ugly.vsp"]


def test_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "real.vsp").write_text(UGLY)
    (tmp_path / "link.vsp").symlink_to("real.vsp")
    refused = run(tmp_path / "link.vsp")
    assert (refused.exit_code, "it is a symbolic link" in refused.output) == (1, True)
    assert (tmp_path / "link.vsp").is_symlink()
    assert (tmp_path / "real.vsp").read_text() == UGLY


@pytest.mark.parametrize("options, code", [(["--check"], 1), (["--diff"], 0), (["--check", "--diff"], 1)])
def test_check_and_diff_write_nothing(tmp_path: Path, options: list[str], code: int) -> None:
    file = tmp_path / "a.vsp"
    file.write_text(UGLY)
    result = run(file, *options)
    assert result.exit_code == code
    assert "1 file would be formatted, 0 unchanged" in result.output
    assert ("would format" in result.output) == ("--check" in options)
    assert ("\n+node_id: a_v1\n+\n+inputs: {a: [1, 2]}\n" in result.stdout) == ("--diff" in options)
    assert file.read_text() == UGLY
    file.write_text(GOOD)
    assert run(file, *options).exit_code == 0


def test_diff_of_a_file_without_final_line_break(tmp_path: Path) -> None:
    file = tmp_path / "a.vsp"
    file.write_bytes(b"a: 1\nintent: x\r\ntype: y")
    path = file.as_posix()
    assert run(file, "--diff").stdout_bytes.decode() == (
        f"--- {path}\n+++ {path}\n@@ -1,3 +1,3 @@\n a: 1\n-intent: x\r\n-type: y\n\\ No newline at end of file\n"
        "+intent: x\n+type: y\n"
    )


def test_standard_input_is_formatted_to_standard_output() -> None:
    assert run("-", stdin=UGLY).stdout == GOOD
    assert run("-", "--check", stdin=UGLY).exit_code == 1
    assert run("-", "--check", stdin=GOOD).exit_code == 0
    assert run("-", stdin="a: [").exit_code == 1
    assert run("-", stdin="a: [").stdout == ""
    assert run("-", "nodes", stdin=GOOD).exit_code == 2


@pytest.mark.parametrize("data", [b"a: [\n", b"\xff", b"\xef\xbb\xbfa: 1\n", b"a:  " + b"x" * 1024 * 1024, b""])
def test_unreadable_file_is_unchanged(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.vsp").write_bytes(data)
    (tmp_path / "b.vsp").write_text(UGLY)
    result = run(tmp_path)
    assert result.exit_code == 1
    assert "error[VSP" in result.stderr
    assert result.stdout.endswith("1 file formatted, 0 unchanged, 1 with errors\n")
    assert (tmp_path / "a.vsp").read_bytes() == data


def test_format_fault_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(_: object) -> str:
        raise FormatFault("it says something else")

    monkeypatch.setattr(fmt, "format_source", fault)
    (tmp_path / "a.vsp").write_text(UGLY)
    result = run(tmp_path)
    assert result.exit_code == 3
    assert "a bug in Vesper" in result.stderr
    assert (tmp_path / "a.vsp").read_text() == UGLY


def test_failed_write_keeps_the_file_and_leaves_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    (tmp_path / "a.vsp").write_text(UGLY)
    result = run(tmp_path)
    assert result.exit_code == 1
    assert "cannot be written: No space left on device" in result.stderr
    assert (tmp_path / "a.vsp").read_text() == UGLY
    assert names(tmp_path) == ["a.vsp"]
