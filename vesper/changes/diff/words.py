"""A diff in words for rules authors and auditors, and as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from vesper.changes.diff.model import Change, Level, NodeDiff

MAX_INLINE = 60
"""Length of two texts that are shown on one line, as `old → new`."""
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_LEVELS: dict[Level, str] = {"meaning": "that may change outcomes", "tests": "in tests", "text": "in text alone"}


def differing_ranges(before: str, after: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the part of each text that differs, by whole words, as start and end."""
    one, other = _TOKEN.findall(before), _TOKEN.findall(after)
    most = min(len(one), len(other))
    first = next((place for place in range(most) if one[place] != other[place]), most)
    last = next((place for place in range(most - first) if one[-1 - place] != other[-1 - place]), most - first)
    start = sum(map(len, one[:first]))
    end = sum(map(len, one[len(one) - last :])) if last else 0
    return (start, len(before) - end), (start, len(after) - end)


def sentence(change: Change) -> str:
    """Return a difference in words, without its place and without long texts."""
    part = f"{change.part}: " if change.part else ""
    match change.action:
        case "added":
            return f"{part}added" + (f": {change.after}" if change.after else "")
        case "removed":
            return f"{part}removed" + (f"; it was: {change.before}" if change.before else "")
        case "renamed":
            return f"renamed from `{change.before}`"
        case "moved":
            return f"moved from {change.before} to {change.after}" + (f"; {change.note}" if change.note else "")
        case "changed":
            return f"{part}{change.before} → {change.after}"


def text_lines(diff: NodeDiff, with_all: bool, indent: str = "") -> Iterator[str]:
    """Yield the lines of a diff; without `with_all` only differences in meaning."""
    yield f"{indent}{_title(diff)}"
    shown = [each for each in diff.changes if with_all or each.level == "meaning"]
    headings: tuple[str, ...] = ()
    for change in shown:
        place = change.place[:-1] if _is_leaf(change) else change.place
        if place != headings:
            if not headings or place[:1] != headings[:1]:
                yield ""
            same = next((i for i, (a, b) in enumerate(zip(place, headings, strict=False)) if a != b), None)
            common = min(len(place), len(headings)) if same is None else same
            for depth in range(common, len(place)):
                yield f"{indent}{'  ' * depth}{place[depth]}"
            headings = place
        margin = indent + "  " * len(place)
        yield from _change_lines(change, margin, with_all)
    for each in diff.callees:
        yield ""
        yield from text_lines(each, with_all, indent + "  ")


def _is_leaf(change: Change) -> bool:
    """Return whether a change names its entity itself, which then is no heading."""
    return not change.part


def _change_lines(change: Change, margin: str, with_all: bool) -> Iterator[str]:
    entity = f"{change.place[-1]} " if _is_leaf(change) else ""
    level = f"  [{change.level}]" if with_all and change.level != "meaning" else ""
    lines = _line_numbers(change)
    before, after = change.before or "", change.after or ""
    is_long = len(before) + len(after) > MAX_INLINE
    if change.action == "changed" and is_long:
        (start, end), (other_start, other_end) = differing_ranges(before, after)
        yield f"{margin}{entity}{change.part}:{lines}{level}"
        yield f"{margin}  - {before}"
        yield from _marks(margin, start, end)
        yield f"{margin}  + {after}"
        yield from _marks(margin, other_start, other_end)
        return
    yield f"{margin}{entity}{sentence(change)}{lines}{level}"


def _marks(margin: str, start: int, end: int) -> Iterator[str]:
    if end > start:
        yield f"{margin}    {' ' * start}{'^' * (end - start)}"


def _line_numbers(change: Change) -> str:
    one, other = change.before_line, change.after_line
    if one is None and other is None:
        return ""
    if one is None or other is None:
        return f"  (line {other if one is None else one})"
    return f"  (line {one})" if one == other else f"  (lines {one} and {other})"


def _title(diff: NodeDiff) -> str:
    one, other = (f"{each.node_id} ({each.shown})" for each in (diff.before, diff.after))
    return f"{one} → {other}"


def summary(diff: NodeDiff, with_all: bool) -> str:
    """Return the last line: how many differences there are, and of which level."""
    counts = diff.counts()
    for each in diff.callees:
        counts += each.counts()
    others = [f"{counts[level]:,} {words}" for level, words in _LEVELS.items() if level != "meaning" and counts[level]]
    rest = "" if not others else f"; {' and '.join(others)}" + ("" if with_all else " (--all lists them)")
    if diff.is_different:
        count = counts["meaning"]
        return f"{count:,} difference{'' if count == 1 else 's'} {_LEVELS['meaning']}{rest}"
    reason = "the semantic hashes are equal" if diff.is_same_hash else "the checked forms differ in names alone"
    return f"no difference in meaning: {reason}{rest}"


# -- JSON -------------------------------------------------------------------------------------------


def diff_json(diff: NodeDiff) -> dict[str, Any]:
    """Return a diff as JSON, with every difference of every level."""
    counts = diff.counts()
    return {
        "before": {"node": diff.before.node_id, "path": diff.before.shown, "semantic_hash": diff.before.semantic_hash},
        "after": {"node": diff.after.node_id, "path": diff.after.shown, "semantic_hash": diff.after.semantic_hash},
        "is_different": diff.is_different,
        "counts": {level: counts[level] for level in _LEVELS},
        "changes": [_change_json(each) for each in diff.changes],
        "called_nodes": [diff_json(each) for each in diff.callees],
    }


def _change_json(change: Change) -> dict[str, Any]:
    form: dict[str, Any] = {
        "kind": change.kind,
        "action": change.action,
        "level": change.level,
        "place": list(change.place),
        "part": change.part or None,
        "before": change.before,
        "after": change.after,
        "before_line": change.before_line,
        "after_line": change.after_line,
        "words": f"{', '.join(change.place)}: {sentence(change)}" if change.place else sentence(change),
    }
    if change.action == "changed" and change.before is not None and change.after is not None:
        one, other = differing_ranges(change.before, change.after)
        form |= {"before_mark": list(one), "after_mark": list(other)}
    return form | ({"note": change.note} if change.note else {})
