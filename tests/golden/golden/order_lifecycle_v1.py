# AUTO-GENERATED - DO NOT EDIT
# order_lifecycle_v1, from nodes/orders/order_lifecycle_v1.vsp
# semantic hash bb3ec130dd5efa0a623a6619dae19e969499382bdede00c49caf0c9cbbe3fadd
"""Move an order on - ship, deliver, cancel, return - where its state and its age allow it."""

from datetime import datetime
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.enum import text as enum_text
from vesper.kernels.integer import text as integer_text
from vesper.kernels.json import from_value as json_from_value
from vesper.kernels.raised import ContractBroken, DeclaredError
from vesper.kernels.runtime.entry import Inputs, read_inputs
from vesper.kernels.runtime.flow import FAILURES, Asking, Request, code_of, exact_steps
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import concat as text_concat, join as text_join


class Success(TypedDict):
    before: Literal["paid", "shipped", "cancelled", "delivered", "returned"]
    after: Literal["paid", "shipped", "cancelled", "delivered", "returned"]
    refund_due: bool
    event_id: str


RETURN_DAYS: Final[int] = 30
STAFF: Final[frozenset[str]] = frozenset({"support", "warehouse"})


def check_invariants(
    *,
    error_code: Literal["not_allowed", "not_possible", "too_late", "no_tracking"] | None,
    after: Literal["paid", "shipped", "cancelled", "delivered", "returned"] | None,
) -> None:
    # invariant, line 45: error.error_code IS NULL OR output.after IS NULL
    if not (error_code is None or after is None):
        raise ContractBroken("invariant", 0, {"error_code": error_code, "after": after})


