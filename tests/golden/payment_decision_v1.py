# AUTO-GENERATED - DO NOT EDIT
# payment_decision_v1, from nodes/payments/payment_decision_v1.vsp
# semantic hash ab43ab17d37d98bd1b396edb231011fd31d19ddb0a7e1e5a6d441c0c4b30c5c6
"""Decide whether a card payment goes through, what it costs and why."""

from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    MAX_INTEGER,
    MAX_TEXT,
    MIN_INTEGER,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    get_entry,
    is_ascii,
    is_finite,
    is_text,
    read_inputs,
    undecorated,
)
from vesper.kernels.runtime.source import Source

D_0: Final = Decimal(0)
D_0_019: Final = Decimal("0.019")
D_0_025: Final = Decimal("0.025")
D_0_029: Final = Decimal("0.029")
D_0_30: Final = Decimal("0.30")
D_0_50: Final = Decimal("0.50")
D_1_00: Final = Decimal("1.00")
D_2: Final = Decimal(2)
D_100: Final = Decimal(100)
D_1000: Final = Decimal(1000)


class Success(TypedDict):
    decision: Literal["approve", "review", "decline"]
    fee: Decimal
    risk: int
    new_balance: Decimal


HIGH_RISK: Final[frozenset[str]] = frozenset({"IR", "KP", "NG", "RU"})


@exact_decimals
def payment_decision_v1(
    amount: Decimal,
    balance: Decimal,
    currency: Literal["USD", "EUR", "GBP"],
    country: str,
    user_age_days: int,
    flagged: bool = False,
) -> Success:
    """Decide whether a card payment goes through, what it costs and why."""

    # constraint, line 9: length(country) == 2
    if len(country) != 2:
        raise ContractBroken("constraint", 0, {"country": country})

    # constraint, line 10: user_age_days >= 0
    if not user_age_days >= 0:
        raise ContractBroken("constraint", 1, {"user_age_days": user_age_days})

    # precondition, line 25: amount > 0
    if not amount > D_0:
        raise ContractBroken("precondition", 0, {"amount": amount})

    # step fee, line 31
    if amount <= D_100:
        fee = amount * D_0_029 + D_0_30
    elif amount <= D_1000:
        fee = amount * D_0_025 + D_0_50
    else:
        fee = amount * D_0_019 + D_1_00

    # step risk, line 38
    risk = (
        (30 if flagged else 0)
        + (20 if user_age_days < 30 else 0)
        + (20 if amount > D_1000 else 0)
        + (15 if country in HIGH_RISK else 0)
        + (15 if amount * D_2 > balance else 0)
    )

    # step new_balance, line 47
    new_balance = balance - amount - fee

    # step decision, line 51
    decision: Literal["approve", "review", "decline"]
    if new_balance < D_0 or risk >= 70:
        decision = "decline"
    elif risk >= 40:
        decision = "review"
    else:
        decision = "approve"

    # postcondition, line 27: fee >= 0
    if not fee >= D_0:
        raise ContractBroken("postcondition", 0, {"fee": fee})

    # postcondition, line 28: decision == 'decline' OR new_balance >= 0
    if not (decision == "decline" or new_balance >= D_0):
        raise ContractBroken("postcondition", 1, {"decision": decision, "new_balance": new_balance})

    return {"decision": decision, "fee": fee, "risk": risk, "new_balance": new_balance}


INPUTS: Final = Inputs(
    {
        "amount": "decimal",
        "balance": "decimal",
        "currency": "enum[USD, EUR, GBP]",
        "country": "string",
        "user_age_days": "integer",
        "flagged": "boolean",
    },
    {"flagged": False},
)
RUN: Final = undecorated(payment_decision_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """Run the node on a caller's own objects; each is checked and converted first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 5 + ("flagged" in inputs):
            raise NotPlain
        amount = inputs["amount"]
        if type(amount) is not Decimal or not is_finite(amount):
            raise NotPlain
        amount = amount + D_0
        balance = inputs["balance"]
        if type(balance) is not Decimal or not is_finite(balance):
            raise NotPlain
        balance = balance + D_0
        currency = inputs["currency"]
        if type(currency) is not str or currency not in {"USD", "EUR", "GBP"}:
            raise NotPlain
        country = inputs["country"]
        if (
            type(country) is not str
            or not (is_ascii(country) or is_text(country))
            or len(country) > MAX_TEXT
        ):
            raise NotPlain
        user_age_days = inputs["user_age_days"]
        if (
            type(user_age_days) is not int
            or user_age_days < MIN_INTEGER
            or user_age_days > MAX_INTEGER
        ):
            raise NotPlain
        flagged = get_entry(inputs, "flagged", False)
        if type(flagged) is not bool:
            raise NotPlain
    except NOT_PLAIN:
        amount, balance, currency, country, user_age_days, flagged = read_inputs(INPUTS, inputs)
    return RUN(amount, balance, currency, country, user_age_days, flagged)


SOURCE: Final = Source(
    "nodes/payments/payment_decision_v1.vsp",
    lines={
        62: 9, 66: 10, 70: 25, 74: 34, 76: 35, 78: 36, 82: 41, 86: 45, 90: 49, 103: 27, 107: 28,
    },
    clauses={
        "constraint": [
            "length(country) == 2",
            "user_age_days >= 0",
        ],
        "precondition": [
            "amount > 0",
        ],
        "postcondition": [
            "fee >= 0",
            "decision == 'decline' OR new_balance >= 0",
        ],
    },
)  # fmt: skip
