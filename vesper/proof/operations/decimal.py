"""Encodings of decimals: a real number and a scale, exact but for the number of digits."""

from __future__ import annotations

from fractions import Fraction

import z3

from vesper.proof.arithmetic import overflows, power_of_ten, product, rounded
from vesper.proof.context import ABSTRACT, Context
from vesper.proof.operations.operation import Operation, encodes
from vesper.proof.symbols import RANGES, DecimalTerm, Scalar, Symbolic
from vesper.proof.terms import (
    FALSE,
    TRUE,
    ZERO,
    Term,
    add,
    as_real,
    both,
    choose,
    either,
    integer,
    is_less,
    is_number,
    is_same,
    larger,
    linear_product,
    magnitude,
    negated,
    negative,
    number,
    real,
    subtract,
    truth,
    whole,
)
from vesper.values.types import INTEGER

_OVERFLOW = "decimal_overflow"
_EXACT_PLACES = 15


def _checked(operation: Operation, value: Term, scale: Term) -> Symbolic:
    """Return a decimal that fails beyond the limits."""
    operation.fail(_OVERFLOW, overflows(operation.context, value, scale))
    return DecimalTerm(value, scale)


@encodes("decimal.add")
def _add(operation: Operation) -> Symbolic:
    left, right = operation.decimal(0), operation.decimal(1)
    return _checked(operation, add(left.value, right.value), larger(left.scale, right.scale))


@encodes("decimal.subtract")
def _subtract(operation: Operation) -> Symbolic:
    left, right = operation.decimal(0), operation.decimal(1)
    return _checked(operation, subtract(left.value, right.value), larger(left.scale, right.scale))


@encodes("decimal.multiply")
def _multiply(operation: Operation) -> Symbolic:
    left, right = operation.decimal(0), operation.decimal(1)
    value = product(operation.context, left.value, right.value)
    return _checked(operation, value, add(left.scale, right.scale))


@encodes("decimal.negate")
def _negate(operation: Operation) -> Symbolic:
    given = operation.decimal(0)
    return DecimalTerm(negative(given.value), given.scale)


@encodes("decimal.abs")
def _abs(operation: Operation) -> Symbolic:
    given = operation.decimal(0)
    return DecimalTerm(magnitude(given.value), given.scale)


@encodes("decimal.sign")
def _sign(operation: Operation) -> Symbolic:
    value = operation.decimal(0).value
    sign = choose(is_less(value, real(0)), integer(-1), choose(is_same(value, real(0)), ZERO, integer(1)))
    return Scalar(INTEGER, sign)


@encodes("decimal.scale")
def _scale(operation: Operation) -> Symbolic:
    given = operation.decimal(0)
    _know_units(operation, given)
    return Scalar(INTEGER, given.scale)


def _know_units(operation: Operation, given: DecimalTerm) -> None:
    """Add that a decimal of a small scale is a whole number of its units."""
    if is_number(given.value):
        return
    for places in range(5):
        units = operation.context.apply(f"units of scale {places}", (given.value,), z3.IntSort())
        fact = given.value * real(power_of_ten(places)) == z3.ToReal(units)
        operation.context.assume(z3.Implies(is_same(given.scale, integer(places)), fact))


def round_to(value: Term, places: int, mode: str) -> Term:
    """Return a number rounded to decimal places."""
    unit = real(power_of_ten(places))
    scaled = linear_product(value, unit)
    whole_units = rounded(value if scaled is None else scaled, mode)
    found = linear_product(as_real(whole_units), real(power_of_ten(-places)))
    assert found is not None
    return found


def _mode(operation: Operation, at: int) -> str | None:
    """Return the rounding mode of an operand that is constant."""
    term = operation.term(at)
    return operation.context.member_name(whole(term)) if is_number(term) else None


