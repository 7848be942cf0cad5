# AUTO-GENERATED - DO NOT EDIT
# payment_handler_v1, from nodes/payments/payment_handler_v1.vsp
# semantic hash 1ecbaf441abfc0e17b06552633f441ab9cd8ee5c20df3ac691f81baa563c358f
"""Charge a card exactly once, record the transaction and settle the order."""

from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.decimal import scale as decimal_scale
from vesper.kernels.decimal import text as decimal_text
from vesper.kernels.decimal import to_integer as decimal_to_integer
from vesper.kernels.json import from_value as json_from_value
from vesper.kernels.raised import ContractBroken, DeclaredError
from vesper.kernels.runtime.entry import Inputs, read_inputs
from vesper.kernels.runtime.flow import (
    FAILURES,
    Asking,
    Request,
    code_of,
    exact_steps,
    http_class,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import concat as text_concat
from vesper.kernels.text import join as text_join
from vesper.kernels.text import trim as text_trim

D_0: Final = Decimal(0)
D_100: Final = Decimal(100)
D_50000: Final = Decimal(50000)


class Transaction(TypedDict):
    transaction_id: str
    status: str
    amount: Decimal


class CallStripeApi(TypedDict):
    id: str
    status: Literal["succeeded", "pending"]


class Success(TypedDict):
    transaction_id: str
    status: Literal["completed", "pending"]
    amount_charged: Decimal
    is_repeat: bool
    at: datetime


def check_postconditions(*, amount_charged: Decimal, amount: Decimal) -> None:
    # postcondition, line 47: amount_charged == amount
    if amount_charged != amount:
        raise ContractBroken(
            "postcondition", 0, {"amount_charged": amount_charged, "amount": amount}
        )


@exact_steps
def payment_handler_v1(
    order_id: str,
    user_id: str,
    amount: Decimal,
    idempotency_key: str | None = None,
    *,
    now: datetime,
) -> Asking[Success]:
    """Charge a card exactly once, record the transaction and settle the order."""

    # constraint, line 18: length(order_id) > 0
    if not len(order_id) > 0:
        raise ContractBroken("constraint", 0, {"order_id": order_id})

    # constraint, line 18: length(order_id) <= 64
    if not len(order_id) <= 64:
        raise ContractBroken("constraint", 1, {"order_id": order_id})

    # constraint, line 19: length(user_id) > 0
    if not len(user_id) > 0:
        raise ContractBroken("constraint", 2, {"user_id": user_id})

    # constraint, line 20: amount > 0
    if not amount > D_0:
        raise ContractBroken("constraint", 3, {"amount": amount})

    # constraint, line 20: amount <= 50000
    if not amount <= D_50000:
        raise ContractBroken("constraint", 4, {"amount": amount})

    # precondition, line 45: scale(amount) <= 2
    if not decimal_scale(amount) <= 2:
        raise ContractBroken("precondition", 0, {"amount": amount})

    # validation_1, line 52
    if text_trim(order_id) != order_id:
        raise DeclaredError(
            {"error_code": "bad_order_id", "message": "an order id has no spaces around it"}
        )

    # step validate_request, line 55
    validate_request: Transaction | None
    if idempotency_key is not None:
        validate_request = yield Request(
            "validate_request",
            "database_query",
            "read",
            {
                "database": "main",
                "sql": (
                    "SELECT transaction_id, status, amount "
                    "FROM transactions "
                    "WHERE idempotency_key = :key"
                ),
                "rows": "optional",
            },
            {"bind": {"key": idempotency_key}},
        )
    else:
        validate_request = None

    # raise_2, line 62
    if validate_request is not None and validate_request["amount"] != amount:
        message = text_concat("this key was used for another amount than ", decimal_text(amount))

        raise DeclaredError({"error_code": "other_amount", "message": message})

    # return_3, line 66
    if validate_request is not None:
        transaction_id = validate_request["transaction_id"]
        status: Literal["completed", "pending"] = (
            "completed" if validate_request["status"] == "succeeded" else "pending"
        )
        is_repeat = True
        at = now
        check_postconditions(amount_charged=amount, amount=amount)

        return {
            "transaction_id": transaction_id,
            "status": status,
            "amount_charged": amount,
            "is_repeat": is_repeat,
            "at": at,
        }

    # step begin, line 75
    try:
        yield Request(
            "begin",
            "state_transition",
            "txn",
            {"machine": "order_lifecycle", "from": "pending,payment_failed", "to": "processing"},
            {"entity": order_id},
        )
    except FAILURES as failure:
        if code_of(failure) != "invalid_transition":
            raise
        message = text_join(["order ", order_id, " is not to be paid"], "")

        raise DeclaredError({"error_code": "order_not_pending", "message": message}) from failure

    # step call_stripe_api, line 85
    try:
        # timeout 30s; at most 3 attempts on timeout or unavailable, backoff from 200ms times 2 up
        #   to 5s, full jitter
        call_stripe_api: CallStripeApi = yield Request(
            "call_stripe_api",
            "http_request",
            "keyed",
            {"provider": "stripe", "method": "POST"},
            key=order_id,
            arguments={
                "endpoint": "/v1/charges",
                "body": json_from_value(
                    {
                        "amount": decimal_to_integer(amount * D_100),
                        "currency": "usd",
                        "customer": user_id,
                        "description": text_concat("order ", order_id),
                    },
                    "{amount: integer, currency: string, customer: string, description: string}",
                ),
            },
        )
    except FAILURES as failure:
        if code_of(failure) == "http_402":
            # step mark_declined, line 104
            yield Request(
                "mark_declined",
                "state_transition",
                "txn",
                {"machine": "order_lifecycle", "from": "processing", "to": "payment_failed"},
                {"entity": order_id},
            )
            raise DeclaredError(
                {"error_code": "card_declined", "message": "the card was declined"}
            ) from failure
        elif (
            code_of(failure) in ("timeout", "unavailable")
            or http_class(code_of(failure)) == "http_5xx"
        ):
            # step mark_unavailable, line 107
            yield Request(
                "mark_unavailable",
                "state_transition",
                "txn",
                {"machine": "order_lifecycle", "from": "processing", "to": "payment_failed"},
                {"entity": order_id},
            )
            raise DeclaredError(
                {"error_code": "provider_unavailable", "message": "the provider did not answer"}
            ) from failure
        else:
            raise

    # step record, line 110
    try:
        yield Request(
            "record",
            "database_write",
            "txn",
            {
                "database": "main",
                "sql": (
                    "INSERT INTO transactions (transaction_id, order_id, user_id, amount, "
                    "status, idempotency_key, created_at) "
                    "VALUES (:transaction_id, :order_id, :user_id, :amount, :status, "
                    ":idempotency_key, :created_at)"
                ),
            },
            {
                "bind": {
                    "transaction_id": call_stripe_api["id"],
                    "order_id": order_id,
                    "user_id": user_id,
                    "amount": amount,
                    "status": call_stripe_api["status"],
                    "idempotency_key": idempotency_key,
                    "created_at": now,
                }
            },
        )
    except FAILURES as failure:
        if code_of(failure) == "conflict":
            message = text_join(["charge ", call_stripe_api["id"], " is recorded already"], "")

            raise DeclaredError({"error_code": "already_recorded", "message": message}) from failure
        else:
            # step refund, line 127
            yield Request(
                "refund",
                "http_request",
                "keyed",
                {"provider": "stripe", "method": "POST"},
                key=text_concat("refund ", call_stripe_api["id"]),
                arguments={
                    "endpoint": "/v1/refunds",
                    "body": json_from_value({"charge": call_stripe_api["id"]}, "{charge: string}"),
                },
            )

            # step mark_unrecorded, line 135
            yield Request(
                "mark_unrecorded",
                "state_transition",
                "txn",
                {"machine": "order_lifecycle", "from": "processing", "to": "payment_failed"},
                {"entity": order_id},
            )
            raise

    # step settle, line 137
    yield Request(
        "settle",
        "state_transition",
        "txn",
        {"machine": "order_lifecycle", "from": "processing", "to": "paid"},
        {"entity": order_id},
    )

    # output transaction_id, line 146
    transaction_id = call_stripe_api["id"]

    # output status, line 147
    status = "completed" if call_stripe_api["status"] == "succeeded" else "pending"

    # output is_repeat, line 149
    is_repeat = False

    # output at, line 150
    at = now
    check_postconditions(amount_charged=amount, amount=amount)

    return {
        "transaction_id": transaction_id,
        "status": status,
        "amount_charged": amount,
        "is_repeat": is_repeat,
        "at": at,
    }


INPUTS: Final = Inputs(
    {
        "order_id": "string",
        "user_id": "string",
        "amount": "decimal",
        "idempotency_key": "optional<string>",
    },
    {},
)


def call(inputs: dict[str, Any], *, now: datetime) -> Asking[Success]:
    """Run the node on a caller's own objects; each is checked and converted first."""
    order_id, user_id, amount, idempotency_key = read_inputs(INPUTS, inputs)
    return payment_handler_v1(order_id, user_id, amount, idempotency_key, now=now)


SOURCE: Final = Source(
    "nodes/payments/payment_handler_v1.vsp",
    lines={
        56: 47, 74: 18, 78: 18, 82: 19, 86: 20, 90: 20, 94: 45, 98: 53, 105: 55, 125: 64, 127: 64,
        149: 75, 159: 83, 161: 83, 167: 85, 175: 91, 177: 91, 180: 94, 189: 104, 196: 105, 204: 107,
        211: 108, 219: 110, 246: 124, 248: 124, 251: 127, 256: 134, 259: 132, 264: 135, 274: 137,
    },
    clauses={
        "constraint": [
            "length(order_id) > 0",
            "length(order_id) <= 64",
            "length(user_id) > 0",
            "amount > 0",
            "amount <= 50000",
        ],
        "precondition": [
            "scale(amount) <= 2",
        ],
        "postcondition": [
            "amount_charged == amount",
        ],
    },
)  # fmt: skip
