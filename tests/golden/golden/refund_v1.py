# AUTO-GENERATED - DO NOT EDIT
# refund_v1, from nodes/payments/refund_v1.vsp
# semantic hash e22aec0180c7e5a8801ce46969850fc41121c043bef92b112b8505bcb06ecc6a
"""Give back a payment, whole or in parts, never more than was paid."""

from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.decimal import (
    round as decimal_round,
    text as decimal_text,
    to_integer as decimal_to_integer,
)
from vesper.kernels.enum import text as enum_text
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
    one_of,
    outside_of_the_flow,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import (
    concat as text_concat,
    join as text_join,
    percent_encode as text_percent_encode,
)

D_0: Final = Decimal("0")
D_0_01: Final = Decimal("0.01")
D_100: Final = Decimal("100")


class Refund(TypedDict):
    refund_id: str
    amount: Decimal


class Paid(TypedDict):
    order_id: str
    amount: Decimal
    refunded: Decimal


class CallStripeApi(TypedDict):
    id: str


class Success(TypedDict):
    refund_id: str
    refunded: Decimal
    left: Decimal


SMALLEST: Final[Decimal] = D_0_01


@outside_of_the_flow
def check_postconditions(*, refunded: Decimal, left: Decimal, amount: Decimal | None) -> None:
    # postcondition, line 52: refunded > 0 AND left >= 0
    if not (refunded > D_0 and left >= D_0):
        raise ContractBroken("postcondition", 0, {"refunded": refunded, "left": left})

    # postcondition, line 53: old(amount) IS NULL OR refunded == old(amount)
    if not (amount is None or refunded == amount):
        raise ContractBroken("postcondition", 1, {"amount": amount, "refunded": refunded})


def check_invariants(
    *,
    refunded: Decimal | None,
    error_code: Literal[
        "unknown_transaction", "nothing_left", "too_much", "order_not_paid", "refused", "timeout"
    ]
    | None,
) -> None:
    # invariant, line 55: output.refunded IS NULL OR error.error_code IS NULL
    if not (refunded is None or error_code is None):
        raise ContractBroken("invariant", 0, {"refunded": refunded, "error_code": error_code})


