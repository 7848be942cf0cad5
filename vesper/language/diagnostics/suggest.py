"""Suggestions for misspelt names: at most two close candidates."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MAX_WORK = 20_000
"""Maximum number of letter pairs compared for one word, which bounds the time to milliseconds."""


def suggestions(word: str, candidates: Iterable[str]) -> list[str]:
    """Return the close candidates, closest first.

    A candidate is within a third of the word's length in edits; a single letter has no suggestions.
    """
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
    """Return a help line, or None when no candidate is close."""
    found = suggestions(word, candidates)
    return f"did you mean {' or '.join(f'`{name}`' for name in found)}?" if found else None


def did_you_mean_node(word: str, candidates: Iterable[str]) -> str | None:
    """Return a help line with close names of nodes, else with at most two that contain the word as a part."""
    names = list(dict.fromkeys(candidates))
    part = f"_{re.sub(r'_v[0-9]+$', '', word.lower())}_"
    inside = [name for name in names if len(part) > 3 and part in f"_{name}_"]
    longer = [name for name in inside if not any(name.startswith(f"{other}_v") for other in inside)]
    longer = sorted(longer, key=lambda name: (f"_{name}_".find(part), len(name), name))[:2]
    return did_you_mean(word, names) or (
        f"did you mean {' or '.join(f'`{name}`' for name in longer)}?" if longer else None
    )


def single_suggestion(help_line: str | None) -> str | None:
    """Return the name in a help line of `did_you_mean`, if it has exactly one."""
    match = re.fullmatch(r"did you mean `([^`]*)`\?", help_line or "")
    return match[1] if match else None


def edit_distance(left: str, right: str, limit: int) -> int:
    """Return the number of insertions, deletions, replacements and swaps; `limit + 1` above the limit."""
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
