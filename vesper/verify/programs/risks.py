"""Which drawn terms can fail, read from their parts, and drawing that mostly avoids it.

A failure ends an execution before its later steps, so most programs should come to their end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from vesper.language.check.expressions.literal_arguments import EVALUATED
from vesper.values.generated.operations import IMPLEMENTED
from vesper.values.types import DECIMAL, INTEGER, Type
from vesper.verify.programs.expressions import Expressions
from vesper.verify.programs.terms import Scope, Term

_ARITHMETIC = (" + ", " - ", " * ")
_RARE = {"too_large", "integer_overflow", "decimal_overflow", "division_by_zero"}
"""Codes of operations that succeed for most values."""
_FORMS = ("MIN(", "MAX(", "AVG(", "min(", "max(", "avg(", "CAST(", "index_by(")
_TRIES = 5
_PREFERRED_SHARE = 0.35
"""Share of the risky operations that the program prefers and that are kept."""


@cache
def _fallible_calls(rarely: bool) -> frozenset[str]:
    """Return the openings of calls that can fail: if `rarely`, in every overload, else often, in some overload."""
    found: dict[str, list[bool]] = {}
    for spec in IMPLEMENTED.values():
        if spec.function is not None and spec.name not in EVALUATED:
            fails = bool(spec.raises) if rarely else bool(set(spec.raises) - _RARE)
            found.setdefault(f"{spec.function}(", []).append(fails)
    decide = all if rarely else any
    evaluated = {f"{IMPLEMENTED[name].function}(" for name in EVALUATED if name in IMPLEMENTED}
    return frozenset(name for name, fails in found.items() if decide(fails)) - (evaluated if rarely else frozenset())


def is_fallible(term: Term) -> bool:
    """Return whether a term certainly has an operation that can fail, so that a step may handle it."""
    is_arithmetic = term.type in (INTEGER, DECIMAL) and any(part in _ARITHMETIC for part in term.parts)
    opening = term.parts[0] if term.parts else ""
    if is_arithmetic or (isinstance(opening, str) and opening in _fallible_calls(True)):
        return True
    return any(is_fallible(part) for part in term.terms())


def is_risky(term: Term) -> bool:
    """Return whether a term has a part that fails for many values."""
    if any(isinstance(part, str) and (part in _FORMS or part in _fallible_calls(False)) for part in term.parts):
        return True
    if "[" in term.parts[1:] or (term.parts and term.parts[0] == "{" and ": " in term.parts):
        return True  # an index, or a map with keys that may be equal
    return any(is_risky(part) for part in term.terms())


class SteadyTerms:
    """Generator of terms that redraws risky ones, unless the program's risk permits them."""

    def __init__(self, expressions: Expressions, may_be_handled: bool = False) -> None:
        """Create a source of terms; with `may_be_handled`, a risky term that a handler can catch is steady too."""
        self._draw = expressions
        self._may_be_handled = may_be_handled
        self._avoids = expressions.random.random() >= expressions.features.risk

    def expression(self, type_: Type, scope: Scope, depth: int, hint: Type | None = None) -> Term:
        return self._steady(lambda now: self._draw.expression(type_, scope, now, hint), depth)

    def assignable(self, type_: Type, scope: Scope, depth: int) -> Term:
        return self._steady(lambda now: self._draw.assignable(type_, scope, now), depth)

    def _steady(self, draw: Callable[[int], Term], depth: int) -> Term:
        """Draw until a term is steady, the last time as a leaf; discard the constants of rejected terms."""
        for attempt in range(_TRIES if self._avoids else 1):
            restore, undrawn = self._draw.save(), self._draw.undrawn
            found = draw(max(0, depth - attempt))
            if not self._avoids or not is_risky(found) or (self._may_be_handled and is_fallible(found)):
                return found
            if 0 <= self._draw.undrawn < undrawn and self._draw.random.random() < _PREFERRED_SHARE:
                return found
            restore()
        return draw(0)
