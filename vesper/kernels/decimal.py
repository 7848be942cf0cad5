"""Decimals: exact or failing; rounded only by rounding operations, and once.

Python's `decimal` computes under one context. Its precision and exponent limits are the language's, and every signal of
a lost digit is trapped, so a bare `a * b` in generated code is either exact or an exception.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from contextvars import Context as ContextVariables
from decimal import (
    HAVE_CONTEXTVAR,
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
from typing import Final, ParamSpec, TypeVar, cast

from vesper.kernels.arithmetic import irrational, statistics
from vesper.kernels.arithmetic.rounding import (
    SIGNIFICANT,
    assemble,
    divide_rounded,
    fit_scale,
    parts,
    rescale,
    rounded_quotient,
    scale_of,
    unbounded_context,
    write_out,
)
from vesper.kernels.integer import checked
from vesper.kernels.raised import Raised
from vesper.kernels.work import count_work
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import (
    MAX_DIGITS,
    MAX_INTEGER,
    MAX_SCALE,
    MIN_INTEGER,
    ProblemKind,
    ValueProblem,
    decimal_text,
    parse_decimal,
)
from vesper.values.numbers import parse_float

_VARIADIC = 0x0C  # `*args`, `**kwargs`: CO_VARARGS and CO_VARKEYWORDS of `inspect`
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_Number = TypeVar("_Number", Decimal, Decimal | None)
_MAX_POWER_DIGITS = 1_000_000

# SEMANTICS: a result may have MAX_DIGITS digits and MAX_SCALE places. `decimal` bounds places by its smallest exponent,
# Emin - prec + 1; a shorter exact result there would be clamped or rounded, and both are trapped.
EXACT = Context(
    prec=MAX_DIGITS,
    rounding=ROUND_HALF_EVEN,
    Emin=MAX_DIGITS - 1 - MAX_SCALE,
    Emax=MAX_DIGITS - 1,
    capitals=1,
    clamp=0,
    traps=[Inexact, Rounded, Clamped, Overflow, InvalidOperation, DivisionByZero, FloatOperation],
)


# `decimal` holds its context in a context variable. Running in a copy of a prepared context costs a third of setting
# and restoring it. Each run needs its own copy, because a context cannot be entered twice at a time.
_EXACTLY = ContextVariables()
_EXACTLY.run(setcontext, EXACT)
_copy = _EXACTLY.copy


def exact_decimals(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Run a function under the exact context and leave the caller's context unchanged."""
    if not HAVE_CONTEXTVAR:  # CPython may be built with the decimal context per thread
        return _with_the_threads_context(function)

    @wraps(function)
    def under_exact_context(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        try:
            return _copy().run(function, *args, **kwargs)
        except PYTHON_FAILURES as failure:
            raise translate_failure(failure) from None

    return under_exact_context


def exact_entry(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Run an entry under the exact context. Most take one object, which is faster to pass than `*args`."""
    if not HAVE_CONTEXTVAR or _has_more_parameters(function):
        return exact_decimals(function)

    @wraps(function)
    def under_exact_context(inputs: object) -> _Result:
        try:
            return _copy().run(function, inputs)  # type: ignore[call-arg,arg-type]  # `_has_more_parameters` checked that it takes one
        except PYTHON_FAILURES as failure:
            raise translate_failure(failure) from None

    return cast("Callable[_Parameters, _Result]", under_exact_context)


def _has_more_parameters(function: Callable[..., object]) -> bool:
    """Return whether a function has parameters besides the first, such as `now` or `mark`."""
    code = getattr(function, "__code__", None)
    if code is not None and not hasattr(function, "__wrapped__") and not code.co_flags & _VARIADIC:
        return bool(code.co_argcount + code.co_kwonlyargcount > 1)
    from inspect import signature  # takes long to load, and generated code never comes here

    return len(signature(function).parameters) > 1


def _with_the_threads_context(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    @wraps(function)
    def under_exact_context(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        callers = getcontext()
        setcontext(EXACT)
        try:
            return function(*args, **kwargs)
        except PYTHON_FAILURES as failure:
            raise translate_failure(failure) from None
        finally:
            setcontext(callers)

    return under_exact_context


PYTHON_FAILURES: Final = (DecimalException, KeyError)
"""Exceptions of bare Python: digit loss in an operator, or a missing key."""


def translate_failure(failure: DecimalException | KeyError) -> Raised:
    """Return the language's failure for an exception of bare Python, with its traceback."""
    code = ErrorCode.MISSING_KEY if isinstance(failure, KeyError) else ErrorCode.DECIMAL_OVERFLOW
    return Raised(code).with_traceback(failure.__traceback__)


def unsigned_zero(number: _Number) -> _Number:
    """Return the number with an unsigned zero. `decimal` signs products such as 0 * -1.

    The value of a skipped step is null and stays null.
    """
    return number if number or number is None else number.copy_abs()


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


def sum(values: Sequence[Decimal]) -> Decimal:
    total = Decimal(0)
    for value in values:
        total = add(total, value)
    return total


def avg(values: Sequence[Decimal]) -> Decimal:
    if not values:
        raise Raised(ErrorCode.EMPTY_COLLECTION)
    return divide(sum(values), Decimal(len(values)))


def divide(left: Decimal, right: Decimal) -> Decimal:
    if not right:
        raise Raised(ErrorCode.DIVISION_BY_ZERO)
    return divide_rounded(left, right, max(scale_of(left) - scale_of(right), 0))


def div(left: Decimal, right: Decimal, scale: int, mode: str) -> Decimal:
    if not 0 <= scale <= MAX_SCALE:
        raise Raised(ErrorCode.INVALID_ARGUMENT)
    if not right:
        raise Raised(ErrorCode.DIVISION_BY_ZERO)
    (dividend, left_scale), (divisor, right_scale) = parts(left), parts(right)
    quotient = rounded_quotient(dividend * 10 ** (right_scale + scale), divisor * 10**left_scale, mode)
    return assemble(quotient, scale)


def round(value: Decimal, scale: int, mode: str) -> Decimal:
    if not -MAX_SCALE <= scale <= MAX_SCALE:
        raise Raised(ErrorCode.INVALID_ARGUMENT)
    if scale >= scale_of(value):
        return rescale(unsigned_zero(value), scale)
    return assemble(_whole_units(value, scale, mode), scale)


def _whole_units(value: Decimal, scale: int, mode: str) -> int:
    """Return the number in units of this many places, rounded."""
    coefficient, places = parts(value)
    return rounded_quotient(coefficient, 10 ** (places - scale), mode)


def floor(value: Decimal) -> int:
    return checked(_whole_units(value, 0, "floor"))


def ceil(value: Decimal) -> int:
    return checked(_whole_units(value, 0, "ceiling"))


def trunc(value: Decimal) -> int:
    return checked(_whole_units(value, 0, "down"))


def to_integer(value: Decimal) -> int:
    coefficient, places = parts(value)
    whole, fraction = divmod(coefficient, 10**places)
    if fraction:
        raise Raised(ErrorCode.NOT_WHOLE)
    return checked(whole)


def abs(value: Decimal) -> Decimal:
    return value.copy_abs()


def sign(value: Decimal) -> int:
    return (value > 0) - (value < 0)


def pow(base: Decimal, exponent: int) -> Decimal:
    if exponent == 0:
        return Decimal(1)
    if not base:
        if exponent < 0:
            raise Raised(ErrorCode.DIVISION_BY_ZERO)
        _refuse_long_power(1, exponent)
        return assemble(0, scale_of(base) * exponent)
    times = exponent if exponent > 0 else -exponent
    coefficient, scale = base.scaleb(scale_of(base), unbounded_context(MAX_DIGITS)), scale_of(base)
    _refuse_long_power(coefficient.adjusted() + 1, times)
    # The power is at least 10^least and less than 10^most. One that exceeds the limits is never computed.
    least, most = base.adjusted() * times, (base.adjusted() + 1) * times
    if exponent < 0:
        least, most = -most, -least
    if least >= MAX_DIGITS or most < -MAX_SCALE:
        raise Raised(ErrorCode.DECIMAL_OVERFLOW)
    power = _exact_power(coefficient, times).scaleb(-scale * times, unbounded_context(_MAX_POWER_DIGITS))
    if exponent < 0:
        return divide_rounded(Decimal(1), power, 0)
    context = unbounded_context(SIGNIFICANT)
    result = context.plus(power)
    return write_out(result) if context.flags[Inexact] else fit_scale(result, scale * times)


def exact_pow(base: Decimal, exponent: int) -> Decimal:
    if exponent < 0:
        raise Raised(ErrorCode.INVALID_ARGUMENT)
    if not base and exponent:
        if scale_of(base) * exponent > MAX_SCALE:
            raise Raised(ErrorCode.DECIMAL_OVERFLOW)
        return assemble(0, scale_of(base) * exponent)
    power = Decimal(1)
    for bit in f"{exponent:b}":
        # No product here has more digits or places than the result. The exact context traps one over the limits.
        power *= power
        if bit == "1":
            power *= base
    return power


def power(base: Decimal, exponent: Decimal) -> Decimal:
    whole, denominator = exponent.as_integer_ratio()
    if denominator != 1:
        return irrational.fractional_power(base, exponent)
    if not MIN_INTEGER <= whole <= MAX_INTEGER:
        raise Raised(ErrorCode.DECIMAL_OVERFLOW)
    return pow(base, whole)


def _refuse_long_power(digits: int, times: int) -> None:
    if digits * times > _MAX_POWER_DIGITS:
        raise Raised(ErrorCode.DECIMAL_OVERFLOW)


def _exact_power(number: Decimal, times: int) -> Decimal:
    """Return the exact power of an integer, by repeated squaring."""
    # SEMANTICS: `decimal` would round its own power more than once.
    context = unbounded_context(_MAX_POWER_DIGITS)
    power = Decimal(1)
    for bit in f"{times:b}":
        power = context.multiply(power, power)
        if bit == "1":
            power = context.multiply(power, number)
    return power


def scale(value: Decimal) -> int:
    return scale_of(value)


def normalize(value: Decimal) -> Decimal:
    # SEMANTICS: `decimal` would also remove zeros before the point: 1E+2.
    smallest = scale_of(unbounded_context(MAX_DIGITS).normalize(value)) if value else 0
    return rescale(unsigned_zero(value), max(smallest, 0))


def to_float(value: Decimal) -> float:
    # Converted through text, which Python reads correctly rounded, with infinity beyond the largest float.
    return parse_float(decimal_text(unsigned_zero(value)))


def text(value: Decimal) -> str:
    return decimal_text(unsigned_zero(value))


def parse(value: str) -> Decimal:
    try:
        return parse_decimal(value)
    except ValueProblem as problem:
        is_malformed = problem.kind is ProblemKind.MALFORMED
        raise Raised(ErrorCode.BAD_FORMAT if is_malformed else ErrorCode.DECIMAL_OVERFLOW) from None


def allocate(total: Decimal, weights: Sequence[Decimal]) -> list[Decimal]:
    if not any(weights) or any(weight < 0 for weight in weights):
        raise Raised(ErrorCode.INVALID_ARGUMENT)
    units, places = parts(total.copy_abs())
    taken_apart = [parts(weight) for weight in weights]
    finest = max(weight_scale for _, weight_scale in taken_apart)
    whole_weights = [coefficient * 10 ** (finest - weight_scale) for coefficient, weight_scale in taken_apart]
    weight_of_all = builtins.sum(whole_weights)
    shares = [divmod(units * weight, weight_of_all) for weight in whole_weights]
    left_over = units - builtins.sum(share for share, _ in shares)
    by_remainder = sorted(range(len(shares)), key=lambda index: shares[index][1], reverse=True)
    gets_one_more = frozenset(by_remainder[:left_over])
    is_negative = total < 0
    counts = [share + (index in gets_one_more) for index, (share, _) in enumerate(shares)]
    return [assemble(-count if is_negative else count, places) for count in counts]


exp, ln, log10, sqrt = irrational.exp, irrational.ln, irrational.log10, irrational.sqrt
median, percentile = statistics.median, statistics.percentile
variance, population_variance = statistics.variance, statistics.population_variance
stddev, population_stddev = statistics.stddev, statistics.population_stddev

count_work("decimal", globals())