@exact_steps
def order_lifecycle_v1(
    order_id: str,
    action: Literal["ship", "deliver", "cancel", "send_back"],
    actor: Literal["customer", "warehouse", "support"],
    days_since_delivery: int = 0,
    tracking: str | None = None,
    *,
    now: datetime,
) -> Asking[Success]:
    """Move an order on - ship, deliver, cancel, return - where its state and its age allow it."""

    # constraint, line 11: length(order_id) > 0
    if not len(order_id) > 0:
        raise ContractBroken("constraint", 0, {"order_id": order_id})

    # constraint, line 11: length(order_id) <= 64
    if not len(order_id) <= 64:
        raise ContractBroken("constraint", 1, {"order_id": order_id})

    # constraint, line 14: days_since_delivery >= 0
    if not days_since_delivery >= 0:
        raise ContractBroken("constraint", 2, {"days_since_delivery": days_since_delivery})

    # step now_in, line 48
    now_in: Literal["paid", "shipped", "cancelled", "delivered", "returned"] = yield Request(
        "now_in", "state_read", "read", {"machine": "order"}, {"entity": order_id}
    )

    # step after, line 53
    try:
        after: Literal["paid", "shipped", "cancelled", "delivered", "returned"]
        if action == "ship":
            # raise_1, line 60
            if actor == "customer":
                error_code: Literal["not_allowed", "not_possible", "too_late", "no_tracking"] = (
                    "not_allowed"
                )
                message = "customers do not ship"
                state: str | None = enum_text(now_in)
                check_invariants(error_code=error_code, after=None)

                raise DeclaredError({"error_code": error_code, "message": message, "state": state})

            # raise_2, line 63
            if tracking is None:
                error_code = "no_tracking"
                message = text_join(["a shipment of ", order_id, " needs its tracking number"], "")
                state = None
                check_invariants(error_code=error_code, after=None)

                raise DeclaredError({"error_code": error_code, "message": message, "state": state})

            # step ship_order, line 66
            yield Request(
                "ship_order",
                "state_transition",
                "txn",
                {"machine": "order", "from": "paid", "to": "shipped"},
                {"entity": order_id},
            )
            after = "shipped"
        elif action == "deliver":
            # step deliver_order, line 76
            yield Request(
                "deliver_order",
                "state_transition",
                "txn",
                {"machine": "order", "from": "shipped", "to": "delivered"},
                {"entity": order_id},
            )
            after = "delivered"
        elif action == "cancel":
            # step cancel_order, line 81
            try:
                yield Request(
                    "cancel_order",
                    "state_transition",
                    "txn",
                    {"machine": "order", "from": "paid", "to": "cancelled"},
                    {"entity": order_id},
                )
            except FAILURES as failure:
                if code_of(failure) != "invalid_transition":
                    raise
                error_code = "not_possible"
                message = text_join(
                    [
                        "order ",
                        order_id,
                        " is ",
                        enum_text(now_in),
                        ": what has left the house is sent back, not cancelled",
                    ],
                    "",
                )
                state = enum_text(now_in)
                check_invariants(error_code=error_code, after=None)

                raise DeclaredError(
                    {"error_code": error_code, "message": message, "state": state}
                ) from failure
            after = "cancelled"
        else:
            # conditional_3, line 97
            if (
                now_in == "delivered"
                and days_since_delivery > RETURN_DAYS
                and enum_text(actor) not in STAFF
            ):
                error_code = "too_late"
                message = text_join(
                    [
                        integer_text(days_since_delivery),
                        " days are more than ",
                        integer_text(RETURN_DAYS),
                    ],
                    "",
                )
                state = enum_text(now_in)
                check_invariants(error_code=error_code, after=None)

                raise DeclaredError({"error_code": error_code, "message": message, "state": state})

            # step return_order, line 102
            yield Request(
                "return_order",
                "state_transition",
                "txn",
                {"machine": "order", "from": "shipped,delivered", "to": "returned"},
                {"entity": order_id},
            )
            after = "returned"
    except FAILURES as failure:
        if code_of(failure) != "invalid_transition":
            raise
        error_code = "not_possible"
        message = text_join(
            [enum_text(action), " is not possible for an order that is ", enum_text(now_in)], ""
        )
        state = enum_text(now_in)
        check_invariants(error_code=error_code, after=None)

        raise DeclaredError(
            {"error_code": error_code, "message": message, "state": state}
        ) from failure

    # step publish, line 108
    publish: str = yield Request(
        "publish",
        "event_publish",
        "keyed",
        {"topic": "orders.moved"},
        key=text_concat(text_concat(order_id, " "), enum_text(after)),
        arguments={
            "payload": json_from_value(
                {"order": order_id, "from": now_in, "to": after, "by": actor, "tracking": tracking},
                "{order: string, from: enum[paid, shipped, cancelled, delivered, returned], to: enum[paid, shipped, cancelled, delivered, returned], by: enum[customer, warehouse, support], tracking: optional<string>}",
            ),
            "event_key": order_id,
        },
    )

    # output refund_due, line 117
    refund_due = after in ["cancelled", "returned"]

    # postcondition, line 42: before != after
    if now_in == after:
        raise ContractBroken("postcondition", 0, {"before": now_in, "after": after})

    # postcondition, line 43: refund_due == (after IN [cancelled, returned])
    if refund_due != (after in ["cancelled", "returned"]):
        raise ContractBroken("postcondition", 1, {"refund_due": refund_due, "after": after})
    check_invariants(error_code=None, after=after)

    return {"before": now_in, "after": after, "refund_due": refund_due, "event_id": publish}


INPUTS: Final = Inputs(
    {
        "order_id": "string",
        "action": "enum[ship, deliver, cancel, send_back]",
        "actor": "enum[customer, warehouse, support]",
        "days_since_delivery": "integer",
        "tracking": "optional<string>",
    },
    {"days_since_delivery": 0},
)


def call(inputs: dict[str, Any], *, now: datetime) -> Asking[Success]:
    """The same for a caller's own objects: each is checked and made a value first."""
    order_id, action, actor, days_since_delivery, tracking = read_inputs(INPUTS, inputs)
    return order_lifecycle_v1(order_id, action, actor, days_since_delivery, tracking, now=now)


SOURCE: Final = Source(
    "nodes/orders/order_lifecycle_v1.vsp",
    lines={
        37: 45, 54: 11, 58: 11, 62: 14, 65: 48, 82: 62, 87: 65, 91: 65, 94: 66, 104: 76, 115: 81,
        126: 91, 139: 90, 151: 101, 162: 101, 165: 102, 177: 106, 183: 106, 188: 108, 193: 114,
        195: 111, 208: 42, 212: 43,
    },
    clauses={
        "constraint": [
            "length(order_id) > 0",
            "length(order_id) <= 64",
            "days_since_delivery >= 0",
        ],
        "postcondition": [
            "before != after",
            "refund_due == (after IN [cancelled, returned])",
        ],
        "invariant": [
            "error.error_code IS NULL OR output.after IS NULL",
        ],
    },
)  # fmt: skip
