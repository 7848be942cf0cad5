"""The workloads in plain Python with their contracts, and nothing else: what every ratio of `make bench` is to.

The types of the inputs are trusted. `tests.bench.plain` checks all that a node checks, and is slower. The types of
names cost nothing here; mypyc and Cython compile this very file, and make use of them.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

CURRENCIES = frozenset({"USD", "EUR", "GBP"})
HIGH_RISK = frozenset({"NG", "RU", "KP", "IR"})
TAX_RATE = {
    "food": Decimal("0.05"), "book": Decimal(0), "toy": Decimal("0.20"), "tool": Decimal("0.18"),
    "other": Decimal("0.10"),
}  # fmt: skip
ZERO, TWO, HUNDRED, FIVE_HUNDRED, THOUSAND = Decimal(0), Decimal(2), Decimal(100), Decimal(500), Decimal(1000)
LOW_RATE, MIDDLE_RATE, HIGH_RATE = Decimal("0.029"), Decimal("0.025"), Decimal("0.019")
LOW_BASE, MIDDLE_BASE, HIGH_BASE = Decimal("0.30"), Decimal("0.50"), Decimal("1.00")
LARGE_ORDER, MIDDLE_ORDER = Decimal("0.10"), Decimal("0.05")
SHIPPING, SHIPPING_A_PIECE = Decimal("5.00"), Decimal("0.25")


def payment_decision(inputs: dict[str, Any]) -> dict[str, Any]:
    amount: Decimal = inputs["amount"]
    if not amount > ZERO:
        raise ValueError("amount > 0")
    if inputs["currency"] not in CURRENCIES:
        raise ValueError("currency")
    balance: Decimal = inputs["balance"]
    if amount <= HUNDRED:
        fee = amount * LOW_RATE + LOW_BASE
    elif amount <= THOUSAND:
        fee = amount * MIDDLE_RATE + MIDDLE_BASE
    else:
        fee = amount * HIGH_RATE + HIGH_BASE
    risk: int = 0
    if inputs["flagged"]:
        risk += 30
    if inputs["user_age_days"] < 30:
        risk += 20
    if amount > THOUSAND:
        risk += 20
    if inputs["country"] in HIGH_RISK:
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
    if not fee >= ZERO:
        raise ValueError("fee >= 0")
    if not (decision == "decline" or new_balance >= ZERO):
        raise ValueError("new_balance >= 0 unless declined")
    return {"decision": decision, "fee": fee, "risk": risk, "new_balance": new_balance}


def order_pricing(inputs: dict[str, Any]) -> dict[str, Any]:
    items: list[dict[str, Any]] = inputs["items"]
    for item in items:
        if not item["qty"] > 0:
            raise ValueError("qty > 0")
        if item["category"] not in TAX_RATE:
            raise ValueError("category")
    subtotal = tax = ZERO
    pieces: int = 0
    for item in items:
        quantity: int = item["qty"]
        unit_price: Decimal = item["unit_price"]
        price = unit_price * quantity
        subtotal += price
        tax += price * TAX_RATE[item["category"]]
        pieces += quantity
    discount = subtotal * LARGE_ORDER if pieces >= 100 else subtotal * MIDDLE_ORDER if pieces >= 50 else ZERO
    shipping = ZERO if subtotal - discount >= FIVE_HUNDRED else SHIPPING + SHIPPING_A_PIECE * pieces
    total = subtotal - discount + tax + shipping
    if total != subtotal - discount + tax + shipping:
        raise ValueError("total")
    if not total >= ZERO:
        raise ValueError("total >= 0")
    return {"subtotal": subtotal, "tax": tax, "discount": discount, "shipping": shipping, "total": total}


def numeric_loop(inputs: dict[str, Any]) -> dict[str, Any]:
    state: int = inputs["seed"]
    rounds: int = inputs["n"]
    if not rounds >= 0:
        raise ValueError("n >= 0")
    score: float = 0.0
    hits: int = 0
    for _ in range(rounds):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        x: float = state / 2147483648.0
        y: float = ((0.5 * x - 1.25) * x + 0.75) * x + 0.1
        if y > 0.2:
            score += y
            hits += 1
        else:
            score -= 0.5 * x
    if not 0 <= hits <= rounds:
        raise ValueError("hits")
    return {"score": score, "hits": hits, "state": state}
