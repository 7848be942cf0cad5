"""A detector for a direct engine that is slower than Python.

Times are collected in rounds of 500 per engine. A round is bad where the direct engine's median or 95th percentile
exceeds Python's by more than a tenth and by more than 50 µs, beyond chance: the lower end of the interval of the direct
quantile is compared with the upper end of Python's. The intervals are of ranks (z = 3.29), so they hold for every
distribution, and a few outliers do not move them. Two bad rounds in a row raise the alarm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from vesper.migration.statistics.wilson import Z

ROUND_SIZE = 500
"""Times per engine and round; the smallest size with an interval for the 95th percentile."""
BAD_ROUNDS = 2
SLOWER_RATIO = Fraction(11, 10)
SLOWER_BY_NS = 50_000
"""Minimum excess in nanoseconds. For a node that is called rarely, cold caches dominate: a node of 2 µs takes 40 µs at
150 requests a second, and the follower runs on colder caches than the leader."""
QUANTILES = (Fraction(1, 2), Fraction(19, 20))


@dataclass(frozen=True, slots=True)
class LatencyState:
    python: tuple[int, ...] = ()
    direct: tuple[int, ...] = ()
    bad_rounds: int = 0


@dataclass(frozen=True, slots=True)
class Ranks:
    """Indexes into the sorted times between which a quantile lies."""

    low: int
    high: int


def ranks(quantile: Fraction, size: int) -> Ranks:
    middle = quantile * size
    spread = Z * Z * middle * (1 - quantile)
    margin = math.isqrt(math.ceil(spread))
    margin += margin * margin < spread
    low, high = math.floor(middle) - margin - 1, math.ceil(middle) + margin
    if low < 0 or high >= size:
        raise ValueError(f"{size} times are too few for the interval of the quantile {quantile}")
    return Ranks(low, high)


def is_slower(python: tuple[int, ...], direct: tuple[int, ...]) -> bool:
    fast, slow = sorted(python), sorted(direct)
    for each in QUANTILES:
        direct_ns, python_ns = slow[ranks(each, len(slow)).low], fast[ranks(each, len(fast)).high]
        if direct_ns > SLOWER_RATIO * python_ns and direct_ns > python_ns + SLOWER_BY_NS:
            return True
    return False


def add_time(state: LatencyState, python_ns: int | None, direct_ns: int | None) -> LatencyState:
    """Return the state with the times of one run added.

    An engine without a time contributes None. A full round of one engine waits for that of the other. Raises
    `ValueError` for a negative time.
    """
    if min(python_ns or 0, direct_ns or 0) < 0:
        raise ValueError("no run takes less than no time")
    python, direct = _append_time(state.python, python_ns), _append_time(state.direct, direct_ns)
    if len(python) < ROUND_SIZE or len(direct) < ROUND_SIZE:
        return LatencyState(python, direct, state.bad_rounds)
    return LatencyState(bad_rounds=state.bad_rounds + 1 if is_slower(python, direct) else 0)


def add_times(state: LatencyState, times: Sequence[tuple[int | None, int | None]]) -> tuple[LatencyState, int]:
    """Return the state after the leading runs, and their number.

    These are all before the run that completes a round. The result equals that of `add_time` on each run, without
    copying the round each time.
    """
    python, direct, count = list(state.python), list(state.direct), 0
    for python_ns, direct_ns in times:
        if min(python_ns or 0, direct_ns or 0) < 0:
            raise ValueError("no run takes less than no time")
        is_one_more = (
            python_ns is not None and len(python) < ROUND_SIZE,
            direct_ns is not None and len(direct) < ROUND_SIZE,
        )
        if len(python) + is_one_more[0] >= ROUND_SIZE and len(direct) + is_one_more[1] >= ROUND_SIZE:
            break
        if python_ns is not None and is_one_more[0]:
            python.append(python_ns)
        if direct_ns is not None and is_one_more[1]:
            direct.append(direct_ns)
        count += 1
    return LatencyState(tuple(python), tuple(direct), state.bad_rounds), count


def describe_round(state: LatencyState, python_ns: int | None, direct_ns: int | None) -> str:
    """Return a text about the round that this run completes, for the history."""
    python, direct = (
        [f"{_quantile(times, each) / 1000:,.0f} µs" for each in QUANTILES]
        for times in (_append_time(state.python, python_ns), _append_time(state.direct, direct_ns))
    )
    return f"median {direct[0]} beside {python[0]} of Python, 95th percentile {direct[1]} beside {python[1]}"


def is_alarm(state: LatencyState) -> bool:
    return state.bad_rounds >= BAD_ROUNDS


def _quantile(times: tuple[int, ...], quantile: Fraction) -> int:
    return sorted(times)[math.floor(quantile * len(times))]


def _append_time(times: tuple[int, ...], time_us: int | None) -> tuple[int, ...]:
    return times if time_us is None or len(times) >= ROUND_SIZE else (*times, time_us)
