"""The range of integers of an expression, so that overflow checks that cannot fail are not written.

Only facts of the expression itself are used: literals, both sides of an `if`, and sums and products of these. A name
may be any integer. This keeps `(30 if flagged else 0) + …` readable and every real overflow check in place.
"""

from __future__ import annotations

from vesper.language.ir.nodes import Call, Expression, For, If, Literal
from vesper.values.model import MAX_INTEGER, MAX_SCALE, MIN_INTEGER

Range = tuple[int, int]
_ANY: Range = (MIN_INTEGER, MAX_INTEGER)
_OF_RESULT: dict[str, Range] = {
    **{f"{family}.length": (0, MAX_INTEGER) for family in ("text", "bytes", "array", "set", "map")},
    "bytes.at": (0, 255),
    "integer.sign": (-1, 1),
    "integer.bit_count": (0, 64),
    "decimal.sign": (-1, 1),
    "decimal.scale": (0, MAX_SCALE),
    "text.code_point": (0, 0x10FFFF),
}
"""Operations whose results are never outside a range, whatever their operands."""


def cannot_overflow(call: Call) -> bool:
    """Return whether the exact result of this integer operation fits 64 bits for all possible operands."""
    low, high = _exact_range(call)
    return MIN_INTEGER <= low and high <= MAX_INTEGER


def integer_range(expression: Expression) -> Range:
    """Return the smallest and the largest integer that the expression can be."""
    match expression:
        case Literal(value=int(value)):
            return value, value
        case If(then=then, otherwise=otherwise):
            (a, b), (c, d) = integer_range(then), integer_range(otherwise)
            return min(a, c), max(b, d)
        case For(kind="count"):
            return 0, MAX_INTEGER
        case Call():
            low, high = _exact_range(expression)
            return max(low, MIN_INTEGER), min(high, MAX_INTEGER)
        case _:
            return _ANY


def _exact_range(call: Call) -> Range:
    """Return the range of the exact result, before any overflow check."""
    operands = [integer_range(argument) for argument in call.args]
    match call.op, operands:
        case "integer.add", [(a, b), (c, d)]:
            return a + c, b + d
        case "integer.subtract", [(a, b), (c, d)]:
            return a - d, b - c
        case "integer.multiply", [(a, b), (c, d)]:
            products = (a * c, a * d, b * c, b * d)
            return min(products), max(products)
        case "integer.negate", [(a, b)]:
            return -b, -a
        case "value.min", [(a, b), (c, d)]:
            return min(a, c), min(b, d)
        case "value.max", [(a, b), (c, d)]:
            return max(a, c), max(b, d)
        case "value.clamp", [(a, b), (c, d), (e, f)]:
            return max(c, min(a, e)), max(d, min(b, f))
        case op, _:
            return _OF_RESULT.get(op, _ANY)
