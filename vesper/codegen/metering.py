"""Writer of the calls that count fuel: `meter(…)` around the items of a loop, and a few more.

They are written together with the loop, not added to its text afterwards: in the text alone `len(xs)` may be a `count`,
which takes every item, or a `length`, which takes none; and `for x in [e]` may be a loop or a LET.
"""

from __future__ import annotations

import libcst as cst

from vesper.language.ir.new_values import ItemPrice


class Metering:
    """Writer of the calls that count fuel. In a form without metering it changes nothing."""

    def __init__(self, is_metered: bool) -> None:
        self.is_metered = is_metered

    def meter_items(self, items: cst.BaseExpression) -> cst.BaseExpression:
        """Write the items of a loop: `meter(items)`."""
        return cst.Call(_write_meter(), [cst.Arg(items)]) if self.is_metered else items

    def meter_all(self, items: cst.BaseExpression, price: ItemPrice | None = None) -> cst.BaseExpression:
        """Write a collection that is consumed as a whole and must remain a collection: `all_of(meter, items)`."""
        return self._add_meter("all_of", items, *([] if not price else [write_price(price)]))

    def meter_each(self, function: cst.BaseExpression, price: ItemPrice) -> cst.BaseExpression:
        """Write a function that is called once for each item, after all items were read: `before_each(meter,
        function)`.
        """
        return self._add_meter("before_each", function, write_price(price))

    def charge(self, function: str, *arguments: cst.BaseExpression) -> cst.Call:
        """Write a call that counts memory: `function(meter, …)`."""
        return cst.Call(cst.Name(function), [cst.Arg(_write_meter()), *map(cst.Arg, arguments)])

    def meter_node(self, name: str) -> cst.BaseExpression:
        """Write the name of a called node: `spending(meter, node)`."""
        return self._add_meter("spending", cst.Name(name))

    def meter_round(self) -> list[cst.BaseStatement]:
        """Write the charge at the beginning of a round of a loop without items: `spend(meter)`."""
        if not self.is_metered:
            return []
        return [cst.SimpleStatementLine([cst.Expr(cst.Call(cst.Name("spend"), [cst.Arg(_write_meter())]))])]

    def list_parameters(self) -> dict[str, str]:
        """Return the name of the meter's parameter with its type; empty without metering."""
        return {"meter": "Meter"} if self.is_metered else {}

    def _add_meter(self, function: str, what: cst.BaseExpression, *more: cst.BaseExpression) -> cst.BaseExpression:
        return self.charge(function, what, *more) if self.is_metered else what


def write_price(price: ItemPrice | None) -> cst.BaseExpression:
    """Write a price: a number, or a tuple of its parts."""
    return cst.parse_expression(repr(price))


def _write_meter() -> cst.Name:
    """Write the name `meter` as a new object, because a tree contains each of its parts once."""
    return cst.Name("meter")
