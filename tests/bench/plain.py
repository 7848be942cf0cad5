"""The payment decision as a careful person writes it in Python: the rival that `make bench` measures against."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

HIGH_RISK = frozenset({"NG", "RU", "KP", "IR"})
CURRENCIES = frozenset({"USD", "EUR", "GBP"})
ZERO, TWO, HUNDRED, THOUSAND = Decimal(0), Decimal(2), Decimal(100), Decimal(1000)
LOW_RATE, MIDDLE_RATE, HIGH_RATE = Decimal("0.029"), Decimal("0.025"), Decimal("0.019")
LOW_BASE, MIDDLE_BASE, HIGH_BASE = Decimal("0.30"), Decimal("0.50"), Decimal("1.00")


def payment_decision(inputs: dict[str, Any]) -> dict[str, Any]:
    """With the contracts and without checks of types."""
    amount, balance, country, age = inputs["amount"], inputs["balance"], inputs["country"], inputs["user_age_days"]
    if inputs["currency"] not in CURRENCIES or len(country) != 2 or age < 0:
        raise ValueError("inputs")
    if not amount > ZERO:
        raise ValueError("amount > 0")
    if amount <= HUNDRED:
        fee = amount * LOW_RATE + LOW_BASE
    elif amount <= THOUSAND:
        fee = amount * MIDDLE_RATE + MIDDLE_BASE
    else:
        fee = amount * HIGH_RATE + HIGH_BASE
    risk = 0
    if inputs.get("flagged", False):
        risk += 30
    if age < 30:
        risk += 20
    if amount > THOUSAND:
        risk += 20
    if country in HIGH_RISK:
        risk += 15
    if amount * TWO > balance:
        risk += 15
    new_balance = balance - amount - fee
    if new_balance < ZERO or risk >= 70:
        decision = "decline"
    elif risk >= 40:
        decision = "review"
    else:
        decision = "approve"
    if not fee >= ZERO or not (decision == "decline" or new_balance >= ZERO):
        raise ValueError("postconditions")
    return {"decision": decision, "fee": fee, "risk": risk, "new_balance": new_balance}
