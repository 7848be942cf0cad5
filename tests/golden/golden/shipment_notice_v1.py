# AUTO-GENERATED - DO NOT EDIT
# shipment_notice_v1, from nodes/orders/shipment_notice_v1.vsp
# semantic hash 56f9890b7023a3fc098fe7032b328fe2771ca6e0e52323d68ed0329ae835369d
"""Tell a customer that a shipment is on its way, once for each event."""

from datetime import date, datetime
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.enum import text as enum_text
from vesper.kernels.integer import text as integer_text
from vesper.kernels.json import from_value as json_from_value
from vesper.kernels.map import get as map_get
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import Inputs, read_inputs
from vesper.kernels.runtime.flow import FAILURES, Asking, Request, code_of, exact_steps
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import concat as text_concat, join as text_join


class Contact(TypedDict):
    email: str
    language: str
    wants_mail: bool


class Mail(TypedDict):
    id: str


class Success(TypedDict):
    outcome: Literal["sent", "not_wanted", "no_contact", "refused"]
    mail_id: str | None


SUBJECTS: Final[dict[str, str]] = {
    "de": "Ihre Sendung ist unterwegs",
    "en": "Your parcel is on its way",
}


@exact_steps
def shipment_notice_v1(
    event_id: str,
    order_id: str,
    carrier: Literal["dhl", "ups", "post"],
    tracking: str,
    due: date | None = None,
    days: int | None = None,
    *,
    now: datetime,
) -> Asking[Success]:
    """Tell a customer that a shipment is on its way, once for each event."""

    # constraint, line 12: length(event_id) > 0
    if not len(event_id) > 0:
        raise ContractBroken("constraint", 0, {"event_id": event_id})

    # constraint, line 13: length(order_id) > 0
    if not len(order_id) > 0:
        raise ContractBroken("constraint", 1, {"order_id": order_id})

    # constraint, line 15: length(tracking) > 0
    if not len(tracking) > 0:
        raise ContractBroken("constraint", 2, {"tracking": tracking})

    # constraint, line 15: length(tracking) <= 40
    if not len(tracking) <= 40:
        raise ContractBroken("constraint", 3, {"tracking": tracking})

    # step contact, line 33
    try:
        contact: Contact = yield Request(
            "contact",
            "database_query",
            "read",
            {
                "database": "main",
                "sql": "SELECT c.email, c.language, c.wants_mail FROM customers AS c JOIN orders AS o ON o.customer_id = c.customer_id WHERE o.order_id = :order_id",
                "rows": "one",
            },
            {"bind": {"order_id": order_id}},
        )
    except FAILURES as failure:
        if code_of(failure) not in ("not_found", "too_many_rows"):
            raise
        return {"outcome": "no_contact", "mail_id": None}

    # return_1, line 45
    if not contact["wants_mail"]:
        return {"outcome": "not_wanted", "mail_id": None}

    # step link, line 49
    if carrier == "dhl":
        link = "https://www.dhl.com/track?id="
    else:
        link = text_concat(text_concat("https://track.example.com/", enum_text(carrier)), "/")

    # step letter, line 56
    letter = text_join(
        [
            [
                SUBJECTS["en"] if value is None else value
                for value in [map_get(SUBJECTS, contact["language"])]
            ][0],
            "\n\nOrder ",
            order_id,
            " left us",
            ""
            if days is None
            else text_concat(text_concat(", and is due in ", integer_text(days)), " days"),
            ".\n",
            link,
            tracking,
            "\n",
        ],
        "",
    )

    # step mail, line 64
    try:
        mail: Mail = yield Request(
            "mail",
            "http_request",
            "keyed",
            {"provider": "mailer", "method": "POST"},
            key=event_id,
            arguments={
                "endpoint": "/v2/messages",
                "body": json_from_value(
                    {
                        "to": [contact["email"]],
                        "subject": [
                            SUBJECTS["en"] if value is None else value
                            for value in [map_get(SUBJECTS, contact["language"])]
                        ][0],
                        "text": letter,
                    },
                    "{to: array<string>, subject: string, text: string}",
                ),
            },
        )
    except FAILURES as failure:
        if code_of(failure) not in ("http_400", "http_422"):
            raise
        # step report, line 76
        yield Request(
            "report",
            "event_publish",
            "keyed",
            {"topic": "mail.refused"},
            key=event_id,
            arguments={
                "payload": json_from_value(
                    {"order": order_id, "to": contact["email"]}, "{order: string, to: string}"
                )
            },
        )
        return {"outcome": "refused", "mail_id": None}

    # step publish, line 83
    yield Request(
        "publish",
        "event_publish",
        "txn",
        {"topic": "orders.notified"},
        {
            "payload": json_from_value(
                {"order": order_id, "mail": mail["id"], "due": due},
                "{order: string, mail: string, due: optional<date>}",
            ),
            "event_key": order_id,
        },
    )

    # output mail_id, line 91
    mail_id: str | None = mail["id"]

    return {"outcome": "sent", "mail_id": mail_id}


INPUTS: Final = Inputs(
    {
        "event_id": "string",
        "order_id": "string",
        "carrier": "enum[dhl, ups, post]",
        "tracking": "string",
        "due": "optional<date>",
        "days": "optional<integer>",
    },
    {},
)


def call(inputs: dict[str, Any], *, now: datetime) -> Asking[Success]:
    """The same for a caller's own objects: each is checked and made a value first."""
    event_id, order_id, carrier, tracking, due, days = read_inputs(INPUTS, inputs)
    return shipment_notice_v1(event_id, order_id, carrier, tracking, due, days, now=now)


SOURCE: Final = Source(
    "nodes/orders/shipment_notice_v1.vsp",
    lines={
        56: 12, 60: 13, 64: 15, 68: 15, 72: 33, 96: 54, 99: 58, 102: 59, 110: 61, 121: 64, 129: 69,
        133: 69, 146: 76, 153: 79, 161: 83, 167: 86,
    },
    clauses={
        "constraint": [
            "length(event_id) > 0",
            "length(order_id) > 0",
            "length(tracking) > 0",
            "length(tracking) <= 40",
        ],
    },
)  # fmt: skip
