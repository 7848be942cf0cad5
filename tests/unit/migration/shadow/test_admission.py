"""The share of followed requests, by the cost of shadow runs."""

from __future__ import annotations

import pytest

from vesper.migration.shadow.admission import Admission


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def second(admission: Admission, clock: Clock, requests: int, seconds_each: float) -> float:
    """Simulate a second with this many requests; return the chance afterwards."""
    admission.add_native_runs(
        requests, max(1, round(requests * admission.chance)), requests * admission.chance * seconds_each
    )
    clock.now += 1.0
    admission.adjust()
    return admission.chance


def test_everything_is_followed_while_it_fits() -> None:
    clock = Clock()
    admission = Admission(0.25, 1_000, clock)
    assert all(second(admission, clock, 100, 0.0025) == 1.0 for _ in range(5))
    assert all(admission.admits() for _ in range(1_000))


def test_the_chance_comes_to_what_the_budget_allows() -> None:
    """A thousand requests of 2 ms would take two processors; a quarter of one follows an eighth of them."""
    clock = Clock()
    admission = Admission(0.25, 1_000, clock)
    assert second(admission, clock, 1_000, 0.002) == pytest.approx((1 + 0.125) / 2)  # half of the way
    for _ in range(20):
        second(admission, clock, 1_000, 0.002)
    assert admission.chance == pytest.approx(0.125, rel=0.01)
    admitted = sum(admission.admits() for _ in range(20_000))
    assert 2_000 < admitted < 3_000  # 2,500, and ten standard deviations either way


def test_one_in_a_thousand_is_followed_however_busy_it_is() -> None:
    clock = Clock()
    admission = Admission(0.001, 1_000, clock)
    for _ in range(30):
        second(admission, clock, 100_000, 1.0)
    assert admission.chance == 0.001


def test_it_recovers_at_once() -> None:
    clock = Clock()
    admission = Admission(0.25, 1_000, clock)
    told: list[float] = []
    admission.listeners.append(told.append)
    assert second(admission, clock, 1_000, 0.1) < 1.0
    assert second(admission, clock, 10, 0.001) == 1.0
    assert told[1] == 1.0


def test_a_pause_does_not_make_following_cheaper() -> None:
    clock = Clock()
    admission = Admission(0.25, 1_000, clock)
    busy = second(admission, clock, 1_000, 0.1)
    for _ in range(10):
        clock.now += 1.0
        admission.adjust()  # nothing was asked
    assert admission.chance == busy < 1.0


def test_the_chance_recovers_without_followed_requests() -> None:
    """Their cost is known from before."""
    clock = Clock()
    admission = Admission(0.001, 1_000, clock)
    for _ in range(30):
        second(admission, clock, 100_000, 0.001)
    assert admission.chance == 0.001
    admission.add_native_runs(1, 0, 0.0)
    clock.now += 1.0
    admission.adjust()
    assert admission.chance == 1.0


def test_a_window_is_a_second() -> None:
    clock = Clock()
    admission = Admission(0.25, 1_000, clock)
    admission.add_native_runs(1_000, 1_000, 100.0)
    clock.now += 0.9
    admission.adjust()
    assert admission.chance == 1.0
    clock.now += 0.1
    admission.adjust()
    assert admission.chance < 1.0


def test_the_queue_is_bounded() -> None:
    admission = Admission(0.25, 100)
    assert admission.has_room(60)
    assert not admission.has_room(41)
    assert admission.has_room(40)
    admission.add_run(0.001, 60)
    assert admission.has_room(60)


def test_a_queue_that_waits_for_the_lock_is_busy_for_half_of_the_time() -> None:
    """A hundred runs of 1 ms of processor time, each 50 ms in the queue: five seconds in every second."""
    clock = Clock()
    admission = Admission(0.25, 1_000, clock)
    for _ in range(30):
        followed = max(1, round(100 * admission.chance))
        admission.add_native_runs(100, 0, 0.0)
        for _ in range(followed):
            admission.add_run(0.001, 0, 0.05)
        clock.now += 1.0
        admission.adjust()
    assert admission.chance == pytest.approx(0.1, rel=0.1)
