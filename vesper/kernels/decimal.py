"""Decimals: exact or failing, never rounded.

Python's `decimal` does the arithmetic under one context. Its precision and exponent limits are the language's limits,
and every signal that would mean a lost digit is trapped, so a bare `a * b` in generated code is either exact or an
exception.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import (
    ROUND_HALF_EVEN,
    Clamped,
    Context,
    Decimal,
    DecimalException,
    DivisionByZero,
    FloatOperation,
    Inexact,
    InvalidOperation,
    Overflow,
    Rounded,
    getcontext,
    setcontext,
)
from functools import wraps
from typing import ParamSpec, TypeVar

from vesper.kernels.raised import Raised
from vesper.spec.errors import ErrorCode
from vesper.spec.values import MAX_DIGITS, MAX_SCALE

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

# SEMANTICS: a result may have MAX_DIGITS digits and MAX_SCALE places. `decimal` bounds places by its smallest
# exponent, which is Emin - prec + 1; a shorter exact result there would be clamped or rounded, and both are trapped.
EXACT = Context(
    prec=MAX_DIGITS,
    rounding=ROUND_HALF_EVEN,
    Emin=MAX_DIGITS - 1 - MAX_SCALE,
    Emax=MAX_DIGITS - 1,
    capitals=1,
    clamp=0,
    traps=[Inexact, Rounded, Clamped, Overflow, InvalidOperation, DivisionByZero, FloatOperation],
)


def exact_decimals(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Run a function under the exact context, whatever the caller's is, and give the caller's back."""

    @wraps(function)
    def under_exact_context(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        callers = getcontext()
        setcontext(EXACT)
        try:
            return function(*args, **kwargs)
        finally:
            setcontext(callers)

    return under_exact_context


def unsigned_zero(number: Decimal) -> Decimal:
    """The same number; zero loses the sign that `decimal` gives a product such as 0 * -1."""
    return number if number else abs(number)


def _exactly(operation: Callable[[Decimal, Decimal], Decimal], left: Decimal, right: Decimal) -> Decimal:
    try:
        return unsigned_zero(operation(left, right))
    except DecimalException:
        raise Raised(ErrorCode.DECIMAL_OVERFLOW) from None


def from_integer(value: int) -> Decimal:
    return Decimal(value)


def add(left: Decimal, right: Decimal) -> Decimal:
    return _exactly(EXACT.add, left, right)


def subtract(left: Decimal, right: Decimal) -> Decimal:
    return _exactly(EXACT.subtract, left, right)


def multiply(left: Decimal, right: Decimal) -> Decimal:
    return _exactly(EXACT.multiply, left, right)


def negate(value: Decimal) -> Decimal:
    return EXACT.minus(value)


def equal(left: Decimal, right: Decimal) -> bool:
    return left == right


def not_equal(left: Decimal, right: Decimal) -> bool:
    return left != right


def less(left: Decimal, right: Decimal) -> bool:
    return left < right


def less_or_equal(left: Decimal, right: Decimal) -> bool:
    return left <= right


def greater(left: Decimal, right: Decimal) -> bool:
    return left > right


def greater_or_equal(left: Decimal, right: Decimal) -> bool:
    return left >= right
