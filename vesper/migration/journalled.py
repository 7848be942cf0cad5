"""The transcript of a run that a journal has: for nodes whose values are kept nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from vesper.engines.engine import Request
from vesper.host.outcomes import recorded_outcome
from vesper.host.running import says_not_done
from vesper.journal.entry import Entry, Kind
from vesper.migration.transcript import Exchange, Transcript

_SETTLES = (Kind.RESULT, Kind.FAILED, Kind.RESOLVED)


class NotWhole(ValueError):
    """The journal does not have all that a transcript needs; the message says what is missing."""


def transcript_of_run(entries: Sequence[Entry]) -> Transcript:
    """What a run that has ended was given, asked for and answered. Raises `NotWhole`."""
    if not entries or entries[0].kind is not Kind.START or entries[-1].kind is not Kind.END:
        raise NotWhole("the run has not ended, or its beginning is gone")
    start, end = entries[0].body, entries[-1].body
    inputs, now = start.get("inputs"), start.get("now")
    if not isinstance(inputs, Mapping) or not isinstance(now, datetime):
        raise NotWhole("the inputs of the run are gone: its key was deleted")
    asked: dict[str, Entry] = {}
    exchanges: list[Exchange] = []
    for entry in entries:
        if entry.kind is Kind.INTENT:
            asked[entry.path] = entry
        elif entry.kind in _SETTLES and not says_not_done(entry):
            exchanges.append(_exchange(len(exchanges), asked.get(entry.path, entry), entry))
    return Transcript(inputs, now, tuple(exchanges), recorded_outcome(end))


def _exchange(number: int, asked: Entry, settled: Entry) -> Exchange:
    body: Mapping[str, Any] = asked.body
    if "arguments" not in body:
        raise NotWhole(f"what {asked.path} asked for was too large to be journalled")
    request = Request(number, asked.path, asked.effect, asked.effect_class, body["fixed"], body["arguments"], asked.key)
    code = settled.body.get("code")
    return Exchange(request, settled.body.get("value"), None if code is None else str(code))
