"""Due times of a cron text, found by visiting every minute with `zoneinfo`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)


class Oracle:
    """The values of minute, hour, day of month, month and day of week, in a zone."""

    def __init__(self, sets: Sequence[set[int]], zone: str) -> None:
        self.sets = sets
        self.zone = ZoneInfo(zone)

    def matches(self, local: datetime) -> bool:
        minutes, hours, days, months, weekdays = self.sets
        is_day, is_weekday = local.day in days, local.isoweekday() % 7 in weekdays
        both = is_day or is_weekday if len(days) < 31 and len(weekdays) < 7 else is_day and is_weekday
        return local.minute in minutes and local.hour in hours and local.month in months and both

    def local(self, at: datetime) -> datetime:
        return at.astimezone(self.zone).replace(tzinfo=None)

    def between(self, begin: datetime, end: datetime) -> list[datetime]:
        minutes = [begin + index * MINUTE for index in range((end - begin) // MINUTE)]
        if len(self.sets[1]) == 24:
            return [at for at in minutes if at > begin and self.matches(self.local(at))]
        shown: dict[datetime, datetime] = {}
        for at in minutes:
            shown.setdefault(self.local(at), at)
        found, local, latest = set(), self.local(begin) + MINUTE, max(shown)
        while local <= latest:
            if self.matches(local):
                found.add(shown.get(local) or min(at for wall, at in shown.items() if wall > local))
            local += MINUTE
        return sorted(at for at in found if at > begin)
