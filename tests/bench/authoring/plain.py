"""Twelve of the tasks in plain Python: typed, exact, with the same checks of inputs and the same errors.

Each function stands with what it needs of its own, as a module of its own would have it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import Any, Literal


class TaskError(Exception):
    """A declared error."""

    def __init__(self, code: str, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.code = code
        self.fields = fields


# -- line_totals


@dataclass(frozen=True)
class Line:
    pieces: int
    price: Decimal


def line_totals(lines: Sequence[Line]) -> dict[str, Decimal]:
    """Add up the lines of an invoice."""
    if not lines:
        raise TaskError("no_lines", "there are no lines")
    cent = Decimal("0.01")
    net = sum(((line.pieces * line.price).quantize(cent, ROUND_HALF_UP) for line in lines), Decimal(0))
    tax = (net * Decimal("0.19")).quantize(cent, ROUND_HALF_UP)
    return {"net": net, "tax": tax, "gross": net + tax}


# -- volume_discount


def volume_discount(amount: Decimal, is_member: bool) -> dict[str, Any]:
    """Discount an amount by its volume."""
    if amount < 0:
        raise ValueError("amount must not be negative")
    if amount < 100:
        base = 0
    elif amount < 500:
        base = 5
    elif amount < 1000:
        base = 10
    else:
        base = 15
    percent = base + (2 if is_member else 0)
    price = (amount * (100 - percent) / 100).quantize(Decimal("0.01"), ROUND_HALF_EVEN)
    return {"percent": percent, "price": price}


# -- late_fee


def late_fee(amount: Decimal, due: date, today: date) -> dict[str, Any]:
    """Say what an overdue invoice costs on a day."""
    if amount < 0:
        raise ValueError("amount must not be negative")
    days = max((today - due).days, 0)
    if days <= 14:
        fee = Decimal("0.00")
    elif days <= 30:
        fee = Decimal("5.00")
    else:
        fee = Decimal("5.00") + (amount * Decimal("0.01")).quantize(Decimal("0.01"), ROUND_HALF_UP)
    return {"days": days, "fee": fee}


# -- overtime_pay


def overtime_pay(hours: Decimal, rate: Decimal) -> dict[str, Decimal]:
    """Pay the hours of a week."""
    if hours < 0:
        raise ValueError("hours must not be negative")
    if rate <= 0:
        raise ValueError("rate must be positive")
    if hours > 80:
        raise TaskError("too_many_hours", f"{hours} hours are more than 80")
    normal = min(hours, Decimal(40))
    first = min(max(hours - 40, Decimal(0)), Decimal(10))
    second = max(hours - 50, Decimal(0))
    pay = (normal + first * Decimal("1.25") + second * Decimal("1.5")) * rate
    return {"pay": pay.quantize(Decimal("0.01"), ROUND_HALF_UP), "overtime": max(hours - 40, Decimal(0))}


# -- loan_decision


def loan_decision(age: int, income: Decimal, amount: Decimal, score: int) -> dict[str, Any]:
    """Decide on a loan."""
    if income < 0:
        raise ValueError("income must not be negative")
    if amount <= 0:
        raise ValueError("amount must be positive")
    if not 0 <= score <= 1000:
        raise ValueError("score must be from 0 to 1000")
    if age < 18:
        raise TaskError("too_young", f"{age} is too young")
    if amount > income * 5:
        raise TaskError("too_much", f"{amount} is too much")
    decision: Literal["approve", "review", "refuse"]
    if score < 500:
        decision = "refuse"
    elif score < 650 or amount > income * 3:
        decision = "review"
    else:
        decision = "approve"
    interest = None
    if decision == "approve":
        interest = Decimal("0.0399") if score >= 750 else Decimal("0.0599")
    return {"decision": decision, "interest": interest}


# -- exchange


def exchange(amount: Decimal, source: str, target: str, rates: dict[str, Decimal]) -> dict[str, Decimal]:
    """Exchange an amount between currencies."""
    if amount < 0:
        raise ValueError("amount must not be negative")
    if any(rate <= 0 for rate in rates.values()):
        raise ValueError("rates must be positive")
    known = {"EUR": Decimal(1), **rates}
    for currency in (source, target):
        if currency not in known:
            raise TaskError("unknown_currency", f"no rate of {currency}", currency=currency)
    result = amount * known[source] / known[target]
    return {"result": result.quantize(Decimal("0.01"), ROUND_HALF_EVEN)}


# -- luhn


def luhn(number: str) -> dict[str, Any]:
    """Check a card number by Luhn's rule."""
    if len(number) > 100:
        raise ValueError("number must have at most 100 characters")
    digits = number.replace(" ", "").replace("-", "")
    if not re.fullmatch(r"[0-9]{2,100}", digits):
        return {"valid": False, "digits": digits}
    total = 0
    for index, digit in enumerate(map(int, reversed(digits))):
        if index % 2:
            digit = digit * 2 - 9 if digit > 4 else digit * 2
        total += digit
    return {"valid": total % 10 == 0, "digits": digits}


