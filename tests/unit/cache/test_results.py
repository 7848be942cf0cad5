"""Results in memory and in a shared store: bounds, times, who waits for whom, and a store that is away."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pytest

from vesper.cache.results import Kept, Results, SharedAway


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Memory:
    """A shared store that can be away."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self.locks: dict[str, str] = {}
        self.is_away = False
        self.asked = 0

    def _ask(self) -> None:
        self.asked += 1
        if self.is_away:
            raise SharedAway("nobody is there")

    def find(self, key: str) -> bytes | None:
        self._ask()
        return self.data.get(key)

    def put(self, key: str, data: bytes, ttl: float) -> None:
        self._ask()
        self.data[key] = data

    def lock(self, key: str, seconds: float) -> str | None:
        self._ask()
        return None if key in self.locks else self.locks.setdefault(key, "token")

    def unlock(self, key: str, token: str) -> None:
        self._ask()
        del self.locks[key]


def made(text: str) -> Callable[[], Kept]:
    return lambda: Kept(text, text.encode())


def failing() -> Kept:
    raise AssertionError("it was known")


def test_it_is_made_once_and_for_its_time() -> None:
    clock = Clock()
    results = Results(10_000, 60.0, clock=clock)
    assert results.find_or_make("a", made("x"), bytes.decode) == ("x", False)
    assert results.find_or_make("a", failing, bytes.decode) == ("x", True)
    clock.now = 60.0
    assert results.find_or_make("a", made("y"), bytes.decode) == ("y", False)
    counted = results.counters.all()
    assert (counted["hits"], counted["misses"], counted["writes"]) == (1, 2, 2)


def test_the_bound_holds_and_the_least_recently_used_go() -> None:
    results = Results(3 * (200 + 1 + 100), 60.0)
    for key in "abc":
        results.find_or_make(key, made("x" * 100), bytes.decode)
    results.find_or_make("a", failing, bytes.decode)
    results.find_or_make("d", made("x" * 100), bytes.decode)
    assert results.size() == (3, 903)
    assert results.find_or_make("a", failing, bytes.decode)[1]
    assert not results.find_or_make("b", made("x" * 100), bytes.decode)[1]
    assert results.counters.evictions == 2
    results.find_or_make("e", made("x" * 1000), bytes.decode)
    assert results.size() == (3, 903), "what is larger than the whole is not kept"
    assert results.clear() == 3
    assert results.size() == (0, 0)


def test_what_is_not_to_be_kept_is_made_each_time() -> None:
    results = Results(10_000, 60.0, Memory())
    for _ in range(2):
        assert results.find_or_make("a", lambda: Kept("x", is_kept=False), bytes.decode) == ("x", False)
    assert results.size() == (0, 0)


def test_of_many_threads_one_works_and_the_others_wait() -> None:
    results = Results(10_000, 60.0)
    begun, go, count = threading.Event(), threading.Event(), []

    def slow() -> Kept:
        count.append(1)
        begun.set()
        assert go.wait(10)
        return Kept("x", b"x")

    found: list[object] = []
    threads = [
        threading.Thread(target=lambda: found.append(results.find_or_make("a", slow, bytes.decode)[0]))
        for _ in range(8)
    ]
    for each in threads:
        each.start()
    assert begun.wait(10)
    while results.counters.waits < 7:
        pass
    go.set()
    for each in threads:
        each.join(10)
    assert (found, count) == (["x"] * 8, [1])


def test_who_waits_for_one_that_fails_works_it_out() -> None:
    results = Results(10_000, 60.0)
    begun, go = threading.Event(), threading.Event()

    def fails() -> Kept:
        begun.set()
        assert go.wait(10)
        raise ValueError("not me")

    def expected() -> None:
        with pytest.raises(ValueError, match="not me"):
            results.find_or_make("a", fails, bytes.decode)

    thread = threading.Thread(target=expected)
    thread.start()
    assert begun.wait(10)
    other: list[object] = []
    waiter = threading.Thread(target=lambda: other.append(results.find_or_make("a", made("y"), bytes.decode)))
    waiter.start()
    while results.counters.waits < 1:
        pass
    go.set()
    waiter.join(10)
    thread.join(10)
    assert other == [("y", False)]


def test_nobody_waits_for_ever() -> None:
    results = Results(10_000, 60.0, wait=0.01)
    begun, go = threading.Event(), threading.Event()

    def slow() -> Kept:
        begun.set()
        assert go.wait(10)
        return Kept("x", b"x")

    thread = threading.Thread(target=results.find_or_make, args=("a", slow, bytes.decode))
    thread.start()
    assert begun.wait(10)
    assert results.find_or_make("a", made("y"), bytes.decode) == ("y", False)
    go.set()
    thread.join(10)


# -- with others ----------------------------------------------------------------------------------


def test_another_process_finds_it() -> None:
    shared = Memory()
    Results(10_000, 60.0, shared).find_or_make("a", made("x"), bytes.decode)
    assert (shared.data, shared.locks) == ({"a": b"x"}, {})
    other = Results(10_000, 60.0, shared)
    assert other.find_or_make("a", failing, bytes.decode) == ("x", True)
    assert other.counters.shared_hits == 1
    asked = shared.asked
    assert other.find_or_make("a", failing, bytes.decode) == ("x", True)
    assert shared.asked == asked, "from then on it is in memory"


def test_what_is_private_stays_in_memory() -> None:
    shared = Memory()
    results = Results(10_000, 60.0, shared)
    results.find_or_make("a", lambda: Kept("x", b"x", is_shared=False), bytes.decode)
    assert shared.data == {}
    assert results.find_or_make("a", failing, bytes.decode)[1]


def test_one_that_another_process_works_out_is_waited_for_but_not_for_ever() -> None:
    shared = Memory()
    shared.locks["a"] = "of another"
    results = Results(10_000, 60.0, shared, wait=0.05)
    assert results.find_or_make("a", made("x"), bytes.decode) == ("x", False)
    assert results.counters.waits >= 1
    shared.locks["b"] = "of another"
    threading.Timer(0.02, lambda: shared.data.update(b=b"theirs")).start()
    assert Results(10_000, 60.0, shared, wait=10.0).find_or_make("b", failing, bytes.decode) == ("theirs", True)


def test_what_is_no_result_is_refused_and_written_over() -> None:
    shared = Memory()
    shared.data["a"] = b"evil"
    results = Results(10_000, 60.0, shared)
    assert results.find_or_make("a", made("x"), lambda data: None if data == b"evil" else data) == ("x", False)
    assert shared.data["a"] == b"x"
    assert results.counters.refused == 1


def test_a_store_that_is_away_costs_one_look_and_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    shared, clock = Memory(), Clock()
    shared.is_away = True
    results = Results(10_000, 60.0, shared, clock=clock)
    with caplog.at_level(logging.WARNING, "vesper.cache"):
        for key in "abcd":
            assert results.find_or_make(key, made("x"), bytes.decode) == ("x", False)
        assert shared.asked == 1
        clock.now = 10.0
        results.find_or_make("e", made("x"), bytes.decode)
    assert (shared.asked, results.counters.shared_failures) == (2, 2)
    assert [record.getMessage() for record in caplog.records] == [
        "results are worked out without the shared cache: nobody is there; this is said once"
    ]
    shared.is_away, clock.now = False, 20.0
    results.find_or_make("f", made("x"), bytes.decode)
    assert shared.data == {"f": b"x"}, "it is back"
