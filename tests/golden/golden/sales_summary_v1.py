# AUTO-GENERATED - DO NOT EDIT
# sales_summary_v1, from nodes/sales/sales_summary_v1.vsp
# semantic hash fcc3eab2ada220b45362ca0e772d1e5b1e923aaddc9a1308e87a0b62877d818a
"""What some customers bought, by name, without what they sent back, and its totals."""

from datetime import datetime
from decimal import Decimal
from typing import Any, Final, TypedDict

from vesper.kernels.array import (
    distinct as array_distinct,
    drop as array_drop,
    flatten as array_flatten,
    largest,
    take as array_take,
)
from vesper.kernels.decimal import round as decimal_round, unsigned_zero
from vesper.kernels.integer import checked
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import Inputs, read_inputs
from vesper.kernels.runtime.flow import Asking, Request, exact_steps
from vesper.kernels.runtime.source import Source

D_0: Final = Decimal("0")
D_0_19: Final = Decimal("0.19")
D_1: Final = Decimal("1")


class Line(TypedDict):
    name: str
    order_id: str
    gross: Decimal


class Totals(TypedDict):
    orders: int
    gross: Decimal
    largest: Decimal | None
    buyers: int


class Sale(TypedDict):
    order_id: str
    customer_id: str
    amount: Decimal
    refunded: bool


class BoughtRow(TypedDict):
    order_id: str
    customer_id: str
    gross: Decimal


class Customer(TypedDict):
    customer_id: str
    name: str


class Success(TypedDict):
    lines: list[Line]
    totals: Totals


@exact_steps
def sales_summary_v1(
    customers: list[Customer],
    page: int = 0,
    per_page: int = 10,
    tax: Decimal = D_0_19,
    *,
    now: datetime,
) -> Asking[Success]:
    """What some customers bought, by name, without what they sent back, and its totals."""

    # constraint, line 19: page >= 0
    if not page >= 0:
        raise ContractBroken("constraint", 0, {"page": page})

    # constraint, line 20: per_page > 0
    if not per_page > 0:
        raise ContractBroken("constraint", 1, {"per_page": per_page})

    # constraint, line 20: per_page <= 100
    if not per_page <= 100:
        raise ContractBroken("constraint", 2, {"per_page": per_page})

    # constraint, line 21: tax >= 0
    if not tax >= D_0:
        raise ContractBroken("constraint", 3, {"tax": tax})

    # step sales, line 34
    sales: list[Sale] = yield Request(
        "sales",
        "database_query",
        "read",
        {
            "database": "main",
            "sql": "SELECT order_id, customer_id, amount, refunded FROM orders ORDER BY order_id",
            "rows": "all",
        },
        {},
    )

    # step bought, line 40
    bought: list[Line] = array_flatten(
        [
            [
                Line(name=customer["name"], order_id=sale["order_id"], gross=sale["gross"])
                for customer in customers
                if customer["customer_id"] == sale["customer_id"]
            ]
            for sale in [
                BoughtRow(
                    order_id=sale_["order_id"],
                    customer_id=sale_["customer_id"],
                    gross=decimal_round(
                        unsigned_zero(sale_["amount"] * (D_1 + tax)), 2, "half_even"
                    ),
                )
                for sale_ in sales
                if sale_["amount"] > D_0 and not sale_["refunded"]
            ]
        ]
    )

    # step lines, line 51
    lines: list[Line] = array_take(array_drop(bought, checked(page * per_page)), per_page)

    # step totals, line 58
    items = bought
    totals = Totals(
        orders=len(items),
        gross=sum((each["gross"] for each in items), D_0),
        largest=None if len(items) == 0 else largest(each_["gross"] for each_ in items),
        buyers=len(array_distinct([each__["name"] for each__ in items])),
    )

    # postcondition, line 30: length(lines) <= per_page
    if not len(lines) <= per_page:
        raise ContractBroken("postcondition", 0, {"lines": lines, "per_page": per_page})

    # postcondition, line 31: length(lines) <= totals.orders
    if not len(lines) <= totals["orders"]:
        raise ContractBroken("postcondition", 1, {"lines": lines, "totals": totals})

    return {"lines": lines, "totals": totals}


INPUTS: Final = Inputs(
    {
        "customers": "array<{customer_id: string, name: string}>",
        "page": "integer",
        "per_page": "integer",
        "tax": "decimal",
    },
    {"page": 0, "per_page": 10, "tax": D_0_19},
)


def call(inputs: dict[str, Any], *, now: datetime) -> Asking[Success]:
    """The same for a caller's own objects: each is checked and made a value first."""
    customers, page, per_page, tax = read_inputs(INPUTS, inputs)
    return sales_summary_v1(customers, page, per_page, tax, now=now)


SOURCE: Final = Source(
    "nodes/sales/sales_summary_v1.vsp",
    lines={
        78: 19, 82: 20, 86: 20, 90: 21, 93: 34, 106: 49, 117: 45, 118: 45, 128: 55, 134: 64,
        135: 65, 141: 30, 145: 31,
    },
    clauses={
        "constraint": [
            "page >= 0",
            "per_page > 0",
            "per_page <= 100",
            "tax >= 0",
        ],
        "postcondition": [
            "length(lines) <= per_page",
            "length(lines) <= totals.orders",
        ],
    },
)  # fmt: skip
