"""The counts of a backtest. Tallies of parts of the runs merge to that of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from vesper.changes.backtest.cases import Case
from vesper.changes.backtest.measures import ExactSum

MAX_KEYS = 10_000
"""Kinds of change, segments and reasons that are counted one by one; further ones share `OTHERS`."""
OTHERS = "others"
_MAX_NAMES = 3


@dataclass(slots=True)
class Example:
    """The smallest run of a kind of change."""

    size: int
    name: str
    case: Case | None = None
    """None where the journal has it."""

    @property
    def order(self) -> tuple[int, str]:
        return self.size, self.name


@dataclass(slots=True)
class Kind:
    """Runs with one kind of change."""

    runs: int = 0
    example: Example | None = None

    def add(self, runs: int, example: Example | None) -> None:
        self.runs += runs
        if example is not None and (self.example is None or example.order < self.example.order):
            self.example = example


@dataclass(slots=True)
class Sums:
    """A sum before and after, and the runs without a value on each side."""

    before: ExactSum = field(default_factory=ExactSum)
    after: ExactSum = field(default_factory=ExactSum)
    without_before: int = 0
    without_after: int = 0

    def merge(self, other: Sums) -> None:
        self.before.merge(other.before)
        self.after.merge(other.after)
        self.without_before += other.without_before
        self.without_after += other.without_after


@dataclass(slots=True)
class Group:
    """Compared runs: all of them, or those of one segment."""

    runs: int = 0
    changed: int = 0
    sums: list[Sums] = field(default_factory=list)

    def merge(self, other: Group) -> None:
        self.runs += other.runs
        self.changed += other.changed
        while len(self.sums) < len(other.sums):
            self.sums.append(Sums())
        for mine, theirs in zip(self.sums, other.sums, strict=False):
            mine.merge(theirs)

    @property
    def share(self) -> float:
        return self.changed / self.runs if self.runs else 0.0


@dataclass(slots=True)
class Excluded:
    """Runs that were not replayed for one reason, with the names of some."""

    runs: int = 0
    names: list[str] = field(default_factory=list)

    def add(self, runs: int, names: Iterable[str]) -> None:
        self.runs += runs
        self.names = sorted({*self.names, *names})[:_MAX_NAMES]


@dataclass(slots=True)
class Tally:
    """The counts of a backtest. Every run that was seen is in exactly one of the first seven fields."""

    total: Group = field(default_factory=Group)
    """Compared: both versions ended, and A reproduced its record where there is one."""
    apart: Group = field(default_factory=Group)
    """Compared, though A does not reproduce what was recorded."""
    excluded: dict[str, Excluded] = field(default_factory=dict)
    """By reason."""
    not_selected: int = 0
    """Runs for which `--where` is false."""
    not_decided: int = 0
    """Runs for which `--where` fails or has no value."""
    not_compared: Counter[str] = field(default_factory=Counter)
    """Runs that one version ended with a limit or a fault, by the ending."""
    unanswered_before: Counter[str] = field(default_factory=Counter)
    """Runs in which A itself asks what the record does not have, by step."""

    apart_other_definition: int = 0
    """Of `apart`, runs of another definition than A."""
    unanswered_after: Counter[str] = field(default_factory=Counter)
    """Of the changed runs, those in which B asks something new, by step."""
    kinds: dict[str, Kind] = field(default_factory=dict)
    """Of the changed runs, those apart included."""
    groups: list[dict[str, Group]] = field(default_factory=list)
    """For each `--by` the segments of `total`, by the typed JSON of the value."""

    @property
    def seen(self) -> int:
        others = self.not_selected + self.not_decided + self.not_compared.total() + self.unanswered_before.total()
        return self.total.runs + self.apart.runs + others + self.excluded_runs

    @property
    def excluded_runs(self) -> int:
        return sum(each.runs for each in self.excluded.values())

    @property
    def changed(self) -> int:
        """Changed runs, with those that A does not reproduce."""
        return self.total.changed + self.apart.changed

    @property
    def compared(self) -> int:
        return self.total.runs + self.apart.runs

    def exclude(self, reason: str, runs: int, names: Iterable[str]) -> None:
        key = reason if reason in self.excluded or len(self.excluded) < MAX_KEYS else OTHERS
        self.excluded.setdefault(key, Excluded()).add(runs, names)

    def add_kind(self, kind: str, runs: int, example: Example | None) -> None:
        key = kind if kind in self.kinds or len(self.kinds) < MAX_KEYS else OTHERS
        self.kinds.setdefault(key, Kind()).add(runs, example)

    def group(self, number: int, label: str) -> Group:
        """Return a segment of a `--by`, made where it is new."""
        while len(self.groups) <= number:
            self.groups.append({})
        groups = self.groups[number]
        return groups.setdefault(label if label in groups or len(groups) < MAX_KEYS else OTHERS, Group())

    def merge(self, other: Tally) -> None:
        self.total.merge(other.total)
        self.apart.merge(other.apart)
        for reason, each in other.excluded.items():
            self.exclude(reason, each.runs, each.names)
        self.not_selected += other.not_selected
        self.not_decided += other.not_decided
        self.apart_other_definition += other.apart_other_definition
        for mine, theirs in (
            (self.not_compared, other.not_compared),
            (self.unanswered_before, other.unanswered_before),
            (self.unanswered_after, other.unanswered_after),
        ):
            mine.update(theirs)
        for kind, found in other.kinds.items():
            self.add_kind(kind, found.runs, found.example)
        for number, groups in enumerate(other.groups):
            for label, group in groups.items():
                self.group(number, label).merge(group)
