"""The candidate of a name in one process: its sampled runs, its results, and its decision.

A request reads `is_following`, one attribute. Runs wait in the shadow queue of the process, whose admission bounds
their cost and whose watchdog abandons one that hangs. Counts go to the store once a second in numbered batches; a
killed process loses those since its last batch. A failure here never reaches the lead's caller.
"""

from __future__ import annotations

import itertools
import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from getpass import getuser
from weakref import WeakMethod

from vesper._direct import size_of
from vesper.config.versions import VersionSettings
from vesper.migration.candidates.comparison import CandidateVerdict, Comparison
from vesper.migration.candidates.counts import Counts
from vesper.migration.candidates.record import (
    MAX_PAIRS,
    Decision,
    NameRecord,
    Pair,
    apply_counts,
    read_record,
    start_pair,
)
from vesper.migration.compare.reports import Lost
from vesper.migration.compare.transcript import Transcript
from vesper.migration.shadow.recorded_program import LEFT
from vesper.migration.shadow.shadow_queue import HANG_FACTOR, Followers, Following
from vesper.migration.stores.store import Store
from vesper.observe.metrics import count
from vesper.values.generated.metrics import CANDIDATES_TOTAL
from vesper.values.model import printable

_log = logging.getLogger("vesper.migration")
_FLUSH_INTERVAL_SECONDS = 1.0
_NUMBERS = itertools.count(1)
"""Numbers of the candidates of this process: two of one pair, with other settings, count their batches apart."""
MAX_FAULTS = 100
"""Faults in one process within a second after which it follows the candidate no more."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of following, from the settings of migration."""

    deadline: float
    has_workers: bool
    is_ready: Callable[[], bool]
    """Whether the engine can follow now: in worker processes, while one of them is up."""


