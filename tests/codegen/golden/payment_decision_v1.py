# AUTO-GENERATED - DO NOT EDIT
# payment_decision_v1, from nodes/payments/payment_decision_v1.vsp
# semantic hash ab43ab17d37d98bd1b396edb231011fd31d19ddb0a7e1e5a6d441c0c4b30c5c6
"""Decide whether a card payment goes through, what it costs and why."""

from decimal import Decimal
from typing import Final, Literal, TypedDict

from vesper.kernels.decimal import exact_decimals
from vesper.kernels.raised import ContractBroken

D_0: Final = Decimal("0")
D_0_019: Final = Decimal("0.019")
D_0_025: Final = Decimal("0.025")
D_0_029: Final = Decimal("0.029")
D_0_30: Final = Decimal("0.30")
D_0_50: Final = Decimal("0.50")
D_1_00: Final = Decimal("1.00")
D_2: Final = Decimal("2")
D_100: Final = Decimal("100")
D_1000: Final = Decimal("1000")


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
