"""Milestones of a migration, and the modes of all nodes over time, derived from the histories."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from vesper.dashboard.draw.plot import draw_modes
from vesper.dashboard.draw.plot_layout import nines
from vesper.dashboard.page import Context
from vesper.dashboard.service import open_configured
from vesper.dashboard.words import share_text
from vesper.journal.moments import number
from vesper.migration.control.modes import DEFAULT, LADDER, THRESHOLDS, Engine, Mode
from vesper.migration.statistics.confidence import clean_runs_needed
from vesper.migration.statistics.wilson import lower_bound
from vesper.migration.stores.configured import OpenStore
from vesper.migration.stores.history_text import parse_record
from vesper.migration.stores.overview import DAY_HOURS, NodeOverview, Overview, bound_text, fleet, read_overview
from vesper.migration.stores.store import Line
from vesper.migration.stores.traffic import HOUR_US, MAX_HOURS

AGREEMENT = float(THRESHOLDS[Mode.DUAL_VERIFY])
CANARY_NODES, PRODUCTION_NODES = 10, 20
TRAFFIC_SHARE, NODES_SHARE = 0.5, 0.8
MAX_STEPS = 300
"""Moments of the plot."""
_PERCENT = 100


@dataclass(frozen=True, slots=True)
class Milestone:
    """A goal of the migration."""

    goal: str
    now: str
    """The present value."""
    progress: float
    """Share of the goal, at most 1."""
    is_reached: bool
    reached_us: int | None
    """Time at which it was reached first; None where it never was."""
    missing: str
    """What it still needs; empty where it holds."""
    is_bound: bool = False
    """Whether it may have been reached earlier: counts of requests are kept for two days."""


@dataclass(frozen=True, slots=True)
class ModesAt:
    """Numbers by mode from one time on, in the order of `modes`."""

    at_us: int
    counts: Sequence[int]


@dataclass(frozen=True, slots=True)
class MilestonesPage:
    """The migration as a whole, over time."""

    milestones: Sequence[Milestone]
    modes: Sequence[Mode]
    nodes: Sequence[ModesAt]
    """Nodes by mode; the mode of a node is that of its newest epoch, within `max_mode`."""
    traffic: Sequence[ModesAt]
    """Share of requests by mode and hour in percent."""
    until_us: int

    def nodes_plot(self) -> Markup:
        return self._plot("nodes", "Nodes by mode", self.nodes, "")

    def traffic_plot(self) -> Markup:
        return self._plot("traffic", "Share of requests by mode", self.traffic, " %")

    def _plot(self, name: str, title: str, found: Sequence[ModesAt], unit: str) -> Markup:
        times, counts = [each.at_us for each in found], [each.counts for each in found]
        return Markup(draw_modes(name, title, times, counts, self.until_us, unit))  # escapes all texts


@dataclass(frozen=True, slots=True)
class _Step:
    """A change of a node: its mode, and the evidence at that moment."""

    at_us: int
    node: str
    mode: Mode
    clean: int
    divergences: int


def read_milestones(context: Context) -> MilestonesPage:
    """Read histories, states and counted requests once each, and derive the milestones from them."""
    opened = open_configured(context.stores)
    overview = read_overview(opened.store, opened.settings)
    steps = sorted(_steps(opened, overview, context.now_us), key=lambda each: each.at_us)
    series = list(_count(steps))
    hours = _hours(overview)
    return MilestonesPage(
        _milestones(opened, overview, series, steps, hours, context.now_us),
        LADDER,
        _thin(series, context.now_us),
        [ModesAt(hour * HOUR_US, _percent(counts)) for hour, counts in sorted(hours.items())],
        context.now_us,
    )


# -- over time ------------------------------------------------------------------------------------


def _steps(opened: OpenStore, overview: Overview, now_us: int) -> Iterator[_Step]:
    """Return the changes of all nodes. A node begins with the first line of its history."""
    histories = opened.store.histories("changed")
    for each in (*overview.nodes, *overview.others):
        highest = opened.highest(each.key.node) or LADDER[-1]
        records = _records(histories.get(each.key, ()))
        changes = [record for record in records if record["kind"] == "changed"]
        first = Mode(changes[0]["before"]) if changes else _mode(each)
        began_us = min(record["at_us"] for record in records) if records else _first_use_us(each, now_us)
        yield _Step(began_us, each.key.node, min(first, highest, key=_level), 0, 0)
        for record in changes:
            is_kept = record["attempt"] == record["seen_attempt"]
            seen = (record["seen_clean"], record["seen_divergences"]) if is_kept else (0, 0)
            yield _Step(record["at_us"], each.key.node, min(Mode(record["after"]), highest, key=_level), *seen)


def _records(lines: Sequence[Line]) -> list[dict[str, Any]]:
    return [found for found in map(parse_record, lines) if type(found.get("at_us")) is int and "kind" in found]


def _mode(each: NodeOverview) -> Mode:
    return DEFAULT if each.state is None else each.state.mode


def _level(mode: Mode) -> int:
    return mode.level


def _first_use_us(each: NodeOverview, now_us: int) -> int:
    return min((hour * HOUR_US for hour in each.traffic.hours), default=each.written_us or now_us)


def _count(steps: Iterable[_Step]) -> Iterator[ModesAt]:
    """Yield the number of nodes by mode after each change."""
    modes: dict[str, Mode] = {}
    counts = [0] * len(LADDER)
    for step in steps:
        if (before := modes.get(step.node)) is not None:
            counts[before.level] -= 1
        modes[step.node] = step.mode
        counts[step.mode.level] += 1
        yield ModesAt(step.at_us, tuple(counts))


def _thin(series: Sequence[ModesAt], until_us: int) -> list[ModesAt]:
    """Return the numbers at no more moments than a plot shows, the last of each."""
    if not series:
        return []
    width = max(1, (until_us - series[0].at_us) // MAX_STEPS)
    found: dict[int, ModesAt] = {}
    for each in series:
        found[(each.at_us - series[0].at_us) // width] = each
    return list(found.values())


def _hours(overview: Overview) -> dict[int, Counter[str]]:
    """Return the requests of all nodes by hour, mode and engine."""
    found: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for each in (*overview.nodes, *overview.others):
        for hour, counts in each.traffic.hours.items():
            total = found[hour]
            for name, count in counts.items():
                total[name] += count
    return {hour: found[hour] for hour in sorted(found)[-MAX_HOURS:]}


def _percent(counts: Mapping[str, int]) -> tuple[int, ...]:
    """Return the share of each mode in percent; they add up to 100."""
    by_mode = [sum(counts.get(f"{mode.value}/{engine.value}", 0) for engine in Engine) for mode in LADDER]
    total, ends = sum(by_mode), [0]
    for count in by_mode:
        ends.append(ends[-1] + count)
    marks = [round(_PERCENT * end / total) if total else 0 for end in ends]
    return tuple(after - before for before, after in pairwise(marks))


# -- goals ----------------------------------------------------------------------------------------


def _milestones(
    opened: OpenStore,
    overview: Overview,
    series: Sequence[ModesAt],
    steps: Sequence[_Step],
    hours: Mapping[int, Counter[str]],
    now_us: int,
) -> list[Milestone]:
    totals = fleet(overview, {each.key.node: opened.highest(each.key.node) for each in overview.nodes}, now_us)
    nodes = sum(totals.nodes.values())
    canary = sum(totals.nodes[mode] for mode in LADDER[Mode.CANARY_DIRECT.level :])
    direct = totals.nodes[Mode.DIRECT_ONLY]
    wanted = -(-nodes * 4 // 5)
    past_canary = _first_time(series, lambda counts: sum(counts[Mode.CANARY_DIRECT.level :]) >= CANARY_NODES)
    in_production = _first_time(series, lambda counts: counts[-1] >= PRODUCTION_NODES)
    mostly_direct = _first_time(series, lambda counts: counts[-1] >= NODES_SHARE * sum(counts) > 0)
    return [
        _agreement(overview, steps, now_us),
        _node_milestone(
            "10 nodes in the canary or past it", canary, CANARY_NODES, "canary_direct or above", past_canary
        ),
        _node_milestone(
            "20 nodes in production on the direct engine", direct, PRODUCTION_NODES, "direct_only", in_production
        ),
        _traffic(hours, now_us),
        _node_milestone(
            "80 % of nodes on the direct engine", direct, max(1, wanted), "direct_only", mostly_direct, of=nodes
        ),
    ]


def _agreement(overview: Overview, steps: Sequence[_Step], now_us: int) -> Milestone:
    """Return the goal of the whole fleet: the lower bound of the share of all compared runs that agree."""
    states = [each.state for each in overview.nodes if each.state is not None]
    clean, divergences = sum(each.clean for each in states), sum(each.divergences for each in states)
    bound = lower_bound(clean + divergences, divergences)
    threshold = THRESHOLDS[Mode.DUAL_VERIFY]
    proven = sum(
        each.is_complete or each.clean >= clean_runs_needed(threshold, each.divergences, each.attempt)
        for each in states
    )
    is_reached = bound >= AGREEMENT
    reached_us = _first_agreement(steps) or (now_us if is_reached else None)
    runs = f"{number(clean, 'distinct run')} that agree, {number(divergences, 'divergence')}"
    alone = f"{proven:,} of {number(len(states), 'node')} show it alone"
    missing = "" if is_reached else f"a lower bound of {AGREEMENT:g}: more distinct runs that agree"
    now = f"{bound_text(bound)} from {runs}; {alone}"
    progress = min(1.0, nines(bound) / nines(AGREEMENT))
    return Milestone("99.9 % agreement in shadow", now, progress, is_reached, reached_us, missing)


def _bound(clean: int, divergences: int) -> float:
    return lower_bound(clean + divergences, divergences)


def _first_agreement(steps: Sequence[_Step]) -> int | None:
    seen: dict[str, tuple[int, int]] = {}
    clean = divergences = 0
    for each in steps:
        before = seen.get(each.node, (0, 0))
        seen[each.node] = (each.clean, each.divergences)
        clean, divergences = clean + each.clean - before[0], divergences + each.divergences - before[1]
        if _bound(clean, divergences) >= AGREEMENT:
            return each.at_us
    return None


def _node_milestone(
    goal: str, count: int, wanted: int, where: str, reached_us: int | None, of: int | None = None
) -> Milestone:
    now = f"{number(count, 'node')} in {where}" + ("" if of is None else f" of {of:,}")
    is_reached = count >= wanted and of != 0
    missing = "" if is_reached else f"{number(max(1, wanted - count), 'more node')} in {where}"
    return Milestone(goal, now, min(1.0, count / wanted), is_reached, reached_us, missing)


def _traffic(hours: Mapping[int, Counter[str]], now_us: int) -> Milestone:
    last = now_us // HOUR_US
    shares = {end: _direct_share(hours, end) for end in range(last - DAY_HOURS, last + 1)}
    share = shares[last]
    first = next((end for end, each in shares.items() if each is not None and each >= TRAFFIC_SHARE), None)
    is_reached = share is not None and share >= TRAFFIC_SHARE
    now = "no requests" if share is None else f"{share_text(share)} of the requests of the last {DAY_HOURS} hours"
    missing = "" if is_reached else "a larger share of direct answers: promote the nodes with the most requests"
    reached_us = None if first is None else first * HOUR_US
    progress = min(1.0, (share or 0.0) / TRAFFIC_SHARE)
    goal = "50 % of traffic on the direct engine"
    return Milestone(goal, now, progress, is_reached, reached_us, missing, is_bound=first == min(shares))


def _direct_share(hours: Mapping[int, Counter[str]], end: int) -> float | None:
    """Return the share of direct answers in the day until an hour; None without requests."""
    found = [counts for hour, counts in hours.items() if end - DAY_HOURS < hour <= end]
    total = sum(counts.total() for counts in found)
    direct = sum(count for counts in found for name, count in counts.items() if name.endswith("/direct"))
    return direct / total if total else None


def _first_time(series: Sequence[ModesAt], holds: Callable[[Sequence[int]], bool]) -> int | None:
    return next((each.at_us for each in series if holds(each.counts)), None)
