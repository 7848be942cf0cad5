# AUTO-GENERATED - DO NOT EDIT
# fraud_score_v1, from nodes/checks/fraud_score_v1.vsp
# semantic hash 5a5e27c0e1f839f05cf6854cf913c848b8d82e3d7d755127c108b88c4a4b02f6
"""Score a purchase against the customer's history and list the reasons."""

from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.decimal import (
    div as decimal_div,
    divide as decimal_divide,
    exact_decimals,
    exact_entry,
)
from vesper.kernels.integer import checked, checked_sum
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    MAX_ENTRIES,
    MAX_INTEGER,
    MAX_TEXT,
    MIN_INTEGER,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_ascii,
    is_finite,
    is_text,
    new_objects,
    read_inputs,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.value import clamp as value_clamp

D_0: Final = Decimal("0")
D_5: Final = Decimal("5")
D_100: Final = Decimal("100")


class SignalsItem(TypedDict):
    name: str
    found: bool


class Purchase(TypedDict):
    amount: Decimal
    country: str
    hour: int


class Success(TypedDict):
    score: int
    reasons: list[str]
    decision: Literal["accept", "challenge", "refuse"]


WEIGHTS: Final[dict[str, int]] = {
    "at_night": 10,
    "far_from_usual": 30,
    "first_purchase": 15,
    "new_country": 25,
    "round_amount": 5,
}


@exact_decimals
def fraud_score_v1(
    purchase: Purchase,
    history: list[Purchase],
    home: str,
    limit: int = 60,
) -> Success:
    """Score a purchase against the customer's history and list the reasons."""

    # constraint, line 11: amount > 0
    if not purchase["amount"] > D_0:
        raise ContractBroken("constraint", 0, {"purchase": purchase})

    # constraint, line 11: hour >= 0
    if not purchase["hour"] >= 0:
        raise ContractBroken("constraint", 1, {"purchase": purchase})

    # constraint, line 11: hour <= 23
    if not purchase["hour"] <= 23:
        raise ContractBroken("constraint", 2, {"purchase": purchase})

    # constraint, line 11: amount > 0
    for item in history:
        if not item["amount"] > D_0:
            raise ContractBroken("constraint", 3, {"history": history})

    # constraint, line 11: hour >= 0
    for item in history:
        if not item["hour"] >= 0:
            raise ContractBroken("constraint", 4, {"history": history})

    # constraint, line 11: hour <= 23
    for item in history:
        if not item["hour"] <= 23:
            raise ContractBroken("constraint", 5, {"history": history})

    # constraint, line 16: length(home) == 2
    if len(home) != 2:
        raise ContractBroken("constraint", 6, {"home": home})

    # constraint, line 17: limit >= 0
    if not limit >= 0:
        raise ContractBroken("constraint", 7, {"limit": limit})

    # constraint, line 17: limit <= 100
    if not limit <= 100:
        raise ContractBroken("constraint", 8, {"limit": limit})

    # step usual, line 36
    usual = (
        D_0
        if len(history) == 0
        else decimal_divide(sum((p["amount"] for p in history), D_0), Decimal(len(history)))
    )

    # step known, line 37
    known = frozenset(p["country"] for p in history)

    # step signals, line 38
    signals: list[SignalsItem] = [
        SignalsItem(
            name="new_country",
            found=purchase["country"] != home and purchase["country"] not in known,
        ),
        SignalsItem(name="far_from_usual", found=usual > D_0 and purchase["amount"] > usual * D_5),
        SignalsItem(name="at_night", found=purchase["hour"] < 5),
        SignalsItem(name="first_purchase", found=len(history) == 0),
        SignalsItem(
            name="round_amount",
            found=purchase["amount"] >= D_100
            and purchase["amount"] - decimal_div(purchase["amount"], D_100, 0, "floor") * D_100
            == D_0,
        ),
    ]

    # step reasons, line 39
    reasons = [signal["name"] for signal in signals if signal["found"]]

    # step score, line 40
    score = value_clamp(checked_sum(WEIGHTS[reason] for reason in reasons), 0, 100)

    # step decision, line 42
    decision: Literal["accept", "challenge", "refuse"]
    if score >= limit and score > 0:
        decision = "refuse"
    elif checked(score * 2) >= limit and score > 0:
        decision = "challenge"
    else:
        decision = "accept"

    # postcondition, line 30: score >= 0 AND score <= 100
    if not (score >= 0 and score <= 100):
        raise ContractBroken("postcondition", 0, {"score": score})

    # postcondition, line 31: length(reasons) == 0 => decision == accept
    if not (len(reasons) != 0 or decision == "accept"):
        raise ContractBroken("postcondition", 1, {"reasons": reasons, "decision": decision})

    return {"score": score, "reasons": reasons, "decision": decision}


INPUTS: Final = Inputs(
    {
        "purchase": "{amount: decimal, country: string, hour: integer}",
        "history": "array<{amount: decimal, country: string, hour: integer}>",
        "home": "string",
        "limit": "integer",
    },
    {"limit": 60},
)
RUN: Final = undecorated(fraud_score_v1)


def read_purchase(given: Any) -> Purchase:
    """What is a Purchase already, field by field."""
    if type(given) is not dict:
        raise NotPlain
    for name in given:
        if type(name) is not str:
            raise NotPlain
    if len(given) != 3:
        raise NotPlain
    amount = given["amount"]
    if type(amount) is not Decimal or not is_finite(amount):
        raise NotPlain
    country = given["country"]
    if (
        type(country) is not str
        or not (is_ascii(country) or is_text(country))
        or len(country) > MAX_TEXT
    ):
        raise NotPlain
    hour = given["hour"]
    if type(hour) is not int or hour < MIN_INTEGER or hour > MAX_INTEGER:
        raise NotPlain
    return {"amount": amount + D_0, "country": country, "hour": hour}


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 3 + ("limit" in inputs):
            raise NotPlain
        purchase = inputs["purchase"]
        purchase = read_purchase(purchase)
        history = inputs["history"]
        if type(history) is not list or len(history) > MAX_ENTRIES:
            raise NotPlain
        history = [read_purchase(item) for item in history]
        home = inputs["home"]
        if type(home) is not str or not (is_ascii(home) or is_text(home)) or len(home) > MAX_TEXT:
            raise NotPlain
        limit = inputs["limit"] if "limit" in inputs else 60
        if type(limit) is not int or limit < MIN_INTEGER or limit > MAX_INTEGER:
            raise NotPlain
    except NOT_PLAIN:
        purchase, history, home, limit = read_inputs(INPUTS, inputs)
    return new_objects(RUN(purchase, history, home, limit))


SOURCE: Final = Source(
    "nodes/checks/fraud_score_v1.vsp",
    lines={
        77: 11, 81: 11, 85: 11, 90: 11, 95: 11, 100: 11, 104: 16, 108: 17, 112: 17, 118: 36,
        130: 38, 136: 38, 145: 40, 151: 46, 158: 30, 162: 31,
    },
    clauses={
        "constraint": [
            "amount > 0",
            "hour >= 0",
            "hour <= 23",
            "amount > 0",
            "hour >= 0",
            "hour <= 23",
            "length(home) == 2",
            "limit >= 0",
            "limit <= 100",
        ],
        "postcondition": [
            "score >= 0 AND score <= 100",
            "length(reasons) == 0 => decision == accept",
        ],
    },
)  # fmt: skip
