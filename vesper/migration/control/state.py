"""State of a node in an epoch, events that change it, and decisions. All values are immutable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TypeAlias

from vesper.migration.control import cusum
from vesper.migration.control.modes import DEFAULT, Mode, Reason
from vesper.migration.statistics import latency

CONTROLLER = "controller"
"""Author of a change that no person ordered."""
MAX_OPEN = 1000
"""Maximum number of open divergences. An engine with more of them is latched."""
MAX_NOISE = 100
"""Maximum number of listed places where an engine differs from itself. One blocks promotion already."""
LOST_RUNS = 2
"""Number of runs that began under the direct engine and never ended, from which the node is latched."""
MAX_PIN_US = 366 * 24 * 3600 * 10**6
"""Maximum duration of a pin in microseconds. Longer ones belong into the configuration (`max_mode`)."""


@dataclass(frozen=True, slots=True)
class PathState:
    clean: int = 0
    """Distinct inputs of traffic that agreed since the path was last demoted."""
    generated: int = 0
    """Distinct generated inputs that agreed and that traffic did not bring."""
    attempt: int = 1
    open: int = 0
    """Number of open divergences on this path."""


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
    """Modes that need the approval of a person besides the evidence."""


_DEFAULTS = Settings()


@dataclass(frozen=True, slots=True)
class NodeState:
    node: str
    epoch: str
    """Hash of semantics, versions and comparator. Another epoch starts without evidence."""
    settings: Settings = _DEFAULTS
    mode: Mode = DEFAULT
    attempt: int = 1
    """Number of the current attempt to gather evidence in this epoch, from 1."""
    clean: int = 0
    divergences: int = 0
    compared: int = 0
    unknown: int = 0
    is_complete: bool = False
    """True where all possible inputs were run and agreed."""
    paths: Mapping[str, PathState] = field(default_factory=dict)
    open: Mapping[str, str] = field(default_factory=dict)
    """Fingerprints of open divergences, with the path of each."""
    lost: tuple[str, ...] = ()
    """Runs that began under the direct engine and did not end."""
    latches: tuple[Latch, ...] = ()
    pin: Pin | None = None
    rate: cusum.RateState = field(default_factory=cusum.RateState)
    latency: latency.LatencyState = field(default_factory=latency.LatencyState)
    noise: Mapping[str, str] = field(default_factory=dict)
    """Fingerprints of open places where an engine differs from itself, with the location of each."""


# Events.


@dataclass(frozen=True, slots=True)
class Agreed:
    """Comparisons of traffic that agreed."""

    path: str
    distinct: int = 1
    """Number of comparisons with an input that is new in this attempt."""
    compared: int = 1
    on_path: int | None = None
    """Number of inputs that are new to the path; `distinct` by default. A path whose evidence restarted meets inputs
    again that the node has counted."""

    def __post_init__(self) -> None:
        if not 0 <= self.distinct <= self.compared or not 0 <= (self.on_path or 0) <= self.compared:
            raise ValueError(f"{self.distinct} distinct inputs in {self.compared} comparisons cannot be")


@dataclass(frozen=True, slots=True)
class Generated:
    """Generated inputs that agreed. They count for their path only."""

    path: str
    distinct: int = 1

    def __post_init__(self) -> None:
        if self.distinct < 0:
            raise ValueError(f"{self.distinct} inputs cannot be")


@dataclass(frozen=True, slots=True)
class Enumerated:
    """An enumeration of all inputs of a node without effects, all of which agreed."""

    inputs: int


@dataclass(frozen=True, slots=True)
class Diverged:
    """One disagreement of the engines."""

    path: str
    fingerprint: str
    """Identity of the divergence: its kind and location."""
    is_effect: bool = False
    """True where the engines requested different effects."""
    was_clean: bool = False
    """True where the same input had counted as agreement."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Admitted comparisons without a verdict: lost, or timed out."""

    count: int = 1

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError(f"{self.count} comparisons cannot be")


@dataclass(frozen=True, slots=True)
class EngineFaulted:
    what: str


@dataclass(frozen=True, slots=True)
class RunLost:
    """A run with a START under the direct engine and no END, whose process has ended."""

    execution: str


@dataclass(frozen=True, slots=True)
class Noisy:
    """An engine or function differed from itself on the same inputs and completions."""

    fingerprint: str
    where: str


@dataclass(frozen=True, slots=True)
class Timed:
    python_ns: int | None
    direct_ns: int | None


@dataclass(frozen=True, slots=True)
class Close:
    """The order to close a divergence or noise."""

    fingerprint: str
    who: str
    why: str


@dataclass(frozen=True, slots=True)
class Promote:
    """The approval of the next mode. The evidence is needed as well."""

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
    """The deletion of an old definition's evidence. Latches, pin and divergences stay."""

    who: str
    why: str


@dataclass(frozen=True, slots=True)
class Tick:
    """The passage of time."""


Event: TypeAlias = (
    Agreed | Generated | Enumerated | Diverged | Unknown | EngineFaulted | RunLost | Noisy | Timed
    | Close | Promote | Demote | PinTo | Unpin | Kill | Resume | Forget | Tick
)  # fmt: skip

# Decisions.


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
    """Logarithm of the e-process for the higher of the two modes; None where neither has a threshold."""


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
    """Attempt from now on. A new number means that evidence restarts."""
    seen: Seen

    def to_record(self) -> dict[str, str | int | float | None]:
        """Return the flat form for the history."""
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
    """The record of a path that is compared again until it has fresh evidence."""

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
    """The record of noise, which blocks promotion until it is closed."""

    fingerprint: str
    where: str


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The record of deleted evidence."""

    who: str
    why: str
    attempt: int
    """Attempt from now on."""
    seen: Seen


@dataclass(frozen=True, slots=True)
class Refused:
    """An order that was not carried out, with the reason."""

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
