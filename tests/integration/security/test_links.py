"""Links and files that are no nodes: commands show none of their lines and write through none of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import prepared

SECRET = "root:$6$hunter2:19000:0:99999:7:::"
NODE = """\
node_id: fee_v1
type: function
intent: Charge a fee
inputs: {amount: decimal}
outputs: {success: {fee: decimal}}
flow:
  - operation: return
    success: {fee: amount}
"""
BROKEN = NODE.replace("fee: amount}", "fee: ammount}")
SHOWING = [("check",), ("check", "--format", "json"), ("check", "--format", "concise"), ("check", "--format", "sarif"),
           ("check", "--fix"), ("fmt",), ("fmt", "--diff"), ("test",), ("verify",), ("compile",), ("run",),
           ("nodes", "show"), ("stubs",)]  # fmt: skip


def vesper(folder: Path, *arguments: str) -> tuple[str, int]:
    """Return the outputs and the exit code of a command."""
    return prepared.vesper(list(arguments), folder)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "shadow").write_text(f"{SECRET}\ndaemon:*:19000:0\n")
    (tmp_path / "outside" / "secret.yaml").write_text("password: hunter2\n")
    (tmp_path / "outside" / "fee_v1.vsp").write_text(BROKEN.replace("Charge a fee", "hunter2"))
    (tmp_path / "project" / "nodes").mkdir(parents=True)
    return tmp_path / "project"


@pytest.mark.parametrize("command", SHOWING, ids=" ".join)
@pytest.mark.parametrize("target", ["shadow", "secret.yaml", "fee_v1.vsp"])
def test_no_command_shows_lines_behind_a_link_out_of_the_collection(
    project: Path, command: tuple[str, ...], target: str
) -> None:
    link = project / "nodes" / "fee_v1.vsp"
    link.symlink_to(f"../../outside/{target}")
    done = vesper(project, *command, "nodes/fee_v1.vsp")
    assert done[1] != 0
    assert "hunter2" not in done[0]
    assert "is a link to a file outside of" in done[0]


@pytest.mark.parametrize("command", SHOWING, ids=" ".join)
@pytest.mark.parametrize("name", ["shadow", "secret.yaml"])
def test_no_command_shows_lines_of_what_is_no_node(project: Path, command: tuple[str, ...], name: str) -> None:
    copied = project / "nodes" / "fee_v1.vsp"
    copied.write_bytes((project.parent / "outside" / name).read_bytes())
    for _ in range(2):  # the second time from the cache
        done = vesper(project, *command, "nodes/fee_v1.vsp")
        assert done[1] != 0
        assert "hunter2" not in done[0]
        assert "is not a node" in done[0]


def test_a_folder_that_is_checked_does_not_lead_out(project: Path) -> None:
    (project / "nodes" / "a_v1.vsp").symlink_to("../../outside/shadow")
    (project / "nodes" / "more").symlink_to("../../outside")
    (project / "nodes" / "fee_v1.vsp").write_text(NODE)
    done = vesper(project, "check")
    assert done[1] == 1
    assert done[0].endswith("2 nodes checked, 1 with errors\n")
    assert "hunter2" not in done[0]


def test_a_link_within_the_collection_is_followed(project: Path) -> None:
    """As Kubernetes mounts a ConfigMap."""
    (project / "nodes" / "..2026").mkdir()
    (project / "nodes" / "..2026" / "fee_v1.vsp").write_text(NODE)
    (project / "nodes" / "..data").symlink_to("..2026")
    (project / "nodes" / "fee_v1.vsp").symlink_to("..data/fee_v1.vsp")
    done = vesper(project, "run", "nodes/fee_v1.vsp", "-i", "amount=1")
    assert done == ("  fee  1\n", 0)


# -- writing --------------------------------------------------------------------------------------


def test_fmt_and_fix_do_not_write_through_links(project: Path) -> None:
    real = project / "nodes" / "real" / "fee_v1.vsp"
    real.parent.mkdir()
    unformatted = NODE.replace("flow:", "contracts:\n  preconditions:   [amount > 0 && amount < 9]\nflow:")
    real.write_text(unformatted)
    (project / "nodes" / "fee_v1.vsp").symlink_to("real/fee_v1.vsp")
    for command in (("fmt",), ("check", "--fix")):
        done = vesper(project, *command, "nodes/fee_v1.vsp")
        assert (done[1], real.read_text()) == (1, unformatted)
        assert "is a symbolic link" in done[0], command


@pytest.mark.parametrize("is_dangling", [True, False])
def test_generated_files_do_not_go_through_links(project: Path, is_dangling: bool) -> None:
    (project / "nodes" / "fee_v1.vsp").write_text(NODE)
    first = vesper(project, "compile", "fee")[0]
    target = project.parent / "outside" / "target"
    stale = "" if is_dangling else first.replace("Charge", "charge")
    commands = {
        "out.py": ("compile", "fee", "-o", "out.py"),
        "package/fee_v1.py": ("compile", "--all", "nodes", "-o", "package"),
        "nodes/other_v1.vsp": ("new", "other"),
        "nodes/vesper.lock": ("nodes", "lock"),
        "typings/vesper_nodes/fee_v1.pyi": ("stubs",),
    }
    for name, command in commands.items():
        if not is_dangling:
            target.write_text(stale)
        link = project / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        vesper(project, *command)
        assert (target.read_text() if target.exists() else "") == stale, command
        link.unlink()


# -- files that hold inputs -----------------------------------------------------------------------


def test_exported_files_are_private(project: Path) -> None:
    (project / "nodes" / "fee_v1.vsp").write_text(NODE)
    os.umask(0o022)
    trace = vesper(project, "run", "fee", "-i", "amount=1", "--trace")[0].split()[-1]
    assert vesper(project, "traces", "export", trace, "-o", "trace.json")[1] == 0
    assert vesper(project, "traces", "to-test", trace, "-o", "cases.yaml")[1] == 0
    (project / "rows.csv").write_text("amount\n1\n2\n")
    assert vesper(project, "run", "fee", "--batch", "rows.csv", "-o", "out.csv")[1] == 0
    assert vesper(project, "run", "fee", "--batch", "rows.csv", "-o", "out.parquet")[1] == 0
    modes = {name: oct((project / name).stat().st_mode & 0o777)
             for name in ("trace.json", "cases.yaml", "out.csv", "out.parquet")}  # fmt: skip
    assert set(modes.values()) == {"0o600"}, modes
    assert (project / ".vesper").stat().st_mode & 0o777 == 0o700
