"""Background checks of a routed node, in threads and processes that no caller waits for.

- Executions that agreed are repeated on both engines in the helper process, with marks: this compares every
  intermediate value and condition, and not only outcomes and requests. A new path is checked often, an old one rarely.
- Some of them are stored, and repeated under a later definition (`evidence_replay`).
- A node with few possible inputs is run on all of them (`enumeration`).
- The evidence of old definitions is deleted (`pruning`).
"""

from __future__ import annotations

import fcntl
import logging
import os
import random
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue

from vesper.migration.compare.reports import Agreement, Disagreement, Fault, Lost, Report
from vesper.migration.compare.transcript import Transcript
from vesper.migration.control.modes import Mode
from vesper.migration.control.state import CONTROLLER, Enumerated, Forget
from vesper.migration.router import evidence_replay
from vesper.migration.router.context import RoutingContext
from vesper.migration.router.node_state import now_us
from vesper.migration.stores.pruning import prune
from vesper.migration.stores.reservoir import Reservoir
from vesper.migration.stores.store import Store, StoreError
from vesper.migration.workers.enumeration import NotEnumerable, Position, domain_of, enumerate_all
from vesper.migration.workers.helper import Answer, Helper, Known
from vesper.storage.file_access import make_private_folder

_log = logging.getLogger("vesper.migration")
_CLOSE_CHECKS_PER_PATH = 64
"""Executions of a new path that are repeated, per process."""
_LATER_SHARE = 0.005
"""Share of later executions that are repeated."""
_MAX_NAMES = 10_000
_RETRY_SECONDS = 0.5
"""Seconds between two attempts to use a busy helper."""


