"""The five modes: their plans, and the legal transitions between them.

The names and the thresholds are promises to users. A node rises one mode at a time and may fall by several at once. No
node waits for evidence in `python_only`, because nothing is compared there: the default below the first threshold is
`shadow_direct`, and only people and latches put a node into `python_only`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from itertools import pairwise


class Mode(Enum):
    PYTHON_ONLY = "python_only"
    SHADOW_DIRECT = "shadow_direct"
    CANARY_DIRECT = "canary_direct"
    DUAL_VERIFY = "dual_verify"
    DIRECT_ONLY = "direct_only"

    @property
    def level(self) -> int:
        """The position of the mode in `LADDER`, from 0."""
        return LADDER.index(self)


LADDER = tuple(Mode)
"""Modes from the least to the most trust in the direct engine."""

DEFAULT = Mode.SHADOW_DIRECT

THRESHOLDS: dict[Mode, Fraction] = {
    Mode.CANARY_DIRECT: Fraction(95, 100),
    Mode.DUAL_VERIFY: Fraction(999, 1000),
    Mode.DIRECT_ONLY: Fraction(9999, 10_000),
}
"""Agreement that must be shown before a node enters the mode. The two lowest modes need none."""

PATH_THRESHOLD = THRESHOLDS[Mode.CANARY_DIRECT]
"""Agreement that must be shown on one path before a direct outcome on it leaves uncompared."""


class Reason(Enum):
    """Reasons for a change of mode, part of every record of one."""

    EVIDENCE = "evidence"
    """Both statistics reach the threshold and nothing blocks."""
    DIVERGENCE = "divergence"
    """The engines disagreed, and the remaining evidence does not support the mode."""
    EFFECT_MISMATCH = "effect_mismatch"
    """The engines requested different effects. Latched."""
    ENGINE_FAULT = "engine_fault"
    """The direct engine panicked, crashed, hung or sent a malformed message. Latched."""
    LOST_RUNS = "lost_runs"
    """Two runs began under the direct engine and never ended, as after a crash of the process. Latched."""
    TOO_MANY_DIVERGENCES = "too_many_divergences"
    """More divergences are open than are kept. Latched."""
    RATE = "rate"
    """The CUSUM of divergences raised the alarm."""
    LATENCY = "latency"
    """The direct engine is slower than Python."""
    PERSON = "person"
    """A person promoted or demoted the node."""
    PIN = "pin"
    """A person pinned the node to a lower mode."""
    UNPINNED = "unpinned"
    """A pin to `python_only` was removed or expired; the node returns to `shadow_direct`."""
    KILL = "kill"
    """A person killed the node. Latched."""
    RESUME = "resume"
    """A person released the latches."""


LATCHING = frozenset(
    {Reason.EFFECT_MISMATCH, Reason.ENGINE_FAULT, Reason.LOST_RUNS, Reason.TOO_MANY_DIVERGENCES, Reason.KILL}
)
"""Reasons of latches. Only `resume` releases these; neither evidence nor the end of a pin does."""

_RISES = tuple(pairwise(LADDER[1:]))
_FALLS = tuple((upper, lower) for upper in LADDER for lower in LADDER if lower.level < upper.level)
_TO_PYTHON = tuple((mode, Mode.PYTHON_ONLY) for mode in LADDER[1:])
_OUT_OF_PYTHON = ((Mode.PYTHON_ONLY, DEFAULT),)
_FALLS_AMONG_COMPARED = tuple((upper, lower) for upper, lower in _FALLS if lower is not Mode.PYTHON_ONLY)

TRANSITIONS: dict[Reason, frozenset[tuple[Mode, Mode]]] = {
    Reason.EVIDENCE: frozenset(_RISES),
    Reason.DIVERGENCE: frozenset(_FALLS_AMONG_COMPARED),
    Reason.RATE: frozenset((mode, DEFAULT) for mode in LADDER[2:]),
    Reason.LATENCY: frozenset({(Mode.DIRECT_ONLY, Mode.DUAL_VERIFY), (Mode.CANARY_DIRECT, Mode.SHADOW_DIRECT)}),
    Reason.PERSON: frozenset((*_RISES, *_FALLS_AMONG_COMPARED)),
    Reason.PIN: frozenset(_FALLS),
    Reason.UNPINNED: frozenset(_OUT_OF_PYTHON),
    Reason.RESUME: frozenset(_OUT_OF_PYTHON),
    **{reason: frozenset(_TO_PYTHON) for reason in sorted(LATCHING, key=lambda each: each.value)},
}
"""All legal changes of mode, by reason. The controller makes no other."""


class Engine(Enum):
    PYTHON = "python"
    DIRECT = "direct"


@dataclass(frozen=True, slots=True)
class Plan:
    """The engines that one request runs, and the one whose outcome is returned.

    With `compares_first` both engines run before the caller gets an outcome: the direct outcome is returned, and an
    effect other than a read is performed, only where Python's is the same; otherwise Python's is used. Without it, a
    follower is fed the leader's completions off the response path.
    """

    leader: Engine
    follower: Engine | None
    answer: Engine
    compares_first: bool = False


_ALONE = Plan(Engine.PYTHON, None, Engine.PYTHON)
_FOLLOWED = Plan(Engine.PYTHON, Engine.DIRECT, Engine.PYTHON)
_RELEASED = Plan(Engine.DIRECT, Engine.PYTHON, Engine.DIRECT, compares_first=True)
_DIRECT = Plan(Engine.DIRECT, None, Engine.DIRECT)


@dataclass(frozen=True, slots=True)
class Row:
    """The plans of one mode: of the chosen share of requests, and of all others."""

    chosen: Plan
    others: Plan
    unproven: Plan
    """Plan of the others on a path without enough evidence."""


RUNS: dict[Mode, Row] = {
    Mode.PYTHON_ONLY: Row(_ALONE, _ALONE, _ALONE),
    Mode.SHADOW_DIRECT: Row(_FOLLOWED, _FOLLOWED, _FOLLOWED),
    # Requests outside the canary are followed as in shadow_direct: this adds evidence at no cost to callers.
    Mode.CANARY_DIRECT: Row(_RELEASED, _FOLLOWED, _FOLLOWED),
    Mode.DUAL_VERIFY: Row(_FOLLOWED, _FOLLOWED, _FOLLOWED),
    # The chosen share is the verification sample, which runs as in dual_verify.
    Mode.DIRECT_ONLY: Row(_FOLLOWED, _DIRECT, _RELEASED),
}


def plan(mode: Mode, is_chosen: bool, is_proven: bool) -> Plan:
    """Return the plan of a request.

    `is_chosen` is True for requests in the canary or, in direct_only, in the verification sample.
    """
    row = RUNS[mode]
    if is_chosen:
        return row.chosen
    return row.others if is_proven else row.unproven


def is_legal(before: Mode, after: Mode, reason: Reason) -> bool:
    return (before, after) in TRANSITIONS[reason]
