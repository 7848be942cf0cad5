"""Signal handlers that raise or write while their thread uses a file of SQLite: no lock stays taken, nobody waits for
himself."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.striking import SOON, Struck, is_free, strike, strikes, within
from tests.unit.journal.helpers import begun, result
from vesper.journal.journal import Journal, JournalError, open_journal
from vesper.migration.stores import sqlite_store
from vesper.migration.stores.store import NodeKey, Store, StoreAway, StoreError, open_store
from vesper.storage.sqlite_file import SqliteFile

KEY = NodeKey("pay", "1")


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = open_store(f"sqlite:{tmp_path / 'migration.db'}")
    opened.versions()
    yield opened
    opened.close()


@pytest.fixture
def journal(tmp_path: Path) -> Any:
    opened = open_journal(f"sqlite:{tmp_path / 'journal.db'}")
    yield opened
    opened.close()


def file_of(store: Store) -> SqliteFile:
    file = store._place  # type: ignore[attr-defined]
    assert isinstance(file, SqliteFile)
    return file


def keeping(work: Callable[[], object], kept: list[BaseException]) -> Callable[[], None]:
    """Does the work, and keeps the traceback of what struck it, as who logs it later does."""

    def run() -> None:
        try:
            work()
        except Struck as struck:
            kept.append(struck)
            raise

    return run


# -- handlers that raise ----------------------------------------------------------------------------


def test_who_is_struck_while_he_writes_lets_others_write_though_his_traceback_is_kept(
    store: Store, tmp_path: Path
) -> None:
    """Not with work that fails: a profiler is also called where something is thrown into a generator. CPython runs no
    handler there, and what the profiler raises ends the generator without its `finally`."""

    def write() -> None:
        store.transact(KEY, lambda _: None)

    kept: list[BaseException] = []
    other = sqlite3.connect(tmp_path / "migration.db", isolation_level=None, timeout=0.0)
    write()
    for moment in strikes(keeping(write, kept)):
        assert is_free(file_of(store)._here.lock), moment
        other.execute("BEGIN IMMEDIATE")  # at once: nobody has a transaction open
        other.execute("ROLLBACK")
        write()  # and the next one begins with the same connection, or a new one
    assert kept
    other.close()


def test_who_is_struck_while_he_erases_lets_others_commit_though_his_traceback_is_kept(journal: Journal) -> None:
    run = begun(journal, "run-a")
    kept: list[BaseException] = []
    for moment in strikes(keeping(lambda: journal.erase("run-a"), kept)):
        run.append(result())
        within(run.commit)
        assert is_free(journal._store._here.lock), moment  # type: ignore[attr-defined]
    assert kept


# -- handlers that write ----------------------------------------------------------------------------


def test_a_handler_that_writes_while_its_thread_does_is_refused(store: Store) -> None:
    file = file_of(store)
    with file.writing():
        with pytest.raises(StoreError, match="a signal handler cannot write, open or close the migration state"):
            store.transact(KEY, lambda _: None)
        with pytest.raises(StoreError, match="a signal handler cannot write, open or close the migration state"):
            store.close()
        assert store.versions() == {}, "it may read"
    store.transact(KEY, lambda _: None)


def test_a_handler_that_commits_while_its_thread_does_commits_or_is_refused(journal: Journal) -> None:
    struck, handled = begun(journal, "run-struck"), begun(journal, "run-handled")
    said: list[str] = []

    def handler() -> None:
        try:
            handled.commit()
            said.append("")
        except JournalError as error:
            said.append(str(error))

    moment, was_struck = 0, True
    while was_struck:
        struck.append(result())
        handled.append(result())
        here: list[bool] = []
        within(lambda moment=moment, here=here: here.append(strike(struck.commit, moment, handler)))  # type: ignore[misc]
        (was_struck,) = here
        handled.commit()
        moment += 1
        for run in (struck, handled):
            assert len(journal.read(run.execution).entries) == moment + 1, moment
    refused = [text for text in said if text]
    assert refused
    assert len(refused) < len(said)
    assert all("a signal handler cannot write, open or close the journal while its thread writes" in r for r in refused)


# -- waiting ----------------------------------------------------------------------------------------


def test_who_writes_waits_for_a_while_only_whatever_the_others_do(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where they open or close the file, or fork."""
    monkeypatch.setattr(sqlite_store, "BUSY_SECONDS", 0.05)
    taken, done = threading.Event(), threading.Event()

    def opens() -> None:
        with file_of(store)._here.lock:
            taken.set()
            done.wait(SOON * 2)

    thread = threading.Thread(target=opens, daemon=True)
    thread.start()
    assert taken.wait(SOON)
    try:
        with pytest.raises(StoreAway, match=r"other threads of this process have had the migration state for 0.05 s"):
            within(lambda: store.transact(KEY, lambda _: None))
    finally:
        done.set()
        thread.join(SOON)
    store.transact(KEY, lambda _: None)
