"""Dates, times and durations of FEEL: literals, properties, arithmetic, text."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, timedelta
from zoneinfo import available_timezones

from vesper.importers.dmn.code import ADD, MULTIPLY, NEGATE, PRIMARY, Builder, Code
from vesper.importers.dmn.types import (
    DATE,
    DATETIME,
    DURATION,
    NUMBER,
    OPEN,
    PERIOD,
    STRING,
    TIME,
    Ty,
    unsupported,
)

_DATE = r"(-?\d{4,9})-(\d\d)-(\d\d)"
_TIME = r"(\d\d):(\d\d):(\d\d)(\.\d+)?"
_ZONE = r"(Z|z|[+-]\d\d:\d\d(?::\d\d)?|@[A-Za-z_+\-0-9]+(?:/[A-Za-z_+\-0-9]+)*)?"
DATE_TEXT = re.compile(rf"{_DATE}$")
TIME_TEXT = re.compile(rf"{_TIME}{_ZONE}$")
DATETIME_TEXT = re.compile(rf"{_DATE}(?:T{_TIME}{_ZONE})?$")
DURATION_TEXT = re.compile(r"(-)?P(?=\d|T\d)(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?$")
PERIOD_TEXT = re.compile(r"(-)?P(?=\d)(?:(\d+)Y)?(?:(\d+)M)?$")


def at_literal(text: str) -> Code | None:
    """Return the expression of `@"…"`; None for a text that is no temporal literal."""
    for read in (date_literal, time_literal, datetime_literal, duration_literal):
        found = read(text)
        if found is not None:
            return found
    return None


def date_literal(text: str) -> Code | None:
    """Return a date; None for a text that is none."""
    found = DATE_TEXT.match(text)
    if found is None:
        return None
    if len(found[1]) != 4:
        raise unsupported("a year outside 1 to 9999")
    try:
        day = date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        return None
    return Code(f"date('{day.isoformat()}')", DATE)


def _zone(text: str | None) -> str | None:
    """Return the canonical zone; None for an offset that is none."""
    if text is None:
        return ""
    if text in ("Z", "z", "+00:00", "-00:00"):
        return "Z"
    if text.startswith("@"):
        return text[1:] if text[1:] in available_timezones() else None
    hours, minutes = int(text[1:3]), int(text[4:6])
    return None if hours > 18 or minutes > 59 else text


def _clock(hours: str, minutes: str, seconds: str, fraction: str | None) -> str | None:
    """Return the duration since midnight as text; None for an hour that does not exist."""
    if int(hours) > 23 or int(minutes) > 59 or int(seconds) > 59:
        return None
    kept = (fraction or "").rstrip("0").rstrip(".")
    if len(kept) > 7:
        raise unsupported("a fraction of a second beyond microseconds")
    parts = f"{int(hours)}H" * (int(hours) > 0) + f"{int(minutes)}M" * (int(minutes) > 0)
    if int(seconds) or kept:
        parts += f"{int(seconds)}{kept}S"
    return f"PT{parts or '0S'}"


def time_literal(text: str) -> Code | None:
    """Return a time; None for a text that is none."""
    found = TIME_TEXT.match(text)
    if found is None:
        return None
    clock, zone = _clock(*found.group(1, 2, 3, 4)), _zone(found[5])
    if clock is None or zone is None:
        return None
    return Code(f"duration('{clock}')", replace(TIME, zone=zone))


def datetime_literal(text: str) -> Code | None:
    """Return a date and time; None for a text that is none."""
    found = DATETIME_TEXT.match(text)
    if found is None:
        return None
    day = date_literal("-".join(found.group(1, 2, 3)))
    if day is None:
        return None
    if found[4] is None:
        return Code(f"timestamp('{text}T00:00:00Z')", DATETIME)
    zone = _zone(found[8])
    if _clock(*found.group(4, 5, 6, 7)) is None or zone is None:
        return None
    fraction = (found[7] or "").rstrip("0").rstrip(".")
    clock = ":".join(found.group(4, 5, 6)) + fraction
    return Code(f"timestamp('{found[1]}-{found[2]}-{found[3]}T{clock}Z')", replace(DATETIME, zone=zone))


def duration_literal(text: str) -> Code | None:
    """Return a duration of either kind; None for a text that is none."""
    found = PERIOD_TEXT.match(text)
    if found is not None:
        months = int(found[2] or 0) * 12 + int(found[3] or 0)
        if months >= 2**63:
            return None
        sign = "-" if found[1] and months else ""
        # The value is whole months, which Vesper holds in an integer.
        return Code(f"({sign}{months} AS integer)" if sign else f"({months} AS integer)", PERIOD)
    found = DURATION_TEXT.match(text)
    if found is None:
        return None
    seconds = found[5] or "0"
    if "." in seconds and len(seconds.rstrip("0").partition(".")[2]) > 6:
        raise unsupported("a fraction of a second beyond microseconds")
    try:
        total = timedelta(days=int(found[2] or 0), hours=int(found[3] or 0), minutes=int(found[4] or 0))
    except OverflowError:
        total = timedelta.max
    if total > timedelta(days=3_652_058):
        raise unsupported("a duration of more than 3,652,058 days")
    if "." in seconds:
        seconds = seconds.rstrip("0").rstrip(".")
        text = re.sub(r"[\d.]+S$", f"{seconds}S", text)
    return Code(f"duration('{text}')", DURATION)


def offset_seconds(zone: str) -> int | None:
    """Return the offset of a fixed zone; None for the name of a region."""
    if zone == "Z":
        return 0
    found = re.match(r"([+-])(\d\d):(\d\d)(?::(\d\d))?$", zone)
    if found is None:
        return None
    seconds = int(found[2]) * 3600 + int(found[3]) * 60 + int(found[4] or 0)
    return -seconds if found[1] == "-" else seconds


def _duration_of(seconds: int) -> str:
    sign = "-" if seconds < 0 else ""
    return f"duration('{sign}PT{abs(seconds)}S')"


def same_clock(build: Builder, left: Code, right: Code) -> tuple[Code, Code]:
    """Return two times, or two dates and times, on the same clock. Refuses a pair of which only one has an offset."""
    if left.ty.zone == right.ty.zone and left.ty.zone != OPEN:
        return left, right
    if OPEN in (left.ty.zone, right.ty.zone):
        return _open_clocks(build, left, right)
    if not left.ty.zone or not right.ty.zone:
        raise unsupported("a comparison of values with and without an offset")
    return _at_utc(build, left), _at_utc(build, right)


def _open_clocks(build: Builder, left: Code, right: Code) -> tuple[Code, Code]:
    """Return two values in UTC, of which one has an offset that is known at run time only."""
    left, right = _open(build, left), _open(build, right)
    differ = f"({left.text}.offset IS NULL) != ({right.text}.offset IS NULL)"
    found = []
    for code in (left, right):
        utc = f"{code.text}.local - ({code.text}.offset ?? duration('PT0S'))"
        found.append(build.combine([code], utc, replace(code.ty, zone="Z"), ADD))
    return found[0], build.guarded(found[1], *([] if left.text == right.text else [differ]))


def _open(build: Builder, code: Code) -> Code:
    """Return a value as a named record of its local time and its offset."""
    if code.ty.zone == OPEN:
        return build.core(build.strict(code, "moment"), "moment")
    if code.ty.zone and offset_seconds(code.ty.zone) is None:
        raise unsupported(f"arithmetic with the zone {code.ty.zone}")
    value = build.strict(code, "moment")
    seconds = offset_seconds(code.ty.zone) if code.ty.zone else None
    offset = "null" if seconds is None else _duration_of(seconds)
    return build.core(open_value(build, [value], value.text, offset, value.ty.kind), "moment")


def open_value(build: Builder, parts: list[Code], local: str, offset: str, kind: str) -> Code:
    """Return a time, or a date and time, from its local time and its offset."""
    ty = Ty(kind, zone=OPEN)
    return build.combine(parts, f"({{local: {local}, offset: {offset}}} AS {build.records.written(ty)})", ty)


def read_text(build: Builder, kind: str, value: Code) -> Code:
    """Return the time, or the date and time, of a text; a text outside the grammar is a failure."""
    value = build.strict(value, "text")
    ty = Ty(kind, zone=OPEN)
    helper = build.helper("read_date_time" if kind == "datetime" else "read_time")
    return build.combine([value], f"{helper}({value.text})", ty)


def local_part(build: Builder, code: Code) -> Code:
    """Return the local time of a value whose offset is known at run time only; any other value unchanged."""
    if code.ty.zone != OPEN:
        return code
    path = build.core(build.strict(code, "moment"), "moment")
    return replace(build.combine([path], f"{path.text}.local", Ty(code.ty.kind)), is_path=True)


def with_local(build: Builder, code: Code, local: Code) -> Code:
    """Return a value with another local time and the same offset."""
    path = build.core(build.strict(code, "moment"), "moment")
    return build.combine([path, local], f"({path.text} WITH {{local: {local.text}}})", path.ty)


def _at_utc(build: Builder, code: Code) -> Code:
    seconds = offset_seconds(code.ty.zone)
    if seconds is None:
        raise unsupported(f"arithmetic with the zone {code.ty.zone}")
    value = build.strict(code, "moment")
    ty = replace(value.ty, zone="Z")
    if not seconds:
        return replace(value, ty=ty)
    return build.combine([value], f"{value.at(ADD)} - {_duration_of(seconds)}", ty, ADD)


def add_temporal(build: Builder, left: Code, right: Code) -> Code | None:
    """Return `+` of a date, time or duration, and a duration."""
    kinds = (left.ty.kind, right.ty.kind)
    if kinds[0] in ("duration", "period") and kinds[1] in ("date", "time", "datetime"):
        left, right = right, left
        kinds = (left.ty.kind, right.ty.kind)
    if kinds[1] not in ("duration", "period"):
        return None
    left, right = build.strict(left, "moment"), build.strict(right, "duration")
    return _shift(build, "+", left, right)


def _shift(build: Builder, sign: str, left: Code, right: Code) -> Code | None:
    """Return `left + right` or `left - right` for a duration on the right, both not null."""
    if left.ty.zone == OPEN:
        moved = _shift(build, sign, local_part(build, left), right)
        return None if moved is None else with_local(build, left, moved)
    both = build.combine([left, right], "", left.ty)
    by = right.at(MULTIPLY)
    match left.ty.kind, right.ty.kind:
        case ("duration", "duration") | ("period", "period"):
            return replace(both, text=f"{left.at(ADD)} {sign} {by}", level=ADD)
        case "datetime", "duration":
            return replace(both, text=f"{left.at(ADD)} {sign} {by}", level=ADD)
        case "date", "duration":
            return replace(both, text=f"to_date(to_timestamp({left.text}) {sign} {by})")
        case "date", "period":
            return replace(both, text=f"add_months({left.text}, {_signed(sign, right)})")
        case "datetime", "period":
            at = left if left.is_path else replace(left, text=left.at(PRIMARY))
            day = f"to_date({at.text})"
            clock = f"({at.text} - to_timestamp({day}))"
            return replace(both, text=f"to_timestamp(add_months({day}, {_signed(sign, right)})) + {clock}", level=ADD)
        case "time", "duration":
            micros = f"(total_microseconds({left.text}) {sign} total_microseconds({right.text}))"
            return replace(both, text=f"microseconds(mod({micros}, 86400000000))")
    return None


def _signed(sign: str, code: Code) -> str:
    return code.text if sign == "+" else f"-{code.at(NEGATE + 1)}"


def subtract_temporal(build: Builder, left: Code, right: Code) -> Code | None:
    """Return `-` of dates, times and durations."""
    kinds = (left.ty.kind, right.ty.kind)
    if kinds[1] in ("duration", "period"):
        left, right = build.strict(left, "moment"), build.strict(right, "duration")
        return _shift(build, "-", left, right)
    if kinds in (("date", "datetime"), ("datetime", "date")):
        left, right = _midnight(build, left, right.ty.zone), _midnight(build, right, left.ty.zone)
        kinds = ("datetime", "datetime")
    if kinds not in (("date", "date"), ("datetime", "datetime"), ("time", "time")):
        return None
    if kinds[0] != "date":
        left, right = same_clock(build, left, right)
    left, right = build.strict(left, "left"), build.strict(right, "right")
    one, other = left.at(ADD), right.at(MULTIPLY)
    if kinds[0] == "date":
        one, other = f"to_timestamp({left.text})", f"to_timestamp({right.text})"
    return build.combine([left, right], f"{one} - {other}", DURATION, ADD)


def _midnight(build: Builder, code: Code, zone: str) -> Code:
    if code.ty.kind != "date":
        return code
    value = build.strict(code, "day")
    ty = replace(DATETIME, zone="Z" if zone == OPEN else zone or "")
    return build.combine([value], f"to_timestamp({value.text})", ty)


_CALENDAR = {"year", "month", "day"}
_CLOCK = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}


def temporal_property(build: Builder, source: Code, name: str) -> Code | None:
    """Return a property of a date, time or duration; None where it has no such property."""
    kind = source.ty.kind
    if source.ty.zone == OPEN:
        if name == "time offset":
            path = build.core(build.strict(source, "moment"), "moment")
            return replace(build.combine([path], f"{path.text}.offset", DURATION.optional()), is_path=True)
        if name == "timezone":
            return Code("(null AS optional<string>)", STRING.optional())
        return temporal_property(build, local_part(build, source), name)
    value = build.strict(source, "moment")
    if kind in ("date", "datetime") and name in _CALENDAR:
        return build.combine([value], f"({name}({value.text}) AS decimal)", NUMBER)
    if kind in ("date", "datetime") and name == "weekday":
        day = value.text if kind == "date" else f"to_date({value.text})"
        return build.combine([value], f"(weekday_number({day}) AS decimal)", NUMBER)
    if kind == "date" and name in _CLOCK:
        return build.combine([value], "0.0", NUMBER)
    if kind == "datetime" and name in _CLOCK:
        return build.combine([value], f"({name}({value.text}) AS decimal)", NUMBER)
    if kind == "time" and name in _CLOCK:
        unit = _CLOCK[name]
        whole = f"div_floor(total_microseconds({value.text}), {unit})"
        text = whole if name == "hour" else f"mod({whole}, 60)"
        return build.combine([value], f"({text} AS decimal)", NUMBER)
    if kind in ("time", "datetime", "date") and name in ("time offset", "timezone"):
        return _zone_property(build, value, name)
    if kind == "period" and name in ("years", "months"):
        text = f"quot({value.text}, 12)" if name == "years" else f"rem({value.text}, 12)"
        return build.combine([value], f"({text} AS decimal)", NUMBER)
    if kind == "duration" and name in ("days", "hours", "minutes", "seconds"):
        return _duration_part(build, value, name)
    return None


def _zone_property(build: Builder, value: Code, name: str) -> Code | None:
    zone = value.ty.zone
    seconds = offset_seconds(zone) if zone else None
    if name == "time offset":
        if value.ty.kind == "date":
            return Code("duration('PT0S')", DURATION)
        if seconds is not None:
            return build.combine([value], _duration_of(seconds), DURATION)
        if not zone:
            return Code("(null AS optional<duration>)", DURATION.optional())
        raise unsupported(f"the offset of the zone {zone}")
    if zone and seconds is None:
        return build.combine([value], f"'{zone}'", STRING)
    return Code("(null AS optional<string>)", STRING.optional())


def _duration_part(build: Builder, value: Code, name: str) -> Code:
    micros = f"total_microseconds({value.text})"
    if name == "seconds":
        text = f"rem({micros}, 60000000) / 1000000"
        return build.combine([value], text, NUMBER, MULTIPLY)
    units = {"days": 86_400_000_000, "hours": 3_600_000_000, "minutes": 60_000_000}
    whole = f"quot({micros}, {units[name]})"
    limits = {"days": whole, "hours": f"rem({whole}, 24)", "minutes": f"rem({whole}, 60)"}
    return build.combine([value], f"({limits[name]} AS decimal)", NUMBER)


def temporal_text(build: Builder, code: Code) -> Code | None:
    """Return the text of a date, time or duration as `string()` writes it; None for another type."""
    if code.ty.zone == OPEN:
        path = build.core(build.strict(code, "moment"), "moment")
        local = temporal_text(build, local_part(build, path))
        assert local is not None
        offset = f"{build.helper('offset_text')}({path.text}.offset)"
        return build.combine([path, local], f"{local.at(ADD)} + {offset}", STRING, ADD)
    value = build.strict(code, "moment")
    match code.ty.kind:
        case "date" | "duration":
            return build.combine([value], f"text({value.text})", STRING)
        case "datetime":
            return _clock_text(build, value, f"{build.helper('date_time_text')}({value.text})", code.ty.zone)
        case "time":
            moment = f"timestamp('2000-01-01T00:00:00Z') + {value.at(MULTIPLY)}"
            return _clock_text(build, value, f"slice({build.helper('date_time_text')}({moment}), 11)", code.ty.zone)
        case "period":
            at = build.core(value, "months")
            return build.combine([at], _period_text(at.text), STRING, ADD)
    return None


def _clock_text(build: Builder, value: Code, text: str, zone: str) -> Code:
    if not zone:
        return build.combine([value], text, STRING)
    return build.combine([value], f"{text} + '{_zone_text(zone)}'", STRING, ADD)


def _zone_text(zone: str) -> str:
    return zone if zone in ("", "Z") or zone[0] in "+-" else f"@{zone}"


def _period_text(months: str) -> str:
    years, rest = f"quot(abs({months}), 12)", f"rem(abs({months}), 12)"
    sign = f"(IF {months} < 0 THEN '-P' ELSE 'P')"
    year = f"(IF {years} == 0 THEN '' ELSE text({years}) + 'Y')"
    month = f"(IF {rest} == 0 AND {months} != 0 THEN '' ELSE text({rest}) + 'M')"
    return f"{sign} + {year} + {month}"


_GUARDS = {
    "date": "^-?[0-9]{4,9}-[0-9]{2}-[0-9]{2}$",
    "datetime": "^-?[0-9]{4,9}-[0-9]{2}-[0-9]{2}(T.*)?$",
    "time": "^[0-9]{2}:[0-9]{2}:[0-9]{2}",
    "duration": "^-?P",
}
"""Patterns that every text of a kind matches; a text that matches and is none is a failure of the node."""


def parse_temporal(build: Builder, kind: str, code: Code) -> Code:
    """Return the value of a text that is known at run time only; a text of another shape is null."""
    if kind not in _GUARDS:
        raise unsupported(f"a {Ty(kind).describe()} from a text that is known at run time only")
    value = build.core(build.strict(code, "text"), "text")
    value = build.guarded(value, f"NOT matches({value.text}, '{_GUARDS[kind]}')")
    if kind in ("time", "datetime"):
        return read_text(build, kind, value)
    ty = DATE if kind == "date" else DURATION
    return build.combine([value], f"{kind}({value.text})", ty)
