"""Pairs of entities of two versions: by name, by equal definition, by all but one part, by similar text."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial

from vesper.changes.diff.model import Entity

MIN_SIMILARITY = 0.5
"""Share of equal parts, or of equal text, from which two entities without names are versions of each other."""
MAX_SIMILARITIES = 4_000
"""Maximum number of pairs whose texts are compared; with more, the rest counts as removed and added."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Places of entities before and after; the pairs are in the order of the version after."""

    pairs: tuple[tuple[int, int], ...]
    removed: tuple[int, ...]
    added: tuple[int, ...]
    moved: frozenset[int]
    """Places after of pairs that have left the order of the others; as few as possible."""


def match(before: Sequence[Entity], after: Sequence[Entity]) -> Pairs:
    """Return the pairs of two lists of one kind."""
    found: dict[int, int] = {}
    left, right = list(range(len(before))), list(range(len(after)))

    def pair_by(key_before: Callable[[int], Hashable | None], key_after: Callable[[int], Hashable | None]) -> None:
        """Pair entities with equal keys, in order; None is no key."""
        places: dict[Hashable, list[int]] = {}
        for place in right:
            if (key := key_after(place)) is not None:
                places.setdefault(key, []).append(place)
        for place in left:
            key = key_before(place)
            if key is not None and places.get(key):
                found[place] = places[key].pop(0)
        taken = set(found.values())
        left[:] = [place for place in left if place not in found]
        right[:] = [place for place in right if place not in taken]

    pair_by(lambda place: before[place].name, lambda place: after[place].name)
    forms_before = {place: before[place].definition() for place in left if before[place].name is None}
    forms_after = {place: after[place].definition() for place in right if after[place].name is None}
    pair_by(forms_before.get, forms_after.get)
    left[:] = [place for place in left if before[place].name is None]
    right[:] = [place for place in right if after[place].name is None]
    for label in _labels(before, left, after, right):
        without = partial(_definition_without, label)
        pair_by(lambda place: without(before[place]), lambda place: without(after[place]))  # noqa: B023  # called here
    if len(left) * len(right) <= MAX_SIMILARITIES:
        _pair_similar(before, after, left, right, found)
    taken = set(found.values())
    pairs = tuple(sorted(found.items(), key=lambda pair: pair[1]))
    return Pairs(
        pairs,
        tuple(place for place in range(len(before)) if place not in found),
        tuple(place for place in range(len(after)) if place not in taken),
        _moved_places(pairs),
    )


def _labels(before: Sequence[Entity], left: Iterable[int], after: Sequence[Entity], right: Iterable[int]) -> list[str]:
    """Return the parts that a pair may differ in: results before conditions, which identify a row."""
    listed = [each.parts for each in (*(before[place] for place in left), *(after[place] for place in right))]
    labels = dict.fromkeys(label for parts in listed for label in parts)
    return sorted(labels, key=lambda label: not label.startswith(("result", "annotation", "reason", "error")))


def _definition_without(label: str, entity: Entity) -> Hashable | None:
    """Return the definition of an entity without one part; None if nothing else identifies the entity."""
    rest = tuple((each, part.form) for each, part in sorted(entity.parts.items()) if each != label)
    has_identity = any(each != "operation" for each, _ in rest) or any(g.entities for g in entity.groups.values())
    groups = tuple((each, tuple(e.definition() for e in group.entities)) for each, group in entity.groups.items())
    return (rest, groups) if has_identity else None


def _pair_similar(
    before: Sequence[Entity], after: Sequence[Entity], left: list[int], right: list[int], found: dict[int, int]
) -> None:
    """Pair the remaining entities by similarity, the most similar and then the nearest first."""
    scored = [
        (-score, abs(one - other), one, other)
        for one in left
        for other in right
        if (score := _similarity(before[one], after[other])) >= MIN_SIMILARITY
    ]
    taken: set[int] = set()
    for _, _, one, other in sorted(scored):
        if one not in found and other not in taken:
            found[one] = other
            taken.add(other)


def _similarity(before: Entity, after: Entity) -> float:
    """Return the share of equal parts, or of equal text in the only part."""
    if before.kind != after.kind:
        return 0.0
    labels = set(before.parts) | set(after.parts)
    if "operation" in labels and before.parts["operation"].form != after.parts["operation"].form:
        return 0.0
    equal = sum(
        label in before.parts and label in after.parts and before.parts[label].form == after.parts[label].form
        for label in labels
    )
    share = equal / len(labels) if labels else 0.0
    if len(labels) <= 2:
        share = max(share, SequenceMatcher(None, before.text, after.text, autojunk=False).ratio())
    return share


def _moved_places(pairs: Sequence[tuple[int, int]]) -> frozenset[int]:
    """Return the places after of the fewest pairs without which the others are in the same order."""
    ends: list[int] = []
    places: list[int] = []
    previous: list[int] = []
    for index, (place, _) in enumerate(pairs):
        at = bisect_left(ends, place)
        if at == len(ends):
            ends.append(place)
            places.append(index)
        else:
            ends[at], places[at] = place, index
        previous.append(places[at - 1] if at else -1)
    kept: set[int] = set()
    index = places[-1] if places else -1
    while index >= 0:
        kept.add(index)
        index = previous[index]
    return frozenset(after for index, (_, after) in enumerate(pairs) if index not in kept)
