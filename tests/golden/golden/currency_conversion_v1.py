# AUTO-GENERATED - DO NOT EDIT
# currency_conversion_v1, from nodes/finance/currency_conversion_v1.vsp
# semantic hash 6871a3ea4d89713ebff5bc4e664f940d79d60c78c0d394b1421aecb0a53519b3
"""Convert an amount through a base currency and round it the way the target is paid out."""

from decimal import Decimal
from typing import Any, Final, TypedDict

from vesper.kernels.decimal import (
    divide as decimal_divide,
    exact_decimals,
    exact_entry,
    round as decimal_round,
    unsigned_zero,
)
from vesper.kernels.map import entries_of, get as map_get, keys as map_keys
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    MAX_TEXT,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_ascii,
    is_finite,
    is_text,
    new_objects,
    read_inputs,
    read_value,
    undecorated,
)
from vesper.kernels.runtime.source import Source
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
    rate = decimal_divide(rates[to], rates[from_])

    # step converted, line 35
    converted = decimal_round(
        decimal_divide(unsigned_zero(paid_in * rates[to]), rates[from_]),
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


INPUTS: Final = Inputs(
    {
        "amount": "decimal",
        "from": "string",
        "to": "string",
        "rates": "map<string, decimal>",
        "fee": "decimal",
    },
    {"fee": D_0_01},
)
RUN: Final = undecorated(currency_conversion_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 4 + ("fee" in inputs):
            raise NotPlain
        amount = inputs["amount"]
        if type(amount) is not Decimal or not is_finite(amount):
            raise NotPlain
        amount = amount + D_0
        from_ = inputs["from"]
        if (
            type(from_) is not str
            or not (is_ascii(from_) or is_text(from_))
            or len(from_) > MAX_TEXT
        ):
            raise NotPlain
        to = inputs["to"]
        if type(to) is not str or not (is_ascii(to) or is_text(to)) or len(to) > MAX_TEXT:
            raise NotPlain
        rates = inputs["rates"]
        rates = read_value("map<string, decimal>", rates)
        fee = inputs["fee"] if "fee" in inputs else D_0_01
        if type(fee) is not Decimal or not is_finite(fee):
            raise NotPlain
        fee = fee + D_0
    except NOT_PLAIN:
        amount, from_, to, rates, fee = read_inputs(INPUTS, inputs)
    return new_objects(RUN(amount, from_, to, rates, fee))


SOURCE: Final = Source(
    "nodes/finance/currency_conversion_v1.vsp",
    lines={
        61: 6, 65: 10, 69: 10, 73: 24, 77: 25, 80: 32, 81: 32, 87: 33, 90: 34, 93: 35, 94: 35,
        107: 27,
    },
    clauses={
        "constraint": [
            "amount >= 0",
            "fee >= 0",
            "fee <= 0.2",
        ],
        "precondition": [
            "from IN rates AND to IN rates",
            "FORALL code, rate IN rates SATISFIES rate > 0",
        ],
        "postcondition": [
            "fee_paid <= amount",
        ],
    },
)  # fmt: skip
