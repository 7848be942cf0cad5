"""The confidence of a node over time, from its history and samples, for plots."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from vesper.migration.compare.divergence import Divergence
from vesper.migration.control.modes import DEFAULT, Mode
from vesper.migration.control.state import Settings
from vesper.migration.statistics import wilson
from vesper.migration.stores import codec
from vesper.migration.stores.store import Line, NodeKey, Store
from vesper.migration.stores.traffic import SAMPLES, TRAFFIC, Sample, samples_of, traffic_of

_MIN_GAP_US = 90 * 60 * 10**6
_GAP_PART = 50
"""A gap is a fiftieth of the whole time at least: old samples are sparser."""


@dataclass(frozen=True, slots=True)
class Point:
    at_us: int
    lower_bound: float
    clean: int
    """Distinct runs that agreed."""
    divergences: int


@dataclass(frozen=True, slots=True)
class Band:
    """An interval in one mode."""

    mode: Mode
    start_us: int
    end_us: int


@dataclass(frozen=True, slots=True)
class Change:
    """A change of mode."""

    at_us: int
    before: Mode
    after: Mode
    reason: str
    who: str
    why: str

    @property
    def is_rise(self) -> bool:
        return self.after.level > self.before.level


@dataclass(frozen=True, slots=True)
class Divergent:
    at_us: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Series:
    node: str
    epoch: str
    lines: Sequence[Sequence[Point]]
    """Points that a line may join: it ends where evidence restarts, and where nothing was recorded for long."""
    bands: Sequence[Band]
    divergences: Sequence[Divergent]
    """Divergences that took evidence from their path."""
    until_us: int
    changes: Sequence[Change] = ()
    found: int = 0
    """Number of stored divergences, open and closed."""
    open: int = 0
    open_times: int = 0
    """Number of times that the open divergences were seen."""

    @property
    def points(self) -> list[Point]:
        return [point for line in self.lines for point in line]

    @property
    def start_us(self) -> int:
        return self.bands[0].start_us


def read_series(store: Store, key: NodeKey, now_us: int) -> Series | None:
    """Return the series of a node; None where the store has nothing of it.

    The last point is the present state at the time of the last write, because samples are a minute apart.
    """
    samples = samples_of(store.document(key, SAMPLES), key.node)
    text = store.read(key)
    if text is not None:
        state = codec.state_from_text(text, Settings())
        written_us = traffic_of(store.document(key, TRAFFIC), key.node).written_us
        if written_us is not None and written_us > max((each.at_us for each in samples), default=0):
            samples = (*samples, Sample(written_us, state.clean, state.divergences, state.mode))
    found = series(key, store.history(key), samples, now_us)
    kept = [_divergence(each, key) for each in store.divergences(key)]
    is_open = [each for each in kept if each.status == "open"]
    times = sum(each.count for each in is_open)
    return found and replace(found, found=len(kept), open=len(is_open), open_times=times)


def _divergence(text: str, key: NodeKey) -> Divergence:
    try:
        return Divergence.from_text(text)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise codec.BadState(f"a divergence of {key.node} cannot be read: {error}") from None


def series(key: NodeKey, history: Sequence[Line], samples: Sequence[Sample], now_us: int) -> Series | None:
    records: list[dict[str, Any]] = [json.loads(line.text) for line in history]
    times = [*(each["at_us"] for each in records), *(each.at_us for each in samples)]
    if not times:
        return None
    start, end = min(times), max(now_us, *times)
    changes = [_change(each) for each in records if each["kind"] == "changed"]
    found = [Divergent(each["at_us"], each["fingerprint"]) for each in records if each["kind"] == "path_demoted"]
    lines = _lines(_points(records, samples), max(_MIN_GAP_US, (end - start) // _GAP_PART))
    return Series(key.node, key.epoch, lines, _bands(changes, start, end), found, end, changes)


def _change(record: dict[str, Any]) -> Change:
    before, after = Mode(record["before"]), Mode(record["after"])
    return Change(record["at_us"], before, after, record["reason"], record["who"], record["why"])


def _points(records: Sequence[dict[str, Any]], samples: Sequence[Sample]) -> list[tuple[int, Point | None]]:
    """Return points with their times; None where the evidence restarts."""
    found: list[tuple[int, Point | None]] = []
    for each in records:
        at_us = each["at_us"]
        if each["kind"] == "changed":
            found.append((at_us, _point(at_us, each["seen_clean"], each["seen_divergences"])))
            if each["attempt"] != each["seen_attempt"]:
                found.append((at_us, None))
        elif each["kind"] == "forgotten":
            found.append((at_us, None))
    # A sample at the time of a change shows the state after it; the sort is stable.
    found += [(each.at_us, _point(each.at_us, each.clean, each.divergences)) for each in samples]
    return sorted(found, key=lambda each: each[0])


def _point(at_us: int, clean: int, divergences: int) -> Point | None:
    """Return a point; None without evidence."""
    runs = clean + divergences
    return Point(at_us, wilson.lower_bound(runs, divergences), clean, divergences) if runs else None


def _lines(points: Sequence[tuple[int, Point | None]], gap_us: int) -> list[list[Point]]:
    lines: list[list[Point]] = []
    is_broken = True
    for at_us, point in points:
        if point is None:
            is_broken = True
            continue
        if is_broken or at_us - lines[-1][-1].at_us > gap_us:
            lines.append([])
        lines[-1].append(point)
        is_broken = False
    return lines


def _bands(changes: Sequence[Change], start_us: int, end_us: int) -> list[Band]:
    """Return the intervals of the modes. The first starts in the mode before the first change."""
    bands: list[Band] = []
    mode = changes[0].before if changes else DEFAULT
    since = start_us
    for each in changes:
        if each.at_us > since:
            bands.append(Band(mode, since, each.at_us))
        since = max(since, each.at_us)
        mode = each.after
    return [*bands, Band(mode, since, end_us)]
