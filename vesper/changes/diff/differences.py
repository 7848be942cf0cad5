"""Differences between two versions of a node: the entry of this package.

Both versions become entities with parts. Entities are paired, parts are compared by form and, where forms differ, by
the checked expressions: a text that means the same is no difference. Declarations with another name are found by the
differences that disappear when one name stands for the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from vesper.changes.diff.forms import Names, checked_form
from vesper.changes.diff.matching import match
from vesper.changes.diff.model import Action, Change, Entity, Group, Level, NodeDiff, Part, Side
from vesper.changes.diff.node import outline_of
from vesper.changes.diff.version import NodeVersion, Texts, base_name

_INERT = "it cannot fail or request anything, so its place has no effect"
MAX_RENAMES = 200
"""Maximum number of pairs of names that are tried as one declaration renamed."""
MAX_CANDIDATES = 6
"""Maximum number of new names that are tried for one old name."""
_RENAMED_KINDS = {
    "input": "value",
    "constant": "value",
    "parameter": "value",
    "step": "value",
    "output": "output",
    "error field": "error",
    "type": "type",
    "function": "function",
    "table": "function",
    "column": "column",
}
_OTHER = Change(
    "node.other.changed", "changed", (), (), "checked form", "another semantic hash", "another semantic hash",
    None, None, "meaning",
)  # fmt: skip
"""A difference of semantic hashes that no part of the node shows."""
_NOT_IN_HASH = frozenset({"http", "schedule", "queue", "events"})
"""Kinds of entities that the semantic hash does not cover."""


def diff_nodes(before: NodeVersion, after: NodeVersion, follow: bool = False) -> NodeDiff:
    """Return the differences; with `follow` also those of the nodes that both versions call.

    The result for swapped versions is the mirrored one: one direction is computed, and it is the same for both.
    """
    if _rank(before) > _rank(after):
        return diff_nodes(after, before, follow).mirrored()
    is_same_hash = before.neutral_hash == after.neutral_hash
    changes = _Differ(before, after).changes()
    if not changes and not is_same_hash:
        changes = [_OTHER]
    demoted = tuple(_demote_change(each, before, after, is_same_hash) for each in changes)
    callees = tuple(_follow_calls(before, after)) if follow else ()
    return NodeDiff(_side(before), _side(after), is_same_hash, demoted, callees)


def _rank(version: NodeVersion) -> tuple[str, str, str]:
    return version.compiled.source.sha256, version.compiled.semantic_hash, version.shown


def _side(version: NodeVersion) -> Side:
    return Side(version.node.node_id, version.shown, version.compiled.semantic_hash)


def _demote_change(change: Change, before: NodeVersion, after: NodeVersion, is_same_hash: bool) -> Change:
    """Return a difference of meaning as one of text where the checked forms are equal."""
    if change.level != "meaning" or change.kind.startswith("node.name"):
        return change
    section = change.kind.partition(".")[0]
    if section in _NOT_IN_HASH:
        one, other = (getattr(each.compiled, "http" if section == "http" else "work") for each in (before, after))
        if section != "http":
            one, other = (None if each is None else getattr(each, section) for each in (one, other))
        is_equal = one == other
    else:
        is_equal = is_same_hash
    return replace(change, level="text") if is_equal else change


def _follow_calls(before: NodeVersion, after: NodeVersion) -> Iterator[NodeDiff]:
    """Yield the differences of called nodes whose semantic hash changed."""
    called_after = {base_name(each.node.node_id): each for each in after.called()}
    for each in before.called():
        other = called_after.get(base_name(each.node.node_id))
        if other is not None and other.semantic_hash != each.semantic_hash:
            old = NodeVersion(each, _display_path(before, each.path))
            new = NodeVersion(other, _display_path(after, other.path))
            yield diff_nodes(old, new, follow=True)


def _display_path(version: NodeVersion, path: str) -> str:
    """Return the file of a called node for messages: as the caller's, from the working directory or a revision."""
    revision, colon, _ = version.shown.rpartition(":")
    if colon:
        return f"{revision}:{Path(path).name}"
    return Path(path).relative_to(Path.cwd()).as_posix() if Path(path).is_relative_to(Path.cwd()) else path


