# AUTO-GENERATED - DO NOT EDIT
# currency_conversion_v1, from nodes/finance/currency_conversion_v1.vsp
# semantic hash 6871a3ea4d89713ebff5bc4e664f940d79d60c78c0d394b1421aecb0a53519b3
"""Convert an amount through a base currency and round it the way the target is paid out."""

from decimal import Decimal
from typing import Final, TypedDict

from vesper.kernels.decimal import (
    divide as decimal_divide,
    exact_decimals,
    round as decimal_round,
    unsigned_zero,
)
from vesper.kernels.map import at as map_at, entries_of, get as map_get, keys as map_keys
from vesper.kernels.raised import ContractBroken
from vesper.kernels.value import max as value_max, min as value_min

D_0: Final = Decimal("0")
D_0_01: Final = Decimal("0.01")
D_0_2: Final = Decimal("0.2")


class Success(TypedDict):
    converted: Decimal
    fee_paid: Decimal
    rate: Decimal
    known: list[str]


PLACES: Final[dict[str, int]] = {"JPY": 0, "KWD": 3}


@exact_decimals
def currency_conversion_v1(
    amount: Decimal,
    from_: str,
    to: str,
    rates: dict[str, Decimal],
    fee: Decimal = D_0_01,
) -> Success:
    """Convert an amount through a base currency and round it the way the target is paid out."""

    # constraint, line 6: amount >= 0
    if not amount >= D_0:
        raise ContractBroken("constraint", 0, {"amount": amount})

    # constraint, line 10: fee >= 0
    if not fee >= D_0:
        raise ContractBroken("constraint", 1, {"fee": fee})

    # constraint, line 10: fee <= 0.2
    if not fee <= D_0_2:
        raise ContractBroken("constraint", 2, {"fee": fee})

    # precondition, line 24: from IN rates AND to IN rates
    if not (from_ in rates and to in rates):
        raise ContractBroken("precondition", 0, {"from": from_, "rates": rates, "to": to})

    # precondition, line 25: FORALL code, rate IN rates SATISFIES rate > 0
    if not all(rate > D_0 for code, rate in entries_of(rates)):
        raise ContractBroken("precondition", 1, {"rates": rates})

    # step fee_paid, line 32
    fee_paid = decimal_round(
        unsigned_zero(amount * fee),
        [2 if value is None else value for value in [map_get(PLACES, from_)]][0],
        "up",
    )

    # step paid_in, line 33
    paid_in = value_max(amount - fee_paid, D_0)

    # step rate, line 34
    rate = decimal_divide(map_at(rates, to), map_at(rates, from_))

    # step converted, line 35
    converted = decimal_round(
        decimal_divide(unsigned_zero(paid_in * map_at(rates, to)), map_at(rates, from_)),
        [2 if value is None else value for value in [map_get(PLACES, to)]][0],
        "down",
    )

    # step known, line 36
    known = map_keys(rates)

    # output fee_paid, line 39
    fee_paid_ = value_min(fee_paid, amount)

    # postcondition, line 27: fee_paid <= amount
    if not fee_paid_ <= amount:
        raise ContractBroken("postcondition", 0, {"fee_paid": fee_paid_, "amount": amount})

    return {"converted": converted, "fee_paid": fee_paid_, "rate": rate, "known": known}
