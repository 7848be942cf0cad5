# AUTO-GENERATED - DO NOT EDIT
# rental_period_v1, from nodes/calendar/rental_period_v1.vsp
# semantic hash ff1b092c3b0ab94201217d3ad66547796d11120c352bad2429e3c23a12c20b73
"""Bill a rental by whole months and single days, dearer at the weekend, and say when it is due
back."""

from datetime import date
from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import range as array_range
from vesper.kernels.date import (
    add_days as date_add_days,
    add_months as date_add_months,
    add_years as date_add_years,
    day_of_year as date_day_of_year,
    days_between as date_days_between,
    days_in_month as date_days_in_month,
    end_of_month as date_end_of_month,
    from_parts as date_from_parts,
    months_between as date_months_between,
    start_of_month as date_start_of_month,
    weekday as date_weekday,
    year as date_year,
    years_between as date_years_between,
)
from vesper.kernels.decimal import (
    div as decimal_div,
    exact_decimals,
    exact_entry,
    round as decimal_round,
    unsigned_zero,
)
from vesper.kernels.integer import checked
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    MAX_INTEGER,
    MIN_INTEGER,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_finite,
    read_inputs,
    read_value,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.value import max as value_max

D_0: Final = Decimal("0")
D_0_01: Final = Decimal("0.01")
D_1_25: Final = Decimal("1.25")
D_10000: Final = Decimal("10000")
D_100000: Final = Decimal("100000")


class Success(TypedDict):
    due: date
    returned_on: date
    full_months: int
    full_years: int
    extra_days: int
    weekend_days: int
    late_days: int
    first_of_month: bool
    price: Decimal
    first_invoice: Decimal
    next_anniversary: date
    left_of_year: int


WEEKEND: Final[
    frozenset[Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]]
] = frozenset({"saturday", "sunday"})
SURCHARGE: Final[Decimal] = D_1_25


@exact_decimals
def rental_period_v1(
    *,
    from_: date,
    months: int,
    returned: date | None = None,
    monthly_rate: Decimal,
    daily_rate: Decimal,
) -> Success:
    """Bill a rental by whole months and single days, dearer at the weekend, and say when it is due
    back."""

    # constraint, line 7: months >= 0
    if not months >= 0:
        raise ContractBroken("constraint", 0, {"months": months})

    # constraint, line 7: months <= 120
    if not months <= 120:
        raise ContractBroken("constraint", 1, {"months": months})

    # constraint, line 9: monthly_rate >= 0
    if not monthly_rate >= D_0:
        raise ContractBroken("constraint", 2, {"monthly_rate": monthly_rate})

    # constraint, line 9: monthly_rate <= 100000
    if not monthly_rate <= D_100000:
        raise ContractBroken("constraint", 3, {"monthly_rate": monthly_rate})

    # constraint, line 10: daily_rate >= 0
    if not daily_rate >= D_0:
        raise ContractBroken("constraint", 4, {"daily_rate": daily_rate})

    # constraint, line 10: daily_rate <= 10000
    if not daily_rate <= D_10000:
        raise ContractBroken("constraint", 5, {"daily_rate": daily_rate})

    # precondition, line 33: from >= date('1990-01-01') AND from < date('2200-01-01')
    if not (from_ >= date(1990, 1, 1) and from_ < date(2200, 1, 1)):
        raise ContractBroken("precondition", 0, {"from": from_})

    # precondition, line 34: returned IS NULL OR (returned >= from AND days_between(from, returned)
    #   <= 5000)
    if not (returned is None or (returned >= from_ and date_days_between(from_, returned) <= 5000)):
        raise ContractBroken("precondition", 1, {"returned": returned, "from": from_})

    # step due, line 46
    due = date_add_months(from_, months)

    # step returned_on, line 47
    returned_on = due if returned is None else returned

    # step full_months, line 48
    full_months = date_months_between(from_, returned_on)

    # step full_years, line 49
    full_years = date_years_between(from_, returned_on)

    # step billed_until, line 50
    billed_until = date_add_months(from_, full_months)

    # step extra_days, line 51
    extra_days = date_days_between(billed_until, returned_on)

    # step days, line 52
    days: list[
        Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
    ] = [date_weekday(date_add_days(billed_until, i)) for i in array_range(0, extra_days, 1)]

    # step weekend_days, line 53
    weekend_days = len([day_name for day_name in days if day_name in WEEKEND])

    # step price, line 54
    price = decimal_round(
        unsigned_zero(
            monthly_rate * full_months
            + daily_rate * checked(extra_days - weekend_days)
            + daily_rate * SURCHARGE * weekend_days
        ),
        2,
        "half_up",
    )

    # step first_days, line 56
    first_days = checked(date_days_between(from_, date_end_of_month(from_)) + 1)

    # step first_invoice, line 57
    first_invoice = decimal_div(
        unsigned_zero(monthly_rate * first_days), Decimal(date_days_in_month(from_)), 2, "half_up"
    )

    # step year_end, line 58
    year_end = date_from_parts(date_year(from_), 12, 31)

    # output late_days, line 68
    late_days = value_max(date_days_between(due, returned_on), 0)

    # output first_of_month, line 69
    first_of_month = from_ == date_start_of_month(from_)

    # output next_anniversary, line 72
    next_anniversary = date_add_years(from_, checked(full_years + 1))

    # output left_of_year, line 73
    left_of_year = checked(date_day_of_year(year_end) - date_day_of_year(from_))

    # postcondition, line 36: add_days(add_months(from, full_months), extra_days) == returned_on
    if date_add_days(date_add_months(from_, full_months), extra_days) != returned_on:
        raise ContractBroken(
            "postcondition",
            0,
            {
                "from": from_,
                "full_months": full_months,
                "extra_days": extra_days,
                "returned_on": returned_on,
            },
        )

    # postcondition, line 37: extra_days < 31 AND weekend_days <= extra_days
    if not (extra_days < 31 and weekend_days <= extra_days):
        raise ContractBroken(
            "postcondition", 1, {"extra_days": extra_days, "weekend_days": weekend_days}
        )

    # postcondition, line 38: full_months >= full_years * 12
    if not full_months >= checked(full_years * 12):
        raise ContractBroken(
            "postcondition", 2, {"full_months": full_months, "full_years": full_years}
        )

    # postcondition, line 39: late_days > 0 => returned_on > due
    if not (not late_days > 0 or returned_on > due):
        raise ContractBroken(
            "postcondition", 3, {"late_days": late_days, "returned_on": returned_on, "due": due}
        )

    # postcondition, line 40: first_invoice <= monthly_rate + 0.01
    if not first_invoice <= monthly_rate + D_0_01:
        raise ContractBroken(
            "postcondition", 4, {"first_invoice": first_invoice, "monthly_rate": monthly_rate}
        )

    return {
        "due": due,
        "returned_on": returned_on,
        "full_months": full_months,
        "full_years": full_years,
        "extra_days": extra_days,
        "weekend_days": weekend_days,
        "late_days": late_days,
        "first_of_month": first_of_month,
        "price": price,
        "first_invoice": first_invoice,
        "next_anniversary": next_anniversary,
        "left_of_year": left_of_year,
    }


