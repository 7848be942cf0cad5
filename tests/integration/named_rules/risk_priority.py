"""Rate a payment by the highest risk of all rules that apply."""

from decimal import Decimal

ORDER = ("block", "review", "watch", "accept")


def risk_priority(amount: Decimal, country: str, account_days: int, attempts: int) -> dict:
    found = ["accept"]
    if amount > 5000:
        found.append("review")
    if country in ("KP", "IR"):
        found.append("block")
    if country in ("NG", "RU") and amount > 500:
        found.append("review")
    if account_days < 7:
        found.append("watch")
    if account_days < 7 and amount > 1000:
        found.append("review")
    if attempts > 5:
        found.append("block")
    risk = min(found, key=ORDER.index)
    return {"risk": risk, "is_automatic": risk in ("accept", "block")}
