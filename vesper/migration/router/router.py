"""The program of a node in migration: it selects the engines of each request.

A `RoutedProgram` is a program like any other, so every caller of programs runs it. Before a request runs, it reads what
this process knows of the node (`Live.local`) and draws; nothing waits for a store. Whatever goes wrong with the direct
engine or with comparing, the caller gets Python's answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from vesper.engines.direct_engine import DirectProgram, Plan, Route
from vesper.engines.engine import Execution, FastEntry, Limits, ModalProgram, Observer, Raises, Unwrap
from vesper.engines.outcome import Outcome, Returned
from vesper.engines.python_engine import PythonProgram
from vesper.host.host import Host
from vesper.host.prepared import Prepared
from vesper.host.routed import HostedProgram
from vesper.journal.journal import Summary
from vesper.migration.compare.reports import Fault, Lost
from vesper.migration.compare.transcript import Transcript
from vesper.migration.control.modes import Mode
from vesper.migration.router.context import Chooser, RoutingContext
from vesper.migration.router.fast_entry import NodeFastEntry
from vesper.migration.router.shadow_feed import Agreed, ShadowFeed
from vesper.migration.shadow.recorded_program import RecordedProgram, transcript_of
from vesper.migration.shadow.routed_programs import GuardedProgram, PairedProgram
from vesper.migration.workers.counted_program import CountedProgram
from vesper.migration.workers.inflight_counters import Slot
from vesper.observe.metrics import count
from vesper.values.base_types import is_a
from vesper.values.generated.metrics import EXECUTIONS_TOTAL
from vesper.values.model import Value

_MESSAGE = 500


class RoutedProgram(FastEntry, ModalProgram, HostedProgram):
    """A node on the engine that its mode selects."""

    def __init__(
        self,
        context: RoutingContext,
        python: PythonProgram,
        agreed: Agreed | None = None,
        on_host: Callable[[Host], None] | None = None,
    ) -> None:
        """`on_host` receives each Host that performs effects of the node."""
        self._context = context
        self._python = python
        self._on_host = on_host
        self.live = context.live
        self.chooser = Chooser(context)
        self._feed = ShadowFeed(context, python, agreed)
        self._recorded = RecordedProgram(python, self._feed.put)
        self._both: tuple[bytes, GuardedProgram, PairedProgram] | None = None
        self._way_in: NodeFastEntry | None = None
        self._making = threading.Lock()

    @property
    def semantic_hash(self) -> str:
        return self._context.compiled.semantic_hash

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> Execution:
        """Start an unrouted execution on Python: its caller completes the requests, and nothing records them."""
        return self._python.start(inputs, now, limits, observe, is_traced)

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        """Run a node without effects."""
        mode = self.live.local.mode
        if not is_a(inputs, dict):
            mode = Mode.PYTHON_ONLY  # malformed inputs: Python raises the error, and no engine is compared
        if mode is Mode.DIRECT_ONLY and not self.chooser.is_sampled():
            self._count(mode, "direct")
            return self._guarded_program().call(inputs, now, limits)
        if mode is Mode.CANARY_DIRECT and self.chooser.is_in_canary(inputs):
            self._count(mode, "direct")
            return self._paired().call(inputs, now, limits)
        self._count(mode, "python")
        if not self.chooser.is_followed(mode):
            return self._python.call(inputs, now, limits)
        return self._recorded.call(inputs, now, limits)

    def _count(self, mode: Mode, engine: str) -> None:
        """Count a call that the fast entry has not counted. The Host counts its own runs."""
        self.live.served(mode, engine)
        count(EXECUTIONS_TOTAL, (self._context.key.node, engine))

    @property
    def mode(self) -> str:
        return self.live.local.mode.value

    def rerun(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        return self._python.call(inputs, now, limits)

    # -- the fast entry ---------------------------------------------------------------------------

    def fast_entry(
        self, unwrap: Unwrap, takes_now: bool, raises: Raises | None = None
    ) -> Callable[..., dict[str, Any]] | None:
        """Return the route of the extension; None where the direct engine runs in another process."""
        direct, slot = self._context.direct, None
        if isinstance(direct, CountedProgram):
            slot, direct = direct.slot, direct.program
        if not isinstance(direct, DirectProgram):
            return None
        with self._making:  # two threads that load the node would make one each, and one would never be drained
            if self._way_in is None:
                self._way_in = self._make_fast_entry(direct, slot, unwrap)
            return self._way_in.call

    @property
    def native(self) -> Route | None:
        """Return the route of the fast entry, whose native calls follow the mode of the node."""
        return None if self._way_in is None else self._way_in.route

    def _make_fast_entry(self, direct: DirectProgram, slot: Slot | None, unwrap: Unwrap) -> NodeFastEntry:
        return NodeFastEntry(self._context, self, self._python, direct, (slot or Slot.unshared()).flights, unwrap)

    def planned(self, plan: Plan, inputs: Mapping[str, object], now: datetime | None = None) -> Outcome:
        """Carry out a request that the fast entry planned. A plan that does not fit the present mode is replaced."""
        mode = self.live.local.mode
        match plan:
            case Plan.PYTHON:
                return self._python.call(inputs, now)
            case Plan.DIRECT if mode is Mode.DIRECT_ONLY and is_a(inputs, dict):
                self._count(mode, "direct")
                return self._guarded_program().call(inputs, now)
            case Plan.FOLLOWED if mode is not Mode.PYTHON_ONLY:
                self._count(mode, "python")
                return self._recorded.call(inputs, now)
            case _:
                return self.call(inputs, now)

    def seen(
        self,
        inputs: Mapping[str, object],
        outputs: Mapping[str, object] | None,
        took_ns: int | None,
        is_chosen: bool,
        broke: str | None,
        now: datetime | None = None,
    ) -> None:
        """Take over an execution from the fast entry. It is followed again, or its fault is reported."""
        found: Transcript | Lost | None = None
        if outputs is not None:
            found = transcript_of(inputs, now, (), Returned(cast(Mapping[str, Value], outputs)))
        if broke is not None:
            told = "it is at fault" if self._context.is_sensitive else f"it is at fault: {broke}"
            self.live.report(Fault(told[:_MESSAGE], found if isinstance(found, Transcript) else None))
        elif found is not None:
            self._feed.put(found, took_ns, None, is_chosen, is_timed=False)

    def drain(self) -> None:
        """Report everything that the fast entry collected."""
        if self._way_in is not None:
            self._way_in.drain()

    def close(self) -> None:
        if self._way_in is not None:
            self._way_in.close()

    def after_fork(self) -> None:
        self._making = threading.Lock()  # a thread of the parent may have held it
        if self._way_in is not None:
            self._way_in.after_fork()

    # -- in a Host --------------------------------------------------------------------------------

    def attach_host(self, host: Host) -> None:
        """Subscribe to lost runs of a Host, and delay shadow runs while it serves callers.

        A lost run was left by a dead process under the direct engine.
        """
        host.on_lost.append(self._report_lost_run)
        self._context.followers.yield_to(host)
        if self._on_host is not None:
            self._on_host(host)

    def _report_lost_run(self, run: Summary) -> None:
        if run.semantic_hash == self.semantic_hash:
            self.live.lost_run(run.execution)

    def route(self, prepared: Prepared, inputs: Mapping[str, object], execution: str) -> Prepared:
        """Return the engines for one run of a node with effects, by its mode."""
        mode = self.live.local.mode
        if mode is Mode.DIRECT_ONLY and not self.chooser.is_sampled(execution):
            self.live.served(mode, "direct")
            return replace(prepared, program=self._guarded_program(), engine="interp")
        if mode is Mode.CANARY_DIRECT and self.chooser.is_in_canary(inputs):
            self.live.served(mode, "direct")
            return replace(prepared, program=self._paired(), engine="python")
        self.live.served(mode, "python")
        if not self.chooser.is_followed(mode):
            return replace(prepared, program=self._python, engine="python")
        return replace(prepared, program=self._recorded, engine="python")

    def _guarded_program(self) -> GuardedProgram:
        return self._programs()[1]

    def _paired(self) -> PairedProgram:
        return self._programs()[2]

    def _programs(self) -> tuple[bytes, GuardedProgram, PairedProgram]:
        """Return the programs of the current key.

        They are immutable, and shared by all requests until the key changes.
        """
        key = self._context.keyed.key
        both = self._both
        if both is None or both[0] != key:
            pair = self._context.pair(self._python, key)
            self._both = both = key, GuardedProgram(pair), PairedProgram(pair)
        return both
