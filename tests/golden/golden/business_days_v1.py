# AUTO-GENERATED - DO NOT EDIT
# business_days_v1, from nodes/calendar/business_days_v1.vsp
# semantic hash 01f5a20c70df41c5bd6ec54f4a51c84a50d584c9074a66ac92a03b4a47f8527b
"""Promise a delivery day for an order, counting only the days on which the carrier works."""

from datetime import date, datetime
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.date import (
    add_business_days as date_add_business_days,
    business_days_between as date_business_days_between,
    days_between as date_days_between,
    is_business_day as date_is_business_day,
    text as date_text,
    weekday as date_weekday,
)
from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.enum import text as enum_text
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    MAX_INTEGER,
    MIN_INTEGER,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    read_inputs,
    read_value,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import concat as text_concat
from vesper.kernels.timestamp import (
    hour as timestamp_hour,
    to_date as timestamp_to_date,
    year as timestamp_year,
)


class Success(TypedDict):
    dispatch_on: date
    deliver_on: date
    arrives: Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
    calendar_days: int
    is_in_time: bool
    days_to_spare: int | None
    message: str


@exact_decimals
def business_days_v1(
    *,
    ordered_at: datetime,
    handling: int = 1,
    transit: int,
    cutoff_hour: int = 14,
    holidays: frozenset[date],
    weekend: frozenset[
        Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
    ] = frozenset({"saturday", "sunday"}),
    wanted_by: date | None = None,
) -> Success:
    """Promise a delivery day for an order, counting only the days on which the carrier works."""

    # constraint, line 7: handling >= 0
    if not handling >= 0:
        raise ContractBroken("constraint", 0, {"handling": handling})

    # constraint, line 7: handling <= 30
    if not handling <= 30:
        raise ContractBroken("constraint", 1, {"handling": handling})

    # constraint, line 8: transit >= 1
    if not transit >= 1:
        raise ContractBroken("constraint", 2, {"transit": transit})

    # constraint, line 8: transit <= 60
    if not transit <= 60:
        raise ContractBroken("constraint", 3, {"transit": transit})

    # constraint, line 9: cutoff_hour >= 0
    if not cutoff_hour >= 0:
        raise ContractBroken("constraint", 4, {"cutoff_hour": cutoff_hour})

    # constraint, line 9: cutoff_hour <= 24
    if not cutoff_hour <= 24:
        raise ContractBroken("constraint", 5, {"cutoff_hour": cutoff_hour})

    # precondition, line 28: length(weekend) < 7
    if not len(weekend) < 7:
        raise ContractBroken("precondition", 0, {"weekend": weekend})

    # precondition, line 29: year(ordered_at) >= 2000 AND year(ordered_at) < 2100
    if not (timestamp_year(ordered_at) >= 2000 and timestamp_year(ordered_at) < 2100):
        raise ContractBroken("precondition", 1, {"ordered_at": ordered_at})

    # step ordered_on, line 39
    ordered_on = timestamp_to_date(ordered_at)

    # step is_today, line 40
    is_today = (
        date_is_business_day(ordered_on, holidays, weekend)
        and timestamp_hour(ordered_at) < cutoff_hour
    )

    # step starts_on, line 42
    starts_on = ordered_on if is_today else date_add_business_days(ordered_on, 1, holidays, weekend)

    # step dispatch_on, line 43
    dispatch_on = date_add_business_days(starts_on, handling, holidays, weekend)

    # step deliver_on, line 44
    deliver_on = date_add_business_days(dispatch_on, transit, holidays, weekend)

    # step arrives, line 45
    arrives: Literal[
        "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"
    ] = date_weekday(deliver_on)

    # step is_in_time, line 46
    is_in_time = wanted_by is None or deliver_on <= wanted_by

    # step days_to_spare, line 47
    days_to_spare = (
        None
        if wanted_by is None
        else date_business_days_between(deliver_on, wanted_by, holidays, weekend)
    )

    # step message, line 48
    message = text_concat(
        text_concat(text_concat("on ", enum_text(arrives)), ", "), date_text(deliver_on)
    )

    # output calendar_days, line 55
    calendar_days = date_days_between(ordered_on, deliver_on)

    # postcondition, line 31: dispatch_on < deliver_on
    if not dispatch_on < deliver_on:
        raise ContractBroken(
            "postcondition", 0, {"dispatch_on": dispatch_on, "deliver_on": deliver_on}
        )

    # postcondition, line 32: deliver_on NOT IN holidays AND arrives NOT IN weekend
    if not (deliver_on not in holidays and arrives not in weekend):
        raise ContractBroken(
            "postcondition",
            1,
            {
                "deliver_on": deliver_on,
                "holidays": holidays,
                "arrives": arrives,
                "weekend": weekend,
            },
        )

    # postcondition, line 33: business_days_between(dispatch_on, deliver_on, holidays, weekend) ==
    #   transit
    if date_business_days_between(dispatch_on, deliver_on, holidays, weekend) != transit:
        raise ContractBroken(
            "postcondition",
            2,
            {
                "dispatch_on": dispatch_on,
                "deliver_on": deliver_on,
                "holidays": holidays,
                "weekend": weekend,
                "transit": transit,
            },
        )

    # postcondition, line 34: wanted_by IS NULL => is_in_time AND days_to_spare IS NULL
    if not (wanted_by is not None or (is_in_time and days_to_spare is None)):
        raise ContractBroken(
            "postcondition",
            3,
            {"wanted_by": wanted_by, "is_in_time": is_in_time, "days_to_spare": days_to_spare},
        )

    return {
        "dispatch_on": dispatch_on,
        "deliver_on": deliver_on,
        "arrives": arrives,
        "calendar_days": calendar_days,
        "is_in_time": is_in_time,
        "days_to_spare": days_to_spare,
        "message": message,
    }


