"""Gauges of a routed node, updated with its state and its traffic."""

from __future__ import annotations

from vesper.migration.control.modes import LADDER, Engine, Mode
from vesper.migration.control.state import NodeState
from vesper.migration.statistics import wilson
from vesper.migration.stores.traffic import Traffic
from vesper.observe.metrics import set_gauge
from vesper.values.generated.metrics import CONFIDENCE, EVIDENCE, MODE, TRAFFIC_SPLIT


def set_node_gauges(state: NodeState, mode: Mode, traffic: Traffic, now_us: int) -> None:
    """Set confidence, evidence, mode in effect, and engine shares of two hours."""
    runs = state.clean + state.divergences
    set_gauge(CONFIDENCE, (state.node,), wilson.lower_bound(runs, state.divergences))
    set_gauge(EVIDENCE, (state.node,), runs)
    for each in LADDER:
        set_gauge(MODE, (state.node, each.value), float(each is mode))
    counts = traffic.since(now_us, hours=2)
    total = sum(counts.values())
    for engine in Engine:
        answered = sum(number for name, number in counts.items() if name.endswith(f"/{engine.value}"))
        if total:
            set_gauge(TRAFFIC_SPLIT, (state.node, engine.value), answered / total)
