"""Unicode 15.0.0, independent of the host's version: case, case folding, general categories, normalisation.

The generated tables are texts; each is parsed on first use.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cache

from vesper.values.generated import unicode_tables as tables

UNASSIGNED = "Cn"

# Hangul syllables are composed by rule: 19 leading consonants, 21 vowels, 27 trailing consonants or none.
_SYLLABLES, _LEADS, _VOWELS, _TRAILS = 0xAC00, 0x1100, 0x1161, 0x11A7
_LEAD_COUNT, _VOWEL_COUNT, _TRAIL_COUNT = 19, 21, 28
_SYLLABLE_COUNT = _LEAD_COUNT * _VOWEL_COUNT * _TRAIL_COUNT


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


# -- normalisation ---------------------------------------------------------------------------------


def normalize(text: str, form: str) -> str:
    """Return the text in the form `nfc`, `nfd`, `nfkc` or `nfkd`."""
    if text.isascii():
        return text
    decomposed = _in_order(_decompose(text, form.startswith("nfk")))
    return "".join(map(chr, _compose(decomposed) if form.endswith("c") else decomposed))


def _decompose(text: str, is_compatible: bool) -> Iterator[int]:
    table = _decompositions(is_compatible)
    for character in text:
        point = ord(character)
        place = point - _SYLLABLES
        if 0 <= place < _SYLLABLE_COUNT:
            yield _LEADS + place // (_VOWEL_COUNT * _TRAIL_COUNT)
            yield _VOWELS + place // _TRAIL_COUNT % _VOWEL_COUNT
            if place % _TRAIL_COUNT:
                yield _TRAILS + place % _TRAIL_COUNT
        else:
            yield from table.get(point, (point,))


def _in_order(points: Iterator[int]) -> list[int]:
    """Return the code points with each run of marks sorted by class, marks of one class in their order."""
    classes = _combining_classes()
    ordered: list[int] = []
    marks: list[int] = []
    for point in points:
        if point in classes:
            marks.append(point)
            continue
        if marks:
            ordered += sorted(marks, key=classes.__getitem__)
            marks.clear()
        ordered.append(point)
    return ordered + sorted(marks, key=classes.__getitem__)


def _compose(points: list[int]) -> list[int]:
    classes, composites = _combining_classes(), _composites()
    composed: list[int] = []
    starter = -1
    last_class = 0
    for point in points:
        own_class = classes.get(point, 0)
        # A mark is blocked from the starter by a mark of its own class or a higher one between them.
        if starter >= 0 and (last_class < own_class or starter == len(composed) - 1):
            joined = _syllable(composed[starter], point) or composites.get((composed[starter], point))
            if joined is not None:
                composed[starter] = joined
                continue
        if own_class == 0:
            starter = len(composed)
        last_class = own_class
        composed.append(point)
    return composed


def _syllable(first: int, second: int) -> int | None:
    if _LEADS <= first < _LEADS + _LEAD_COUNT and _VOWELS <= second < _VOWELS + _VOWEL_COUNT:
        return _SYLLABLES + ((first - _LEADS) * _VOWEL_COUNT + second - _VOWELS) * _TRAIL_COUNT
    place = first - _SYLLABLES
    is_open = 0 <= place < _SYLLABLE_COUNT and place % _TRAIL_COUNT == 0
    return first + second - _TRAILS if is_open and _TRAILS < second < _TRAILS + _TRAIL_COUNT else None


@cache
def _combining_classes() -> dict[int, int]:
    rows = (line.split() for line in tables.CLASSES.splitlines())
    return {point: int(number) for first, last, number in rows for point in range(int(first, 16), int(last, 16) + 1)}


@cache
def _one_step(table: str) -> dict[int, tuple[int, ...]]:
    rows = ([int(part, 16) for part in line.split()] for line in table.splitlines())
    return {row[0]: tuple(row[1:]) for row in rows}


@cache
def _decompositions(is_compatible: bool) -> dict[int, tuple[int, ...]]:
    """Return the full decompositions: every step until none is left."""
    steps = {**_one_step(tables.CANONICAL), **(_one_step(tables.COMPATIBLE) if is_compatible else {})}

    def full(point: int) -> tuple[int, ...]:
        return tuple(part for step in steps[point] for part in full(step)) if point in steps else (point,)

    return {point: full(point) for point in steps}


@cache
def _composites() -> dict[tuple[int, ...], int]:
    uncomposed = {int(line, 16) for line in tables.UNCOMPOSED.splitlines()}
    return {parts: point for point, parts in _one_step(tables.CANONICAL).items() if point not in uncomposed}
