"""Writer of `zones.txt`, the extract of the time zone database.

    python schemas/zones/extract.py        from the package `tzdata`, of the version below

The package has compiled zones (RFC 8536). The extract keeps the offsets of clocks from UTC and drops names of offsets.
It is committed, so this runs again only for another version. `schemas/emit/zones.py` copies it to both engines, which
read it with their own code.
"""

from __future__ import annotations

import re
import struct
from importlib.resources import files
from pathlib import Path

VERSION = "2026.6"
EXTRACT = Path(__file__).parent / "zones.txt"
HEAD = """\
# Time zones: extract of PyPI's tzdata {version}, IANA {iana}. Written by schemas/zones/extract.py.
# One line for each clock: NAMES;OFFSETS;CHANGES;RULE
# NAMES      separated by commas
# OFFSETS    seconds ahead of UTC, separated by commas; the first one is that before all changes
# CHANGES    pairs of seconds after the change before (the first one after 0001-01-01T00:00:00Z) in base 36 and the
#            place of the new offset, as TIME:PLACE, separated by spaces
# RULE       of all later years, or nothing: standard and summer offset, begin and end of summer time as
#            MONTH.WEEK.WEEKDAY/SECONDS after midnight by the clock before; week 5 is the last, weekday 0 Sunday
"""
_BEGINNING = -62_135_596_800
"""0001-01-01T00:00:00Z."""
_YEAR = 366 * 86_400
_RULE = re.compile(
    r"(?:<[^>]+>|[A-Za-z]+)(?P<std>[-+:0-9]+)"
    r"(?:(?:<[^>]+>|[A-Za-z]+)(?P<dst>[-+:0-9]+)?,M(?P<start>[0-9.]+(?:/[-+:0-9]+)?),M(?P<end>[0-9.]+(?:/[-+:0-9]+)?))?"
)


def main() -> None:
    import tzdata

    if tzdata.__version__ != VERSION:
        raise SystemExit(f"tzdata has version {tzdata.__version__}, not {VERSION}")
    folder = files("tzdata") / "zoneinfo"
    clocks: dict[str, list[str]] = {}
    for name in (files("tzdata") / "zones").read_text(encoding="ascii").split():
        content = folder.joinpath(*name.split("/")).read_bytes()
        clocks.setdefault(clock(content), []).append(name)
    lines = sorted(f"{','.join(sorted(names))};{text}" for text, names in clocks.items())
    head = HEAD.format(version=VERSION, iana=tzdata.IANA_VERSION)
    EXTRACT.write_text(head + "".join(f"{line}\n" for line in lines), encoding="ascii")


def clock(content: bytes) -> str:
    """Return offsets, changes and rule of a compiled zone."""
    times, places, offsets, standard, footer = _read(content)
    before = next((offset for offset, is_dst in zip(offsets, standard, strict=True) if not is_dst), offsets[0])
    changes: list[tuple[int, int]] = []
    for time, place in zip(times, places, strict=True):
        if time <= _BEGINNING:
            before = offsets[place]
        elif offsets[place] != (changes[-1][1] if changes else before):
            changes.append((time, offsets[place]))
    rule = _rule(footer)
    if rule:
        # The rule begins with the last change, even where that keeps the offset.
        if times and times[-1] > max(_BEGINNING, changes[-1][0] if changes else _BEGINNING):
            changes.append((times[-1], offsets[places[-1]]))
        # The rule goes on for ever: changes that follow it are left out.
        while len(changes) > 1 and all(_is_by_rule(rule, change) for change in changes[-2:]):
            if changes[-1][0] - changes[-2][0] > _YEAR:
                break
            changes.pop()
    used = list(dict.fromkeys([before, *(offset for _, offset in changes)]))
    last, written = _BEGINNING, []
    for time, offset in changes:
        written.append(f"{_base36(time - last)}:{used.index(offset)}")
        last = time
    return f"{','.join(map(str, used))};{' '.join(written)};{rule}"


def _read(content: bytes) -> tuple[list[int], list[int], list[int], list[bool], str]:
    """Return change times, places of their types, offsets and summer flags of the types, and the footer."""
    first = _counts(content, 0)
    start = 44 + first[3] * 5 + first[4] * 6 + first[5] + first[2] * 8 + first[1] + first[0]
    utc, std, leap, time, kinds, chars = _counts(content, start)
    start += 44
    times = list(struct.unpack_from(f">{time}q", content, start))
    places = list(content[start + 8 * time : start + 9 * time])
    start += 9 * time
    types = [struct.unpack_from(">lbB", content, start + 6 * place) for place in range(kinds)]
    if leap:
        raise SystemExit("a zone has leap seconds")
    footer = content[start + 6 * kinds + chars + std + utc :].decode("ascii").strip()
    return times, places, [each[0] for each in types], [bool(each[1]) for each in types], footer


def _counts(content: bytes, start: int) -> tuple[int, ...]:
    if content[start : start + 4] != b"TZif":
        raise SystemExit("not a compiled zone")
    return struct.unpack_from(">6l", content, start + 20)


def _rule(footer: str) -> str:
    found = _RULE.fullmatch(footer)
    if found is None:
        raise SystemExit(f"the rule {footer} is of another form")
    if found["start"] is None:
        return ""
    std = -_seconds(found["std"])
    dst = -_seconds(found["dst"]) if found["dst"] else std + 3600
    return f"{std} {dst} {_change(found['start'])} {_change(found['end'])}"


def _change(text: str) -> str:
    day, _, time = text.partition("/")
    return f"{day}/{_seconds(time or '2')}"


def _seconds(text: str) -> int:
    parts = [int(part) for part in text.lstrip("+-").split(":")]
    seconds = sum(part * scale for part, scale in zip(parts, (3600, 60, 1), strict=False))
    return -seconds if text.startswith("-") else seconds


def _by_rule(rule: str, time: int) -> int:
    """Return the offset of a rule at a moment."""
    std, dst, *changes = rule.split()
    year = _year(time)
    begin, end = _moment(changes[0], year) - int(std), _moment(changes[1], year) - int(dst)
    is_summer = begin <= time < end if begin < end else not end <= time < begin
    return int(dst) if is_summer else int(std)


def _is_by_rule(rule: str, change: tuple[int, int]) -> bool:
    """Return whether the rule brings this change."""
    time, offset = change
    return _by_rule(rule, time) == offset != _by_rule(rule, time - 1)


def _year(time: int) -> int:
    from datetime import UTC, datetime, timedelta

    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=time)).year


def _moment(change: str, year: int) -> int:
    from datetime import date, timedelta

    day, _, seconds = change.partition("/")
    month, week, weekday = (int(part) for part in day.split("."))
    first = date(year, month, 1)
    found = first + timedelta(days=(weekday - first.isoweekday()) % 7 + 7 * (week - 1))
    if found.month != month:
        found -= timedelta(days=7)
    return (found - date(1970, 1, 1)).days * 86_400 + int(seconds)


def _base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = digits[digit] + text
    return text or "0"


if __name__ == "__main__":
    main()