INPUTS: Final = Inputs(
    {
        "ordered_at": "timestamp",
        "handling": "integer",
        "transit": "integer",
        "cutoff_hour": "integer",
        "holidays": "set<date>",
        "weekend": "set<enum[monday, tuesday, wednesday, thursday, friday, saturday, sunday]>",
        "wanted_by": "optional<date>",
    },
    {"handling": 1, "cutoff_hour": 14, "weekend": frozenset({"saturday", "sunday"})},
)
RUN: Final = undecorated(business_days_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != (
            3
            + ("handling" in inputs)
            + ("cutoff_hour" in inputs)
            + ("weekend" in inputs)
            + ("wanted_by" in inputs)
        ):
            raise NotPlain
        ordered_at = inputs["ordered_at"]
        ordered_at = read_value("timestamp", ordered_at)
        handling = inputs["handling"] if "handling" in inputs else 1
        if type(handling) is not int or handling < MIN_INTEGER or handling > MAX_INTEGER:
            raise NotPlain
        transit = inputs["transit"]
        if type(transit) is not int or transit < MIN_INTEGER or transit > MAX_INTEGER:
            raise NotPlain
        cutoff_hour = inputs["cutoff_hour"] if "cutoff_hour" in inputs else 14
        if type(cutoff_hour) is not int or cutoff_hour < MIN_INTEGER or cutoff_hour > MAX_INTEGER:
            raise NotPlain
        holidays = inputs["holidays"]
        holidays = read_value("set<date>", holidays)
        weekend = inputs["weekend"] if "weekend" in inputs else frozenset({"saturday", "sunday"})
        weekend = read_value(
            "set<enum[monday, tuesday, wednesday, thursday, friday, saturday, sunday]>", weekend
        )
        wanted_by = inputs["wanted_by"] if "wanted_by" in inputs else None
        wanted_by = None if wanted_by is None else read_value("date", wanted_by)
    except NOT_PLAIN:
        ordered_at, handling, transit, cutoff_hour, holidays, weekend, wanted_by = read_inputs(
            INPUTS, inputs
        )
    return RUN(
        ordered_at=ordered_at,
        handling=handling,
        transit=transit,
        cutoff_hour=cutoff_hour,
        holidays=holidays,
        weekend=weekend,
        wanted_by=wanted_by,
    )


SOURCE: Final = Source(
    "nodes/calendar/business_days_v1.vsp",
    lines={
        66: 7, 70: 7, 74: 8, 78: 8, 82: 9, 86: 9, 90: 28, 94: 29, 106: 42, 109: 43, 112: 44,
        126: 47, 130: 48, 131: 48, 139: 31, 145: 32, 158: 33, 159: 33, 173: 34,
    },
    clauses={
        "constraint": [
            "handling >= 0",
            "handling <= 30",
            "transit >= 1",
            "transit <= 60",
            "cutoff_hour >= 0",
            "cutoff_hour <= 24",
        ],
        "precondition": [
            "length(weekend) < 7",
            "year(ordered_at) >= 2000 AND year(ordered_at) < 2100",
        ],
        "postcondition": [
            "dispatch_on < deliver_on",
            "deliver_on NOT IN holidays AND arrives NOT IN weekend",
            "business_days_between(dispatch_on, deliver_on, holidays, weekend) == transit",
            "wanted_by IS NULL => is_in_time AND days_to_spare IS NULL",
        ],
    },
)  # fmt: skip
