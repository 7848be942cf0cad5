# AUTO-GENERATED - DO NOT EDIT
# order_pricing_v1, from nodes/orders/order_pricing_v1.vsp
# semantic hash 710d13da0f7693765b2493284ede474c8affc8792ba14d67042d7563b0605d86
"""Price an order with tax, volume discount and shipping."""

from decimal import Decimal
from typing import Any, Final, TypedDict

from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.integer import checked_sum
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    MAX_ENTRIES,
    MAX_INTEGER,
    MAX_TEXT,
    MIN_INTEGER,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_ascii,
    is_finite,
    is_text,
    read_inputs,
    undecorated,
)
from vesper.kernels.runtime.source import Source

D_0: Final = Decimal(0)
D_0_05: Final = Decimal("0.05")
D_0_10: Final = Decimal("0.10")
D_0_18: Final = Decimal("0.18")
D_0_20: Final = Decimal("0.20")
D_0_25: Final = Decimal("0.25")
D_5_00: Final = Decimal("5.00")
D_500: Final = Decimal(500)


class Line(TypedDict):
    qty: int
    unit_price: Decimal
    category: str


class Success(TypedDict):
    subtotal: Decimal
    discount: Decimal
    tax: Decimal
    shipping: Decimal
    total: Decimal


TAX_RATE: Final[dict[str, Decimal]] = {
    "book": D_0,
    "food": D_0_05,
    "other": D_0_10,
    "tool": D_0_18,
    "toy": D_0_20,
}


@exact_decimals
def order_pricing_v1(items: list[Line]) -> Success:
    """Price an order with tax, volume discount and shipping."""

    # one pass over items tests 3 clauses; where one is broken, the first is named
    for item in items:
        if not (item["qty"] > 0 and item["unit_price"] >= D_0 and item["category"] in TAX_RATE):
            # constraint, line 11: qty > 0
            if not all(item["qty"] > 0 for item in items):
                raise ContractBroken("constraint", 0, {"items": items})

            # constraint, line 11: unit_price >= 0
            if not all(item["unit_price"] >= D_0 for item in items):
                raise ContractBroken("constraint", 1, {"items": items})

            # precondition, line 29: FORALL line IN items SATISFIES line.category IN tax_rate
            if not all(line["category"] in TAX_RATE for line in items):
                raise ContractBroken("precondition", 0, {"items": items})

    # step pieces, line 37
    pieces = checked_sum(line["qty"] for line in items)

    # step subtotal, line 38
    subtotal = D_0
    for line in items:
        subtotal = subtotal + line["qty"] * line["unit_price"]

    # step tax, line 39
    tax = D_0
    for line in items:
        tax = tax + line["qty"] * line["unit_price"] * TAX_RATE[line["category"]]

    # step shipping_base, line 40
    shipping_base = D_5_00 + D_0_25 * pieces

    # step discount, line 42
    if pieces >= 100:
        discount = subtotal * D_0_10
    elif pieces >= 50:
        discount = subtotal * D_0_05
    else:
        discount = D_0

    # step shipping, line 51
    shipping = D_0 if subtotal - discount >= D_500 else shipping_base

    # step total, line 52
    total = subtotal - discount + tax + shipping

    # postcondition, line 31: total == subtotal - discount + tax + shipping
    if total != subtotal - discount + tax + shipping:
        raise ContractBroken(
            "postcondition",
            0,
            {
                "total": total,
                "subtotal": subtotal,
                "discount": discount,
                "tax": tax,
                "shipping": shipping,
            },
        )

    # postcondition, line 32: total >= 0
    if not total >= D_0:
        raise ContractBroken("postcondition", 1, {"total": total})

    return {
        "subtotal": subtotal,
        "discount": discount,
        "tax": tax,
        "shipping": shipping,
        "total": total,
    }


INPUTS: Final = Inputs(
    {"items": "array<{qty: integer, unit_price: decimal, category: string}>"}, {}
)
RUN: Final = undecorated(order_pricing_v1)


def read_line(given: Any) -> Line:
    """Read a plain Line, field by field."""
    if type(given) is not dict:
        raise NotPlain
    for name in given:
        if type(name) is not str:
            raise NotPlain
    if len(given) != 3:
        raise NotPlain
    qty = given["qty"]
    if type(qty) is not int or qty < MIN_INTEGER or qty > MAX_INTEGER:
        raise NotPlain
    unit_price = given["unit_price"]
    if type(unit_price) is not Decimal or not is_finite(unit_price):
        raise NotPlain
    category = given["category"]
    if (
        type(category) is not str
        or not (is_ascii(category) or is_text(category))
        or len(category) > MAX_TEXT
    ):
        raise NotPlain
    return {"qty": qty, "unit_price": unit_price + D_0, "category": category}


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """Run the node on a caller's own objects; each is checked and converted first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 1:
            raise NotPlain
        items = inputs["items"]
        if type(items) is not list or len(items) > MAX_ENTRIES:
            raise NotPlain
        items = [read_line(item) for item in items]
    except NOT_PLAIN:
        (items,) = read_inputs(INPUTS, inputs)
    return RUN(items)


SOURCE: Final = Source(
    "nodes/orders/order_pricing_v1.vsp",
    lines={
        70: 11, 74: 11, 78: 29, 81: 37, 86: 38, 91: 39, 94: 40, 98: 45, 100: 46, 105: 51, 108: 52,
        111: 31, 112: 31, 126: 32,
    },
    clauses={
        "constraint": [
            "qty > 0",
            "unit_price >= 0",
        ],
        "precondition": [
            "FORALL line IN items SATISFIES line.category IN tax_rate",
        ],
        "postcondition": [
            "total == subtotal - discount + tax + shipping",
            "total >= 0",
        ],
    },
)  # fmt: skip
