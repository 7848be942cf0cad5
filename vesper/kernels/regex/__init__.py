"""Regular expressions of one dialect, in time proportional to the text. The checker has validated every pattern."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from vesper.kernels.raised import Raised
from vesper.kernels.regex.machine import Finder, recognizer_of
from vesper.kernels.regex.program import program_of
from vesper.kernels.work import count_work
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import MAX_ENTRIES, MAX_TEXT


def matches(value: str, pattern: str) -> bool:
    return _is_match(value, pattern)


def _is_match(value: str, pattern: str) -> bool:
    return recognizer_of(pattern).matches(value)


def find(value: str, pattern: str) -> str | None:
    found = next(_matches(value, pattern), None)
    return None if found is None else value[found[0] : found[1]]


def find_all(value: str, pattern: str) -> list[str]:
    return [value[start:end] for start, end in _bounded_matches(value, pattern, MAX_ENTRIES)]


def groups(value: str, pattern: str) -> list[str | None] | None:
    """Return the first match followed by its groups, or None without a match."""
    if not _is_match(value, pattern):
        return None
    slots = Finder(program_of(pattern), value, with_groups=True).find(0)
    assert slots is not None, "what is recognized can be found"
    pairs = zip(slots[::2], slots[1::2], strict=True)
    # A group that was started and not ended took no part in the match.
    return [value[start:end] if end >= 0 else None for start, end in pairs]


def replace(value: str, pattern: str, new: str) -> str:
    parts: list[str] = []
    length = len(value)
    position = 0
    for start, end in _matches(value, pattern):
        length += len(new) - (end - start)
        parts += (value[position:start], new)
        position = end
    # SEMANTICS: a later match may shorten the text again, so only the final length is checked, before it is built.
    if length > MAX_TEXT:
        raise Raised(ErrorCode.TOO_LARGE)
    return "".join((*parts, value[position:]))


def split(value: str, pattern: str) -> list[str]:
    parts: list[str] = []
    position = 0
    for start, end in _bounded_matches(value, pattern, MAX_ENTRIES - 1):
        parts.append(value[position:start])
        position = end
    return [*parts, value[position:]]


def _matches(value: str, pattern: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each match."""
    # Most texts have no match, and recognizing that is much faster than finding one.
    if _is_match(value, pattern):
        for slots in Finder(program_of(pattern), value).find_all():
            yield slots[0], slots[1]


def _bounded_matches(value: str, pattern: str, maximum: int) -> list[tuple[int, int]]:
    found = list(islice(_matches(value, pattern), maximum + 1))
    if len(found) > maximum:
        raise Raised(ErrorCode.TOO_LARGE)
    return found


count_work("regex", globals())
