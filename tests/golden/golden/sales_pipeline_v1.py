# AUTO-GENERATED - DO NOT EDIT
# sales_pipeline_v1, from nodes/sales/sales_pipeline_v1.vsp
# semantic hash c2bcfc6d5af9239e0f3e28f68798a64a3763acaffb67a5fbf801579c96240505
"""Revenue by region and the best customers of some regions, from the orders in the database."""

from datetime import datetime
from decimal import Decimal
from typing import Any, Final, TypedDict

from vesper.kernels.array import drop as array_drop, flatten as array_flatten, take as array_take
from vesper.kernels.decimal import div as decimal_div
from vesper.kernels.integer import checked_sum
from vesper.kernels.map import entries_of
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import Inputs, read_inputs
from vesper.kernels.runtime.flow import Asking, Request, exact_steps
from vesper.kernels.runtime.forms import distinct_by, grouped_by
from vesper.kernels.runtime.source import Source

D_0: Final = Decimal("0")


class RegionTotal(TypedDict):
    region: str
    revenue: Decimal
    orders: int
    share: Decimal


class Best(TypedDict):
    name: str
    revenue: Decimal


class Totals(TypedDict):
    orders: int
    revenue: Decimal


class Sale(TypedDict):
    order_id: str
    customer_id: str
    region: str
    amount: Decimal
    refunded: bool


class ByRegionGroup(TypedDict):
    key: str
    items: list[Sale]


class ByRegionRow(TypedDict):
    region: str
    revenue: Decimal
    orders: int


class BestRow(TypedDict):
    customer_id: str
    revenue: Decimal


class Customer(TypedDict):
    customer_id: str
    name: str


class Success(TypedDict):
    by_region: list[RegionTotal]
    best: list[Best]
    totals: Totals
    longest_name: str


@exact_steps
def sales_pipeline_v1(
    regions: list[str],
    customers: list[Customer],
    top: int = 3,
    *,
    now: datetime,
) -> Asking[Success]:
    """Revenue by region and the best customers of some regions, from the orders in the database."""

    # constraint, line 22: top > 0
    if not top > 0:
        raise ContractBroken("constraint", 0, {"top": top})

    # constraint, line 22: top <= 100
    if not top <= 100:
        raise ContractBroken("constraint", 1, {"top": top})

    # step sales, line 37
    sales: list[Sale] = yield Request(
        "sales",
        "database_query",
        "read",
        {
            "database": "main",
            "sql": "SELECT order_id, customer_id, region, amount, refunded FROM orders WHERE paid_at >= :since",
            "rows": "all",
        },
        {"bind": {"since": now}},
    )

    # step counted, line 43
    counted_: list[Sale] = distinct_by(
        lambda sale: sale["order_id"],
        (sale for sale in sales if not sale["refunded"] and sale["region"] in regions),
    )

    # step totals, line 50
    items = counted_
    totals = Totals(orders=len(items), revenue=sum((each["amount"] for each in items), D_0))

    # step by_region, line 58
    by_region: list[RegionTotal] = [
        RegionTotal(
            region=sale["region"],
            revenue=sale["revenue"],
            orders=sale["orders"],
            share=D_0
            if totals["revenue"] == D_0
            else decimal_div(sale["revenue"], totals["revenue"], 4, "half_even"),
        )
        for sale in sorted(
            [
                ByRegionRow(
                    region=sale__["key"],
                    revenue=sum((each["amount"] for each in sale__["items"]), D_0),
                    orders=len(sale__["items"]),
                )
                for sale__ in [
                    ByRegionGroup(key=_key, items=_items)
                    for _key, _items in entries_of(
                        grouped_by(lambda sale___: sale___["region"], counted_)
                    )
                ]
            ],
            key=lambda sale_: sale_["revenue"],
            reverse=True,
        )
    ]

    # step best, line 74
    best: list[Best] = array_take(
        array_drop(
            sorted(
                array_flatten(
                    [
                        [
                            Best(name=customer["name"], revenue=sale_["revenue"])
                            for customer in customers
                            if customer["customer_id"] == sale_["customer_id"]
                        ]
                        for sale_ in [
                            BestRow(
                                customer_id=sale__["key"],
                                revenue=sum((each["amount"] for each in sale__["items"]), D_0),
                            )
                            for sale__ in [
                                ByRegionGroup(key=_key, items=_items)
                                for _key, _items in entries_of(
                                    grouped_by(lambda sale___: sale___["customer_id"], counted_)
                                )
                            ]
                        ]
                    ]
                ),
                key=lambda sale: sale["revenue"],
                reverse=True,
            ),
            0,
        ),
        top,
    )

    # step longest_name, line 88
    longest = ""
    for one in best:
        longest = one["name"] if len(one["name"]) > len(longest) else longest
    longest_name = longest

    # postcondition, line 33: length(best) <= top
    if not len(best) <= top:
        raise ContractBroken("postcondition", 0, {"best": best, "top": top})

    # postcondition, line 34: SUM(each.orders FOR each IN by_region) == totals.orders
    if checked_sum(each["orders"] for each in by_region) != totals["orders"]:
        raise ContractBroken("postcondition", 1, {"by_region": by_region, "totals": totals})

    return {"by_region": by_region, "best": best, "totals": totals, "longest_name": longest_name}


INPUTS: Final = Inputs(
    {
        "regions": "array<string>",
        "customers": "array<{customer_id: string, name: string}>",
        "top": "integer",
    },
    {"top": 3},
)


def call(inputs: dict[str, Any], *, now: datetime) -> Asking[Success]:
    """The same for a caller's own objects: each is checked and made a value first."""
    regions, customers, top = read_inputs(INPUTS, inputs)
    return sales_pipeline_v1(regions, customers, top, now=now)


SOURCE: Final = Source(
    "nodes/sales/sales_pipeline_v1.vsp",
    lines={
        88: 22, 92: 22, 95: 37, 115: 56, 125: 72, 131: 65, 147: 86, 148: 85, 150: 83, 160: 79,
        187: 33, 190: 34, 191: 34,
    },
    clauses={
        "constraint": [
            "top > 0",
            "top <= 100",
        ],
        "postcondition": [
            "length(best) <= top",
            "SUM(each.orders FOR each IN by_region) == totals.orders",
        ],
    },
)  # fmt: skip
