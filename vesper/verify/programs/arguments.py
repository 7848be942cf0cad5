"""Arguments at the limits of single operations: counts, scales, parts of dates, texts that are parsed.

Arguments drawn by type mostly fail the call at once, or stay far from the limit that the operation checks.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from vesper.values.model import MAX_BYTES, MAX_DIGITS, MAX_ENTRIES, MAX_INTEGER, MAX_SCALE, MAX_TEXT, MIN_INTEGER
from vesper.values.times import MAX_DURATION
from vesper.verify.inputs.formats import PARSED, draw_format

_MIN_RISK = 0.2
_SAFE = 4
"""Number of leading counts with which a call mostly succeeds."""
_DAYS = MAX_DURATION.days
_POSITIONS = (0, 0, 0, 1, 2, 3, 7, 8, -1, MAX_INTEGER, MIN_INTEGER)
_SCALES = (0, 0, 1, 2, 3, 6, 18, 19, 28, 34, MAX_SCALE - 1, MAX_SCALE, MAX_SCALE + 1, -1, -2)
_FEW_MONTHS = (0, 1, -1, 2, 11, 12, 13, -12, 48, 1200)
_MAX_MONTHS = 9999 * 12
_WIDTHS = (0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 22, 23, 24, 31, 32, 33, 64, 65, 256, -1, MAX_TEXT + 1)
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799


def _limits_and_neighbours(*limits: int) -> tuple[int, ...]:
    """Return the limits and their neighbours within 64 bits."""
    found = (limit + step for limit in limits for step in (-1, 0, 1))
    return tuple(dict.fromkeys(min(max(each, MIN_INTEGER), MAX_INTEGER) for each in found))


def _spans(limit: int) -> tuple[int, ...]:
    """Return counts of a unit of durations: small ones, and around the longest duration."""
    return (*_limits_and_neighbours(0, 24, 60), 90, 1000, *_limits_and_neighbours(limit, -limit))


COUNTS: Mapping[str, tuple[int, ...]] = {
    "array.at.index": _POSITIONS,
    "array.get.index": _POSITIONS,
    "array.take.count": _POSITIONS,
    "array.drop.count": _POSITIONS,
    "array.slice.start": _POSITIONS,
    "array.slice.end": _POSITIONS,
    "array.replace_at.index": _POSITIONS,
    "array.chunks.size": (1, 1, 2, 3, 0, -1, MAX_INTEGER),
    "array.range.start": (0, 0, 1, -3, 5, MIN_INTEGER, MAX_INTEGER - 2),
    "array.range.end": (0, 1, 2, 3, 7, -3, 20, MAX_ENTRIES + 1, MIN_INTEGER + 3, MAX_INTEGER),
    "array.range.step": (1, 1, 2, 3, -1, -2, 0, MAX_INTEGER, MIN_INTEGER),
    "bytes.at.index": _POSITIONS,
    "bytes.slice.start": _POSITIONS,
    "bytes.slice.end": _POSITIONS,
    "date.from_parts.year": (1, 4, 100, 400, 1900, 2000, 2023, 2024, 9999, 0, 10_000, -1),
    "date.from_parts.month": (1, 2, 2, 4, 6, 12, 0, 13),
    "date.from_parts.day": (1, 28, 29, 29, 30, 31, 0, 32),
    "date.add_days.count": (*_limits_and_neighbours(0, 28, 365), *_limits_and_neighbours(_DAYS - 1, 1 - _DAYS)),
    "date.add_months.count": (*_FEW_MONTHS, *_limits_and_neighbours(_MAX_MONTHS, -_MAX_MONTHS)),
    "date.add_years.count": (0, 1, -1, 4, 100, 400, *_limits_and_neighbours(9998, -9998)),
    "date.add_business_days.count": (*_limits_and_neighbours(0, 5, 10, -5), 260, -260),
    "date.from_iso_week.year": (2020, 2021, 2026, 1, 9999, 0, 10_000),
    "date.from_iso_week.week": (1, 2, 52, 53, 0, 54),
    "date.from_iso_week.day": (1, 3, 7, 0, 8),
    "time_of_day.from_parts.hour": (0, 9, 12, 23, 24, -1),
    "time_of_day.from_parts.minute": (0, 30, 59, 59, 60, -1),
    "time_of_day.from_parts.second": (0, 1, 59, 59, 60, -1),
    "period.from_years.count": (0, 1, -1, 4, *_limits_and_neighbours(9999, -9999)),
    "period.from_months.count": (*_FEW_MONTHS, *_limits_and_neighbours(_MAX_MONTHS, -_MAX_MONTHS)),
    "period.multiply.factor": (0, 1, -1, 2, 12, MAX_INTEGER, MIN_INTEGER),
    "decimal.div.scale": _SCALES,
    "decimal.round.scale": (*_SCALES, -MAX_SCALE, -MAX_SCALE - 1),
    "decimal.pow.exponent": (0, 1, 2, 3, 5, 12, 34, 63, -1, -2, -3, MAX_DIGITS - 1, MAX_DIGITS),
    "duration.multiply.factor": (0, 1, -1, 2, 1000, MAX_INTEGER, MIN_INTEGER),
    "duration.divide.divisor": (1, 2, -1, 3, 7, 0, MAX_INTEGER, MIN_INTEGER),
    "duration.from_microseconds.count": _spans(_DAYS * 86_400_000_000),
    "duration.from_days.count": _spans(_DAYS),
    "duration.from_hours.count": _spans(_DAYS * 24),
    "duration.from_minutes.count": _spans(_DAYS * 1440),
    "duration.from_seconds.count": _spans(_DAYS * 86_400),
    "duration.from_milliseconds.count": _spans(_DAYS * 86_400_000),
    "integer.pow.exponent": (0, 1, 2, 3, 10, 31, 61, 62, 63, 64, -1),
    "integer.shift_left.count": (0, 1, 2, 31, 32, 61, 62, 63, 64, -1),
    "integer.shift_right.count": (0, 1, 2, 31, 32, 61, 62, 63, 64, -1),
    "json.item.index": _POSITIONS,
    "text.at.index": _POSITIONS,
    "text.slice.start": _POSITIONS,
    "text.slice.end": _POSITIONS,
    "text.repeat.count": (0, 1, 2, 3, 8, 16, 33, 257, -1, MAX_TEXT + 1, MAX_INTEGER),
    "text.pad_start.width": _WIDTHS,
    "text.pad_end.width": _WIDTHS,
    "text.from_code_point.number": (
        *_limits_and_neighbours(0x7F, 0x7FF, 0xD7FF, 0xDFFF, 0xFFFF, 0x10FFFF),
        0,
        -1,
        0x301,
        MAX_INTEGER,
    ),
    "timestamp.from_epoch_seconds.count": (0, 1, -1, 951_782_400, *_limits_and_neighbours(_FIRST_SECOND, _LAST_SECOND)),
    "timestamp.from_epoch_microseconds.count": (
        0, 1, -1, 999_999, *_limits_and_neighbours(_FIRST_SECOND * 1_000_000, _LAST_SECOND * 1_000_000 + 999_999),
    ),
}  # fmt: skip
"""Integers by operation and parameter."""
LARGEST: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("length(repeat('a', {}))", _limits_and_neighbours(MAX_TEXT)),
    ("length(repeat('é', {}) + 'b')", (MAX_TEXT - 1, MAX_TEXT)),
    ("length(pad_end('a', {}))", _limits_and_neighbours(MAX_TEXT)),
    ("length(utf8(repeat('é', {})))", (MAX_BYTES // 2, MAX_BYTES // 2 + 1)),
    ("length(utf8(repeat('a', {})) + utf8('b'))", (MAX_BYTES - 1, MAX_BYTES)),
    ("length(range(0, {}))", _limits_and_neighbours(MAX_ENTRIES)),
    ("length(append(range(1, {}), 0))", (MAX_ENTRIES, MAX_ENTRIES + 1)),
)
"""Calls whose values have the largest size, or nearly; each takes a tenth of a second on every engine."""
_PATHS = (
    "", "/a", "/b", "/a/0", "/b/1", "/0", "/1/a", "/x~1y", "/~0", "/~01", "/a~1b~0", "/~", "/~2", "/", "//", "a",
    "/01", "/+1",
    "/-", "/a/b/c", "/18446744073709551616", "/é",
)  # fmt: skip
_ZONES = (
    "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Casablanca",
    "Europe/Dublin", "Pacific/Apia", "America/Nuuk", "Asia/Tokyo",
)  # fmt: skip
_DATE_PATTERNS = ("yyyy-MM-dd", "dd.MM.yyyy", "d/M/yy", "MMM d, yyyy", "EEEE, d MMMM yyyy", "yyyyMMdd")
_MOMENT_PATTERNS = (
    "yyyy-MM-dd HH:mm", "dd.MM.yyyy HH:mm:ss.SSS", "M/d/yyyy h:mm a", "yyyy-MM-dd HH:mm:ssXXX", "yyyy-MM-dd",
    "yyyyMMddHHmmssSSSSSSXX", "EEE d MMM yy H",
)  # fmt: skip
TEXTS: Mapping[str, tuple[str, ...]] = {
    "timestamp.local_date.zone": _ZONES,
    "timestamp.local_time.zone": _ZONES,
    "timestamp.utc_offset.zone": _ZONES,
    "date.at_zone.zone": _ZONES,
    "date.parse_pattern.value": (
        "2024-02-29",
        "29.02.2024",
        "9/2/24",
        "Feb 9, 2024",
        "Friday, 9 February 2024",
        "20240229",
        "x",
    ),
    "date.parse_pattern.pattern": _DATE_PATTERNS,
    "date.format_pattern.pattern": _DATE_PATTERNS,
    "timestamp.parse_pattern.value": (
        "2024-02-29 14:05",
        "29.02.2024 14:05:06.250",
        "2/9/2024 12:05 AM",
        "2024-02-29 14:05:06+02:00",
        "2024-02-29",
        "20240229140506000001-0330",
        "Fri 9 Feb 24 7",
        "x",
    ),
    "timestamp.parse_pattern.pattern": _MOMENT_PATTERNS,
    "timestamp.format_pattern.pattern": _MOMENT_PATTERNS,
    "json.get.path": _PATHS,
    "json.has.path": _PATHS,
    "json.field.key": ("a", "b", "", "qty", "x/y", "1"),
    "text.split.separator": (",", " ", "a", "ab", "", "é", "\u0301"),
    "text.join.separator": (",", "", ", ", "é"),
    "text.contains.part": ("", "a", "ab", "é", "e", "\u0301", "0" * 17, "ab " * 12),
    "text.index_of.part": ("", "a", "ab", "é", "e", "\u0301", "0" * 17, "b"),
    "text.starts_with.prefix": ("", "a", "é", "e", "ab"),
    "text.ends_with.suffix": ("", "a", "b", "\u0301", "ab"),
    "text.replace.old": ("a", "b", "ab", "", "é", "aa", " "),
    "text.replace.new": ("", "b", "aa", "é", "😀"),
    "text.pad_start.fill": (" ", "0", "é", "ab", "", "😀"),
    "text.pad_end.fill": (" ", "0", "é", "ab", "", "😀"),
    "text.code_point.value": ("a", "é", "😀", "\uffff", "\U0010ffff", "", "ab"),
}
"""Texts by operation and parameter."""


def draw_argument(source: random.Random, operation: str, parameter: str, risk: float) -> str | int | None:
    """Draw an integer or text for an operation; None if the parameter has none.

    The later values of a list mostly fail the call, which ends the execution: `risk` scales their share.
    """
    key = f"{operation}.{parameter}"
    is_safe = source.random() >= max(risk, _MIN_RISK)
    if key in COUNTS:
        return source.choice(COUNTS[key][:_SAFE] if is_safe else COUNTS[key])
    if key in TEXTS:
        return source.choice(TEXTS[key])
    return draw_format(source, operation, is_safe) if operation in PARSED else None
