"""What only the store in a file has: levels of syncing, shared transactions, and room that is given back."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.journal.helpers import begin, begun, end, event, result
from vesper.journal.journal import Fenced, Journal, JournalError, open_journal

ROOT = Path(__file__).parents[3]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Journal]:
    journal = open_journal(f"sqlite:{tmp_path / 'journal.db'}")
    yield journal
    journal.close()


_COMMITS = """
import os, sys
sys.path.insert(0, {root!r})
from tests.unit.journal.helpers import begun, result
from vesper.journal.journal import open_journal
journal = open_journal("sqlite:{path}")
run = begun(journal, "run-a", writes={writes})
if {is_taken}:
    run = journal.take_over("run-a", "python")
os.path.exists("/from-here")
for _ in range(20):
    run.append(result())
    run.commit()
os.path.exists("/to-here")
"""


def syncs(path: Path, writes: bool, is_taken: bool) -> int:
    """Return how often 20 commits of a run sync the disk."""
    code = _COMMITS.format(root=str(ROOT), path=path, writes=writes, is_taken=is_taken)
    trace = path.with_suffix(".trace")
    command = ["strace", "-f", "-o", str(trace), "-e", "trace=fsync,fdatasync,stat,newfstatat,statx"]
    subprocess.run([*command, sys.executable, "-c", code], check=True, timeout=120, capture_output=True)
    lines = trace.read_text(encoding="utf-8", errors="replace")
    traced = lines[lines.index("/from-here") : lines.index("/to-here")]
    return len(re.findall(r"\bf(?:data)?sync\(", traced))


@pytest.mark.skipif(shutil.which("strace") is None, reason="counts system calls with strace")
@pytest.mark.parametrize("is_taken", [False, True], ids=["new", "taken over"])
def test_runs_that_write_are_synced_and_others_are_not(tmp_path: Path, is_taken: bool) -> None:
    assert syncs(tmp_path / "a.db", writes=True, is_taken=is_taken) == 20
    assert syncs(tmp_path / "b.db", writes=False, is_taken=is_taken) == 0


def together(work: list[Any]) -> list[JournalError | None]:
    """Do all of `work` in threads that start at once; return how each ended."""
    ends: list[JournalError | None] = [None] * len(work)
    barrier = threading.Barrier(len(work))

    def do(index: int) -> None:
        barrier.wait()
        try:
            work[index]()
        except JournalError as error:
            ends[index] = error

    threads = [threading.Thread(target=do, args=(index,)) for index in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ends


def test_of_commits_at_the_same_time_only_the_refused_ones_fail(file: Journal) -> None:
    for turn in range(20):
        runs = [begun(file, f"run-{turn}-{number}") for number in range(5)]
        stale = begun(file, f"stale-{turn}")
        file.take_over(f"stale-{turn}", "python")
        twice = begin(file, f"run-{turn}-0")
        for run in (*runs, stale):
            run.append(result())
            run.audit(event("effect", run=run.execution))
        ends = together([run.commit for run in (*runs, stale, twice)])
        assert ends[:5] == [None] * 5
        assert isinstance(ends[5], Fenced)
        assert f"has an execution run-{turn}-0 already" in str(ends[6])
        for run in runs:
            assert len(file.read(run.execution).entries) == 2
    written = sorted(str(line["fields"]) for line in file.audit_events())
    assert written == sorted(f"{{'run': 'run-{turn}-{number}'}}" for turn in range(20) for number in range(5))


def test_what_was_pruned_is_given_back(file: Journal, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    for _ in range(40):
        run = begun(file, writes=False)
        run.append(result(value=os.urandom(100_000)))
        end(run)
    file.close()
    before = path.stat().st_size
    kept = begun(file, "kept")
    assert file.prune(1 << 60) == 40
    file.close()
    assert before > 4_000_000
    assert path.stat().st_size < before / 20
    assert file.verify(kept.execution) == []


def test_little_that_was_pruned_stays_in_the_file(file: Journal, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    for _ in range(20):
        end(begun(file, writes=False))
    file.close()
    before = path.stat().st_size
    assert file.prune(1 << 60) == 20
    file.close()
    assert path.stat().st_size == before