INPUTS: Final = Inputs(
    {
        "from": "date",
        "months": "integer",
        "returned": "optional<date>",
        "monthly_rate": "decimal",
        "daily_rate": "decimal",
    },
    {},
)
RUN: Final = undecorated(rental_period_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 4 + ("returned" in inputs):
            raise NotPlain
        from_ = inputs["from"]
        from_ = read_value("date", from_)
        months = inputs["months"]
        if type(months) is not int or months < MIN_INTEGER or months > MAX_INTEGER:
            raise NotPlain
        returned = inputs["returned"] if "returned" in inputs else None
        returned = None if returned is None else read_value("date", returned)
        monthly_rate = inputs["monthly_rate"]
        if type(monthly_rate) is not Decimal or not is_finite(monthly_rate):
            raise NotPlain
        monthly_rate = monthly_rate + D_0
        daily_rate = inputs["daily_rate"]
        if type(daily_rate) is not Decimal or not is_finite(daily_rate):
            raise NotPlain
        daily_rate = daily_rate + D_0
    except NOT_PLAIN:
        from_, months, returned, monthly_rate, daily_rate = read_inputs(INPUTS, inputs)
    return RUN(
        from_=from_,
        months=months,
        returned=returned,
        monthly_rate=monthly_rate,
        daily_rate=daily_rate,
    )


SOURCE: Final = Source(
    "nodes/calendar/rental_period_v1.vsp",
    lines={
        92: 7, 96: 7, 100: 9, 104: 9, 108: 10, 112: 10, 116: 33, 121: 34, 124: 46, 136: 50, 144: 52,
        150: 54, 152: 54, 153: 54, 154: 54, 161: 56, 164: 57, 165: 57, 169: 58, 178: 72, 181: 73,
        184: 36, 185: 36, 198: 37, 203: 38, 204: 38, 210: 39, 215: 40, 216: 40,
    },
    clauses={
        "constraint": [
            "months >= 0",
            "months <= 120",
            "monthly_rate >= 0",
            "monthly_rate <= 100000",
            "daily_rate >= 0",
            "daily_rate <= 10000",
        ],
        "precondition": [
            "from >= date('1990-01-01') AND from < date('2200-01-01')",
            "returned IS NULL OR (returned >= from AND days_between(from, returned) <= 5000)",
        ],
        "postcondition": [
            "add_days(add_months(from, full_months), extra_days) == returned_on",
            "extra_days < 31 AND weekend_days <= extra_days",
            "full_months >= full_years * 12",
            "late_days > 0 => returned_on > due",
            "first_invoice <= monthly_rate + 0.01",
        ],
    },
)  # fmt: skip
