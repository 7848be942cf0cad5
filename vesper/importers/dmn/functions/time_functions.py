"""Functions of FEEL on dates, times and durations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vesper.importers.dmn.code import ADD, MULTIPLY, Code
from vesper.importers.dmn.feel.tokens import unescape
from vesper.importers.dmn.functions.registry import feel_function
from vesper.importers.dmn.temporal import (
    date_literal,
    datetime_literal,
    duration_literal,
    local_part,
    open_value,
    parse_temporal,
    time_literal,
)
from vesper.importers.dmn.types import (
    BOOLEAN,
    DATE,
    DATETIME,
    DURATION,
    NUMBER,
    OPEN,
    PERIOD,
    STRING,
    TIME,
    Ty,
    type_error,
    unsupported,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from vesper.importers.dmn.translate import Translator


def _literal(build: Translator, text: Code, kind: str, read: Callable[[str], Code | None]) -> Code:
    if not text.is_literal:
        return parse_temporal(build, kind, text)
    found = read(unescape(text.text[1:-1]))
    if found is None:
        raise type_error(f"`{text.text[1:-1]}` is no {Ty(kind).describe()}")
    return found


@feel_function("date", "from", [None], DATE)
def _date(build: Translator, value: Code) -> Code:
    match value.ty.kind:
        case "string":
            return _literal(build, value, "date", date_literal)
        case "date":
            return value
        case "datetime":
            return build.function("to_date", [local_part(build, value)], DATE)
    raise type_error(f"`date` takes no {value.ty.describe()}")


@feel_function("date", "year, month, day", [NUMBER, NUMBER, NUMBER], DATE)
def _date_parts(build: Translator, year: Code, month: Code, day: Code) -> Code:
    parts = [build.core(build.strict(each), name) for each, name in ((year, "year"), (month, "month"), (day, "day"))]
    if all(each.is_literal for each in parts):
        found = date_literal(
            f"{int(float(parts[0].text)):04d}-{int(float(parts[1].text)):02d}-{int(float(parts[2].text)):02d}"
        )
        if found is None:
            raise type_error("there is no such day")
    years, months, days = (f"to_integer({each.text})" if not each.is_literal else each.text for each in parts)
    first = f"date({years}, {months}, 1)"
    guards = [
        f"{parts[0].at(ADD)} < 1", f"{parts[0].at(ADD)} > 9999", f"{parts[1].at(ADD)} < 1", f"{parts[1].at(ADD)} > 12",
        f"{parts[2].at(ADD)} < 1", f"{parts[2].at(ADD)} > days_in_month({first})",
    ]  # fmt: skip
    found = build.combine(parts, f"date({years}, {months}, {days})", DATE)
    return found if all(each.is_literal for each in parts) else build.guarded(found, *guards)


@feel_function("time", "from", [None], TIME)
def _time(build: Translator, value: Code) -> Code:
    match value.ty.kind:
        case "string":
            return _literal(build, value, "time", time_literal)
        case "time":
            return value
        case "datetime":
            at = build.core(build.strict(value), "moment")
            if value.ty.zone == OPEN:
                local = f"{at.text}.local - to_timestamp(to_date({at.text}.local))"
                return open_value(build, [at], local, f"{at.text}.offset", "time")
            ty = replace(TIME, zone=value.ty.zone)
            return build.combine([at], f"{at.text} - to_timestamp(to_date({at.text}))", ty, ADD)
        case "date":
            inner = build.strict(value)
            return build.combine([inner], "duration('PT0S')", replace(TIME, zone="Z"))
    raise type_error(f"`time` takes no {value.ty.describe()}")


@feel_function("time", "hour, minute, second, offset~", [NUMBER, NUMBER, NUMBER, DURATION], TIME)
def _time_parts(build: Translator, hour: Code, minute: Code, second: Code, offset: Code | None = None) -> Code:
    zone = "" if offset is None else _offset_zone(offset)
    given: list[Code] = []
    if offset is not None and zone is None:
        given = [build.core(build.strict(offset, "offset"), "offset")]
    parts = [
        build.core(build.strict(each), name) for each, name in ((hour, "hour"), (minute, "minute"), (second, "second"))
    ]
    guards = []
    for each, limit in zip(parts, (24, 60, 60), strict=True):
        if each.is_literal and not 0 <= float(each.text) < limit:
            raise type_error("there is no such time")
        if not each.is_literal:
            guards += [f"{each.text} < 0", f"{each.text} >= {limit}"]
    hours, minutes = (each.text if each.is_literal else f"to_integer(trunc({each.text}))" for each in parts[:2])
    if parts[2].is_literal and parts[2].text.isdigit():
        last = f"seconds({parts[2].text})"
    else:
        last = f"microseconds(to_integer(trunc({build.decimal(parts[2]).at(MULTIPLY)} * 1000000)))"
    clock = f"hours({hours}) + minutes({minutes}) + {last}"
    if zone is None:
        guards.append(f"abs(total_microseconds({given[0].text})) > 64800000000")
        return build.guarded(open_value(build, [*parts, *given], clock, given[0].text, "time"), *guards)
    return build.guarded(build.combine(parts, clock, replace(TIME, zone=zone), ADD), *guards)


def _offset_zone(offset: Code) -> str | None:
    """Return the zone of an offset that is a literal; None for one that is known at run time only."""
    import re

    found = re.fullmatch(r"duration\('(-)?PT(?:(\d+)H)?(?:(\d+)M)?(?:0S)?'\)", offset.text)
    if found is None or offset.steps:
        return None
    hours, minutes = int(found[2] or 0), int(found[3] or 0)
    if hours > 18 or minutes > 59:
        raise type_error("an offset is at most 18 hours")
    if not hours and not minutes:
        return "Z"
    return f"{found[1] or '+'}{hours:02d}:{minutes:02d}"


@feel_function("date and time", "from", [None], DATETIME)
def _datetime(build: Translator, value: Code) -> Code:
    match value.ty.kind:
        case "string":
            return _literal(build, value, "datetime", datetime_literal)
        case "datetime":
            return value
        case "date":
            return build.function("to_timestamp", [value], replace(DATETIME, zone="Z"))
    raise type_error(f"`date and time` takes no {value.ty.describe()}")


@feel_function("date and time", "date, time", [None, TIME], DATETIME)
def _datetime_parts(build: Translator, day: Code, time: Code) -> Code:
    if day.ty.kind == "datetime":
        day = build.function("to_date", [local_part(build, day)], DATE)
    if day.ty.kind != "date" or time.ty.kind != "time":
        raise type_error("`date and time` takes a date and a time")
    left, right = build.strict(day, "day"), build.strict(time, "time")
    if right.ty.zone == OPEN:
        right = build.core(right, "time")
        local = f"to_timestamp({left.text}) + {right.text}.local"
        return open_value(build, [left, right], local, f"{right.text}.offset", "datetime")
    ty = replace(DATETIME, zone=right.ty.zone)
    return build.combine([left, right], f"to_timestamp({left.text}) + {right.at(MULTIPLY)}", ty, ADD)


@feel_function("duration", "from", [STRING], DURATION)
def _duration(build: Translator, text: Code) -> Code:
    return _literal(build, text, "duration", duration_literal)


@feel_function("duration", "from", [DURATION], DURATION)
def _duration_same(_: Translator, value: Code) -> Code:
    return value


@feel_function("duration", "from", [PERIOD], PERIOD)
def _period_same(_: Translator, value: Code) -> Code:
    return value


@feel_function("years and months duration", "from, to", [None, None], PERIOD)
def _months(build: Translator, start: Code, end: Code) -> Code:
    days = []
    for code in (start, end):
        if code.ty.kind not in ("date", "datetime"):
            raise type_error("`years and months duration` takes dates")
        days.append(code if code.ty.kind == "date" else build.function("to_date", [local_part(build, code)], DATE))
    return build.function("months_between", days, PERIOD)


def _day_of(build: Translator, value: Code, name: str) -> Code:
    if value.ty.kind not in ("date", "datetime"):
        raise type_error(f"`{name}` takes a date")
    value = build.strict(local_part(build, value), "day")
    return value if value.ty.kind == "date" else build.combine([value], f"to_date({value.text})", DATE)


@feel_function("day of year", "date", [None], NUMBER)
def _day_of_year(build: Translator, value: Code) -> Code:
    day = _day_of(build, value, "day of year")
    return build.combine([day], f"(day_of_year({day.text}) AS decimal)", NUMBER)


_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip


@feel_function("day of week", "date", [None], STRING)
def _day_of_week(build: Translator, value: Code) -> Code:
    day = _day_of(build, value, "day of week")
    names = ", ".join(f"'{each}'" for each in _DAYS)
    return build.combine([day], f"[{names}][weekday_number({day.text}) - 1]", STRING)


@feel_function("month of year", "date", [None], STRING)
def _month_of_year(build: Translator, value: Code) -> Code:
    day = _day_of(build, value, "month of year")
    names = ", ".join(f"'{each}'" for each in _MONTHS)
    return build.combine([day], f"[{names}][month({day.text}) - 1]", STRING)


@feel_function("week of year", "date", [None], NUMBER)
def _week_of_year(build: Translator, value: Code) -> Code:
    day = build.core(_day_of(build, value, "week of year"), "day")
    # The week of a day is that of its Thursday.
    thursday = f"add_days({day.text}, 4 - weekday_number({day.text}))"
    return build.combine([day], f"(quot(day_of_year({thursday}) - 1, 7) + 1 AS decimal)", NUMBER)


@feel_function("now", "", [], DATETIME)
def _now(_: Translator) -> Code:
    return Code("now()", replace(DATETIME, zone="Z"))


@feel_function("today", "", [], DATE)
def _today(_: Translator) -> Code:
    return Code("to_date(now())", DATE)


@feel_function("is", "value1, value2", [None, None], BOOLEAN, takes_null=True)
def _is(build: Translator, left: Code, right: Code) -> Code:
    """Return whether both values are equal and of the same type; times must also have the same zone."""
    from vesper.importers.dmn.operators import equality

    if left.ty.kind != right.ty.kind and "null" not in (left.ty.kind, right.ty.kind):
        if "any" in (left.ty.kind, right.ty.kind):
            raise unsupported("`is` of a value of any type")
        return Code("false", BOOLEAN)
    if left.ty.kind in ("time", "datetime") and left.ty.zone != right.ty.zone:
        return Code("false", BOOLEAN)
    return equality(build, left, right)
