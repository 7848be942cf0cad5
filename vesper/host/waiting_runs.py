"""Waiting runs and interrupts, and the actions on them: for commands, pages, HTTP and Python alike.

A wait is a row of the journal's table of due times; an ended interrupt is an INTENT of its run with a RESULT or FAILED
of that path. Values are checked against the `returns` of the definition to which the run is pinned: a wrong value is
refused, and the run remains waiting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from vesper.compiler import Compiled
from vesper.effects.performer import EffectFailed
from vesper.effects.stored_json import checked_value
from vesper.host.in_doubt import InDoubt
from vesper.host.masking import Masks
from vesper.host.plans import Plan, plans_of
from vesper.host.prepared import compiled_from
from vesper.host.waiting import RunWaits, wait_text
from vesper.journal.audit import audit_change
from vesper.journal.doubts import open_doubts
from vesper.journal.due import Due, SignalSent
from vesper.journal.entry import Entry, Kind
from vesper.journal.errors import Unchecked
from vesper.journal.journal import Journal, Recorded, Status, Summary
from vesper.journal.typed_json import encode_text
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.values.json_forms import input_of_json
from vesper.values.model import printable
from vesper.values.types import Type
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper.host.host import Host

_MAX_MATCHED = 1_000
_PAGE_RUNS = 10_000
_MAX_REPEATS = 20
_MAX_KEPT = 64
_definitions: dict[str, tuple[Compiled, Mapping[str, Plan]]] = {}
"""Decoded definitions by semantic hash, with their plans."""


class NotWaiting(VesperError):
    """The run does not wait for this, or no longer does: it ended, expired, or was answered meanwhile."""


class WrongValue(VesperError):
    """The value of an answer or a signal does not have the declared type. The run remains waiting."""


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A wait of a run, open or ended."""

    execution: str
    node_id: str
    path: str
    kind: str
    """`sleep`, `signal` or `interrupt`."""
    name: str
    """The signal, or the kind of interrupt."""
    match: str | None
    """The correlation of a signal; `<sensitive>` where the run is sensitive."""
    due_us: int | None
    """The end of the wait; None where it has none, or is over."""
    since_us: int
    message: str | None
    """The message of an interrupt, masked where it is sensitive."""
    answer_type: Type | None
    """The type of the signal's value or of the answer; None for a sleep."""
    is_sensitive: bool
    row: int | None = None
    """The number of its row, for the next page of a list."""

    @property
    def description(self) -> str:
        return f"waits at `{printable(self.path)}` {wait_text(self.kind, self.name, self.due_us)}"

    def as_exception(self) -> RunWaits:
        """Return the exception that ended the call in which the run began to wait."""
        return RunWaits(self.execution, self.node_id, self.path, self.kind, self.name, self.due_us)


class InterruptStatus(StrEnum):
    PENDING = "pending"
    RESOLVED = "resolved"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Interrupt:
    """A question of a run to a person, and its answer."""

    wait: WaitingRun
    status: InterruptStatus
    ended_us: int | None = None
    by: str | None = None
    """The person who answered or cancelled."""
    answer: object = None
    """The answer of a resolved one, masked where it is sensitive."""


# -- reading --------------------------------------------------------------------------------------


def waiting_runs(
    journal: Journal,
    kind: str | None = None,
    node: str | None = None,
    limit: int = 100,
    after: int | None = None,
    reveal: bool = False,
) -> list[WaitingRun]:
    """Return runs that wait, by row; `after` is the last row of the previous page."""
    found: list[WaitingRun] = []
    for each in journal.due(kind=kind, node=node, limit=limit, after=after):
        if each.kind in ("sleep", "signal", "interrupt") and each.execution:
            waiting = _describe_wait(journal, journal.read(each.execution), each, reveal)
            if waiting is not None:  # otherwise it was woken meanwhile
                found.append(waiting)
    return found


def find_waiting(journal: Journal, execution: str, reveal: bool = False) -> WaitingRun | None:
    """Return the wait of a run; None if it does not wait. Raises `UnknownExecution`."""
    recorded = journal.read(execution)
    rows = journal.due(execution=recorded.summary.execution, limit=1)
    return _describe_wait(journal, recorded, rows[0], reveal) if rows else None


