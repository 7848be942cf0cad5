"""Products of two unknowns, and rounding."""

from __future__ import annotations

from fractions import Fraction

import z3

from vesper.proof.context import ABSTRACT, Context
from vesper.proof.terms import Term, both, choose, implied, is_number, linear_product, negative, number, real


def product(context: Context, left: Term, right: Term) -> Term:
    """Return the product of two numbers.

    In a proof, the product of two unknowns is an uninterpreted function with linear facts. The exact equation is a
    definition, which a query asserts only if it cannot decide without it.
    """
    linear = linear_product(left, right)
    if linear is not None:
        return linear
    if context.bounds.is_finding:
        return left * right
    first, second = (left, right) if (left.hash(), left.get_id()) <= (right.hash(), right.get_id()) else (right, left)
    found = context.apply("product", (first, second), first.sort())
    exact = found == first * second
    if context.define(exact):
        zero = _number(first, 0)
        one = _number(first, 1)
        context.assume(
            (found == zero) == z3.Or(first == zero, second == zero),
            (found > zero) == z3.Or(z3.And(first > zero, second > zero), z3.And(first < zero, second < zero)),
            implied(first == one, found == second),
            implied(second == one, found == first),
            *(
                z3.Implies(
                    z3.And(a >= zero, b >= zero),
                    z3.And(z3.Implies(a <= one, found <= b), z3.Implies(a >= one, found >= b)),
                )
                for a, b in ((first, second), (second, first))
            ),
        )
    return found


def _number(like: Term, value: int) -> Term:
    return z3.IntVal(value) if z3.is_int(like) else real(value)


def rounded(value: Term, mode: str) -> Term:
    """Return the whole number nearest to a number under a rounding mode, as a term of integers."""
    if is_number(value):
        return z3.IntVal(_rounded(number(value), mode))
    if mode == "floor":
        return z3.ToInt(value)
    if mode == "ceiling":
        return -z3.ToInt(-value)
    if mode in ("down", "up"):
        below, above = z3.ToInt(value), -z3.ToInt(-value)
        return choose(value >= 0, below if mode == "down" else above, above if mode == "down" else below)
    half = value + real(Fraction(1, 2))
    up = z3.ToInt(half)
    is_tie = half == z3.ToReal(up)
    if mode == "half_even":
        return choose(both(is_tie, up % 2 == 1), up - 1, up)
    if mode == "half_up":  # a tie away from zero
        return choose(both(is_tie, value < 0), up - 1, up)
    assert mode == "half_down", f"no mode {mode}"
    return choose(both(is_tie, value > 0), up - 1, up)


def _rounded(value: Fraction, mode: str) -> int:
    below = value.numerator // value.denominator
    rest = value - below
    if rest == 0:
        return below
    match mode:
        case "floor":
            return below
        case "ceiling":
            return below + 1
        case "down":
            return below if value >= 0 else below + 1
        case "up":
            return below + 1 if value >= 0 else below
    if rest != Fraction(1, 2):
        return below if rest < Fraction(1, 2) else below + 1
    if mode == "half_even":
        return below + below % 2
    return (below + 1 if value >= 0 else below) if mode == "half_up" else (below if value >= 0 else below + 1)


def power_of_ten(exponent: int) -> Fraction:
    return Fraction(10) ** exponent


def overflows(context: Context, value: Term, scale: Term) -> Term:
    """Return whether a decimal exceeds 1,000 digits or 1,000 places.

    The digits are a function of number and scale, of which small numbers with few places are known to fit.
    """
    from vesper.proof.terms import either, is_less, truth

    if is_number(value) and is_number(scale):
        places = int(number(scale))
        return truth(places > 1000 or abs(number(value)) * Fraction(10) ** places >= Fraction(10) ** 1000)
    name = f"{ABSTRACT}digits overflow"
    found = context.apply(name, (value, scale), z3.BoolSort())
    huge = z3.Real("10^900")
    context.assume(
        huge > real(10**60),
        z3.Implies(z3.And(scale <= 100, value < huge, negative(huge) < value), z3.Not(found)),
    )
    return either(is_less(z3.IntVal(1000), scale), found)
