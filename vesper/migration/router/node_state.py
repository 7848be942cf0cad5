"""The state of a node in one process: its mode, its trusted paths, and unreported findings.

A request reads `local`, one attribute that is replaced as a whole. Comparisons report here: agreements are collected
and sent to the store periodically, everything else is spooled and sent at once. A loss of trust takes effect in this
process immediately, whatever the store does.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from vesper.compiler import Compiled
from vesper.migration.compare.divergence import MAX_EXEMPLARS, Divergence
from vesper.migration.compare.paths import PathNote
from vesper.migration.compare.reports import Agreement, Disagreement, Fault, Lost, Report
from vesper.migration.control.controller import is_proven
from vesper.migration.control.modes import LADDER, Mode
from vesper.migration.control.state import Enumerated, NodeState, PathState, RunLost, Timed, Unknown
from vesper.migration.stores.store import Batch, Happened, NodeKey, SeenOnPath
from vesper.observe.metrics import count
from vesper.observe.spans import active_span
from vesper.values.generated.metrics import DIVERGENCES
from vesper.values.model import printable

_log = logging.getLogger("vesper.migration")
_MAX_PENDING = 200_000
"""Maximum number of fingerprints that wait for the store. Further ones are dropped, which only understates."""
_MAX_TIMES = 2_000
_MAX_MERGED = 500
"""Maximum number of divergences and faults per transaction."""
_NEW_PATH = PathState()


@dataclass(frozen=True, slots=True)
class Local:
    """Mode and trusted paths of the node, as this process knows them."""

    mode: Mode
    proven: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()
    points: frozenset[bytes] = frozenset()
    """Points of proven paths that returned without requests, for a check without hashing."""
    is_complete: bool = False
    version: int = -1
    attempt: int = 1
    """Attempt of the node. Another number restarts all evidence."""


@dataclass(frozen=True, slots=True)
class _CollectedData:
    """The collected data for one batch."""

    number: int
    attempt: int
    begun: Mapping[str, PathState]
    """Paths as known when the collection began."""
    agreed: dict[str, set[int]]
    compared: dict[str, int]
    unknown: int
    times: list[Timed]
    notes: dict[str, PathNote]
    served: dict[str, int]


class Live:
    """The state of one node in this process. Implements `reports.Watch`."""

    def __init__(
        self,
        key: NodeKey,
        compiled: Compiled,
        process: str,
        highest: Mode,
        spool: Callable[[NodeKey, Batch, bool], None],
        wake: Callable[[], None],
        divergence_of: Callable[[Disagreement | Fault], Happened],
    ) -> None:
        self.key = key
        self.compiled = compiled
        self.local = Local(Mode.SHADOW_DIRECT)
        self.listeners: list[Callable[[Local], None]] = []
        """Called with `local` whenever it is replaced, before any other thread acts on it."""
        self.witnesses: list[Callable[[Divergence], None]] = []
        """Called with every divergence and fault of this process."""
        self._process = process
        self._highest = highest
        self._spool = spool
        self._wake = wake
        self._divergence_of = divergence_of
        self._known: dict[str, PathNote] = {}
        """Notes of all paths in the store."""
        self._demoted: set[str] = set()
        """Paths demoted in this process, until the store has the divergence."""
        self._is_stopped = False
        """True while the direct engine is stopped in this process, until the store has the reason."""
        self._is_held = False
        """True while the store has been away for too long."""
        self._is_killed = False
        self._is_followed = True
        """False where this process cannot follow any more."""
        self._state = NodeState(key.node, key.epoch)
        self._version = -1
        self._attempt = self._state.attempt
        """Attempt in which agreements are collected."""
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        """Lock of the collected data. Held briefly, because callers wait for it."""
        self._mode_lock = threading.Lock()
        """Lock of the mode, so that a read of the store does not undo newer findings. Acquired before `_lock`."""
        self._finding = 0
        """Number of findings that are not queued yet."""
        self._number = 0
        self._begun = self._state.paths
        """Paths as the store had them when the present collection began. Agreements from before a restart of a path's
        evidence do not count for its new attempt; the same holds for agreements that other components collected."""
        self._agreed: dict[str, set[int]] = {}
        self._compared: dict[str, int] = {}
        self._pending = 0
        self._unknown = 0
        self._times: list[Timed] = []
        self._notes: dict[str, PathNote] = {}
        self._urgent: list[Batch] = []
        self._waiting: Counter[tuple[str, str]] = Counter()
        """Number of divergences of each kind that the store does not have yet."""
        self._sending: list[Batch] = []
        """Batches that are being sent, unchanged until the store has them."""
        self._unsaved: set[int] = set()
        """Numbers of batches that are neither in the spool nor in the store. While there are any, Python runs alone."""
        self._spool_failures = 0
        self._spool_failure_kinds: set[str] = set()
        self._served: dict[str, int] = {}

    def after_fork(self, process: str) -> None:
        """Restart the collection in the child of a fork: the parent reports its own."""
        self._process = process
        self._is_followed = True
        self._begin()
        with self._mode_lock:
            self._replace_local()  # the parent may have been replacing it

    def listen(self, tell: Callable[[Local], None]) -> None:
        """Call `tell` with `local` now and after each replacement, in order. It must not report anything."""
        with self._mode_lock:
            self.listeners.append(tell)
            tell(self.local)

    # -- what a request asks ----------------------------------------------------------------------

    def trusts(self, path: str) -> bool:
        local = self.local
        return path in local.proven or (local.is_complete and path not in self._demoted)

    def trusts_prefix(self, name: str) -> bool:
        return name in self.local.prefixes

    def served(self, mode: Mode, engine: str, count: int = 1) -> None:
        """Count requests for the traffic totals."""
        name = f"{mode.value}/{engine}"
        self._served[name] = self._served.get(name, 0) + count  # a lost count does not change a share noticeably

    # -- what was seen ----------------------------------------------------------------------------

    def report(self, report: Report) -> None:
        match report:
            case Agreement():
                self._agree(report)
            case Lost():
                self.count_lost(1)
            case Disagreement() | Fault():
                self._handle_finding(report)

    def agree_many(self, note: PathNote, fingerprints: Iterable[int], compared: int) -> None:
        """Add agreements that another component collected."""
        name = note.name
        with self._lock:
            self._count(name, note, fingerprints, compared)

    def time(self, python_ns: int | None, direct_ns: int | None) -> None:
        with self._lock:
            self._time(python_ns, direct_ns)

    def count_lost(self, count: int) -> None:
        """Count comparisons without a verdict."""
        with self._lock:
            self._unknown += count

    def hurry(self) -> None:
        """Wake the migration thread, which then takes over a possible difference."""
        self._wake()

    def lost_run(self, execution: str) -> None:
        """Report a run under the direct engine that never ended."""
        self._enqueue_finding(Happened(RunLost(execution)), {})

    def report_enumeration(self, event: Enumerated) -> None:
        """Report that both engines agreed on all inputs."""
        self._enqueue_finding(Happened(event), {})

    def add_replayed(self, agreed: Mapping[str, set[int]], paths: Mapping[str, str], lost: int) -> None:
        """Add executions of an older epoch that agreed under the present definition, by path."""
        with self._lock:
            for name, fingerprints in agreed.items():
                self._count(name, PathNote.from_text(paths[name]), fingerprints, len(fingerprints))
            self._unknown += lost

    def _agree(self, report: Agreement) -> None:
        name = report.note.name
        with self._lock:
            self._count(name, report.note, (report.fingerprint,), 1)
            self._time(report.python_ns, report.direct_ns)

    def _count(self, name: str, note: PathNote, fingerprints: Iterable[int], compared: int) -> None:
        seen = self._agreed.setdefault(name, set())
        before = len(seen)
        if self._pending < _MAX_PENDING:
            seen.update(fingerprints)
        self._pending += len(seen) - before
        self._compared[name] = self._compared.get(name, 0) + compared
        known = self._known.get(name) or self._notes.get(name)
        if known is None or not set(note.prefixes) <= set(known.prefixes):
            merged = (*(known.prefixes if known else ()), *note.prefixes)
            self._notes[name] = replace(note, prefixes=tuple(dict.fromkeys(merged)))

    def _time(self, python_ns: int | None, direct_ns: int | None) -> None:
        if (python_ns is not None or direct_ns is not None) and len(self._times) < _MAX_TIMES:
            self._times.append(Timed(python_ns, direct_ns))

    def _handle_finding(self, report: Disagreement | Fault) -> None:
        """Revoke trust in this process, then spool the finding, then send it to the store.

        If a later step fails, trust stays revoked in this process.
        """
        if isinstance(report, Fault) or report.difference.kind != "noise":
            count(DIVERGENCES, (self.key.node,))
        with self._mode_lock:
            self._finding += 1
            if self._revoke_trust(report):
                self._replace_local()
        try:
            happened = self._divergence_of(report)
        except Exception as error:  # noqa: BLE001  # a finding without a description still counts
            _log.exception("%s: what was found cannot be described", self.key.node)
            report = Fault(f"what was found cannot be described: {type(error).__name__}")
            happened = self._divergence_of(report)
        if happened.divergence is not None:
            span = active_span()
            if span is not None:  # the engines were compared inside the run
                span.note_divergence(happened.divergence.where, happened.divergence.fingerprint)
            for tell in self.witnesses:
                tell(happened.divergence)
        note = report.note if isinstance(report, Disagreement) else None
        self._enqueue_finding(happened, {} if note is None else {note.name: note.to_text()}, found=1)

    def _revoke_trust(self, report: Disagreement | Fault) -> bool:
        """Revoke trust; return False where there was none left."""
        if isinstance(report, Disagreement) and not report.difference.is_effect:
            path = "" if report.note is None else report.note.name
            if report.difference.kind == "noise" or path in self._demoted:
                return False
            self._demoted.add(path)
            return True
        was_stopped, self._is_stopped = self._is_stopped, True
        return not was_stopped

    def _enqueue_finding(self, happened: Happened, paths: Mapping[str, str], found: int = 0) -> None:
        """Queue a finding and spool it.

        A flood of one divergence must not cost callers a sync each: while another of its kind waits for the store, the
        next is written without exemplars and without a sync.
        """
        kept, before = happened.divergence, 0
        with self._lock:
            if kept is not None:
                before = self._waiting[kept.fingerprint, kept.path]
                self._waiting[kept.fingerprint, kept.path] += 1
                if before >= MAX_EXEMPLARS:
                    happened = replace(happened, divergence=replace(kept, exemplars=()))
            batch = self._batch(self._number + 1, happened=(happened,), paths=paths)
            self._number += 1
            self._urgent.append(batch)
        with self._mode_lock:
            self._finding -= found
        try:
            self._spool(self.key, batch, before == 0)
        except OSError as error:
            if isinstance(happened.event, Enumerated):  # no finding, and repeatable
                _log.warning("%s: that all inputs were run is told to the store alone: %s", self.key.node, error)
            else:
                self._keep_unsaved(batch.number)
                self._log_spool_failure(kept, error)
        self._wake()

    def _keep_unsaved(self, number: int) -> None:
        """Run Python alone until the store has the batch: only this process knows of it."""
        with self._lock:
            if any(each.number >= number for each in (*self._urgent, *self._sending)):
                self._unsaved.add(number)  # otherwise the store has it already
        with self._mode_lock:
            self._replace_local()

    def _log_spool_failure(self, kept: Divergence | None, error: OSError) -> None:
        """Log each kind once, and the first, tenth, hundredth… failure. The log contains locations, never values."""
        kind = "a lost run" if kept is None else f"divergence {kept.fingerprint} ({kept.kind} at {kept.where})"
        self._spool_failures += 1
        is_new = kind not in self._spool_failure_kinds
        self._spool_failure_kinds.add(kind)
        if is_new or str(self._spool_failures).strip("0") == "1":
            _log.error(
                "%s: %s cannot be spooled (%s). Until the store has it Python runs alone in this process; if it ends "
                "before that, it is lost. Found and not spooled so far: %s",
                self.key.node, printable(kind), error, f"{self._spool_failures:,}",
            )  # fmt: skip

    def log_unsaved(self) -> None:
        """Log how many findings are lost, when the process ends."""
        if count := len(self._unsaved):
            words = "divergence of %s was" if count == 1 else "divergences of %s were"
            _log.error(f"%s {words} lost: neither store nor spool could be written", f"{count:,}", self.key.node)

    def drop_agreements(self) -> None:
        """Drop collected agreements, whose fingerprints have another key."""
        with self._lock:
            self._agreed, self._compared, self._pending = {}, {}, 0
            self._sending = [replace(each, agreed={}) for each in self._sending]

    # -- what the store is told, and says ---------------------------------------------------------

    @property
    def has_unsent(self) -> bool:
        """True while a finding or a batch is not in the store."""
        return bool(self._urgent or self._sending)

    @property
    def has_gathered(self) -> bool:
        """True while collected data is in no batch yet."""
        return bool(self._compared or self._unknown or self._times or self._served)

    def due(self, is_all: bool) -> list[Batch]:
        """Return the batches to send, ordered by number.

        They are returned again until `remove_sent` was called for each. The store would take a lower number after a
        higher one for a repetition.
        """
        with self._lock:
            if self._sending:
                return list(self._sending)
            # One statement: Ctrl-C between two would lose the batches.
            urgent, self._sending, self._urgent = self._urgent, self._urgent, []
            self._number += is_all
            gathered = self._take_gathered(self._number) if is_all else None
        # Without the lock, for which callers wait: a flood takes long to merge.
        sending = _merge_batches(urgent)
        if gathered is not None:
            sending.append(self._batch_of(gathered))
        with self._lock:
            self._sending = sending
            return list(sending)

    def remove_sent(self, batch: Batch) -> None:
        """Remove a batch that the store has."""
        with self._lock:
            self._sending = [each for each in self._sending if each.number != batch.number]
            if not self.has_unsent:
                self._waiting.clear()
            had_unsaved = bool(self._unsaved)
            self._unsaved = {each for each in self._unsaved if each > batch.number}
        if had_unsaved and not self._unsaved:
            with self._mode_lock:
                self._replace_local()

    def _take_gathered(self, number: int) -> _CollectedData | None:
        """Take the collected data out; None where there is none."""
        begun, self._begun = self._begun, self._state.paths
        pin = self._state.pin
        is_over = pin is not None and pin.until_us <= now_us()
        if not (self.has_gathered or is_over):
            return None
        agreed, compared, unknown = self._agreed, self._compared, self._unknown
        times, notes, served = self._times, self._notes, self._served
        self._agreed, self._compared, self._pending = {}, {}, 0
        self._unknown, self._times, self._notes, self._served = 0, [], {}, {}
        return _CollectedData(number, self._attempt, begun, agreed, compared, unknown, times, notes, served)

    def _batch_of(self, gathered: _CollectedData) -> Batch:
        happened: list[Happened] = [Happened(each) for each in gathered.times]
        if gathered.unknown:
            happened.append(Happened(Unknown(gathered.unknown)))
        agreed = {
            path: SeenOnPath(
                frozenset(seen := gathered.agreed.get(path, set())),
                max(count, len(seen)),
                gathered.begun.get(path, _NEW_PATH).attempt,
            )
            for path, count in gathered.compared.items()
        }
        paths = {name: note.to_text() for name, note in islice(gathered.notes.items(), 10_000)}
        batch = self._batch(gathered.number, tuple(happened), agreed, paths, dict(gathered.served))
        return replace(batch, attempt=gathered.attempt)

    def _batch(
        self,
        number: int,
        happened: tuple[Happened, ...] = (),
        agreed: Mapping[str, SeenOnPath] | None = None,
        paths: Mapping[str, str] | None = None,
        served: Mapping[str, int] | None = None,
    ) -> Batch:
        return Batch(
            self._process,
            number,
            happened,
            agreed or {},
            paths=paths or {},
            attempt=self._attempt,
            served=served or {},
        )

    def update_state(self, state: NodeState, version: int, notes: Mapping[str, PathNote]) -> None:
        """Take over the state from the store."""
        with self._mode_lock:
            is_first = self._version < 0
            self._state, self._version = state, version
            self._known = dict(notes)
            if is_first:  # nothing was collected before
                self._begun = state.paths
            if state.attempt != self._attempt:
                # The collected agreements belong to the earlier attempt.
                with self._lock:
                    self._attempt, self._begun = state.attempt, state.paths
                    self._agreed, self._compared, self._pending = {}, {}, 0
            if not self._finding and not self.has_unsent:
                # The store has all findings of this process, and its mode reflects them.
                self._is_stopped = False
                self._demoted.clear()
            self._replace_local()

    def set_held(self, held: bool) -> None:
        """Run Python alone while the store has been away for too long."""
        with self._mode_lock:
            if held != self._is_held:
                self._is_held = held
                self._replace_local()

    def set_killed(self, killed: bool) -> None:
        with self._mode_lock:
            if killed != self._is_killed:
                self._is_killed = killed
                self._replace_local()

    def set_followed(self, followed: bool) -> None:
        """Run Python alone where this process cannot follow any more."""
        with self._mode_lock:
            if followed != self._is_followed:
                self._is_followed = followed
                self._replace_local()

    def _replace_local(self) -> None:
        """Replace `local`, and call the listeners with it."""
        self.local = self._local()
        for tell in self.listeners:
            tell(self.local)

    def _local(self) -> Local:
        state = self._state
        if self._is_stopped or self._is_held or self._is_killed or self._unsaved or not self._is_followed:
            return Local(Mode.PYTHON_ONLY, version=self._version, attempt=state.attempt)
        mode = min(state.mode, self._highest, key=lambda each: each.level)
        proven = frozenset(path for path in state.paths if path not in self._demoted and is_proven(state, path))
        notes = [self._known[path] for path in proven if path in self._known]
        return Local(
            mode,
            proven,
            frozenset(prefix for note in notes for prefix in note.prefixes),
            frozenset(note.points for note in notes if not note.settled and note.ending == "returned"),
            state.is_complete and not state.open and not self._demoted,
            self._version,
            state.attempt,
        )

    @property
    def state(self) -> NodeState:
        """The state as last read from the store."""
        return self._state


def _merge_batches(batches: list[Batch]) -> list[Batch]:
    """Merge many batches of one event each into a few.

    Each has the number of its last one: lower numbers in the spool count as sent with it.
    """
    found = []
    for first in range(0, len(batches), _MAX_MERGED):
        part = batches[first : first + _MAX_MERGED]
        kept: dict[str, Divergence] = {}
        for each in _events_of(part):
            if (seen := each.divergence) is not None:
                known = kept.get(seen.fingerprint)
                kept[seen.fingerprint] = seen if known is None else known.merge(seen)
        happened = tuple(
            each if each.divergence is None else replace(each, divergence=kept.pop(each.divergence.fingerprint, None))
            for each in _events_of(part)
        )
        paths = {name: text for batch in part for name, text in batch.paths.items()}
        found.append(replace(part[-1], happened=happened, paths=paths))
    return found


def _events_of(batches: list[Batch]) -> Iterator[Happened]:
    return (each for batch in batches for each in batch.happened)


def highest_mode(mode: str | None) -> Mode:
    """Return the highest mode that the configuration allows."""
    return LADDER[-1] if mode is None else Mode(mode)


def now_us() -> int:
    return time.time_ns() // 1000
