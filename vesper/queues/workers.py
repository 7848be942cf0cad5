"""Workers of the queues of one process: claim runs, run them in threads, settle how they ended.

A claim takes the rows and their runs in one transaction of the journal, within the limits of the queue and its keys.
A run that ends well loses its row with its last commit. Any other end leaves the row: the worker queues the next
attempt or moves the row to the dead letters. A worker that dies before that leaves a leased row of an ended run, which
the next claim hands out again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep

from vesper.effects.settings import ConfigError
from vesper.engines.outcome import EngineFault, Outcome
from vesper.host.background import Repeating
from vesper.host.background_work import Nodes, WorkState
from vesper.host.host import Host, HostClosed
from vesper.host.outcomes import outcome_record, recorded_outcome
from vesper.journal.due import Due
from vesper.journal.entry import Entry, Kind
from vesper.journal.errors import JournalError, UnknownExecution
from vesper.journal.journal import Run, Status, Summary
from vesper.observe.metrics import count
from vesper.queues.retrying import Place, is_retryable, is_settled, retry
from vesper.queues.rules import DEAD_SUFFIX, QueueRules, Terms, rules_of
from vesper.queues.watch import QueueWatch
from vesper.values.generated.metrics import QUEUES_DEAD_LETTERS, QUEUES_STARTED

_AHEAD_POLLS = 4
"""Polls ahead for which starts of a rate are claimed: a thread sleeps until the start of its run."""
_BATCH = 8
"""Short runs without limits that a process claims for each of its threads."""
_SHORT_SECONDS = 0.05
_ELSEWHERE_US = 1_000_000
"""Delay of a row whose run another process recovers."""
_PROBLEM_SECONDS = 1.0
"""Pause of a worker whose journal cannot be used."""
MAX_LOSSES = 10
"""Workers that may begin a run after a loss and die, or fail to load it, before the run is given up."""
_log = logging.getLogger("vesper.queues")


class QueueWorkers:
    """The queues of a process; background work (`vesper.host.background_work`)."""

    def __init__(self, host: Host, nodes: Nodes) -> None:
        """Read the queues of these nodes. Raises `ConfigError` for nodes of one queue with different limits."""
        watch = QueueWatch(host)
        self._workers = [QueueWorker(host, rules, watch) for rules in rules_of(host.config, nodes).values()]

    def start(self) -> None:
        for each in self._workers:
            each.start()

    def stop(self, timeout: float | None = None) -> bool:
        until = None if timeout is None else monotonic() + timeout
        for each in self._workers:
            each.request_stop()
        for each in self._workers:
            each.join(None if until is None else max(0.0, until - monotonic()))
        return not any(each.is_running for each in self._workers)

    def state(self) -> WorkState:
        problems = [each.problem for each in self._workers if each.problem is not None]
        facts = {each.name: each.running for each in self._workers}
        is_running = all(each.is_running for each in self._workers)
        return WorkState("queues", is_running, problems[0] if problems else None, {"running": facts})


class QueueWorker:
    """One queue: a thread that claims, and threads that run. `vesper.supervision.workers` has one for mailboxes."""

    def __init__(self, host: Host, rules: QueueRules, watch: QueueWatch | None = None) -> None:
        self.name = rules.name
        self.problem: str | None = None
        self._host = host
        self._rules = rules
        self._watch = watch
        self._changed = threading.Condition()
        self._held: dict[int, Due] = {}
        """Rows that this worker has, by their ids."""
        self._equipped: set[str] = set()
        """Semantic hashes of nodes that have all they need in this process."""
        self._is_stopping = False
        self._thread: threading.Thread | None = None
        self._last_lane: str | None = None
        self._run_seconds = 1.0
        """Mean time of the last runs."""

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=f"vesper-queue-{self.name}", daemon=True)
            self._thread.start()

    def request_stop(self) -> None:
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()

    def join(self, timeout: float | None) -> None:
        if self._thread is not None:
            self._thread.join(timeout)

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def running(self) -> int:
        """The number of rows that this worker has."""
        return len(self._held)

    # -- claiming ---------------------------------------------------------------------------------

    def _work(self) -> None:
        threads = self._rules.settings.threads
        leases = Repeating(f"vesper-queue-{self.name}-leases", self._host.config.journal.lease / 3, self._renew)
        leases.start()
        try:
            with ThreadPoolExecutor(threads, thread_name_prefix=f"vesper-queue-{self.name}") as pool:
                while not self._is_stopping:
                    self._turn(pool, threads)
        finally:
            leases.stop()

    def _turn(self, pool: ThreadPoolExecutor, threads: int) -> None:
        """Claim and submit what there is room for; wait where that is nothing."""
        is_batched = not self._rules.is_limited and self._run_seconds < _SHORT_SECONDS
        capacity = threads * _BATCH if is_batched else threads
        room = capacity - len(self._held)
        submitted = 0
        try:
            # Short runs are claimed by the half batch: a claim of few costs as much as one of many.
            claimed = self._claim(room) if room > 0 and (not is_batched or 2 * room >= capacity) else ()
            try:
                for due, run in claimed:
                    pool.submit(self._perform, due, run)
                    submitted += 1
            finally:
                for due, _ in claimed[submitted:]:  # without renewal their leases end, and they are claimed again
                    self._held.pop(due.id, None)
        except Exception as error:  # noqa: BLE001  # logged, and tried again: this thread must not end
            self._report(f"queue {self.name}: runs are not claimed: {type(error).__name__}: {error}")
        with self._changed:
            if not submitted and not self._is_stopping:
                self._changed.wait(self._rules.settings.poll if self.problem is None else _PROBLEM_SECONDS)

    def _claim(self, limit: int) -> Sequence[tuple[Due, Run | None]]:
        rules, settings = self._rules, self._rules.settings
        if self._host.is_closed:
            self.request_stop()
            return ()
        try:
            if self._watch is not None:
                self._watch.look()
            claimed = self._host.journal.claim_queued(
                rules.name,
                limit,
                round(self._host.config.journal.lease * 1_000_000),
                queue_limit=settings.concurrency,
                lane_limit=rules.lane_concurrency,
                queue_rate=None if settings.rate is None else (settings.rate.limit, settings.rate.per_us),
                lane_rate=None if rules.lane_rate is None else (rules.lane_rate.limit, rules.lane_rate.per_us),
                ahead_us=round(_AHEAD_POLLS * settings.poll * 1_000_000),
                after_lane=self._last_lane,
            )
        except JournalError as error:
            self._report(f"queue {self.name}: the journal cannot be used: {error}")
            return ()
        self.problem = None
        for due, _ in claimed:
            self._held[due.id] = due
            self._last_lane = due.lane
        return claimed

    def _renew(self) -> None:
        """Renew the leases of rows; those of runs are renewed by the Host."""
        try:
            self._host.journal.renew_due(list(self._held.values()))
        except JournalError as error:
            self._report(f"queue {self.name}: leases could not be renewed: {error}")

    # -- running ----------------------------------------------------------------------------------

    def _perform(self, due: Due, run: Run | None) -> None:
        try:
            # Until the start that a rate gives.
            sleep(min(due.start_in_us / 1_000_000, _AHEAD_POLLS * self._rules.settings.poll))
            if is_lost_too_often(due, run):
                self._give_up(due, run)
                return
            count(QUEUES_STARTED, (self.name, due.node_id or ""))
            outcome = self._unsettled(due) if run is None else self._finish(due, run)
            if outcome is not None:
                self._settle(due, outcome)
        except HostClosed:
            self.request_stop()
        except Exception as error:  # noqa: BLE001  # it is about this run: its lease ends, and it is tried again
            self._report(f"queue {self.name}: execution {due.execution} of {due.node_id}: {error}")
        finally:
            with self._changed:
                self._held.pop(due.id, None)
                self._changed.notify_all()

    def _finish(self, due: Due, run: Run) -> Outcome | None:
        """Run to the end, and return an outcome that is left to settle."""
        host, began = self._host, monotonic()
        if _losses(due):
            run.commit()  # its HANDOFF says that it was begun: one that is lost beside others is not to blame
        start = run.recorded[0].body
        texts = [str(start[name]) for name in ("node_id", "semantic_hash", "engine")]
        summary = Summary(run.execution, texts[0], texts[1], Status.RUNNING, None, 0, 0, "", 0, texts[2], False, False)
        inputs = start["inputs"]
        assert isinstance(inputs, Mapping)
        try:
            # A worker has lost it, perhaps by the direct engine: the reference finishes what it left.
            prepared = host.prepared_of(summary, inputs, "python" if _losses(due) else None)
            if texts[1] not in self._equipped:
                host.check_equipped(prepared.compiled.node, prepared.plans)
                self._equipped.add(texts[1])
        except ConfigError as error:
            self._report(f"queue {self.name}: {due.node_id} cannot run in this process: {error}")
            self._give_back(due, round(host.config.journal.lease * 1_000_000))  # others can take the run over then
            return None
        if prepared.engine != summary.engine:  # its route has changed since it was put here
            run.commit()
            run = host.journal.take_over(run.execution, prepared.engine)
        outcome = host.finish(run, prepared).outcome
        self._run_seconds += (monotonic() - began - self._run_seconds) / 8
        return None if outcome is None or is_settled(outcome) else outcome

    def _unsettled(self, due: Due) -> Outcome | None:
        """Return the outcome of a run that ended without being settled; give back a row that is not of a worker."""
        journal = self._host.journal
        assert due.execution is not None  # a row of this kind has a run
        try:
            status = journal.summary(due.execution).status
        except UnknownExecution:  # pruned
            status = Status.WAITING
        if status is Status.ENDED:
            return recorded_outcome(journal.read(due.execution).entries[-1].entry.body)
        if status is Status.RUNNING:  # another process has it
            self._give_back(due, _ELSEWHERE_US)
        else:  # in doubt, or it waits: no work of a queue
            journal.remove(due)
        return None

    def _settle(self, due: Due, outcome: Outcome) -> None:
        journal = self._host.journal
        if is_settled(outcome):
            journal.remove(due)
            return
        terms = Terms.from_body(due.body)
        assert due.execution is not None
        if not is_retryable(outcome) or terms.attempt >= terms.attempts:
            self._bury(due)
            return
        place = Place(due.queue, due.priority, terms.next(due.execution))
        due_us = journal.now_us() + terms.backoff.wait_us(terms.attempt)
        retry(self._host, journal.read(due.execution), place, due_us)
        journal.remove(due)

    def _give_back(self, due: Due, delay_us: int) -> None:
        """Leave a row to a later claim; that is no loss."""
        journal = self._host.journal
        journal.release(due, journal.now_us() + delay_us, due.attempts + 1)

    def _give_up(self, due: Due, run: Run | None) -> None:
        """End a run that workers lose again and again, and make it a dead letter."""
        why = f"given up: {MAX_LOSSES} workers began it, and each died or failed before its end"
        if run is not None:
            fault = EngineFault(why)
            run.append(Entry(Kind.END, body=outcome_record(fault)))
            run.commit(Status.ENDED, fault.kind)
        self._bury(due)
        _log.error("queue %s: execution %s of %s is a dead letter: %s", self.name, due.execution, due.node_id, why)

    def _bury(self, due: Due) -> None:
        self._host.journal.release(due, None, due.attempts, due.queue + DEAD_SUFFIX)
        count(QUEUES_DEAD_LETTERS, (self.name, due.node_id or ""))

    def _report(self, problem: str) -> None:
        """Log a problem once, until work succeeds again."""
        problem = self._host.redact(problem)
        if problem != self.problem:
            _log.warning("%s", problem)
        self.problem = problem


def _losses(due: Due) -> int:
    """Return how many claims before this one neither ended the run nor gave its row back."""
    return due.fence - 1 - due.attempts


def is_lost_too_often(due: Due, run: Run | None) -> bool:
    begun = None if run is None else sum(1 for each in run.recorded if each.kind is Kind.HANDOFF)
    return _losses(due) >= MAX_LOSSES and (begun is None or begun >= MAX_LOSSES)
