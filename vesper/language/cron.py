"""Cron texts: five fields or a name, and their due times in a zone (docs/spec/schedules.md).

Both engines read local times from the same zone data. A text with all 24 hours is due whenever clocks show a matching
minute. Any other text is due once for each matching local time, even if clocks skip or repeat it.
"""

from __future__ import annotations

from bisect import bisect_right
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from vesper.kernels.calendar.zones import next_change, offset_at, offset_of_local

NAMED_TEXTS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_MICROSECOND = timedelta(microseconds=1)
_FIRST_LOOK_BACK = timedelta(minutes=2)
_DAYS_OF_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class CronMistake(ValueError):
    """A fault of a cron text, at its characters `start` to `end`."""

    def __init__(self, message: str, start: int, end: int, help_text: str) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end
        self.help = help_text


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    words: tuple[str, ...] = ()
    """Names of the values from `low` on."""


_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 7, _WEEKDAYS),
)
_LAST_DAY = 0
"""Stands for `L` among the days of a month."""


@dataclass(frozen=True, slots=True)
class Cron:
    """A checked cron text."""

    text: str
    times: tuple[int, ...]
    """Minutes after midnight, ascending."""
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday."""
    has_all_hours: bool

    def next_after(self, moment: datetime, zone: str) -> datetime:
        """Return the first due time after a moment of UTC."""
        return self._next_shown(moment, zone) if self.has_all_hours else self._next_once(moment, zone)

    def previous_before(self, moment: datetime, zone: str) -> datetime:
        """Return the last due time before a moment of UTC."""
        look_back = _FIRST_LOOK_BACK
        while (found := self.next_after(moment - look_back, zone)) >= moment:
            look_back *= 4
        while (later := self.next_after(found, zone)) < moment:
            found = later
        return found

    def due_between(self, after: datetime, until: datetime, zone: str) -> Iterator[datetime]:
        """Generate the due times after one moment and not after another."""
        while (after := self.next_after(after, zone)) <= until:
            yield after

    def _next_shown(self, moment: datetime, zone: str) -> datetime:
        """Return the next moment whose clock time matches. Searches each period of constant offset."""
        while True:
            offset = offset_at(moment, zone)
            found = (self._next_local(_naive_utc(moment) + offset) - offset).replace(tzinfo=UTC)
            change = next_change(moment, zone)
            if change is None or found < change:
                return found
            local = _naive_utc(change) + offset_at(change, zone)
            if self._next_local(local - _MICROSECOND) == local:
                return change
            moment = change

    def _next_once(self, moment: datetime, zone: str) -> datetime:
        local = _naive_utc(moment) + offset_at(moment, zone)
        while True:
            local = self._next_local(local)
            if (found := first_moment(local, zone)) > moment:
                return found

    def _next_local(self, local: datetime) -> datetime:
        """Return the first matching local time after another."""
        day = local.date()
        if self._matches_day(day):
            place = bisect_right(self.times, local.hour * 60 + local.minute)
            if place < len(self.times):
                return _local_time(day, self.times[place])
        day += timedelta(days=1)
        while not self._matches_day(day):
            is_month = day.month in self.months
            day = day + timedelta(days=1) if is_month else day.replace(day=1) + timedelta(days=_month_length(day))
        return _local_time(day, self.times[0])

    def _matches_day(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        is_day = day.day in self.days or (_LAST_DAY in self.days and day.day == _month_length(day))
        is_weekday = day.isoweekday() % 7 in self.weekdays
        if len(self.days - {_LAST_DAY}) < 31 and len(self.weekdays) < 7:
            return is_day or is_weekday
        return is_day and is_weekday


def first_moment(local: datetime, zone: str) -> datetime:
    """Return the moment of a local time. It is the first of two, or the end of a gap."""
    earlier = local - offset_of_local(local, zone, "earlier")
    moment = earlier.replace(tzinfo=UTC)
    if earlier + offset_at(moment, zone) == local:
        return moment
    change = next_change(moment, zone)
    assert change is not None, "a skipped local time has a change after it"
    return change


def parse_cron(text: str) -> Cron:
    """Return the schedule of a cron text. Raises `CronMistake` for an invalid one."""
    words = list(_words(NAMED_TEXTS.get(text.strip().lower(), text)))
    if text.strip().startswith("@") and len(words) == 1:
        names = ", ".join(NAMED_TEXTS)
        raise CronMistake(f"{words[0][1]} is no named schedule", *_span(words[0]), f"write one of {names}")
    if len(words) != 5:
        reason = "seconds have no field: a schedule is due at full minutes; " if len(words) == 6 else ""
        message = f"a cron text has five fields, this one has {len(words)}"
        raise CronMistake(message, 0, len(text), f"{reason}write minute, hour, day of month, month, day of week")
    minutes, hours, days, months, weekdays = (_values(*each) for each in zip(words, _FIELDS, strict=True))
    weekdays = {day % 7 for day in weekdays}
    longest = max(_DAYS_OF_MONTH[month - 1] for month in months)
    if min(days) > longest and len(weekdays) == 7:
        message = f"day {min(days)} never occurs in the given months"
        raise CronMistake(message, *_span(words[2]), "for the last day of a month write L")
    times = tuple(sorted(hour * 60 + minute for hour in hours for minute in minutes))
    return Cron(text, times, frozenset(days), frozenset(months), frozenset(weekdays), len(hours) == 24)


def _words(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for word in text.split():
        start = text.index(word, start)
        yield start, word
        start += len(word)


def _span(word: tuple[int, str]) -> tuple[int, int]:
    return word[0], word[0] + len(word[1])


def _values(word: tuple[int, str], field: _Field) -> set[int]:
    """Return the values of one field: items separated by commas."""
    start, text = word
    values: set[int] = set()
    for item in text.split(","):
        try:
            values |= _item(item, field)
        except ValueError as mistake:
            message, help_text = mistake.args
            raise CronMistake(message, start, start + max(len(item), 1), help_text) from None
        start += len(item) + 1
    return values


def _item(item: str, field: _Field) -> set[int]:
    if item.upper() == "L" and field.name == "day of month":
        return {_LAST_DAY}
    span, has_step, step_text = item.partition("/")
    low_text, has_range, high_text = span.partition("-")
    if span == "*":
        low, high = field.low, min(field.high, field.low + 6 if field.words is _WEEKDAYS else field.high)
    else:
        low = _value(low_text, field)
        high = _value(high_text, field) if has_range else low
        if low > high == 0 and field.words is _WEEKDAYS:
            high = 7
    if has_step and not (step_text.isascii() and step_text.isdigit() and int(step_text) > 0):
        raise ValueError(f"{step_text!r} is no step of the {field.name}", "a step is a whole number from 1, as in */15")
    if has_step and span != "*" and not has_range:
        raise ValueError(f"the step of {item} has no range", f"write {low}-{field.high}/{step_text}")
    if low > high:
        help_text = f"write {low}-{field.high},{field.low}-{high}"
        raise ValueError(f"the range {span} of the {field.name} runs backwards", help_text)
    return set(range(low, high + 1, int(step_text) if has_step else 1))


def _value(text: str, field: _Field) -> int:
    upper = text.upper()
    if upper in field.words:
        return field.low + field.words.index(upper)
    if text.isascii() and text.isdigit() and field.low <= int(text) <= field.high:
        return int(text)
    names = f" or a name from {field.words[0]} to {field.words[-1]}" if field.words else ""
    last = ", or L for the last day" if field.name == "day of month" else ""
    raise ValueError(f"{text!r} is no {field.name}", f"write a number from {field.low} to {field.high}{names}{last}")


def _naive_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)


def _local_time(day: date, minutes: int) -> datetime:
    return datetime(day.year, day.month, day.day, minutes // 60, minutes % 60)  # noqa: DTZ001  # a local time


def _month_length(day: date) -> int:
    return monthrange(day.year, day.month)[1]