def interrupts_of(journal: Journal, recorded: Recorded, reveal: bool = False) -> list[Interrupt]:
    """Return the interrupts of a run, in order."""
    summary = recorded.summary
    found: dict[str, Interrupt] = {}
    for entry in (each.entry for each in recorded.entries if each.entry.effect == "interrupt"):
        if entry.kind is Kind.INTENT:
            found[entry.path] = Interrupt(_describe_interrupt(journal, summary, entry, reveal), InterruptStatus.PENDING)
        elif entry.path in found and entry.kind in (Kind.RESULT, Kind.FAILED):
            found[entry.path] = _describe_ended(journal, found[entry.path], entry, reveal)
    if summary.status is Status.WAITING:
        for row in journal.due(execution=summary.execution, limit=1):
            if row.path in found:
                wait = replace(found[row.path].wait, due_us=row.due_us, row=row.id)
                found[row.path] = replace(found[row.path], wait=wait)
    return list(found.values())


def list_interrupts(
    journal: Journal,
    status: InterruptStatus | None = InterruptStatus.PENDING,
    node: str | None = None,
    limit: int = 100,
    reveal: bool = False,
) -> list[Interrupt]:
    """Return pending interrupts, oldest first, or those of the newest runs with a status. The status None is any."""
    if status is InterruptStatus.PENDING:
        found = waiting_runs(journal, "interrupt", node, limit, reveal=reveal)
        return [Interrupt(each, InterruptStatus.PENDING) for each in found]
    listed: list[Interrupt] = []
    for summary in _runs(journal, node):
        plans = _definition(journal, summary.semantic_hash)[1]
        if any(each.effect == "interrupt" for each in plans.values()):
            of_run = interrupts_of(journal, journal.read(summary.execution), reveal)
            listed += [each for each in of_run if status is None or each.status is status]
        if len(listed) >= limit:
            break
    return listed[:limit]


def _runs(journal: Journal, node: str | None) -> Iterator[Summary]:
    """Yield all runs, newest first and each once, even if others begin meanwhile."""
    seen: set[str] = set()
    offset = 0
    while page := journal.find(node=node, limit=_PAGE_RUNS, offset=offset):
        yield from (each for each in page if each.execution not in seen)
        seen = {each.execution for each in page}
        offset += len(page)


def _describe_wait(journal: Journal, recorded: Recorded, due: Due, reveal: bool) -> WaitingRun | None:
    intents = (each.entry for each in reversed(recorded.entries) if each.entry.kind is Kind.INTENT)
    intent = next((each for each in intents if each.path == due.path), None)
    if recorded.summary.status is not Status.WAITING or intent is None:
        return None
    return replace(_describe_interrupt(journal, recorded.summary, intent, reveal), due_us=due.due_us, row=due.id)


def _describe_interrupt(journal: Journal, summary: Summary, intent: Entry, reveal: bool) -> WaitingRun:
    compiled, plans = _definition(journal, summary.semantic_hash)
    plan = _plan(compiled, plans, intent.path)
    arguments = intent.body.get("arguments")
    shown: Mapping[str, object] = arguments if isinstance(arguments, Mapping) else {}
    if not reveal:
        shown = Masks(compiled).request(intent.path).mask_arguments(shown)
    kind = "signal" if plan.effect == "signal_wait" else plan.effect
    match, message = shown.get("match"), shown.get("message")
    return WaitingRun(
        summary.execution,
        summary.node_id,
        intent.path,
        kind,
        plan.fixed.get("signal") or plan.fixed.get("kind") or "",
        None if match is None else str(match),
        None,
        intent.at_us,
        None if message is None else str(message),
        None if kind == "sleep" else plan.gives,
        summary.is_sensitive,
    )


def _describe_ended(journal: Journal, pending: Interrupt, entry: Entry, reveal: bool) -> Interrupt:
    by = entry.body.get("by")
    status, answer = InterruptStatus.RESOLVED, entry.body.get("value")
    if entry.kind is Kind.FAILED:
        expired = entry.body.get("code") == "expired"
        status, answer = (InterruptStatus.EXPIRED if expired else InterruptStatus.CANCELLED), None
    elif not reveal and pending.wait.is_sensitive:
        compiled = _definition(journal, journal.summary(pending.wait.execution).semantic_hash)[0]
        answer = Masks(compiled).request(entry.path).mask_answer(answer)
    return replace(pending, status=status, ended_us=entry.at_us, by=None if by is None else str(by), answer=answer)


