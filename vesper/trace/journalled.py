"""Traces of journalled executions, made by running the node on the recorded completions.

Nothing is performed. The second execution must make the same requests and have the same outcome; otherwise the trace
ends there and records the divergence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from vesper.engines.engine import Limits, Request
from vesper.engines.outcome import Denied, EngineFault, LimitHit, Outcome
from vesper.engines.registry import ENGINES, REFERENCE
from vesper.host.outcomes import outcome_record, recorded_outcome, says_not_done
from vesper.journal.entry import Entry, Kind, Stored
from vesper.journal.journal import Journal, Recorded
from vesper.journal.typed_json import encode
from vesper.trace.model import REPLAY_KEY, Decision, Exchange, Origin, Trace, TraceError
from vesper.trace.programs import compiled_of, program_of
from vesper.trace.recorder import Unanswered, record_trace

_COMPLETING_KINDS = (Kind.RESULT, Kind.FAILED, Kind.RESOLVED)


@dataclass(slots=True)
class RequestEntries:
    """Journal entries of one request."""

    asked: Entry | None = None
    asked_us: int | None = None
    settled: Entry | None = None
    decisions: tuple[Decision, ...] = ()


def trace_of_execution(journal: Journal, execution: str, engine: str | None = None) -> Trace:
    """Return the trace of a journalled execution, run on `engine` or on its first engine.

    Raises `JournalError` for a broken journal and `TraceError` if no trace can be made.
    """
    return trace_of_recorded(journal, journal.read(execution), engine)


def trace_of_recorded(journal: Journal, recorded: Recorded, engine: str | None = None) -> Trace:
    """Return the trace of a run that was already read."""
    summary = recorded.summary
    name = summary.execution
    if any(each.is_erased for each in recorded.entries):
        raise TraceError(f"execution {name} is erased: its key was deleted, so its data cannot be read")
    entries = [each.entry for each in recorded.entries]
    start = entries[0]
    inputs, now = start.body.get("inputs"), start.body.get("now")
    if start.kind is not Kind.START or not isinstance(inputs, Mapping) or not isinstance(now, datetime):
        raise TraceError(f"execution {name} has no inputs in the journal: no trace can be made of it")
    compiled = compiled_of(journal.definition(summary.semantic_hash))
    engines = _engines(start, entries)
    chosen = engine or next((each for each in engines if each in ENGINES), REFERENCE)
    following = _JournalAnswers(requests_by_path(recorded.entries))
    trace = record_trace(compiled, program_of(compiled, chosen), chosen, name, inputs, now, following.answer, Limits())
    end = entries[-1] if entries[-1].kind is Kind.END else None
    first = None if end is None else recorded_outcome(end.body)
    took = None if end is None else end.body.get("duration_us")
    return replace(
        trace,
        engines=(chosen, *(each for each in engines if each != chosen)),
        started_us=start.at_us,
        duration_us=took if isinstance(took, int) else None,
        outcome=first,
        origin=_origin(entries),
        divergence=_divergence(entries) or following.difference or _outcome_difference(first, trace.outcome),
        is_sensitive=summary.is_sensitive or trace.is_sensitive,
        caller=_caller(start),
    )


def _caller(start: Entry) -> dict[str, str]:
    context = start.body.get("context")
    return {name: str(text) for name, text in context.items()} if isinstance(context, Mapping) else {}


class _JournalAnswers:
    """Completions from the journal. A request that differs from the record ends the execution."""

    def __init__(self, known: dict[str, RequestEntries]) -> None:
        self._known = known
        self.difference: str | None = None

    def answer(self, request: Request, _: Sequence[Exchange]) -> Exchange:
        known = self._known.pop(request.path, None)
        if known is None or known.settled is None:
            raise Unanswered
        if not is_same_request(request, known.asked or known.settled):
            self.difference = f"{request.path} makes another request than the journal has"
            raise Unanswered
        settled = known.settled
        code = settled.body.get("code")
        told = settled.body.get("message") or settled.body.get("why") or ""
        return Exchange(
            request.path,
            request.effect,
            request.effect_class,
            dict(request.fixed),
            dict(request.arguments),
            request.key,
            settled.body.get("value"),
            None if code is None else str(code),
            str(told),
            known.decisions,
            known.asked_us,
            settled.at_us,
            settled.body.get("may_have_happened") is True,
        )


def is_same_request(request: Request, entry: Entry) -> bool:
    """Return whether a request equals an entry.

    A performed re-execution has another key, so that it is not taken for a repetition.
    """
    if (request.effect, request.effect_class) != (entry.effect, entry.effect_class):
        return False
    if request.key != entry.key and not (entry.key or "").startswith(REPLAY_KEY):
        return False
    fixed, arguments = entry.body.get("fixed"), entry.body.get("arguments")
    if not isinstance(fixed, Mapping) or not isinstance(arguments, Mapping):
        return True  # too large for the journal, which has a digest that only the run can compute
    return dict(request.fixed) == dict(fixed) and encode(dict(request.arguments)) == encode(dict(arguments))


def requests_by_path(entries: Sequence[Stored]) -> dict[str, RequestEntries]:
    found: dict[str, RequestEntries] = {}
    before_us = entries[0].entry.at_us
    for stored in entries:
        entry = stored.entry
        path, _, attempt = entry.path.partition("#")
        if entry.kind is Kind.INTENT:
            found.setdefault(path, RequestEntries()).asked = entry
            found[path].asked_us = entry.at_us
        elif entry.kind is Kind.VALUE:
            known = found.setdefault(path, RequestEntries())
            number = int(attempt) if attempt.isdecimal() else 1
            known.decisions = (*known.decisions, Decision(number, dict(entry.body), entry.at_us))
            known.asked_us = before_us if known.asked_us is None else known.asked_us
        elif says_not_done(entry):
            found.pop(path, None)  # a retracted request counts as never made
        elif entry.kind in _COMPLETING_KINDS:
            known = found.setdefault(path, RequestEntries())
            known.settled = entry
            # A read has no INTENT entry with its start time; it began after the entry above.
            known.asked_us = before_us if known.asked_us is None else known.asked_us
        before_us = entry.at_us
    return found


def _engines(start: Entry, entries: Sequence[Entry]) -> tuple[str, ...]:
    named = [start.body.get("engine"), *(each.body.get("engine") for each in entries if each.kind is Kind.HANDOFF)]
    return tuple(dict.fromkeys(str(each) for each in named if each))


def _origin(entries: Sequence[Entry]) -> Origin | None:
    """Return the origin of an execution that was a performed replay."""
    for entry in entries:
        replayed = entry.body.get("replayed")
        if isinstance(replayed, str):
            return Origin(replayed, None, ())
    return None


def _divergence(entries: Sequence[Entry]) -> str | None:
    for entry in entries:
        if entry.kind is Kind.DIVERGENCE:
            return f"{entry.path or 'the outcome'}: the engines diverged"
    return None


def _outcome_difference(first: Outcome | None, second: Outcome | None) -> str | None:
    if first is None or second is None:
        if first is not None and not isinstance(first, Denied | LimitHit | EngineFault):
            return "the second execution ended before the first: a request has no completion in the journal"
        return None
    if isinstance(first, LimitHit | EngineFault):
        return None  # a limit depends on the machine; a fault may not recur
    is_same = encode(outcome_record(first)) == encode(outcome_record(second))
    return None if is_same else f"recorded as {first.kind}, the second execution ended with {second.kind}"
