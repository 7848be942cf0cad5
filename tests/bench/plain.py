"""The workloads as a careful person writes them in Python: the rivals that `make bench` measures against.

They take a dict, check what generated code checks (names, exact types, 64 bits, finite decimals, members, lengths, the
clauses of the node) and give up at the first problem. What they leave out is in favour of them: they compute under
whatever decimal context there is, and copy nothing.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

HIGH_RISK = frozenset({"NG", "RU", "KP", "IR"})
CURRENCIES = frozenset({"USD", "EUR", "GBP"})
TAX_RATE = {
    "food": Decimal("0.05"), "book": Decimal(0), "toy": Decimal("0.20"), "tool": Decimal("0.18"),
    "other": Decimal("0.10"),
}  # fmt: skip
ZERO, TWO, HUNDRED, FIVE_HUNDRED, THOUSAND = Decimal(0), Decimal(2), Decimal(100), Decimal(500), Decimal(1000)
LOW_RATE, MIDDLE_RATE, HIGH_RATE = Decimal("0.029"), Decimal("0.025"), Decimal("0.019")
LOW_BASE, MIDDLE_BASE, HIGH_BASE = Decimal("0.30"), Decimal("0.50"), Decimal("1.00")
LARGE_ORDER, MIDDLE_ORDER = Decimal("0.10"), Decimal("0.05")
SHIPPING, SHIPPING_A_PIECE = Decimal("5.00"), Decimal("0.25")
SMALLEST, LARGEST, LONGEST, MOST = -(2**63), 2**63 - 1, 10_000_000, 1_000_000


def checked_decimal(value: Any, name: str) -> Decimal:
    if type(value) is not Decimal:
        raise TypeError(f"{name}: expected a Decimal, not {value!r}")
    if not value.is_finite():
        raise ValueError(f"{name}: not finite")
    return value


def checked_integer(value: Any, name: str) -> int:
    if type(value) is not int:
        raise TypeError(f"{name}: expected an int, not {value!r}")
    if not SMALLEST <= value <= LARGEST:
        raise ValueError(f"{name}: more than 64 bits")
    return value


def check_names(inputs: dict[Any, Any], count: int) -> None:
    """As many names as there are to know, and all of them plain: a look-up would ask a subclass whether it is equal."""
    if len(inputs) != count:
        raise ValueError("inputs: unknown or missing names")
    for name in inputs:
        if type(name) is not str:
            raise TypeError(f"{name!r} is no name")


def checked_text(value: Any, name: str) -> str:
    if type(value) is not str:
        raise TypeError(f"{name}: expected a str, not {value!r}")
    if not value.isascii():
        value.encode()  # which refuses lone surrogates
    if len(value) > LONGEST:
        raise ValueError(f"{name}: too long")
    return value


def payment_decision(inputs: dict[str, Any]) -> dict[str, Any]:
    if type(inputs) is not dict:
        raise TypeError("inputs: expected a dict")
    check_names(inputs, 5 + ("flagged" in inputs))
    amount = checked_decimal(inputs["amount"], "amount")
    balance = checked_decimal(inputs["balance"], "balance")
    currency = checked_text(inputs["currency"], "currency")
    if currency not in CURRENCIES:
        raise ValueError(f"currency: none is called {currency}")
    country = checked_text(inputs["country"], "country")
    if len(country) != 2:
        raise ValueError("country: expected two letters")
    age = checked_integer(inputs["user_age_days"], "user_age_days")
    if age < 0:
        raise ValueError("user_age_days: negative")
    flagged = inputs.get("flagged", False)
    if type(flagged) is not bool:
        raise TypeError("flagged: expected a bool")
    if not amount > ZERO:
        raise ValueError("amount > 0")

    if amount <= HUNDRED:
        fee = amount * LOW_RATE + LOW_BASE
    elif amount <= THOUSAND:
        fee = amount * MIDDLE_RATE + MIDDLE_BASE
    else:
        fee = amount * HIGH_RATE + HIGH_BASE
    risk = 0
    if flagged:
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

    if not fee >= ZERO:
        raise ValueError("fee >= 0")
    if not (decision == "decline" or new_balance >= ZERO):
        raise ValueError("new_balance >= 0 unless declined")
    return {"decision": decision, "fee": fee, "risk": risk, "new_balance": new_balance}


def order_pricing(inputs: dict[str, Any]) -> dict[str, Any]:
    if type(inputs) is not dict:
        raise TypeError("inputs: expected a dict")
    check_names(inputs, 1)
    items = inputs["items"]
    if type(items) is not list:
        raise TypeError("items: expected a list")
    if len(items) > MOST:
        raise ValueError("items: too many")
    for item in items:
        if type(item) is not dict:
            raise TypeError("items: expected dicts")
        check_names(item, 3)
        if not checked_integer(item["qty"], "qty") > 0:
            raise ValueError("qty > 0")
        if not checked_decimal(item["unit_price"], "unit_price") >= ZERO:
            raise ValueError("unit_price >= 0")
        if checked_text(item["category"], "category") not in TAX_RATE:
            raise ValueError("category: no tax rate")

    pieces = 0
    subtotal = tax = ZERO
    for item in items:
        price = item["qty"] * item["unit_price"]
        pieces += item["qty"]
        subtotal += price
        tax += price * TAX_RATE[item["category"]]
    if pieces > LARGEST:
        raise ValueError("too many pieces")
    if pieces >= 100:
        discount = subtotal * LARGE_ORDER
    elif pieces >= 50:
        discount = subtotal * MIDDLE_ORDER
    else:
        discount = ZERO
    shipping = ZERO if subtotal - discount >= FIVE_HUNDRED else SHIPPING + SHIPPING_A_PIECE * pieces
    total = subtotal - discount + tax + shipping

    if total != subtotal - discount + tax + shipping:
        raise ValueError("total")
    if not total >= ZERO:
        raise ValueError("total >= 0")
    return {"subtotal": subtotal, "discount": discount, "tax": tax, "shipping": shipping, "total": total}


def numeric_loop(inputs: dict[str, Any]) -> dict[str, Any]:
    if type(inputs) is not dict:
        raise TypeError("inputs: expected a dict")
    check_names(inputs, ("seed" in inputs) + ("n" in inputs))
    state = checked_integer(inputs.get("seed", 42), "seed")
    n = checked_integer(inputs.get("n", 10_000), "n")
    if not 0 <= state <= 0x7FFFFFFF:
        raise ValueError("seed: out of range")
    if not 0 <= n <= 10_000:
        raise ValueError("n: out of range")
    score, hits = 0.0, 0
    for _ in range(n):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        x = state / 2147483648.0
        y = ((0.5 * x - 1.25) * x + 0.75) * x + 0.1
        if y > 0.2:
            score += y
            hits += 1
        else:
            score -= 0.5 * x
    if not 0 <= hits <= n:
        raise ValueError("hits")
    return {"score": score, "hits": hits, "state": state}
