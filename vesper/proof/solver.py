"""Queries to z3, each within a time limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper.proof.inputs import SymbolicInputs
    from vesper.proof.terms import Term

NEVER = "never"
MODEL = "model"
UNKNOWN = "unknown"
DEFAULT_SECONDS = 2.0
_UNITS_PER_SECOND = 5_000_000
"""Steps of z3 per second of the limit, several times what it makes: equal limits end alike on slow machines."""


class SolverMissing(VesperError):
    """z3 is not installed."""

    def __str__(self) -> str:
        return "proofs need the solver z3, which is not installed: pip install 'vesper[solver]'"


def is_solver_installed() -> bool:
    from importlib.util import find_spec

    return find_spec("z3") is not None


def require_solver() -> None:
    """Raise `SolverMissing` where z3 is not installed."""
    if not is_solver_installed():
        raise SolverMissing


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to whether some input meets all that is asserted."""

    kind: str
    """`never`, `model` or `unknown`."""
    model: Any = None
    why: str = ""
    """Reason of `unknown`."""


class Solver:
    """Answers several queries about the terms of one context."""

    def __init__(self, inputs: SymbolicInputs, seconds: float = DEFAULT_SECONDS, small: bool = False) -> None:
        """Create a solver. With `small` only small inputs are considered, which are easier to find and to read."""
        import z3

        self._context = inputs.context
        self._solver = z3.Solver()
        self._seconds = seconds
        self._solver.set("random_seed", 0)
        self._solver.add(*inputs.domain, *(inputs.small if small else ()))
        self._facts = 0
        self._definitions = 0
        self._finds = self._context.bounds.is_finding

    def decide(self, *asserted: Term, seconds: float | None = None) -> Decision:
        """Return whether some input meets the terms. Products of two unknowns are exact only where that is needed."""
        limit = self._seconds if seconds is None else seconds
        facts = self._context.facts
        self._solver.add(*facts[self._facts :])
        self._facts = len(facts)
        definitions = self._context.definitions
        if not definitions:
            return self._check(asserted, limit)
        first = None if self._finds else self._check(asserted, limit / 2)
        if first is not None and first.kind == NEVER:
            return first
        return self._check((*asserted, *definitions), limit if first is None else limit / 2)

    def _check(self, asserted: tuple[Term, ...], seconds: float) -> Decision:
        import z3

        self._solver.push()
        try:
            self._solver.set("timeout", max(1, int(seconds * 1000)))
            self._solver.set("rlimit", max(1, int(seconds * _UNITS_PER_SECOND)))
            self._solver.add(*asserted)
            found = self._solver.check()
            if found == z3.unsat:
                return Decision(NEVER)
            if found == z3.sat:
                return Decision(MODEL, self._solver.model())
            return Decision(UNKNOWN, why=_reason(self._solver.reason_unknown()))
        except z3.Z3Exception as problem:
            return Decision(UNKNOWN, why=str(problem))
        finally:
            self._solver.pop()


def _reason(text: str) -> str:
    if "timeout" in text or "canceled" in text or "resource" in text or "rlimit" in text:
        return "time limit of the solver"
    return "incomplete theory of the solver" if "incomplete" in text else text


def decide(inputs: SymbolicInputs, *asserted: Term, seconds: float = DEFAULT_SECONDS, small: bool = False) -> Decision:
    """Return whether some input meets the terms."""
    return Solver(inputs, seconds, small).decide(*asserted)
