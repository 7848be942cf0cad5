"""Runs in workers: the same results as without, rounds, state, corpus, interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.nodes import compiled_text
from vesper.cli.verify.text import summary_line
from vesper.engines.registry import ENGINES
from vesper.verify.differential.coverage import CoverageState
from vesper.verify.differential.verifier import Verifier
from vesper.verify.programs.campaign import verify_programs
from vesper.verify.workers.state import NodeState, RunState, UnreadableState, read_state, to_ranges

NODE = """node_id: {}
type: function
intent: What is left
inputs:
  amount: {{type: decimal, constraints: [positive]}}
  limit: {{type: decimal, default: 5.00}}
outputs:
  success: {{rest: decimal}}
  error: {{error_code: "enum[too_much]", message: string}}
flow:
  - {{operation: raise, when: amount > limit, error: {{error_code: too_much, message: "'no'"}}}}
  - {{operation: return, success: {{rest: limit - amount}}}}
"""
NAMES = ("one_v1", "three_v1", "two_v1")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nodes").mkdir()
    for name in NAMES:
        (tmp_path / "nodes" / f"{name}.vsp").write_text(NODE.format(name), encoding="utf-8")
    return tmp_path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as users do: a process with the threads of other tests is not to be forked."""
    asked = [sys.executable, "-m", "vesper", "verify", "--engine", "interp", *arguments]
    return subprocess.run(asked, capture_output=True, text=True, check=False)


def run_json(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*arguments, "--format", "json").stdout)
    return found


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_workers_report_what_a_verifier_reports(folder: Path, jobs: str) -> None:
    lines = run("nodes", "--max-examples", "50", "--seed", "3", "--jobs", jobs).stdout.splitlines()
    engines = {name: ENGINES[name] for name in ("python", "interp")}
    wanted = [summary_line(Verifier(compiled_text(NODE.format(name)), engines, seed=3).run(50)) for name in NAMES]
    assert [line for line in lines if line.startswith(NAMES)] == wanted


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_programs_are_those_of_a_campaign(folder: Path, jobs: str) -> None:
    found = run_json("--programs", "7", "--seed", "5", "--jobs", jobs)["random_programs"]
    wanted = verify_programs({name: ENGINES[name] for name in ("python", "interp")}, 7, 5)
    assert (found["programs"], found["executions"], found["outcomes"]) == (7, wanted.executions, wanted.outcomes)


def test_rounds_reach_the_maximum(folder: Path) -> None:
    found = run_json("nodes", "--max-examples", "50", "--programs", "3", "--seconds", "120", "--jobs", "2")
    assert [each["executions"] for each in found["nodes"]] == [50, 50, 50]
    assert found["programs"] == 3
    assert all(each["branches_covered"] == each["branches_total"] for each in found["nodes"])


def test_unlimited_programs_need_a_time_limit(folder: Path) -> None:
    assert run("--programs", "unlimited").returncode == 2
    found = run_json("--programs", "unlimited", "--seconds", "1")
    assert found["programs"] > 0


def test_a_corpus_runs_before_random_programs(folder: Path) -> None:
    (folder / "kept").mkdir()
    (folder / "kept" / "some_v1.vsp").write_text(NODE.format("some_v1"), encoding="utf-8")
    assert run_json("--corpus", "kept")["programs"] == 1
    (folder / "kept" / "wrong_v1.vsp").write_text("node_id: wrong_v1\n", encoding="utf-8")
    found = run_json("--corpus", "kept", "--programs", "2")
    assert found["programs"] == 4
    ((kind, program),) = [(each["kind"], each["program"]) for each in found["random_programs"]["failures"]]
    assert (kind, program) == ("refused", "node_id: wrong_v1\n")


# -- state ----------------------------------------------------------------------------------------


def test_a_run_continues_where_it_stopped(folder: Path) -> None:
    options = ("nodes", "--state", "state", "--seed", "4")
    first = run_json(*options, "--max-examples", "20", "--programs", "2")
    second = run_json(*options, "--max-examples", "50", "--programs", "5")
    assert [each["executions"] for each in first["nodes"]] == [20, 20, 20]
    assert [each["executions"] for each in second["nodes"]] == [30, 30, 30]
    assert (first["programs"], second["programs"]) == (2, 3)
    third = run_json(*options, "--max-examples", "50", "--programs", "5")
    assert (third["executions"], third["passed"]) == (0, True)
    assert all(each["branches_covered"] == each["branches_total"] for each in third["nodes"]), "of the earlier runs"
    other = run_json("nodes", "--state", "state", "--seed", "5", "--max-examples", "20")
    assert other["executions"] == 60


def test_state_is_written_and_read(tmp_path: Path) -> None:
    node = compiled_text(NODE.format("one_v1"))
    coverage = CoverageState(
        frozenset({(3, True)}), frozenset({("loop", 1, True)}), frozenset({1, 2}), frozenset({"x"})
    )
    written = RunState(tmp_path, 1, ("python",), {node.semantic_hash: NodeState(40, 8, coverage)}, {0, 1, 2, 7})
    written.save()
    assert read_state(tmp_path, 1, ("python",), [node]) == written
    other = read_state(tmp_path, 2, ("python",), [node])
    assert other.nodes[node.semantic_hash] == NodeState(0, 1, coverage), "seeds share coverage"
    assert read_state(tmp_path, 1, ("python", "interp"), [node]).nodes[node.semantic_hash] == NodeState()
    written.path.write_text("[]", encoding="utf-8")
    with pytest.raises(UnreadableState, match=r"seed_1\.json"):
        read_state(tmp_path, 1, ("python",), [node])
    assert to_ranges([5, 1, 2, 3]) == [[1, 3], [5, 5]]


# -- interruption ---------------------------------------------------------------------------------


def test_an_interruption_ends_the_workers_and_prints_results(folder: Path) -> None:
    arguments = ["nodes", "--max-examples", "100000000", "--engine", "interp", "--jobs", "2"]
    code = "from vesper.cli.verify.command import command; command()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    end = time.monotonic() + 60
    while len(workers := children.read_text(encoding="ascii").split()) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "one_v1: python = interp: agree; " in output
    assert "stopped: 2 of 3 nodes were begun" in errors
    assert "two_v1" not in output
    for each in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(int(each), 0)
