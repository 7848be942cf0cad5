"""The confidence of a node over time, from its history and samples, for plots."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vesper.migration.compare.divergence import Divergence
from vesper.migration.control.modes import DEFAULT, Mode
from vesper.migration.control.state import Settings
from vesper.migration.statistics import wilson
from vesper.migration.stores import codec
from vesper.migration.stores.store import Line, NodeKey, Store
from vesper.migration.stores.traffic import SAMPLES, Sample, samples_of


@dataclass(frozen=True, slots=True)
class Point:
    at_us: int
    lower_bound: float


@dataclass(frozen=True, slots=True)
class Band:
    """An interval in one mode."""

    mode: Mode
    start_us: int
    end_us: int


@dataclass(frozen=True, slots=True)
class Divergent:
    at_us: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Series:
    node: str
    epoch: str
    points: Sequence[Point]
    bands: Sequence[Band]
    divergences: Sequence[Divergent]
    """Divergences that took evidence from their path."""
    until_us: int
    kept: Sequence[Divergence] = ()
    """All stored divergences, open and closed."""

    @property
    def open(self) -> list[Divergence]:
        return [each for each in self.kept if each.status == "open"]

    @property
    def start_us(self) -> int:
        return self.bands[0].start_us


def read_series(store: Store, key: NodeKey, now_us: int) -> Series | None:
    """Return the series of a node; None where the store has nothing of it.

    The last point is computed from the present state, because samples are a minute apart.
    """
    samples = samples_of(store.document(key, SAMPLES), key.node)
    found = series(key, store.history(key), samples, now_us)
    if found is None:
        return None
    points = [*found.points]
    text = store.read(key)
    if text is not None:
        state = codec.state_from_text(text, Settings())
        bound = wilson.lower_bound(state.clean + state.divergences, state.divergences)
        points.append(Point(found.until_us, bound))
    return replace(found, points=points, kept=[_divergence(each, key) for each in store.divergences(key)])


def _divergence(text: str, key: NodeKey) -> Divergence:
    try:
        return Divergence.from_text(text)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise codec.BadState(f"a divergence of {key.node} cannot be read: {error}") from None


def series(key: NodeKey, history: Sequence[Line], samples: Sequence[Sample], now_us: int) -> Series | None:
    records = list(_records(history))
    changes = [each for each in records if each["kind"] == "changed"]
    times = [*(each["at_us"] for each in records), *(each.at_us for each in samples)]
    if not times:
        return None
    end = max(now_us, *times)
    points = []
    for each in changes:
        points.append(Point(each["at_us"], each["seen_lower_bound"]))
        if each["attempt"] != each["seen_attempt"]:
            points.append(Point(each["at_us"], 0.0))  # the evidence restarts
    # A sample at the time of a change shows the state after it; the sort is stable.
    points += [Point(each.at_us, each.lower_bound) for each in samples]
    points.sort(key=lambda point: point.at_us)
    found = [Divergent(each["at_us"], each["fingerprint"]) for each in records if each["kind"] == "path_demoted"]
    return Series(key.node, key.epoch, points, _bands(changes, min(times), end), found, end)


def _bands(changes: Sequence[dict[str, Any]], start_us: int, end_us: int) -> list[Band]:
    """Return the intervals of the modes. The first starts in the mode before the first change."""
    bands: list[Band] = []
    mode = Mode(changes[0]["before"]) if changes else DEFAULT
    since = start_us
    for each in changes:
        if each["at_us"] > since:
            bands.append(Band(mode, since, each["at_us"]))
        since = max(since, each["at_us"])
        mode = Mode(each["after"])
    return [*bands, Band(mode, since, end_us)]


def _records(history: Sequence[Line]) -> Iterator[dict[str, Any]]:
    for line in history:
        found: dict[str, Any] = json.loads(line.text)
        yield found
