"""Dates, timestamps, durations, times of day and periods as text, by the grammars of docs/spec/time.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta

from vesper.values.period import MAX_MONTHS, Period
from vesper.values.problem import ProblemKind, ValueProblem

MAX_DURATION = timedelta(days=3_652_059)

_MICROSECOND = timedelta(microseconds=1)
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
_ISO = re.compile(
    r"P(?:(?P<d>[0-9]+)D)?(?P<t>T(?:(?P<h>[0-9]+)H)?(?:(?P<m>[0-9]+)M)?(?:(?P<s>[0-9]+)(?:\.(?P<f>[0-9]{1,6}))?S)?)?"
)
_SHORT = re.compile(
    r"(?:(?P<d>[0-9]+)d)?(?:(?P<h>[0-9]+)h)?(?:(?P<m>[0-9]+)m)?(?:(?P<s>[0-9]+)(?:\.(?P<f>[0-9]{1,6}))?s)?"
    r"(?:(?P<ms>[0-9]+)ms)?(?:(?P<us>[0-9]+)us)?"
)
_MICROSECONDS = {"d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}
_MAX_COUNT_DIGITS = 18
"""Digits of the longest duration in microseconds. A longer count exceeds the limit in every unit."""


def parse_date(text: str) -> date:
    """Return the date of a text, or raise `ValueProblem`."""
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueProblem(ProblemKind.MALFORMED)
    try:
        return date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        raise ValueProblem(ProblemKind.MALFORMED) from None


def date_text(day: date) -> str:
    return f"{day.year:04}-{day.month:02}-{day.day:02}"


def parse_timestamp(text: str) -> datetime:
    """Return the moment in UTC; `out_of_range` where the offset leaves the years 1 to 9999."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueProblem(ProblemKind.MALFORMED)
    day = parse_date(match[1])
    fraction = (match[5] or "").ljust(6, "0")
    offset_hours, offset_minutes = int(match[7] or 0), int(match[8] or 0)
    if fraction[6:].strip("0") or offset_hours > 23 or offset_minutes > 59:
        raise ValueProblem(ProblemKind.MALFORMED)
    try:
        moment = datetime(
            day.year, day.month, day.day, int(match[2]), int(match[3]), int(match[4]), int(fraction[:6]), UTC
        )
    except ValueError:
        raise ValueProblem(ProblemKind.MALFORMED) from None
    offset = timedelta(hours=offset_hours, minutes=offset_minutes)
    return shift(moment, offset if match[6] == "-" else -offset)


def shift(moment: datetime, by: timedelta) -> datetime:
    """Return the moment a duration later; `out_of_range` outside the years 1 to 9999."""
    try:
        return moment + by
    except OverflowError:
        raise ValueProblem(ProblemKind.OUT_OF_RANGE) from None


class SleepClock:
    """A clock that a sleep moves to the time at which it is due, without waiting."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def sleep(self, arguments: Mapping[str, object], due: object = None) -> datetime:
        """Return the time at which a sleep is due, or the given one; `out_of_range` outside the years 1 to 9999."""
        found = due or arguments.get("until")
        if not isinstance(found, datetime):
            duration = arguments["duration"]
            assert isinstance(duration, timedelta)
            found = shift(self.now, duration)
        self.now = max(self.now, found)
        return found


def timestamp_text(moment: datetime) -> str:
    fraction = f".{moment.microsecond:06}" if moment.microsecond else ""
    return f"{date_text(moment)}T{moment.hour:02}:{moment.minute:02}:{moment.second:02}{fraction}Z"


def parse_duration(text: str) -> timedelta:
    """Return the duration; `out_of_range` over the limit, found without converting long digit strings."""
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    iso = _ISO.fullmatch(unsigned)
    match = iso or _SHORT.fullmatch(unsigned)
    if match is None or unsigned in ("", "P") or (iso is not None and iso["t"] == "T"):
        raise ValueProblem(ProblemKind.MALFORMED)
    parts = match.groupdict()
    total = int((parts["f"] or "").ljust(6, "0"))
    for unit, size in _MICROSECONDS.items():
        # SEMANTICS: CPython rejects integers of many digits, including leading zeros.
        digits = (parts.get(unit) or "").lstrip("0")
        if len(digits) > _MAX_COUNT_DIGITS:
            raise ValueProblem(ProblemKind.OUT_OF_RANGE)
        total += int(digits or "0") * size
    if total > MAX_DURATION // _MICROSECOND:
        raise ValueProblem(ProblemKind.OUT_OF_RANGE)
    return timedelta(microseconds=-total if text.startswith("-") else total)


def duration_text(length: timedelta) -> str:
    microseconds = length // _MICROSECOND
    seconds, fraction = divmod(abs(microseconds), 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    exact = f"{seconds}.{fraction:06}".rstrip("0") if fraction else f"{seconds}"
    time = "".join(
        f"{shown}{unit}" for shown, unit in ((f"{hours}", "H"), (f"{minutes}", "M"), (exact, "S")) if shown != "0"
    )
    if not days and not time:
        return "PT0S"
    return f"{'-' if microseconds < 0 else ''}P{f'{days}D' if days else ''}{f'T{time}' if time else ''}"


_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?")


def parse_time(text: str) -> time:
    """Return the time of day of a text, or raise `ValueProblem`."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueProblem(ProblemKind.MALFORMED)
    fraction = (match[4] or "").ljust(6, "0")
    if fraction[6:].strip("0"):
        raise ValueProblem(ProblemKind.MALFORMED)
    try:
        return time(int(match[1]), int(match[2]), int(match[3]), int(fraction[:6]))
    except ValueError:
        raise ValueProblem(ProblemKind.MALFORMED) from None


def time_text(value: time) -> str:
    fraction = f".{value.microsecond:06}" if value.microsecond else ""
    return f"{value.hour:02}:{value.minute:02}:{value.second:02}{fraction}"


_PERIOD = re.compile(r"[+-]?P(?=[0-9])(?:([0-9]+)Y)?(?:([0-9]+)M)?")


def parse_period(text: str) -> Period:
    """Return the period; `out_of_range` over the limit, found without converting long digit strings."""
    match = _PERIOD.fullmatch(text)
    if match is None:
        raise ValueProblem(ProblemKind.MALFORMED)
    years, months = ((digits or "0").lstrip("0") or "0" for digits in match.groups())
    total = MAX_MONTHS + 1 if max(len(years), len(months)) > 9 else 12 * int(years) + int(months)
    if total > MAX_MONTHS:
        raise ValueProblem(ProblemKind.OUT_OF_RANGE)
    return Period(-total if text.startswith("-") else total)
