"""Search for the first read of a local in an expression. The local can be bound there."""

from __future__ import annotations

from typing import Literal, TypeAlias

from vesper.language.ir import nodes as ir
from vesper.values.generated.operations import OPERATIONS

FirstUse: TypeAlias = Literal["operand", "iterable"]


def find_first_use(body: ir.Expression, local: int) -> FirstUse | None:
    """Return how `body` reads `local` first. None if something observable may happen before that or instead.

    Failures, marks and fuel are observable. An iterable is the collection that a `for` iterates over.
    """
    return _Search(local).run(body)


class _Search:
    def __init__(self, local: int) -> None:
        self._local = local
        self._found: FirstUse | None = None

    def run(self, body: ir.Expression) -> FirstUse | None:
        self._search(body, "operand")
        return self._found

    def _search(self, expression: ir.Expression, position: FirstUse) -> bool:
        """Search in the order of evaluation; return whether the search may continue after the expression."""
        match expression:
            case ir.Local(number=number):
                if number == self._local:
                    self._found = position
                return number != self._local
            case ir.Literal() | ir.Ref() | ir.Now():
                return True
            case ir.Field(of=of):
                return self._search(of, position)
            case ir.Call():
                return all(self._search(each, position) for each in expression.args) and not (
                    OPERATIONS[expression.op].raises
                )
            case ir.Apply(args=args):
                return all(self._search(each, position) for each in args) and False
            case ir.Array(items=items):
                return all(self._search(each, position) for each in items)
            case ir.RecordValue(fields=fields):
                return all(self._search(value, position) for _, value in fields)
            case ir.If(condition=condition):
                return self._search(condition, position) and False
            case ir.Logical(left=left):
                return self._search(left, position) and False
            case ir.For(over=over):
                return self._search(over, "iterable") and False
            case ir.Let() | ir.Result():
                return False
