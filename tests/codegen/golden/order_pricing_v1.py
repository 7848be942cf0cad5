# AUTO-GENERATED - DO NOT EDIT
# order_pricing_v1, from nodes/orders/order_pricing_v1.vsp
# semantic hash 710d13da0f7693765b2493284ede474c8affc8792ba14d67042d7563b0605d86
"""Price an order with tax, volume discount and shipping."""

from decimal import Decimal
from typing import Final, TypedDict

from vesper.kernels.decimal import exact_decimals
from vesper.kernels.integer import checked_sum
from vesper.kernels.map import at as map_at
from vesper.kernels.raised import ContractBroken

D_0: Final = Decimal("0")
D_0_05: Final = Decimal("0.05")
D_0_10: Final = Decimal("0.10")
D_0_18: Final = Decimal("0.18")
D_0_20: Final = Decimal("0.20")
D_0_25: Final = Decimal("0.25")
D_5_00: Final = Decimal("5.00")
D_500: Final = Decimal("500")


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
    subtotal = sum((Decimal(line["qty"]) * line["unit_price"] for line in items), D_0)

    # step tax, line 39
    tax = sum(
        (
            Decimal(line["qty"]) * line["unit_price"] * map_at(TAX_RATE, line["category"])
            for line in items
        ),
        D_0,
    )

    # step shipping_base, line 40
    shipping_base = D_5_00 + D_0_25 * Decimal(pieces)

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
