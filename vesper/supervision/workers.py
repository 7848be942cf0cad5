"""Workers of mailboxes: claim the turn of an agent, handle its messages in order, report failures to its tree.

A turn is exclusive over all processes: one message of an agent runs at a time. A failed message is tried again before
any later one, when the backoff of the restart is over. A worker that dies leaves its turn and the run of its message to
the next worker, which finishes that run as recovery finishes every run.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import Final

from vesper.config.queues import QueueSettings
from vesper.engines.outcome import EngineFault, Outcome, Returned, outcome_code
from vesper.host.background import Repeating
from vesper.host.background_work import WorkState
from vesper.host.host import Host, HostClosed
from vesper.host.outcomes import recorded_outcome
from vesper.host.plans import plans_of
from vesper.host.prepared import compiled_from
from vesper.host.waiting_runs import reply
from vesper.journal.due import Due
from vesper.journal.errors import JournalError, NotTaken, UnknownExecution
from vesper.journal.journal import Journal, Run, Status
from vesper.queues.retrying import Place, is_retryable, is_settled, last_attempt, retry
from vesper.queues.rules import QUEUED, QueueRules, Terms
from vesper.queues.workers import QueueWorker, is_lost_too_often
from vesper.supervision.machine import RUNNING, Failed
from vesper.supervision.mailboxes import QUEUE_PREFIX, TURN, Mailboxes, Resolve, mailbox
from vesper.supervision.trees import UnknownAddress

QUEUE: Final = "agents"
"""`[queues.agents]` has the threads and the poll interval of the workers."""
REPLY: Final = "agent_reply"
"""Signal for which a step `ask` waits; it matches the execution of the message."""
_WATCH: Final = "agent_watch"
"""Kind of the row of a message whose run may wait: the mailbox loses sight of such a run."""
_TURN_SECONDS: Final = 0.2
"""Time after which an agent with more messages lets others have their turn."""
_SWEEP_SECONDS: Final = 0.25
_FORGOTTEN_SWEEPS: Final = 8
"""Sweeps between two searches for mailboxes that nothing woke."""
_ELSEWHERE_US: Final = 200_000
"""Delay of an agent whose message another process recovers."""
_PAGE: Final = 200
_log = logging.getLogger("vesper.supervision")


class AgentWorkers:
    """The mailboxes of a journal in one process; background work (`vesper.host.background_work`)."""

    def __init__(self, host: Host, resolve: Resolve) -> None:
        self._worker = _MailboxWorker(host, Mailboxes(host, resolve))
        self._sweeper = _Sweeper(host, self._worker)

    def start(self) -> None:
        self._worker.start()
        self._sweeper.start()

    def stop(self, timeout: float | None = None) -> bool:
        self._worker.request_stop()
        self._sweeper.stop()
        self._worker.join(timeout)
        return not self._worker.is_running

    def state(self) -> WorkState:
        return WorkState("agents", self._worker.is_running, self._worker.problem, {"running": self._worker.running})


class _MailboxWorker(QueueWorker):
    """Claims turns in place of queued runs."""

    def __init__(self, host: Host, mailboxes: Mailboxes) -> None:
        super().__init__(host, QueueRules(QUEUE, host.config.queues.get(QUEUE, QueueSettings())))
        self.mailboxes = mailboxes
        self._delays_us: dict[str, int] = {}
        """Delay of the next turn of an agent whose first message cannot be handled here now."""
        self._waiting_nodes: dict[str, bool] = {}
        """Whether runs of a definition may wait, by its semantic hash."""

    def _claim(self, limit: int) -> Sequence[tuple[Due, Run | None]]:
        if self._host.is_closed:
            self.request_stop()
            return ()
        try:
            turns = self._host.journal.claim([TURN], limit, self._lease_us)
        except JournalError as error:
            self._report(f"agents: the journal cannot be used: {error}")
            return ()
        self.problem = None
        self._held.update((each.id, each) for each in turns)
        return [(each, None) for each in turns]

    @property
    def _lease_us(self) -> int:
        return round(self._host.config.journal.lease * 1_000_000)

    # -- a turn -----------------------------------------------------------------------------------

    def _perform(self, due: Due, run: Run | None) -> None:
        until = monotonic() + _TURN_SECONDS
        try:
            while self._handle_next(due):
                if monotonic() > until or self._is_stopping:
                    self._host.journal.release(due, self._host.journal.now_us(), 0)
                    break
        except HostClosed:
            self.request_stop()
        except Exception as error:  # noqa: BLE001  # it is about this agent: its lease ends, and it is tried again
            self._report(f"agent {due.name}: {type(error).__name__}: {error}")
        finally:
            with self._changed:
                self._held.pop(due.id, None)
                self._changed.notify_all()

    def _handle_next(self, turn: Due) -> bool:
        """Handle one message; False where the turn was let go."""
        journal, address = self._host.journal, turn.name
        try:
            _, _, agent = self.mailboxes.trees.agent(address)
        except UnknownAddress:
            self._cancel_all(address)
            journal.remove(turn)
            return False
        if agent.status != RUNNING:
            journal.remove(turn)
            if self._is_running_again(address):  # it was started between the two
                self.mailboxes.wake(address)
            return False
        if agent.ready_us > journal.now_us():
            journal.release(turn, agent.ready_us, 0)
            return False
        claimed = journal.claim_queued(mailbox(address), 1, self._lease_us)
        if not claimed:
            self._sleep(turn, address)
            return False
        due, run = claimed[0]
        self._held[due.id] = due
        try:
            self._handle(address, agent.incarnation, due, run)
        finally:
            self._held.pop(due.id, None)
        delay_us = self._delays_us.pop(address, None)
        if delay_us is not None:
            journal.release(turn, journal.now_us() + delay_us, 0)
        return delay_us is None

    def _give_back(self, due: Due, delay_us: int) -> None:
        """Leave a message to a later turn; it stays the first one of its mailbox."""
        self._host.journal.release(due, self._sent_us(due), due.attempts + 1)
        self._delays_us[due.queue.removeprefix(QUEUE_PREFIX)] = min(delay_us, _ELSEWHERE_US)

    def _sent_us(self, due: Due) -> int:
        """Return the place of a message among those of its priority; a claim returns the time of its start instead."""
        (row,) = self._host.journal.due(kind=QUEUED, execution=due.execution, limit=1)
        assert row.due_us is not None  # it is no dead letter
        return row.due_us

    def _handle(self, address: str, incarnation: int, due: Due, run: Run | None) -> None:
        if is_lost_too_often(due, run):
            self._give_up(due, run)
            self.mailboxes.trees.apply(
                address, lambda path: Failed(path, "killed its worker", str(due.execution), incarnation)
            )
            return
        if run is not None and self._may_wait(str(run.recorded[0].body["semantic_hash"])):
            self._host.journal.put_due(_WATCH, run.execution, 0, due.body, None, queue=address)
        outcome = self._unsettled(due) if run is None else self._finish(due, run)
        if outcome is not None:
            self.settle_message(address, due, outcome, incarnation)

    def _sleep(self, turn: Due, address: str) -> None:
        """Let go of the turn of an empty mailbox; a message that came meanwhile gets a new one."""
        self._host.journal.remove(turn)
        next_us = self.mailboxes.next_us(address)
        if next_us is not None:
            # Its row may be another worker's for a while: a poll later is soon enough.
            poll_us = round(self._rules.settings.poll * 1_000_000)
            is_due = next_us <= self._host.journal.now_us()
            self.mailboxes.wake(address, self._host.journal.now_us() + poll_us if is_due else next_us)

    def _is_running_again(self, address: str) -> bool:
        try:
            return self.mailboxes.trees.agent(address)[2].status == RUNNING
        except UnknownAddress:
            return False

    def _may_wait(self, semantic_hash: str) -> bool:
        found = self._waiting_nodes.get(semantic_hash)
        if found is None:
            plans = plans_of(compiled_from(self._host.journal.definition(semantic_hash)))
            found = any(each.effect_class == "wait" for each in plans.requests.values())
            self._waiting_nodes[semantic_hash] = found
        return found

    # -- failures ---------------------------------------------------------------------------------

    def settle_message(self, address: str, due: Due, outcome: Outcome, incarnation: int | None) -> None:
        """Report a failure to the tree, and queue the next attempt of the message or make it a dead letter."""
        journal, execution = self._host.journal, due.execution
        assert execution is not None
        if is_settled(outcome):
            journal.remove(due)
            return
        reason = outcome_code(outcome) or outcome.kind
        self.report_failure(address, reason, execution, incarnation)
        terms = Terms.from_body(due.body)
        if not is_retryable(outcome) or terms.attempt >= terms.attempts:
            self._bury(due)
            return
        # Before all later messages, also of those that are sent at this moment: the backoff is that of the agent.
        place = Place(due.queue, due.priority, terms.next(execution))
        retry(self._host, journal.read(execution), place, self._sent_us(due) - 1)
        journal.remove(due)

    def report_failure(self, address: str, reason: str, cause: str, incarnation: int | None) -> None:
        try:
            stored = self.mailboxes.trees.apply(address, lambda path: Failed(path, reason, cause, incarnation))
        except UnknownAddress:
            return
        _log.warning("agent %s failed: %s (execution %s)", address, reason, cause)
        self.mailboxes.trees.perform(stored, self.mailboxes.notify)

    def retry_waited(self, address: str, execution: str, body: str, outcome: Outcome) -> None:
        """Settle a message whose run waited and then failed: its row is gone."""
        reason = outcome_code(outcome) or outcome.kind
        self.report_failure(address, reason, execution, None)
        terms = Terms.from_body(body)
        if is_retryable(outcome) and terms.attempt < terms.attempts:
            place = Place(mailbox(address), 0, terms.next(execution))
            retry(self._host, self._host.journal.read(execution), place)
            self.mailboxes.wake(address)
        else:
            _log.error("agent %s: execution %s failed after a wait: %s", address, execution, reason)

    def _cancel_all(self, address: str) -> None:
        """Cancel the messages of an agent that is gone."""
        journal = self._host.journal
        for row in journal.due(kind=QUEUED, queue=mailbox(address), limit=_PAGE):
            with suppress(NotTaken):
                journal.cancel(row.execution or "", f"the agent {address} was removed", None)


class _Sweeper:
    """Finishes what a process left that died in between, and answers steps `ask`."""

    def __init__(self, host: Host, worker: _MailboxWorker) -> None:
        self._host = host
        self._worker = worker
        self._repeating = Repeating("vesper-agents-sweep", _SWEEP_SECONDS, self._sweep)
        self._number = 0
        self._after: dict[str, int | None] = {}
        """The last row of the page that was looked at, by kind."""

    def start(self) -> None:
        self._repeating.start()

    def stop(self) -> None:
        self._repeating.stop()

    def _sweep(self) -> None:
        if self._host.is_closed:
            return
        mailboxes = self._worker.mailboxes
        if self._number % _FORGOTTEN_SWEEPS == 0:
            mailboxes.wake_forgotten()
        self._number += 1
        mailboxes.trees.perform_outboxes(mailboxes.notify)
        self._settle_waited()
        self._answer()

    def _settle_waited(self) -> None:
        journal = self._host.journal
        for row in self._page(_WATCH, None):
            try:
                ended = _ended(journal, row.name)
                if ended is None:
                    continue
                if not is_settled(ended) and not journal.due(execution=row.name, limit=1):
                    self._worker.retry_waited(row.queue, row.name, row.body, ended)
            except UnknownExecution:
                pass  # pruned
            journal.remove(row)

    def _answer(self) -> None:
        """Wake the steps `ask` whose message has ended for good."""
        journal = self._host.journal
        for row in self._page("signal", REPLY):
            if row.execution is None:
                continue
            try:
                execution, is_over = last_attempt(self._host, row.lane)
                outcome = _ended(journal, execution) if is_over else None
            except UnknownExecution:
                continue  # its timeout ends the wait
            if isinstance(outcome, Returned):
                reply(journal, row, dict(outcome.value))
            elif outcome is not None:
                reply(journal, row, None, f"execution {execution}: {outcome_code(outcome) or outcome.kind}")

    def _page(self, kind: str, name: str | None) -> list[Due]:
        """Return the next page of the rows of a kind; after the last one the first again."""
        rows = self._host.journal.due(kind=kind, name=name, limit=_PAGE, after=self._after.get(kind))
        self._after[kind] = rows[-1].id if len(rows) == _PAGE else None
        return rows


def _ended(journal: Journal, execution: str) -> Outcome | None:
    """Return the outcome of a run that has ended. Raises `UnknownExecution`."""
    if journal.summary(execution).status is not Status.ENDED:
        return None
    end = journal.read(execution).entries[-1]
    return EngineFault("its outcome was erased") if end.is_erased else recorded_outcome(end.entry.body)
