"""Business-day counts in constant time per query, since a count may be in the millions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable


class BusinessDays:
    """A calendar of day numbers, with 0001-01-01, a Monday, as 1. `weekend` holds weekdays from 0 for Monday."""

    def __init__(self, weekend: frozenset[int], holidays: Iterable[int]) -> None:
        self._workdays = [weekday not in weekend for weekday in range(7)]
        # A holiday on a weekend removes no business day.
        self._holidays = sorted(number for number in holidays if self._workdays[(number - 1) % 7])

    def up_to(self, number: int) -> int:
        """Return the number of business days among the days 1 to `number`."""
        weeks, rest = divmod(number, 7)
        workdays = weeks * sum(self._workdays) + sum(self._workdays[:rest])
        return workdays - bisect_right(self._holidays, number)

    def nth(self, wanted: int, last: int) -> int:
        """Return the day number of the `wanted`-th business day, at most `last`."""
        return bisect_left(range(last + 1), wanted, key=self.up_to)
