"""What the metered form has over the plain one: `meter(…)` around what a loop goes over, and little else.

It is written where the loop is, not put in afterwards: in the text alone `len(xs)` may be a `count`, which takes every
item, or a `length`, which takes none; and `for x in [e]` may be a loop, or how a LET is written.
"""

from __future__ import annotations

import libcst as cst


class Metering:
    """Writes what costs fuel. Where the form is not metered, everything stays as it is."""

    def __init__(self, is_metered: bool) -> None:
        self._is_metered = is_metered

    def items(self, items: cst.BaseExpression) -> cst.BaseExpression:
        """What a loop goes over: `meter(items)`."""
        return cst.Call(_meter(), [cst.Arg(items)]) if self._is_metered else items

    def all_of(self, items: cst.BaseExpression) -> cst.BaseExpression:
        """A collection that is taken as a whole, and must stay one: `all_of(meter, items)`."""
        return self._with_meter("all_of", items)

    def before_each(self, function: cst.BaseExpression) -> cst.BaseExpression:
        """A function that is called once for each item, after all items were taken: `before_each(meter, function)`."""
        return self._with_meter("before_each", function)

    def node(self, name: str) -> cst.BaseExpression:
        """Another node that is called: `spending(meter, node)`."""
        return self._with_meter("spending", cst.Name(name))

    def round(self) -> list[cst.BaseStatement]:
        """The begin of a round of a loop that takes no items: `spend(meter)`."""
        if not self._is_metered:
            return []
        return [cst.SimpleStatementLine([cst.Expr(cst.Call(cst.Name("spend"), [cst.Arg(_meter())]))])]

    def parameters(self) -> dict[str, str]:
        """The name of the parameter, and its type."""
        return {"meter": "Meter"} if self._is_metered else {}

    def _with_meter(self, function: str, what: cst.BaseExpression) -> cst.BaseExpression:
        return cst.Call(cst.Name(function), [cst.Arg(_meter()), cst.Arg(what)]) if self._is_metered else what


def _meter() -> cst.Name:
    """A new one each time: a tree holds each of its parts once."""
    return cst.Name("meter")
