"""`vesper nodes diff`: arguments, revisions of git, formats and exit codes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from vesper.cli.nodes.command import command

NODE = """\
node_id: ID
type: function
intent: Add
inputs: {a: integer}
outputs: {success: {b: integer}}
flow:
  - operation: return
    success: {b: a + 1}
"""
Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nodes").mkdir()
    _write("plus_v1", "a + 1")
    return lambda *arguments: CliRunner().invoke(command, ["diff", *arguments])


def _write(node_id: str, value: str) -> None:
    text = NODE.replace("ID", node_id).replace("a + 1", value)
    Path(f"nodes/{node_id}.vsp").write_text(text, encoding="utf-8")


def _git(*arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *arguments], check=True, capture_output=True)


def test_one_name_is_the_newest_version_against_the_one_before(run: Run) -> None:
    _write("plus_v2", "a + 2")
    _write("plus_v10", "a + 3")
    found = run("plus")
    assert found.exit_code == 1
    assert "plus_v2 (nodes/plus_v2.vsp) → plus_v10" in found.output
    assert "output b: a + 2 → a + 3" in found.output
    assert found.output.endswith("1 difference that may change outcomes\n")
    assert "plus_v1 (nodes/plus_v1.vsp) → plus_v2" in run("plus_v2").output


def test_equal_versions_exit_with_0(run: Run) -> None:
    _write("plus_v2", "(a + 1)")
    found = run("plus")
    assert (found.exit_code, found.output.splitlines()[-1]) == (
        0,
        "no difference in meaning: the semantic hashes are equal",
    )


def test_text_alone_is_listed_with_all(run: Run) -> None:
    _write("plus_v2", "a + 1")
    path = Path("nodes/plus_v2.vsp")
    path.write_text(path.read_text().replace("intent: Add", "intent: Add one"))
    assert "1 in text alone (--all lists them)" in run("plus").output
    found = run("plus", "--all")
    assert "intent: Add → Add one" in found.output
    assert found.exit_code == 0


def test_json_has_every_difference(run: Run) -> None:
    _write("plus_v2", "a + 2")
    found = json.loads(run("plus_v1", "plus_v2", "--format", "json").output)
    (change,) = found["changes"]
    assert found["is_different"]
    assert (change["kind"], change["before"], change["after"]) == ("step.output.changed", "a + 1", "a + 2")
    assert (change["before_mark"], change["after_mark"]) == ([4, 5], [4, 5])


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["plus"], "is the oldest version"),
        (["other"], "no node `other`"),
        (["plus", "plus_v1", "plus_v1"], "name one NODE, or two"),
        (["HEAD:nodes/plus_v1.vsp", "plus"], "is in no repository of git"),
        (["--git", "-x", "plus"], "is no revision of git"),
        (["--git", "HEAD", "plus", "plus"], "name one NODE"),
    ],
)
def test_wrong_arguments_exit_with_2(run: Run, arguments: list[str], message: str) -> None:
    found = run(*arguments)
    assert found.exit_code == 2
    assert message in found.output


def test_a_version_with_errors_exits_with_2(run: Run) -> None:
    _write("plus_v2", "a + nothing")
    found = run("plus")
    assert found.exit_code == 2
    assert "only versions without errors are compared" in found.output


def test_revisions_of_git_have_their_own_neighbours(run: Run, tmp_path: Path) -> None:
    """The called node is the one of the revision too, and `--follow` shows what changed in it."""
    caller = NODE.replace("ID", "twice_v1").replace("{b: a + 1}", '{b: "plus_v1(a: a).b * 2"}')
    Path("nodes/twice_v1.vsp").write_text(caller)
    _git("init", "-q")
    _git("add", "nodes")
    _git("commit", "-q", "-m", "first")
    _write("plus_v1", "a + 5")
    found = run("--git", "HEAD", "twice", "--follow")
    assert found.exit_code == 1
    assert "called node `plus`" in found.output
    assert "output b: a + 1 → a + 5" in found.output
    by_path = run("HEAD:nodes/plus_v1.vsp", "nodes/plus_v1.vsp")
    assert "plus_v1 (HEAD:nodes/plus_v1.vsp) → plus_v1 (nodes/plus_v1.vsp)" in by_path.output
    assert run("HEAD:plus", "HEAD:nodes/plus_v1.vsp").exit_code == 0
    assert run("HEAD:nodes/none_v1.vsp", "plus").exit_code == 2
    assert "there is no revision `none`" in run("--git", "none", "plus").output
