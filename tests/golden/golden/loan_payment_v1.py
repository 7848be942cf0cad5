# AUTO-GENERATED - DO NOT EDIT
# loan_payment_v1, from nodes/finance/loan_payment_v1.vsp
# semantic hash 79c480887177f77b106e8706bd727f49a03a185d2f21bcec75b1c84e9229f6d9
"""Work out the monthly payment of a loan and what it costs in all."""

from decimal import Decimal
from typing import Any, Final, TypedDict

from vesper.kernels.decimal import (
    div as decimal_div,
    divide as decimal_divide,
    exact_decimals,
    exact_entry,
    pow as decimal_pow,
    round as decimal_round,
    unsigned_zero,
)
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

D_0: Final = Decimal("0")
D_0_01: Final = Decimal("0.01")
D_1: Final = Decimal("1")
D_12: Final = Decimal("12")
D_100000000: Final = Decimal("100000000")


class Success(TypedDict):
    payment: Decimal
    total: Decimal
    interest: Decimal
    first_interest: Decimal


@exact_decimals
def loan_payment_v1(principal: Decimal, annual_rate: Decimal, months: int) -> Success:
    """Work out the monthly payment of a loan and what it costs in all."""

    # constraint, line 6: principal > 0
    if not principal > D_0:
        raise ContractBroken("constraint", 0, {"principal": principal})

    # constraint, line 6: principal <= 100000000
    if not principal <= D_100000000:
        raise ContractBroken("constraint", 1, {"principal": principal})

    # constraint, line 7: annual_rate >= 0
    if not annual_rate >= D_0:
        raise ContractBroken("constraint", 2, {"annual_rate": annual_rate})

    # constraint, line 7: annual_rate <= 1
    if not annual_rate <= D_1:
        raise ContractBroken("constraint", 3, {"annual_rate": annual_rate})

    # constraint, line 8: months >= 1
    if not months >= 1:
        raise ContractBroken("constraint", 4, {"months": months})

    # constraint, line 8: months <= 480
    if not months <= 480:
        raise ContractBroken("constraint", 5, {"months": months})

    # step monthly, line 25
    monthly = decimal_divide(annual_rate, D_12)

    # step growth, line 27
    growth = decimal_round(
        decimal_pow(decimal_round(D_1 + monthly, 20, "half_even"), months), 30, "half_even"
    )

    # step payment, line 28
    payment = (
        decimal_div(principal, Decimal(months), 2, "up")
        if monthly == D_0
        else decimal_round(
            decimal_divide(unsigned_zero(principal * monthly * growth), growth - D_1), 2, "half_up"
        )
    )

    # step total, line 29
    total = unsigned_zero(payment * months)

    # step interest, line 30
    interest = total - principal

    # step first_interest, line 31
    first_interest = decimal_round(unsigned_zero(principal * monthly), 2, "half_up")

    # postcondition, line 19: total >= principal - 0.01 * months
    if not total >= principal - D_0_01 * months:
        raise ContractBroken(
            "postcondition", 0, {"total": total, "principal": principal, "months": months}
        )

    # postcondition, line 20: interest == total - principal
    if interest != total - principal:
        raise ContractBroken(
            "postcondition", 1, {"interest": interest, "total": total, "principal": principal}
        )

    return {
        "payment": payment,
        "total": total,
        "interest": interest,
        "first_interest": first_interest,
    }


INPUTS: Final = Inputs({"principal": "decimal", "annual_rate": "decimal", "months": "integer"}, {})
RUN: Final = undecorated(loan_payment_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 3:
            raise NotPlain
        principal = inputs["principal"]
        if type(principal) is not Decimal or not is_finite(principal):
            raise NotPlain
        principal = principal + D_0
        annual_rate = inputs["annual_rate"]
        if type(annual_rate) is not Decimal or not is_finite(annual_rate):
            raise NotPlain
        annual_rate = annual_rate + D_0
        months = inputs["months"]
        if type(months) is not int or months < MIN_INTEGER or months > MAX_INTEGER:
            raise NotPlain
    except NOT_PLAIN:
        principal, annual_rate, months = read_inputs(INPUTS, inputs)
    return RUN(principal, annual_rate, months)


SOURCE: Final = Source(
    "nodes/finance/loan_payment_v1.vsp",
    lines={
        51: 6, 55: 6, 59: 7, 63: 7, 67: 8, 71: 8, 74: 25, 77: 27, 78: 27, 83: 28, 85: 28, 86: 28,
        91: 29, 94: 30, 97: 31, 100: 19, 101: 19, 106: 20, 107: 20,
    },
    clauses={
        "constraint": [
            "principal > 0",
            "principal <= 100000000",
            "annual_rate >= 0",
            "annual_rate <= 1",
            "months >= 1",
            "months <= 480",
        ],
        "postcondition": [
            "total >= principal - 0.01 * months",
            "interest == total - principal",
        ],
    },
)  # fmt: skip