class LiveCandidate:
    """The candidate of one name in this process."""

    def __init__(
        self,
        name: str,
        settings: VersionSettings,
        pair: Pair,
        comparison: Comparison,
        followers: Followers,
        bounds: Bounds,
        process: Callable[[], str],
    ) -> None:
        self.name = name
        self.pair = pair
        self.followers = followers
        self._settings = settings
        self._comparison = comparison
        self._bounds = bounds
        self._process = process
        self._place = next(_NUMBERS)
        self._has_started = False
        """Whether this process has seen the pair in the store."""
        self._who = f"{_user()} ({name} in vesper.toml)"
        self._decision: Decision | None = None
        self._known: tuple[str, str] | None = None
        """Decisions that were logged: that of another pair, which does not apply."""
        self._stopped = ""
        """Why this process follows no more."""
        self._listeners: list[WeakMethod[Callable[[], None]]] = []
        self._draw = random.Random().random
        self.is_following = False
        """Whether runs are followed now."""
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._sync_lock = threading.Lock()
        self._counts = Counts()
        self._number = 0
        self._sending: tuple[int, Counts] | None = None
        """A batch that is sent unchanged until the store has it."""
        self._flushed = time.monotonic()

    def after_fork(self) -> None:
        """Begin anew in the child of a fork: the parent reports its own counts."""
        self._begin()
        self._draw = random.Random().random

    # -- what a request asks ----------------------------------------------------------------------

    def admits(self) -> bool:
        """Draw for one run of the lead."""
        share = self._settings.share
        return (
            self.is_following
            and (share >= 1.0 or self._draw() < share)
            and self._bounds.is_ready()
            and self.followers.admission.admits()
        )

    @property
    def is_promoted(self) -> bool:
        """Whether a person made the candidate the lead."""
        return self._decision is not None and self._decision.kind == "promoted"

    def listen(self, method: Callable[[], None]) -> None:
        """Call a bound method whenever a decision takes effect; it is held weakly."""
        self._listeners = [each for each in self._listeners if each() is not None]
        self._listeners.append(WeakMethod(method))

    # -- what a run came to -----------------------------------------------------------------------

    def put(self, found: Transcript | Lost, took_ns: int, execution: str | None) -> None:
        """Queue a run of the lead that has ended."""
        if isinstance(found, Lost):
            if found.why != LEFT:  # a run that waits is recorded again when it is resumed
                self._count(CandidateVerdict("unanswered", now_us()))
            return
        bounds = self._bounds
        self.followers.put(
            Following(
                lambda: self._judge(found, execution),
                self._count,
                size_of(found.inputs) + sum(size_of(each.value) for each in found.exchanges),
                None if bounds.has_workers else HANG_FACTOR * bounds.deadline,
                self._report_hang,
            )
        )

    def _judge(self, transcript: Transcript, execution: str | None) -> CandidateVerdict | None:
        if not self.is_following:  # it was withdrawn, or hung, while this run waited
            return None
        return self._comparison.judge(transcript, execution, now_us())

    def _report_hang(self, why: str) -> CandidateVerdict:
        self._stop(f"it hung: {why}")
        return CandidateVerdict("faults", now_us(), fault="hang")

    def _stop(self, why: str) -> None:
        self._stopped, self.is_following = why, False
        _log.error("%s: this process follows the candidate no more: %s", self.pair.candidate, why)

    def _count(self, judged: CandidateVerdict | Lost) -> None:
        if isinstance(judged, Lost):
            judged = CandidateVerdict("unanswered", now_us())
        with self._lock:
            self._counts.add(judged.result, judged.at_us, judged.group, judged.fault)
            faults = self._counts.results["faults"]
        if judged.result == "faults" and faults == 1:
            _log.warning("%s: the candidate is at fault (%s)", self.pair.candidate, printable(judged.fault))
        if faults >= MAX_FAULTS and not self._stopped:
            self._stop(f"{MAX_FAULTS:,} faults within a second")
        count(CANDIDATES_TOTAL, (self.name, judged.result))

    # -- the store --------------------------------------------------------------------------------

    def sync(self, store: Store, is_all: bool = False, is_killed: bool = False) -> None:
        """Read the decision, and send counts that are due. Raises `StoreError`.

        `is_killed` is True while a person has stopped the direct engine, on which candidates run.
        """
        with self._sync_lock:
            record = read_record(store, self.name)
            # A pair that gave way to newer ones comes back with a count alone: two processes would oust each other.
            is_absent = record.started(self.pair.id) is None
            if is_absent and not (self._has_started and len(record.pairs) >= MAX_PAIRS):
                record = start_pair(store, self.name, self.pair, self._who, now_us())
            self._has_started = True
            self._take_over(record, is_killed)
            if is_all or time.monotonic() - self._flushed >= _FLUSH_INTERVAL_SECONDS:
                self._flush(store)
                if is_all:  # what was counted while a batch was being sent again
                    self._flush(store)

    def _take_over(self, record: NameRecord, is_killed: bool) -> None:
        before, self._decision = self._decision, record.decision_on(self.pair.id)
        is_over = self._settings.until is not None and datetime.now(UTC).date() > self._settings.until
        is_open = self._decision is None or self._decision.kind == "resumed"
        self.is_following = is_open and not (is_over or is_killed or self._stopped)
        other = record.decision
        if other is not None and self._decision is None and self._known != (known := (other.pair, other.kind)):
            self._known = known
            if other.kind != "resumed":
                _log.warning(
                    "%s: a candidate was %s for other definitions than those here, which does not apply: %s leads",
                    self.name, other.kind, self.pair.lead,
                )  # fmt: skip
        if before != self._decision:
            if self._decision is not None:
                _log.warning(
                    "%s: the candidate %s is %s, by %s: %s", self.name, self.pair.candidate, self._decision.kind,
                    printable(self._decision.who), printable(self._decision.why),
                )  # fmt: skip
            for each in self._listeners:
                if (tell := each()) is not None:
                    tell()

    def _flush(self, store: Store) -> None:
        if self._sending is None:
            with self._lock:
                if self._counts.is_empty:
                    self._flushed = time.monotonic()
                    return
                self._number += 1
                self._sending, self._counts = (self._number, self._counts), Counts()
        number, counts = self._sending
        process = f"{self._process()} {self.pair.id} {self._place}"
        apply_counts(store, self.name, (self.pair, self._who), process, number, counts, now_us())
        self._sending, self._flushed = None, time.monotonic()


def now_us() -> int:
    return time.time_ns() // 1000


def _user() -> str:
    try:
        return getuser()
    except (OSError, KeyError):  # a user without a name
        return "unknown"
