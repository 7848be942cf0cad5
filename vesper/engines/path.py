"""The path of an execution: the points that it passed (docs/spec/migration.md, Paths).

The direct engine reports a path as bytes: a set of points, by their numbers in the list of its program. Python reports
marks. Both show which conditions were true and which were false, and are compared by them.
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
"""Indices of conditions, each with a value that it had during the run."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point that an execution may pass."""

    kind: Literal["condition", "loop", "handler"]
    expression: int
    """The index of the condition, of the `for` or of the collection of a loop, else of its `while`.

    Of a handler, its number among the handlers of the node, in program order.
    """
    outcome: str
    """`true` or `false`; `none`, `one` or `many` rounds; `ran`."""


class Pathed(NamedTuple):
    """An outcome with its path."""

    outcome: Outcome
    path: bytes
    """The set of points: number *n* is bit *n* % 64 of the *n* // 64-th word of eight bytes, little-endian.

    Empty where the inputs were refused or the engine panicked.
    """
    fingerprint: int
    """64 bits of a keyed hash of all values read; of refused inputs, of their problems."""


def points_of(path: bytes, points: Sequence[Point]) -> tuple[Point, ...]:
    """Return the points of a path, in the order of their numbers."""
    bits = int.from_bytes(path, "little")
    return tuple(point for number, point in enumerate(points) if bits >> number & 1)


def conditions_of(path: bytes, points: Sequence[Point]) -> Conditions:
    """Return the conditions on a path of the direct engine; `points` are those of its program."""
    passed = points_of(path, points)
    return frozenset((each.expression, each.outcome == "true") for each in passed if each.kind == "condition")


def conditions_of_marks(marks: Marks, node: Node) -> Conditions:
    """Return the conditions in the marks of a traced execution."""
    conditions = guards(node)
    return frozenset((index, bool(value)) for index, value in marks if index in conditions)


def guards(node: Node) -> set[int]:
    """Return the expressions whose marks form the path."""
    from vesper.language.ir.nodes import Branch, For, If, Loop  # a process that only runs nodes imports no IR
    from vesper.language.ir.statements import all_statements

    found = {each.condition.index for each in node.expressions() if isinstance(each, If)}
    for statement in all_statements(node.body):
        match statement:
            case Branch(arms=arms):
                found |= {arm.when.index for arm in arms}
            case Loop(where=where, condition=condition, stop_when=stop_when):
                found |= {each.index for each in (where, condition, stop_when) if each is not None}
    return found | {each.where.index for each in node.expressions() if isinstance(each, For) and each.where is not None}
