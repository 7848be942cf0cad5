"""Collect every discount that applies to an order, and cap their sum."""

from decimal import Decimal


def collect_discounts(total: Decimal, pieces: int, is_member: bool, country: str, coupon: str | None) -> dict:
    discounts = []
    if total >= 100:
        discounts.append(("large_order", Decimal("0.05")))
    if pieces >= 20:
        discounts.append(("many_pieces", Decimal("0.03")))
    if is_member:
        discounts.append(("member", Decimal("0.04")))
    if is_member and total >= 500:
        discounts.append(("loyal", Decimal("0.02")))
    if country in ("DE", "FR"):
        discounts.append(("home_market", Decimal("0.01")))
    if coupon == "WELCOME":
        discounts.append(("coupon", Decimal("0.10")))
    rate = min(sum((rate for _, rate in discounts), Decimal(0)), Decimal("0.15"))
    return {
        "names": [name for name, _ in discounts],
        "rate": rate,
        "to_pay": round(total * (1 - rate), 2),
    }
