"""Patterns of dates and times such as `dd.MM.yyyy HH:mm` (docs/spec/time.md)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache

from vesper.kernels.raised import Raised
from vesper.values.generated.errors import ErrorCode

MAX_PATTERN = 1_000
"""Longest pattern, in code points."""
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_FIELD = re.compile(r"([A-Za-z])\1*+|'((?:[^']|'')*)'|([^A-Za-z'])", re.DOTALL)
_NARROW, _WIDE = "[0-9]{1,2}+", "[0-9]{2}"
_READ = {
    "yyyy": "[0-9]{4}", "yy": _WIDE, "M": _NARROW, "MM": _WIDE, "d": _NARROW, "dd": _WIDE, "H": _NARROW, "HH": _WIDE,
    "h": _NARROW, "hh": _WIDE, "m": _NARROW, "mm": _WIDE, "s": _NARROW, "ss": _WIDE, "a": "AM|PM",
    "MMM": "|".join(name[:3] for name in _MONTHS), "MMMM": "|".join(_MONTHS),
    "EEE": "|".join(name[:3] for name in _WEEKDAYS), "EEEE": "|".join(_WEEKDAYS),
    **{"S" * digits: f"[0-9]{{{digits}}}" for digits in range(1, 7)},
    "XX": "Z|[+-][0-9]{4}", "XXX": "Z|[+-][0-9]{2}:[0-9]{2}",
}  # fmt: skip
"""Fields of a pattern, and the texts that each reads."""
_OF_DATES = frozenset("yMdE")


@dataclass(frozen=True, slots=True)
class Pattern:
    """Pieces of a pattern: literal texts and fields."""

    pieces: Sequence[tuple[bool, str]]
    """Pairs of whether the piece is a field, and its text."""
    reader: re.Pattern[str]

    @property
    def letters(self) -> list[str]:
        return [text[0] for is_field, text in self.pieces if is_field]


@lru_cache(maxsize=256)
def _pattern(text: str) -> Pattern | None:
    if len(text) > MAX_PATTERN:
        return None
    pieces: list[tuple[bool, str]] = []
    position = 0
    while position < len(text):
        found = _FIELD.match(text, position)
        if found is None:
            return None  # an open quote
        position = found.end()
        if found[1] is not None:
            if found[0] not in _READ:
                return None
            pieces.append((True, found[0]))
        elif found[2] is not None:
            pieces.append((False, found[2].replace("''", "'") or "'"))
        else:
            pieces.append((False, found[3]))
    parts = (f"({_READ[piece]})" if is_field else re.escape(piece) for is_field, piece in pieces)
    return Pattern(pieces, re.compile("".join(parts)))


def is_readable(text: str, has_time: bool) -> bool:
    """Return whether a pattern can read dates, or moments where `has_time`.

    It must have each part once, and every part that the value needs.
    """
    pattern = _pattern(text)
    if pattern is None:
        return False
    letters = pattern.letters
    is_whole = len(set(letters)) == len(letters) and {"y", "M", "d"} <= set(letters)
    if not has_time:
        return is_whole and set(letters) <= _OF_DATES
    return is_whole and ("h" in letters) == ("a" in letters) and not {"h", "H"} <= set(letters)


def is_writable(text: str, has_time: bool) -> bool:
    """Return whether a pattern is valid and can write a date, or a timestamp if `has_time`."""
    pattern = _pattern(text)
    return pattern is not None and (has_time or set(pattern.letters) <= _OF_DATES)


def write(value: date, text: str) -> str:
    has_time = isinstance(value, datetime)
    pattern = _pattern(text)
    if pattern is None or not is_writable(text, has_time):
        raise Raised(ErrorCode.INVALID_ARGUMENT)
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)  # noqa: DTZ001
    return "".join(_write(moment, piece) if is_field else piece for is_field, piece in pattern.pieces)


def _write(value: datetime, field: str) -> str:
    width = len(field)
    match field[0]:
        case "y":
            return f"{value.year:04}"[-width:]
        case "M" if width > 2:
            return _MONTHS[value.month - 1][: 3 if width == 3 else None]
        case "E":
            return _WEEKDAYS[value.weekday()][: 3 if width == 3 else None]
        case "S":
            return f"{value.microsecond:06}"[:width]
        case "a":
            return "AM" if value.hour < 12 else "PM"
        case "X":
            return "Z"
        case letter:
            numbers = {"M": value.month, "d": value.day, "H": value.hour, "h": (value.hour - 1) % 12 + 1}
            number = numbers.get(letter, value.minute if letter == "m" else value.second)
            return f"{number:0{width}}"


def read(value: str, text: str, has_time: bool) -> tuple[datetime, int]:
    """Return the local time of a text and its offset from UTC in minutes."""
    pattern = _pattern(text)
    if pattern is None or not is_readable(text, has_time):
        raise Raised(ErrorCode.INVALID_ARGUMENT)
    found = pattern.reader.fullmatch(value)
    if found is None:
        raise Raised(ErrorCode.BAD_FORMAT)
    fields = [piece for is_field, piece in pattern.pieces if is_field]
    part = {field[0]: (field, given) for field, given in zip(fields, found.groups(), strict=True)}
    minute, second = (int(part[letter][1]) if letter in part else 0 for letter in "ms")
    micros = int(part["S"][1].ljust(6, "0")) if "S" in part else 0
    try:
        year, month, day = _year(part["y"][1]), _month(*part["M"]), int(part["d"][1])
        moment = datetime(year, month, day, _hour(part), minute, second, micros)  # noqa: DTZ001
    except ValueError:
        raise Raised(ErrorCode.BAD_FORMAT) from None
    if "E" in part and not _WEEKDAYS[moment.weekday()].startswith(part["E"][1]):
        raise Raised(ErrorCode.BAD_FORMAT)
    return moment, _offset(part["X"][1]) if "X" in part else 0


def _year(digits: str) -> int:
    return int(digits) + (2000 if len(digits) == 2 else 0)


def _month(field: str, given: str) -> int:
    if len(field) <= 2:
        return int(given)
    return next(place for place, name in enumerate(_MONTHS, 1) if name.startswith(given))


def _hour(part: dict[str, tuple[str, str]]) -> int:
    if "h" not in part:
        return int(part["H"][1]) if "H" in part else 0
    hour = int(part["h"][1])
    if not 1 <= hour <= 12:
        raise ValueError
    return hour % 12 + (12 if part["a"][1] == "PM" else 0)


def _offset(text: str) -> int:
    if text == "Z":
        return 0
    hours, minutes = int(text[1:3]), int(text[-2:])
    if hours > 23 or minutes > 59:
        raise Raised(ErrorCode.BAD_FORMAT)
    return (-1 if text[0] == "-" else 1) * (60 * hours + minutes)
