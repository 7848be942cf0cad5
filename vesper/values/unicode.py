"""Unicode 15.0.0, independent of the host's version: case, case folding, general categories.

The generated tables are texts; each is parsed on first use.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cache

from vesper.values.generated import unicode_tables as tables

UNASSIGNED = "Cn"


def lower(text: str) -> str:
    """Return each code point's full lower-case form, without context rules."""
    return text.lower() if text.isascii() else text.translate(_mapping(tables.LOWER))


def upper(text: str) -> str:
    """Return each code point's full upper-case form, without context rules."""
    return text.upper() if text.isascii() else text.translate(_mapping(tables.UPPER))


def fold(code_point: int) -> int:
    """Return the simple case folding of a code point."""
    return _folding().get(code_point, code_point)


def foldings_in_range(first: int, last: int) -> list[int]:
    """Return the foldings of the code points of a range (inclusive) that differ from themselves."""
    starts = _folding_starts()
    return [_folding()[start] for start in starts[bisect_left(starts, first) : bisect_right(starts, last)]]


def category(code_point: int) -> str:
    """Return the general category of a code point."""
    starts, runs = _categories()
    position = bisect_right(starts, code_point) - 1
    if position < 0:
        return UNASSIGNED
    last, name = runs[position]
    return name if code_point <= last else UNASSIGNED


def is_printable(character: str) -> bool:
    """Return whether a character can be displayed.

    Controls, formats, private and unassigned ones and spaces but U+0020 cannot.
    """
    # SEMANTICS: `str.isprintable` uses the host's tables, on which generated code must not depend.
    if character.isascii():
        return character.isprintable()
    return category(ord(character))[0] not in "CZ"


def is_white_space(code_point: int) -> bool:
    """Return whether the code point has the property White_Space."""
    return any(first <= code_point <= last for first, last in _white_space())


@cache
def _white_space() -> tuple[tuple[int, int], ...]:
    rows = (line.split() for line in tables.WHITE_SPACE.splitlines())
    return tuple((int(first, 16), int(last, 16)) for first, last in rows)


@cache
def _categories() -> tuple[list[int], list[tuple[int, str]]]:
    """Return the start of each run of one category, and its end with the category."""
    rows = [line.split() for line in tables.CATEGORIES.splitlines()]
    return [int(first, 16) for first, _, _ in rows], [(int(last, 16), name) for _, last, name in rows]


@cache
def _mapping(table: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for line in table.splitlines():
        fields = line.split()
        if fields[1] == "=":
            found[int(fields[0], 16)] = "".join(chr(int(part, 16)) for part in fields[2:])
            continue
        first, last, step, added = int(fields[0], 16), int(fields[1], 16), int(fields[2]), int(fields[3])
        for code_point in range(first, last + 1, step):
            found[code_point] = chr(code_point + added)
    return found


@cache
def _folding() -> dict[int, int]:
    return {code_point: ord(to) for code_point, to in _mapping(tables.FOLD).items()}


@cache
def _folding_starts() -> list[int]:
    return sorted(_folding())
