"""The shadow queue: callers go first, but queued executions are followed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from vesper.migration.compare.reports import Lost, Report
from vesper.migration.shadow.admission import Admission
from vesper.migration.shadow.shadow_queue import MAX_ABANDONED, Followers, Following

SOON = 60.0


class Busy:
    """A Host that serves a caller until it is released. It ignores timeouts, so that tests need not know them."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.count = 0
        self.is_done = threading.Event()

    def lull(self, seconds: float) -> bool:
        assert seconds > 0
        self.count += 1
        self.asked.release()
        assert self.is_done.wait(SOON)
        return True

    def when_quiet(self, _: Callable[[], None]) -> bool:
        return False


class Never:
    """A Host that always serves a caller."""

    def __init__(self) -> None:
        self.then: list[Callable[[], None]] = []
        """Callback for the end of serving, which never comes."""

    def when_quiet(self, then: Callable[[], None]) -> bool:
        self.then.append(then)
        return True

    def lull(self, _: float) -> bool:
        return False


@pytest.fixture
def followers() -> Iterator[Followers]:
    found = Followers(Admission(1.0, 1_000_000))
    yield found
    found.close()


def noted(into: list[int], number: int, told: threading.Event | None = None) -> Following[Report]:
    def follow() -> Report | None:
        into.append(number)
        if told is not None:
            told.set()
        return None

    return Following(follow, lambda _: None, 1)


def test_nothing_is_followed_before_there_is_a_lull(followers: Followers) -> None:
    busy, seen, told = Busy(), list[int](), threading.Event()
    followers.yield_to(busy)
    followers.put(noted(seen, 1))
    followers.put(noted(seen, 2, told))
    assert busy.asked.acquire(timeout=SOON)
    assert seen == []
    busy.is_done.set()
    assert told.wait(SOON)
    assert seen == [1, 2]
    assert busy.count == 2, "each waits for a lull of its own: who comes meanwhile goes first"


def test_without_a_lull_executions_are_followed_nevertheless(followers: Followers) -> None:
    never, seen, told = Never(), list[int](), threading.Event()
    followers.yield_to(never)
    followers.put(noted(seen, 1, told))
    assert told.wait(SOON)
    assert seen == [1]


