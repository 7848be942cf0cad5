"""The fast way into a node without effects: what `node.call` is where the node is being moved over.

`direct_engine.Route` does the common cases in Rust: it calls the generated function or the direct engine, draws coins,
compares what is short and gathers what agreed. Whatever else there is to do comes back here, as a request that is done
from the beginning the way it was planned, or as an execution that Python should see itself. So nothing is decided in
two places.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

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
    """What is asked of a `RoutedProgram` here."""

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


class WayIn:
    """One node."""

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
        self._admission = admission = context.followers.admission
        self._keyed = context.keyed
        self._sample = context.rules.shares.sample / 10_000
        self._unwrap = unwrap
        self._draining = threading.Lock()
        self._aside: deque[tuple[Any, ...]] = deque()
        """What the engines may differ in, until somebody who has no lock of the node looks at it."""
        self._is_closed = False
        self._route: Route = direct.route(
            python.entry,
            self._slow,
            self._hand_over,
            flights,
            is_bare=python.is_always_plain,
            deadline=context.rules.deadline,
            most_bytes=admission.most_bytes,
            keeps=not context.is_sensitive,
        )
        self.call: Callable[..., dict[str, Any]] = self._route.call_at if python.takes_now else self._route.call
        """Of a node that takes the time of its start, with that as the keyword `now`."""
        self._attempt = routed.live.local.attempt
        admission.listeners.append(self._route.admit)
        routed.live.listen(self._look)
        self._route.admit(admission.chance)

    def _look(self, local: Local) -> None:
        if local.attempt != self._attempt:
            self._attempt = local.attempt
            # What was gathered is of the attempt before. Nobody is waited for: who calls this has locks of the node,
            # and another that drains may wait for them. And nothing is looked at, because who finds a difference takes
            # the same locks: that is left to the thread that comes round.
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
        except Exception as error:  # noqa: BLE001  # the caller of the node is not to be troubled with it
            _log.error("what a run came to could not be compared: %s", type(error).__name__)
            self._routed.live.report(Lost(f"comparing broke: {type(error).__name__}"))

    def drain(self) -> None:
        """Tells the node what was gathered since the last time. While another thread does so this one waits: what that
        one has taken and not told yet would be missing in what is told, or saved before the end, next."""
        with self._draining:
            try:
                self._take(is_counted=True)
            finally:
                # After what agreed before them, which a difference takes away; and also where that could not be
                # counted: a difference may be among these, and nobody has another copy of it.
                while self._aside:
                    inputs, outputs, took_ns, *others = self._aside.popleft()
                    # However long it takes, at the end it is looked at here: nobody follows any more.
                    self._hand_over(inputs, outputs, None if self._is_closed else took_ns, *others)

    def _take(self, is_counted: bool) -> None:
        """Without the agreements, where they do not count. What has to be looked at is put aside."""
        live = self._routed.live
        agreed, times, served, lost, asked, followed, spent_ns, handed = self._route.drain()
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
            live.lost(lost)
        self._admission.fed(asked, followed, spent_ns / 1_000_000_000)

    def wait(self, timeout: float) -> bool:
        """Until what was put aside is followed; False where that took too long."""
        return self._route.wait(timeout)

    def close(self) -> None:
        """Follows what waits, as long as there is time; the rest is lost."""
        self._route.wait(_CLOSING)
        self._route.close()
        self.drain()
        self._is_closed = True

    def after_fork(self) -> None:
        self._draining = threading.Lock()  # a thread of the parent may have had it
        self._aside.clear()  # the parent looks at it
        self._is_closed = False  # the parent may have been closing it
        self._route.after_fork()
