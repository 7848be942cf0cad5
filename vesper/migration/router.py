"""The one way into a node that is being moved over: decides which engines run, and whose answer returns.

A `RoutedProgram` is a program like any other, so whatever runs nodes runs it. Before anything is run it looks at what
this process knows of the node (`Live.local`) and draws what has to be drawn; nothing waits for a store. Whatever goes
wrong with the direct engine or with comparing, the caller gets Python's answer.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol, TypeAlias

from vesper.compiler import Compiled
from vesper.engines.engine import Execution, Limits, Observer, Program
from vesper.engines.outcome import EngineFault, LimitHit, Outcome, Returned
from vesper.engines.path import Pathed
from vesper.host.host import Prepared
from vesper.host.sizes import size_of
from vesper.journal.typed_json import encode
from vesper.migration.comparator import Comparator, Incomparable, Same
from vesper.migration.executions import GuardedProgram, PairedProgram, RecordedProgram, follow_transcript
from vesper.migration.followers import Followers, Following
from vesper.migration.live import Live, Local
from vesper.migration.modes import Mode
from vesper.migration.paths import PathNote, ending_of
from vesper.migration.reports import Agreement, Disagreement, Fault, Lost, Report
from vesper.migration.routing import Shares, is_in_canary, is_sampled
from vesper.migration.transcript import Transcript

_SHORT_US = 50
"""A pure node that takes less is followed at once: handing it over would cost more."""


class Direct(Protocol):
    """The direct engine, in this process or in one of its own."""

    def call_pathed(
        self, inputs: Mapping[str, object], key: bytes, now: datetime | None = None, limits: Limits | None = None
    ) -> Pathed: ...

    def start_pathed(
        self, inputs: Mapping[str, object], key: bytes, now: datetime | None = None, limits: Limits | None = None
    ) -> Any: ...


Call: TypeAlias = Callable[[Mapping[str, object], datetime | None, Limits | None], Outcome]


class Keyed(Protocol):
    """Who knows the key of fingerprints and of routing."""

    @property
    def key(self) -> bytes: ...


class RoutedProgram:
    """A node on whichever engine its mode says."""

    def __init__(
        self,
        compiled: Compiled,
        reference: Program,
        direct: Direct,
        live: Live,
        comparator: Comparator,
        followers: Followers,
        keyed: Keyed,
        shares: Shares,
        routing_key: tuple[str, ...],
        deadline: float,
        only_outputs: bool = False,
    ) -> None:
        """`only_outputs`: what is no outputs always comes from the reference, whose exceptions its callers know."""
        self._compiled = compiled
        self._reference = reference
        self._direct = direct
        self.live = live
        self._comparator = comparator
        self._followers = followers
        self._admits = followers.admission.admits
        self._keyed = keyed
        self._shares = shares
        self._sample = shares.sample / 10_000
        self._routing_key = routing_key
        self._deadline = deadline
        self._only_outputs = only_outputs
        self._draw = random.Random().random
        self._node = compiled.node.node_id

    @property
    def _key(self) -> bytes:
        return self._keyed.key

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
        """An execution that its caller answers is not routed: nobody records what it is told."""
        return self._reference.start(inputs, now, limits, observe, is_traced)

    # -- nodes without effects --------------------------------------------------------------------

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        return self.call_beside(self._reference.call, inputs, now, limits)

    def call_beside(
        self,
        reference: Call,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
    ) -> Outcome:
        """The same with another reference for this one call."""
        live = self.live
        local = live.local
        mode = local.mode
        if mode is Mode.DIRECT_ONLY and self._draw() >= self._sample:
            return self._direct_alone(reference, local, inputs, now, limits)
        if mode is Mode.CANARY_DIRECT and self._is_in_canary(inputs):
            return self._compared_first(reference, mode, inputs, now, limits)
        live.served(mode, "python")
        if mode is Mode.PYTHON_ONLY or not self._admits():
            return reference(inputs, now, limits)
        return self._followed(reference, inputs, now, limits)

    def _followed(
        self, reference: Call, inputs: Mapping[str, object], now: datetime | None, limits: Limits | None
    ) -> Outcome:
        """Python's answer; the direct engine follows, at once where that is short."""
        given = _copied(inputs)  # what the caller or the reference does with theirs is not what was given
        begun = time.perf_counter_ns()
        outcome = reference(inputs, now, limits)
        took_us = (time.perf_counter_ns() - begun) // 1000
        transcript = Transcript(given, now, (), _kept(outcome))
        if took_us < _SHORT_US:
            cpu = time.thread_time()
            self.live.report(self._follow(transcript, limits, took_us))
            self._followers.admission.followed(time.thread_time() - cpu)
            return outcome
        size = size_of(given)
        self._followers.put(Following(lambda: self._follow(transcript, limits, took_us), self.live.report, size))
        return outcome

    def _follow(self, transcript: Transcript, limits: Limits | None, python_us: int) -> Report:
        report = follow_transcript(self._direct, transcript, self._comparator, self._key, limits)
        return replace(report, python_us=python_us) if isinstance(report, Agreement) else report

    def _direct_alone(
        self,
        reference: Call,
        local: Local,
        inputs: Mapping[str, object],
        now: datetime | None,
        limits: Limits | None,
    ) -> Outcome:
        """The direct answer, where its path is trusted; compared with Python's first where it is not."""
        begun = time.perf_counter_ns()
        ran = self._ran(inputs, now, limits)
        if isinstance(ran, str):
            return self._taken_over(reference, ran, inputs, now, limits)
        outcome = ran.outcome
        if type(outcome) is Returned:
            if ran.path in local.points:
                self.live.served(local.mode, "direct")
                return outcome
        elif self._only_outputs:
            return self._released(reference, local.mode, ran, begun, inputs, now, limits)
        if not isinstance(outcome, LimitHit) and self.live.trusts(PathNote(ran.path, (), ending_of(outcome)).name):
            self.live.served(local.mode, "direct")
            return outcome
        return self._released(reference, local.mode, ran, begun, inputs, now, limits)

    def _compared_first(
        self,
        reference: Call,
        mode: Mode,
        inputs: Mapping[str, object],
        now: datetime | None,
        limits: Limits | None,
    ) -> Outcome:
        begun = time.perf_counter_ns()
        ran = self._ran(inputs, now, limits)
        if isinstance(ran, str):
            return self._taken_over(reference, ran, inputs, now, limits)
        return self._released(reference, mode, ran, begun, inputs, now, limits)

    def _ran(self, inputs: Mapping[str, object], now: datetime | None, limits: Limits | None) -> Pathed | str:
        """What the direct engine did, or why it is at fault."""
        within = limits or Limits(seconds=self._deadline)
        try:
            ran = self._direct.call_pathed(inputs, self._key, now, within)
        except Exception as error:  # noqa: BLE001  # whatever it is, the caller gets Python's answer
            return f"{type(error).__name__}: {error}"
        return ran.outcome.message if isinstance(ran.outcome, EngineFault) else ran

    def _released(
        self,
        reference: Call,
        mode: Mode,
        ran: Pathed,
        begun: int,
        inputs: Mapping[str, object],
        now: datetime | None,
        limits: Limits | None,
    ) -> Outcome:
        """Python's answer, and the direct one only where it is the same."""
        middle = time.perf_counter_ns()
        given = _copied(inputs)
        outcome = reference(inputs, now, limits)
        ended = time.perf_counter_ns()
        verdict = self._comparator.outcomes(outcome, ran.outcome)
        if isinstance(verdict, Same):
            note = PathNote(ran.path, (), ending_of(ran.outcome))
            self.live.report(Agreement(note, ran.fingerprint, (ended - middle) // 1000, (middle - begun) // 1000))
            if not self._only_outputs or type(outcome) is Returned:
                self.live.served(mode, "direct")
                return ran.outcome
        elif isinstance(ran.outcome, LimitHit) and ran.outcome.limit == "time" and limits is None:
            self.live.report(
                Fault(f"no answer within {self._deadline:g} s", Transcript(given, now, (), _kept(outcome)))
            )
        elif isinstance(verdict, Incomparable):
            self.live.report(Lost(verdict.why))
        else:
            transcript = Transcript(given, now, (), _kept(outcome))
            note = PathNote(ran.path, (), ending_of(ran.outcome))
            self.live.report(Disagreement(verdict, note, ran.fingerprint, transcript, ran.outcome))
        self.live.served(mode, "python")
        return outcome

    def _taken_over(
        self, reference: Call, what: str, inputs: Mapping[str, object], now: datetime | None, limits: Limits | None
    ) -> Outcome:
        """Python's answer. What Python itself refuses (no dict, no time) is the caller's mistake and no fault."""
        given = _copied(inputs)
        outcome = reference(inputs, now, limits)
        self.live.report(Fault(what, Transcript(given, now, (), _kept(outcome))))
        self.live.served(self.live.local.mode, "python")
        return outcome

    # -- nodes with effects -----------------------------------------------------------------------

    def routed(self, prepared: Prepared, inputs: Mapping[str, object], execution: str) -> Prepared:
        """What a Host runs for one request: the same node on the engines that its mode says."""
        local = self.live.local
        mode = local.mode
        if mode is Mode.DIRECT_ONLY and not is_sampled(self._node, execution.encode(), self._key, self._shares):
            self.live.served(mode, "direct")
            guarded = GuardedProgram(
                self._reference, self._direct, self._comparator, self._key, self.live, self._deadline, execution
            )
            return replace(prepared, program=guarded, engine="interp")
        if mode is Mode.CANARY_DIRECT and self._is_in_canary(inputs):
            self.live.served(mode, "direct")
            paired = PairedProgram(
                self._reference, self._direct, self._comparator, self._key, self.live, self._deadline, execution
            )
            return replace(prepared, program=paired, engine="python")
        self.live.served(mode, "python")
        if mode is Mode.PYTHON_ONLY or not self._admits():
            return replace(prepared, program=self._reference, engine="python")
        recorded = RecordedProgram(self._reference, self._done(execution))
        return replace(prepared, program=recorded, engine="python")

    def _done(self, execution: str) -> Callable[[Transcript, int], None]:
        def done(transcript: Transcript, took_us: int) -> None:
            def follow() -> Report:
                report = self._follow(transcript, None, took_us)
                return replace(report, execution=execution) if isinstance(report, Disagreement | Fault) else report

            size = size_of(transcript.inputs) + sum(size_of(each.value) for each in transcript.exchanges)
            self._followers.put(Following(follow, self.live.report, size))

        return done

    # -- who is chosen ----------------------------------------------------------------------------

    def _is_in_canary(self, inputs: Mapping[str, object]) -> bool:
        named = self._routing_key
        chosen = {name: inputs.get(name) for name in named} if named else dict(inputs)
        try:
            text = encode(chosen)
        except Exception:  # noqa: BLE001  # what cannot be written down is no input: Python says so to the caller
            return False
        return is_in_canary(self._node, text, self._key, self._shares)


def _copied(value: Any) -> Any:
    """The same values in containers of their own."""
    if isinstance(value, dict):
        return {name: _copied(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_copied(each) for each in value]
    return value


def _kept(outcome: Outcome) -> Outcome:
    """An outcome that the caller cannot change any more."""
    return Returned(_copied(outcome.value)) if isinstance(outcome, Returned) else outcome
