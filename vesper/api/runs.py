"""Handles of runs that outlive their caller, and signals to them.

    handle = node.start_run({"order_id": "o-17"})
    vesper.run_handle(handle.execution).signal("payment_settled", {"amount": Decimal("12.50")})
    handle.wait(timeout=30).unwrap()

Everything is read from and written to the journal: a handle works in any process that has it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from vesper.host.host import Host
from vesper.host.keyed_runs import outcome_with_reason, run_of_key
from vesper.host.prepared import compiled_from
from vesper.host.run_context import RunContext, current_context, entered
from vesper.host.waiting_runs import WaitingRun, answer, cancel, ended_run, find_waiting, send_signal
from vesper.journal.due import SignalSent
from vesper.journal.journal import JournalError, KeyTaken
from vesper.queues.retrying import last_attempt
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper.api.node import Node
    from vesper.api.outcome import AnyOutcome

_FIRST_PAUSE_SECONDS = 0.002
_MAX_PAUSE_SECONDS = 0.1


class RunNotEnded(VesperError, TimeoutError):
    """The run has not ended within the time of `wait`; it continues."""


class RunHandle:
    """A handle of a run, ended or not.

    Where the run is attempted again, `wait` makes it the handle of the last attempt.
    """

    def __init__(self, host: Host, execution: str) -> None:
        self._host = host
        self.execution = execution
        """The id in the journal; `wait` makes it that of the last attempt."""

    def status(self) -> str:
        """Return `queued`, `running`, `waiting`, `in_doubt` or `ended`. Raises `UnknownExecution`."""
        return self._host.journal.summary(self.execution).status.value

    def waiting(self) -> WaitingRun | None:
        """Return the wait of the run; None where it does not wait."""
        return find_waiting(self._host.journal, self.execution)

    def wait(self, timeout: float | None = None) -> AnyOutcome:
        """Return the outcome when the run has ended.

        Raises `RunNotEnded` after `timeout` seconds, and `InDoubt` for a run that a person must resolve.
        """
        pauses = _Pauses(timeout)
        while (outcome := self._poll()) is None:
            time.sleep(pauses.next(self))
        return outcome

    async def wait_async(self, timeout: float | None = None) -> AnyOutcome:  # noqa: ASYNC109  # as `wait`
        """Wait as `wait` does, without a thread."""
        import asyncio

        pauses = _Pauses(timeout)
        # Another process may end the run: only the journal knows when.
        while (outcome := await asyncio.to_thread(self._poll)) is None:  # noqa: ASYNC110  # as above
            await asyncio.sleep(pauses.next(self))
        return outcome

    def signal(self, name: str, value: object = None, *, key: str | None = None) -> SignalSent:
        """Send a signal to the run; a repeated `key` sends nothing. Raises `WrongValue` and `NotWaiting`."""
        sent = send_signal(self._host.journal, self.execution, name, value, key, None, _actor())
        self._host.keeper.notice()
        return sent

    def answer(self, value: object = None) -> None:
        """Answer the interrupt of the run. Raises `WrongValue` and `NotWaiting`."""
        answer(self._host.journal, self.execution, value, _actor())
        self._host.keeper.notice()

    def cancel(self, reason: str) -> str:
        """End a queued run, or fail the wait of a waiting one with `cancelled`; return the new status.

        Raises `JournalError` for a run that is under way or has ended.
        """
        status = cancel(self._host.journal, self.execution, reason, _actor())
        self._host.keeper.notice()
        return status.value

    def _poll(self) -> AnyOutcome | None:
        """Return the outcome; None while the run goes on."""
        from vesper.api.explain import outcome_of

        self.execution, is_over = last_attempt(self._host, self.execution)
        recorded = ended_run(self._host, self.execution) if is_over else None
        if recorded is None:
            return None
        start, end = recorded.entries[0], recorded.entries[-1]
        if start.is_erased or end.is_erased:
            raise JournalError(f"execution {self.execution} was erased: its outcome is gone")
        compiled = compiled_from(self._host.journal.definition(recorded.summary.semantic_hash))
        inputs = start.entry.body["inputs"]
        assert isinstance(inputs, Mapping)
        outcome = outcome_of(compiled, outcome_with_reason(recorded), inputs)
        outcome.is_execution(self.execution)
        return outcome

    def __repr__(self) -> str:
        return f"<RunHandle {self.execution}>"


class _Pauses:
    """Growing pauses between polls, up to a time limit."""

    def __init__(self, timeout: float | None) -> None:
        self._until = None if timeout is None else time.monotonic() + timeout
        self._seconds = _FIRST_PAUSE_SECONDS

    def next(self, handle: RunHandle) -> float:
        pause = self._seconds
        self._seconds = min(2 * pause, _MAX_PAUSE_SECONDS)
        if self._until is None:
            return pause
        left = self._until - time.monotonic()
        if left <= 0:
            waiting = handle.waiting()
            state = f"it {waiting.description}" if waiting is not None else f"it is {handle.status()}"
            raise RunNotEnded(f"execution {handle.execution} has not ended: {state}")
        return min(pause, left)


def start_run(node: Node, given: object, key: str | None, now: Any) -> RunHandle:
    """Record a run of a node for a keeper, and return its handle.

    For a key that a run has already, return the handle of that run.
    """
    host, plain = node.host, node._to_plain(given)
    if plain.refused:
        node._run_at(given, None).unwrap()  # raises the refusal
    context = current_context() or RunContext()
    with entered(context if key is None else replace(context, key=key)):
        prepared = node._prepare(host)
        try:
            return RunHandle(host, host.put_run(prepared, plain.inputs, node._start(now)))
        except KeyTaken:
            return RunHandle(host, run_of_key(host.journal, prepared, plain.inputs))


def enqueue_run(
    node: Node,
    given: object,
    *,
    key: str | None,
    delay: float | timedelta | None,
    priority: int | None,
    at: datetime | None,
) -> RunHandle:
    """Put a run of a node into its queue, and return its handle."""
    from vesper.queues.enqueuing import enqueue

    if node._entries is not None:
        raise TypeError(f"{node.id} has no effects, and so no runs that a queue could hold: call it")
    host, plain = node.host, node._to_plain(given)
    if plain.refused:
        node._run_at(given, None).unwrap()  # raises the refusal
    prepared = node._prepare(host)
    execution = enqueue(host, prepared, plain.inputs, key=key, delay=delay, priority=priority, at=at)
    return RunHandle(host, execution)


def run_handle(execution: str, *, host: Host | None = None) -> RunHandle:
    """Return the handle of a run in the journal of a Host, by default that of the nearest `vesper.toml`.

    A unique prefix of the id is enough. Raises `UnknownExecution`.
    """
    host = _default_host() if host is None else host
    return RunHandle(host, host.journal.read(execution).summary.execution)


def signal(
    name: str, value: object = None, *, match: str, key: str | None = None, host: Host | None = None
) -> SignalSent:
    """Send a signal to every run that waits for `name` with this `match`; kept where none waits yet.

    A repeated `key` sends nothing. Raises `WrongValue` where a waiting run declares another type.
    """
    host = _default_host() if host is None else host
    sent = send_signal(host.journal, None, name, value, key, match, _actor())
    host.keeper.notice()
    return sent


def _default_host() -> Host:
    from vesper.api.default_hosts import default_host

    return default_host(None)


def _actor() -> str | None:
    context = current_context()
    return None if context is None else context.actor