@encodes("decimal.round")
def _round(operation: Operation) -> Symbolic | None:
    given, places = operation.decimal(0), operation.term(1)
    mode = _mode(operation, 2)
    if mode is None:
        return None
    if not is_number(places):
        return _round_to_unknown_places(operation, given.value, mode)
    operation.fail("invalid_argument", truth(not -1000 <= whole(places) <= 1000))
    if not -40 <= whole(places) <= 40:
        return None
    value = round_to(given.value, whole(places), mode)
    kept = choose(given.scale <= whole(places), given.value, value) if not is_number(given.scale) else value
    return _checked(operation, kept, integer(max(0, whole(places))))


@encodes("decimal.floor", "decimal.ceil", "decimal.trunc")
def _to_whole(operation: Operation) -> Symbolic:
    mode = {"floor": "floor", "ceil": "ceiling", "trunc": "down"}[operation.call.op.partition(".")[2]]
    return operation.ranged(rounded(operation.decimal(0).value, mode), "integer_overflow")


@encodes("decimal.to_integer")
def _to_integer(operation: Operation) -> Symbolic:
    value = operation.decimal(0).value
    floor = rounded(value, "floor")
    operation.fail("not_whole", negated(is_same(as_real(floor), value)))
    return operation.ranged(floor, "integer_overflow")


def _finite_places(divisor: Fraction) -> int | None:
    """Return the places of 1 / divisor, where it is a finite decimal."""
    rest, twos, fives = abs(divisor.numerator), 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None


@encodes("decimal.divide", "integer.divide")
def _divide(operation: Operation) -> Symbolic | None:
    if operation.call.op == "integer.divide":
        left, right = DecimalTerm(as_real(operation.term(0)), ZERO), DecimalTerm(as_real(operation.term(1)), ZERO)
    else:
        left, right = operation.decimal(0), operation.decimal(1)
    operation.fail("division_by_zero", is_same(right.value, real(0)))
    context = operation.context
    operands = (left.value, left.scale, right.value, right.scale)
    value = context.apply(f"{ABSTRACT}quotient", operands, z3.RealSort())
    scale = context.apply(f"{ABSTRACT}scale of quotient", operands, z3.IntSort())
    context.assume(scale >= 0, scale <= 1034)
    operation.fail(_OVERFLOW, context.apply(f"{ABSTRACT}quotient overflow", operands, z3.BoolSort()))
    _know_quotient(operation, left, right, value)
    return DecimalTerm(value, scale)


def _know_quotient(operation: Operation, left: DecimalTerm, right: DecimalTerm, value: Term) -> None:
    """Add the known facts about a quotient of 34 digits: its sign and, for a constant divisor, its bounds."""
    context, zero, one = operation.context, real(0), real(1)
    a, b = left.value, right.value
    is_defined = negated(is_same(b, zero))
    context.assume(
        z3.Implies(both(is_defined, is_same(a, zero)), value == zero),
        z3.Implies(z3.Or(z3.And(a >= zero, b > zero), z3.And(a <= zero, b < zero)), value >= zero),
        z3.Implies(z3.Or(z3.And(a <= zero, b > zero), z3.And(a >= zero, b < zero)), value <= zero),
        z3.Implies(z3.And(a >= zero, b > zero, a <= b), value <= one),
        z3.Implies(z3.And(b > zero, a >= b), value >= one),
        z3.Implies(
            is_same(b, one), z3.Implies(z3.And(a < 10**15, a > -(10**15), left.scale <= _EXACT_PLACES), value == a)
        ),
    )
    if not is_number(b) or number(b) == 0:
        context.assume(z3.Implies(both(is_defined, is_same(a, b)), value == one))
        return
    exact = linear_product(a, real(1 / number(b)))
    assert exact is not None
    slack = Fraction(1, 10**33)
    low, high = linear_product(exact, real(1 - slack)), linear_product(exact, real(1 + slack))
    context.assume(
        z3.Implies(exact >= zero, z3.And(value >= low, value <= high)),
        z3.Implies(exact <= zero, z3.And(value <= low, value >= high)),
    )
    places = _finite_places(number(b))
    if places is not None and places < 33 - _EXACT_PLACES and number(b).denominator == 1:
        most = 10 ** (33 - _EXACT_PLACES - places)
        fits = z3.And(exact < most, exact > -most, left.scale <= _EXACT_PLACES)
        context.assume(z3.Implies(fits, value == exact))


