"""Counts business days without going through them one by one: a count may ask for millions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable


class BusinessDays:
    """Days by number, 0001-01-01, a Monday, being 1; `weekend` holds weekdays from 0 for Monday."""

    def __init__(self, weekend: frozenset[int], holidays: Iterable[int]) -> None:
        self._workdays = [weekday not in weekend for weekday in range(7)]
        # A holiday on a weekend takes no business day away.
        self._holidays = sorted(number for number in holidays if self._workdays[(number - 1) % 7])

    def up_to(self, number: int) -> int:
        """How many business days there are among the days 1 to this one."""
        weeks, rest = divmod(number, 7)
        workdays = weeks * sum(self._workdays) + sum(self._workdays[:rest])
        return workdays - bisect_right(self._holidays, number)

    def nth(self, wanted: int, last: int) -> int:
        """The number of the business day that so many end with, counted from the first; it is not after `last`."""
        return bisect_left(range(last + 1), wanted, key=self.up_to)
