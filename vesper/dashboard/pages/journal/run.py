"""One run of the journal with its entries."""

from __future__ import annotations

from dataclasses import dataclass

from vesper.dashboard.page import Context, NotFound, Paging
from vesper.dashboard.pages.journal.doubt import DoubtView, doubt_views, value_text
from vesper.journal.entry import Stored
from vesper.journal.entry_text import effect_text
from vesper.journal.journal import Recorded, Summary, UnknownExecution
from vesper.values.model import printable

_ENTRIES_A_PAGE = 200


@dataclass(frozen=True, slots=True)
class EntryView:
    """An entry of a run."""

    seq: int
    after_us: int
    """Time since the first entry."""
    kind: str
    path: str
    effect: str
    values: tuple[str, ...]
    """Its body as lines of text; hidden for a sensitive run."""


@dataclass(frozen=True, slots=True)
class RunView:
    """A run of the journal."""

    summary: Summary
    took_us: int
    """Until now for a running one."""
    is_erased: bool
    """True where the key of its values was deleted."""
    doubts: tuple[DoubtView, ...]
    obstacle: str | None
    """Why the dashboard cannot finish the run, if so."""
    entries: tuple[EntryView, ...]
    paging: Paging


def read_run(context: Context) -> RunView:
    """Read the run of the path."""
    journal = context.stores.journal
    recorded = find_run(context)
    each = recorded.summary
    start = (context.page_number() - 1) * _ENTRIES_A_PAGE
    shown = recorded.entries[start : start + _ENTRIES_A_PAGE]
    first_us = recorded.entries[0].entry.at_us if recorded.entries else 0
    return RunView(
        each,
        (context.now_us if each.status.is_under_way else each.updated_us) - each.started_us,
        any(stored.is_erased for stored in recorded.entries),
        doubt_views(journal, recorded),
        None if context.stores.config.path is not None else "there is no vesper.toml: without grants it ends as denied",
        tuple(_entry(stored, first_us, each.is_sensitive) for stored in shown),
        context.paging(len(recorded.entries) > start + _ENTRIES_A_PAGE, len(recorded.entries)),
    )


def find_run(context: Context) -> Recorded:
    """Return the run of the path. Raises `NotFound`, and `JournalError` for a damaged one."""
    wanted = context.path["execution"]
    try:
        recorded = context.stores.journal.read(wanted)
        if recorded.summary.execution == wanted:
            return recorded
    except UnknownExecution:
        pass
    raise NotFound(
        f"the journal has no execution `{printable(wanted[:80])}`",
        "Its record may have been pruned; the page Journal lists runs that need attention.",
    )


def _entry(stored: Stored, first_us: int, hides: bool) -> EntryView:
    entry = stored.entry
    return EntryView(
        stored.seq,
        entry.at_us - first_us,
        entry.kind.value,
        printable(entry.path),
        effect_text(entry, hides),
        value_text(entry, hides, stored.is_erased),
    )
