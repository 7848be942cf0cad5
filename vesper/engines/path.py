"""Which way an execution went: the points that it passed (docs/spec/migration.md, Paths).

The direct engine reports a path as bytes: a set of points, by their numbers in the list that its program gives. Python
reports marks. Both say which conditions were true and which were false, and that is how they are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from vesper.engines.engine import Marks
from vesper.engines.outcome import Outcome

if TYPE_CHECKING:
    from vesper.language.ir.nodes import Node

Conditions = frozenset[tuple[int, bool]]
"""The indices of conditions, each with what it was at some time of the run."""


@dataclass(frozen=True, slots=True)
class Point:
    """Something that an execution may pass."""

    kind: Literal["condition", "loop", "handler"]
    expression: int
    """The condition; the `for`, or what a loop goes over, or else its `while`; of a handler, its number among the
    handlers of the node, in program order."""
    outcome: str
    """`true` or `false`; `none`, `one` or `many` rounds; `ran`."""


class Pathed(NamedTuple):
    """An outcome, with the way to it."""

    outcome: Outcome
    path: bytes
    """The set of points that were passed: number *n* is bit *n* % 64 of the *n* // 64-th word of eight bytes, the least
    significant byte first. It has no bits where the inputs were refused or the engine panicked."""
    fingerprint: int
    """64 bits of a keyed hash of what was read; of refused inputs, of what is wrong with them."""


def points_of(path: bytes, points: Sequence[Point]) -> tuple[Point, ...]:
    """The points of a path, in the order of their numbers."""
    bits = int.from_bytes(path, "little")
    return tuple(point for number, point in enumerate(points) if bits >> number & 1)


def conditions_of(path: bytes, points: Sequence[Point]) -> Conditions:
    """The conditions on a path of the direct engine; `points` are those of its program."""
    passed = points_of(path, points)
    return frozenset((each.expression, each.outcome == "true") for each in passed if each.kind == "condition")


def conditions_of_marks(marks: Marks, node: Node) -> Conditions:
    """The same, read off the marks of a traced execution."""
    conditions = guards(node)
    return frozenset((index, bool(value)) for index, value in marks if index in conditions)


def guards(node: Node) -> set[int]:
    """The expressions whose marks make the semantic path."""
    from vesper.language.ir.nodes import Branch, For, If, Loop  # whoever only calls nodes loads no IR
    from vesper.language.ir.statements import all_statements

    found = {each.condition.index for each in node.expressions() if isinstance(each, If)}
    for statement in all_statements(node.body):
        match statement:
            case Branch(arms=arms):
                found |= {arm.when.index for arm in arms}
            case Loop(where=where, condition=condition, stop_when=stop_when):
                found |= {each.index for each in (where, condition, stop_when) if each is not None}
    return found | {each.where.index for each in node.expressions() if isinstance(each, For) and each.where is not None}
