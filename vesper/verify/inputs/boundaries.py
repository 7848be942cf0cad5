"""Inputs at the boundary of a comparison.

`new_balance < 0` differs from `new_balance <= 0` only if balance, amount and fee cancel exactly, which random inputs
never do. From an input and a neighbour, one step of the secant method finds an input with equal sides.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from decimal import Decimal, localcontext
from fractions import Fraction

from vesper.kernels.decimal import EXACT
from vesper.language.ir.nodes import Call, Expression, For, Let, Local, Node, walk
from vesper.values.inputs import accept_inputs
from vesper.values.types import DATE, DECIMAL, DURATION, FLOAT, INTEGER, TIMESTAMP
from vesper.verify.solve.evaluation import FAILURES, Evaluator, Scope, mentioned_inputs
from vesper.verify.solve.numbers import from_number, to_number

_COMPARISONS = frozenset({"equal", "not_equal", "less", "less_or_equal", "greater", "greater_or_equal"})
_MOVABLE = (INTEGER, DECIMAL, FLOAT, DATE, TIMESTAMP, DURATION)
_MAX_TRIES = 4
_EXACT_SHARE = 0.5


class BoundarySeeker:
    """Moves one input to the boundary of a comparison of the node, or one unit beside it."""

    def __init__(self, evaluator: Evaluator, source: random.Random) -> None:
        self._random = source
        self._evaluator = evaluator
        self._declared = evaluator.node.declared_inputs
        movable = {each.name for each in evaluator.node.inputs if each.type in _MOVABLE}
        self._probes: list[tuple[Call, list[str]]] = []
        """Comparisons, with the inputs that both sides depend on and that can be moved like numbers."""
        for comparison in _comparisons(evaluator.node):
            names = [each for each in mentioned_inputs(evaluator, comparison) if each in movable]
            if names and not _free_locals(comparison):
                self._probes.append((comparison, names))

    def seek(self, inputs: dict[str, object]) -> dict[str, object] | None:
        """Return inputs with one number moved to the boundary of a comparison; None without success."""
        if not self._probes:
            return None
        values, problems = accept_inputs(self._declared, inputs)
        if problems:
            return None
        with localcontext(EXACT):
            for _ in range(_MAX_TRIES):
                comparison, names = self._random.choice(self._probes)
                name = self._random.choice(names)
                moved = self._to_edge(comparison, name, values)
                if moved is not None:
                    return inputs | {name: moved}
        return None

    def boundaries(self, inputs: Mapping[str, object], name: str) -> list[Fraction]:
        """Return the values of one input, as numbers, at which comparisons have equal sides by the secant method."""
        values, problems = accept_inputs(self._declared, dict(inputs))
        if problems:
            return []
        with localcontext(EXACT):
            found = [self._boundary(comparison, name, values) for comparison, names in self._probes if name in names]
        return [each for each in found if each is not None]

    def _boundary(self, comparison: Call, name: str, values: Mapping[str, object]) -> Fraction | None:
        given = values[name]
        number = to_number(given)
        if number is None:
            return None
        here = self._gap(comparison, values)
        there = self._gap(comparison, {**values, name: from_number(given, number + 1)})
        if here is None or there is None or here == there:
            return None
        return number - here / (there - here)

    def _to_edge(self, comparison: Call, name: str, values: Mapping[str, object]) -> object | None:
        given = values[name]
        boundary = self._boundary(comparison, name, values)
        if boundary is None:
            return None
        at = from_number(given, boundary)
        exact = to_number(at)
        if exact is None or self._random.random() < _EXACT_SHARE:
            return at
        beside = exact + self._random.choice((-1, 1)) * _unit(at)
        return from_number(at, beside)

    def _gap(self, comparison: Call, values: Mapping[str, object]) -> Fraction | None:
        scope = Scope(dict(values))
        try:
            left, right = (to_number(self._evaluator.value(side, scope)) for side in comparison.args)
        except FAILURES:
            return None
        return None if left is None or right is None else left - right


def _unit(value: object) -> Fraction:
    """Return the distance to the next value: one unit of the last place of a decimal, otherwise one."""
    exponent = value.as_tuple().exponent if isinstance(value, Decimal) else 0
    return Fraction(10) ** exponent if isinstance(exponent, int) else Fraction(1)


def _comparisons(node: Node) -> list[Call]:
    return [
        each
        for each in node.expressions()
        if isinstance(each, Call) and each.op.partition(".")[2] in _COMPARISONS and each.args[0].type in _MOVABLE
    ]


def _free_locals(expression: Expression) -> set[int]:
    """Return the locals of an expression that are bound outside it."""
    parts = walk(expression)
    used = {part.number for part in parts if isinstance(part, Local)}
    bound = {part.local for part in parts if isinstance(part, Let)}
    return used - bound - {number for part in parts if isinstance(part, For) for number in part.locals}
