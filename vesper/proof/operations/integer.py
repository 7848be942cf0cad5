"""Encodings of integers: exact in unbounded integers, with overflow as a failure."""

from __future__ import annotations

from vesper.proof.arithmetic import product
from vesper.proof.operations.operation import Operation, encodes
from vesper.proof.symbols import DecimalTerm, Symbolic
from vesper.proof.terms import (
    ZERO,
    Term,
    add,
    as_real,
    choose,
    integer,
    is_less,
    is_number,
    is_same,
    magnitude,
    negative,
    subtract,
    truth,
    whole,
)


@encodes("integer.add")
def _add(operation: Operation) -> Symbolic:
    return operation.ranged(add(operation.term(0), operation.term(1)), "integer_overflow")


@encodes("integer.subtract")
def _subtract(operation: Operation) -> Symbolic:
    return operation.ranged(subtract(operation.term(0), operation.term(1)), "integer_overflow")


@encodes("integer.multiply")
def _multiply(operation: Operation) -> Symbolic:
    return operation.ranged(product(operation.context, operation.term(0), operation.term(1)), "integer_overflow")


@encodes("integer.negate")
def _negate(operation: Operation) -> Symbolic:
    return operation.ranged(negative(operation.term(0)), "integer_overflow")


@encodes("integer.abs")
def _abs(operation: Operation) -> Symbolic:
    return operation.ranged(magnitude(operation.term(0)), "integer_overflow")


@encodes("integer.sign")
def _sign(operation: Operation) -> Symbolic:
    term = operation.term(0)
    return operation.scalar(choose(is_less(term, ZERO), integer(-1), choose(is_same(term, ZERO), ZERO, integer(1))))


def floor_quotient(left: Term, divisor: int) -> Term:
    """Return the quotient rounded toward negative infinity, of a constant divisor that is not zero."""
    # SEMANTICS: z3 rounds so that the remainder is not negative; with a positive divisor that is the floor.
    if is_number(left):
        return integer(whole(left) // divisor)
    return left / integer(divisor) if divisor > 0 else negative(left) / integer(-divisor)


def floor_remainder(left: Term, divisor: int) -> Term:
    """Return the remainder with the sign of a constant divisor that is not zero."""
    if is_number(left):
        return integer(whole(left) % divisor)
    return left % integer(divisor) if divisor > 0 else negative(negative(left) % integer(-divisor))


def toward_zero(left: Term, divisor: int) -> Term:
    """Return the quotient rounded toward zero, of a constant divisor that is not zero."""
    quotient = choose(
        is_less(left, ZERO),
        negative(floor_quotient(negative(left), abs(divisor))),
        floor_quotient(left, abs(divisor)),
    )
    return quotient if divisor > 0 else negative(quotient)


def _divided(operation: Operation) -> int | None:
    """Return a constant divisor other than zero. Adds the failure of division by zero."""
    divisor = operation.term(1)
    if not is_number(divisor) or whole(divisor) == 0:
        return None
    operation.fail("division_by_zero", truth(False))
    return whole(divisor)


@encodes("integer.quot")
def _quot(operation: Operation) -> Symbolic | None:
    divisor = _divided(operation)
    return None if divisor is None else operation.ranged(toward_zero(operation.term(0), divisor), "integer_overflow")


@encodes("integer.div_floor")
def _div_floor(operation: Operation) -> Symbolic | None:
    divisor = _divided(operation)
    return None if divisor is None else operation.ranged(floor_quotient(operation.term(0), divisor), "integer_overflow")


@encodes("integer.rem")
def _rem(operation: Operation) -> Symbolic | None:
    divisor = _divided(operation)
    if divisor is None:
        return None
    left = operation.term(0)
    return operation.scalar(subtract(left, _times(toward_zero(left, divisor), divisor)))


@encodes("integer.mod")
def _mod(operation: Operation) -> Symbolic | None:
    divisor = _divided(operation)
    return None if divisor is None else operation.scalar(floor_remainder(operation.term(0), divisor))


def _times(term: Term, factor: int) -> Term:
    return integer(whole(term) * factor) if is_number(term) else term * factor


@encodes("decimal.from_integer")
def _to_decimal(operation: Operation) -> Symbolic:
    return DecimalTerm(as_real(operation.term(0)), ZERO)
