"""What sequences reach: every legal transition, and every illegal one that was refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.proofs.machines.reference import interrupts, sessions
from tests.proofs.machines.reference.processes import LEGAL, NAMES, STATES

_ENDED_INTERRUPTS = (interrupts.RESOLVED, interrupts.EXPIRED, interrupts.CANCELLED)
_STATUSES = ("", "pending", "resolved", "expired", "cancelled")
_BRANCHES = ("begun", "ready", "leased", "asking", "joined", "forked")
_MOVES = (
    *((0, sessions.READY), (0, sessions.JOINED), (sessions.READY, sessions.LEASED)),
    *((sessions.LEASED, each) for each in (sessions.READY, sessions.LEASED, sessions.ASKING)),
    *((sessions.LEASED, sessions.JOINED), (sessions.LEASED, sessions.FORKED), (sessions.ASKING, sessions.READY)),
    *((sessions.FORKED, sessions.READY), (sessions.FORKED, sessions.JOINED)),
)


def _pairs(names: tuple[str, ...], pairs: Any) -> set[str]:
    return {f"{names[start]} to {names[to]}" for start, to in pairs}


LEGAL_PROCESSES = _pairs(NAMES, LEGAL)
ILLEGAL_PROCESSES = _pairs(NAMES, [(start, to) for start in STATES for to in STATES if (start, to) not in LEGAL])
LEGAL_INTERRUPTS = _pairs(_STATUSES, [(interrupts.PENDING, each) for each in _ENDED_INTERRUPTS])
ILLEGAL_INTERRUPTS = _pairs(
    _STATUSES, [(each, to) for each in _ENDED_INTERRUPTS for to in (interrupts.RESOLVED, interrupts.CANCELLED)]
)
LEGAL_BRANCHES = _pairs(_BRANCHES, _MOVES)
ILLEGAL_REPORTS = {"report of ready", "report of another's leased", "report of asking", "report of ended"}
ENDS = {str(reason) for reason in range(1, 9)}


@dataclass
class Seen:
    """How often each was reached."""

    processes: Counter[str] = field(default_factory=Counter)
    refused_processes: Counter[str] = field(default_factory=Counter)
    interrupts: Counter[str] = field(default_factory=Counter)
    refused_interrupts: Counter[str] = field(default_factory=Counter)
    branches: Counter[str] = field(default_factory=Counter)
    refused_reports: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)

    def note_process(self, start: int, to: int, is_refused: bool = False) -> None:
        (self.refused_processes if is_refused else self.processes)[f"{NAMES[start]} to {NAMES[to]}"] += 1

    def note_interrupt(self, start: int, to: int, is_refused: bool = False) -> None:
        (self.refused_interrupts if is_refused else self.interrupts)[f"{_STATUSES[start]} to {_STATUSES[to]}"] += 1

    def note_branch(self, start: int, to: int) -> None:
        self.branches[f"{_BRANCHES[start]} to {_BRANCHES[to]}"] += 1

    def missing(self, commands: set[str]) -> list[str]:
        """Return what was never reached, or what may not be."""
        rows = (
            ("process", self.processes, LEGAL_PROCESSES),
            ("refused process", self.refused_processes, ILLEGAL_PROCESSES),
            ("interrupt", self.interrupts, LEGAL_INTERRUPTS),
            ("refused interrupt", self.refused_interrupts, ILLEGAL_INTERRUPTS),
            ("branch", self.branches, LEGAL_BRANCHES),
            ("refused", self.refused_reports, ILLEGAL_REPORTS),
            ("end", self.ends, ENDS),
        )
        found = [f"{kind}: {name}" for kind, seen, all_of in rows for name in sorted(all_of - seen.keys())]
        found += [f"{kind}: {name} is none" for kind, seen, all_of in rows for name in sorted(seen.keys() - all_of)]
        performed = {name.split()[0] for name in self.answers if name.endswith("changed")}
        refused = {name.split()[0] for name in self.answers if not name.endswith("changed")}
        found += [f"never performed: {name}" for name in sorted(commands - performed)]
        always = {"cleanup", "worker_ends", "list_services", "service_stats"}
        return found + [f"never refused: {name}" for name in sorted(commands - refused - always)]

    def add(self, other: dict[str, dict[str, int]]) -> None:
        for name, counts in other.items():
            getattr(self, name).update(counts)

    def to_json(self) -> dict[str, dict[str, int]]:
        return {name: dict(sorted(counts.items())) for name, counts in vars(self).items()}
