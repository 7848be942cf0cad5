"""Periods of years and months as Python objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_MONTHS: Final = 9_999 * 12


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """A number of months of either sign; its text has years and months, such as `P1Y2M`."""

    months: int = 0

    def __post_init__(self) -> None:
        if type(self.months) is not int:
            raise TypeError("a Period has a whole number of months")
        if not -MAX_MONTHS <= self.months <= MAX_MONTHS:
            raise ValueError("a Period has at most 9,999 years")

    def __str__(self) -> str:
        years, months = divmod(abs(self.months), 12)
        parts = f"{years}Y" * (years > 0) + f"{months}M" * (months > 0)
        return f"{'-' if self.months < 0 else ''}P{parts or '0M'}"