# -- roman

NUMERALS = (
    (1000, "M"),
    (900, "CM"),
    (500, "D"),
    (400, "CD"),
    (100, "C"),
    (90, "XC"),
    (50, "L"),
    (40, "XL"),
    (10, "X"),
    (9, "IX"),
    (5, "V"),
    (4, "IV"),
    (1, "I"),
)


def roman(number: int) -> dict[str, str]:
    """Write a number in Roman numerals."""
    if not 1 <= number <= 3999:
        raise TaskError("out_of_range", f"{number} has no numeral")
    done = []
    for value, letters in NUMERALS:
        count, number = divmod(number, value)
        done.append(letters * count)
    return {"roman": "".join(done)}


# -- compare_versions


def compare_versions(left: str, right: str) -> dict[str, str]:
    """Compare two versions."""
    if len(left) > 50 or len(right) > 50:
        raise ValueError("a version must have at most 50 characters")
    form = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})*")
    if not form.fullmatch(left) or not form.fullmatch(right):
        raise TaskError("not_a_version", f"{left} or {right} is no version")
    a, b = ([int(part) for part in each.split(".")] for each in (left, right))
    size = max(len(a), len(b))
    a += [0] * (size - len(a))
    b += [0] * (size - len(b))
    return {"order": "less" if a < b else "equal" if a == b else "greater"}


# -- merge_intervals


@dataclass(frozen=True)
class Interval:
    start: int
    end: int


def merge_intervals(intervals: Sequence[Interval]) -> dict[str, Any]:
    """Merge intervals that overlap or touch."""
    if any(each.end < each.start for each in intervals):
        raise TaskError("reversed", "an interval ends before it starts")
    merged: list[Interval] = []
    for each in sorted(intervals, key=lambda each: each.start):
        if merged and each.start <= merged[-1].end:
            merged[-1] = Interval(merged[-1].start, max(merged[-1].end, each.end))
        else:
            merged.append(each)
    return {"merged": merged, "covered": sum(each.end - each.start for each in merged)}


# -- group_totals


@dataclass(frozen=True)
class Sale:
    region: str
    amount: Decimal


@dataclass(frozen=True)
class Total:
    region: str
    sum: Decimal
    number: int
    largest: Decimal


def group_totals(sales: Sequence[Sale]) -> dict[str, Any]:
    """Total sales by region."""
    groups: dict[str, list[Decimal]] = defaultdict(list)
    for sale in sales:
        groups[sale.region].append(sale.amount)
    totals = [
        Total(region, sum(amounts, Decimal(0)), len(amounts), max(amounts))
        for region, amounts in sorted(groups.items())
    ]
    best = max(totals, key=lambda total: total.sum).region if totals else None
    return {"totals": totals, "best": best}


# -- running_balance


def running_balance(opening: Decimal, overdraft: Decimal, entries: Sequence[Decimal]) -> dict[str, Any]:
    """Follow the balance of an account."""
    if overdraft < 0:
        raise ValueError("overdraft must not be negative")
    balance = opening
    balances: list[Decimal] = []
    refused: list[int] = []
    for index, entry in enumerate(entries):
        if balance + entry < -overdraft:
            refused.append(index)
        else:
            balance += entry
        balances.append(balance)
    return {"balances": balances, "closing": balance, "refused": refused}
