"""Distance of inputs from a condition: 0 where it holds, smaller where less has to change.

As in search-based testing, the distance of an AND is the sum of its parts, that of an OR is the smallest of its parts,
and that of a comparison is the distance between its sides.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log1p
from typing import Any

from vesper.language.ir.nodes import Call, Expression, For, If, Let, Logical
from vesper.verify.solve.evaluation import FAILURES, Binding, Evaluator, Scope
from vesper.verify.solve.numbers import to_number

UNKNOWN = 1.5
"""Distance of a condition without a value, beyond that of a false one."""
_LEAST = 0.05
OPPOSITES = {
    "equal": "not_equal", "not_equal": "equal", "less": "greater_or_equal", "greater_or_equal": "less",
    "greater": "less_or_equal", "less_or_equal": "greater",
}  # fmt: skip


def distance(evaluator: Evaluator, condition: Expression, wanted: bool, scope: Scope) -> float:
    """Return how far inputs are from giving a condition a value."""
    try:
        if evaluator.value(condition, scope) is wanted:
            return 0.0
    except FAILURES:
        pass  # a part may still have a value, and a distance
    try:
        return _distance(evaluator, condition, wanted, scope)
    except FAILURES:
        return UNKNOWN


def _distance(evaluator: Evaluator, condition: Expression, wanted: bool, scope: Scope) -> float:
    match condition:
        case Logical(kind=kind, left=left, right=right):
            first = distance(evaluator, left, wanted, scope)
            # The right side may have no value where the left one decides.
            if (kind == "and") == wanted:
                return first + (distance(evaluator, right, wanted, scope) if first == 0 else UNKNOWN / 2)
            return 0.0 if first == 0 else min(first, distance(evaluator, right, wanted, scope))
        case Call(op="boolean.not", args=(inner,)):
            return _distance(evaluator, inner, not wanted, scope)
        case If(condition=test, then=then, otherwise=otherwise):
            taken = then if evaluator.value(test, scope) else otherwise
            return distance(evaluator, taken, wanted, scope)
        case Let(local=local, value=value, body=body):
            given = Binding(evaluator.value(value, scope), value, None, scope)
            return _distance(evaluator, body, wanted, scope.bind({local: given}))
        case For(kind="forall" | "exists"):
            return _distance_of_items(evaluator, condition, wanted, scope)
        case Call():
            return _distance_of_call(evaluator, condition, wanted, scope)
        case _:
            return 0.0 if evaluator.value(condition, scope) is wanted else 1.0


def _distance_of_items(evaluator: Evaluator, loop: For, wanted: bool, scope: Scope) -> float:
    found = []
    for place, item in evaluator.items(loop.over, scope):
        inner = evaluator.bind_item(loop.locals, loop.over, scope, place, item)
        if loop.where is None or evaluator.holds(loop.where, inner):
            found.append(distance(evaluator, loop.value, wanted, inner))
    if (loop.kind == "forall") == wanted:
        return sum(found)
    return min(found, default=1.0)


def _distance_of_call(evaluator: Evaluator, call: Call, wanted: bool, scope: Scope) -> float:
    values = [evaluator.value(each, scope) for each in call.args]
    verb = call.op.partition(".")[2]
    if verb in OPPOSITES:
        return _distance_of_values(values[0], values[1])
    if not wanted:
        return 1.0
    near = _NEARNESS.get(call.op)
    return 1.0 if near is None else _LEAST + 0.9 * near(*values)


def _distance_of_values(left: Any, right: Any) -> float:
    first, second = to_number(left), to_number(right)
    if first is not None and second is not None:
        gap = log1p(float(abs(first - second))) if abs(first - second) < 10**300 else 700.0
        return _LEAST + 0.9 * gap / (gap + 1)
    if isinstance(left, str) and isinstance(right, str):
        return _LEAST + 0.9 * _differing_share(left, right)
    return 1.0


def _differing_share(left: str, right: str) -> float:
    """Return the share of two texts that differs."""
    size = max(len(left), len(right))
    return sum(a != b for a, b in zip(left.ljust(size, "\0"), right.ljust(size, "\0"), strict=True)) / max(1, size)


_NEARNESS: dict[str, Callable[..., float]] = {
    "text.starts_with": lambda value, part: _differing_share(value[: len(part)], part),
    "text.ends_with": lambda value, part: _differing_share(value[-len(part) :], part),
    "text.is_digits": lambda value: sum(not each.isdigit() for each in value) / max(1, len(value)),
}
