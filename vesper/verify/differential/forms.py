"""Unobserved forms of a node, as in production: without marks, optimised, possibly machine code.

An engine here runs one execution in the plain form and in the pathed form together, on the same completions. Different
requests or outcomes are an engine fault. A node without requests is also called directly, because calls enter the
engine differently and need no frame in machine code. Engines are compared by path instead of marks.
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
"""Fixed key: fingerprints are compared only with each other."""


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
        """Start both forms. `observe` is ignored, because unobserved forms have no marks."""
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
            return _fault(f"the plain form requests {plain.requests}, and the pathed form requests {pathed.requests}")
        if isinstance(plain, Blocked) or isinstance(pathed, Blocked):
            first, other = ("plain", "pathed") if isinstance(plain, Blocked) else ("pathed", "plain")
            return _fault(f"the {first} form makes a request where the {other} form ends")
        if not (
            _is_time_limit(plain.outcome)
            or _is_time_limit(pathed.outcome)
            or same_outcome(plain.outcome, pathed.outcome)
        ):
            return _fault(f"the plain form ends with {plain.outcome}, and the pathed form ends with {pathed.outcome}")
        # A call always has the default limits.
        if self._called is not None and not isinstance(plain.outcome, LimitHit):
            called = self._called()
            if not (_is_time_limit(called) or same_outcome(plain.outcome, called)):
                return _fault(f"the plain form ends with {plain.outcome}, and a call of it ends with {called}")
        way = (self._pathed.path(), self._pathed.fingerprint())
        return Done(plain.outcome, (), is_observed=False, way=way)


def _is_time_limit(outcome: Outcome) -> bool:
    """Return whether a time limit ended the form, which depends on the machine."""
    return isinstance(outcome, LimitHit) and not outcome.is_counted


def _fault(message: str) -> Done:
    return Done(EngineFault(message), (), is_observed=False)


COMPARED: dict[str, Engine] = {
    **PAIR,
    REFERENCE: PythonEngine(prepares=False),
    "interp-optimised": FormsEngine("interp-optimised", INTERPRETED),
    "interp-unoptimised": FormsEngine("interp-unoptimised", Tiering("off", is_optimised=False)),
    "jit": FormsEngine("jit", ALWAYS),
}
"""Engines that `vesper verify` compares: the reference, the observed interpreter, unobserved forms."""
