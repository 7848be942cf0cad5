"""Who answered how many requests, and how the evidence grew: what `vesper status` and plots show of the past.

Two documents beside the state of a node, changed in the same transaction. *traffic* counts requests by hour, mode and
engine that answered, and says when a process last told of the node. *samples* are the counts of the evidence, one a
minute at most. Neither is evidence: nothing is decided on them, so one that cannot be read is begun anew and the log
says so.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from vesper.migration.control.modes import LADDER, Engine, Mode
from vesper.migration.control.state import State
from vesper.migration.statistics import wilson

if TYPE_CHECKING:
    from vesper.migration.stores.store import Transaction

TRAFFIC = "traffic"
SAMPLES = "samples"
HOUR_US = 3600 * 10**6
MAX_HOURS = 48
"""Hours that are kept of a node: the document is written with every batch, so it is small."""
SAMPLE_US = 60 * 10**6
MAX_SAMPLES = 2000
_FORMAT = 1
_LOG = logging.getLogger("vesper.migration")
_MOMENTS = ("written_us", "sampled_us")
_SERVED = frozenset(f"{mode.value}/{engine.value}" for mode in Mode for engine in Engine)


def served_key(mode: Mode, engine: Engine) -> str:
    """Under which a request counts that this engine answered in this mode."""
    return f"{mode.value}/{engine.value}"


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests of a node."""

    hours: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """By hours since 1970; each by `mode/engine`."""
    written_us: int | None = None
    """When a process that runs the node last told the store of it."""
    sampled_us: int | None = None

    def and_served(self, served: Mapping[str, int], now_us: int) -> Traffic:
        """With more requests in the hour of now. Of more hours than are kept, the newest stay."""
        counts = {name: count for name, count in served.items() if count}
        for name, count in counts.items():
            _served(name)
            _count(count)
        if not counts:
            return self
        hour = now_us // HOUR_US
        now = Counter(self.hours.get(hour, {}))
        now.update(counts)
        hours = {**self.hours, hour: dict(now)}
        return replace(self, hours={each: hours[each] for each in sorted(hours)[-MAX_HOURS:]})

    def since(self, now_us: int, hours: int) -> Counter[str]:
        """Requests of the last so many hours, by `mode/engine`; this hour is the last of them."""
        last = now_us // HOUR_US
        found: Counter[str] = Counter()
        for hour, counts in self.hours.items():
            if last - hours < hour <= last:
                found.update(counts)
        return found

    def to_text(self) -> str:
        hours = {str(hour): dict(sorted(counts.items())) for hour, counts in sorted(self.hours.items())}
        return _text({"hours": hours, "written_us": self.written_us, "sampled_us": self.sampled_us})

    @staticmethod
    def from_text(text: str) -> Traffic:
        found = _read(text)
        hours = {
            int(hour): {_served(name): _count(n) for name, n in each.items()} for hour, each in found["hours"].items()
        }
        written_us, sampled_us = (None if found[name] is None else _count(found[name]) for name in _MOMENTS)
        return Traffic(hours, written_us, sampled_us)


@dataclass(frozen=True, slots=True)
class Sample:
    """The evidence of a node at a moment."""

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
        yield Sample(_count(at_us), _count(clean), _count(divergences), LADDER[_count(level)])


def thinned(samples: tuple[Sample, ...]) -> tuple[Sample, ...]:
    """At most as many as are kept. Every other one goes, but never the first and the last: what is long ago is shown
    more and more coarsely, and what was lately is not."""
    if len(samples) <= MAX_SAMPLES:
        return samples
    kept = samples[:-1:2]
    return (*kept, samples[-1])


def keep(
    transaction: Transaction, state: State, served: Mapping[str, int], now_us: int, is_in_use: bool = True
) -> None:
    """Notes the requests of a batch, and the evidence where the last sample is a minute old. What nobody says who runs
    the node (`is_in_use`) leaves alone when it was last written: the epoch that was written last is the one that runs,
    and what is said of another one must not put it in its place."""
    traffic = traffic_of(transaction.document(TRAFFIC), state.node).and_served(served, now_us)
    # A clock that was put back must not end the sampling, so the distance counts in both directions.
    if traffic.sampled_us is None or abs(now_us - traffic.sampled_us) >= SAMPLE_US:
        samples = samples_of(transaction.document(SAMPLES), state.node)
        samples = thinned((*samples, Sample(now_us, state.clean, state.divergences, state.mode)))
        transaction.put_document(SAMPLES, samples_text(samples))
        traffic = replace(traffic, sampled_us=now_us)
    if is_in_use or traffic.written_us is None:
        traffic = replace(traffic, written_us=now_us)
    transaction.put_document(TRAFFIC, traffic.to_text())


def traffic_of(text: str | None, node: str) -> Traffic:
    """What a store has; nothing where there is nothing that can be read."""
    try:
        return Traffic() if text is None else Traffic.from_text(text)
    except _WRONG as error:
        _LOG.warning("the counted requests of %s cannot be read, and are begun anew: %s", node, _why(error))
        return Traffic()


def samples_of(text: str | None, node: str) -> tuple[Sample, ...]:
    try:
        return () if text is None else samples_from_text(text)
    except _WRONG as error:
        _LOG.warning("the samples of the evidence of %s cannot be read, and are begun anew: %s", node, _why(error))
        return ()


_WRONG = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)


def _why(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _served(name: str) -> str:
    if name not in _SERVED:
        raise ValueError(f"{name!r} is no mode and engine, as in `canary_direct/python`")
    return name


def _count(value: object) -> int:
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
