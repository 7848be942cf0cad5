"""Read-only summaries of names: lead, candidate, counts, groups, and the decision that applies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from vesper.compiler import Compiled
from vesper.config.versions import VersionSettings
from vesper.migration.candidates.counts import HOUR_US, Counts, Group
from vesper.migration.candidates.record import Decision, NameRecord, Pair, Started, read_counts, read_record
from vesper.migration.stores.store import Store, names_of

_STALE = "a candidate was {kind} for other definitions than the present ones, which does not apply any more"


@dataclass(frozen=True, slots=True)
class NameOverview:
    """A name with its lead and its candidate."""

    name: str
    settings: VersionSettings | None
    """None where the configuration does not list the name any more."""
    started: Started | None
    """The present pair; None where no process has run it yet."""
    decision: Decision | None
    """The decision that applies to the present pair."""
    counts: Counts
    stale: Decision | None = None
    """A decision about other definitions."""

    @property
    def lead(self) -> str | None:
        """The version whose outcome callers get."""
        if self.decision is not None and self.decision.kind == "promoted":
            return self.candidate_of_pair
        if self.settings is not None:
            return self.settings.lead
        return None if self.started is None else self.started.pair.lead

    @property
    def candidate(self) -> str | None:
        return self.candidate_of_pair if self.settings is None else self.settings.candidate

    @property
    def candidate_of_pair(self) -> str | None:
        return None if self.started is None else self.started.pair.candidate

    @property
    def state(self) -> str:
        """One of: no longer configured, no candidate, not started, over, promoted, withdrawn, following."""
        if self.settings is None:
            return "no longer configured"
        if self.settings.candidate is None:
            return "no candidate"
        if self.started is None:
            return "not started"
        if self.decision is not None and self.decision.kind != "resumed":
            return self.decision.kind
        is_over = self.settings.until is not None and datetime.now(UTC).date() > self.settings.until
        return "over" if is_over else "following"

    def notes(self) -> list[str]:
        found = [] if self.stale is None else [_STALE.format(kind=self.stale.kind)]
        if self.counts.others:
            found.append(f"{self.counts.others:,} changed outcomes are in groups beyond those that are kept")
        return found


def read_name(
    store: Store, name: str, settings: VersionSettings | None, pair: Pair | None, with_examples: int = 0
) -> NameOverview:
    """Return the overview of one name.

    `pair` is that of the files; without it the pair of the configured versions that started last is used.
    """
    record = read_record(store, name)
    started = _find_started_pair(record, settings, pair)
    counts = Counts() if started is None else read_counts(store, name, started, with_examples)
    decision = None if started is None else record.decision_on(started.pair.id)
    is_stale = record.decision is not None and decision is None and record.decision.kind != "resumed"
    return NameOverview(name, settings, started, decision, counts, record.decision if is_stale else None)


def _find_started_pair(record: NameRecord, settings: VersionSettings | None, pair: Pair | None) -> Started | None:
    if pair is not None:
        return record.started(pair.id)
    for each in reversed(record.pairs):
        if settings is None or (each.pair.lead, each.pair.candidate) == (settings.lead, settings.candidate):
            return each
    return None


def pair_of_files(settings: VersionSettings | None, compile_version: Callable[[str], Compiled | None]) -> Pair | None:
    """Return the pair of the present files; None where a file is missing or has errors."""
    if settings is None or settings.candidate is None:
        return None
    lead, candidate = compile_version(settings.lead), compile_version(settings.candidate)
    return None if lead is None or candidate is None else Pair.of(lead, candidate)


def read_names(
    store: Store,
    configured: Mapping[str, VersionSettings],
    compile_version: Callable[[str], Compiled | None],
    with_examples: int = 0,
) -> list[NameOverview]:
    """Return the names of the configuration and of the store."""
    return [
        read_name(store, name, settings, pair_of_files(settings, compile_version), with_examples)
        for name in sorted({*configured, *names_of(store)})
        for settings in (configured.get(name),)
    ]


def overview_json(found: NameOverview) -> dict[str, Any]:
    """Return a name as plain JSON."""
    counts, settings, started = found.counts, found.settings, found.started
    return {
        "name": found.name,
        "state": found.state,
        "lead": found.lead,
        "candidate": found.candidate,
        "share": None if settings is None else settings.share,
        "until": None if settings is None or settings.until is None else settings.until.isoformat(),
        "since_us": None if started is None else started.at_us,
        "started_by": None if started is None else started.who,
        "pair": None if started is None else asdict(started.pair),
        "decision": None if found.decision is None else asdict(found.decision),
        "compared": counts.compared,
        "changed_share": counts.changed_share,
        **counts.results,
        "fault": counts.fault or None,
        "first_us": counts.first_us,
        "last_us": counts.last_us,
        "groups": [_group_json(each, counts) for each in counts.top_groups()],
        "changed_in_other_groups": counts.others,
        "hours": [
            {"at_us": hour * HOUR_US, "compared": compared, "changed": changed}
            for hour, (compared, changed) in sorted(counts.hours.items())
        ],
        "notes": found.notes(),
    }


def _group_json(group: Group, counts: Counts) -> dict[str, Any]:
    return {
        "id": group.id,
        "field": group.field,
        "count": group.count,
        "share": group.count / counts.compared if counts.compared else None,
        "lead_path": asdict(group.lead_path),
        "candidate_path": asdict(group.candidate_path),
        "first_us": group.first_us,
        "last_us": group.last_us,
        "examples": [asdict(each) for each in group.examples],
    }
