# AUTO-GENERATED - DO NOT EDIT
# backup_plan_v1, from nodes/calendar/backup_plan_v1.vsp
# semantic hash 7cdf97ed88ad3c97c9e1d3ce713e76d1fedd66fae499f0ceee330ddd40d1fee2
"""Say when the next backup runs, what kind it is, how long it may take and what can be deleted."""

from datetime import date, datetime, timedelta
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import min as array_min
from vesper.kernels.date import (
    add_months as date_add_months,
    day as date_day,
    from_parts as date_from_parts,
    month as date_month,
    to_timestamp as date_to_timestamp,
    weekday_number as date_weekday_number,
    year as date_year,
)
from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.duration import (
    add as duration_add,
    divide as duration_divide,
    from_milliseconds as duration_from_milliseconds,
    from_minutes as duration_from_minutes,
    multiply as duration_multiply,
    parse as duration_parse,
    sum as duration_sum,
)
from vesper.kernels.enum import text as enum_text
from vesper.kernels.integer import checked, text as integer_text
from vesper.kernels.raised import ContractBroken
from vesper.kernels.regex import matches as regex_matches
from vesper.kernels.runtime.entry import (
    MAX_ENTRIES,
    MAX_INTEGER,
    MAX_TEXT,
    MIN_INTEGER,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_ascii,
    is_text,
    read_inputs,
    read_integer,
    read_value,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import (
    concat as text_concat,
    join as text_join,
    pad_start as text_pad_start,
)
from vesper.kernels.timestamp import (
    add as timestamp_add,
    day as timestamp_day,
    epoch_microseconds as timestamp_epoch_microseconds,
    from_epoch_microseconds as timestamp_from_epoch_microseconds,
    hour as timestamp_hour,
    microsecond as timestamp_microsecond,
    minute as timestamp_minute,
    month as timestamp_month,
    second as timestamp_second,
    subtract as timestamp_subtract,
    text as timestamp_text,
    to_date as timestamp_to_date,
    year as timestamp_year,
)
from vesper.kernels.value import max as value_max


class Success(TypedDict):
    next_run: datetime
    kind: Literal["full", "changes", "skipped"]
    label: str
    is_later: bool
    ends_by: datetime
    warn_at: datetime
    budget: timedelta
    fastest: int
    delete_before: datetime
    switches: bool
    is_intact: bool
    micros: int
    message: str


@exact_decimals
def backup_plan_v1(
    *,
    last_run: datetime,
    last_label: str,
    every: str = "24h",
    delay: timedelta = timedelta(days=0),
    took_ms: list[int],
    keep_months: int = 3,
    no_work_on: list[date],
    last_kind: Literal["full", "changes", "skipped"],
    checksum: bytes,
    expected: bytes | None = None,
) -> Success:
    """Say when the next backup runs, what kind it is, how long it may take and what can be
    deleted."""

    # constraint, line 8: matches(every, "^[0-9]{1,4}[hm]$")
    if not regex_matches(every, "^[0-9]{1,4}[hm]$"):
        raise ContractBroken("constraint", 0, {"every": every})

    # constraint, line 11: keep_months >= 1
    if not keep_months >= 1:
        raise ContractBroken("constraint", 1, {"keep_months": keep_months})

    # constraint, line 11: keep_months <= 120
    if not keep_months <= 120:
        raise ContractBroken("constraint", 2, {"keep_months": keep_months})

    # precondition, line 35: year(last_run) >= 1970 AND year(last_run) < 3000
    if not (timestamp_year(last_run) >= 1970 and timestamp_year(last_run) < 3000):
        raise ContractBroken("precondition", 0, {"last_run": last_run})

    # precondition, line 36: delay >= duration('0s') AND delay < duration('1h')
    if not (delay >= timedelta(days=0) and delay < timedelta(seconds=3600)):
        raise ContractBroken("precondition", 1, {"delay": delay})

    # precondition, line 37: FORALL ms IN took_ms SATISFIES ms >= 0 AND ms <= 86400000
    for ms in took_ms:
        if not (ms >= 0 and ms <= 86400000):
            raise ContractBroken("precondition", 2, {"took_ms": took_ms})

    # step wait, line 48
    wait = duration_add(duration_parse(every), delay)

    # step next_run, line 49
    next_run = timestamp_add(last_run, wait)

    # step today, line 50
    today = timestamp_to_date(next_run)

    # step spent, line 52
    spent = [duration_from_milliseconds(ms) for ms in took_ms]

    # step budget, line 53
    budget = value_max(
        duration_from_minutes(1)
        if len(spent) == 0
        else duration_divide(duration_multiply(duration_sum(spent), 3), checked(len(spent) * 2)),
        duration_from_minutes(1),
    )

    # step ends_by, line 54
    ends_by = timestamp_add(next_run, budget)

    # step stamp, line 55
    stamp = [
        timestamp_year(next_run),
        timestamp_month(next_run),
        timestamp_day(next_run),
        timestamp_hour(next_run),
        timestamp_minute(next_run),
        timestamp_second(next_run),
    ]

    # step fraction, line 56
    fraction = timestamp_microsecond(next_run)

    # step label, line 57
    label = text_concat(
        text_join([text_pad_start(integer_text(part), 2, "0") for part in stamp], "-"),
        text_concat(".", text_pad_start(integer_text(fraction), 6, "0")) if fraction != 0 else "",
    )

    # step oldest, line 58
    oldest = date_add_months(today, checked(-keep_months))

    # step kept_from, line 60
    kept_from = date_from_parts(date_year(oldest), date_month(oldest), 1)

    # step kind, line 62
    kind: Literal["full", "changes", "skipped"]
    if today in no_work_on:
        kind = "skipped"
    elif date_weekday_number(today) == 7 or date_day(today) == 1:
        kind = "full"
    elif last_kind == "skipped" and today != timestamp_to_date(last_run):
        kind = "full"
    else:
        kind = "changes"

    # output is_later, line 75
    is_later = last_label < label

    # output warn_at, line 77
    warn_at = timestamp_subtract(ends_by, duration_divide(budget, 4))

    # output fastest, line 79
    fastest = 0 if len(took_ms) == 0 else array_min(took_ms)

    # output delete_before, line 80
    delete_before = date_to_timestamp(kept_from)

    # output switches, line 81
    switches = (kind == "full") != (last_kind == "full") and next_run != last_run

    # output is_intact, line 82
    is_intact = expected is None or expected == checksum

    # output micros, line 83
    micros = timestamp_epoch_microseconds(next_run)

    # output message, line 84
    message = text_concat(
        text_concat(text_concat("a ", enum_text(kind)), " backup at "), timestamp_text(next_run)
    )

    # postcondition, line 39: next_run >= last_run AND ends_by >= next_run
    if not (next_run >= last_run and ends_by >= next_run):
        raise ContractBroken(
            "postcondition", 0, {"next_run": next_run, "last_run": last_run, "ends_by": ends_by}
        )

    # postcondition, line 40: warn_at <= ends_by
    if not warn_at <= ends_by:
        raise ContractBroken("postcondition", 1, {"warn_at": warn_at, "ends_by": ends_by})

    # postcondition, line 41: delete_before < next_run
    if not delete_before < next_run:
        raise ContractBroken(
            "postcondition", 2, {"delete_before": delete_before, "next_run": next_run}
        )

    # postcondition, line 42: kind != full OR weekday_number(to_date(next_run)) == 7 OR
    #   day(next_run) == 1 OR last_kind == skipped
    if not (
        kind != "full"
        or date_weekday_number(timestamp_to_date(next_run)) == 7
        or timestamp_day(next_run) == 1
        or last_kind == "skipped"
    ):
        raise ContractBroken(
            "postcondition", 3, {"kind": kind, "next_run": next_run, "last_kind": last_kind}
        )

    # postcondition, line 43: from_epoch_microseconds(micros) == next_run
    if timestamp_from_epoch_microseconds(micros) != next_run:
        raise ContractBroken("postcondition", 4, {"micros": micros, "next_run": next_run})

    return {
        "next_run": next_run,
        "kind": kind,
        "label": label,
        "is_later": is_later,
        "ends_by": ends_by,
        "warn_at": warn_at,
        "budget": budget,
        "fastest": fastest,
        "delete_before": delete_before,
        "switches": switches,
        "is_intact": is_intact,
        "micros": micros,
        "message": message,
    }


INPUTS: Final = Inputs(
    {
        "last_run": "timestamp",
        "last_label": "string",
        "every": "string",
        "delay": "duration",
        "took_ms": "array<integer>",
        "keep_months": "integer",
        "no_work_on": "array<date>",
        "last_kind": "enum[full, changes, skipped]",
        "checksum": "bytes",
        "expected": "optional<bytes>",
    },
    {"every": "24h", "delay": timedelta(days=0), "keep_months": 3},
)
RUN: Final = undecorated(backup_plan_v1)


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
            6
            + ("every" in inputs)
            + ("delay" in inputs)
            + ("keep_months" in inputs)
            + ("expected" in inputs)
        ):
            raise NotPlain
        last_run = inputs["last_run"]
        last_run = read_value("timestamp", last_run)
        last_label = inputs["last_label"]
        if (
            type(last_label) is not str
            or not (is_ascii(last_label) or is_text(last_label))
            or len(last_label) > MAX_TEXT
        ):
            raise NotPlain
        every = inputs["every"] if "every" in inputs else "24h"
        if (
            type(every) is not str
            or not (is_ascii(every) or is_text(every))
            or len(every) > MAX_TEXT
        ):
            raise NotPlain
        delay = inputs["delay"] if "delay" in inputs else timedelta(days=0)
        delay = read_value("duration", delay)
        took_ms = inputs["took_ms"]
        if type(took_ms) is not list or len(took_ms) > MAX_ENTRIES:
            raise NotPlain
        took_ms = [read_integer(item) for item in took_ms]
        keep_months = inputs["keep_months"] if "keep_months" in inputs else 3
        if type(keep_months) is not int or keep_months < MIN_INTEGER or keep_months > MAX_INTEGER:
            raise NotPlain
        no_work_on = inputs["no_work_on"]
        no_work_on = read_value("array<date>", no_work_on)
        last_kind = inputs["last_kind"]
        if type(last_kind) is not str or last_kind not in {"full", "changes", "skipped"}:
            raise NotPlain
        checksum = inputs["checksum"]
        checksum = read_value("bytes", checksum)
        expected = inputs["expected"] if "expected" in inputs else None
        expected = None if expected is None else read_value("bytes", expected)
    except NOT_PLAIN:
        (
            last_run,
            last_label,
            every,
            delay,
            took_ms,
            keep_months,
            no_work_on,
            last_kind,
            checksum,
            expected,
        ) = read_inputs(INPUTS, inputs)
    return RUN(
        last_run=last_run,
        last_label=last_label,
        every=every,
        delay=delay,
        took_ms=took_ms,
        keep_months=keep_months,
        no_work_on=no_work_on,
        last_kind=last_kind,
        checksum=checksum,
        expected=expected,
    )


