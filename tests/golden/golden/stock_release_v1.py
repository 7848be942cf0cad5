# AUTO-GENERATED - DO NOT EDIT
# stock_release_v1, from nodes/shop/stock_release_v1.vsp
# semantic hash d89e36677007b69b2708d5d24849824f4d8ac4ff0dc6a9b77179b66a0c2dba27
"""Give back all that is reserved for an order that comes to nothing."""

from datetime import datetime
from typing import Any, Final, TypedDict

from vesper.kernels.integer import checked
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import Inputs, read_inputs
from vesper.kernels.runtime.flow import Asking, Request, counted, exact_steps, path
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import concat as text_concat


class Reserved(TypedDict):
    sku: str
    pieces: int


class GiveBack(TypedDict):
    released: int


class Success(TypedDict):
    released: int


@exact_steps
def stock_release_v1(event_id: str, order_id: str, *, now: datetime) -> Asking[Success]:
    """Give back all that is reserved for an order that comes to nothing."""

    # constraint, line 12: length(event_id) > 0
    if not len(event_id) > 0:
        raise ContractBroken("constraint", 0, {"event_id": event_id})

    # constraint, line 13: length(order_id) > 0
    if not len(order_id) > 0:
        raise ContractBroken("constraint", 1, {"order_id": order_id})

    # step reserved, line 19
    reserved: list[Reserved] = yield Request(
        "reserved",
        "database_query",
        "read",
        {
            "database": "main",
            "sql": "SELECT sku, pieces FROM reservations WHERE order_id = :order_id AND state = 'open' ORDER BY sku",
            "rows": "all",
        },
        {"bind": {"order_id": order_id}},
    )

    # step give_back, line 25
    released = 0
    iterations = 0
    for row in reserved:
        iterations = counted(iterations, 1000000)

        # step change, line 30
        change: int = yield Request(
            path("change", iterations),
            "database_write",
            "keyed",
            {
                "database": "main",
                "sql": "UPDATE stock SET available = available + :pieces WHERE sku = :sku",
            },
            key=text_concat(text_concat(event_id, " "), row["sku"]),
            arguments={"bind": {"pieces": row["pieces"], "sku": row["sku"]}},
        )
        released = checked(released + checked(row["pieces"] * change))
    give_back = GiveBack(released=released)

    # step close, line 38
    yield Request(
        "close",
        "database_write",
        "txn",
        {"database": "main", "sql": "DELETE FROM reservations WHERE order_id = :order_id"},
        {"bind": {"order_id": order_id}},
    )

    # output released, line 44
    released = give_back["released"]

    return {"released": released}


INPUTS: Final = Inputs({"event_id": "string", "order_id": "string"}, {})


def call(inputs: dict[str, Any], *, now: datetime) -> Asking[Success]:
    """The same for a caller's own objects: each is checked and made a value first."""
    event_id, order_id = read_inputs(INPUTS, inputs)
    return stock_release_v1(event_id, order_id, now=now)


SOURCE: Final = Source(
    "nodes/shop/stock_release_v1.vsp",
    lines={
        36: 12, 40: 13, 43: 19, 59: 27, 62: 30, 70: 35, 73: 36, 77: 38,
    },
    clauses={
        "constraint": [
            "length(event_id) > 0",
            "length(order_id) > 0",
        ],
    },
)  # fmt: skip
