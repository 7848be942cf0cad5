"""Integers: 64 bits, and an operation whose result does not fit them fails."""

from __future__ import annotations

from collections.abc import Iterable

from vesper.kernels.raised import Raised
from vesper.spec.errors import ErrorCode
from vesper.spec.values import MAX_INTEGER, MIN_INTEGER


def checked(number: int) -> int:
    """The number, if it fits."""
    # SEMANTICS: Python integers do not overflow, Vesper's do.
    if MIN_INTEGER <= number <= MAX_INTEGER:
        return number
    raise Raised(ErrorCode.INTEGER_OVERFLOW)


def checked_sum(numbers: Iterable[int]) -> int:
    """The sum from the left; each partial sum must fit."""
    total = 0
    for number in numbers:
        total = checked(total + number)
    return total


def add(left: int, right: int) -> int:
    return checked(left + right)


def subtract(left: int, right: int) -> int:
    return checked(left - right)


def multiply(left: int, right: int) -> int:
    return checked(left * right)


def negate(value: int) -> int:
    return checked(-value)


def equal(left: int, right: int) -> bool:
    return left == right


def not_equal(left: int, right: int) -> bool:
    return left != right


def less(left: int, right: int) -> bool:
    return left < right


def less_or_equal(left: int, right: int) -> bool:
    return left <= right


def greater(left: int, right: int) -> bool:
    return left > right


def greater_or_equal(left: int, right: int) -> bool:
    return left >= right
