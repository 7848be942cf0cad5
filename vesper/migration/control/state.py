"""What the controller knows of a node in an epoch, what can happen to it, and what it decides. Values that never
change: records, because making thirty dataclasses takes longer than a warm start may."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TypeAlias

from vesper.migration.control import cusum
from vesper.migration.control.modes import DEFAULT, Mode, Reason
from vesper.migration.statistics import latency

CONTROLLER = "controller"
"""Who made a change that nobody asked for."""
MAX_OPEN = 1000
"""So many different divergences may be open. An engine that is wrong in more ways is latched."""
MAX_NOISE = 100
"""So many places in which an engine differs from itself are listed. One is enough to keep a node where it is."""
LOST_RUNS = 2
"""So many runs that began under the direct engine and never ended latch the node."""
MAX_PIN_US = 366 * 24 * 3600 * 10**6
"""A pin that is meant for longer is meant for ever, and then the configuration is the place for it."""


@dataclass(frozen=True, slots=True)
class PathState:
    clean: int = 0
    """Distinct inputs of traffic that agreed since the path was last demoted."""
    generated: int = 0
    """Distinct generated inputs that agreed, which traffic did not bring."""
    attempt: int = 1
    open: int = 0
    """Fingerprints of divergences on this path that nobody closed."""


@dataclass(frozen=True, slots=True)
class Latch:
    reason: Reason
    who: str
    why: str
    at_us: int


@dataclass(frozen=True, slots=True)
class Pin:
    mode: Mode
    until_us: int
    who: str
    why: str


@dataclass(frozen=True, slots=True)
class Settings:
    approvals: frozenset[Mode] = frozenset()
    """Modes that a node enters only when a person says so, on top of the evidence."""


_DEFAULTS = Settings()


@dataclass(frozen=True, slots=True)
class State:
    node: str
    epoch: str
    """The hash of the semantics: a node that means something else starts anew."""
    settings: Settings = _DEFAULTS
    mode: Mode = DEFAULT
    attempt: int = 1
    """How often the node has begun to gather evidence in this epoch."""
    clean: int = 0
    divergences: int = 0
    compared: int = 0
    unknown: int = 0
    is_complete: bool = False
    """Every input that exists was run, and all agreed."""
    paths: Mapping[str, PathState] = field(default_factory=dict)
    open: Mapping[str, str] = field(default_factory=dict)
    """Fingerprints of divergences that nobody closed, and the path of each."""
    lost: tuple[str, ...] = ()
    """Runs that began under the direct engine and did not end."""
    latches: tuple[Latch, ...] = ()
    pin: Pin | None = None
    rate: cusum.State = field(default_factory=cusum.State)
    latency: latency.State = field(default_factory=latency.State)
    noise: Mapping[str, str] = field(default_factory=dict)
    """Fingerprints of places in which an engine differs from itself and that nobody closed, and where each is."""


# What can happen.


@dataclass(frozen=True, slots=True)
class Agreed:
    """Comparisons of traffic came out equal."""

    path: str
    distinct: int = 1
    """How many of them were new evidence: inputs that had not been seen in this round."""
    compared: int = 1
    on_path: int | None = None
    """How many were new to the path, where that is not the same: a path whose evidence began afresh sees inputs again
    that the node has counted."""

    def __post_init__(self) -> None:
        if not 0 <= self.distinct <= self.compared or not 0 <= (self.on_path or 0) <= self.compared:
            raise ValueError(f"{self.distinct} distinct inputs in {self.compared} comparisons cannot be")


@dataclass(frozen=True, slots=True)
class Generated:
    """Generated inputs agreed. They count for their path only."""

    path: str
    distinct: int = 1

    def __post_init__(self) -> None:
        if self.distinct < 0:
            raise ValueError(f"{self.distinct} inputs cannot be")


@dataclass(frozen=True, slots=True)
class Enumerated:
    """All inputs of a node without effects were run, and all agreed."""

    inputs: int


@dataclass(frozen=True, slots=True)
class Diverged:
    """The engines disagreed, once."""

    path: str
    fingerprint: str
    """What kind of divergence it is: where, and how they differ."""
    is_effect: bool = False
    """They asked for different effects."""
    was_clean: bool = False
    """The same input had counted as agreement."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Comparisons that were admitted and came to nothing: lost, or timed out."""

    count: int = 1

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError(f"{self.count} comparisons cannot be")


