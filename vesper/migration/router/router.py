"""The one way into a node that is being moved over: decides which engines run, and whose answer returns.

A `RoutedProgram` is a program like any other, so whatever runs nodes runs it. Before anything is run it looks at what
this process knows of the node (`Live.local`) and draws what has to be drawn; nothing waits for a store. Whatever goes
wrong with the direct engine or with comparing, the caller gets Python's answer.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol, TypeAlias, cast

from vesper.compiler import Compiled
from vesper.engines.direct_engine import DirectProgram, Plan
from vesper.engines.engine import Execution, Limits, Observer
from vesper.engines.outcome import Outcome, Returned
from vesper.engines.python_engine import PythonProgram
from vesper.host.host import Host, Prepared
from vesper.host.plans import plans_of
from vesper.host.sizes import size_of
from vesper.journal.errors import JournalError
from vesper.journal.journal import Summary
from vesper.journal.typed_json import encode
from vesper.migration.compare.comparator import Comparator
from vesper.migration.compare.noise import checked
from vesper.migration.compare.reports import Agreement, Fault, Lost, Report
from vesper.migration.compare.transcript import Transcript
from vesper.migration.control.modes import Mode
from vesper.migration.control.routing import Shares, is_in_canary, is_sampled
from vesper.migration.router.fast_entry import Ended, WayIn
from vesper.migration.router.node_state import Live
from vesper.migration.shadow.guarded_direct import PathedProgram
from vesper.migration.shadow.recorded_program import RecordedProgram, transcript_of
from vesper.migration.shadow.routed_programs import GuardedProgram, PairedProgram
from vesper.migration.shadow.shadow_queue import Followers, Following
from vesper.migration.shadow.shadow_run import follow_transcript
from vesper.migration.workers.counted_program import CountedProgram
from vesper.migration.workers.inflight_counters import Slot
from vesper.values.base_types import is_a
from vesper.values.model import Value

_MESSAGE = 500
_SHORT_NS = 50_000
"""A pure node that takes less is followed at once: handing it over would cost more."""


Agreed: TypeAlias = Callable[[Agreement, Transcript, bool], None]


class Keyed(Protocol):
    """Who knows the key of fingerprints and of routing."""

    @property
    def key(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Rules:
    """How requests of one node are routed."""

    shares: Shares
    routing_key: tuple[str, ...]
    deadline: float
    is_sensitive: bool
    is_apart: bool = False
    """The direct engine has processes of its own. Asking one takes longer than a short node, and there are fewer of
    them than threads that call: it follows in its own thread, one after the other."""


class Chooser:
    """Draws for each request whether it is in the canary, in the sample, and followed."""

    def __init__(self, node: str, rules: Rules, keyed: Keyed, followers: Followers) -> None:
        self._node = node
        self._rules = rules
        self._keyed = keyed
        self._sample = rules.shares.sample / 10_000
        self.draw = random.Random().random
        """For executions without a name: they have no journal."""
        self.admits = followers.admission.admits
        self.is_ready: Callable[[], bool] = lambda: True
        """Whether the direct engine can follow now."""

    def is_in_canary(self, inputs: Mapping[str, object]) -> bool:
        named = self._rules.routing_key
        chosen = {name: inputs.get(name) for name in named} if named else dict(inputs)
        try:
            text = encode(chosen)
        except JournalError:  # what cannot be written down is no input: Python says so to the caller
            return False
        return is_in_canary(self._node, text, self._keyed.key, self._rules.shares)

    def is_sampled(self, execution: str | None = None) -> bool:
        if execution is None:
            return self.draw() < self._sample
        return is_sampled(self._node, execution.encode(), self._keyed.key, self._rules.shares)

    def is_followed(self, mode: Mode) -> bool:
        """A request that Python leads. For the sample of direct_only no coin is drawn: it is all that guards answers
        which nobody compares, and a flood of another node, which is only watched, must not thin it out."""
        return mode is not Mode.PYTHON_ONLY and self.is_ready() and (mode is Mode.DIRECT_ONLY or self.admits())


class RoutedProgram:
    """A node on whichever engine its mode says."""

    way_in_takes_now = True
    """For `vesper/api/call_entry.py`."""

    def __init__(
        self,
        compiled: Compiled,
        python: PythonProgram,
        direct: PathedProgram,
        live: Live,
        comparator: Comparator,
        followers: Followers,
        keyed: Keyed,
        rules: Rules,
        agreed: Agreed | None = None,
        hosted_by: Callable[[Host], None] | None = None,
    ) -> None:
        """`agreed` is told of executions that were followed and agreed, with what was written down of each, and whether
        it was drawn to be looked at closely; `hosted_by` of each Host that performs effects of the node."""
        self._compiled = compiled
        self._agreed = agreed
        self._hosted_by = hosted_by
        self._python = python
        self._direct = direct
        self.live = live
        self._comparator = comparator
        self._followers = followers
        self._keyed = keyed
        self._rules = rules
        self.chooser = Chooser(compiled.node.node_id, rules, keyed, followers)
        self._both: tuple[bytes, GuardedProgram, PairedProgram] | None = None
        self._recorded = RecordedProgram(python, self._done)
        self._way_in: WayIn | None = None
        self._making = threading.Lock()

    @property
    def semantic_hash(self) -> str:
        return self._compiled.semantic_hash

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
            self.live.served(mode, "direct")
            return self._guarded().call(inputs, now, limits)
        if mode is Mode.CANARY_DIRECT and self.chooser.is_in_canary(inputs):
            self.live.served(mode, "direct")
            return self._paired().call(inputs, now, limits)
        self.live.served(mode, "python")
        if not self.chooser.is_followed(mode):
            return self._python.call(inputs, now, limits)
        return self._recorded.call(inputs, now, limits)

    def again(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        """What a request that was served ended with, for a caller who wants to know all of it: no second request."""
        return self._python.call(inputs, now, limits)

    # -- the fast way in --------------------------------------------------------------------------

    def way_in(self, ended: Ended) -> Callable[..., dict[str, object]] | None:
        """What a caller of a node without effects calls, in Rust; None where the node has none, because its direct
        engine runs in another process. `ended` gives the outputs of an outcome, or raises."""
        direct, slot = self._direct, None
        if isinstance(direct, CountedProgram):
            slot, direct = direct.slot, direct.program
        if not isinstance(direct, DirectProgram):
            return None
        with self._making:  # two that load the node at a time would make one each, and one of them nobody would drain
            if self._way_in is None:
                self._way_in = self._made_way_in(direct, slot, ended)
            return self._way_in.call

    def _made_way_in(self, direct: DirectProgram, slot: Slot | None, ended: Ended) -> WayIn:
        rules = self._rules
        return WayIn(
            self,
            self._python,
            direct,
            (slot or Slot.apart()).flights,
            self._followers.admission,
            lambda: self._keyed.key,
            sample=rules.shares.sample / 10_000,
            deadline=rules.deadline,
            is_sensitive=rules.is_sensitive,
            ended=ended,
        )

    def planned(self, plan: Plan, inputs: Mapping[str, object], now: datetime | None = None) -> Outcome:
        """Carry out a request that the fast entry planned. A plan of another mode is made anew."""
        mode = self.live.local.mode
        match plan:
            case Plan.PYTHON:
                return self._python.call(inputs, now)
            case Plan.DIRECT if mode is Mode.DIRECT_ONLY and is_a(inputs, dict):
                self.live.served(mode, "direct")
                return self._guarded().call(inputs, now)
            case Plan.FOLLOWED if mode is not Mode.PYTHON_ONLY:
                self.live.served(mode, "python")
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
        """Take over an execution that the fast entry does not count: follow it again, or report its fault."""
        found: Transcript | Lost | None = None
        if outputs is not None:
            found = transcript_of(inputs, now, (), Returned(cast(Mapping[str, Value], outputs)))
        if broke is not None:
            told = "it is at fault" if self._rules.is_sensitive else f"it is at fault: {broke}"
            self.live.report(Fault(told[:_MESSAGE], found if isinstance(found, Transcript) else None))
        elif found is not None:
            self._done(found, took_ns, None, is_chosen, is_timed=False)

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

    def hosted_by(self, host: Host) -> None:
        """A Host will run the node. Runs that a process left under the direct engine are found by whoever finishes
        them."""
        host.on_lost.append(self._lost)
        self._followers.heed(host)
        if self._hosted_by is not None:
            self._hosted_by(host)

    def _lost(self, run: Summary) -> None:
        if run.semantic_hash == self.semantic_hash:
            self.live.lost_run(run.execution)

    def routed(self, prepared: Prepared, inputs: Mapping[str, object], execution: str) -> Prepared:
        """What a Host runs for one request of a node with effects: the same node on the engines that its mode says."""
        mode = self.live.local.mode
        if mode is Mode.DIRECT_ONLY and not self.chooser.is_sampled(execution):
            self.live.served(mode, "direct")
            return replace(prepared, program=self._guarded(), engine="interp")
        if mode is Mode.CANARY_DIRECT and self.chooser.is_in_canary(inputs):
            self.live.served(mode, "direct")
            return replace(prepared, program=self._paired(), engine="python")
        self.live.served(mode, "python")
        if not self.chooser.is_followed(mode):
            return replace(prepared, program=self._python, engine="python")
        return replace(prepared, program=self._recorded, engine="python")

    def _guarded(self) -> GuardedProgram:
        if self._both is None or self._both[0] != self._keyed.key:
            self._both = self._made(self._keyed.key)
        return self._both[1]

    def _paired(self) -> PairedProgram:
        if self._both is None or self._both[0] != self._keyed.key:
            self._both = self._made(self._keyed.key)
        return self._both[2]

    def _made(self, key: bytes) -> tuple[bytes, GuardedProgram, PairedProgram]:
        """They never change, and any number of requests may use them; but the key comes with the store."""
        rules = self._rules
        parts = (self._python, self._direct, self._comparator, key, self.live, rules.deadline)
        plans = plans_of(self._compiled)
        guarded = GuardedProgram(*parts, plans=plans, is_sensitive=rules.is_sensitive)
        return key, guarded, PairedProgram(*parts, plans=plans, is_sensitive=rules.is_sensitive)

    # -- following --------------------------------------------------------------------------------

    def _done(
        self,
        found: Transcript | Lost,
        took_ns: int | None,
        execution: str | None,
        is_chosen: bool = False,
        is_timed: bool = True,
    ) -> None:
        """An execution on Python has ended: the direct engine follows, at once where that is short. What was not timed
        was. `is_timed`: False where the fast way in runs the node, which has times of its own; what it hands over now
        and then finds everything cold here, and the direct engine would seem slow."""
        if isinstance(found, Lost):
            self.live.report(found)
        elif execution is None and not self._rules.is_apart and (took_ns is None or took_ns < _SHORT_NS):
            begun = time.thread_time()
            report = self._follow(found, took_ns, None, is_chosen, is_timed)
            self._followers.admission.followed(time.thread_time() - begun)
            if report is not None:
                self.live.report(report)
        else:
            size = size_of(found.inputs) + sum(size_of(each.value) for each in found.exchanges)
            self._followers.put(
                Following(lambda: self._follow(found, took_ns, execution, is_chosen, is_timed), self.live.report, size)
            )

    def _follow(
        self, transcript: Transcript, python_ns: int | None, execution: str | None, is_chosen: bool, is_timed: bool
    ) -> Report | None:
        def follow() -> Report | None:
            return follow_transcript(
                self._direct,
                transcript,
                self._comparator,
                self._keyed.key,
                deadline=self._rules.deadline,
                execution=execution,
                is_plain=self._python.is_plain,
                is_sensitive=self._rules.is_sensitive,
            )

        report = checked(follow, transcript, execution)
        if not isinstance(report, Agreement):
            return report
        if self._agreed is not None:
            self._agreed(report, transcript, is_chosen)
        return replace(report, python_ns=python_ns) if is_timed else replace(report, python_ns=None, direct_ns=None)
