"""A sample of `make proof-schedules`: an hour around the change to summer time, two processes, kills."""

from __future__ import annotations

from pathlib import Path

from tests.proofs.schedules.campaign import Window, changes
from tests.proofs.schedules.processes import sqlite_place


def test_each_due_time_runs_once_while_processes_die(tmp_path: Path) -> None:
    found = Window(sqlite_place(tmp_path), changes()[0], processes=2, seed=3).run(1, kill_share=0.4)
    assert found.problems == []
    assert found.runs == found.due_times == 6
    assert sum(found.kills.values()) > 0
