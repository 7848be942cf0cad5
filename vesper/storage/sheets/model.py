"""Sheets as lines of texts, and the rule for the text of a number."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal

MAX_SHEETS = 256
MAX_LINES = 200_000
MAX_COLUMNS = 256
MAX_CELL_CHARACTERS = 32_767
"""The limit of Excel for the text of one cell."""
_SIGNIFICANT_DIGITS = 15
_EPOCH = dt.datetime(1899, 12, 30, tzinfo=dt.UTC)
_EPOCH_1904 = dt.datetime(1904, 1, 1, tzinfo=dt.UTC)
_MAX_SERIAL = 2_958_466
"""The serial number after 9999-12-31."""
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")


class SheetProblem(Exception):
    """A file that cannot be read as a sheet: the line and the reason. Line 0 is the whole file."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet with its name. Empty lines and empty cells at the end of a line are left out."""

    name: str
    lines: tuple[tuple[int, tuple[str, ...]], ...]
    """The number of each line, from 1, and its texts."""


def number_text(text: str) -> str:
    """Return the number of a cell in plain notation, with at most 15 significant digits.

    A workbook stores a number as the text of a binary one, at times with 17 digits; Excel calculates and shows 15. So
    `0.1` stays 0.1, and `0.30000000000000004` is 0.3. Digits of a number that has at most 15 stay as they are.
    """
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    value = Decimal(text)
    if abs(value.adjusted()) > 400:
        raise ValueError(text)
    if len(value.as_tuple().digits) > _SIGNIFICANT_DIGITS:
        value = value.normalize(Context(prec=_SIGNIFICANT_DIGITS, rounding=ROUND_HALF_EVEN))
    return f"{value:f}"


def date_text(text: str, *, is_1904: bool) -> str:
    """Return the date of a serial number: `2024-02-29`, with a time `2024-02-29T12:30:00Z`, or `12:30:00` alone."""
    serial = Decimal(text)
    if not 0 <= serial < _MAX_SERIAL:
        raise ValueError(text)
    if not is_1904 and 1 <= serial < 61:
        # Excel counts a 29 February 1900, which did not exist; earlier serial numbers are one day off.
        serial += 1
    seconds = int((serial * 86_400).to_integral_value(ROUND_HALF_EVEN))
    moment = (_EPOCH_1904 if is_1904 else _EPOCH) + dt.timedelta(seconds=seconds)
    if serial < 1:
        return moment.strftime("%H:%M:%S")
    if seconds % 86_400 == 0:
        return moment.date().isoformat()
    return f"{moment.date().isoformat()}T{moment:%H:%M:%S}Z"
