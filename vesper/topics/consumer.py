"""One consumer group of one process: takes messages, runs the handler, retries, and finishes.

One thread uses the source and decides; up to `concurrency` threads run the handler. What an attempt came to is in the
journal under the run key of the attempt: another process that gets the message later continues at the next attempt.
"""

from __future__ import annotations

import heapq
import json
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count as numbers
from typing import Any, Final

from vesper.effects.performer import EffectFailed
from vesper.effects.settings import ConfigError
from vesper.host.background_work import WorkNode
from vesper.host.host import Host, HostClosed
from vesper.host.in_doubt import InDoubt
from vesper.host.run_context import KeyReused, KeyRunning, run_context
from vesper.host.waiting import RunWaits
from vesper.journal.journal import JournalError
from vesper.language.work_bindings import EventsField
from vesper.observe.metrics import count, set_gauge
from vesper.topics.message import Message, Source
from vesper.topics.records import Letter, TopicRecords
from vesper.topics.sources import open_source
from vesper.values.generated.metrics import TOPIC_LAG, TOPIC_MESSAGES
from vesper.values.json_value import canonical_text, parse_json
from vesper.values.problem import ValueProblem
from vesper.values.vesper_error import VesperError

POLL_SECONDS: Final = 0.02
"""Interval of polls while messages run; without messages it grows to `MAX_POLL_SECONDS`."""
MAX_POLL_SECONDS: Final = 0.25
MAX_RETRYING: Final = 1000
"""Messages of a group that wait for their next attempt in one process."""
_OUTAGE_SECONDS: Final = 1.0
_BUSY_SECONDS: Final = 0.5
"""First wait for a message that another process runs; doubled up to `_MAX_BUSY_SECONDS`."""
_MAX_BUSY_SECONDS: Final = 4.0
_MAX_REASON: Final = 2000
"""Characters of the reason of a dead letter."""
_FINAL_PHASES: Final = ("constraint", "precondition")
"""Contracts of the inputs alone: another attempt breaks them too."""
_log = logging.getLogger("vesper.topics")


@dataclass(frozen=True, slots=True)
class _Ended:
    """What became of an attempt: finished, to be repeated after a time, or given up."""

    result: str
    """`done`, `retried`, `dead`; `again` and `busy`, for a run of another process, repeat the same attempt."""
    wait_seconds: float = 0.0
    code: str = ""
    why: str = ""
    execution: str | None = None