def test_only_the_end_of_serving_wakes_the_thread(followers: Followers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vesper.migration.shadow.shadow_queue._LULL_SECONDS", SOON)  # it does not look by itself
    never, seen, told = Never(), list[int](), threading.Event()
    followers.yield_to(never)
    followers.put(noted(seen, 1))  # there was no thread yet
    assert followers.drain(SOON)
    never.then.clear()
    followers.put(noted(seen, 2))
    followers.put(noted(seen, 3, told))
    assert len(never.then) == 1, "it is woken once for all that came meanwhile"
    assert seen == [1]
    never.then.pop()()
    assert told.wait(SOON)
    assert seen == [1, 2, 3]


def test_an_idle_thread_sleeps_and_is_woken_at_once(followers: Followers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vesper.migration.shadow.shadow_queue._POLL_DURATION_SECONDS", -1.0)
    never, seen, told = Never(), list[int](), threading.Event()
    followers.yield_to(never)
    followers.put(noted(seen, 1))
    assert followers.drain(SOON)
    never.then.clear()
    while not followers._is_asleep:
        time.sleep(0.001)
    followers.put(noted(seen, 2, told))
    assert told.wait(SOON)
    assert never.then == []


def test_a_long_queue_does_not_wait_for_a_lull(followers: Followers) -> None:
    busy, seen = Busy(), list[int]()
    followers.yield_to(busy)
    for number in range(100):
        followers.put(noted(seen, number))
    assert busy.asked.acquire(timeout=SOON)
    busy.is_done.set()
    assert followers.drain(SOON)
    assert seen == list(range(100)), "in the order in which they came"
    assert busy.count < 50, "the first hundred found a crowd"


def test_drain_does_not_wait_for_lulls(followers: Followers) -> None:
    never, seen = Never(), list[int]()
    asked = 0

    class Counting(Never):
        def lull(self, seconds: float) -> bool:
            nonlocal asked
            asked += 1
            return super().lull(seconds)

    counting = Counting()
    followers.yield_to(never)
    followers.yield_to(counting)
    gate = threading.Event()

    def held() -> Report | None:
        assert gate.wait(SOON)
        return None

    followers.put(Following(held, lambda _: None, 1))
    for number in range(10):
        followers.put(noted(seen, number))
    drained = threading.Thread(target=lambda: followers.drain(SOON))
    drained.start()
    while not followers._awaited:
        time.sleep(0.001)
    before = asked
    gate.set()
    drained.join(SOON)
    assert seen == list(range(10))
    assert asked == before


def test_executions_after_closing_are_lost() -> None:
    followers, busy, reports = Followers(Admission(1.0, 1_000_000)), Busy(), list[Report]()
    followers.yield_to(busy)
    followers.put(Following(lambda: None, reports.append, 1))
    assert busy.asked.acquire(timeout=SOON)
    followers.close(timeout=0.0)
    busy.is_done.set()
    assert [type(each) for each in reports] == [Lost]


def test_a_collected_host_is_skipped(followers: Followers) -> None:
    asked: list[str] = []

    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        def lull(self, _: float) -> bool:
            asked.append(self.name)
            return True

        def when_quiet(self, _: Callable[[], None]) -> bool:
            return False

    gone, here = Named("gone"), Named("here")
    for each in (gone, here, here):
        followers.yield_to(each)
    del gone, each
    followers.lull()
    assert asked == ["here"], "and each is asked once"


# -- supervision ----------------------------------------------------------------------------------


class Hanging:
    """A run that hangs until it is released."""

    def __init__(self, limit: float | None = 0.0) -> None:
        self.is_begun, self.goes_on = threading.Event(), threading.Event()
        self.reports: list[Report] = []
        self.entry: Following[Report] = Following(self._hang, self.reports.append, 1, limit)

    def _hang(self) -> Report | None:
        self.is_begun.set()
        assert self.goes_on.wait(SOON)
        return Lost("it returned after all")


def abandon(followers: Followers, run: Hanging) -> None:
    followers.put(run.entry)
    assert run.is_begun.wait(SOON)
    followers.check()
    followers.check()


def test_a_run_that_hangs_is_abandoned_and_the_next_one_is_followed(followers: Followers) -> None:
    run, seen, told = Hanging(), list[int](), threading.Event()
    abandon(followers, run)
    assert run.reports == [Lost("it did not return within 0 s")]
    followers.put(noted(seen, 1, told))
    assert told.wait(SOON)
    assert followers.drain(SOON)
    run.goes_on.set()
    assert len(run.reports) == 1, "an abandoned run reports once"


def test_a_run_within_its_limit_is_left_alone(followers: Followers) -> None:
    for limit in (SOON, None):
        run = Hanging(limit)
        abandon(followers, run)
        assert run.reports == []
        run.goes_on.set()
        assert followers.drain(SOON)
        assert run.reports == [Lost("it returned after all")]


def test_time_in_which_the_process_was_stopped_does_not_count(
    followers: Followers, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, now = Hanging(3.0), [time.monotonic()]
    monkeypatch.setattr("vesper.migration.shadow.shadow_queue.time.monotonic", lambda: now[0])
    abandon(followers, run)
    for _ in range(2):
        now[0] += 3600
        followers.check()
    assert run.reports == []
    now[0] += 3600
    followers.check()
    assert len(run.reports) == 1
    run.goes_on.set()


def test_a_process_that_abandons_too_many_stops_following(followers: Followers) -> None:
    told: list[int] = []
    followers.on_exhausted = told.append
    runs = [Hanging() for _ in range(MAX_ABANDONED + 1)]
    for number, run in enumerate(runs, start=1):
        abandon(followers, run)
        assert told == ([] if number < MAX_ABANDONED else [MAX_ABANDONED])
    for run in runs:
        run.goes_on.set()