class BackgroundChecks:
    """The background checks of one node."""

    def __init__(
        self,
        context: RoutingContext,
        store: Store,
        helper: Helper,
        folder: Path,
        redact: Callable[[str], str],
        retention: float | None,
    ) -> None:
        """`retention` is how many seconds the evidence of old definitions stays; None is for ever."""
        self._compiled = context.compiled
        self._live = context.live
        self._keyed = context.keyed
        self._store = store
        self._helper = helper
        self._folder = folder
        self._retention = retention
        self._known = Known.of(context.compiled, context.rules.tolerances)
        self._reservoir = Reservoir(context.key, context.is_sensitive, redact)
        self._looked_at: dict[str, int] = {}
        self._draw = random.Random().random
        self._begun_with = b""
        """Key of the store for which the node was last enumerated."""
        self._begin()

    def _begin(self) -> None:
        self._is_closing = False
        self._ends: SimpleQueue[None] = SimpleQueue()
        """Wakes the threads on closing."""
        self._has_said = False
        self._threads: list[threading.Thread] = []

    # -- executions that agreed -------------------------------------------------------------------

    def agreed(self, report: Agreement, transcript: Transcript, is_chosen: bool = False) -> None:
        """Offer an execution that agreed. Most offers cost one comparison of integers; threads may share it.

        `is_chosen` is True where the execution was drawn already.
        """
        name = report.note.name
        self._reservoir.offer(name, report.fingerprint, transcript)
        count = self._looked_at.get(name, 0)
        if count >= _CLOSE_CHECKS_PER_PATH and not is_chosen and self._draw() >= _LATER_SHARE:
            return
        if count or len(self._looked_at) < _MAX_NAMES:
            self._looked_at[name] = count + 1
        self._helper.rerun(self._known, transcript, self._keyed.key, then=self._report_repetition)

    def _report_repetition(self, answer: Answer) -> None:
        """Report a disagreement of a repetition. Its agreement has been counted before."""
        try:
            report = answer.result()
        except CancelledError:
            return
        if isinstance(report, Disagreement | Fault):
            self._live.report(report)

    def flush(self) -> None:
        """Store the offered executions. Raises `StoreError`."""
        self._reservoir.flush(self._store, now_us())

    # -- once, when a node begins, or its store is another ----------------------------------------

    def begin(self) -> None:
        """Start the one-time work in the background. One process per folder or store carries it out."""
        self._begun_with = self._keyed.key
        self._start_enumeration()
        self._start("carry", self._replay_evidence, "running executions of the last definition again")
        if self._retention is not None:
            self._start("prune", self._prune, "removing the evidence of old definitions")

    def look(self) -> None:
        """Enumerate again after the store was replaced.

        The new store does not have the result of the enumeration, and traffic brings too few distinct inputs to replace
        it. It starts once the node's mode counts evidence.
        """
        key, state = self._keyed.key, self._live.state
        if self._is_closing or key == self._begun_with:
            return
        if not self._begun_with:
            self._begun_with = key  # the store was away at the start; the work that began then counts for this one
        elif not state.is_complete and state.mode is not Mode.PYTHON_ONLY:
            self._begun_with = key
            self._start_enumeration()

    def _start_enumeration(self) -> None:
        self._start("enumeration", self._enumerate, "running all inputs that there can be")

    def _start(self, name: str, work: Callable[[], None], what: str) -> None:
        def guarded() -> None:
            try:
                work()
            except (StoreError, OSError) as error:
                _log.warning("%s: %s has to wait for the next start: %s", self._live.key.node, what, error)

        thread = threading.Thread(target=guarded, name=f"vesper-{name}", daemon=True)
        thread.start()
        self._threads.append(thread)

    def _enumerate(self) -> None:
        if not self._compiled.node.is_pure() or self._live.state.is_complete:
            return
        try:
            domain = domain_of(self._compiled)
        except NotEnumerable:
            return
        make_private_folder(self._folder)
        path = self._folder / f"{self._live.key.node}.enumerated"
        with path.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return  # another process enumerates
            found = enumerate_all(
                domain, self._live.key.epoch, self._run_part, Position(path), is_stopped=lambda: self._is_closing
            )
        if isinstance(found, Enumerated):
            self._live.report_enumeration(found)
        elif found is not None and not isinstance(found, Lost):
            self._live.report(found)

    def _run_part(self, start: int, count: int) -> Report | None:
        """Run a part of the enumeration in the helper. While the helper is busy with traffic, it is tried again."""
        while (answer := self._helper.enumerate_part(self._known, start, count, self._keyed.key)) is None:
            if self._is_ending():
                return Lost("the helper process was closed, or died too often")
            with suppress(Empty):
                self._ends.get(timeout=_RETRY_SECONDS)
        return self._wait_for_report(answer)

    def _replay_evidence(self) -> None:
        source = evidence_replay.older_epoch(self._store, self._live.key)
        if source is None or not evidence_replay.claim(self._store, self._live.key, f"pid {os.getpid()}", source):
            return
        found = evidence_replay.replay_evidence(self._store, source, self._rerun, is_stopped=self._is_ending)
        is_left = self._is_ending()
        self._live.add_replayed(found.agreed, found.paths, 0 if is_left else found.lost)
        for report in found.disagreements:
            self._live.report(report)
        if is_left:
            evidence_replay.release_claim(self._store, self._live.key)
            why = "the helper process died too often" if self._helper.is_given_up else "this process ends"
            _log.info(
                "%s: %d executions of the last definition agreed under this one; %s, and the next one runs the others",
                self._live.key.node, found.count, why,
            )  # fmt: skip
            return
        _log.info(
            "%s: %d executions of the last definition were run again under this one: %d agreed, %d do not apply",
            self._live.key.node, found.count + found.unfit + found.lost, found.count, found.unfit,
        )  # fmt: skip

    def _prune(self) -> None:
        """Delete the evidence of old epochs. Of several processes, one deletes each."""
        assert self._retention is not None
        event = Forget(CONTROLLER, "a later definition has long taken its place")
        gone = prune(
            self._store, self._live.state.settings, now_us(), round(self._retention * 1_000_000), event,
            self._live.key.node, is_stopped=lambda: self._is_closing,
        )  # fmt: skip
        if gone:
            _log.info("%s: the evidence of %d old definitions is gone", self._live.key.node, len(gone))

    def _is_ending(self) -> bool:
        """Return True where no further work is possible: closing, or without a helper. That is no finding."""
        if self._helper.is_given_up and not self._has_said:
            self._has_said = True
            _log.warning("%s: no more is run again beside its traffic: the helper died too often", self._live.key.node)
        return self._is_closing or self._helper.is_closed or self._helper.is_given_up

    def _rerun(self, transcript: Transcript) -> Report | None:
        answer = self._helper.rerun(self._known, transcript, self._keyed.key, is_recorded=False)
        return None if answer is None else self._wait_for_report(answer)  # not admitted: no comparison

    def _wait_for_report(self, answer: Answer) -> Report | None:
        """Wait for the report of the helper and return it."""
        try:
            return answer.result()
        except CancelledError:
            return Lost("the helper process was closed")

    def close(self) -> None:
        """Wait for the threads. The helper must be closed before, which ends their waits."""
        self._is_closing = True
        self._ends.put(None)
        for thread in self._threads:
            thread.join(10)

    def after_fork(self) -> None:
        """Restart in the child of a fork, also where the parent was closing."""
        self._reservoir.after_fork()
        self._begin()
