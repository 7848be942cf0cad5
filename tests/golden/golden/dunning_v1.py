# AUTO-GENERATED - DO NOT EDIT
# dunning_v1, from nodes/payments/dunning_v1.vsp
# semantic hash fb55cf2f290b1acd2636bb8f909d3d2a22b0543a7cfecab822bcb117dacb96a6
"""Remind who has not paid - a mail, then letters with fees, then a collection agency."""

from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.decimal import round as decimal_round, text as decimal_text
from vesper.kernels.integer import checked, text as integer_text
from vesper.kernels.json import Json, from_value as json_from_value, parse as json_parse
from vesper.kernels.raised import ContractBroken, DeclaredError
from vesper.kernels.runtime.entry import Inputs, read_inputs
from vesper.kernels.runtime.flow import (
    FAILURES,
    Asking,
    Request,
    code_of,
    counted,
    exact_steps,
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
D_1_5: Final = Decimal("1.5")
D_5_00: Final = Decimal("5.00")


class Climb(TypedDict):
    days_left: int
    level: int
    fee: Decimal
    next_fee: Decimal


class Success(TypedDict):
    level: int
    fee: Decimal
    due: Decimal
    sent: Literal["nothing", "mail", "letter", "agency"]
    sent_at: datetime | None


DAYS_PER_LEVEL: Final[int] = 14
FIRST_FEE: Final[Decimal] = D_5_00


@outside_of_the_flow
def check_postconditions(
    *,
    due: Decimal,
    amount: Decimal,
    fee: Decimal,
    level: int,
    sent: Literal["nothing", "mail", "letter", "agency"],
    sent_at: datetime | None,
) -> None:
    # postcondition, line 32: due == old(amount) + fee
    if due != amount + fee:
        raise ContractBroken("postcondition", 0, {"due": due, "amount": amount, "fee": fee})

    # postcondition, line 33: level <= 4
    if not level <= 4:
        raise ContractBroken("postcondition", 1, {"level": level})

    # postcondition, line 34: sent == nothing => sent_at IS NULL
    if not (sent != "nothing" or sent_at is None):
        raise ContractBroken("postcondition", 2, {"sent": sent, "sent_at": sent_at})


@exact_steps
def dunning_v1(
    event_id: str,
    invoice_id: str,
    amount: Decimal,
    days_overdue: int,
    email: str | None = None,
    *,
    now: datetime,
) -> Asking[Success]:
    """Remind who has not paid - a mail, then letters with fees, then a collection agency."""

    # constraint, line 8: length(event_id) > 0
    if not len(event_id) > 0:
        raise ContractBroken("constraint", 0, {"event_id": event_id})

    # constraint, line 9: length(invoice_id) > 0
    if not len(invoice_id) > 0:
        raise ContractBroken("constraint", 1, {"invoice_id": invoice_id})

    # constraint, line 9: length(invoice_id) <= 64
    if not len(invoice_id) <= 64:
        raise ContractBroken("constraint", 2, {"invoice_id": invoice_id})

    # constraint, line 10: amount > 0
    if not amount > D_0:
        raise ContractBroken("constraint", 3, {"amount": amount})

    # constraint, line 11: days_overdue >= 0
    if not days_overdue >= 0:
        raise ContractBroken("constraint", 4, {"days_overdue": days_overdue})

    # constraint, line 11: days_overdue <= 3650
    if not days_overdue <= 3650:
        raise ContractBroken("constraint", 5, {"days_overdue": days_overdue})

    try:
        days_left = days_overdue
        level = 0
        fee = D_0
        next_fee = FIRST_FEE
        iterations = 0
        while days_left >= DAYS_PER_LEVEL:
            iterations = counted(iterations, 300)
            days_left, level, fee, next_fee = (
                checked(days_left - DAYS_PER_LEVEL),
                checked(level + 1),
                D_0 if level == 0 else fee + next_fee,
                decimal_round(next_fee * D_1_5, 2, "half_up"),
            )
            if level == 4:
                break
        climb = Climb(days_left=days_left, level=level, fee=fee, next_fee=next_fee)

        # return_1, line 53
        if climb["level"] == 0:
            level = 0
            fee = D_0
            sent: Literal["nothing", "mail", "letter", "agency"] = "nothing"
            sent_at: datetime | None = None
            check_postconditions(
                due=amount, amount=amount, fee=fee, level=level, sent=sent, sent_at=sent_at
            )

            return {"level": level, "fee": fee, "due": amount, "sent": sent, "sent_at": sent_at}

        # step due, line 57
        due = amount + climb["fee"]

        # step asked_at, line 61
        asked_at: datetime = yield Request("asked_at", "clock_now", "read", {}, {})

        # step sent, line 63
        sent_: Literal["nothing", "mail", "letter", "agency"]
        if climb["level"] == 1:
            # raise_2, line 68
            if email is None:
                message = text_concat("nobody to remind of ", invoice_id)
                invoice: str | None = invoice_id

                raise DeclaredError(
                    {"error_code": "no_address", "message": message, "invoice": invoice}
                )

            # step send_mail, line 71
            yield Request(
                "send_mail",
                "http_request",
                "keyed",
                {"provider": "mailer", "method": "POST"},
                key=event_id,
                arguments={
                    "endpoint": "/v2/messages",
                    "body": json_from_value(
                        {
                            "to": email,
                            "text": text_join(
                                [
                                    "Invoice ",
                                    invoice_id,
                                    " over ",
                                    decimal_text(amount),
                                    " is open for ",
                                    integer_text(days_overdue),
                                    " days.",
                                ],
                                "",
                            ),
                        },
                        "{to: string, text: string}",
                    ),
                },
            )
            sent_ = "mail"
        else:
            # step choice, line 81
            choice: Literal["nothing", "mail", "letter", "agency"]
            if climb["level"] < 4:
                # step print, line 87
                yield Request(
                    "print",
                    "http_request",
                    "probe",
                    {"provider": "printer", "method": "POST"},
                    {
                        "endpoint": text_join(
                            [
                                "/letters/",
                                text_percent_encode(invoice_id),
                                "/",
                                text_percent_encode(integer_text(climb["level"])),
                            ],
                            "",
                        ),
                        "body": json_from_value(
                            {
                                "text": text_join(
                                    [
                                        "You owe us ",
                                        decimal_text(due),
                                        ", ",
                                        decimal_text(climb["fee"]),
                                        " of it for our trouble.",
                                    ],
                                    "",
                                ),
                                "level": climb["level"],
                            },
                            "{text: string, level: integer}",
                        ),
                    },
                )
                choice = "letter"
            else:
                # step hand_over, line 97
                try:
                    hand_over: Json = yield Request(
                        "hand_over",
                        "http_request",
                        "unsafe",
                        {"provider": "agency", "method": "POST"},
                        {
                            "endpoint": "/cases",
                            "body": json_from_value(
                                {"invoice": invoice_id, "amount": due},
                                "{invoice: string, amount: decimal}",
                            ),
                        },
                    )
                except FAILURES as failure:
                    if code_of(failure) != "http_409":
                        raise
                    hand_over = json_parse("null")
                choice = "agency"
            sent_ = choice

        # output level, line 111
        level = climb["level"]

        # output fee, line 111
        fee = climb["fee"]

        # output sent_at, line 111
        sent_at = asked_at
        check_postconditions(
            due=due, amount=amount, fee=fee, level=level, sent=sent_, sent_at=sent_at
        )

        return {"level": level, "fee": fee, "due": due, "sent": sent_, "sent_at": sent_at}
    except FAILURES as failure:
        code: Literal["loop_limit"] | None = one_of(code_of(failure), ("loop_limit",))
        if code is None:
            raise
        raise DeclaredError({"error_code": code, "message": code, "invoice": None}) from failure


INPUTS: Final = Inputs(
    {
        "event_id": "string",
        "invoice_id": "string",
        "amount": "decimal",
        "days_overdue": "integer",
        "email": "optional<string>",
    },
    {},
)


def call(inputs: dict[str, Any], *, now: datetime) -> Asking[Success]:
    """The same for a caller's own objects: each is checked and made a value first."""
    event_id, invoice_id, amount, days_overdue, email = read_inputs(INPUTS, inputs)
    return dunning_v1(event_id, invoice_id, amount, days_overdue, email, now=now)


SOURCE: Final = Source(
    "nodes/payments/dunning_v1.vsp",
    lines={
        67: 32, 68: 32, 72: 33, 76: 34, 93: 8, 97: 9, 101: 9, 105: 10, 109: 11, 113: 11, 122: 39,
        124: 47, 125: 48, 126: 49, 127: 50, 146: 59, 149: 61, 156: 70, 159: 70, 164: 71, 172: 76,
        175: 76, 198: 87, 204: 91, 207: 91, 209: 91, 213: 92, 215: 92, 235: 97, 242: 102, 251: 106,
    },
    clauses={
        "constraint": [
            "length(event_id) > 0",
            "length(invoice_id) > 0",
            "length(invoice_id) <= 64",
            "amount > 0",
            "days_overdue >= 0",
            "days_overdue <= 3650",
        ],
        "postcondition": [
            "due == old(amount) + fee",
            "level <= 4",
            "sent == nothing => sent_at IS NULL",
        ],
    },
)  # fmt: skip