@exact_steps
def refund_v1(
    *,
    transaction_id: str,
    amount: Decimal | None = None,
    reason: Literal["requested", "duplicate", "fraudulent"] = "requested",
    request_id: str,
    now: datetime,
) -> Asking[Success]:
    """Give back a payment, whole or in parts, never more than was paid."""

    # constraint, line 22: length(transaction_id) > 0
    if not len(transaction_id) > 0:
        raise ContractBroken("constraint", 0, {"transaction_id": transaction_id})

    # constraint, line 22: length(transaction_id) <= 64
    if not len(transaction_id) <= 64:
        raise ContractBroken("constraint", 1, {"transaction_id": transaction_id})

    # constraint, line 25: length(request_id) > 0
    if not len(request_id) > 0:
        raise ContractBroken("constraint", 2, {"request_id": request_id})

    # constraint, line 25: length(request_id) <= 64
    if not len(request_id) <= 64:
        raise ContractBroken("constraint", 3, {"request_id": request_id})

    # precondition, line 50: amount IS NULL OR amount > 0
    if not (amount is None or amount > D_0):
        raise ContractBroken("precondition", 0, {"amount": amount})

    try:
        earlier: Refund | None = yield Request(
            "earlier",
            "database_query",
            "read",
            {
                "database": "main",
                "sql": "SELECT refund_id, amount FROM refunds WHERE request_id = :request_id",
                "rows": "optional",
            },
            {"bind": {"request_id": request_id}},
        )

        # step payment, line 68
        try:
            payment: Paid = yield Request(
                "payment",
                "database_query",
                "read",
                {
                    "database": "main",
                    "sql": "SELECT t.order_id, t.amount, COALESCE(SUM(r.amount), 0) AS refunded FROM transactions AS t LEFT JOIN refunds AS r ON r.transaction_id = t.transaction_id WHERE t.transaction_id = :transaction_id GROUP BY t.order_id, t.amount",
                    "rows": "one",
                },
                {"bind": {"transaction_id": transaction_id}},
            )
        except FAILURES as failure:
            if code_of(failure) != "not_found":
                raise
            error_code: Literal[
                "unknown_transaction",
                "nothing_left",
                "too_much",
                "order_not_paid",
                "refused",
                "timeout",
            ] = "unknown_transaction"
            message = text_concat("there is no transaction ", transaction_id)
            check_invariants(refunded=None, error_code=error_code)

            raise DeclaredError({"error_code": error_code, "message": message}) from failure

        # step open, line 83
        open = payment["amount"] - payment["refunded"]

        # step wanted, line 84
        wanted = open if amount is None else amount

        # return_1, line 86
        if earlier is not None and earlier["amount"] > D_0 and open >= D_0:
            refund_id = earlier["refund_id"]
            refunded = earlier["amount"] if amount is None else amount
            check_postconditions(refunded=refunded, left=open, amount=amount)
            check_invariants(refunded=refunded, error_code=None)

            return {"refund_id": refund_id, "refunded": refunded, "left": open}

        # validation_2, line 93
        if not open >= SMALLEST:
            error_code = "nothing_left"
            message = text_join(
                ["all of ", decimal_text(payment["amount"]), " was given back already"], ""
            )
            check_invariants(refunded=None, error_code=error_code)

            raise DeclaredError({"error_code": error_code, "message": message})

        # validation_3, line 95
        if not wanted <= open:
            error_code = "too_much"
            message = text_join(
                [decimal_text(wanted), " is more than the ", decimal_text(open), " that is left"],
                "",
            )
            check_invariants(refunded=None, error_code=error_code)

            raise DeclaredError({"error_code": error_code, "message": message})

        # step state, line 98
        state: Literal[
            "pending", "processing", "paid", "payment_failed", "refunded"
        ] = yield Request(
            "state",
            "state_read",
            "read",
            {"machine": "order_lifecycle"},
            {"entity": payment["order_id"]},
        )

        # raise_4, line 103
        if state != "paid":
            error_code = "order_not_paid"
            message = text_join(["order ", payment["order_id"], " is ", enum_text(state)], "")
            check_invariants(refunded=None, error_code=error_code)

            raise DeclaredError({"error_code": error_code, "message": message})

        # step call_stripe_api, line 107
        try:
            call_stripe_api: CallStripeApi = yield Request(
                "call_stripe_api",
                "http_request",
                "keyed",
                {"provider": "stripe", "method": "POST"},
                key=request_id,
                arguments={
                    "endpoint": text_join(
                        ["/v1/charges/", text_percent_encode(transaction_id), "/refunds"], ""
                    ),
                    "query": {"expand": "charge"},
                    "headers": {"idempotency_key": request_id, "x_reason": enum_text(reason)},
                    "body": json_from_value(
                        {
                            "amount": decimal_to_integer(
                                decimal_round(wanted * D_100, 0, "half_even")
                            ),
                            "reason": reason,
                            "metadata": {
                                "order": payment["order_id"],
                                "parts": ["refund", request_id],
                            },
                        },
                        "{amount: integer, reason: enum[requested, duplicate, fraudulent], metadata: {order: string, parts: array<string>}}",
                    ),
                },
            )
        except FAILURES as failure:
            if http_class(code_of(failure)) != "http_4xx":
                raise
            error_code = "refused"
            message = text_concat("stripe refuses to give back ", decimal_text(wanted))
            check_invariants(refunded=None, error_code=error_code)

            raise DeclaredError({"error_code": error_code, "message": message}) from failure

        # step record, line 123
        try:
            record: int = yield Request(
                "record",
                "database_write",
                "txn",
                {
                    "database": "main",
                    "sql": "INSERT INTO refunds (refund_id, request_id, transaction_id, amount, reason) VALUES (:refund_id, :request_id, :transaction_id, :amount, :reason)",
                },
                {
                    "bind": {
                        "refund_id": call_stripe_api["id"],
                        "request_id": request_id,
                        "transaction_id": transaction_id,
                        "amount": wanted,
                        "reason": reason,
                    }
                },
            )
        except FAILURES as failure:
            if code_of(failure) != "conflict":
                raise
            record = 0

        # step close_order, line 132
        close_order: Literal["pending", "processing", "paid", "payment_failed", "refunded"] | None
        if wanted == open:
            try:
                close_order = yield Request(
                    "close_order",
                    "state_transition",
                    "txn",
                    {"machine": "order_lifecycle", "from": "paid", "to": "refunded"},
                    {"entity": payment["order_id"]},
                )
            except FAILURES as failure:
                if code_of(failure) != "invalid_transition":
                    raise
                close_order = "refunded"
        else:
            close_order = None

        # output refund_id, line 143
        refund_id = call_stripe_api["id"]

        # output left, line 143
        left = open - wanted
        check_postconditions(refunded=wanted, left=left, amount=amount)
        check_invariants(refunded=wanted, error_code=None)

        return {"refund_id": refund_id, "refunded": wanted, "left": left}
    except FAILURES as failure:
        code: Literal["timeout"] | None = one_of(code_of(failure), ("timeout",))
        if code is None:
            raise
        check_invariants(refunded=None, error_code=code)
        raise DeclaredError({"error_code": code, "message": code}) from failure


INPUTS: Final = Inputs(
    {
        "transaction_id": "string",
        "amount": "optional<decimal>",
        "reason": "enum[requested, duplicate, fraudulent]",
        "request_id": "string",
    },
    {"reason": "requested"},
)


def call(inputs: dict[str, Any], *, now: datetime) -> Asking[Success]:
    """The same for a caller's own objects: each is checked and made a value first."""
    transaction_id, amount, reason, request_id = read_inputs(INPUTS, inputs)
    return refund_v1(
        transaction_id=transaction_id, amount=amount, reason=reason, request_id=request_id, now=now
    )


SOURCE: Final = Source(
    "nodes/payments/refund_v1.vsp",
    lines={
        69: 52, 73: 53, 86: 55, 102: 22, 106: 22, 110: 25, 114: 25, 118: 50, 121: 62, 135: 68,
        157: 79, 160: 79, 163: 83, 180: 94, 185: 94, 190: 96, 196: 96, 201: 98, 212: 105, 215: 105,
        219: 107, 226: 111, 227: 111, 231: 114, 233: 114, 234: 114, 250: 121, 253: 121, 257: 123,
        284: 132, 302: 143,
    },
    clauses={
        "constraint": [
            "length(transaction_id) > 0",
            "length(transaction_id) <= 64",
            "length(request_id) > 0",
            "length(request_id) <= 64",
        ],
        "precondition": [
            "amount IS NULL OR amount > 0",
        ],
        "postcondition": [
            "refunded > 0 AND left >= 0",
            "old(amount) IS NULL OR refunded == old(amount)",
        ],
        "invariant": [
            "output.refunded IS NULL OR error.error_code IS NULL",
        ],
    },
)  # fmt: skip
