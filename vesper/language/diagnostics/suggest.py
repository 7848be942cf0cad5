"""`did you mean …`: the names closest to a misspelt one, at most two, and none that is far off."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MAX_WORK = 20_000
"""Pairs of letters compared for one word: some hundred names of usual length, and milliseconds for any others."""


def suggestions(word: str, candidates: Iterable[str]) -> list[str]:
    """The candidates within a third of the word's length in edits, closest first. A single letter is close to
    nothing."""
    limit = max(1, len(word) // 3) if len(word) > 1 else 0
    ranked: list[tuple[int, str]] = []
    work = 0
    for name in dict.fromkeys(candidates):
        if abs(len(word) - len(name)) > limit:
            continue
        work += len(word) * len(name)
        if work > _MAX_WORK:
            break
        ranked.append((edit_distance(word.lower(), name.lower(), limit), name))
    return [name for distance, name in sorted(ranked) if distance <= limit][:2]


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """A help line, or None when nothing is close."""
    found = suggestions(word, candidates)
    return f"did you mean {' or '.join(f'`{name}`' for name in found)}?" if found else None


def the_one_meant(help_line: str | None) -> str | None:
    """The name in a help line of `did_you_mean`, if it has just one."""
    match = re.fullmatch(r"did you mean `([^`]*)`\?", help_line or "")
    return match[1] if match else None


def edit_distance(left: str, right: str, limit: int) -> int:
    """Insertions, deletions, replacements and swaps of neighbours; anything over the limit is `limit + 1`."""
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[int] = []
    previous = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        current = [i]
        for j, b in enumerate(right, start=1):
            cost = min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            current.append(cost)
        if min(current) > limit:
            return limit + 1
        before, previous = previous, current
    return previous[-1]
