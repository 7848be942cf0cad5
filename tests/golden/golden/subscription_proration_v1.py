# AUTO-GENERATED - DO NOT EDIT
# subscription_proration_v1, from nodes/finance/subscription_proration_v1.vsp
# semantic hash 7b9fa3ede5bc93eef456d8312c89d3984a411278531a951adae6ec25e9810839
"""Charge for the rest of a period when a customer changes plan."""

from decimal import Decimal
from typing import Any, Final, TypedDict

from vesper.kernels.decimal import div as decimal_div, exact_decimals, exact_entry, unsigned_zero
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    MAX_INTEGER,
    MIN_INTEGER,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_finite,
    read_inputs,
    undecorated,
)
from vesper.kernels.runtime.source import Source
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
        unsigned_zero(old_price * days_left), Decimal(days_in_period), 2, "half_even"
    )

    # step charge, line 31
    charge = decimal_div(
        unsigned_zero(new_price * days_left), Decimal(days_in_period), 2, "half_even"
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


INPUTS: Final = Inputs(
    {
        "old_price": "decimal",
        "new_price": "decimal",
        "days_in_period": "integer",
        "days_left": "integer",
        "credit": "optional<decimal>",
    },
    {},
)
RUN: Final = undecorated(subscription_proration_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 4 + ("credit" in inputs):
            raise NotPlain
        old_price = inputs["old_price"]
        if type(old_price) is not Decimal or not is_finite(old_price):
            raise NotPlain
        old_price = old_price + D_0
        new_price = inputs["new_price"]
        if type(new_price) is not Decimal or not is_finite(new_price):
            raise NotPlain
        new_price = new_price + D_0
        days_in_period = inputs["days_in_period"]
        if (
            type(days_in_period) is not int
            or days_in_period < MIN_INTEGER
            or days_in_period > MAX_INTEGER
        ):
            raise NotPlain
        days_left = inputs["days_left"]
        if type(days_left) is not int or days_left < MIN_INTEGER or days_left > MAX_INTEGER:
            raise NotPlain
        credit = inputs["credit"] if "credit" in inputs else None
        if credit is not None and (type(credit) is not Decimal or not is_finite(credit)):
            raise NotPlain
        credit = None if credit is None else credit + D_0
    except NOT_PLAIN:
        old_price, new_price, days_in_period, days_left, credit = read_inputs(INPUTS, inputs)
    return RUN(old_price, new_price, days_in_period, days_left, credit)


SOURCE: Final = Source(
    "nodes/finance/subscription_proration_v1.vsp",
    lines={
        46: 6, 50: 7, 54: 8, 58: 8, 62: 9, 66: 21, 72: 22, 75: 30, 76: 30, 80: 31, 81: 31, 85: 32,
        88: 33, 91: 34, 95: 24, 99: 25,
    },
    clauses={
        "constraint": [
            "old_price >= 0",
            "new_price >= 0",
            "days_in_period >= 1",
            "days_in_period <= 366",
            "days_left >= 0",
        ],
        "precondition": [
            "days_left <= days_in_period",
            "credit IS NULL OR credit >= 0",
        ],
        "postcondition": [
            "due >= 0",
            "credit_left >= 0",
        ],
    },
)  # fmt: skip
