"""A journal that was used before a fork is used by parent and child."""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.striking import is_free, within
from tests.unit.journal.helpers import begun, end, event, in_child, intent, result
from vesper.journal.audit import verify_audit
from vesper.journal.journal import Fenced, Journal, JournalError, open_journal
from vesper.migration.stores.store import Store, StoreError, open_store
from vesper.storage import sqlite_file
from vesper.storage.sqlite_file import SqliteFile


@pytest.fixture
def journal(dsn: str) -> Iterator[Journal]:
    """Locks of SQLite are not fair: on a busy machine a waiter may wait for longer than is usual."""
    opened = open_journal(dsn, busy_seconds=60)
    yield opened
    opened.close()


def test_parent_and_child_write_side_by_side(journal: Journal) -> None:
    run = begun(journal, "run-parent")
    journal.read("run-parent")

    def child() -> None:
        mine = begun(journal, "run-child")
        for number in range(20):
            mine.append(result(f"step[{number}]"))
            mine.commit()
        end(mine)
        assert len(journal.read("run-child").entries) == 22

    assert in_child(child) == 0
    run.append(intent())
    run.commit()
    assert len(journal.read("run-child").entries) == 22
    assert journal.read("run-child").summary.owner != journal.read("run-parent").summary.owner
    assert in_child(child) == 1  # the id is used: what a child reports arrives here


def is_open(folder: Path) -> bool:
    """Whether this process has a file of the journal in this folder open."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that the folder is read with
            found.append(descriptor.readlink())
    return any(each.parent == folder and each.name.startswith("journal.db") for each in found)


def test_sqlite_does_not_see_a_fork(tmp_path: Path) -> None:
    """What its library remembers of locks is the parent's: a child starts with none of its files open."""
    journal = open_journal(f"sqlite:{tmp_path / 'journal.db'}")
    begun(journal, "run-a")
    journal.read("run-a")

    def child() -> None:
        assert not is_open(tmp_path)
        begun(journal, "run-b")
        assert is_open(tmp_path)

    assert is_open(tmp_path)
    assert in_child(child) == 0
    assert len(journal.read("run-b").entries) == 1
    journal.close()
    assert not is_open(tmp_path)


def test_a_run_belongs_to_the_process_that_began_it(journal: Journal) -> None:
    run = begun(journal, "run-a")

    def child() -> None:
        run.append(result())
        with pytest.raises(Fenced, match="belongs to the process that began it"):
            run.commit()
        with pytest.raises(Fenced):
            run.renew()

    assert in_child(child) == 0
    run.append(result())
    run.commit()
    assert len(journal.read("run-a").entries) == 2


def test_a_fork_while_other_threads_commit(journal: Journal) -> None:
    stop = threading.Event()
    problems: list[JournalError] = []

    def write(number: int) -> None:
        run = begun(journal, f"run-{number}-busy")
        try:
            while not stop.is_set():
                run.append(result())
                run.commit()
        except JournalError as error:
            problems.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    statuses = [in_child(lambda number=number: end(begun(journal, f"run-{number}-child"))) for number in range(5)]  # type: ignore[misc]
    stop.set()
    for thread in threads:
        thread.join()
    assert statuses == [0] * 5
    assert problems == []
    for number in range(3):
        journal.read(f"run-{number}-busy")
    for number in range(5):
        assert len(journal.read(f"run-{number}-child").entries) == 2


def test_several_processes_write_to_one_store(dsn: str) -> None:
    """Each opens it anew, all at once, also the tables; one chain of the audit log for all."""
    pids = []
    for number in range(4):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                journal = open_journal(dsn, busy_seconds=60)
                run = begun(journal, f"run-{number}-process")
                for step in range(10):
                    run.append(result(f"step[{step}]"))
                    run.audit(event("effect", number=number, step=step))
                    run.commit()
                end(run)
                status = 0
            except BaseException:  # noqa: BLE001  # the child must not come back into pytest
                traceback.print_exc()
            finally:
                os._exit(status)
        pids.append(pid)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * 4
    journal = open_journal(dsn)
    assert [len(journal.read(f"run-{number}-process").entries) for number in range(4)] == [12] * 4
    assert verify_audit(journal) == []
    assert journal.audit_head()[0] == 40
    journal.close()


def test_what_was_closed_opens_again(journal: Journal) -> None:
    begun(journal, "run-a")
    journal.close()
    journal.close()
    assert len(journal.read("run-a").entries) == 1


# -- migration state, in the SQLite of Python -------------------------------------------------------


def migration_state(folder: Path) -> tuple[Store, SqliteFile]:
    store = open_store(f"sqlite:{folder / 'migration.db'}")
    store.versions()
    file = store._database  # type: ignore[attr-defined]
    assert isinstance(file, SqliteFile)
    return store, file


def test_a_child_of_a_parent_that_could_not_let_go_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vesper.storage.sqlite_file._FORK_SECONDS", 0.05)
    store, file = migration_state(tmp_path)

    def child() -> None:
        with pytest.raises(StoreError, match="forked while its parent was writing"):
            store.versions()

    with file.writing():  # also of the thread that writes
        assert in_child(child) == 0
    store.versions()
    store.close()


def test_of_two_threads_that_fork_neither_lets_go_of_what_the_other_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "_FORK_SECONDS", 0.05)
    store, file = migration_state(tmp_path)
    here = file._here

    def forks() -> None:
        sqlite_file._before_fork()
        sqlite_file._after_fork_in_parent()

    sqlite_file._before_fork()
    try:
        within(forks)
        assert here.lock._is_owned()  # type: ignore[attr-defined]
        assert here.reading_lock.locked()
    finally:
        sqlite_file._after_fork_in_parent()
    within(forks)
    assert is_free(here.lock)
    assert is_free(here.reading_lock)
    store.versions()
    store.close()
