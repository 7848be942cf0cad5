"""The forms of a node that nobody observes: what runs in production has no marks, is optimised, may be machine code.

An engine here runs one execution in the plain form and in the pathed form at the same time, on the same answers. The
two must ask for the same and come to the same; where they do not, the engine is at fault. A node that asks for nothing
is called as callers do, too: that goes another way into the engine, and with machine code it needs no frame. What it
took for its path is compared between engines, in the place of the marks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial

from vesper.compiler import Compiled
from vesper.engines.compare import same_outcome, same_requests
from vesper.engines.direct_engine import DirectEngine, DirectExecution, DirectProgram
from vesper.engines.engine import Blocked, Completion, Done, Engine, Limits, Observer, Unobserved
from vesper.engines.outcome import EngineFault, LimitHit, Outcome
from vesper.engines.python_engine import PythonEngine
from vesper.engines.registry import PAIR, REFERENCE
from vesper.engines.tiering import ALWAYS, INTERPRETED, Tiering

_KEY = bytes(16)
"""Fingerprints are compared with each other alone."""


class FormsEngine:
    """The direct engine under one tiering, unobserved."""

    def __init__(self, name: str, tiering: Tiering) -> None:
        self.name = name
        self._engine = DirectEngine(tiering)

    def load(self, compiled: Compiled) -> FormsProgram:
        return FormsProgram(self._engine.load(compiled))


class FormsProgram(Unobserved):
    """A node in every form of the direct engine; their outcomes are compared with each other."""

    def __init__(self, program: DirectProgram) -> None:
        self.program = program

    @property
    def semantic_hash(self) -> str:
        return self.program.semantic_hash

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        return self.program.call(inputs, now, limits)

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> FormsExecution:
        """There is nothing to observe, and nobody is told of it."""
        plain = self.program.start(inputs, now, limits, is_traced=False)
        called = None if self.program.asks else partial(self.program.call, inputs, now)
        return FormsExecution(plain, self.program.start_pathed(inputs, _KEY, now, limits), called)


class FormsExecution:
    def __init__(
        self, plain: DirectExecution, pathed: DirectExecution, called: Callable[[], Outcome] | None = None
    ) -> None:
        self._plain = plain
        self._pathed = pathed
        self._called = called

    def advance(self, completions: Sequence[Completion]) -> Blocked | Done:
        plain, pathed = self._plain.advance(completions), self._pathed.advance(completions)
        if isinstance(plain, Blocked) and isinstance(pathed, Blocked):
            if same_requests(plain.requests, pathed.requests):
                return plain
            return _fault(f"the plain form asks for {plain.requests}, and the pathed form for {pathed.requests}")
        if isinstance(plain, Blocked) or isinstance(pathed, Blocked):
            first, other = ("plain", "pathed") if isinstance(plain, Blocked) else ("pathed", "plain")
            return _fault(f"the {first} form asks for something where the {other} form ends")
        if not (_is_time(plain.outcome) or _is_time(pathed.outcome) or same_outcome(plain.outcome, pathed.outcome)):
            return _fault(f"the plain form comes to {plain.outcome}, and the pathed form to {pathed.outcome}")
        # A call has the usual limits, whatever these were.
        if self._called is not None and not isinstance(plain.outcome, LimitHit):
            called = self._called()
            if not (_is_time(called) or same_outcome(plain.outcome, called)):
                return _fault(f"the plain form comes to {plain.outcome}, and a call of it to {called}")
        way = (self._pathed.path(), self._pathed.fingerprint())
        return Done(plain.outcome, (), is_observed=False, way=way)


def _is_time(outcome: Outcome) -> bool:
    """When the clock stops a form depends on the machine."""
    return isinstance(outcome, LimitHit) and outcome.limit != "fuel"


def _fault(message: str) -> Done:
    return Done(EngineFault(message), (), is_observed=False)


COMPARED: dict[str, Engine] = {
    **PAIR,
    REFERENCE: PythonEngine(prepares=False),
    "interp-optimised": FormsEngine("interp-optimised", INTERPRETED),
    "interp-unoptimised": FormsEngine("interp-unoptimised", Tiering("off", is_optimised=False)),
    "jit": FormsEngine("jit", ALWAYS),
}
"""What `vesper verify` compares: the reference, the interpreter step by step, and the forms that nobody observes."""
