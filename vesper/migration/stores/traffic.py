"""Counted requests and samples of the evidence, for `vesper status` and plots.

Two documents beside the state of a node, written in the same transaction. *traffic* counts requests by hour, mode and
engine of the outcome, and holds the time of the last write. *samples* are the counts of the evidence, at most one a
minute. No decision depends on them, so an unreadable one is restarted with a warning in the log.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from vesper.migration.control.modes import LADDER, Engine, Mode
from vesper.migration.control.state import NodeState
from vesper.migration.statistics import wilson

if TYPE_CHECKING:
    from vesper.migration.stores.store import Transaction

TRAFFIC = "traffic"
SAMPLES = "samples"
HOUR_US = 3600 * 10**6
MAX_HOURS = 48
"""Hours kept per node. The document is written with every batch, so it must be small."""
SAMPLE_US = 60 * 10**6
MAX_SAMPLES = 2000
_FORMAT = 1
_NONE: Mapping[str, int] = {}
_LOG = logging.getLogger("vesper.migration")
_TIME_FIELDS = ("written_us", "sampled_us")
_SERVED = frozenset(f"{mode.value}/{engine.value}" for mode in Mode for engine in Engine)


def served_key(mode: Mode, engine: Engine) -> str:
    """Return the key under which requests with this mode and engine are counted."""
    return f"{mode.value}/{engine.value}"


@dataclass(frozen=True, slots=True)
class Traffic:
    """Counted requests of a node."""

    hours: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """Counts by hour since 1970, each by `mode/engine`."""
    written_us: int | None = None
    """Time of the last write by a process that runs the node, in microseconds."""
    sampled_us: int | None = None

    def add_served(self, served: Mapping[str, int], now_us: int) -> Traffic:
        """Return the traffic with more requests in the present hour. The newest `MAX_HOURS` hours stay."""
        counts = {name: count for name, count in served.items() if count}
        for name, count in counts.items():
            _check_served(name)
            _check_count(count)
        if not counts:
            return self
        hour = now_us // HOUR_US
        now = Counter(self.hours.get(hour, {}))
        now.update(counts)
        hours = {**self.hours, hour: dict(now)}
        return replace(self, hours={each: hours[each] for each in sorted(hours)[-MAX_HOURS:]})

    def since(self, now_us: int, hours: int) -> dict[str, int]:
        """Return the requests of the last `hours` hours by `mode/engine`, the present hour included."""
        last = now_us // HOUR_US
        found: dict[str, int] = {}
        for hour in range(last - hours + 1, last + 1):
            for name, count in self.hours.get(hour, _NONE).items():
                found[name] = found.get(name, 0) + count
        return found

    def to_text(self) -> str:
        hours = {str(hour): dict(sorted(counts.items())) for hour, counts in sorted(self.hours.items())}
        return _text({"hours": hours, "written_us": self.written_us, "sampled_us": self.sampled_us})

    @staticmethod
    def from_text(text: str) -> Traffic:
        found = _read(text)
        written_us, sampled_us = (None if found[name] is None else _check_count(found[name]) for name in _TIME_FIELDS)
        return Traffic(_check_hours(found["hours"]), written_us, sampled_us)


@dataclass(frozen=True, slots=True)
class Sample:
    """The evidence of a node at one time."""

    at_us: int
    clean: int
    divergences: int
    mode: Mode

    @property
    def lower_bound(self) -> float:
        return wilson.lower_bound(self.clean + self.divergences, self.divergences)


def samples_text(samples: tuple[Sample, ...]) -> str:
    return _text({"samples": [[each.at_us, each.clean, each.divergences, each.mode.level] for each in samples]})


def samples_from_text(text: str) -> tuple[Sample, ...]:
    return tuple(_samples(_read(text)["samples"]))


def _samples(found: list[Any]) -> Iterator[Sample]:
    for at_us, clean, divergences, level in found:
        yield Sample(_check_count(at_us), _check_count(clean), _check_count(divergences), LADDER[_check_count(level)])


def thin(samples: tuple[Sample, ...]) -> tuple[Sample, ...]:
    """Return at most `MAX_SAMPLES` samples.

    Every other one is removed, except for the first and the last: old samples become coarser with each pass.
    """
    if len(samples) <= MAX_SAMPLES:
        return samples
    kept = samples[:-1:2]
    return (*kept, samples[-1])


def keep(
    transaction: Transaction, state: NodeState, served: Mapping[str, int], now_us: int, is_in_use: bool = True
) -> None:
    """Count the requests of a batch, and add a sample each minute.

    A write from outside of running processes (`is_in_use` is False) leaves `written_us` alone: the epoch written last
    counts as the one in use, and an order for another epoch must not change that.
    """
    traffic = traffic_of(transaction.document(TRAFFIC), state.node).add_served(served, now_us)
    # The absolute distance, so that a clock that was set back does not stop the sampling.
    if traffic.sampled_us is None or abs(now_us - traffic.sampled_us) >= SAMPLE_US:
        samples = samples_of(transaction.document(SAMPLES), state.node)
        samples = thin((*samples, Sample(now_us, state.clean, state.divergences, state.mode)))
        transaction.put_document(SAMPLES, samples_text(samples))
        traffic = replace(traffic, sampled_us=now_us)
    if is_in_use or traffic.written_us is None:
        traffic = replace(traffic, written_us=now_us)
    transaction.put_document(TRAFFIC, traffic.to_text())


def traffic_of(text: str | None, node: str) -> Traffic:
    """Return the stored traffic; an empty one where there is none or it cannot be read."""
    try:
        return Traffic() if text is None else Traffic.from_text(text)
    except _READ_ERRORS as error:
        _LOG.warning("the counted requests of %s cannot be read, and are begun anew: %s", node, _error_text(error))
        return Traffic()


def samples_of(text: str | None, node: str) -> tuple[Sample, ...]:
    try:
        return () if text is None else samples_from_text(text)
    except _READ_ERRORS as error:
        _LOG.warning(
            "the samples of the evidence of %s cannot be read, and are begun anew: %s", node, _error_text(error)
        )
        return ()


_READ_ERRORS = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _check_served(name: str) -> str:
    if name not in _SERVED:
        raise ValueError(f"{name!r} is no mode and engine, as in `canary_direct/python`")
    return name


def _check_hours(hours: dict[str, dict[str, Any]]) -> dict[int, dict[str, int]]:
    """Check the counts of all hours together: a fleet of 2,000 nodes has 100,000 hours."""
    counts = [*chain.from_iterable(map(dict.values, hours.values()))]
    if not {*chain.from_iterable(hours.values())} <= _SERVED or not {*map(type, counts)} <= {int}:
        raise ValueError("its hours are no counts by mode and engine, as in `canary_direct/python`")
    if min(counts, default=0) < 0:
        raise ValueError("a count is below 0")
    return {int(hour): each for hour, each in hours.items()}


def _check_count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value


def _text(found: Mapping[str, Any]) -> str:
    return json.dumps({"format": _FORMAT, **found}, separators=(",", ":"))


def _read(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    if found.get("format") != _FORMAT:
        raise ValueError(f"it has the format {found.get('format')!r}, and this Vesper reads {_FORMAT}")
    return found