class _Differ:
    def __init__(self, before: NodeVersion, after: NodeVersion) -> None:
        self._before = before
        self._after = after
        self._after_outline = outline_of(after, Names())
        self._texts_before = Texts(before.compiled.source, before.subject)
        self._texts_after = Texts(after.compiled.source, after.subject)
        self._names = Names()

    def changes(self) -> list[Change]:
        """Return the differences under the names that leave the fewest."""
        found = self._changes_under(self._names)
        tried = 0
        is_better = True
        while is_better and tried < MAX_RENAMES:
            is_better = False
            for candidates in _candidates(found, self._names):
                tried += len(candidates)
                under = [Names({**self._names.by_kind, **each}) for each in candidates]
                best, names = min(
                    ((self._changes_under(each), each) for each in under), key=lambda pair: _weight(pair[0])
                )
                if _weight(best) < _weight(found):
                    self._names, found, is_better = names, best, True
                    break
        return [each for each in found if not _is_implied(each, found)]

    def _changes_under(self, names: Names) -> list[Change]:
        self._current = names
        return list(self._entities((), (), outline_of(self._before, names), self._after_outline))

    # -- entities ---------------------------------------------------------------------------------

    def _entities(
        self, place_before: tuple[str, ...], place: tuple[str, ...], before: Entity, after: Entity
    ) -> Iterator[Change]:
        for label in dict.fromkeys((*before.parts, *after.parts)):
            change = self._part(place_before, place, before, after, label)
            if change is not None:
                yield change
        for label in dict.fromkeys((*before.groups, *after.groups)):
            empty = Group(())
            one, other = before.groups.get(label, empty), after.groups.get(label, empty)
            yield from self._group(place_before, place, one, other)

    def _part(
        self, place_before: tuple[str, ...], place: tuple[str, ...], before: Entity, after: Entity, label: str
    ) -> Change | None:
        one, other = before.parts.get(label), after.parts.get(label)
        part = other or one
        assert part is not None, "a label is of one of them"
        if one is not None and other is not None and (one.form == other.form or self._means_same(one, other)):
            return None
        action: Action = "added" if one is None else "removed" if other is None else "changed"
        kind = f"{before.kind}.{part.kind or label}.{action}".replace(" ", "_")
        level: Level = part.level if before.level == "meaning" or part.level == "text" else before.level
        texts = (None if one is None else one.text, None if other is None else other.text)
        lines = (None if one is None else one.line, None if other is None else other.line)
        return Change(kind, action, place, place_before, label, *texts, *lines, level)

    def _means_same(self, before: Part, after: Part) -> bool:
        """Return whether two expressions have the same checked form."""
        if before.expression is None or after.expression is None:
            return False
        one, other = self._texts_before.checked(before.expression), self._texts_after.checked(after.expression)
        if not one or len(one) != len(other):
            return False
        forms = [(checked_form(a, self._current), checked_form(b, Names())) for a, b in zip(one, other, strict=True)]
        return all(a is not None and a == b for a, b in forms)

    def _group(
        self, place_before: tuple[str, ...], place: tuple[str, ...], before: Group, after: Group
    ) -> Iterator[Change]:
        matched = match(before.entities, after.entities)
        group = after if after.entities else before
        found = [(each.line, [_whole(each, "removed", place_before, place)])
                 for each in map(before.entities.__getitem__, matched.removed)]  # fmt: skip
        found += [(each.line, [_whole(each, "added", place_before, place)])
                  for each in map(after.entities.__getitem__, matched.added)]  # fmt: skip
        for at_before, at in matched.pairs:
            old, new = before.entities[at_before], after.entities[at]
            titles_before, titles = (*place_before, old.title), (*place, new.title)
            listed: list[Change] = []
            if old.name is not None and old.title != new.title and new.kind in _RENAMED_KINDS:
                names = (_name(old.title), _name(new.title))
                level = _less_important(new.name_level, new.level)
                listed.append(_of_entity("renamed", old, new, titles_before, titles, names, level))
            if at in matched.moved and group.order != "none":
                is_inert = new.is_inert and old.is_inert
                level = "text" if is_inert else _less_important(group.order, new.level)
                why = _INERT if is_inert else group.why
                places = (_position(at_before), _position(at))
                listed.append(_of_entity("moved", old, new, titles_before, titles, places, level, why))
            listed += self._entities(titles_before, titles, old, new)
            found.append((max(old.line or 0, new.line or 0), listed))
        # The same order for swapped versions.
        for _, listed in sorted(found, key=lambda each: each[0] or 0):
            yield from listed


