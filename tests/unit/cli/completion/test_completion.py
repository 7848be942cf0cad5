"""Completion in shells, and suggestions for mistyped commands."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from vesper.cli import main
from vesper.cli.main import COMMANDS, NODES_ONLY, vesper
from vesper.cli.options import NODE


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("fee_v1", "fee_v2", "price_v1"):
        path = tmp_path / "nodes" / "shop" / f"{name}.vsp"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("not: compiled", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def complete(line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what the last word of a line is completed to, as the scripts of the shells ask for it."""
    words = line.split(" ")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    asked = BashComplete(vesper, {}, "vesper", "_VESPER_COMPLETE")
    return [each.value for each in asked.get_completions(*asked.get_completion_args()) if each.type == "plain"]


@pytest.mark.parametrize(
    "line, found",
    [
        ("vesper ver", ["verify", "versions"]),
        ("vesper --ver", ["--version", "--verbose"]),
        ("vesper migrate sim", ["simulate"]),
        ("vesper verify --max-e", ["--max-examples"]),
        ("vesper run --engine ji", ["jit"]),
        ("vesper run fe", ["fee_v1", "fee_v2"]),
        ("vesper check fee_v1 pr", ["price_v1"]),
        ("vesper run -i amount=5 pr", ["price_v1"]),
        ("vesper run --nodes nothing fe", []),
        ("vesper migrate history pr", ["price_v1"]),
        ("vesper traces list --node fe", ["fee_v1", "fee_v2"]),
        ("vesper completion b", ["bash"]),
    ],
)
def test_words_are_completed(line: str, found: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert complete(line, monkeypatch) == found


def test_completing_a_node_imports_no_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vesper.cli.main.importlib.import_module", lambda name: pytest.fail(f"{name} was imported"))
    assert complete("vesper verify fe", monkeypatch) == ["fee_v1", "fee_v2"]
    assert complete("vesper che", monkeypatch) == ["check"]


@pytest.mark.parametrize("name", sorted(NODES_ONLY))
def test_commands_completed_without_import_take_only_nodes(name: str) -> None:
    command = vesper.get_command(click.Context(vesper), name)
    assert command is not None
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    assert {each.type for each in arguments} == {NODE}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_valid_and_say_how_to_install_them(shell: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(vesper, ["completion", shell])
    assert result.exit_code == 0
    assert f"vesper completion {shell}" in result.output
    assert f"_VESPER_COMPLETE={shell}_complete" in result.output
    assert result.output.startswith("#compdef vesper") == (shell == "zsh")
    if (program := shutil.which(shell)) is not None:
        (tmp_path / "script").write_text(result.output, encoding="utf-8")
        subprocess.run([program, "-n", tmp_path / "script"], check=True, timeout=60)


@pytest.mark.parametrize(
    "word, hint",
    [
        ("verfy", "did you mean `verify`?"),
        ("comp", "`vesper --help` lists the commands"),
        ("veri", "did you mean `verify`?"),
        ("format", "did you mean `vesper fmt`?"),
        ("help", "did you mean `vesper --help`?"),
        ("xyzzy", "`vesper --help` lists the commands"),
    ],
)
def test_a_mistyped_command_gets_a_suggestion(word: str, hint: str) -> None:
    result = CliRunner().invoke(vesper, [word])
    assert result.exit_code == 2
    assert f"Error: no command `{word}`; {hint}" in result.output


def test_synonyms_are_no_commands_and_lead_to_some() -> None:
    for word, meant in main._SYNONYMS.items():
        assert word not in COMMANDS
        assert meant.split()[0] in {*COMMANDS, "--help", "--version"}


def test_verbose_is_for_the_version() -> None:
    result = CliRunner().invoke(vesper, ["-v"])
    assert result.exit_code == 2
    assert "`vesper --version -v`" in result.output
