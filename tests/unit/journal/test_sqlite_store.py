"""What only the store in a file has: levels of syncing, and commits that share a transaction."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.journal.helpers import begin, begun, event, result
from vesper.journal.journal import Fenced, Journal, JournalError, open_journal
from vesper.journal.sqlite_store import SqliteStore


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Journal]:
    journal = open_journal(f"sqlite:{tmp_path / 'journal.db'}")
    yield journal
    journal.close()


def store_of(journal: Journal) -> SqliteStore:
    store = journal._store  # type: ignore[attr-defined]
    assert isinstance(store, SqliteStore)
    return store


def level(journal: Journal) -> int:
    """2 is FULL, 1 is NORMAL."""
    writer = store_of(journal)._here.writer
    assert writer is not None
    found: int = writer.execute("PRAGMA synchronous").fetchone()[0]
    return found


def test_runs_that_write_are_synced_and_others_are_not(file: Journal) -> None:
    """Over and over: SQLite sets the level when a statement is prepared, and Python keeps prepared statements."""
    writing, looking = begun(file, writes=True), begun(file, writes=False)
    for _ in range(3):
        writing.append(result())
        writing.commit()
        assert level(file) == 2
        looking.append(result())
        looking.commit()
        assert level(file) == 1
    file.audit([event()])
    assert level(file) == 2


def test_a_run_that_is_taken_over_is_synced_as_it_was(file: Journal) -> None:
    for writes, expected in ((True, 2), (False, 1)):
        begun(file, f"run-{writes}", writes=writes)
        taken = file.take_over(f"run-{writes}", "python")
        taken.append(result())
        taken.commit()
        assert level(file) == expected


class Counting:
    """A connection that counts the transactions that it commits, and can be told to fail."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.begun = 0
        self.failure: BaseException | None = None

    def execute(self, sql: str, parameters: Any = ()) -> Any:
        self.begun += sql == "BEGIN IMMEDIATE"
        if self.failure is not None and sql == "COMMIT":
            raise self.failure
        return self._connection.execute(sql, parameters)

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def close(self) -> None:
        self._connection.close()


def queued(journal: Journal, work: list[Any]) -> list[BaseException | None]:
    """Does all of `work` in threads while the lock of the writer is held, so that all of it is queued at once."""
    here = store_of(journal)._here
    ends: list[BaseException | None] = [None] * len(work)

    def do(index: int) -> None:
        try:
            work[index]()
        except (JournalError, KeyboardInterrupt) as error:
            ends[index] = error

    threads = [threading.Thread(target=do, args=(index,)) for index in range(len(work))]
    with here.lock:
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 60
        while len(here.queue) < len(work):
            assert time.monotonic() < deadline, "not all of them came to commit"
            time.sleep(0.001)
    for thread in threads:
        thread.join()
    return ends


def test_commits_at_the_same_time_share_a_transaction_and_only_the_refused_ones_fail(file: Journal) -> None:
    runs = [begun(file, f"run-{number}") for number in range(5)]
    stale = begun(file, "stale")
    file.take_over("stale", "python")
    twice = begin(file, "run-0")
    for run in (*runs, stale):
        run.append(result())
        run.audit(event("effect", run=run.execution))
    counting = Counting(store_of(file)._here.writer)  # type: ignore[arg-type]
    store_of(file)._here.writer = counting  # type: ignore[assignment]
    ends = queued(file, [run.commit for run in (*runs, stale, twice)])
    assert counting.begun == 1
    assert ends[:5] == [None] * 5
    assert isinstance(ends[5], Fenced)
    assert "has an execution run-0 already" in str(ends[6])
    for run in runs:
        assert len(file.read(run.execution).entries) == 2
    assert sorted(str(line["fields"]) for line in file.audit_events()) == [f"{{'run': 'run-{n}'}}" for n in range(5)]


def test_a_failure_of_the_shared_transaction_fails_all_of_it_and_each_can_try_again(file: Journal) -> None:
    runs = [begun(file, f"run-{number}") for number in range(3)]
    for run in runs:
        run.append(result())
    counting = Counting(store_of(file)._here.writer)  # type: ignore[arg-type]
    counting.failure = sqlite3.OperationalError("disk I/O error")
    store_of(file)._here.writer = counting  # type: ignore[assignment]
    ends = queued(file, [run.commit for run in runs])
    assert all(isinstance(end, JournalError) and "disk I/O error" in str(end) for end in ends)
    assert len({id(end) for end in ends}) == 3  # an exception is one thread's
    for run in runs:
        run.commit()
        assert len(file.read(run.execution).entries) == 2


def test_whoever_writes_for_others_is_interrupted(file: Journal) -> None:
    runs = [begun(file, f"run-{number}") for number in range(3)]
    for run in runs:
        run.append(result())
    counting = Counting(store_of(file)._here.writer)  # type: ignore[arg-type]
    counting.failure = KeyboardInterrupt()
    store_of(file)._here.writer = counting  # type: ignore[assignment]
    ends = queued(file, [run.commit for run in runs])
    assert sorted(type(end).__name__ for end in ends) == ["JournalError", "JournalError", "KeyboardInterrupt"]
    counting.failure = None
    for run in runs:
        run.commit()
        assert len(file.read(run.execution).entries) == 2


def test_reading_does_not_wait_for_whoever_writes(file: Journal) -> None:
    begun(file, "run-a")
    file.read("run-a")
    with store_of(file)._here.lock:
        assert len(file.read("run-a").entries) == 1


def test_reading_sees_one_state(file: Journal) -> None:
    run = begun(file, "run-a")
    with store_of(file).reading() as transaction:
        before = transaction.rows("SELECT COUNT(*) FROM vesper_commits")
        run.append(result())
        run.commit()
        assert transaction.rows("SELECT COUNT(*) FROM vesper_commits") == before
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            transaction.run("DELETE FROM vesper_commits")
