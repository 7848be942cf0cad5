"""Compute social security contributions by the marginal scales in force."""

from datetime import date
from decimal import Decimal

SCALES = {
    date(2023, 1, 1): [("0", "0"), ("10908", "0.14"), ("15999", "0.24"), ("62809", "0.42")],
    date(2024, 1, 1): [("0", "0"), ("11604", "0.14"), ("17005", "0.24"), ("66760", "0.42")],
    date(2025, 1, 1): [("0", "0"), ("12096", "0.14"), ("17443", "0.24"), ("68480", "0.42")],
}
CARE_RATES = {date(2023, 1, 1): Decimal("0.034"), date(2025, 1, 1): Decimal("0.036")}


def in_force(values: dict, day: date):
    since = max((each for each in values if each <= day), default=None)
    if since is None:
        raise ValueError("not_in_force")
    return values[since]


def marginal(amount: Decimal, scale: list) -> Decimal:
    brackets = [(Decimal(start), Decimal(rate)) for start, rate in scale]
    ends = [start for start, _ in brackets[1:]] + [amount]
    parts = (max(min(end, amount) - start, 0) * rate for (start, rate), end in zip(brackets, ends, strict=True))
    return sum(parts, Decimal(0))


def social_security(income: Decimal, day: date) -> dict:
    pension = round(marginal(income, in_force(SCALES, day)), 2)
    care = round(income * in_force(CARE_RATES, day), 2)
    return {"pension": pension, "care": care, "net": income - pension - care}