def _definition(journal: Journal, semantic_hash: str) -> tuple[Compiled, Mapping[str, Plan]]:
    found = _definitions.get(semantic_hash)
    if found is None:
        compiled = compiled_from(journal.definition(semantic_hash))
        found = compiled, plans_of(compiled).requests
        if len(_definitions) >= _MAX_KEPT:
            _definitions.pop(next(iter(_definitions)), None)
        _definitions[semantic_hash] = found
    return found


def ended_run(host: Host, execution: str) -> Recorded | None:
    """Return a run that has ended; None if it has not. Without a keeper, this thread does the keeper's work.

    Raises `InDoubt` for a run that a person must resolve.
    """
    status = host.journal.summary(execution).status
    if status in (Status.ENDED, Status.IN_DOUBT):
        recorded = host.journal.read(execution)
        for doubt in open_doubts(recorded):
            raise InDoubt(doubt.path, doubt.why, execution)
        if recorded.summary.status is Status.ENDED:
            return recorded
    host.start()
    if not host.keeper.is_running:
        host.keep()
    return None


# -- acting ---------------------------------------------------------------------------------------


def answer(journal: Journal, execution: str, value: object, actor: str | None = None, why: str = "") -> WaitingRun:
    """Answer the interrupt of a run, and return it; a keeper resumes the run.

    `value` is JSON as `forms_of_json` reads it, or Python objects. Raises `WrongValue` and `NotWaiting`.
    """
    waiting = _require_wait(journal, execution)
    if waiting.kind != "interrupt":
        raise NotWaiting(f"execution {waiting.execution} has no question: it {waiting.description}")
    assert waiting.answer_type is not None
    text = _encode(waiting.answer_type, value, f"the answer to `{printable(waiting.path)}`")
    if not journal.wake(waiting.execution, waiting.path, text, None, "", actor):
        raise NotWaiting(f"`{printable(waiting.path)}` of execution {waiting.execution} {_FASTER}")
    fields = {"step": waiting.path} | ({"why": why} if why else {})
    audit_change(journal, "interrupt_resolve", waiting.execution, waiting.node_id, actor or "", **fields)
    return waiting


def cancel(journal: Journal, execution: str, reason: str, actor: str | None = None) -> Status:
    """Cancel a run that waits or is queued; return its status. Raises `JournalError` for any other run.

    A waiting run continues with the code `cancelled` at its wait, and its handlers run.
    """
    summary = journal.read(execution).summary
    done = journal.cancel(summary.execution, reason, actor)
    audit_change(journal, "run_cancel", summary.execution, summary.node_id, actor or "", why=reason)
    return done


def send_signal(
    journal: Journal,
    execution: str | None,
    name: str,
    value: object = None,
    key: str | None = None,
    match: str | None = None,
    actor: str | None = None,
) -> SignalSent:
    """Send a signal to a run, or to every run that waits for `name` with this `match`.

    The journal keeps a signal for which no run waits yet. A repeated `key` sends nothing. Raises `WrongValue`, and
    `NotWaiting` for a run that has ended or has no such step.
    """
    if execution is None and match is None:
        raise ValueError("a signal goes to a run or to a match: give one of them")
    for _ in range(_MAX_REPEATS):
        with suppress(Unchecked):  # a run began to wait meanwhile: its type is checked, too
            return _send_checked(journal, execution, name, value, key, match, actor)
    return _send_checked(journal, execution, name, value, key, match, actor)


def _send_checked(
    journal: Journal,
    execution: str | None,
    name: str,
    value: object,
    key: str | None,
    match: str | None,
    actor: str | None,
) -> SignalSent:
    """Check the value against the waits of this moment, and send it to these. Raises `Unchecked`."""
    if execution is None:
        rows = _rows_of(journal, name, match or "")
        types = [_row_type(journal, each) for each in rows]
        text = _encode_for_all(types, value, name) if types else _encode_to_keep(journal, value, name)
        node_id, sent_to = "", None
    else:
        recorded = journal.read(execution)
        node_id, sent_to = recorded.summary.node_id, recorded.summary.execution
        rows, types = _signal_types(journal, recorded, name)
        text = _encode_for_any(types, value, name)
    checked = [(each.execution or "", each.path) for each in rows]
    sent = journal.signal(sent_to, name, match or "", text, key, actor, checked)
    if not sent.is_repeat:
        audit_change(journal, "signal", sent_to or "", node_id, actor or "", signal=name, woken=list(sent.woken))
    return sent


