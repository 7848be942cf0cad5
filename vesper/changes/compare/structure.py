"""Where two versions differ in their IR: changed expressions, and conditions under which inputs reach them.

Expressions are compared by their form, without places, indices and names of locals. The innermost changed ones are
targets: inputs that reach them, and that lie on the boundary of a changed comparison, show most changes first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import fields

from vesper.language.ir.nodes import Call, Expression, Node, children, walk
from vesper.values.types import BOOLEAN
from vesper.verify.solve.goals import branch_goals, expression_goals
from vesper.verify.solve.search import Wanted

_UNCOMPARED = frozenset({"place", "index", "local", "locals", "number", "note", "names", "declared"})
_COMPARISONS = frozenset({"equal", "not_equal", "less", "less_or_equal", "greater", "greater_or_equal"})
_MAX_GOALS = 64


class Forms:
    """Forms of the expressions of one node, by index; equal forms mean the same under the same names."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._by_index: dict[int, Hashable] = {}
        self.expressions = node.expressions()
        for each in self.expressions:
            self._by_index[each.index] = hash((type(each).__name__, *self._parts(each)))

    def of(self, expression: Expression) -> Hashable:
        return self._by_index[expression.index]

    def at(self, index: int) -> Hashable:
        return self._by_index[index]

    def all(self) -> frozenset[Hashable]:
        return frozenset(self._by_index.values())

    def _parts(self, expression: Expression) -> Iterator[Hashable]:
        inner = {id(each) for each in children(expression)}
        for each in fields(expression):
            value = getattr(expression, each.name)
            if each.name not in _UNCOMPARED and id(value) not in inner and not _holds(value, inner):
                yield each.name, repr(value)
        yield from (self._by_index[each.index] for each in children(expression))


def _holds(value: object, inner: set[int]) -> bool:
    """Return whether a field consists of operands, whose forms are compared."""
    return isinstance(value, tuple) and any(
        id(each) in inner or (isinstance(each, tuple) and id(each[-1]) in inner) for each in value
    )


def changed_expressions(node: Node, other: Node) -> list[Expression]:
    """Return the innermost expressions of a node whose form the other node lacks, in program order."""
    own, others = Forms(node), Forms(other).all()
    changed = {each.index for each in own.expressions if own.of(each) not in others}
    return [
        each
        for each in own.expressions
        if each.index in changed and not any(part.index in changed for part in children(each))
    ]


def targets(node: Node, other: Node) -> list[list[Wanted]]:
    """Return sets of conditions under which an input probably shows a change.

    First the boundaries of changed comparisons, then both results of changed conditions, then the ways to changed
    values. Contracts that did not change take part.
    """
    others = Forms(other).all()
    forms = Forms(node)
    innermost = {each.index for each in changed_expressions(node, other)}
    roots = [root for root in node.roots() if forms.of(root) not in others]
    clauses = [each.holds for each in (*node.constraints, *node.preconditions)]
    parts = [part for root in roots for part in walk(root)]
    touched = [each for each in parts if any(part.index in innermost for part in walk(each))]
    ways = expression_goals(node, {each.index for each in touched})
    branches = branch_goals(node)
    contracts: list[Wanted] = [(each, True) for each in clauses if forms.of(each) in others]
    found: list[list[Wanted]] = []
    found += [[*ways.get(each.index, []), (_equality(each), True)] for each in touched if _is_comparison(each)]
    for root in roots:
        is_clause = any(root is each for each in clauses)
        results = [[(root, value)] for value in (False, True)] if is_clause else []
        found += results + [branches[root.index, value] for value in (True, False) if (root.index, value) in branches]
    conditions = (each for each in touched if each.type == BOOLEAN and each.index in ways)
    found += [[*ways[each.index], (each, value)] for each in conditions for value in (True, False)]
    found += [ways[each.index] for each in touched if ways.get(each.index)]
    return [[*contracts, *each] for each in _distinct(found)[:_MAX_GOALS]]


def _is_comparison(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.op.partition(".")[2] in _COMPARISONS


def _equality(comparison: Expression) -> Expression:
    """Return the condition that both sides of a comparison are equal, which is its boundary."""
    assert isinstance(comparison, Call)
    family = comparison.op.partition(".")[0]
    return Call(f"{family}.equal", comparison.of, comparison.args, BOOLEAN, comparison.place)


def _distinct(goals: list[list[Wanted]]) -> list[list[Wanted]]:
    return list({tuple((id(condition), value) for condition, value in each): each for each in goals}.values())