@encodes("decimal.div")
def _div(operation: Operation) -> Symbolic | None:
    left, right, places = operation.decimal(0), operation.decimal(1), operation.term(2)
    mode = _mode(operation, 3)
    if mode is None or (is_number(places) and not 0 <= whole(places) <= 40):
        return None
    exact = _exact_quotient(operation.context, left.value, right.value)
    if not is_number(places):
        return _round_to_unknown_places(operation, exact, mode)
    operation.fail("invalid_argument", FALSE)
    operation.fail("division_by_zero", is_same(right.value, real(0)))
    return _checked(operation, round_to(exact, whole(places), mode), places)


def _round_to_unknown_places(operation: Operation, value: Term, mode: str) -> DecimalTerm:
    """Return a number rounded to unknown places. Only the side of the number on which the result lies is known."""
    found = operation.abstract()
    assert isinstance(found, DecimalTerm)
    zero, result = real(0), found.value
    below, above = result <= value, result >= value
    is_down = both(z3.Implies(value >= zero, below), z3.Implies(value <= zero, above))
    is_up = both(z3.Implies(value >= zero, above), z3.Implies(value <= zero, below))
    sides = {"floor": below, "ceiling": above, "down": is_down, "up": is_up}
    operation.know(
        z3.Implies(value >= zero, result >= zero), z3.Implies(value <= zero, result <= zero), sides.get(mode, TRUE)
    )
    return found


def _exact_quotient(context: Context, left: Term, right: Term) -> Term:
    """Return the quotient of two numbers as a real number."""
    if is_number(right) and number(right) != 0:
        exact = linear_product(left, real(1 / number(right)))
        assert exact is not None
        return exact
    operands = (left, right)
    quotient = context.apply("quotient of reals", operands, z3.RealSort())
    zero, one = real(0), real(1)
    a, b = operands
    if context.define(z3.Implies(b != zero, quotient * b == a)):
        context.assume(
            z3.Implies(z3.And(b != zero, a == zero), quotient == zero),
            z3.Implies(z3.Or(z3.And(a > zero, b > zero), z3.And(a < zero, b < zero)), quotient > zero),
            z3.Implies(z3.Or(z3.And(a < zero, b > zero), z3.And(a > zero, b < zero)), quotient < zero),
            z3.Implies(z3.And(b != zero, a == b), quotient == one),
            z3.Implies(z3.And(b > zero, a < b), quotient < one),
            z3.Implies(z3.And(b > zero, a > b), quotient > one),
        )
    return quotient


@encodes("decimal.sum", "integer.sum", "duration.sum")
def _sum(operation: Operation) -> Symbolic | None:
    array = operation.array(0)
    if array.items is None:
        return None
    is_decimal = operation.call.op == "decimal.sum"
    total: Term = real(0) if is_decimal else ZERO
    scale: Term = ZERO
    for position, item in enumerate(array.items):
        is_there = is_less(integer(position), array.length)
        if is_decimal:
            assert isinstance(item, DecimalTerm)
            total = choose(is_there, add(total, item.value), total)
            scale = choose(is_there, larger(scale, item.scale), scale)
            operation.fail(_OVERFLOW, both(is_there, overflows(operation.context, total, scale)))
        else:
            assert isinstance(item, Scalar)
            total = choose(is_there, add(total, item.term), total)
            low, high = RANGES[operation.call.type]
            code = "integer_overflow" if operation.call.op == "integer.sum" else "time_overflow"
            operation.fail(code, both(is_there, either(is_less(total, integer(low)), is_less(integer(high), total))))
    return DecimalTerm(total, scale) if is_decimal else Scalar(operation.call.type, total)