def _of_entity(
    action: Literal["renamed", "moved"],
    old: Entity,
    new: Entity,
    place_before: tuple[str, ...],
    place: tuple[str, ...],
    texts: tuple[str | None, str | None],
    level: Level,
    note: str = "",
) -> Change:
    kind = f"{new.kind}.{action}".replace(" ", "_")
    return Change(kind, action, place, place_before, "", *texts, old.line, new.line, level, note)


def _whole(entity: Entity, action: str, place_before: tuple[str, ...], place: tuple[str, ...]) -> Change:
    titles_before, titles = (*place_before, entity.title), (*place, entity.title)
    kind = f"{entity.kind}.{action}".replace(" ", "_")
    size = entity.size()
    if action == "added":
        return Change(
            kind, "added", titles, titles_before, "", None, entity.text, None, entity.line, entity.level, size=size
        )
    return Change(
        kind, "removed", titles, titles_before, "", entity.text, None, entity.line, None, entity.level, size=size
    )


def _less_important(level: Level, other: Level) -> Level:
    """Return the less important of two levels: meaning, then tests, then text."""
    order: tuple[Level, ...] = ("meaning", "tests", "text")
    return max(level, other, key=order.index)


def _position(place: int) -> str:
    return f"position {place + 1}"


def _is_implied(change: Change, changes: list[Change]) -> bool:
    """Return whether a difference follows from another: the place in requests of an input that only one side has.

    So does the place of a renamed input, where both places have its name.
    """
    if not change.kind.startswith("http.source."):
        return False
    name = change.part.removeprefix("source of ")
    title = f"input `{name}`"
    if change.action == "changed":
        old = next((each.before for each in changes if each.kind == "input.renamed" and each.place == (title,)), None)
        places = [(change.before or "").split(" "), (change.after or "").split(" ")]
        return old is not None and places[0] == [places[1][0], old] and places[1][1] == name
    return any(each.kind == f"input.{change.action}" and each.place == (title,) for each in changes)


def _weight(changes: list[Change]) -> int:
    """Return how much differs. Removed and added entities count with all their parts."""
    return sum(each.size for each in changes)


def _candidates(changes: list[Change], names: Names) -> Iterator[list[dict[tuple[str, str], str]]]:
    """Yield for each removed declaration the added ones of its kind and place that it may have become.

    Those with the same text come alone where there are some, and the nearest come first.
    """
    for removed in changes:
        kind = removed.kind.removesuffix(".removed").replace("_", " ")
        old = _name(removed.place_before[-1]) if removed.place_before else None
        if removed.action != "removed" or removed.part or kind not in _RENAMED_KINDS or old is None:
            continue
        if (_RENAMED_KINDS[kind], old) in names.by_kind:
            continue
        wanted = f"{removed.kind.removesuffix('removed')}added"
        added = [each for each in changes if each.kind == wanted and each.place[:-1] == removed.place[:-1]]
        added.sort(key=lambda each: abs((each.after_line or 0) - (removed.before_line or 0)))
        equal = [each for each in added if each.after == removed.before]
        found = [_name(each.place[-1]) for each in (equal or added)[:MAX_CANDIDATES]]
        listed = [{(_RENAMED_KINDS[kind], old): new} for new in found if new is not None]
        if listed:
            yield listed


def _name(title: str) -> str | None:
    """Return the name in a title; None for an entity without one."""
    return title.split("`")[1] if "`" in title else None
