"""Holds symbolic runs against the reference engine: what happens must be possible, and nothing else where exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from vesper.compiler import Compiled
from vesper.engines.outcome import ContractBroken, DeclaredError, Failed, Outcome, Returned
from vesper.engines.python_engine import PythonEngine
from vesper.proof.bounds import Bounds, NotEncodable
from vesper.proof.constants import constant
from vesper.proof.context import Context
from vesper.proof.equality import same
from vesper.proof.inputs import SymbolicInputs
from vesper.proof.run import CONTRACT_BROKEN, DECLARED_ERROR, FAILED, RETURNED, run_symbolically
from vesper.proof.solver import MODEL, NEVER, Solver
from vesper.proof.symbols import Symbolic
from vesper.proof.terms import Term, both, either, negated
from vesper.values.inputs import accept_inputs
from vesper.values.json_value import Json, json_of
from vesper.values.model import Value
from vesper.values.types import BYTES, JSON, STRING, ArrayOf, MapOf, OptionalOf, Record, SetOf, Type, mentions

NOW = datetime(2026, 3, 14, 15, 9, 26, 535897, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An outcome that the encoding excludes, or allows beside the real one."""

    why: str
    inputs: Mapping[str, Value]
    outcome: Outcome


class Held:
    """One pure node, encoded once and held against executions."""

    def __init__(self, compiled: Compiled, bounds: Bounds) -> None:
        """Encode a node. Raises `NotEncodable`."""
        self._node = compiled.node
        self._program = PythonEngine().load(compiled)
        self._context = Context(bounds)
        self._inputs = SymbolicInputs(self._context, self._node)
        self.run = run_symbolically(self._node, self._inputs)
        self._solver = Solver(self._inputs, seconds=5.0)
        self._is_arithmetic = not any(
            mentions(each.type, part) for each in self._node.inputs for part in (STRING, BYTES)
        )
        self._is_arithmetic &= not any(isinstance(each.type, SetOf | MapOf) for each in self._node.inputs)
        """False where an input has an order or size that the terms read before it was known."""
        self.decided = 0
        self.exact = 0

    def hold(self, given: Mapping[str, object]) -> Mismatch | None:
        """Return how the encoding misses what the reference engine does."""
        values, problems = accept_inputs(self._node.declared_inputs, given)
        if problems:
            return None
        outcome = self._program.call(given, NOW)
        fixed = self._inputs.equals(values, NOW)
        is_inside = self._solver.decide(*fixed)
        if is_inside.kind != MODEL:
            if is_inside.kind == NEVER and not self._context.bounds.is_finding:
                return Mismatch("the inputs are outside of the domain, or facts contradict each other", values, outcome)
            return None
        happens = self._happens(outcome)
        if happens is None:
            return None
        found = self._solver.decide(*fixed, happens)
        if found.kind == NEVER:
            if self._context.bounds.is_finding and not self.run.is_exact:
                return None  # what is abstract has few items, too
            left = [each for each in self.run.endings if each.kind == "abandoned"]
            if left and self._solver.decide(*fixed, left[0].guard).kind == MODEL:
                return None
            return Mismatch("the outcome is impossible", values, outcome)
        self.decided += 1
        if self.run.is_exact and self._is_arithmetic:
            other = self._solver.decide(*fixed, negated(happens))
            if other.kind == MODEL and self._context.is_exact(happens):
                return Mismatch("another outcome is possible", values, outcome)
            self.exact += other.kind == NEVER
        return None

    def _happens(self, outcome: Outcome) -> Term | None:
        """Return where the run ends as the outcome does; None for a limit."""
        context, endings = self._context, self.run.endings
        match outcome:
            case Returned(values) | DeclaredError(values):
                kind = RETURNED if isinstance(outcome, Returned) else DECLARED_ERROR
                found = [each for each in endings if each.kind == kind]
                return either(
                    *(
                        both(
                            each.guard,
                            *(
                                same(
                                    context, value, constant(context, value.type, _with_json(value.type, values[name]))
                                )
                                for name, value in each.values.items()
                            ),
                        )
                        for each in found
                    )
                )
            case Failed(code) if outcome.at is not None:
                number = context.code(str(code))
                return either(*(both(each.guard, each.code == number) for each in endings if each.kind == FAILED))
            case ContractBroken(phase, index):
                broken = [each for each in endings if each.kind == CONTRACT_BROKEN]
                return either(*(each.guard for each in broken if (each.phase, each.index) == (phase, index)))
            case _:
                return None


def _constant(context: Context, type_: Type, value: Any) -> Symbolic:
    return constant(context, type_, _with_json(type_, value))


def _with_json(type_: Type, value: Any) -> Any:
    """Return a value of an outcome with the values of type `json` in it as a node has them."""
    match type_:
        case OptionalOf(inner):
            return None if value is None else _with_json(inner, value)
        case ArrayOf(element):
            return [_with_json(element, each) for each in value]
        case MapOf(_, of):
            return {key: _with_json(of, each) for key, each in value.items()}
        case Record(fields):
            return {name: _with_json(own, value[name]) for name, own in fields}
        case _:
            return json_of(value) if type_ == JSON and not isinstance(value, Json) else value


__all__ = ["NOW", "Held", "Mismatch", "NotEncodable"]
