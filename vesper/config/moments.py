"""Durations and moments as people write them in options, settings and filters of pages."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_DURATION = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?(ms|s|m|h|d)", re.ASCII)
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_MAX_SECONDS = 1000 * 365 * 86_400.0


def parse_duration(text: str) -> float | None:
    """Return the seconds of a duration such as `30d`; None for any other text."""
    found = _DURATION.fullmatch(text)
    seconds = None if found is None else float(found[1]) * _UNIT_SECONDS[found[2]]
    return None if seconds is None or seconds > _MAX_SECONDS else seconds


def parse_moment(text: str, now_us: int) -> int:
    """Return a duration before now, a date or a time as microseconds since 1970. Raises `ValueError`."""
    from vesper.values.model import ValueProblem, printable
    from vesper.values.times import parse_timestamp

    seconds = parse_duration(text)
    if seconds is not None:
        return now_us - int(seconds * 1_000_000)
    try:
        moment = parse_timestamp(f"{text}T00:00:00Z" if _DATE.fullmatch(text) else text)
    except ValueProblem:
        raise ValueError(
            f"`{printable(text[:40])}` is neither a duration (`30m`, `2h`, `7d`) nor a moment (`2026-11-15`, "
            "`2026-11-15T12:00:00Z`)"
        ) from None
    return int((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 1_000_000 + moment.microsecond
