"""The history of `vesper verify`: what a run adds, what is dropped, what is not read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vesper.cli.verify.command import _record
from vesper.cli.verify.reports import VerifyResults
from vesper.verify import run_history
from vesper.verify.run_history import VerifyRun, append_run, history_path, read_runs, run_of

DOCUMENT: dict[str, Any] = {
    "engines": ["python", "interp"],
    "seed": 7,
    "elapsed_seconds": 1.5,
    "executions": 60,
    "programs": 2,
    "random_programs": {"failures": [{}]},
    "relations": None,
    "passed": False,
    "interrupted": False,
    "refused": ["nodes/bad.vsp"],
    "nodes": [
        {
            "node": "fee_v1",
            "executions": 50,
            "crashes": [{"engine": "interp"}],
            "branches_covered": 3,
            "branches_total": 4,
            "passed": False,
            "disagreements": [{"inputs": {"card": "4111"}, "way": None, "step": "fee", "line": 12, "answers": {}}],
            "uncovered_branches": [{"kind": "condition", "line": 9, "text": "amount > 1", "missing": "is never true"}],
        }
    ],
}


def a_run(at_us: int = 1) -> VerifyRun:
    run = run_of(DOCUMENT, "0.3.0")
    return replace(run, summary=replace(run.summary, at_us=at_us))


def test_a_run_is_read_as_it_was_written_without_inputs(tmp_path: Path) -> None:
    run = a_run()
    summary = run.summary
    assert (summary.branches_covered, summary.branches_total, summary.disagreements, summary.refused) == (3, 4, 2, 1)
    assert run.nodes[0].uncovered[0].text == "`amount > 1` is never true"
    append_run(tmp_path, run)
    append_run(tmp_path, a_run(2))
    assert read_runs(tmp_path) == ([a_run(2), run], 0)
    assert "4111" not in history_path(tmp_path).read_text()
    assert history_path(tmp_path).stat().st_mode & 0o777 == 0o600


def test_the_oldest_runs_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_history, "MAX_RUNS", 3)
    for number in range(5):
        append_run(tmp_path, a_run(number))
    assert [each.summary.at_us for each in read_runs(tmp_path)[0]] == [4, 3, 2]
    monkeypatch.setattr(run_history, "MAX_BYTES", 10)
    append_run(tmp_path, a_run(5))
    assert [each.summary.at_us for each in read_runs(tmp_path)[0]] == [5]


def test_lines_of_another_form_are_counted(tmp_path: Path) -> None:
    assert read_runs(tmp_path) == ([], 0)
    append_run(tmp_path, a_run())
    with history_path(tmp_path).open("a") as file:
        file.write('{"format": 2}\n[]\nnot json\n' + json.dumps({"format": 1, "nodes": [{}]}) + "\n")
    assert read_runs(tmp_path) == ([a_run()], 4)


def test_the_command_records_in_a_project_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VESPER_CONFIG", raising=False)
    found = VerifyResults(["python", "interp"], 3, None, [], [], None, 0.5)
    _record(found)
    assert not (tmp_path / ".vesper").exists()
    (tmp_path / "vesper.toml").touch()
    (tmp_path / "nodes").mkdir()
    monkeypatch.chdir(tmp_path / "nodes")
    _record(found)
    (run,) = read_runs(tmp_path)[0]
    assert (run.summary.seed, run.summary.passed, run.summary.seconds) == (3, True, 0.5)
    history_path(tmp_path).unlink()
    history_path(tmp_path).symlink_to(tmp_path / "elsewhere")
    _record(found)
    assert "the run is not in the history of the project" in capsys.readouterr().err
