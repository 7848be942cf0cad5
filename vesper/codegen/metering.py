"""Write the calls that count fuel: `meter(…)` around the items of a loop, and a few more.

It is written where the loop is, not put in afterwards: in the text alone `len(xs)` may be a `count`, which takes every
item, or a `length`, which takes none; and `for x in [e]` may be a loop, or how a LET is written.
"""

from __future__ import annotations

import libcst as cst

from vesper.language.ir.new_values import ItemPrice


class Metering:
    """Write the calls that count fuel; in a form without metering, change nothing."""

    def __init__(self, is_metered: bool) -> None:
        self.is_metered = is_metered

    def meter_items(self, items: cst.BaseExpression) -> cst.BaseExpression:
        """Write the items of a loop: `meter(items)`."""
        return cst.Call(_write_meter(), [cst.Arg(items)]) if self.is_metered else items

    def meter_all(self, items: cst.BaseExpression, price: ItemPrice | None = None) -> cst.BaseExpression:
        """A collection that is taken as a whole, and must stay one: `all_of(meter, items)`."""
        return self._add_meter("all_of", items, *([] if not price else [write_price(price)]))

    def meter_each(self, function: cst.BaseExpression, price: ItemPrice) -> cst.BaseExpression:
        """A function that is called once for each item, after all items were taken: `before_each(meter, function)`."""
        return self._add_meter("before_each", function, write_price(price))

    def charge(self, function: str, *arguments: cst.BaseExpression) -> cst.Call:
        """Write a call that counts memory: `function(meter, …)`."""
        return cst.Call(cst.Name(function), [cst.Arg(_write_meter()), *map(cst.Arg, arguments)])

    def meter_node(self, name: str) -> cst.BaseExpression:
        """Another node that is called: `spending(meter, node)`."""
        return self._add_meter("spending", cst.Name(name))

    def meter_round(self) -> list[cst.BaseStatement]:
        """The begin of a round of a loop that takes no items: `spend(meter)`."""
        if not self.is_metered:
            return []
        return [cst.SimpleStatementLine([cst.Expr(cst.Call(cst.Name("spend"), [cst.Arg(_write_meter())]))])]

    def list_parameters(self) -> dict[str, str]:
        """The name of the parameter, and its type."""
        return {"meter": "Meter"} if self.is_metered else {}

    def _add_meter(self, function: str, what: cst.BaseExpression, *more: cst.BaseExpression) -> cst.BaseExpression:
        return self.charge(function, what, *more) if self.is_metered else what


def write_price(price: ItemPrice | None) -> cst.BaseExpression:
    """Write a price: a number, or a tuple of its parts."""
    return cst.parse_expression(repr(price))


def _write_meter() -> cst.Name:
    """A new one each time: a tree holds each of its parts once."""
    return cst.Name("meter")
