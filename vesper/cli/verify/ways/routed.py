"""Routed calls: the router's entry of the extension, in each mode of a node's rollout.

The entry leads with the reference, whose outcome is known, and follows it on the direct engine. No store takes part:
the modes are set directly, every call is followed, and what the entry hands over for inspection is compared here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from vesper.api.explain import error_info
from vesper.cli.verify.ways.node_calls import LoadedNode, call_outcome
from vesper.engines.compare import same_outcome
from vesper.engines.direct_engine import DirectProgram, Plan, Route
from vesper.engines.outcome import EngineFault, Outcome, Returned
from vesper.migration.control.modes import Mode
from vesper.migration.workers.inflight_counters import Slot
from vesper.values.model import Value
from vesper.verify.differential.ways.way import Answer, Given, Way

_KEY = bytes(range(16))
_SHARE = 10
_DEADLINE_SECONDS = 10.0
_MAX_BYTES = 1 << 24


class RoutedCalls(Way):
    """`node.call` of a node on the engine `auto`, in one mode."""

    share = _SHARE

    def __init__(self, loaded: LoadedNode, mode: Mode) -> None:
        self.name = f"routed_{mode.value}"
        self._loaded = loaded
        self._mode = mode

    def answers(self, given: Sequence[Given]) -> Iterator[Answer]:
        subject = self._loaded.subject
        entry = _Entry(self._loaded, subject.program(given[0].number // 2))
        try:
            entry.route.set(self._mode.level, None, _KEY, 0.0)
            for each in given:
                yield Answer(each, entry.call(each), each.done.outcome)
        finally:
            entry.route.close()


class _Entry:
    """The entry of one program, with the callbacks that the router has in Python."""

    def __init__(self, loaded: LoadedNode, program: DirectProgram) -> None:
        self._loaded = loaded
        self._program = program
        self._given: Given | None = None
        self._faults: list[str] = []
        self.route: Route = program.route(
            self._lead,
            self._call_planned,
            self._inspect,
            _ignore_hurry,
            Slot.unshared().flights,
            is_bare=False,
            deadline=_DEADLINE_SECONDS,
            most_bytes=_MAX_BYTES,
            keeps=True,
        )
        self.route.admit(1.0)

    def call(self, given: Given) -> Outcome:
        """Return the outcome of one routed call; a difference of the follower is an engine fault."""
        self._given, self._faults = given, []
        call = self.route.call_at if self._loaded.takes_now else self.route.call
        start = self._loaded.start(given)
        found = call_outcome(self._loaded.subject, given, lambda: call(dict(given.inputs), **start))
        self.route.wait(_DEADLINE_SECONDS)
        agreed, *_, handed = self.route.drain()
        for each in handed:
            self._inspect(*each)
        if self._faults:
            return EngineFault(f"followed, {'; '.join(self._faults)}")
        pathed = self._program.call_pathed(given.inputs, _KEY, start.get("now"))
        for path, fingerprints, _ in agreed:
            if (path, fingerprints) != (pathed.path, [pathed.fingerprint]):
                return EngineFault(f"agrees on the path {path.hex()} {fingerprints}, not {pathed[1:]}")
        return found

    def _lead(self, inputs: Mapping[str, Any], **now: datetime) -> Mapping[str, Any]:
        """Return the outputs of the reference, or raise as generated Python does."""
        assert self._given is not None
        outcome = self._given.done.outcome
        if isinstance(outcome, Returned):
            return dict(outcome.value)
        raise error_info(self._loaded.subject.compiled, outcome, inputs).exception()

    def _call_planned(self, plan: int, inputs: dict[str, Any], now: datetime | None = None) -> dict[str, Any]:
        """Carry out a call that the extension planned and leaves to Python."""
        assert self._given is not None
        wanted = self._given.done.outcome
        if Plan(plan) is not Plan.PYTHON:
            direct = self._program.call_pathed(inputs, _KEY, now).outcome
            if not same_outcome(direct, wanted):
                self._faults.append(f"the direct engine ends with {direct}")
        return dict(self._lead(inputs))

    def _inspect(
        self,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any] | None,
        took_ns: int | None,
        is_chosen: bool,
        broke: str | None,
        now: datetime | None = None,
    ) -> None:
        """Compare an execution that the extension cannot judge."""
        if broke is not None:
            self._faults.append(f"the direct engine is at fault: {broke}")
        elif outputs is not None:
            direct = self._program.call(inputs, now)
            if not same_outcome(direct, Returned(cast(Mapping[str, Value], outputs))):
                self._faults.append(f"the direct engine ends with {direct}")


def _ignore_hurry() -> None:
    """Drains follow every call."""
