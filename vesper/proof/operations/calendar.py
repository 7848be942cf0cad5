"""Encodings of dates, times and durations: whole days and microseconds."""

from __future__ import annotations

import z3

from vesper.proof.arithmetic import power_of_ten, product
from vesper.proof.context import ABSTRACT, Context
from vesper.proof.operations.integer import floor_quotient, floor_remainder, toward_zero
from vesper.proof.operations.keyed import is_in
from vesper.proof.operations.operation import Operation, encodes
from vesper.proof.symbols import (
    FIRST_MOMENT,
    MICROSECONDS_PER_DAY,
    RANGES,
    DecimalTerm,
    Scalar,
    SetTerm,
    Symbolic,
    boolean,
)
from vesper.proof.terms import (
    Term,
    add,
    as_real,
    both,
    choose,
    integer,
    is_same,
    linear_product,
    magnitude,
    negated,
    negative,
    real,
    subtract,
)
from vesper.values.types import DATE

_UNITS = {"days": MICROSECONDS_PER_DAY, "hours": 3_600_000_000, "minutes": 60_000_000, "seconds": 1_000_000,
          "milliseconds": 1_000, "microseconds": 1}  # fmt: skip

_PARTS = {
    "hour": (MICROSECONDS_PER_DAY, 3_600_000_000),
    "minute": (3_600_000_000, 60_000_000),
    "second": (60_000_000, 1_000_000),
    "microsecond": (1_000_000, 1),
}
"""Parts of a time: what they are a part of, and their unit."""


@encodes("duration.add", "timestamp.add")
def _add(operation: Operation) -> Symbolic:
    return operation.ranged(add(operation.term(0), operation.term(1)), "time_overflow")


@encodes("duration.subtract", "timestamp.subtract")
def _subtract(operation: Operation) -> Symbolic:
    return operation.ranged(subtract(operation.term(0), operation.term(1)), "time_overflow")


@encodes("timestamp.since", "time_of_day.since")
def _since(operation: Operation) -> Symbolic:
    return operation.scalar(subtract(operation.term(0), operation.term(1)))


@encodes("date.days_between")
def _days_between(operation: Operation) -> Symbolic:
    return operation.scalar(subtract(operation.term(1), operation.term(0)))


@encodes("date.add_days")
def _add_days(operation: Operation) -> Symbolic:
    return operation.ranged(add(operation.term(0), operation.term(1)), "time_overflow")


@encodes("date.add_months")
def _add_months(operation: Operation) -> Symbolic:
    found = operation.abstract_scalar()
    operation.know(*_months_later(operation.term(0), operation.term(1), found.term))
    return found


def _months_later(day: Term, months: Term, later: Term) -> list[Term]:
    """Return facts about the same day of another month: a month has 28 to 31 days."""
    days = later - day
    return [
        z3.Implies(months >= 0, z3.And(days >= 28 * months, days <= 31 * months)),
        z3.Implies(months <= 0, z3.And(days <= 28 * months, days >= 31 * months)),
    ]


def _months_between(operation: Operation) -> Term:
    start, end = operation.term(0), operation.term(1)
    context = operation.context
    found = context.apply(f"{ABSTRACT}months between", (start, end), z3.IntSort())
    reached = context.apply(f"{ABSTRACT}date.add_months", (start, found), z3.IntSort())
    days = end - start
    context.assume(
        z3.Implies(days >= 0, z3.And(found >= 0, 28 * found <= days, days <= 31 * found + 30)),
        z3.Implies(days >= 0, z3.And(reached <= end, end <= reached + 30)),
        z3.Implies(days <= 0, z3.And(found <= 0, 28 * found >= days, days >= 31 * found - 30)),
    )
    return found


@encodes("date.months_between")
def _whole_months(operation: Operation) -> Symbolic:
    operation.abstract()
    return operation.scalar(_months_between(operation))


@encodes("date.years_between")
def _whole_years(operation: Operation) -> Symbolic:
    operation.abstract()
    return operation.scalar(toward_zero(_months_between(operation), 12))


@encodes("date.weekday")
def _weekday(operation: Operation) -> Symbolic:
    return operation.scalar(_weekday_of(operation.context, operation.term(0)))


_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _weekday_of(context: Context, day: Term) -> Term:
    number = floor_remainder(subtract(day, integer(1)), 7)
    found = integer(context.member(_WEEKDAYS[-1]))
    for place in range(len(_WEEKDAYS) - 2, -1, -1):
        found = choose(is_same(number, integer(place)), integer(context.member(_WEEKDAYS[place])), found)
    return found


