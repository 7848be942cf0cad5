"""Moments, durations and counts as text, for commands and pages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_text(at_us: int, places: int = 0) -> str:
    """Format a moment in UTC."""
    try:
        moment = _EPOCH + timedelta(microseconds=at_us)
    except OverflowError:
        return f"{at_us} µs"
    text = moment.strftime("%Y-%m-%d %H:%M:%S")
    return f"{text}.{moment.microsecond:06}"[: len(text) + 1 + places] + "Z" if places else f"{text}Z"


def moment_json(at_us: int) -> str:
    return time_text(at_us, 6).replace(" ", "T")


def took_text(us: int) -> str:
    """Format a duration in at most two units."""
    if us < 0:
        return f"-{took_text(-us)}"
    if us < 1_000:
        return f"{us} µs"
    if us < 1_000_000:
        return f"{us / 1_000:.1f} ms"
    seconds = us // 1_000_000
    if seconds < 60:
        return f"{us / 1_000_000:.2f} s"
    for size, unit, smaller, name in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            return f"{seconds // size} {unit} {seconds % size // smaller} {name}"
    raise AssertionError("durations under a minute are handled above")


def number(count: int, one: str) -> str:
    return f"{count:,} {one if count == 1 else one + 's'}"