@dataclass(frozen=True, slots=True)
class EngineFaulted:
    what: str


@dataclass(frozen=True, slots=True)
class RunLost:
    """A run has a START under the direct engine and no END, and its process is gone."""

    execution: str


@dataclass(frozen=True, slots=True)
class Noisy:
    """An engine, or the function in its place, differed from itself on the same inputs and answers."""

    fingerprint: str
    where: str


@dataclass(frozen=True, slots=True)
class Timed:
    python_ns: int | None
    direct_ns: int | None


@dataclass(frozen=True, slots=True)
class Close:
    """Somebody looked at a divergence, or at noise, and is done with it."""

    fingerprint: str
    who: str
    why: str


@dataclass(frozen=True, slots=True)
class Promote:
    """Somebody approves of the next mode. The evidence is needed all the same."""

    who: str
    why: str


@dataclass(frozen=True, slots=True)
class Demote:
    mode: Mode
    who: str
    why: str


@dataclass(frozen=True, slots=True)
class PinTo:
    mode: Mode
    until_us: int
    who: str
    why: str


@dataclass(frozen=True, slots=True)
class Unpin:
    who: str
    why: str


@dataclass(frozen=True, slots=True)
class Kill:
    who: str
    why: str


@dataclass(frozen=True, slots=True)
class Resume:
    who: str
    why: str


@dataclass(frozen=True, slots=True)
class Forget:
    """The evidence of an old definition goes. What people and trouble did to the node stays."""

    who: str
    why: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time went by."""


Event: TypeAlias = (
    Agreed | Generated | Enumerated | Diverged | Unknown | EngineFaulted | RunLost | Noisy | Timed
    | Close | Promote | Demote | PinTo | Unpin | Kill | Resume | Forget | Tick
)  # fmt: skip

# What is decided.


@dataclass(frozen=True, slots=True)
class Seen:
    """The evidence at the moment of a decision, for its record."""

    clean: int
    divergences: int
    compared: int
    unknown: int
    attempt: int
    is_complete: bool
    lower_bound: float
    log_e: float | None
    """The logarithm of the e-process for the higher one of the two modes; none where neither has a threshold."""


@dataclass(frozen=True, slots=True)
class Changed:
    """The record of a change of mode."""

    before: Mode
    after: Mode
    reason: Reason
    who: str
    why: str
    at_us: int
    attempt: int
    """The attempt from now on. Where it is a new one, evidence begins afresh."""
    seen: Seen

    def to_record(self) -> dict[str, str | int | float | None]:
        """The flat form that a history keeps."""
        return {
            "before": self.before.value,
            "after": self.after.value,
            "reason": self.reason.value,
            "who": self.who,
            "why": self.why,
            "at_us": self.at_us,
            "attempt": self.attempt,
            **{f"seen_{each.name}": getattr(self.seen, each.name) for each in fields(self.seen)},
        }


@dataclass(frozen=True, slots=True)
class PathProven:
    path: str
    clean: int
    generated: int
    attempt: int


@dataclass(frozen=True, slots=True)
class PathDemoted:
    """From now on the path is always compared, until it has fresh evidence."""

    path: str
    fingerprint: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Latched:
    """The record of a latch, also where the node was in python_only already."""

    latch: Latch


@dataclass(frozen=True, slots=True)
class Released:
    latches: tuple[Latch, ...]
    who: str
    why: str


@dataclass(frozen=True, slots=True)
class PinSet:
    pin: Pin


@dataclass(frozen=True, slots=True)
class PinEnded:
    pin: Pin
    who: str
    why: str


@dataclass(frozen=True, slots=True)
class Closed:
    fingerprint: str
    path: str
    who: str
    why: str


@dataclass(frozen=True, slots=True)
class NoiseFound:
    """From now on the node does not rise, until somebody closes it."""

    fingerprint: str
    where: str


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The record of evidence that is gone, with what it was."""

    who: str
    why: str
    attempt: int
    """The attempt from now on."""
    seen: Seen


@dataclass(frozen=True, slots=True)
class Refused:
    """What somebody asked for was not done, and why."""

    event: Event
    why: str


Decision: TypeAlias = (
    Changed
    | PathProven
    | PathDemoted
    | Latched
    | Released
    | PinSet
    | PinEnded
    | Closed
    | NoiseFound
    | Forgotten
    | Refused
)
