"""Bounds that contracts put on numbers and on lengths of strings and collections.

Constraints and preconditions give them: `qty > 0`, `rate <= 1`, two letters, at most fourteen shifts. Bounds guide the
drawing of inputs past the constraints; inputs beyond them are drawn too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isfinite

from vesper.language.ir.nodes import Call, Expression, Field, For, Literal, Logical, Node, Ref, walk

_LOWER = ("greater", "greater_or_equal", "equal")
_UPPER = ("less", "less_or_equal", "equal")
_LENGTHS = ("text.length", "array.length", "array.count", "set.length", "map.length")
_MIRRORED = {
    "greater": "less",
    "greater_or_equal": "less_or_equal",
    "less": "greater",
    "less_or_equal": "greater_or_equal",
    "equal": "equal",
}
_STRICT = {"greater": ("greater_or_equal", 1), "less": ("less_or_equal", -1)}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Smallest and largest value that the constraints allow; None without a bound."""

    low: Fraction | None = None
    high: Fraction | None = None

    def admit(self, number: int) -> bool:
        return (self.low is None or self.low <= number) and (self.high is None or number <= self.high)


def number_bounds(node: Node) -> dict[str, Bounds]:
    """Return bounds by name of an input or field; fields of the same name share bounds."""
    found: dict[str, Bounds] = {}
    for subject, verb, bound in _comparisons(node):
        if isinstance(subject, Ref | Field):
            found[subject.name] = _tighten(found.get(subject.name, Bounds()), verb, bound)
    return found


def length_bounds(node: Node) -> dict[str, Bounds]:
    """Return bounds of the lengths of strings and collections, by name."""
    found: dict[str, Bounds] = {}
    for subject, verb, bound in _comparisons(node):
        if isinstance(subject, Call) and subject.op in _LENGTHS and isinstance(subject.args[0], Ref | Field):
            name = subject.args[0].name
            # Lengths are integers: more than 0 means at least 1.
            verb, bound = _STRICT.get(verb, (verb, 0))[0], bound + _STRICT.get(verb, (verb, 0))[1]
            found[name] = _tighten(found.get(name, Bounds()), verb, bound)
    return found


def _comparisons(node: Node) -> list[tuple[Expression, str, Fraction]]:
    """Return every comparison of a value with a number that must hold, as if the number were on its right."""
    found = []
    # A constraint concerns one value, so every comparison in it counts; a precondition may contain alternatives.
    parts = [part for clause in node.constraints for part in walk(clause.holds)]
    parts += [part for clause in node.preconditions for part in _must_hold(clause.holds)]
    for part in parts:
        if isinstance(part, Call) and len(part.args) == 2:
            left, right = part.args
            verb = part.op.partition(".")[2]
            if (bound := _number(right)) is not None:
                found.append((left, verb, bound))
            elif (bound := _number(left)) is not None:
                found.append((right, _MIRRORED.get(verb, ""), bound))
    return found


def _number(expression: Expression) -> Fraction | None:
    """Return the number of a literal; None for other expressions."""
    value = expression.value if isinstance(expression, Literal) else None
    is_number = isinstance(value, int | Decimal) or (isinstance(value, float) and isfinite(value))
    if not is_number or isinstance(value, bool):
        return None
    assert isinstance(value, int | Decimal | float)
    return Fraction(value)


def _tighten(known: Bounds, verb: str, bound: Fraction) -> Bounds:
    low = bound if verb in _LOWER else None
    high = bound if verb in _UPPER else None
    lows = [each for each in (known.low, low) if each is not None]
    highs = [each for each in (known.high, high) if each is not None]
    return Bounds(max(lows, default=None), min(highs, default=None))


def _must_hold(condition: Expression) -> Iterator[Expression]:
    """Yield the parts of a clause that are true whenever it is, including those for every item."""
    match condition:
        case Logical(kind="and", left=left, right=right):
            yield from _must_hold(left)
            yield from _must_hold(right)
        case For(kind="forall", value=value, where=None):
            yield from _must_hold(value)
        case Logical():
            return
        case _:
            yield condition
