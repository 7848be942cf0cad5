"""The time, randomness and UUIDs."""

from __future__ import annotations

import multiprocessing
import threading
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.effects.ask_of import ask_of, failure
from vesper._direct import NativePerformer, ambient_performer
from vesper.effects.performer import EffectFailed
from vesper.storage.sources import Sources


def random_between(least: int, most: int) -> object:
    return ambient_performer(None).perform(ask_of("random_integer", {}, {"min": least, "max": most}))


def test_the_time_is_now_in_utc() -> None:
    before = datetime.now(UTC)
    found = ambient_performer(None).perform(ask_of("clock_now", {}))
    assert isinstance(found, datetime)
    assert found.tzinfo is UTC
    assert before - timedelta(seconds=1) <= found <= datetime.now(UTC) + timedelta(seconds=1)


def test_the_clock_never_goes_back() -> None:
    times = iter([1_000_000_999, 5_000_000_000, 2_000_000_000, 6_000_000_000])
    performer = ambient_performer(Sources(now_ns=lambda: next(times)))
    found = [performer.perform(ask_of("clock_now", {})) for _ in range(4)]
    seconds = [each - datetime(1970, 1, 1, tzinfo=UTC) for each in found if isinstance(each, datetime)]
    assert seconds == [timedelta(seconds=1), timedelta(seconds=5), timedelta(seconds=5), timedelta(seconds=6)]


def test_the_clock_never_goes_back_in_threads() -> None:
    performers = [ambient_performer(None), ambient_performer(None)]
    seen: list[object] = []
    lock = threading.Lock()

    def look(performer: NativePerformer) -> None:
        for _ in range(200):
            with lock:  # so that the order of the list is the order of the looks
                seen.append(performer.perform(ask_of("clock_now", {})))

    threads = [threading.Thread(target=look, args=(performer,)) for performer in performers * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == sorted(seen, key=str)


def test_both_bounds_are_included() -> None:
    assert {random_between(-1, 1) for _ in range(300)} == {-1, 0, 1}
    assert random_between(7, 7) == 7
    low, high = -(2**63), 2**63 - 1
    assert all(low <= number <= high for number in [random_between(low, high)] if isinstance(number, int))
    assert len({random_between(low, high) for _ in range(50)}) == 50


def test_bounds_in_the_wrong_order() -> None:
    failed = failure("random_integer", lambda: random_between(2, 1))
    assert (failed.code, failed.message) == ("invalid_argument", "no integer is at least 2 and at most 1")


def test_a_uuid_is_a_random_one_in_lower_case() -> None:
    performer = ambient_performer(None)
    found = {str(performer.perform(ask_of("uuid_new", {}))) for _ in range(100)}
    assert len(found) == 100
    assert all(uuid.UUID(each).version == 4 and str(uuid.UUID(each)) == each for each in found)


def test_a_forked_process_does_not_repeat_its_parent() -> None:
    performer = ambient_performer(None)
    ask = ask_of("random_integer", {}, {"min": 0, "max": 2**62})
    performer.perform(ask)
    fork = multiprocessing.get_context("fork")
    results = fork.Queue()
    children = [fork.Process(target=lambda: results.put(performer.perform(ask))) for _ in range(2)]
    for child in children:
        child.start()
    found = {results.get(timeout=30) for _ in children} | {performer.perform(ask)}
    for child in children:
        child.join()
    assert len(found) == 3


def test_nobody_probes_these() -> None:
    with pytest.raises(EffectFailed, match="never probed"):
        ambient_performer(None).probe(ask_of("uuid_new", {}))
