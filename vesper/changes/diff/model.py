"""The parts of a node that a diff compares, and the differences that it finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Literal

from vesper.language.syntax import ast

Level = Literal["meaning", "tests", "text"]
"""What a difference concerns: the behaviour of the node, its test cases, or its text alone."""
Action = Literal["added", "removed", "renamed", "moved", "changed"]
_MIRRORED: dict[Action, Action] = {"added": "removed", "removed": "added"}


@dataclass(frozen=True, slots=True)
class Part:
    """One value of an entity, such as the type of an input or the expression of a step."""

    form: Hashable
    """Equal for two texts that differ in layout, comments and names of locals alone."""
    text: str
    line: int | None = None
    kind: str = ""
    """Kind of the part, where its label is a name of the author; else empty."""
    level: Level = "meaning"
    expression: ast.Expression | None = None
    """The expression that the text is, for the comparison of the checked forms."""


@dataclass(frozen=True, slots=True)
class Group:
    """Entities of one kind in one place."""

    entities: tuple[Entity, ...]
    order: Literal["meaning", "text", "none"] = "none"
    """What the order of the entities concerns; `none` reports no moves."""
    why: str = ""
    """Why their order matters, or does not."""


@dataclass(frozen=True, slots=True)
class Entity:
    """A named or listed part of a node: an input, a step, a row of a table."""

    kind: str
    name: str | None
    title: str
    """The entity in words, such as "input `amount`"."""
    parts: dict[str, Part] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    line: int | None = None
    text: str = ""
    """The entity in one line, for one that was added or removed."""
    level: Level = "meaning"
    name_level: Level = "text"
    """What its name concerns: text alone, where only the node itself reads it."""
    is_inert: bool = False
    """Whether its place has no effect on outcomes: a step that cannot fail, end or request."""

    def size(self) -> int:
        """Return the number of its parts and of those of the entities in it, and two for itself."""
        return 2 + len(self.parts) + sum(each.size() for group in self.groups.values() for each in group.entities)

    def definition(self) -> Hashable:
        """Return the kind, the parts and the groups of the entity, without its name."""
        parts = tuple((label, part.form) for label, part in sorted(self.parts.items()))
        groups = tuple(
            (label, tuple((each.name, each.definition()) for each in group.entities))
            for label, group in sorted(self.groups.items())
        )
        return (self.kind, parts, groups)


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `kind` names its entity, part and action, such as `input.type.changed`."""

    kind: str
    action: Action
    place: tuple[str, ...]
    """Titles of the entities around it and of its own, outermost first; those of the version after where it has one."""
    place_before: tuple[str, ...]
    """The same in the version before."""
    part: str
    """Label of the changed part; empty where the whole entity was added, removed, renamed or moved."""
    before: str | None
    after: str | None
    before_line: int | None
    after_line: int | None
    level: Level
    note: str = ""
    size: int = field(default=1, compare=False)
    """Number of parts that differ; of an entity that was added or removed all of its parts."""

    def mirrored(self) -> Change:
        """Return the difference as seen from the other version."""
        action = _MIRRORED.get(self.action, self.action)
        kind = self.kind.removesuffix(self.action) + action
        return replace(
            self, kind=kind, action=action, place=self.place_before, place_before=self.place,
            before=self.after, after=self.before, before_line=self.after_line, after_line=self.before_line,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two versions."""

    node_id: str
    shown: str
    """Its file, or its file in a revision, as messages name it."""
    semantic_hash: str


@dataclass(frozen=True, slots=True)
class NodeDiff:
    """The differences between two versions of a node."""

    before: Side
    after: Side
    is_same_hash: bool
    """Whether the semantic hashes are equal but for the id."""
    changes: tuple[Change, ...]
    callees: tuple[NodeDiff, ...] = ()
    """Differences of called nodes, where the caller wanted them."""

    @property
    def is_different(self) -> bool:
        """Whether a difference concerns the meaning, here or in a followed node."""
        return any(each.level == "meaning" for each in self.changes) or any(each.is_different for each in self.callees)

    def counts(self) -> Counter[str]:
        """Return the number of differences by level."""
        return Counter(each.level for each in self.changes)

    def mirrored(self) -> NodeDiff:
        """Return the differences with the sides swapped."""
        return NodeDiff(
            self.after,
            self.before,
            self.is_same_hash,
            tuple(each.mirrored() for each in self.changes),
            tuple(each.mirrored() for each in self.callees),
        )
