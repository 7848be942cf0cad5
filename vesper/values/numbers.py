"""Decimals and floats as text, in both directions: docs/spec/values.md and docs/spec/numbers.md."""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal, InvalidOperation

from vesper.values.problem import ProblemKind, ValueProblem

MAX_DIGITS = 1000
MAX_SCALE = 1000

# Own context, so that the caller's context affects neither parsing nor errors.
EXACT_CONTEXT = Context(traps=[InvalidOperation])
_DECIMAL_TEXT = re.compile(r"[+-]?(?P<mantissa>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE](?P<exponent>[+-]?[0-9]+))?")
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def parse_decimal(text: str) -> Decimal:
    """Return the decimal of a text, within the limits. It has scale ≥ 0 and no negative zero."""
    match = _DECIMAL_TEXT.fullmatch(text)
    if match is None:
        raise ValueProblem(ProblemKind.MALFORMED)
    digits = match["mantissa"].replace(".", "").lstrip("0")
    if len(digits) > MAX_DIGITS:  # an exponent never shortens a coefficient
        raise ValueProblem(ProblemKind.OUT_OF_RANGE)
    try:
        return normal_decimal(Decimal(text, EXACT_CONTEXT))
    except InvalidOperation:
        # The exponent exceeds the limits of `decimal`; with a huge positive one only zero is valid.
        if digits or match["exponent"].startswith("-"):
            raise ValueProblem(ProblemKind.OUT_OF_RANGE) from None
        return Decimal(0)


def normal_decimal(number: Decimal) -> Decimal:
    """Return the number with scale ≥ 0 and no negative zero. Raises a problem beyond the limits."""
    sign, digits, exponent = Decimal.as_tuple(number)
    if not isinstance(exponent, int):
        raise ValueProblem(ProblemKind.MALFORMED)
    is_zero = digits == (0,) or not any(digits)
    if exponent > 0:
        if is_zero:
            return Decimal(0)
        if len(digits) + exponent > MAX_DIGITS:
            raise ValueProblem(ProblemKind.OUT_OF_RANGE)
        return Decimal((sign, digits + (0,) * exponent, 0))
    if len(digits) > MAX_DIGITS or -exponent > MAX_SCALE:
        raise ValueProblem(ProblemKind.OUT_OF_RANGE)
    if is_zero:
        return Decimal((0, (0,), exponent))
    return number if type(number) is Decimal else Decimal((sign, digits, exponent))


def decimal_of_integer(number: int) -> Decimal:
    """Return an integer as a decimal. Raises a problem where it has too many digits."""
    # 1,000 digits need at most 3,322 bits. Checked first, because converting a huge integer takes quadratic time.
    if number.bit_length() > 3322:
        raise ValueProblem(ProblemKind.OUT_OF_RANGE)
    return normal_decimal(Decimal(number))


def decimal_text(number: Decimal) -> str:
    """Return plain notation with exactly *scale* places.

    A negative zero shows as `-0`, so that the defect is visible.
    """
    return format(number, "f")


def parse_float(text: str) -> float:
    """Return the float nearest to the number of a text; infinity beyond the largest float."""
    if text in _NOT_FINITE:
        return _NOT_FINITE[text]
    if _DECIMAL_TEXT.fullmatch(text) is None:
        raise ValueProblem(ProblemKind.MALFORMED)
    return float(text)


def finite_float(text: str) -> float:
    """Return the float of a written number. Beyond the largest float it is out of range."""
    number = parse_float(text)
    if math.isinf(number) and text not in _NOT_FINITE:
        raise ValueProblem(ProblemKind.OUT_OF_RANGE)
    return number


def float_text(number: float) -> str:
    """Return the shortest digits that read back as the same float."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    # SEMANTICS: Python's repr is the text that the specification defines.
    return float.__repr__(number)
