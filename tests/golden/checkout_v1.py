# AUTO-GENERATED - DO NOT EDIT
# checkout_v1, from nodes/orders/checkout_v1.vsp
# semantic hash 1681ccaa3b7c808aa84a713474322699ee632a0e1c18eea999b30095fc34ac1f
"""Price a basket, reserve it, judge the payment and take it; what comes to nothing is undone."""

from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.decimal import round as decimal_round
from vesper.kernels.decimal import text as decimal_text
from vesper.kernels.integer import checked
from vesper.kernels.integer import text as integer_text
from vesper.kernels.map import get as map_get
from vesper.kernels.map import put as map_put
from vesper.kernels.raised import ContractBroken, DeclaredError
from vesper.kernels.runtime.entry import Inputs, read_inputs
from vesper.kernels.runtime.flow import (
    FAILURES,
    Asking,
    call_node,
    code_of,
    counted,
    exact_steps,
    path,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import concat as text_concat
from vesper.kernels.text import join as text_join

from .order_pricing_v1 import order_pricing_v1
from .payment_decision_v1 import payment_decision_v1
from .payment_handler_v1 import payment_handler_v1
from .stock_release_v1 import stock_release_v1
from .stock_reservation_v1 import stock_reservation_v1

D_0: Final = Decimal(0)


class PriceRow(TypedDict):
    qty: int
    unit_price: Decimal
    category: str


class Price(TypedDict):
    subtotal: Decimal
    discount: Decimal
    tax: Decimal
    shipping: Decimal
    total: Decimal


class Judged(TypedDict):
    decision: Literal["approve", "review", "decline"]
    fee: Decimal
    risk: int
    new_balance: Decimal


class Reservation(TypedDict):
    reserved: int
    left: int
    is_repeat: bool


class Reserved(TypedDict):
    pieces: dict[str, int]


class Paid(TypedDict):
    transaction_id: str
    status: Literal["completed", "pending"]
    amount_charged: Decimal
    is_repeat: bool
    at: datetime


class BasketLine(TypedDict):
    sku: str
    qty: int
    unit_price: Decimal
    category: str


class Success(TypedDict):
    outcome: Literal["paid", "review"]
    total: Decimal
    transaction_id: str | None
    reserved: dict[str, int]


def check_postconditions(*, outcome: Literal["paid", "review"], transaction_id: str | None) -> None:
    # postcondition, line 36: outcome == paid => transaction_id IS NOT NULL
    if not (outcome != "paid" or transaction_id is not None):
        raise ContractBroken(
            "postcondition", 0, {"outcome": outcome, "transaction_id": transaction_id}
        )


@exact_steps
def checkout_v1(
    order_id: str,
    user_id: str,
    basket: list[BasketLine],
    balance: Decimal,
    country: str,
    user_age_days: int,
    *,
    now: datetime,
) -> Asking[Success]:
    """Price a basket, reserve it, judge the payment and take it; what comes to nothing is
    undone."""

    # constraint, line 17: length(order_id) > 0
    if not len(order_id) > 0:
        raise ContractBroken("constraint", 0, {"order_id": order_id})

    # constraint, line 17: length(order_id) <= 64
    if not len(order_id) <= 64:
        raise ContractBroken("constraint", 1, {"order_id": order_id})

    # constraint, line 18: length(user_id) > 0
    if not len(user_id) > 0:
        raise ContractBroken("constraint", 2, {"user_id": user_id})

    # one pass over basket tests 3 clauses; where one is broken, the first is named
    for item in basket:
        if not (len(item["sku"]) > 0 and item["qty"] > 0 and item["unit_price"] >= D_0):
            # constraint, line 14: length(sku) > 0
            if not all(len(item["sku"]) > 0 for item in basket):
                raise ContractBroken("constraint", 3, {"basket": basket})

            # constraint, line 14: qty > 0
            if not all(item["qty"] > 0 for item in basket):
                raise ContractBroken("constraint", 4, {"basket": basket})

            # constraint, line 14: unit_price >= 0
            if not all(item["unit_price"] >= D_0 for item in basket):
                raise ContractBroken("constraint", 5, {"basket": basket})

    # constraint, line 21: length(country) == 2
    if len(country) != 2:
        raise ContractBroken("constraint", 6, {"country": country})

    # constraint, line 22: user_age_days >= 0
    if not user_age_days >= 0:
        raise ContractBroken("constraint", 7, {"user_age_days": user_age_days})

    # validation_1, line 43
    if not len(basket) > 0:
        raise DeclaredError(
            {"error_code": "empty_basket", "message": "there is nothing in the basket"}
        )

    # step price, line 46
    try:
        price: Price = yield from call_node(
            "price",
            order_pricing_v1,
            now,
            items=[
                PriceRow(qty=line["qty"], unit_price=line["unit_price"], category=line["category"])
                for line in basket
            ],
        )
    except FAILURES as failure:
        if code_of(failure) != "contract_broken":
            raise
        raise DeclaredError(
            {"error_code": "no_price", "message": "something in the basket has no price"}
        ) from failure

    # step total, line 55
    total = decimal_round(price["total"], 2, "half_even")

    # step judged, line 59
    try:
        judged: Judged = yield from call_node(
            "judged",
            payment_decision_v1,
            now,
            amount=total,
            balance=balance,
            currency="EUR",
            country=country,
            user_age_days=user_age_days,
        )
    except FAILURES as failure:
        if code_of(failure) != "contract_broken":
            raise
        judged = Judged(decision="decline", fee=D_0, risk=100, new_balance=balance)

    # raise_2, line 66
    if judged["decision"] == "decline":
        message = text_join(
            [
                "a payment of ",
                decimal_text(total),
                " is declined, at a risk of ",
                integer_text(judged["risk"]),
            ],
            "",
        )

        raise DeclaredError({"error_code": "declined", "message": message})

    # step reserved, line 70
    try:
        pieces: dict[str, int] = {}
        iterations = 0
        for line in basket:
            iterations = counted(iterations, 1000000)

            # step reservation, line 76
            reservation: Reservation = yield from call_node(
                path("reservation", iterations),
                stock_reservation_v1,
                now,
                sku=line["sku"],
                pieces=line["qty"],
                order_id=order_id,
            )
            pieces = map_put(
                pieces,
                line["sku"],
                checked(
                    (0 if (value := map_get(pieces, line["sku"])) is None else value)
                    + reservation["reserved"]
                ),
            )
        reserved = Reserved(pieces=pieces)
    except FAILURES as failure:
        if code_of(failure) in ("unknown_article", "out_of_stock"):
            # step release_part, line 84
            yield from call_node(
                "release_part",
                stock_release_v1,
                now,
                event_id=text_concat("part ", order_id),
                order_id=order_id,
            )
            raise DeclaredError(
                {"error_code": "out_of_stock", "message": "not all of the basket is in stock"}
            ) from failure
        else:
            # step release_rest, line 91
            yield from call_node(
                "release_rest",
                stock_release_v1,
                now,
                event_id=text_concat("rest ", order_id),
                order_id=order_id,
            )
            raise

    # return_3, line 96
    if judged["decision"] == "review":
        outcome: Literal["paid", "review"] = "review"
        transaction_id: str | None = None
        reserved_: dict[str, int] = reserved["pieces"]
        check_postconditions(outcome=outcome, transaction_id=transaction_id)

        return {
            "outcome": outcome,
            "total": total,
            "transaction_id": transaction_id,
            "reserved": reserved_,
        }

    # step paid, line 100
    try:
        paid: Paid = yield from call_node(
            "paid",
            payment_handler_v1,
            now,
            order_id=order_id,
            user_id=user_id,
            amount=total,
            idempotency_key=order_id,
        )
    except FAILURES as failure:
        if code_of(failure) == "card_declined":
            # step release_declined, line 107
            yield from call_node(
                "release_declined",
                stock_release_v1,
                now,
                event_id=text_concat("declined ", order_id),
                order_id=order_id,
            )
            raise DeclaredError(
                {
                    "error_code": "card_declined",
                    "message": "the card was declined; nothing is reserved any more",
                }
            ) from failure
        elif code_of(failure) in ("provider_unavailable", "order_not_pending"):
            message = text_concat(decimal_text(total), " could not be paid; the basket waits")

            raise DeclaredError({"error_code": "payment_failed", "message": message}) from failure
        else:
            raise

    # output outcome, line 113
    outcome = "paid"

    # output total, line 113
    total_ = paid["amount_charged"]

    # output transaction_id, line 113
    transaction_id = paid["transaction_id"]

    # output reserved, line 113
    reserved_ = reserved["pieces"]
    check_postconditions(outcome=outcome, transaction_id=transaction_id)

    return {
        "outcome": outcome,
        "total": total_,
        "transaction_id": transaction_id,
        "reserved": reserved_,
    }


INPUTS: Final = Inputs(
    {
        "order_id": "string",
        "user_id": "string",
        "basket": "array<{sku: string, qty: integer, unit_price: decimal, category: string}>",
        "balance": "decimal",
        "country": "string",
        "user_age_days": "integer",
    },
    {},
)


def call(inputs: dict[str, Any], *, now: datetime) -> Asking[Success]:
    """Run the node on a caller's own objects; each is checked and converted first."""
    order_id, user_id, basket, balance, country, user_age_days = read_inputs(INPUTS, inputs)
    return checkout_v1(order_id, user_id, basket, balance, country, user_age_days, now=now)


SOURCE: Final = Source(
    "nodes/orders/checkout_v1.vsp",
    lines={
        96: 36, 117: 17, 121: 17, 125: 18, 132: 14, 136: 14, 140: 14, 144: 21, 148: 22, 152: 44,
        158: 46, 170: 53, 175: 57, 179: 59, 196: 68, 206: 68, 213: 72, 216: 76, 224: 80, 227: 80,
        236: 84, 240: 87, 243: 88, 248: 91, 252: 94, 273: 100, 285: 107, 289: 107, 292: 108,
        299: 110, 301: 110,
    },
    clauses={
        "constraint": [
            "length(order_id) > 0",
            "length(order_id) <= 64",
            "length(user_id) > 0",
            "length(sku) > 0",
            "qty > 0",
            "unit_price >= 0",
            "length(country) == 2",
            "user_age_days >= 0",
        ],
        "postcondition": [
            "outcome == paid => transaction_id IS NOT NULL",
        ],
    },
)  # fmt: skip
