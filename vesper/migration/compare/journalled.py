"""Transcripts read from the journal, for sensitive nodes, of which nothing else is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from vesper.engines.engine import Request
from vesper.engines.outcome import Returned
from vesper.host.outcomes import recorded_outcome, says_not_done
from vesper.journal.entry import Entry, Kind
from vesper.migration.compare.transcript import Exchange, Transcript

_SETTLES = (Kind.RESULT, Kind.FAILED, Kind.RESOLVED)
NOT_KEPT: Mapping[str, Any] = MappingProxyType({})
"""Arguments of a request that was too large for the journal, which holds a digest instead."""


class NotJournalled(ValueError):
    """The journal lacks inputs of the execution; the message names them."""


def journalled_transcript(entries: Sequence[Entry]) -> Transcript:
    """Return the transcript of a run; an unfinished run yields the part that exists.

    Raises `NotJournalled`.
    """
    if not entries or entries[0].kind is not Kind.START:
        raise NotJournalled("it has no beginning")
    inputs, now = entries[0].body.get("inputs"), entries[0].body.get("now")
    if not isinstance(inputs, dict):
        raise NotJournalled("its inputs are not there: they were too large, or its key was deleted")
    asked = {entry.path: entry for entry in entries if entry.kind is Kind.INTENT}
    # Keyed by path: of completions that two engines read in different forms, or that a person resolved, the last wins.
    settled = {entry.path: entry for entry in entries if entry.kind in _SETTLES and not says_not_done(entry)}
    exchanges = tuple(_exchange(asked.get(each.path, each), each, at) for at, each in enumerate(settled.values()))
    end = entries[-1]
    outcome = recorded_outcome(end.body) if end.kind is Kind.END else Returned({})
    return Transcript(inputs, now if isinstance(now, datetime) else None, exchanges, outcome)


def _exchange(asked: Entry, settled: Entry, number: int) -> Exchange:
    body: Any = asked.body
    request = Request(
        number,
        asked.path,
        asked.effect,
        asked.effect_class,
        body.get("fixed") or {},
        body.get("arguments", NOT_KEPT),
        asked.key,
    )
    code = settled.body.get("code")
    return Exchange(request, settled.body.get("value"), None if code is None else str(code))
