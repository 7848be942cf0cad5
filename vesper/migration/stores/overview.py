"""Read-only summaries of a store: modes, missing conditions, traffic.

The state and the traffic of a node may be of different times, and so may two nodes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from vesper.migration.compare.divergence import Divergence
from vesper.migration.compare.paths import PathNote
from vesper.migration.control.controller import is_proven, missing_conditions
from vesper.migration.control.modes import LADDER, PATH_THRESHOLD, THRESHOLDS, Engine, Mode
from vesper.migration.control.state import NodeState, PathState, Settings
from vesper.migration.statistics import wilson
from vesper.migration.statistics.confidence import clean_runs_needed
from vesper.migration.statistics.evalue import EProcess, log_needed
from vesper.migration.stores import codec
from vesper.migration.stores.ledger import KillSwitch, read_kill_switch
from vesper.migration.stores.store import NodeKey, Store, key_order, keys_of
from vesper.migration.stores.traffic import TRAFFIC, Traffic, traffic_of

DAY_HOURS = 24
_MAX_PARSED = 4096
"""Texts whose parsed form stays: a page of many nodes is read again and again, and few of them change."""


@dataclass(frozen=True, slots=True)
class NodeOverview:
    """A node in an epoch."""

    key: NodeKey
    state: NodeState | None
    """State; None where it cannot be read, and then `problem` contains the reason."""
    traffic: Traffic
    problem: str | None = None

    @property
    def written_us(self) -> int:
        """The time of the last write by a process that runs the node, in microseconds; 0 where it is unknown."""
        return self.traffic.written_us or 0


@dataclass(frozen=True, slots=True)
class Overview:
    store: str
    warnings: Sequence[str]
    killed: KillSwitch | None
    nodes: Sequence[NodeOverview]
    """Per node, the epoch that was written last, or all epochs."""
    others: Sequence[NodeOverview] = ()
    """Epochs left out because the node has a newer one."""

    @property
    def written_us(self) -> int | None:
        return max((each.written_us for each in (*self.nodes, *self.others)), default=0) or None


def read_overview(store: Store, settings: Settings, all_epochs: bool = False, node: str | None = None) -> Overview:
    """Return all nodes, or one. Each has its last written epoch, or all epochs with `all_epochs`."""
    if node is None:
        nodes = read_nodes(store, settings)
    else:
        nodes = [read_node(store, key, settings) for key in keys_of(store) if key.node == node]
    shown = nodes if all_epochs else newest_epochs(nodes)
    keys = {each.key for each in shown}
    others = [each for each in nodes if each.key not in keys]
    return Overview(store.name, tuple(store.warnings()), read_kill_switch(store), tuple(shown), tuple(others))


def read_nodes(store: Store, settings: Settings) -> list[NodeOverview]:
    """Return every node in every epoch, without the times of runs, by two reads of the store."""
    documents, states = store.documents(TRAFFIC), store.states()
    return [
        _summarise_node(key, states[key], _parse_traffic(documents.get(key), key.node), settings, _parse_summary)
        for key in sorted(states, key=key_order)
        if key.epoch
    ]


_parse_summary = lru_cache(_MAX_PARSED)(codec.summary_from_text)
_parse_traffic = lru_cache(_MAX_PARSED)(traffic_of)


def read_node(store: Store, key: NodeKey, settings: Settings) -> NodeOverview:
    traffic = traffic_of(store.document(key, TRAFFIC), key.node)
    return _summarise_node(key, store.read(key), traffic, settings, codec.state_from_text)


def _summarise_node(
    key: NodeKey,
    text: str | None,
    traffic: Traffic,
    settings: Settings,
    parse: Callable[[str, Settings], NodeState],
) -> NodeOverview:
    try:
        if text is None:
            raise codec.BadState("there is none")
        return NodeOverview(key, parse(text, settings), traffic)
    except codec.BadState as error:
        return NodeOverview(key, None, traffic, f"its state cannot be read: {error}")


def newest_epochs(nodes: Iterable[NodeOverview]) -> list[NodeOverview]:
    """Return the last written epoch of each node, ordered by name."""
    found: dict[str, NodeOverview] = {}
    for each in nodes:
        known = found.get(each.key.node)
        if known is None or (each.written_us, each.key.epoch) > (known.written_us, known.key.epoch):
            found[each.key.node] = each
    return [found[name] for name in sorted(found)]


def confidence_text(state: NodeState) -> str:
    """Format the lower bound of the share of runs that agree."""
    if state.is_complete:
        return "complete"
    return bound_text(wilson.lower_bound(state.clean + state.divergences, state.divergences))


def bound_text(bound: float) -> str:
    """Format a bound, rounded down: 0.99990 is shown only once it is reached."""
    return f"{math.floor(bound * 10**5) / 10**5:.5f}"


# -- what is missing ------------------------------------------------------------------------------


def running_mode(state: NodeState, highest: Mode | None) -> Mode:
    """Return the mode in effect: that of the store, capped by the configuration."""
    return state.mode if highest is None else min(state.mode, highest, key=lambda each: each.level)


def missing_texts(state: NodeState, highest: Mode | None = None) -> list[str]:
    """Return the missing conditions for the next mode as texts. `highest` is the mode that the configuration allows."""
    words = [str(each) for each in missing_conditions(state)]
    if highest is not None and state.mode.level >= highest.level and state.mode is not LADDER[-1]:
        words.insert(0, f"a configuration that allows more than {highest.value}")
    return words


@dataclass(frozen=True, slots=True)
class Statistics:
    """The two statistics for the next mode."""

    mode: Mode
    threshold: float
    lower_bound: float
    is_wilson_enough: bool
    log_e: float
    log_needed: float
    is_e_enough: bool
    clean_needed: int
    """Clean runs needed with the present number of divergences."""


def statistics(state: NodeState) -> Statistics | None:
    """Return the statistics for the next mode with a threshold; None in the highest mode."""
    mode = next((mode for mode in LADDER[state.mode.level + 1 :] if mode in THRESHOLDS), None)
    if mode is None:
        return None
    threshold = THRESHOLDS[mode]
    runs = state.clean + state.divergences
    process = EProcess.from_counts(threshold, runs, state.divergences)
    return Statistics(
        mode,
        float(threshold),
        wilson.lower_bound(runs, state.divergences),
        wilson.is_at_least(runs, state.divergences, threshold),
        process.log(),
        log_needed(state.attempt),
        process.reaches(state.attempt),
        clean_runs_needed(threshold, state.divergences, state.attempt),
    )


# -- paths ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PathOverview:
    letter: str
    """Label by size: A has the most evidence."""
    name: str
    seen: PathState
    is_proven: bool
    lacks: int
    """Number of distinct agreeing runs that are missing; 0 where the path has enough."""
    note: PathNote | None


def read_paths(store: Store, state: NodeState) -> list[PathOverview]:
    """Return the paths with evidence, those with the most first."""
    notes = store.paths(NodeKey(state.node, state.epoch))
    ordered = sorted(state.paths.items(), key=lambda each: (-each[1].clean - each[1].generated, each[0]))
    return [
        _summarise_path(state, path_letter(at), name, seen, notes.get(name)) for at, (name, seen) in enumerate(ordered)
    ]


def _summarise_path(state: NodeState, letter: str, name: str, seen: PathState, text: str | None) -> PathOverview:
    needed = 0 if state.is_complete else clean_runs_needed(PATH_THRESHOLD, 0, seen.attempt)
    lacks = max(0, needed - seen.clean - seen.generated)
    return PathOverview(letter, name, seen, is_proven(state, name), lacks, _read_note(text))


def _read_note(text: str | None) -> PathNote | None:
    """Return the note of a path; None where it is missing or unreadable."""
    try:
        return None if text is None else PathNote.from_text(text)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def path_letter(at: int) -> str:
    """Return the label with index `at`: A, B, … Z, AA, AB, …"""
    text = ""
    at += 1
    while at:
        at, left = divmod(at - 1, 26)
        text = chr(ord("A") + left) + text
    return text


def open_divergences(store: Store, state: NodeState) -> list[Divergence]:
    """Return the readable open divergences, the newest first."""
    kept = [_read_divergence(text) for text in store.divergences(NodeKey(state.node, state.epoch))]
    return [each for each in kept if each is not None and each.fingerprint in state.open]


def _read_divergence(text: str) -> Divergence | None:
    try:
        return Divergence.from_text(text)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


# -- all of them ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fleet:
    """Totals over all nodes."""

    nodes: Counter[Mode]
    requests: Counter[Mode] = field(default_factory=Counter)
    """Requests of the last day, by mode."""
    engines: Counter[Engine] = field(default_factory=Counter)
    """Requests of the last day, by the engine whose outcome was returned."""
    unreadable: int = 0
    days: Mapping[NodeKey, Mapping[str, int]] = field(default_factory=dict)
    """Requests of the last day of each node, by `mode/engine`."""


def fleet(overview: Overview, highest: Mapping[str, Mode | None], now_us: int) -> Fleet:
    """Return the nodes by mode in effect, and the requests of all their epochs."""
    modes: Counter[Mode] = Counter()
    requests: Counter[Mode] = Counter()
    engines: Counter[Engine] = Counter()
    unreadable = 0
    days = {each.key: each.traffic.since(now_us, DAY_HOURS) for each in (*overview.nodes, *overview.others)}
    for each in overview.nodes:
        if each.state is None:
            unreadable += 1
        else:
            modes[running_mode(each.state, highest.get(each.key.node))] += 1
    total: Counter[str] = Counter()
    for day in days.values():
        for name, count in day.items():
            total[name] += count
    for name, count in total.items():
        mode, _, engine = name.partition("/")
        requests[Mode(mode)] += count
        engines[Engine(engine)] += count
    return Fleet(modes, requests, engines, unreadable, days)
