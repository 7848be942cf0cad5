"""The page of verification: runs, branches of nodes, disagreements, proofs that are stale."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.dashboard import client_of, context_for
from tests.support.nodes import PAYMENT_DECISION
from vesper.config.settings import default_config
from vesper.dashboard.app import whole_site
from vesper.dashboard.pages.verification.proofs import MAX_AGE_DAYS, read_proofs
from vesper.dashboard.pages.verification.runs import read_verification
from vesper.dashboard.stores import Stores
from vesper.verify.run_history import (
    Disagreement,
    NodeRun,
    RunSummary,
    UncoveredBranch,
    VerifyRun,
    append_run,
    history_path,
)

NOON = 1_794_744_000_000_000
HOUR = 3_600_000_000
NODE = "payment_decision_v1"
SITE = whole_site(("vesper.dashboard.pages.verification",))
SCRIPT = "<script>alert(1)</script>"
DAY = 86_400_000_000


def a_node(name: str = NODE, covered: int = 18, *differs: Disagreement) -> NodeRun:
    uncovered = tuple(UncoveredBranch(9, f"`{SCRIPT}` is never true") for _ in range(18 - covered))
    return NodeRun(name, 50, 0, covered, 18, not differs, differs, uncovered)


def a_run(at_us: int, *nodes: NodeRun) -> VerifyRun:
    count = sum(len(each.disagreements) for each in nodes)
    covered = sum(each.branches_covered for each in nodes)
    inputs, total = 50 * len(nodes), 18 * len(nodes)
    summary = RunSummary(at_us, "0.3.0", 7, 1.5, len(nodes), 0, inputs, 3, covered, total, count, 0, not count, False)
    return VerifyRun(summary, nodes)


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stores]:
    monkeypatch.delenv("VESPER_NODES", raising=False)
    (tmp_path / "nodes").mkdir()
    shutil.copy(PAYMENT_DECISION, tmp_path / "nodes")
    found = Stores(default_config(tmp_path))
    yield found
    found.close()


def test_without_runs_the_page_says_what_to_do(stores: Stores) -> None:
    found = read_verification(context_for(stores))
    assert (found.runs, found.proofs, found.disagreements) == ((), (), ())
    (node,) = found.nodes
    assert (node.node, node.at_us) == (NODE, None)
    with client_of(stores.config, SITE) as client:
        page = client.get("/verification").text
    assert "Run <code>vesper verify</code> in this project" in page
    assert f"<code>vesper verify {NODE}</code>" in page


def test_runs_branches_and_disagreements(stores: Stores, tmp_path: Path) -> None:
    os.utime(tmp_path / "nodes" / PAYMENT_DECISION.name, ns=((NOON + 1) * 1000, (NOON + 1) * 1000))
    append_run(tmp_path, a_run(NOON - HOUR, a_node(NODE, 18, Disagreement("fee", 34, None))))
    append_run(tmp_path, a_run(NOON, a_node(NODE, 16), a_node("removed_v1")))
    append_run(tmp_path, a_run(NOON + HOUR))
    with history_path(tmp_path).open("a") as file:
        file.write("damaged\n")
    found = read_verification(context_for(stores))
    assert [(each.at_us - NOON, each.passed, each.nodes) for each in found.runs] == [
        (HOUR, True, 0), (0, True, 2), (-HOUR, False, 1),
    ]  # fmt: skip
    (node,) = found.nodes
    assert (node.at_us, node.branches_covered, node.is_changed, len(node.uncovered)) == (NOON, 16, True, 2)
    (only,) = found.disagreements
    assert (only.at_us, only.node, only.place.step) == (NOON - HOUR, NODE, "fee")
    assert found.unread == 1
    assert [each.has_passed for each in found.drawn] == [False, True, True]
    assert found.drawing.count('class="failed"') == 1
    with client_of(stores.config, SITE) as client:
        page = client.get("/verification").text
        assert "<script>" not in page
        assert f'href="/nodes/{NODE}/source#L34"' in page
        assert client.get("/api/verification").json()["runs"][0]["programs"] == 3


def test_failed_nodes_come_first(stores: Stores, tmp_path: Path) -> None:
    names = ("a_v1", "b_v1", "c_v1")
    for name in names:
        (tmp_path / "nodes" / f"{name}.vsp").write_text(f"node_id: {name}\n")
    later = 4_000_000_000_000_000  # no file is newer
    differs = a_node("c_v1", 18, Disagreement(None, None, "map"))
    append_run(tmp_path, a_run(later, a_node("a_v1"), a_node("b_v1", 10), differs))
    assert [each.node for each in read_verification(context_for(stores)).nodes] == ["c_v1", NODE, "b_v1", "a_v1"]


# -- proofs ---------------------------------------------------------------------------------------


def write_proof(project: Path, name: str, **found: object) -> Path:
    path = project / "docs" / "proofs" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found))
    return path


def git(project: Path, *arguments: str) -> None:
    settings = ("-c", "user.name=ann", "-c", "user.email=ann@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(project), *settings, *arguments], check=True, capture_output=True)


def blob_of(project: Path, name: str) -> str:
    data = (project / name).read_bytes()
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()


def test_a_proof_is_stale_when_its_sources_changed_later(tmp_path: Path) -> None:
    project = tmp_path / "project"  # below the root of the repository
    write_proof(project, "faults", seed=1, not_equivalent=10, killed=9, share=0.9)
    write_proof(project, "own", sources=["rules/"], checked=5, problems=["a", "b"])
    (project / "nodes").mkdir()
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "prove")
    (project / "nodes" / "a.vsp").write_text("node_id: a_v1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "change a node")
    write_proof(project, "new", leaks=0)
    (faults, new, own), versions, rule = read_proofs(project, NOON)
    assert (faults.name, faults.is_stale, faults.why) == ("faults", True, "1 later commit changed its sources")
    assert faults.commit is not None
    assert (own.is_stale, own.failures, own.seed) == (False, 2, None)
    assert [(each.name, each.number) for each in own.counts] == [("checked", 5)]
    assert (new.is_stale, new.why) == (False, "it is not committed yet")
    assert [(each.faults, each.noticed, each.share) for each in versions] == [(10, 9, 0.9)]
    assert "later commit changed its sources" in rule


def test_a_repository_runs_no_command_of_its_settings(tmp_path: Path) -> None:
    write_proof(tmp_path, "faults", not_equivalent=10, killed=9, share=0.9)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "prove")
    with (tmp_path / ".git" / "config").open("a") as config:
        config.write(
            "[core]\nrepositoryFormatVersion = 1\n[extensions]\npartialClone = origin\n"
            '[remote "origin"]\nurl = ssh://nowhere.invalid/x\npromisor = true\n'
            f'[core]\nsshCommand = "touch {tmp_path}/ran; false"\n[protocol "ssh"]\nallow = always\n'
        )
    blob = blob_of(tmp_path, "docs/proofs/faults.json")
    (tmp_path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    (proof,), versions, _ = read_proofs(tmp_path, NOON)
    assert (proof.commit is not None, versions) == (True, ())
    assert not (tmp_path / "ran").exists()


def test_a_repository_that_others_can_write_is_not_asked(tmp_path: Path) -> None:
    write_proof(tmp_path, "memory", calls=10)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "prove")
    (tmp_path / ".git" / "config").chmod(0o666)
    (proof,), _, rule = read_proofs(tmp_path, NOON)
    assert proof.commit is None
    assert rule.startswith("git is not asked, because ")
    assert "every user can write" in rule


def test_without_git_the_age_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    path = write_proof(tmp_path, "memory", calls=10)
    os.utime(path, ns=(NOON * 1000, NOON * 1000))
    (fresh,), _, rule = read_proofs(tmp_path, NOON + DAY)
    (stale,), _, _ = read_proofs(tmp_path, NOON + MAX_AGE_DAYS * DAY)
    assert (fresh, stale.is_stale) == (replace(stale, is_stale=False, why="1 day old"), True)
    assert f"stale after {MAX_AGE_DAYS} days" in rule
