"""The five modes: what each runs, whose answer returns, and how a node may go from one to another.

The names and the thresholds are promises to users. A mode is earned from the bottom up, one at a time; trouble may take
a node down over several at once. `python_only` is never where a node waits for evidence, because nothing is compared
there: the default below the first threshold is `shadow_direct`, and `python_only` is where people and latches put it.
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
        """How far the node has been moved over, from 0."""
        return LADDER.index(self)


LADDER = tuple(Mode)
"""From the least to the most trust in the direct engine."""

DEFAULT = Mode.SHADOW_DIRECT

THRESHOLDS: dict[Mode, Fraction] = {
    Mode.CANARY_DIRECT: Fraction(95, 100),
    Mode.DUAL_VERIFY: Fraction(999, 1000),
    Mode.DIRECT_ONLY: Fraction(9999, 10_000),
}
"""The agreement that must be shown before a node enters the mode. The two lowest modes need none."""

PATH_THRESHOLD = THRESHOLDS[Mode.CANARY_DIRECT]
"""The agreement that must be shown on one semantic path before a direct answer on it leaves uncompared."""


class Reason(Enum):
    """Why a node changed its mode. Part of every record of a change."""

    EVIDENCE = "evidence"
    """Both statistics are over the threshold and nothing blocks."""
    DIVERGENCE = "divergence"
    """The engines disagreed, and what is left of the evidence does not carry the mode."""
    EFFECT_MISMATCH = "effect_mismatch"
    """The engines asked for different effects. Latched."""
    ENGINE_FAULT = "engine_fault"
    """The direct engine failed in a way that is our bug. Latched."""
    LOST_RUNS = "lost_runs"
    """Two runs began under the direct engine and never ended: it took the process with it. Latched."""
    TOO_MANY_DIVERGENCES = "too_many_divergences"
    """More open fingerprints than are kept: the engine is broken in too many ways to list. Latched."""
    RATE = "rate"
    """The watch over the rate of divergences gave the alarm."""
    LATENCY = "latency"
    """The direct engine is slower than Python."""
    PERSON = "person"
    """Somebody promoted or demoted it."""
    PIN = "pin"
    """Somebody pinned it to a lower mode."""
    UNPINNED = "unpinned"
    """A pin to `python_only` was taken off or ran out: the node goes back to where evidence is gathered."""
    KILL = "kill"
    """Somebody pulled the switch. Latched."""
    RESUME = "resume"
    """Somebody released the latch."""


LATCHING = frozenset(
    {Reason.EFFECT_MISMATCH, Reason.ENGINE_FAULT, Reason.LOST_RUNS, Reason.TOO_MANY_DIVERGENCES, Reason.KILL}
)
"""Only a person releases these (`resume`); evidence does not, nor the end of a pin."""

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
"""Every change of mode that exists, by its reason. The controller refuses to make any other."""


class Engine(Enum):
    PYTHON = "python"
    DIRECT = "direct"


@dataclass(frozen=True, slots=True)
class Plan:
    """What one request runs.

    With `compares_first` both engines run before anybody is answered: the direct answer leaves, and an effect other
    than a read is performed, only where Python's is the same; otherwise Python's stands. Without it, a follower is fed
    the leader's records off the response path.
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
    """One mode: the plan of the chosen share of requests, and of all others, on a path that has its evidence or not."""

    chosen: Plan
    others: Plan
    unproven: Plan
    """Of the others, where the path does not have its evidence."""


RUNS: dict[Mode, Row] = {
    Mode.PYTHON_ONLY: Row(_ALONE, _ALONE, _ALONE),
    Mode.SHADOW_DIRECT: Row(_FOLLOWED, _FOLLOWED, _FOLLOWED),
    # The requests outside of the share are followed as in shadow: they cost the caller nothing and are evidence.
    Mode.CANARY_DIRECT: Row(_RELEASED, _FOLLOWED, _FOLLOWED),
    Mode.DUAL_VERIFY: Row(_FOLLOWED, _FOLLOWED, _FOLLOWED),
    # The chosen share is the verification sample, which runs as in dual_verify.
    Mode.DIRECT_ONLY: Row(_FOLLOWED, _DIRECT, _RELEASED),
}


def plan(mode: Mode, is_chosen: bool, is_proven: bool) -> Plan:
    """What a request runs: `is_chosen` where it is in the canary (or, in direct_only, in the sample)."""
    row = RUNS[mode]
    if is_chosen:
        return row.chosen
    return row.others if is_proven else row.unproven


def is_legal(before: Mode, after: Mode, reason: Reason) -> bool:
    return (before, after) in TRANSITIONS[reason]