class Consumer:
    """Runs one node for the messages of its topic. Raises `ConfigError` for a topic that is not configured."""

    def __init__(self, host: Host, node: WorkNode, field: EventsField, is_paused: Callable[[], bool]) -> None:
        self.field = field
        self.node_id = node.id
        self.problem: str | None = None
        self.lag: int | None = None
        self._host = host
        self._node = node
        self._is_paused = is_paused
        self._records = TopicRecords(host)
        self._is_sensitive = node._prepare(host).plans.is_sensitive
        try:
            self._max_payload = host.event_topics().settings_of(field.topic).max_payload
        except EffectFailed as failure:
            raise ConfigError(f"{node.id}: events", failure.message) from None
        self._labels = (field.topic, field.group)
        self._source: Source | None = None
        self._ended: queue.SimpleQueue[tuple[Message, int, _Ended]] = queue.SimpleQueue()
        self._held: dict[str, Message] = {}
        """Messages that are not finished, by position."""
        self._ready: deque[tuple[Message, int]] = deque()
        self._retries: list[tuple[float, int, Message, int]] = []
        self._busy_seconds: dict[str, float] = {}
        """Next wait for each message that another process runs, by position."""
        self._unsettled: list[tuple[Message, int, _Ended]] = []
        """Ends that are not yet recorded in the source or the journal."""
        self._order = numbers()
        self._running = 0
        self._next_keep = 0.0
        self._wake = threading.Event()
        self._is_stopping = False
        self._pool = ThreadPoolExecutor(field.concurrency, f"vesper-topic-{field.topic}")
        self._thread = threading.Thread(target=self._loop, name=f"vesper-topics-{field.group}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def request_stop(self) -> None:
        """Take nothing more."""
        self._is_stopping = True
        self._wake.set()

    def stop(self, timeout: float | None = None) -> bool:
        """Wait for running messages and give the others back; False where some still run."""
        self.request_stop()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        self._pool.shutdown(wait=False)
        return not self._thread.is_alive()

    def measure(self) -> None:
        """Set the gauge of the lag; any thread may call it. Raises `TopicUnavailable`."""
        if self._source is not None and self._thread.is_alive():
            self.lag = self._source.lag()
            set_gauge(TOPIC_LAG, self._labels, self.lag)

    def facts(self) -> dict[str, Any]:
        """Return the state of the consumer as JSON values."""
        names = {"topic": self.field.topic, "group": self.field.group, "node": self.node_id}
        return {**names, "lag": self.lag, "running": self._running, "retrying": len(self._retries)}

    # -- the thread that decides ------------------------------------------------------------------

    def _loop(self) -> None:
        idle = POLL_SECONDS
        while not (self._is_stopping and self._running == 0):
            try:
                is_busy = self._turn()
                idle = POLL_SECONDS if is_busy or self._running else min(2 * idle, MAX_POLL_SECONDS)
                pause = 0.0 if is_busy else idle
                self.problem = None
            except (VesperError, EffectFailed) as problem:  # the broker or the journal is away: wait for it
                pause = _OUTAGE_SECONDS
                self._report(str(problem))
            except Exception as problem:  # noqa: BLE001  # logged; a consumer must not end
                pause = _OUTAGE_SECONDS
                self._report(f"{type(problem).__name__}: {problem}")
                _log.exception("the consumer %s of `%s` broke; it goes on", self.field.group, self.field.topic)
            if self._wake.wait(pause):
                self._wake.clear()
        if self._source is not None:
            try:
                self._source.release(list(self._held.values()))
                self._source.close()
            except (VesperError, EffectFailed) as problem:
                _log.warning("messages of `%s` wait for their lease: %s", self.field.topic, problem)

    def _turn(self) -> bool:
        """Settle ended runs and start others; True where there may be more to do at once."""
        source = self._source
        if source is None:
            field = self.field
            capacity = max(1000, 10 * field.concurrency)
            source = self._source = open_source(self._host, field.topic, field.group, field.is_ordered, capacity)
        self._settle(source)
        now = time.monotonic()
        if now >= self._next_keep:
            source.keep(list(self._held.values()))
            self._next_keep = now + source.keep_seconds
        if self._is_stopping or self._is_paused():
            return False
        while self._retries and self._retries[0][0] <= now:
            _, _, message, attempt = heapq.heappop(self._retries)
            self._ready.append((message, attempt))
        self._start_ready()
        room = min(self.field.concurrency - self._running, MAX_RETRYING - len(self._retries))
        if room <= 0:
            return False
        taken = source.take(room)
        for message in taken:
            self._hold(message)
        self._start_ready()
        return bool(taken)

    def _settle(self, source: Source) -> None:
        while True:
            try:
                ended = self._ended.get_nowait()
            except queue.Empty:
                break
            self._running -= 1
            self._unsettled.append(ended)
        finished: list[Message] = []
        for message, attempt, end in self._unsettled:
            if end.result == "dead":
                self._bury(message, attempt, end)
            if end.result in ("done", "dead"):
                finished.append(self._held.get(message.position, message))
        following = source.finish(finished) if finished else []
        unsettled, self._unsettled = self._unsettled, []
        now = time.monotonic()
        for message, attempt, end in unsettled:
            busy_seconds = self._busy_seconds.pop(message.position, _BUSY_SECONDS)
            if end.result in ("retried", "again", "busy"):
                following_attempt, wait_seconds = attempt + (end.result == "retried"), end.wait_seconds
                if end.result == "busy":
                    wait_seconds = busy_seconds
                    self._busy_seconds[message.position] = min(2 * busy_seconds, _MAX_BUSY_SECONDS)
                due = now + wait_seconds
                heapq.heappush(self._retries, (due, next(self._order), message, following_attempt))
            else:
                self._held.pop(message.position, None)
            if end.result not in ("again", "busy"):
                count(TOPIC_MESSAGES, (*self._labels, end.result))
        for message in following:
            self._hold(message)

    def _bury(self, message: Message, attempt: int, end: _Ended) -> None:
        field, payload = self.field, message.payload if len(message.payload) <= self._max_payload else None
        letter = Letter(
            field.topic, field.group, self.node_id, message.id, message.event_key, payload, message.position, attempt,
            end.code, end.why[:_MAX_REASON], end.execution, time.time_ns() // 1000, self._is_sensitive,
        )  # fmt: skip
        if self._records.bury(letter):
            why = "" if self._is_sensitive else f": {end.why}"
            _log.error("message %s of `%s` is a dead letter (%s)%s", message.id, field.topic, end.code, why)

    def _hold(self, message: Message) -> None:
        if message.position not in self._held:
            self._ready.append((message, 1))
        self._held[message.position] = message  # a source may hand out a message twice; the last one is finished

    def _start_ready(self) -> None:
        while self._ready and self._running < self.field.concurrency:
            self._running += 1
            self._pool.submit(self._work, *self._ready.popleft())

    def _report(self, problem: str) -> None:
        if problem != self.problem:
            _log.warning("the consumer %s waits: %s", self.field.group, problem)
        self.problem = problem

    # -- the threads that run ---------------------------------------------------------------------

    def _work(self, message: Message, attempt: int) -> None:
        try:
            end = self._attempt(message, attempt)
        except (JournalError, HostClosed) as problem:
            self._report(str(problem))
            end = _Ended("again", _OUTAGE_SECONDS)
        except Exception as problem:  # noqa: BLE001  # logged; the message must not be lost
            _log.exception("message %s of `%s` could not be run; it is tried again", message.id, self.field.topic)
            self._report(f"{type(problem).__name__}: {problem}")
            end = _Ended("again", self.field.backoff.max_us / 1e6)
        self._ended.put((message, attempt, end))
        self._wake.set()

    def _attempt(self, message: Message, attempt: int) -> _Ended:
        """Run the node under the key of the attempt; a run that has ended gives its recorded outcome."""
        if not message.is_for(self.field.group):
            return _Ended("done")
        try:
            payload = canonical_text(parse_json(message.payload))
        except (ValueError, ValueProblem) as problem:
            return _Ended("dead", code="bad_payload", why=f"the payload is no JSON: {problem}")
        parts = {"event_id": message.event_id, "event_key": message.event_key}
        members = [
            f"{json.dumps(name)}:{payload if part == 'payload' else json.dumps(parts[part])}"
            for part, name in self.field.fields
        ]
        text = "{" + ",".join(members) + "}"
        actor = f"topic:{self.field.topic}"[:1024]
        with run_context(actor=actor, key=message.run_key(attempt)) as report:
            try:
                outcome: dict[str, Any] = json.loads(self._node.run_json(text.encode(errors="replace")))
            except RunWaits as waits:  # the journal has it, and keepers finish it
                return _Ended("done", execution=waits.execution)
            except InDoubt as doubt:
                return _Ended("dead", code="in_doubt", why=str(doubt), execution=doubt.execution)
            except KeyReused as reused:
                return _Ended("dead", code="key_reused", why=str(reused), execution=reused.execution)
            except KeyRunning:
                return _Ended("busy")
        return self._judge(outcome, attempt, report.execution, report.is_repeat)

    def _judge(self, outcome: dict[str, Any], attempt: int, execution: str | None, is_repeat: bool) -> _Ended:
        kind, code, why = outcome["kind"], str(outcome.get("code", "")), str(outcome.get("message", ""))
        if kind == "returned":
            return _Ended("done", execution=execution)
        if kind == "failed" and code == "bad_input" and outcome.get("at") is None:
            return _Ended("dead", code="bad_payload", why=why)
        is_final = kind == "declared_error" or (kind == "contract_broken" and outcome["phase"] in _FINAL_PHASES)
        if is_final or attempt >= self.field.attempts:
            return _Ended("dead", code=code or kind, why=why, execution=execution)
        wait = self.field.backoff.wait_us(attempt)
        if is_repeat and execution is not None:
            ended_us = self._host.journal.read(execution).summary.updated_us
            wait = max(0, min(wait, ended_us + wait - time.time_ns() // 1000))
        return _Ended("retried", wait / 1e6, code, why, execution)