def _is_business_day(operation: Operation, day: Scalar, holidays: SetTerm, weekend: SetTerm) -> Term:
    weekday = Scalar(weekend.type.element, _weekday_of(operation.context, day.term))
    return both(negated(is_in(operation, day, holidays)), negated(is_in(operation, weekday, weekend)))


@encodes("date.is_business_day")
def _business_day(operation: Operation) -> Symbolic:
    day = Scalar(DATE, operation.term(0))
    return boolean(_is_business_day(operation, day, operation.set(1), operation.set(2)))


@encodes("date.add_business_days")
def _add_business_days(operation: Operation) -> Symbolic:
    found = operation.abstract_scalar()
    day, count = operation.term(0), operation.term(1)
    is_open = _is_business_day(operation, found, operation.set(2), operation.set(3))
    operation.know(
        z3.Implies(count == 0, found.term == day),
        z3.Implies(count > 0, both(found.term >= day + count, is_open)),
        z3.Implies(count < 0, both(found.term <= day + count, is_open)),
    )
    return found


@encodes("duration.negate")
def _negate(operation: Operation) -> Symbolic:
    return operation.scalar(negative(operation.term(0)))


@encodes("duration.abs")
def _abs(operation: Operation) -> Symbolic:
    return operation.scalar(magnitude(operation.term(0)))


@encodes(*(f"duration.from_{unit}" for unit in _UNITS))
def _from_unit(operation: Operation) -> Symbolic:
    factor = _UNITS[operation.call.op.partition("from_")[2]]
    return operation.ranged(product(operation.context, operation.term(0), integer(factor)), "time_overflow")


@encodes("duration.total_microseconds", "timestamp.epoch_microseconds")
def _same_number(operation: Operation) -> Symbolic:
    return operation.scalar(operation.term(0))


@encodes("timestamp.epoch_seconds")
def _epoch_seconds(operation: Operation) -> Symbolic:
    return operation.scalar(floor_quotient(operation.term(0), 1_000_000))


@encodes("timestamp.to_date")
def _to_date(operation: Operation) -> Symbolic:
    days = floor_quotient(subtract(operation.term(0), integer(FIRST_MOMENT)), MICROSECONDS_PER_DAY)
    return Scalar(DATE, add(days, integer(RANGES[DATE][0])))


@encodes("timestamp.from_epoch_seconds", "timestamp.from_epoch_microseconds")
def _from_epoch(operation: Operation) -> Symbolic:
    factor = 1_000_000 if operation.call.op.endswith("epoch_seconds") else 1
    return operation.ranged(product(operation.context, operation.term(0), integer(factor)), "time_overflow")


@encodes("date.to_timestamp")
def _to_timestamp(operation: Operation) -> Symbolic:
    return operation.scalar(_midnight(operation))


@encodes("date.at_time")
def _at_time(operation: Operation) -> Symbolic:
    return operation.scalar(add(_midnight(operation), operation.term(1)))


def _midnight(operation: Operation) -> Term:
    days = subtract(operation.term(0), integer(RANGES[DATE][0]))
    return add(product(operation.context, days, integer(MICROSECONDS_PER_DAY)), integer(FIRST_MOMENT))


@encodes("timestamp.to_time")
def _to_time(operation: Operation) -> Symbolic:
    return operation.scalar(floor_remainder(operation.term(0), MICROSECONDS_PER_DAY))


@encodes("duration.multiply")
def _multiply(operation: Operation) -> Symbolic:
    return operation.ranged(product(operation.context, operation.term(0), operation.term(1)), "time_overflow")


@encodes("duration.total_seconds")
def _total_seconds(operation: Operation) -> Symbolic:
    value = linear_product(as_real(operation.term(0)), real(power_of_ten(-6)))
    assert value is not None
    return DecimalTerm(value, integer(6))


@encodes(
    *(
        f"{family}.{part}"
        for family in ("timestamp", "time_of_day")
        for part in ("hour", "minute", "second", "microsecond")
    )
)
def _part(operation: Operation) -> Symbolic:
    of, unit = _PARTS[operation.call.op.partition(".")[2]]
    return operation.scalar(floor_quotient(floor_remainder(operation.term(0), of), unit))


@encodes("date.weekday_number")
def _weekday_number(operation: Operation) -> Symbolic:
    # SEMANTICS: day 1 is a Monday; Monday is 1.
    return operation.scalar(add(floor_remainder(subtract(operation.term(0), integer(1)), 7), integer(1)))
