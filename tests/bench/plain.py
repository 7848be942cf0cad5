"""Three workloads as a careful person writes them in Python: the rivals that `make bench` measures against.

Contracts are checked, types are not.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

HIGH_RISK = frozenset({"NG", "RU", "KP", "IR"})
CURRENCIES = frozenset({"USD", "EUR", "GBP"})
ZERO, TWO, HUNDRED, THOUSAND = Decimal(0), Decimal(2), Decimal(100), Decimal(1000)
LOW_RATE, MIDDLE_RATE, HIGH_RATE = Decimal("0.029"), Decimal("0.025"), Decimal("0.019")
LOW_BASE, MIDDLE_BASE, HIGH_BASE = Decimal("0.30"), Decimal("0.50"), Decimal("1.00")


def payment_decision(inputs: dict[str, Any]) -> dict[str, Any]:
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


TAX_RATES = {
    "food": Decimal("0.05"),
    "book": Decimal(0),
    "toy": Decimal("0.20"),
    "tool": Decimal("0.18"),
    "other": Decimal("0.10"),
}
TENTH, TWENTIETH, FREE_SHIPPING = Decimal("0.10"), Decimal("0.05"), Decimal(500)
SHIPPING_BASE, SHIPPING_EACH = Decimal("5.00"), Decimal("0.25")


def order_pricing(inputs: dict[str, Any]) -> dict[str, Any]:
    items = inputs["items"]
    for line in items:
        if not line["qty"] > 0:
            raise ValueError("qty > 0")
        if line["category"] not in TAX_RATES:
            raise ValueError("category")
    subtotal, tax, pieces = ZERO, ZERO, 0
    for line in items:
        quantity = line["qty"]
        price = line["unit_price"] * quantity
        subtotal += price
        tax += price * TAX_RATES[line["category"]]
        pieces += quantity
    if pieces >= 100:
        discount = subtotal * TENTH
    elif pieces >= 50:
        discount = subtotal * TWENTIETH
    else:
        discount = ZERO
    shipping = ZERO if subtotal - discount >= FREE_SHIPPING else SHIPPING_BASE + SHIPPING_EACH * pieces
    total = subtotal - discount + tax + shipping
    if total != subtotal - discount + tax + shipping or not total >= ZERO:
        raise ValueError("postconditions")
    return {"subtotal": subtotal, "discount": discount, "tax": tax, "shipping": shipping, "total": total}


def numeric_loop(inputs: dict[str, Any]) -> dict[str, Any]:
    state, count = inputs["seed"], inputs["n"]
    if not count >= 0:
        raise ValueError("n >= 0")
    score = 0.0
    hits = 0
    for _ in range(count):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        x = state / 2147483648.0
        y = ((0.5 * x - 1.25) * x + 0.75) * x + 0.1
        if y > 0.2:
            score += y
            hits += 1
        else:
            score -= 0.5 * x
    if not 0 <= hits <= count:
        raise ValueError("postconditions")
    return {"score": score, "hits": hits, "state": state}
