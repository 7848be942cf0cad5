"""Search for inputs that meet the contracts of a node, and the conditions of a branch.

A drawn input is repaired: as long as a condition is broken, a few changes are tried, and the one is kept after which
the inputs are nearest to meeting all conditions. Now and then a worse one is kept, to leave a local minimum. Equal
seeds give equal inputs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import localcontext
from math import inf
from typing import Any, TypeAlias

from vesper.kernels.decimal import EXACT
from vesper.language.ir.nodes import Expression, Node
from vesper.values.inputs import accept_inputs
from vesper.values.model import Value, plain, same
from vesper.values.types import Type
from vesper.verify.solve.conditions import ConditionSolver
from vesper.verify.solve.distance import distance
from vesper.verify.solve.evaluation import Evaluator, Scope

Wanted: TypeAlias = tuple[Expression, bool]
"""A condition and the value that it must have."""

_ROUNDS = 24
_CANDIDATES = 4
_WORSE_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class RepairResult:
    """The result of a repair."""

    inputs: dict[str, object]
    is_met: bool
    """Whether the inputs meet all conditions."""
    tried: int
    """Number of changes tried, as its cost."""


class InputSolver:
    """Repairs inputs of one node."""

    def __init__(self, node: Node, source: random.Random, draw: Callable[[str, Type], object]) -> None:
        """Create a solver. `draw` returns a new value of a type for a named input or field."""
        self.evaluator = Evaluator(node)
        self._random = source
        self._declared = node.declared_inputs
        self._contracts: list[Wanted] = [(each.holds, True) for each in (*node.constraints, *node.preconditions)]
        self._conditions = ConditionSolver(self.evaluator, source, lambda name, type_: _value(type_, draw(name, type_)))

    @property
    def has_contracts(self) -> bool:
        return bool(self._contracts)

    def read(self, inputs: Mapping[str, object]) -> dict[str, Value] | None:
        """Return the values of inputs; None where the node refuses one."""
        values, problems = accept_inputs(self._declared, dict(inputs))
        return None if problems else values

    def meets(self, values: Mapping[str, Value]) -> bool:
        """Return whether values meet the contracts."""
        scope = Scope(dict(values))
        with localcontext(EXACT):
            return all(self.evaluator.is_value(condition, value, scope) for condition, value in self._contracts)

    def repair(
        self, inputs: Mapping[str, object], also: Sequence[Wanted] = (), max_rounds: int = _ROUNDS
    ) -> RepairResult:
        """Return inputs that meet the contracts and further conditions, or come as near as was found.

        Inputs that need no change keep the form in which they were given, and omitted ones stay omitted.
        """
        given = dict(inputs)
        values = self.read(given)
        if values is None:
            return RepairResult(given, False, 0)
        with localcontext(EXACT):
            found, is_met, tried = self._search(values, [*self._contracts, *also], max_rounds)
        for name, value in found.items():
            if value is not values[name] and not same(value, values[name]):
                given[name] = plain(value)
        return RepairResult(given, is_met, tried)

    def _search(
        self, values: dict[str, Value], wanted: list[Wanted], max_rounds: int
    ) -> tuple[dict[str, Any], bool, int]:
        current = Scope(values)
        broken = self._broken(wanted, current)
        if not broken:
            return values, True, 0
        score = self._score(wanted, current)
        best, best_score = current, score
        for number in range(max_rounds):
            new_score, candidate = score + 1, current
            for _ in range(_CANDIDATES):
                changed = self._changed(current, broken)
                its_score = self._score(wanted, changed, new_score)
                if its_score < new_score:
                    new_score, candidate = its_score, changed
                if its_score == 0:
                    return changed.inputs, True, (number + 1) * _CANDIDATES
            if new_score <= score or self._random.random() < _WORSE_SHARE:
                current, score = candidate, new_score
                broken = self._broken(wanted, current)
            if score < best_score:
                best, best_score = current, score
        return best.inputs, False, max_rounds * _CANDIDATES

    def _changed(self, current: Scope, broken: list[Wanted]) -> Scope:
        candidate = current.copy()
        condition, value = self._random.choice(broken)
        self._conditions.force(condition, value, candidate)
        return candidate

    def _broken(self, wanted: list[Wanted], scope: Scope) -> list[Wanted]:
        holds = self.evaluator.is_value
        return [(condition, value) for condition, value in wanted if not holds(condition, value, scope)]

    def _score(self, wanted: list[Wanted], scope: Scope, enough: float = inf) -> float:
        """Return the sum of the distances from all conditions, or a part of it that is not below `enough`."""
        score = 0.0
        for condition, value in wanted:
            score += distance(self.evaluator, condition, value, scope)
            if score >= enough:
                break
        return score


def _value(type_: Type, drawn: object) -> Value:
    """Return a drawn object as a value of its type."""
    values, problems = accept_inputs([("value", type_, None)], {"value": drawn})
    assert not problems, f"{drawn!r} is drawn for {type_}"
    return values["value"]
