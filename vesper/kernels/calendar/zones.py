"""Time zones of the IANA database, from the extract that both engines read (schemas/zones).

A clock changes its offset at listed moments, and after the last of them by a rule for every year. Local times are
looked up among the moments of changes as clocks show them: `fold` 0 places a change at the later of the two times that
clocks show at that moment, `fold` 1 at the earlier one, as in Python's `datetime`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache

from vesper.kernels.raised import Raised
from vesper.values.generated.errors import ErrorCode
from vesper.values.generated.zone_tables import ZONES

_BEGINNING = datetime(1, 1, 1)  # noqa: DTZ001  # moments and local times are counted alike
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class YearlyChange:
    """Change of a clock in every year: `week` 5 is the last one, `weekday` 0 is Sunday."""

    month: int
    week: int
    weekday: int
    seconds: int

    def local(self, year: int) -> int:
        """Return the local time of the change in seconds since 0001-01-01T00:00:00.

        The time is that of the clock before the change.
        """
        first = date(year, self.month, 1).toordinal()
        day = first + (self.weekday - first) % 7 + 7 * (self.week - 1)
        if day - first >= 28 and (day > _LAST_DAY or date.fromordinal(day).month != self.month):
            day -= 7
        return (day - 1) * 86_400 + self.seconds


_LAST_DAY = date.max.toordinal()


@dataclass(frozen=True, slots=True)
class Rule:
    """Standard and summer offset, and the changes to summer and back."""

    standard: int
    summer: int
    begin: YearlyChange
    end: YearlyChange

    def at(self, moment: int) -> int:
        year = _year(moment)
        return self._pick(moment, self.begin.local(year) - self.standard, self.end.local(year) - self.summer)

    def at_local(self, local: int, fold: int) -> int:
        year = _year(local)
        later = self.summer - self.standard
        wider = max if fold == 0 else min
        return self._pick(local, self.begin.local(year) + wider(0, later), self.end.local(year) + wider(0, -later))

    def next_change(self, moment: int) -> int:
        years = range(_year(moment), _year(moment) + 2)
        changes = [(self.begin.local(year) - self.standard, self.end.local(year) - self.summer) for year in years]
        return min(change for pair in changes for change in pair if change > moment)

    def _pick(self, time: int, begin: int, end: int) -> int:
        is_summer = begin <= time < end if begin < end else not end <= time < begin
        return self.summer if is_summer else self.standard


def _year(seconds: int) -> int:
    # SEMANTICS: a local time may be a day outside the years 1 to 9999.
    return date.fromordinal(min(max(seconds // 86_400 + 1, 1), _LAST_DAY)).year


@dataclass(frozen=True, slots=True)
class Clock:
    """Clock of a zone. All times are seconds since 0001-01-01T00:00:00."""

    moments: Sequence[int]
    local: tuple[Sequence[int], Sequence[int]]
    """Changes as clocks show them, for `fold` 0 and 1."""
    offsets: Sequence[int]
    """Offset before each change, and after the last one."""
    rule: Rule | None

    def offset(self, moment: int) -> int:
        return self._find(self.moments, moment, lambda rule: rule.at(moment))

    def local_offset(self, local: int, fold: int) -> int:
        return self._find(self.local[fold], local, lambda rule: rule.at_local(local, fold))

    def next_change(self, moment: int) -> int | None:
        """Return the first change after a moment."""
        place = bisect_right(self.moments, moment)
        if place < len(self.moments):
            return self.moments[place]
        return None if self.rule is None else self.rule.next_change(moment)

    def _find(self, changes: Sequence[int], time: int, by_rule: Callable[[Rule], int]) -> int:
        place = bisect_right(changes, time)
        return by_rule(self.rule) if self.rule is not None and place == len(changes) else self.offsets[place]


@cache
def _lines() -> dict[str, str]:
    """Return the description of each zone by name."""
    rows = (line.partition(";") for line in ZONES.splitlines() if not line.startswith("#"))
    return {name: rest for names, _, rest in rows for name in names.split(",")}


@cache
def _clock(description: str) -> Clock:
    known, changes, rule = description.split(";")
    choices = [int(each) for each in known.split(",")]
    moments: list[int] = []
    offsets = [choices[0]]
    for change in changes.split():
        after, _, place = change.partition(":")
        moments.append((moments[-1] if moments else 0) + int(after, 36))
        offsets.append(choices[int(place)])
    pairs = list(zip(moments, offsets, offsets[1:], strict=False))
    local = [moment + max(a, b) for moment, a, b in pairs], [moment + min(a, b) for moment, a, b in pairs]
    return Clock(moments, local, offsets, _rule(rule) if rule else None)


def _rule(text: str) -> Rule:
    standard, summer, *changes = text.split()
    begin, end = (YearlyChange(*map(int, change.replace("/", ".").split("."))) for change in changes)
    return Rule(int(standard), int(summer), begin, end)


def is_zone(name: str) -> bool:
    return name in _lines()


def zone_names() -> list[str]:
    return sorted(_lines())


def _clock_of(zone: str) -> Clock:
    found = _lines().get(zone)
    if found is None:
        raise Raised(ErrorCode.UNKNOWN_ZONE)
    return _clock(found)


def offset_at(moment: datetime, zone: str) -> timedelta:
    """Return by how much clocks of a zone are ahead of UTC."""
    clock = _clock_of(zone)
    return timedelta(seconds=clock.offset((moment.replace(tzinfo=None) - _BEGINNING) // _SECOND))


def next_change(moment: datetime, zone: str) -> datetime | None:
    """Return the first moment after another at which clocks of a zone change."""
    found = _clock_of(zone).next_change((moment.replace(tzinfo=None) - _BEGINNING) // _SECOND)
    return None if found is None else (_BEGINNING + found * _SECOND).replace(tzinfo=moment.tzinfo)


def offset_of_local(local: datetime, zone: str, ambiguous: str) -> timedelta:
    """Return the offset of a local time without zone, where clocks may show it twice or never."""
    clock = _clock_of(zone)
    seconds = (local - _BEGINNING) // _SECOND
    first, second = clock.local_offset(seconds, 0), clock.local_offset(seconds, 1)
    if first != second and ambiguous == "reject":
        raise Raised(ErrorCode.INVALID_ARGUMENT)
    # The larger offset is that of the earlier moment.
    chosen = {"compatible": first, "earlier": max(first, second), "later": min(first, second)}
    return timedelta(seconds=chosen.get(ambiguous, first))
