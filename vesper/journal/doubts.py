"""Requests of a run whose outcome is unknown."""

from __future__ import annotations

from dataclasses import dataclass

from vesper.journal.entry import Entry, Kind
from vesper.journal.journal import Recorded, Status


@dataclass(frozen=True, slots=True)
class Doubt:
    """A request whose outcome is unknown."""

    path: str
    why: str
    since_us: int
    obstacle: str | None = None
    """Why the request cannot be resolved, if so."""


_DIVERGED = (
    "after another process took the run over, it made a request that differs from the journal. Two engines, or two "
    "versions of Vesper, disagree on this node: please report it"
)
_KEYLESS = "its key was deleted, so it cannot be finished"


def open_doubts(recorded: Recorded) -> list[Doubt]:
    """Return the doubts that are not resolved yet."""
    if recorded.summary.status is not Status.IN_DOUBT:
        return []
    found: dict[str, Doubt] = {}
    for stored in recorded.entries:
        entry = stored.entry
        if entry.kind is Kind.IN_DOUBT:
            why = str(entry.body.get("why", ""))
            found[entry.path] = Doubt(entry.path, why, entry.at_us, _KEYLESS if stored.is_erased else None)
        elif entry.kind is Kind.DIVERGENCE:
            found[entry.path] = Doubt(entry.path, "", entry.at_us, _DIVERGED)
        elif entry.kind is Kind.RESOLVED:
            found.pop(entry.path, None)
    return list(found.values())


def request_in_doubt(recorded: Recorded, doubt: Doubt) -> Entry | None:
    """Return the last INTENT of the request in doubt, with the arguments that were sent to the provider."""
    intents = (each.entry for each in reversed(recorded.entries) if each.entry.kind is Kind.INTENT)
    return next((each for each in intents if each.path == doubt.path), None)
