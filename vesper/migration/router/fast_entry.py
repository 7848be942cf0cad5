"""The fast entry of a node without effects: `node.call` during its migration.

`direct_engine.Route` handles the common cases in Rust: it calls the generated function or the direct engine, draws,
compares executions in a thread without the GIL, and collects agreements. Everything else returns here, as a planned
request to carry out from the start, or as an execution for Python to compare. So no decision is made in two places.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol
from weakref import WeakMethod

from vesper.engines.direct_engine import DirectProgram, Flight, Plan, Route
from vesper.engines.engine import Unwrap
from vesper.engines.outcome import Outcome
from vesper.engines.python_engine import PythonProgram
from vesper.migration.compare.paths import PathNote
from vesper.migration.compare.reports import Lost
from vesper.migration.control.modes import LADDER
from vesper.migration.router.context import RoutingContext
from vesper.migration.router.node_state import Live, Local

_log = logging.getLogger("vesper.migration")
_ENGINES = ("python", "direct")
_CLOSING = 5.0


class Routed(Protocol):
    """The part of `RoutedProgram` that the fast entry uses."""

    @property
    def live(self) -> Live: ...
    def planned(self, plan: Plan, inputs: Mapping[str, object], now: datetime | None) -> Outcome: ...
    def seen(
        self,
        inputs: Mapping[str, object],
        outputs: Mapping[str, object] | None,
        took_ns: int | None,
        is_chosen: bool,
        broke: str | None,
        now: datetime | None,
    ) -> None: ...


class NodeFastEntry:
    """The fast entry of one node."""

    def __init__(
        self,
        context: RoutingContext,
        routed: Routed,
        python: PythonProgram,
        direct: DirectProgram,
        flights: tuple[Flight, Flight],
        unwrap: Unwrap,
    ) -> None:
        self._routed = routed
        self._followers, admission = context.followers, context.followers.admission
        self._keyed = context.keyed
        self._sample = context.rules.shares.sample / 10_000
        self._unwrap = unwrap
        self._draining = threading.Lock()
        self._aside: deque[tuple[Any, ...]] = deque()
        """Executions with a possible difference, until a thread without locks of the node compares them."""
        self._route: Route = direct.route(
            python.entry,
            self._slow,
            self._hand_over,
            _weakly(routed.live.hurry),
            flights,
            is_bare=python.is_always_plain,
            deadline=context.rules.deadline,
            most_bytes=admission.most_bytes,
            keeps=not context.is_sensitive,
        )
        self.call: Callable[..., dict[str, Any]] = self._route.call_at if python.takes_now else self._route.call
        """Entry function; for a node that reads its start time, with the keyword `now`."""
        self._attempt = routed.live.local.attempt
        admission.listeners.append(self._route.admit)
        routed.live.listen(self._look)
        self._route.admit(admission.chance)

    @property
    def route(self) -> Route:
        return self._route

    def _look(self, local: Local) -> None:
        if local.attempt != self._attempt:
            self._attempt = local.attempt
            # The collected agreements belong to the earlier attempt. This must not wait: the caller holds locks of the
            # node that a draining thread may wait for. It must not compare either, because a difference takes the same
            # locks: the migration thread does that.
            self._take(is_counted=False)
            if self._aside:
                self._routed.live.hurry()
        trusted = None if local.is_complete else list(local.points)
        self._route.set(local.mode.level, trusted, self._keyed.key, self._sample)

    def _slow(self, plan: int, inputs: Mapping[str, Any], now: datetime | None = None) -> dict[str, Any]:
        return self._unwrap(self._routed.planned(Plan(plan), inputs, now), inputs)

    def _hand_over(
        self,
        inputs: Mapping[str, object],
        outputs: Mapping[str, object] | None,
        took_ns: int | None,
        is_chosen: bool,
        broke: str | None,
        now: datetime | None = None,
    ) -> None:
        try:
            self._routed.seen(inputs, outputs, took_ns, is_chosen, broke, now)
        except Exception as error:  # noqa: BLE001  # a failing comparison must not reach the caller
            _log.error("what a run came to could not be compared: %s", type(error).__name__)
            self._routed.live.report(Lost(f"comparing broke: {type(error).__name__}"))

    def drain(self) -> None:
        """Report everything that was collected since the last call.

        Concurrent calls wait for each other: agreements that one has taken and not reported yet would be missing in the
        next batch.
        """
        with self._draining:
            try:
                self._take(is_counted=True)
            finally:
                # After the agreements, which a difference revokes; and even if counting failed, because there is no
                # other copy of a difference.
                while self._aside:
                    self._hand_over(*self._aside.popleft())

    def _take(self, is_counted: bool) -> None:
        """Take over the collected data, without agreements unless `is_counted`. Possible differences are set aside."""
        live = self._routed.live
        agreed, times, served, lost, asked, followed, spent_ns, abandoned, handed = self._route.drain()
        self._aside.extend(handed)
        for points, fingerprints, compared in agreed if is_counted else ():
            live.agree_many(PathNote(points, (), "returned"), fingerprints, compared)
        for python_ns, direct_ns in times:
            live.time(python_ns, direct_ns)
        for mode, counts in zip(LADDER, served, strict=True):
            for engine, count in zip(_ENGINES, counts, strict=True):
                if count:
                    live.served(mode, engine, count)
        if lost:
            live.count_lost(lost)
        self._followers.admission.add_native_runs(asked, followed, spent_ns / 1_000_000_000)
        if abandoned:
            self._followers.note_abandoned(abandoned)

    def wait(self, timeout: float) -> bool:
        """Wait for queued shadow runs; return False after `timeout` seconds."""
        return self._route.wait(timeout)

    def close(self) -> None:
        """Follow queued executions for a limited time; the rest is lost."""
        self._route.wait(_CLOSING)
        self._route.close()
        self.drain()

    def after_fork(self) -> None:
        self._draining = threading.Lock()  # a thread of the parent may have held it
        self._aside.clear()  # the parent compares these
        self._route.after_fork()


def _weakly(method: Callable[[], None]) -> Callable[[], None]:
    """Return a function that calls a method and does not keep its object alive.

    The follower thread holds it, where the garbage collector does not see it.
    """
    held = WeakMethod(method)

    def call() -> None:
        found = held()
        if found is not None:
            found()

    return call
