"""Operations of which only bounds of the result are known: parts of dates, bits, digests, sizes of built values."""

from __future__ import annotations

import z3

from vesper.proof.context import Context
from vesper.proof.operations.operation import Operation, encodes
from vesper.proof.operations.text import length_of
from vesper.proof.symbols import ArrayTerm, DecimalTerm, Scalar, Symbolic
from vesper.proof.terms import Term, both, implied, integer, is_at_most, is_number, larger, smaller, subtract, whole
from vesper.values.model import MAX_BYTES, MAX_ENTRIES, MAX_INTEGER, MAX_TEXT

_RANGES = {
    "date.year": (1, 9999),
    "date.month": (1, 12),
    "date.day": (1, 31),
    "date.day_of_year": (1, 366),
    "date.days_in_month": (28, 31),
    "date.iso_week": (1, 53),
    "date.iso_week_year": (0, 10_000),
    "timestamp.year": (1, 9999),
    "timestamp.month": (1, 12),
    "timestamp.day": (1, 31),
    "integer.bit_count": (0, 64),
    "text.code_point": (0, 0x10FFFF),
    "bytes.at": (0, 255),
}


@encodes(*_RANGES)
def _ranged(operation: Operation) -> Symbolic:
    found = operation.abstract()
    assert isinstance(found, Scalar)
    low, high = _RANGES[operation.call.op]
    operation.context.assume(found.term >= low, found.term <= high)
    return found


@encodes("integer.bit_and")
def _bit_and(operation: Operation) -> Symbolic:
    found = operation.abstract()
    assert isinstance(found, Scalar)
    left, right = operation.term(0), operation.term(1)
    for operand in (left, right):
        operation.context.assume(z3.Implies(operand >= 0, z3.And(found.term >= 0, found.term <= operand)))
    return found


@encodes("integer.bit_or", "integer.bit_xor")
def _bit_or(operation: Operation) -> Symbolic:
    found = operation.abstract()
    assert isinstance(found, Scalar)
    left, right = operation.term(0), operation.term(1)
    # SAFETY: after an overflow an operand may be outside of its type, and the result must not be bound to it.
    is_positive = z3.And(left >= 0, right >= 0, left <= MAX_INTEGER, right <= MAX_INTEGER)
    operation.context.assume(z3.Implies(is_positive, z3.And(found.term >= 0, found.term <= left + right)))
    if operation.call.op == "integer.bit_or":
        operation.context.assume(z3.Implies(is_positive, z3.And(found.term >= left, found.term >= right)))
    return found


@encodes("integer.bit_not")
def _bit_not(operation: Operation) -> Symbolic:
    return operation.scalar(subtract(integer(-1), operation.term(0)))


def bytes_length(context: Context, term: Term) -> Term:
    """Return the number of bytes of a value."""
    value = context.literal_value("bytes", term)
    if isinstance(value, bytes):
        return integer(len(value))
    found = context.apply("length of bytes", (term,), z3.IntSort())
    context.assume(found >= 0, found <= MAX_BYTES)
    return found


@encodes("bytes.length")
def _bytes_length(operation: Operation) -> Symbolic:
    return operation.scalar(bytes_length(operation.context, operation.term(0)))


@encodes("bytes.sha256")
def _digest(operation: Operation) -> Symbolic:
    found = operation.abstract()
    assert isinstance(found, Scalar)
    operation.context.assume(bytes_length(operation.context, found.term) == 32)
    return found


@encodes("bytes.hex")
def _hex(operation: Operation) -> Symbolic:
    found = operation.abstract()
    assert isinstance(found, Scalar)
    digits = bytes_length(operation.context, operation.term(0)) * 2
    operation.context.assume(z3.Implies(digits <= MAX_TEXT, length_of(operation.context, found.term) == digits))
    return found


@encodes("bytes.utf8")
def _utf8(operation: Operation) -> Symbolic:
    found = operation.abstract()
    assert isinstance(found, Scalar)
    size, length = bytes_length(operation.context, found.term), length_of(operation.context, operation.term(0))
    fits = length * 4 <= MAX_BYTES
    operation.context.assume(z3.Implies(fits, z3.And(size >= length, size <= length * 4)))
    return found


@encodes("text.split")
def _split(operation: Operation) -> Symbolic:
    found = operation.abstract()
    assert isinstance(found, ArrayTerm)
    operation.context.assume(found.length >= 1)
    return found


@encodes("text.from_code_point")
def _from_code_point(operation: Operation) -> Symbolic:
    found = operation.abstract()
    assert isinstance(found, Scalar)
    operation.context.assume(length_of(operation.context, found.term) == 1)
    return found


_DIGITS_TOLD_APART = 4
"""The length of the text of a larger number is not known."""


@encodes("integer.text")
def _integer_text(operation: Operation) -> Symbolic:
    found = operation.abstract_scalar()
    length, number = length_of(operation.context, found.term), operation.term(0)
    operation.context.assume(length >= 1)
    for digits in range(1, _DIGITS_TOLD_APART + 1):
        is_short = z3.And(number >= 0, number < 10**digits)
        operation.context.assume(is_short == z3.And(number >= 0, length <= digits))
    return found


@encodes("decimal.text", "date.text", "timestamp.text", "duration.text")
def _written(operation: Operation) -> Symbolic:
    found = operation.abstract()
    assert isinstance(found, Scalar)
    operation.context.assume(length_of(operation.context, found.term) >= 1)
    return found


@encodes("text.slice")
def _slice(operation: Operation) -> Symbolic:
    found = operation.abstract()
    assert isinstance(found, Scalar)
    context, start, end = operation.context, operation.term(1), operation.term(2)
    length = length_of(context, operation.term(0))
    part = larger(subtract(smaller(end, length), start), integer(0))
    is_valid = both(is_at_most(integer(0), start), is_at_most(integer(0), end))
    context.assume(implied(is_valid, length_of(context, found.term) == part))
    return found


@encodes("text.replace")
def _replace(operation: Operation) -> Symbolic:
    found = operation.abstract()
    assert isinstance(found, Scalar)
    context = operation.context
    old, new = length_of(context, operation.term(1)), length_of(context, operation.term(2))
    length = length_of(context, operation.term(0))
    context.assume(implied(is_at_most(new, old), length_of(context, found.term) <= length))
    return found


@encodes("decimal.normalize")
def _normalize(operation: Operation) -> Symbolic:
    given = operation.decimal(0)
    found = operation.abstract()
    assert isinstance(found, DecimalTerm)
    operation.context.assume(found.value == given.value, found.scale <= given.scale)
    return DecimalTerm(given.value, found.scale)


@encodes("array.chunks")
def _chunks(operation: Operation) -> Symbolic | None:
    array, size = operation.array(0), operation.term(1)
    found = operation.abstract()
    assert isinstance(found, ArrayTerm)
    if found.items is None and is_number(size) and 0 < whole(size) <= MAX_ENTRIES:
        count = (array.length + (whole(size) - 1)) / whole(size)
        operation.context.assume(z3.Implies(array.length <= MAX_ENTRIES, found.length == count))
    return found
