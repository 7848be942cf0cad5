"""Timing in turns, with a clock that the functions move themselves."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

from vesper.cli.bench.rounds import Timing, Way, interleaved, ratio, seconds_for, time_text, times_for, timing_of


class Watch:
    """A clock that stands still until somebody works."""

    def __init__(self) -> None:
        self.now = 0.0
        self.worked: list[str] = []

    def __call__(self) -> float:
        return self.now

    def worker(self, name: str, seconds: float) -> Callable[[object], None]:
        def work(_: object) -> None:
            self.worked.append(name)
            self.now += seconds

        return work


def test_the_best_the_median_and_the_spread() -> None:
    timing = timing_of([0.003, 0.001, 0.002])
    assert timing == Timing(0.001, 0.002, 0.003, 3)
    assert timing.spread == 2.0


def test_a_round_is_for_each_input_and_each_time() -> None:
    watch = Watch()
    assert seconds_for(Way(watch.worker("a", 0.5), [1, 2, 3]), 4, watch) == 6.0
    assert len(watch.worked) == 12


def test_a_round_lasts_about_as_long_as_it_should() -> None:
    watch = Watch()
    assert times_for(Way(watch.worker("a", 0.001), [1]), 0.1, watch) == 100
    assert times_for(Way(watch.worker("slow", 5.0), [1]), 0.1, watch) == 1


def test_ways_are_timed_in_turns_forth_and_back() -> None:
    watch = Watch()
    ways = {"quick": Way(watch.worker("quick", 1.0), [None]), "slow": Way(watch.worker("slow", 4.0), [None])}
    timings = interleaved(ways, rounds=4, seconds_a_round=1.0, clock=watch)
    assert watch.worked[-8:] == ["quick", "slow", "slow", "quick", "quick", "slow", "slow", "quick"]
    assert timings["slow"].best == 4.0
    assert timings["slow"].rounds == 4
    assert ratio(timings, "slow", "quick") == 4.0


def test_seconds_end_it_but_not_before_five_rounds() -> None:
    watch = Watch()
    ways = {"a": Way(watch.worker("a", 1.0), [None])}
    assert interleaved(ways, seconds=0.5, seconds_a_round=1.0, clock=watch)["a"].rounds == 5
    assert interleaved(ways, seconds=20.0, seconds_a_round=1.0, clock=watch)["a"].rounds == 20


def test_a_time_for_one_call_is_the_mean_of_its_round() -> None:
    watch = Watch()
    ways = {"a": Way(watch.worker("a", 0.25), [1, 2])}
    assert interleaved(ways, rounds=3, seconds_a_round=5.0, clock=watch)["a"].best == 0.25


@pytest.mark.parametrize("asked", [{}, {"rounds": 3, "seconds": 1.0}], ids=["neither", "both"])
def test_rounds_or_seconds_are_said(asked: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="rounds or seconds, not both"):
        interleaved({"a": Way(len, [""])}, **asked)  # type: ignore[arg-type]  # the wrong ones are what is tried


def test_the_collector_is_as_it_was_also_when_somebody_fails() -> None:
    seen = []

    def fails(_: object) -> None:
        seen.append(gc.isenabled())
        if len(seen) > 3 and not gc.isenabled():
            raise KeyError("no")

    with pytest.raises(KeyError):
        interleaved({"a": Way(fails, [None])}, rounds=1)
    assert seen[-1] is False
    assert gc.isenabled()


@pytest.mark.parametrize(
    "seconds, text", [(2.5, "2.50 s"), (0.0123, "12.30 ms"), (1.5e-6, "1.50 µs"), (8.6e-8, "86 ns")]
)
def test_times_are_read_by_people(seconds: float, text: str) -> None:
    assert time_text(seconds) == text