SOURCE: Final = Source(
    "nodes/calendar/backup_plan_v1.vsp",
    lines={
        107: 8, 111: 11, 115: 11, 119: 35, 123: 36, 128: 37, 131: 48, 134: 49, 140: 52, 144: 53,
        146: 53, 147: 53, 151: 54, 167: 57, 168: 57, 169: 57, 173: 58, 176: 60, 193: 77, 196: 79,
        211: 84, 212: 84, 217: 39, 223: 40, 227: 41, 239: 42, 244: 43, 245: 43,
    },
    clauses={
        "constraint": [
            'matches(every, "^[0-9]{1,4}[hm]$")',
            "keep_months >= 1",
            "keep_months <= 120",
        ],
        "precondition": [
            "year(last_run) >= 1970 AND year(last_run) < 3000",
            "delay >= duration('0s') AND delay < duration('1h')",
            "FORALL ms IN took_ms SATISFIES ms >= 0 AND ms <= 86400000",
        ],
        "postcondition": [
            "next_run >= last_run AND ends_by >= next_run",
            "warn_at <= ends_by",
            "delete_before < next_run",
            "kind != full OR weekday_number(to_date(next_run)) == 7 OR day(next_run) == 1 OR last_kind == skipped",
            "from_epoch_microseconds(micros) == next_run",
        ],
    },
)  # fmt: skip
