"""A second engine on the records of a run: it is fed what the first one was answered, and can perform nothing.

A request that differs from what was recorded is where the two part; it is never sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from vesper.engines.engine import Blocked, Completion, Limits, Program, Request
from vesper.engines.outcome import LimitHit, Outcome
from vesper.host.outcomes import outcome_record, recorded_outcome
from vesper.host.running import says_not_done
from vesper.journal.entry import Entry, Kind
from vesper.journal.typed_json import encode

_SETTLES = (Kind.RESULT, Kind.FAILED, Kind.RESOLVED)


@dataclass(frozen=True, slots=True)
class Followed:
    """How the second engine fared."""

    outcome: Outcome | None
    """None where it asked for something else."""
    difference: str | None
    """Where the two part; None where they agree."""


def follow(program: Program, entries: Sequence[Entry], limits: Limits | None = None) -> Followed:
    """Runs a node again on its records. The first entry is START, the last END."""
    start, end = entries[0], entries[-1]
    if start.kind is not Kind.START or end.kind is not Kind.END:
        raise ValueError("only a run that has ended can be followed")
    inputs, now = start.body["inputs"], start.body["now"]
    assert isinstance(inputs, Mapping)
    assert isinstance(now, datetime)
    asked = {entry.path: entry for entry in entries if entry.kind is Kind.INTENT}
    settled = {entry.path: entry for entry in entries if entry.kind in _SETTLES and not says_not_done(entry)}
    first = recorded_outcome(end.body)
    execution = program.start(inputs, now, limits, is_traced=False)
    step = execution.advance(())
    while isinstance(step, Blocked):
        (request,) = step.requests
        known = settled.pop(request.path, None)
        if known is None:
            return _without_answer(request, first)
        recorded = asked.get(request.path, known)
        if not _is_same(request, recorded):
            return Followed(None, f"{request.path} asks for something else than was recorded")
        code = known.body.get("code")
        completion = Completion(request.id, known.body.get("value"), None if code is None else str(code))
        step = execution.advance((completion,))
    if settled:
        return Followed(step.outcome, f"{next(iter(settled))} was recorded and is not asked for")
    if isinstance(first, LimitHit):
        return Followed(step.outcome, None)  # when a limit is hit depends on the machine
    is_same = encode(outcome_record(first)) == encode(outcome_record(step.outcome))
    return Followed(step.outcome, None if is_same else "the outcomes differ")


def _without_answer(request: Request, first: Outcome) -> Followed:
    """The first engine was stopped at a request, or never made it."""
    if first.kind in ("denied", "limit_hit"):
        return Followed(first, None)
    return Followed(None, f"{request.path} asks for what was never recorded")


def _is_same(request: Request, entry: Entry) -> bool:
    body: Mapping[str, Any] = entry.body
    is_alike = (
        request.effect == entry.effect and request.effect_class == entry.effect_class and request.key == entry.key
    )
    if "arguments" not in body:  # too large to be journalled: a digest stands for it, which only the run can compute
        return is_alike
    return (
        is_alike
        and dict(request.fixed) == dict(body["fixed"])
        and encode(dict(request.arguments)) == encode(dict(body["arguments"]))
    )
