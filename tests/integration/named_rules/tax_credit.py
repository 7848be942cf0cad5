"""Compute a tax credit that is phased out with income."""

from decimal import ROUND_CEILING, Decimal

LIMITS = {"single": Decimal(75000), "married": Decimal(150000)}


def tax_credit(status: str, income: Decimal, children: int, tax: Decimal) -> dict:
    full = Decimal(2000) * children
    excess = max(income - LIMITS[status], Decimal(0))
    steps = (excess / 1000).to_integral_value(ROUND_CEILING)
    credit = max(full - steps * 50, Decimal(0))
    used = min(credit, tax)
    refund = min(credit - used, Decimal(1400) * children)
    if credit == 0:
        phase = "gone"
    elif credit < full:
        phase = "reduced"
    else:
        phase = "full"
    return {"credit": credit, "used": used, "refund": refund, "phase": phase}
