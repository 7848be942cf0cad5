"""A step in doubt as pages show it: its request, its process, and the known facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vesper.host.finishing import compiled_of
from vesper.host.masking import SENSITIVE
from vesper.host.recovery.resolving import failure_codes, plan_of
from vesper.journal.doubts import Doubt, open_doubts, request_in_doubt
from vesper.journal.entry import Entry, Kind
from vesper.journal.entry_text import ERASED, effect_text, entry_values, limit_lines
from vesper.journal.journal import Journal, JournalError, Recorded
from vesper.journal.owner import is_dead
from vesper.journal.value_layout import lay_out
from vesper.language.ir.decode import IrError
from vesper.values.model import printable

_COLUMNS = 96
_CUT = "`vesper journal show --format json` has all of it"


@dataclass(frozen=True, slots=True)
class DoubtView:
    """A request whose outcome is unknown."""

    execution: str
    node: str
    step: str
    why: str
    """Hidden for a sensitive run."""
    since_us: int
    asked_us: int | None
    """When the request was made; None where the journal has no request."""
    holder: str
    """The process that held the run when it made the request."""
    is_holder_gone: bool
    effect: str
    request: tuple[str, ...]
    """What the provider was asked, as lines of text."""
    gives: str
    """Type of the result."""
    codes: tuple[str, ...]
    """Codes that the effect can fail with."""
    obstacle: str | None
    """Why it cannot be resolved, if so."""


def doubt_views(journal: Journal, recorded: Recorded) -> tuple[DoubtView, ...]:
    """Return the steps in doubt of a run."""
    return tuple(_view(journal, recorded, each) for each in open_doubts(recorded))


def _view(journal: Journal, recorded: Recorded, doubt: Doubt) -> DoubtView:
    summary = recorded.summary
    hides = summary.is_sensitive
    intent = request_in_doubt(recorded, doubt)
    holder = summary.owner if hides else _holder(recorded, intent)
    gives, obstacle = "", doubt.obstacle
    codes: tuple[str, ...] = ()
    try:
        plan = plan_of(compiled_of(journal, recorded), doubt.path)
        gives, codes = str(plan.gives), tuple(failure_codes(plan))
    except (JournalError, IrError) as problem:
        obstacle = obstacle or f"its definition cannot be read: {printable(str(problem))}"
    return DoubtView(
        summary.execution,
        summary.node_id,
        doubt.path,
        "" if hides else printable(doubt.why),
        doubt.since_us,
        None if intent is None else intent.at_us,
        printable(holder),
        is_dead(holder),
        "" if intent is None else effect_text(intent, hides),
        () if intent is None else _request_text(intent, hides),
        gives,
        codes,
        obstacle,
    )


def _request_text(intent: Entry, hides: bool) -> tuple[str, ...]:
    values = entry_values(intent)
    request = values.get("request")
    return (SENSITIVE,) if hides else _lines(request if isinstance(request, dict) else values)


def value_text(entry: Entry, hides: bool, is_erased: bool) -> tuple[str, ...]:
    """Return the values of an entry as lines, masked and cut as `vesper journal show` does."""
    if is_erased or hides:
        return (ERASED if is_erased else SENSITIVE,)
    return _lines(entry_values(entry))


def _lines(values: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(limit_lines(lay_out(values, _COLUMNS, ""), _CUT))


def _holder(recorded: Recorded, intent: Entry | None) -> str:
    """Return the owner of the run at its request.

    The next HANDOFF names it; without one the present owner made the request.
    """
    is_later = False
    for each in recorded.entries:
        is_later |= each.entry is intent
        if is_later and each.entry.kind is Kind.HANDOFF:
            return str(each.entry.body.get("from", ""))
    return recorded.summary.owner
