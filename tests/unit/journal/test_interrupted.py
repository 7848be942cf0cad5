"""Ctrl-C while a thread uses a file of SQLite: no lock stays held."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.striking import SOON, Struck, is_free, strikes, within
from vesper.migration.stores import sqlite_store
from vesper.migration.stores.store import NodeKey, Store, StoreAway, open_store
from vesper.storage.sqlite_file import SqliteFile

KEY = NodeKey("pay", "1")


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = open_store(f"sqlite:{tmp_path / 'migration.db'}")
    opened.versions()
    yield opened
    opened.close()


def file_of(store: Store) -> SqliteFile:
    file = store._database  # type: ignore[attr-defined]
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


# -- Ctrl-C ----------------------------------------------------------------------------------------


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
