"""Who writes next to an SQLite file, among the threads of a process."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.striking import SOON, Struck, strikes
from tests.unit.effects.database.databases import fails, sqlite_at, write
from vesper.effects.database import sqlite_turns
from vesper.effects.database.sqlite_turns import Turns

ADD = "INSERT INTO t (id) VALUES (:id)"


class File:
    """One thread at a time can write."""

    def __init__(self) -> None:
        self.writer: str | None = None
        self.asked: list[str] = []
        self.order: list[str] = []

    def beginning(self, name: str) -> Callable[[], bool]:
        def begin() -> bool:
            self.asked.append(name)
            if self.writer is not None:
                return False
            self.writer = name
            self.order.append(name)
            return True

        return begin

    def has_begun(self, times: int) -> bool:
        return len(self.order) == times


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody wakes by itself, the file is kept for the one who was woken until it has come, and never left alone."""
    for name in ("_NAP_OF_THE_FIRST", "_NAP_OF_OTHERS", "_KEPT", "_CHAIN"):
        monkeypatch.setattr(sqlite_turns, name, SOON)


def begun_at_once(turns: Turns, file: File, name: str) -> None:
    assert turns.take(file.beginning(name), lambda: SOON)
    turns._left_alone_until = time.monotonic()


def is_soon(what: Callable[[], bool]) -> None:
    until = time.monotonic() + SOON
    while not what():
        assert time.monotonic() < until
        time.sleep(0.001)


def waiting(turns: Turns) -> int:
    return len(turns._queue)


def wait_for(turns: Turns, file: File, name: str) -> threading.Thread:
    """A thread that stands in the queue."""
    before = waiting(turns)
    thread = threading.Thread(target=turns.take, args=(file.beginning(name), lambda: SOON))
    thread.start()
    is_soon(lambda: waiting(turns) > before)
    return thread


def end(turns: Turns, file: File) -> None:
    file.writer = None
    turns.passed_on()


def pass_on_to(threads: Sequence[threading.Thread], turns: Turns, file: File) -> None:
    """Each of them writes, when the one before it is done."""
    before = len(file.order)
    for number in range(1, len(threads) + 1):
        end(turns, file)
        is_soon(functools.partial(file.has_begun, before + number))
    for each in threads:
        each.join(SOON)


def test_who_comes_to_a_free_file_writes_at_once(slow: None) -> None:
    turns, file = Turns(), File()
    assert turns.take(file.beginning("a"), lambda: SOON)
    assert file.order == ["a"]
    assert waiting(turns) == 0


def test_the_one_who_has_waited_longest_is_next(slow: None) -> None:
    turns, file = Turns(), File()
    begun_at_once(turns, file, "a")
    threads = [wait_for(turns, file, name) for name in "bcd"]
    pass_on_to(threads, turns, file)
    assert file.order == ["a", "b", "c", "d"]
    assert waiting(turns) == 0


def test_who_comes_newly_lets_the_one_go_first_who_was_woken(slow: None) -> None:
    turns, file = Turns(), File()
    turns.passed_on()  # nobody waits
    turns._queue.append(place := threading.Lock())
    place.acquire()
    turns.passed_on()
    assert not place.locked()  # it was woken, and has not come yet
    late = wait_for(turns, file, "late")
    assert file.asked == []  # it did not even ask, though the file is free
    turns._kept_until = 0.0  # as when time passes: the one who was woken is gone
    turns.passed_on()
    late.join(SOON)
    assert file.order == ["late"]


def test_who_was_woken_and_finds_another_faster_stays_the_first(slow: None) -> None:
    turns, file = Turns(), File()
    file.writer = "of another process"
    turns.passed_on()  # nobody waits
    threads = [wait_for(turns, file, name) for name in "bc"]
    asked = len(file.asked)
    turns.passed_on()  # and the file is taken again
    is_soon(lambda: len(file.asked) > asked and waiting(turns) == 2)
    pass_on_to(threads, turns, file)
    assert file.order == ["b", "c"]


def test_who_is_woken_by_nobody_looks_by_himself() -> None:
    turns, file = Turns(), File()
    file.writer = "of another process"
    thread = wait_for(turns, file, "b")
    is_soon(lambda: len(file.asked) > 3)
    file.writer = None
    thread.join(SOON)
    assert file.order == ["b"]


def test_threads_that_pass_it_on_for_long_leave_it_alone_for_a_moment(
    slow: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For another process."""
    monkeypatch.setattr(sqlite_turns, "_CHAIN", 0.0)
    slept: list[float] = []
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=slept.append)
    monkeypatch.setattr(sqlite_turns, "time", clock)
    turns, file = Turns(), File()
    assert turns.take(file.beginning("a"), lambda: SOON)
    threads = [wait_for(turns, file, name) for name in "bc"]
    pass_on_to(threads, turns, file)
    assert file.order == ["a", "b", "c"]
    assert slept[0] > 0  # before b began; where c did, the moment may have been over


def test_who_may_wait_no_longer_is_told_and_leaves_no_place() -> None:
    turns, file = Turns(), File()
    file.writer = "of another process"
    left = iter([0.001, 0.001, 0.0])
    assert not turns.take(file.beginning("b"), lambda: next(left))
    assert waiting(turns) == 0
    assert len(file.asked) == 3


def test_who_is_interrupted_leaves_nothing_that_others_wait_for() -> None:
    turns, file = Turns(), File()
    file.writer = "of another process"

    def work() -> None:
        left = iter([0.001, 0.0])
        turns.take(file.beginning("b"), lambda: next(left))

    for _ in strikes(work):
        # One who was struck between joining and remembering it may stand there still, and is passed over.
        while waiting(turns):
            turns.passed_on()
        file.writer = None
        assert turns.take(file.beginning("c"), lambda: SOON)
        file.writer = "of another process"


def test_who_is_interrupted_while_he_passes_it_on_loses_no_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = sqlite_at(tmp_path, pool_size=1)
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    assert database.performer.perform(write(ADD, path="add[1]", id=1)) == 1

    def struck(_: Turns) -> None:
        raise Struck

    with monkeypatch.context() as patch:
        patch.setattr(Turns, "passed_on", struck)
        with pytest.raises(Struck):
            database.performer.perform(write(ADD, path="add[2]", id=2))
    assert database.performer.perform(write(ADD, path="add[3]", id=3)) == 1
    database.close()


def test_who_could_not_write_passes_nothing_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would come for the file that is kept then."""
    database = sqlite_at(tmp_path, busy_timeout="20ms")
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    passed: list[Turns] = []
    monkeypatch.setattr(Turns, "passed_on", passed.append)
    with closing(database.connect()) as blocker:
        blocker.execute("INSERT INTO t VALUES (1)")
        with fails("unavailable", "did not end in time"):
            database.performer.perform(write(ADD, id=2))
    assert passed == []
    database.close()


def test_every_thread_of_many_writes_all_it_has_to(tmp_path: Path) -> None:
    database = sqlite_at(tmp_path, busy_timeout="60s", pool_size=8)
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    done: list[object] = []

    def run(first: int) -> None:
        for number in range(first, first + 50):
            done.append(database.performer.perform(write(ADD, path=f"add[{number}]", id=number)))

    threads = [threading.Thread(target=run, args=(first,)) for first in range(0, 600, 50)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert done == [1] * 600
    assert database.rows("SELECT count(*) FROM t") == [(600,)]
    database.close()
