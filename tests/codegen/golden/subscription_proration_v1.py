# AUTO-GENERATED - DO NOT EDIT
# subscription_proration_v1, from nodes/finance/subscription_proration_v1.vsp
# semantic hash 7b9fa3ede5bc93eef456d8312c89d3984a411278531a951adae6ec25e9810839
"""Charge for the rest of a period when a customer changes plan."""

from decimal import Decimal
from typing import Final, TypedDict

from vesper.kernels.decimal import div as decimal_div, exact_decimals, unsigned_zero
from vesper.kernels.raised import ContractBroken
from vesper.kernels.value import max as value_max

D_0: Final = Decimal("0")


class Success(TypedDict):
    refund: Decimal
    charge: Decimal
    due: Decimal
    credit_left: Decimal


@exact_decimals
def subscription_proration_v1(
    old_price: Decimal,
    new_price: Decimal,
    days_in_period: int,
    days_left: int,
    credit: Decimal | None = None,
) -> Success:
    """Charge for the rest of a period when a customer changes plan."""

    # constraint, line 6: old_price >= 0
    if not old_price >= D_0:
        raise ContractBroken("constraint", 0, {"old_price": old_price})

    # constraint, line 7: new_price >= 0
    if not new_price >= D_0:
        raise ContractBroken("constraint", 1, {"new_price": new_price})

    # constraint, line 8: days_in_period >= 1
    if not days_in_period >= 1:
        raise ContractBroken("constraint", 2, {"days_in_period": days_in_period})

    # constraint, line 8: days_in_period <= 366
    if not days_in_period <= 366:
        raise ContractBroken("constraint", 3, {"days_in_period": days_in_period})

    # constraint, line 9: days_left >= 0
    if not days_left >= 0:
        raise ContractBroken("constraint", 4, {"days_left": days_left})

    # precondition, line 21: days_left <= days_in_period
    if not days_left <= days_in_period:
        raise ContractBroken(
            "precondition", 0, {"days_left": days_left, "days_in_period": days_in_period}
        )

    # precondition, line 22: credit IS NULL OR credit >= 0
    if not (credit is None or credit >= D_0):
        raise ContractBroken("precondition", 1, {"credit": credit})

    # step refund, line 30
    refund = decimal_div(
        unsigned_zero(old_price * Decimal(days_left)), Decimal(days_in_period), 2, "half_even"
    )

    # step charge, line 31
    charge = decimal_div(
        unsigned_zero(new_price * Decimal(days_left)), Decimal(days_in_period), 2, "half_even"
    )

    # step available, line 32
    available = (D_0 if credit is None else credit) + refund

    # step due, line 33
    due = value_max(charge - available, D_0)

    # step credit_left, line 34
    credit_left = value_max(available - charge, D_0)

    # postcondition, line 24: due >= 0
    if not due >= D_0:
        raise ContractBroken("postcondition", 0, {"due": due})

    # postcondition, line 25: credit_left >= 0
    if not credit_left >= D_0:
        raise ContractBroken("postcondition", 1, {"credit_left": credit_left})

    return {"refund": refund, "charge": charge, "due": due, "credit_left": credit_left}