def _rows_of(journal: Journal, name: str, match: str) -> list[Due]:
    """Return the rows of all runs that wait for a signal with a match."""
    rows: list[Due] = []
    while True:
        after = rows[-1].id if rows else None
        page = journal.due(kind="signal", name=name, lane=match, limit=_MAX_MATCHED, after=after)
        rows += page
        if len(page) < _MAX_MATCHED:
            return rows


_FASTER = "was answered, cancelled or expired meanwhile: `vesper interrupts show` tells which"


def _require_wait(journal: Journal, execution: str) -> WaitingRun:
    waiting = find_waiting(journal, execution)
    if waiting is None:
        summary = journal.read(execution).summary
        raise NotWaiting(f"execution {summary.execution} of {summary.node_id} does not wait: it is {summary.status}")
    return waiting


def _plan(compiled: Compiled, plans: Mapping[str, Plan], path: str) -> Plan:
    return plans.get(path) or plans_of(compiled).of(path)


def reply(journal: Journal, row: Due, value: object, problem: str | None = None) -> None:
    """Wake a wait for the answer to one request: with a value, or with `cancelled` and the problem.

    A value of another type is recorded as a problem, too: its sender cannot correct it.
    """
    text = None
    if problem is None:
        try:
            text = _encode(_row_type(journal, row), value, f"the reply to `{printable(row.path)}`")
        except WrongValue as error:
            problem = str(error)
    code = None if problem is None else "cancelled"
    journal.wake(row.execution or "", row.path, text, code, problem or "", None)


def _row_type(journal: Journal, due: Due) -> Type:
    compiled, plans = _definition(journal, journal.summary(due.execution or "").semantic_hash)
    return _plan(compiled, plans, due.path).gives


def _signal_types(journal: Journal, recorded: Recorded, name: str) -> tuple[list[Due], list[Type]]:
    """Return the wait of a run with its type. Where it does not wait, all types of the signal in its definition."""
    summary = recorded.summary
    if summary.status is Status.ENDED:
        raise NotWaiting(f"execution {summary.execution} of {summary.node_id} has ended: it receives no signal")
    compiled, plans = _definition(journal, summary.semantic_hash)
    known = {each.fixed["signal"]: each.gives for each in plans.values() if each.effect == "signal_wait"}
    if name not in known:
        hint = did_you_mean(name, list(known)) or (
            f"it waits for {', '.join(f'`{each}`' for each in known)}" if known else "it has no step `wait_for`"
        )
        raise NotWaiting(f"{summary.node_id} has no step that waits for `{printable(name[:80])}`; {hint}")
    rows = journal.due(execution=summary.execution, limit=1)
    if rows and rows[0].kind == "signal" and rows[0].name == name:
        return rows, [_plan(compiled, plans, rows[0].path).gives]
    return [], [each.gives for each in plans.values() if each.effect == "signal_wait" and each.fixed["signal"] == name]


def _encode_for_any(types: list[Type], value: object, name: str) -> str:
    """Encode a value as the first type that fits. The error for a value without one names the last type."""
    for type_ in types[:-1]:
        try:
            return _encode(type_, value, f"the value of the signal `{name}`")
        except WrongValue:
            continue
    return _encode(types[-1], value, f"the value of the signal `{name}`")


def _encode_for_all(types: list[Type], value: object, name: str) -> str:
    """Encode a value that has all types, in one form."""
    texts = {_encode(each, value, f"the value of the signal `{name}`") for each in types}
    if len(texts) > 1:
        raise WrongValue(f"runs that wait for `{name}` declare different types: send the signal to each run")
    return texts.pop()


def _encode_to_keep(journal: Journal, value: object, name: str) -> str:
    """Encode a value for which no run waits yet, by the type in the newest definition."""
    for semantic_hash in dict.fromkeys(each.semantic_hash for each in journal.find(limit=_MAX_MATCHED)):
        plans = _definition(journal, semantic_hash)[1].values()
        types = [each.gives for each in plans if each.effect == "signal_wait" and each.fixed["signal"] == name]
        if types:
            return _encode_for_any(types, value, name)
    return encode_text(value)


def _encode(type_: Type, value: object, what: str) -> str:
    try:
        return encode_text(checked_value(type_, input_of_json(type_, value), what))
    except EffectFailed as failure:
        raise WrongValue(f"{printable(failure.message)}; the type is {type_}. The run keeps waiting") from None
