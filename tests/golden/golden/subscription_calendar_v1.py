# AUTO-GENERATED - DO NOT EDIT
# subscription_calendar_v1, from tests/integration/differential/nodes/subscription_calendar_v1.vsp
# semantic hash 36c1d3e43e9713fbb417f1ac5100f6db0bab19841569a08fa52baf23b41f57ac
"""Use dates, timestamps, durations and patterns at least once."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.date import (
    add_business_days as date_add_business_days,
    add_days as date_add_days,
    add_months as date_add_months,
    end_of_month as date_end_of_month,
    is_business_day as date_is_business_day,
    text as date_text,
    to_timestamp as date_to_timestamp,
    weekday as date_weekday,
    years_between as date_years_between,
)
from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.duration import (
    abs as duration_abs,
    divide as duration_divide,
    from_days as duration_from_days,
    from_hours as duration_from_hours,
    ratio as duration_ratio,
    sum as duration_sum,
    text as duration_text,
)
from vesper.kernels.raised import ContractBroken
from vesper.kernels.regex import (
    find as regex_find,
    groups as regex_groups,
    matches as regex_matches,
    replace as regex_replace,
    split as regex_split,
)
from vesper.kernels.runtime.entry import (
    MAX_INTEGER,
    MAX_TEXT,
    MIN_INTEGER,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_ascii,
    is_text,
    new_objects,
    read_inputs,
    read_value,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import (
    concat as text_concat,
    lower as text_lower,
    slice as text_slice,
    upper as text_upper,
)
from vesper.kernels.timestamp import (
    add as timestamp_add,
    text as timestamp_text,
    to_date as timestamp_to_date,
    truncate as timestamp_truncate,
)
from vesper.kernels.value import max as value_max


class Success(TypedDict):
    kind: str
    parts: list[str | None] | None
    words: list[str]
    masked: str
    name: str
    renews_on: date
    billed_on: date
    age: int
    overdue: bool
    late_by: timedelta
    share: Decimal
    label: str
    weekday: Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
    paused: timedelta
    longest: timedelta
    days: frozenset[date]


@exact_decimals
def subscription_calendar_v1(
    number: str,
    contact: str,
    started: date,
    paid_at: datetime,
    grace: timedelta,
    months: int,
    holidays: frozenset[date],
    pauses: list[timedelta],
) -> Success:
    """Use dates, timestamps, durations and patterns at least once."""

    # constraint, line 6: matches(number, "^(?:sub|trial)_[a-z0-9]{4,8}$")
    if not regex_matches(number, "^(?:sub|trial)_[a-z0-9]{4,8}$"):
        raise ContractBroken("constraint", 0, {"number": number})

    # constraint, line 11: months >= 0
    if not months >= 0:
        raise ContractBroken("constraint", 1, {"months": months})

    # constraint, line 11: months <= 600
    if not months <= 600:
        raise ContractBroken("constraint", 2, {"months": months})

    # precondition, line 36: started >= date('2000-01-01')
    if not started >= date(2000, 1, 1):
        raise ContractBroken("precondition", 0, {"started": started})

    # precondition, line 37: started < date('2100-01-01')
    if not started < date(2100, 1, 1):
        raise ContractBroken("precondition", 1, {"started": started})

    # precondition, line 38: paid_at < timestamp('2200-01-01T00:00:00Z')
    if not paid_at < datetime(2200, 1, 1, tzinfo=UTC):
        raise ContractBroken("precondition", 2, {"paid_at": paid_at})

    # precondition, line 39: grace > -days(60) AND grace < duration('60d')
    if not (grace > -duration_from_days(60) and grace < timedelta(days=60)):
        raise ContractBroken("precondition", 3, {"grace": grace})

    # precondition, line 40: FORALL pause IN pauses: abs(pause) <= hours(24 * 365)
    for pause in pauses:
        if not duration_abs(pause) <= duration_from_hours(24 * 365):
            raise ContractBroken("precondition", 4, {"pauses": pauses})

    # step kind, line 48
    kind = (
        "trial"
        if regex_matches(number, "^trial_")
        else ["" if value is None else value for value in [regex_find(number, "^[a-z]+")]][0]
    )

    # step parts, line 49
    parts = regex_groups(contact, "(?i)^([\\w.]+)@([a-z\\d-]+(?:\\.[a-z\\d-]+)*)(?:\\s+(.+))?$")

    # step words, line 50
    words = regex_split(contact, "[\\s,;]+")

    # step masked, line 51
    masked = regex_replace(contact, "\\p{L}", "*")

    # step name, line 52
    name = text_concat(
        text_upper(text_slice(contact, 0, 1)),
        text_lower(text_slice(contact, 1, 9223372036854775807)),
    )

    # step renews_on, line 53
    renews_on = date_add_months(started, months)

    # step billed_on, line 54
    billed_on = (
        renews_on
        if months == 0
        else date_add_business_days(
            date_add_days(renews_on, -1), 1, holidays, frozenset({"saturday", "sunday"})
        )
    )

    # step age, line 55
    age = date_years_between(started, timestamp_to_date(paid_at))

    # step due, line 56
    due = timestamp_add(date_to_timestamp(renews_on), grace)

    # step overdue, line 57
    overdue = paid_at > due

    # step late_by, line 58
    late_by = paid_at - due if overdue else timedelta(days=0)

    # step share, line 59
    share = duration_ratio(late_by, duration_from_days(30))

    # step label, line 60
    label = text_concat(
        text_concat(
            text_concat(
                text_concat(timestamp_text(timestamp_truncate(paid_at, "hour")), " "),
                duration_text(duration_divide(late_by, 2)),
            ),
            " ",
        ),
        date_text(date_end_of_month(started)),
    )

    # step weekday, line 61
    weekday: Literal[
        "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"
    ] = date_weekday(billed_on)

    # step paused, line 62
    paused = duration_sum(pauses)

    # step longest, line 63
    longest = value_max(duration_abs(grace), paused)

    # step days, line 64
    days = frozenset(date_add_days(day, 1) for day in sorted(holidays) if day != date(9999, 12, 31))

    # postcondition, line 42: renews_on >= started
    if not renews_on >= started:
        raise ContractBroken("postcondition", 0, {"renews_on": renews_on, "started": started})

    # postcondition, line 43: is_business_day(billed_on, input.holidays) OR billed_on == renews_on
    if not (
        date_is_business_day(billed_on, holidays, frozenset({"saturday", "sunday"}))
        or billed_on == renews_on
    ):
        raise ContractBroken(
            "postcondition",
            1,
            {"billed_on": billed_on, "holidays": holidays, "renews_on": renews_on},
        )

    return {
        "kind": kind,
        "parts": parts,
        "words": words,
        "masked": masked,
        "name": name,
        "renews_on": renews_on,
        "billed_on": billed_on,
        "age": age,
        "overdue": overdue,
        "late_by": late_by,
        "share": share,
        "label": label,
        "weekday": weekday,
        "paused": paused,
        "longest": longest,
        "days": days,
    }


INPUTS: Final = Inputs(
    {
        "number": "string",
        "contact": "string",
        "started": "date",
        "paid_at": "timestamp",
        "grace": "duration",
        "months": "integer",
        "holidays": "set<date>",
        "pauses": "array<duration>",
    },
    {},
)
RUN: Final = undecorated(subscription_calendar_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 8:
            raise NotPlain
        number = inputs["number"]
        if (
            type(number) is not str
            or not (is_ascii(number) or is_text(number))
            or len(number) > MAX_TEXT
        ):
            raise NotPlain
        contact = inputs["contact"]
        if (
            type(contact) is not str
            or not (is_ascii(contact) or is_text(contact))
            or len(contact) > MAX_TEXT
        ):
            raise NotPlain
        started = inputs["started"]
        started = read_value("date", started)
        paid_at = inputs["paid_at"]
        paid_at = read_value("timestamp", paid_at)
        grace = inputs["grace"]
        grace = read_value("duration", grace)
        months = inputs["months"]
        if type(months) is not int or months < MIN_INTEGER or months > MAX_INTEGER:
            raise NotPlain
        holidays = inputs["holidays"]
        holidays = read_value("set<date>", holidays)
        pauses = inputs["pauses"]
        pauses = read_value("array<duration>", pauses)
    except NOT_PLAIN:
        number, contact, started, paid_at, grace, months, holidays, pauses = read_inputs(
            INPUTS, inputs
        )
    return new_objects(RUN(number, contact, started, paid_at, grace, months, holidays, pauses))


SOURCE: Final = Source(
    "tests/integration/differential/nodes/subscription_calendar_v1.vsp",
    lines={
        103: 6, 107: 11, 111: 11, 115: 36, 119: 37, 123: 38, 126: 39, 127: 39, 131: 40, 132: 40,
        145: 50, 148: 51, 151: 52, 152: 52, 153: 52, 157: 53, 163: 54, 164: 54, 172: 56, 181: 59,
        184: 60, 185: 60, 186: 60, 187: 60, 188: 60, 201: 62, 207: 64, 211: 42, 218: 43,
    },
    clauses={
        "constraint": [
            'matches(number, "^(?:sub|trial)_[a-z0-9]{4,8}$")',
            "months >= 0",
            "months <= 600",
        ],
        "precondition": [
            "started >= date('2000-01-01')",
            "started < date('2100-01-01')",
            "paid_at < timestamp('2200-01-01T00:00:00Z')",
            "grace > -days(60) AND grace < duration('60d')",
            "FORALL pause IN pauses: abs(pause) <= hours(24 * 365)",
        ],
        "postcondition": [
            "renews_on >= started",
            "is_business_day(billed_on, input.holidays) OR billed_on == renews_on",
        ],
    },
)  # fmt: skip
