"""Runs with an idempotency key.

A repeat waits for the run that has the key, and returns its recorded outcome. The journal decides which of several runs
has a key (docs/spec/journal.md, *Keys*); this module handles the others.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from vesper.engines.outcome import Failed, Outcome
from vesper.host.in_doubt import InDoubt
from vesper.host.outcomes import recorded_outcome
from vesper.host.prepared import Prepared, Ran, compiled_from
from vesper.host.run_context import KeyReused, KeyRunning, RunContext, current_context
from vesper.journal.entry import Kind
from vesper.journal.errors import JournalError, KeyTaken, NotTaken
from vesper.journal.journal import Journal, Recorded, Status, Summary
from vesper.journal.typed_json import encode

MAX_WAITERS = 8
"""Repeats of one Host that wait at the same time: each may hold a thread."""
_DEFAULT_WAIT_SECONDS = 30.0
_FIRST_PAUSE_SECONDS = 0.002
_MAX_PAUSE_SECONDS = 0.1


def claim(journal: Journal, context: RunContext, node_id: str, execution: str) -> dict[str, str]:
    """Return a context in the form of START. Raises `KeyTaken` if a run has its key; the first commit decides."""
    record = context.to_record()
    found = None if context.key is None else journal.keyed(node_id, record)
    if found is not None:
        raise KeyTaken(found[0].execution)
    context.report.execution, context.report.is_repeat = execution, False
    return record


class Waiters:
    """A bound on the number of waiting repeats."""

    def __init__(self) -> None:
        self._places = threading.Semaphore(MAX_WAITERS)

    def enter(self, execution: str) -> None:
        if not self._places.acquire(blocking=False):
            raise KeyRunning(
                f"execution {execution} with the same key has not ended, and {MAX_WAITERS} callers wait for such runs "
                "already: repeat the call later",
                execution,
            )

    def leave(self) -> None:
        self._places.release()


class Repeat:
    """A call whose idempotency key another run already has."""

    def __init__(
        self,
        journal: Journal,
        waiters: Waiters,
        recover: Callable[[Summary], None],
        prepared: Prepared,
        inputs: Mapping[str, object],
    ) -> None:
        """`recover` finishes an abandoned run; it raises `NotTaken` where a process works on it."""
        context = current_context()
        assert context is not None  # its key is taken
        self._journal = journal
        self._waiters = waiters
        self._recover = recover
        self._context = context
        self._prepared = prepared
        self._inputs = inputs
        self._execution: str | None = None
        left = context.seconds_left()
        self._until = time.monotonic() + (_DEFAULT_WAIT_SECONDS if left is None else left)
        self._pause_seconds = _FIRST_PAUSE_SECONDS
        self._is_waiting = False

    def wait(self) -> Ran:
        """Return the outcome of the run when it has ended.

        Raises `KeyReused` for other inputs, `KeyRunning` at the end of the caller's time, `RunWaits`, `InDoubt`, and
        the reason for which an abandoned run cannot be finished.
        """
        try:
            while (ran := self._poll()) is None:
                time.sleep(self._pause())
            return ran
        finally:
            self._close()

    async def wait_async(self) -> Ran:
        """Wait as `wait` does, without a thread."""
        import asyncio

        try:
            # Another process may end the run: only the journal knows when.
            while (ran := await asyncio.to_thread(self._poll)) is None:  # noqa: ASYNC110  # as above
                await asyncio.sleep(self._pause())
            return ran
        finally:
            self._close()

    def _poll(self) -> Ran | None:
        """Return the outcome of the run; None while it is running."""
        node_id = self._prepared.compiled.node.node_id
        found = self._journal.keyed(node_id, self._context.to_record())
        if found is None:  # pruned since
            return None
        summary, is_owned = found
        if self._execution is None or summary.status is not Status.RUNNING:
            self._execution = summary.execution
            recorded = self._journal.read(summary.execution)
            check_same_inputs(recorded, self._inputs)
            return self._read_outcome(recorded)
        if (not is_owned or summary.owner == self._journal.owner) and not summary.is_joined:
            with suppress(NotTaken):  # a thread or a process works on it
                self._recover(summary)
        return None

    def _pause(self) -> float:
        """Return the seconds until the next poll. Raises `KeyRunning` when the caller's time is over."""
        execution = self._execution or ""
        if not self._is_waiting:
            self._waiters.enter(execution)
            self._is_waiting = True
        left = self._until - time.monotonic()
        if left <= 0:
            raise KeyRunning(f"execution {execution} with the same key has not ended: repeat the call later", execution)
        pause = min(left, self._pause_seconds)
        self._pause_seconds = min(2 * self._pause_seconds, _MAX_PAUSE_SECONDS)
        return pause

    def _close(self) -> None:
        """Release the place among the waiters."""
        if self._is_waiting:
            self._waiters.leave()

    def _read_outcome(self, recorded: Recorded) -> Ran | None:
        summary, entries = recorded.summary, [each.entry for each in recorded.entries]
        if summary.status is Status.IN_DOUBT:
            doubt = next(each for each in reversed(entries) if each.kind is Kind.IN_DOUBT)
            raise InDoubt(doubt.path, str(doubt.body["why"]), summary.execution)
        if summary.status is Status.WAITING:
            from vesper.host.waiting_runs import find_waiting

            waiting = find_waiting(self._journal, summary.execution)
            if waiting is not None:  # otherwise it was woken meanwhile
                raise waiting.as_exception()
        if summary.status is not Status.ENDED:
            return None
        is_changed = summary.semantic_hash != self._prepared.compiled.semantic_hash
        definition = compiled_from(self._journal.definition(summary.semantic_hash)) if is_changed else None
        report = self._context.report
        report.execution, report.is_repeat = summary.execution, True
        return Ran(summary.execution, outcome_with_reason(recorded), True, definition)


def run_of_key(journal: Journal, prepared: Prepared, inputs: Mapping[str, object]) -> str:
    """Return the run that has the key of the current context, also where it has not ended. Raises `KeyReused`."""
    context = current_context()
    assert context is not None  # its key is taken
    found = journal.keyed(prepared.compiled.node.node_id, context.to_record())
    if found is None:
        raise KeyRunning("the run with the same key was deleted meanwhile: repeat the call", "")
    check_same_inputs(journal.read(found[0].execution), inputs)
    context.report.execution, context.report.is_repeat = found[0].execution, True
    return found[0].execution


def check_same_inputs(recorded: Recorded, inputs: Mapping[str, object]) -> None:
    execution = recorded.summary.execution
    start = recorded.entries[0]
    if start.is_erased:
        raise KeyReused(
            f"the key belongs to execution {execution}, which was erased: its outcome is gone. Use a new key",
            execution,
        )
    try:
        is_same = encode(dict(inputs)) == encode(start.entry.body["inputs"])
    except JournalError:  # the inputs hold what is no value
        is_same = False
    if not is_same:
        raise KeyReused(
            f"the key belongs to execution {execution} with other inputs: use a new key for another request",
            execution,
        )


def outcome_with_reason(recorded: Recorded) -> Outcome:
    """Return the outcome of END. The message of a failed request is taken from the entry of that request."""
    body: Mapping[str, Any] = recorded.entries[-1].entry.body
    outcome = recorded_outcome(body)
    if isinstance(outcome, Failed):
        failures = (each.entry.body for each in reversed(recorded.entries) if each.entry.kind is Kind.FAILED)
        last = next(failures, {})
        if last.get("code") == str(outcome.code):
            return replace(outcome, why=str(last.get("message", "")))
    return outcome
