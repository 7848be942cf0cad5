"""States of nodes that events alone lead to, and the events that follow."""

from __future__ import annotations

from collections.abc import Iterable

from vesper.migration.control.controller import step
from vesper.migration.control.modes import LADDER, Mode
from vesper.migration.control.state import (
    Agreed,
    Changed,
    Decision,
    Enumerated,
    Event,
    NodeState,
    PinTo,
    Settings,
    Tick,
)

MAIN = "main"
FAR = 10**12


def told(state: NodeState, events: Iterable[Event], now_us: int = 0) -> tuple[NodeState, list[Decision]]:
    decisions: list[Decision] = []
    for event in events:
        state, decided = step(state, event, now_us)
        decisions.extend(decided)
    return state, decisions


def node(*approvals: Mode) -> NodeState:
    return NodeState("pay_v1", "epoch", Settings(frozenset(approvals)))


def at(mode: Mode, clean: int = 1_000_000) -> NodeState:
    """Return a node that reached a mode by evidence, and needs a person to rise further."""
    if mode is Mode.PYTHON_ONLY:
        return told(node(), [PinTo(mode, FAR, "ann", "for a test")])[0]
    above = LADDER[mode.level + 1 :][:1]
    state, _ = told(node(*above), [Agreed(MAIN, clean, clean), Tick(), Tick(), Tick()])
    assert state.mode is mode
    return state


def complete(mode: Mode, clean: int = 0) -> NodeState:
    """Return a node that reached a mode by enumeration, with a little traffic."""
    state, _ = told(node(*LADDER[mode.level + 1 :][:1]), [Enumerated(1_000), Tick(), Tick(), Tick()])
    assert state.mode is mode
    return told(state, [Agreed(MAIN, clean, clean)])[0]


def changes(decisions: Iterable[Decision]) -> list[Changed]:
    return [each for each in decisions if isinstance(each, Changed)]
