"""`vesper new`: new nodes are valid, and existing files are never lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from vesper.cli.main import vesper
from vesper.repository.starter import STARTERS, replace_id


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(vesper, list(words))


@pytest.mark.parametrize("type_", STARTERS)
def test_new_node_passes_every_check(folder: Path, type_: str) -> None:
    assert run("new", "fee", "--type", type_).exit_code == 0
    done = run("check")
    assert (done.exit_code, done.stderr, done.stdout) == (0, "", "1 node checked, 0 with errors\n")
    assert run("fmt", "--check").exit_code == 0
    assert run("verify", "fee", "--max-examples", "300").exit_code == 0


def test_proposed_commands_work(folder: Path) -> None:
    for words in (["new", "fee"], ["new", "toll", "--in", "elsewhere/deep"], ["new", "fee", "--next"]):
        done = run(*words)
        steps = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("  vesper ")]
        assert len(steps) >= 2
        few = {"verify": ["--max-examples", "20"]}
        assert all(run(*step, *few.get(step[0], [])).exit_code == 0 for step in steps)


def test_next_version_is_a_copy_beside_the_newest(folder: Path) -> None:
    run("new", "fee", "--in", "nodes/deep")
    first = Path("nodes/deep/fee_v1.vsp")
    first.write_bytes(first.read_bytes().replace(b"node_id: fee_v1", b"# ours\r\nnode_id: 'fee_v1'  # id"))
    assert run("new", "fee", "--next").exit_code == 0
    copy = Path("nodes/deep/fee_v2.vsp").read_bytes()
    assert copy == first.read_bytes().replace(b"'fee_v1'", b"fee_v2")
    assert run("new", "fee", "--next", "--in", "elsewhere").exit_code == 0
    assert b"node_id: fee_v3" in Path("elsewhere/fee_v3.vsp").read_bytes()


@pytest.mark.parametrize(
    "words, said",
    [
        (["fee"], "`vesper new fee --next` copies it as fee_v2"),
        (["toll", "--next"], "there is no version of `toll` to copy"),
        (["fee_v2"], "`vesper new fee`"),
        (["Fee"], "write a name and a version, such as `payment_decision_v1`"),
        (["1fee"], "cannot be the name of a node"),
        (["../fee"], "cannot be the name of a node"),
        (["f" * 62], "at most 64 characters"),
        (["toll", "--in", "nodes/fee_v1.vsp"], "is a file"),
        (["toll", "--in", "nodes/fee_v1.vsp/deep"], "cannot write nodes/fee_v1.vsp/deep/toll_v1.vsp"),
    ],
)
def test_invalid_arguments_are_rejected(folder: Path, words: list[str], said: str) -> None:
    run("new", "fee")
    before = sorted(folder.rglob("*"))
    done = run("new", *words)
    assert done.exit_code == 2
    assert said in done.stderr
    assert sorted(folder.rglob("*")) == before


def test_nothing_is_overwritten(folder: Path) -> None:
    Path("nodes").mkdir()
    Path("nodes/fee_v1.vsp").write_text("node_id: other_v1", encoding="utf-8")
    done = run("new", "fee")
    assert done.exit_code == 2
    assert "nodes/fee_v1.vsp already exists and is not overwritten" in done.stderr
    assert Path("nodes/fee_v1.vsp").read_text(encoding="utf-8") == "node_id: other_v1"


def test_file_without_id_cannot_be_copied(folder: Path) -> None:
    Path("nodes").mkdir()
    Path("nodes/fee_v1.vsp").write_bytes(b"\xff")
    assert "cannot copy nodes/fee_v1.vsp: byte 0 is not UTF-8" in run("new", "fee", "--next").stderr
    Path("nodes/fee_v1.vsp").write_bytes(b"type: function\nintent: None")
    assert "it declares no node_id" in run("new", "fee", "--next").stderr
    for name in ("a", "b"):
        Path(f"nodes/{name}.vsp").write_text("node_id: toll_v7", encoding="utf-8")
    assert "is in `nodes/a.vsp` and in `nodes/b.vsp`" in run("new", "toll", "--next").stderr


def test_only_the_id_is_replaced() -> None:
    assert replace_id("intent: fee_v1\nnode_id: fee_v1\n", "fee_v2") == "intent: fee_v1\nnode_id: fee_v2\n"
