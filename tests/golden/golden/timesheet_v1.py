# AUTO-GENERATED - DO NOT EDIT
# timesheet_v1, from nodes/calendar/timesheet_v1.vsp
# semantic hash 973c236c7ec8f18f680e00c476027ec6849861b646f33fa700e622aee4126329
"""Add up a week of shifts, rounded to quarters of an hour, with breaks and overtime."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypedDict

from vesper.kernels.array import at as array_at, largest, range as array_range
from vesper.kernels.decimal import (
    exact_decimals,
    exact_entry,
    round as decimal_round,
    text as decimal_text,
    to_integer as decimal_to_integer,
    unsigned_zero,
)
from vesper.kernels.duration import (
    abs as duration_abs,
    divide as duration_divide,
    from_days as duration_from_days,
    from_hours as duration_from_hours,
    from_minutes as duration_from_minutes,
    from_seconds as duration_from_seconds,
    multiply as duration_multiply,
    ratio as duration_ratio,
    subtract as duration_subtract,
    sum as duration_sum,
    text as duration_text,
    total_microseconds as duration_total_microseconds,
    total_seconds as duration_total_seconds,
)
from vesper.kernels.integer import checked, rem as integer_rem, text as integer_text
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    MAX_ENTRIES,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_finite,
    new_objects,
    read_inputs,
    read_value,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import concat as text_concat, pad_start as text_pad_start
from vesper.kernels.timestamp import (
    hour as timestamp_hour,
    minute as timestamp_minute,
    to_date as timestamp_to_date,
)
from vesper.kernels.value import max as value_max

D_0: Final = Decimal("0")
D_1000: Final = Decimal("1000")


class Shift(TypedDict):
    begin: datetime
    end: datetime
    pause: timedelta


class Success(TypedDict):
    worked: list[timedelta]
    total: timedelta
    overtime: timedelta
    balance: str
    average: timedelta | None
    longest: timedelta
    short_breaks: int
    rounded_by: timedelta
    pay: Decimal
    first_day: date | None
    rested: bool
    by_hand: list[str]


QUARTER: Final[timedelta] = timedelta(seconds=900)
LONG_SHIFT: Final[timedelta] = timedelta(seconds=21600)
LEAST_REST: Final[timedelta] = timedelta(seconds=39600)


@exact_decimals
def timesheet_v1(
    *,
    shifts: list[Shift],
    agreed: timedelta = timedelta(days=1, seconds=57600),
    hourly_rate: Decimal,
) -> Success:
    """Add up a week of shifts, rounded to quarters of an hour, with breaks and overtime."""

    # constraint, line 12: begin < end
    for item in shifts:
        if not item["begin"] < item["end"]:
            raise ContractBroken("constraint", 0, {"shifts": shifts})

    # constraint, line 13: end - begin <= duration('24h')
    for item in shifts:
        if not item["end"] - item["begin"] <= timedelta(days=1):
            raise ContractBroken("constraint", 1, {"shifts": shifts})

    # constraint, line 14: pause >= duration('0s') AND pause < end - begin
    for item in shifts:
        if not (item["pause"] >= timedelta(days=0) and item["pause"] < item["end"] - item["begin"]):
            raise ContractBroken("constraint", 2, {"shifts": shifts})

    # constraint, line 19: hourly_rate >= 0
    if not hourly_rate >= D_0:
        raise ContractBroken("constraint", 3, {"hourly_rate": hourly_rate})

    # constraint, line 19: hourly_rate <= 1000
    if not hourly_rate <= D_1000:
        raise ContractBroken("constraint", 4, {"hourly_rate": hourly_rate})

    # precondition, line 43: length(shifts) <= 14
    if not len(shifts) <= 14:
        raise ContractBroken("precondition", 0, {"shifts": shifts})

    # precondition, line 44: FORALL i IN range(1, length(shifts)) SATISFIES shifts[i].begin >=
    #   shifts[i - 1].end
    for i in array_range(1, len(shifts), 1):
        if not array_at(shifts, i)["begin"] >= array_at(shifts, checked(i - 1))["end"]:
            raise ContractBroken("precondition", 1, {"shifts": shifts})

    # precondition, line 45: agreed > duration('0s') AND agreed <= days(7)
    if not (agreed > timedelta(days=0) and agreed <= duration_from_days(7)):
        raise ContractBroken("precondition", 2, {"agreed": agreed})

    # step exact, line 55
    exact = [duration_subtract(shift["end"] - shift["begin"], shift["pause"]) for shift in shifts]

    # step worked, line 56
    worked = [
        duration_multiply(
            QUARTER, decimal_to_integer(decimal_round(duration_ratio(time, QUARTER), 0, "half_up"))
        )
        for time in exact
    ]

    # step total, line 57
    total = duration_sum(worked)

    # step overtime, line 58
    overtime = value_max(duration_subtract(total, agreed), duration_from_minutes(0))

    # step behind, line 59
    behind = duration_subtract(agreed, total)

    # step balance, line 60
    balance = (
        text_concat("+", duration_text(-behind))
        if behind <= duration_from_seconds(0)
        else text_concat("-", duration_text(behind))
    )

    # step average, line 61
    average = None if len(worked) == 0 else duration_divide(total, len(worked))

    # step longest, line 62
    longest = duration_from_hours(0) if len(worked) == 0 else largest(worked)

    # step paid, line 64
    paid = duration_ratio(total, duration_from_hours(1)) + duration_ratio(
        overtime, duration_from_hours(4)
    )

    # step rests, line 65
    rests = [
        array_at(shifts, i)["begin"] - array_at(shifts, checked(i - 1))["end"]
        for i in array_range(1, len(shifts), 1)
    ]

    # output short_breaks, line 75
    short_breaks = len(
        [
            s
            for s in shifts
            if s["end"] - s["begin"] > LONG_SHIFT and s["pause"] < duration_from_minutes(30)
        ]
    )

    # output rounded_by, line 76
    rounded_by = duration_abs(duration_subtract(total, duration_sum(exact)))

    # output pay, line 77
    pay = decimal_round(unsigned_zero(hourly_rate * paid), 2, "half_up")

    # output first_day, line 78
    first_day: date | None = (
        None if len(shifts) == 0 else timestamp_to_date(array_at(shifts, 0)["begin"])
    )

    # output rested, line 79
    rested = all(rest >= LEAST_REST for rest in rests)

    # output by_hand, line 80
    by_hand: list[str] = [
        text_concat(
            text_concat(
                text_concat(
                    text_concat(
                        text_pad_start(integer_text(timestamp_hour(s["begin"])), 2, "0"), ":"
                    ),
                    text_pad_start(integer_text(timestamp_minute(s["begin"])), 2, "0"),
                ),
                " ",
            ),
            decimal_text(duration_total_seconds(s["pause"])),
        )
        for s in shifts
    ]

    # postcondition, line 47: SUM(time FOR time IN worked) == total
    if duration_sum(worked) != total:
        raise ContractBroken("postcondition", 0, {"worked": worked, "total": total})

    # postcondition, line 48: FORALL time IN worked SATISFIES rem(total_microseconds(time),
    #   total_microseconds(quarter)) == 0
    for time in worked:
        if (
            integer_rem(duration_total_microseconds(time), duration_total_microseconds(QUARTER))
            != 0
        ):
            raise ContractBroken("postcondition", 1, {"worked": worked, "quarter": QUARTER})

    # postcondition, line 49: rounded_by < quarter * (length(worked) + 1)
    if not rounded_by < duration_multiply(QUARTER, checked(len(worked) + 1)):
        raise ContractBroken(
            "postcondition", 2, {"rounded_by": rounded_by, "quarter": QUARTER, "worked": worked}
        )

    # postcondition, line 50: overtime != duration('0s') => total > agreed
    if not (overtime == timedelta(days=0) or total > agreed):
        raise ContractBroken(
            "postcondition", 3, {"overtime": overtime, "total": total, "agreed": agreed}
        )

    return {
        "worked": worked,
        "total": total,
        "overtime": overtime,
        "balance": balance,
        "average": average,
        "longest": longest,
        "short_breaks": short_breaks,
        "rounded_by": rounded_by,
        "pay": pay,
        "first_day": first_day,
        "rested": rested,
        "by_hand": by_hand,
    }


INPUTS: Final = Inputs(
    {
        "shifts": "array<{begin: timestamp, end: timestamp, pause: duration}>",
        "agreed": "duration",
        "hourly_rate": "decimal",
    },
    {"agreed": timedelta(days=1, seconds=57600)},
)
RUN: Final = undecorated(timesheet_v1)


def read_shift(given: Any) -> Shift:
    """What is a Shift already, field by field."""
    if type(given) is not dict:
        raise NotPlain
    for name in given:
        if type(name) is not str:
            raise NotPlain
    if len(given) != 3:
        raise NotPlain
    begin = given["begin"]
    end = given["end"]
    pause = given["pause"]
    return {
        "begin": read_value("timestamp", begin),
        "end": read_value("timestamp", end),
        "pause": read_value("duration", pause),
    }


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 2 + ("agreed" in inputs):
            raise NotPlain
        shifts = inputs["shifts"]
        if type(shifts) is not list or len(shifts) > MAX_ENTRIES:
            raise NotPlain
        shifts = [read_shift(item) for item in shifts]
        agreed = inputs["agreed"] if "agreed" in inputs else timedelta(days=1, seconds=57600)
        agreed = read_value("duration", agreed)
        hourly_rate = inputs["hourly_rate"]
        if type(hourly_rate) is not Decimal or not is_finite(hourly_rate):
            raise NotPlain
        hourly_rate = hourly_rate + D_0
    except NOT_PLAIN:
        shifts, agreed, hourly_rate = read_inputs(INPUTS, inputs)
    return new_objects(RUN(shifts=shifts, agreed=agreed, hourly_rate=hourly_rate))


SOURCE: Final = Source(
    "nodes/calendar/timesheet_v1.vsp",
    lines={
        98: 12, 103: 13, 108: 14, 112: 19, 116: 19, 120: 43, 124: 44, 125: 44, 126: 44, 129: 45,
        130: 45, 133: 55, 137: 56, 138: 56, 144: 57, 147: 58, 150: 59, 154: 60, 155: 60, 156: 60,
        160: 61, 163: 62, 166: 64, 167: 64, 172: 65, 173: 65, 181: 75, 186: 76, 189: 77, 193: 78,
        201: 80, 202: 80, 203: 80, 204: 80, 205: 80, 207: 80, 217: 47, 218: 47, 224: 48, 227: 48,
        230: 49, 231: 49, 237: 50,
    },
    clauses={
        "constraint": [
            "begin < end",
            "end - begin <= duration('24h')",
            "pause >= duration('0s') AND pause < end - begin",
            "hourly_rate >= 0",
            "hourly_rate <= 1000",
        ],
        "precondition": [
            "length(shifts) <= 14",
            "FORALL i IN range(1, length(shifts)) SATISFIES shifts[i].begin >= shifts[i - 1].end",
            "agreed > duration('0s') AND agreed <= days(7)",
        ],
        "postcondition": [
            "SUM(time FOR time IN worked) == total",
            "FORALL time IN worked SATISFIES rem(total_microseconds(time), total_microseconds(quarter)) == 0",
            "rounded_by < quarter * (length(worked) + 1)",
            "overtime != duration('0s') => total > agreed",
        ],
    },
)  # fmt: skip
