# AUTO-GENERATED - DO NOT EDIT
# progressive_tax_v1, from nodes/finance/progressive_tax_v1.vsp
# semantic hash 11cb1ace6f7cb4daddbbecb4a1a171b0380ba1934550eb089a32bcfd1c317fc6
"""Tax an income by brackets, each rate on its own slice, and say the effective rate."""

from decimal import Decimal
from typing import Any, Final, TypedDict

from vesper.kernels.array import at as array_at, range as array_range
from vesper.kernels.decimal import (
    div as decimal_div,
    exact_decimals,
    exact_entry,
    round as decimal_round,
    unsigned_zero,
)
from vesper.kernels.integer import checked
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    MAX_ENTRIES,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_finite,
    read_inputs,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.value import max as value_max, min as value_min

D_0: Final = Decimal("0")
D_1: Final = Decimal("1")


Bracket = TypedDict("Bracket", {"from": Decimal, "rate": Decimal})


class Success(TypedDict):
    tax: Decimal
    net: Decimal
    effective_rate: Decimal
    marginal_rate: Decimal


@exact_decimals
def progressive_tax_v1(income: Decimal, brackets: list[Bracket]) -> Success:
    """Tax an income by brackets, each rate on its own slice, and say the effective rate."""

    # constraint, line 13: income >= 0
    if not income >= D_0:
        raise ContractBroken("constraint", 0, {"income": income})

    # constraint, line 10: from >= 0
    for item in brackets:
        if not item["from"] >= D_0:
            raise ContractBroken("constraint", 1, {"brackets": brackets})

    # constraint, line 10: rate >= 0
    for item in brackets:
        if not item["rate"] >= D_0:
            raise ContractBroken("constraint", 2, {"brackets": brackets})

    # constraint, line 10: rate <= 1
    for item in brackets:
        if not item["rate"] <= D_1:
            raise ContractBroken("constraint", 3, {"brackets": brackets})

    # precondition, line 25: length(brackets) > 0
    if not len(brackets) > 0:
        raise ContractBroken("precondition", 0, {"brackets": brackets})

    # precondition, line 26: brackets[0].from == 0
    if array_at(brackets, 0)["from"] != D_0:
        raise ContractBroken("precondition", 1, {"brackets": brackets})

    # precondition, line 27: FORALL i IN range(1, length(brackets)) SATISFIES brackets[i].from >
    #   brackets[i - 1].from
    for i in array_range(1, len(brackets), 1):
        if not array_at(brackets, i)["from"] > array_at(brackets, checked(i - 1))["from"]:
            raise ContractBroken("precondition", 2, {"brackets": brackets})

    # step slices, line 36
    slices = [
        unsigned_zero(
            value_max(upper - array_at(brackets, i)["from"], D_0) * array_at(brackets, i)["rate"]
        )
        for i in array_range(0, len(brackets), 1)
        for upper in [
            value_min(income, array_at(brackets, checked(i + 1))["from"])
            if checked(i + 1) < len(brackets)
            else income
        ]
    ]

    # step tax, line 37
    tax = decimal_round(sum(slices, D_0), 2, "half_up")

    # step net, line 38
    net = income - tax

    # step effective_rate, line 39
    effective_rate = D_0 if income == D_0 else decimal_div(tax, income, 4, "half_even")

    # step reached, line 40
    reached: list[Bracket] = [bracket for bracket in brackets if bracket["from"] <= income]

    # step marginal_rate, line 41
    marginal_rate = array_at(reached, len(reached) - 1)["rate"]

    # postcondition, line 29: tax + net == income
    if tax + net != income:
        raise ContractBroken("postcondition", 0, {"tax": tax, "net": net, "income": income})

    # postcondition, line 30: tax >= 0 AND tax <= income
    if not (tax >= D_0 and tax <= income):
        raise ContractBroken("postcondition", 1, {"tax": tax, "income": income})

    return {
        "tax": tax,
        "net": net,
        "effective_rate": effective_rate,
        "marginal_rate": marginal_rate,
    }


INPUTS: Final = Inputs(
    {"income": "decimal", "brackets": "array<{from: decimal, rate: decimal}>"}, {}
)
RUN: Final = undecorated(progressive_tax_v1)


def read_bracket(given: Any) -> Bracket:
    """What is a Bracket already, field by field."""
    if type(given) is not dict:
        raise NotPlain
    for name in given:
        if type(name) is not str:
            raise NotPlain
    if len(given) != 2:
        raise NotPlain
    from_ = given["from"]
    if type(from_) is not Decimal or not is_finite(from_):
        raise NotPlain
    rate = given["rate"]
    if type(rate) is not Decimal or not is_finite(rate):
        raise NotPlain
    return {"from": from_ + D_0, "rate": rate + D_0}


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 2:
            raise NotPlain
        income = inputs["income"]
        if type(income) is not Decimal or not is_finite(income):
            raise NotPlain
        income = income + D_0
        brackets = inputs["brackets"]
        if type(brackets) is not list or len(brackets) > MAX_ENTRIES:
            raise NotPlain
        brackets = [read_bracket(item) for item in brackets]
    except NOT_PLAIN:
        income, brackets = read_inputs(INPUTS, inputs)
    return RUN(income, brackets)


SOURCE: Final = Source(
    "nodes/finance/progressive_tax_v1.vsp",
    lines={
        51: 13, 56: 10, 61: 10, 66: 10, 70: 25, 73: 26, 74: 26, 78: 27, 79: 27, 80: 27, 85: 36,
        87: 36, 89: 36, 90: 36, 96: 37, 99: 38, 102: 39, 108: 41, 111: 29, 112: 29, 116: 30,
    },
    clauses={
        "constraint": [
            "income >= 0",
            "from >= 0",
            "rate >= 0",
            "rate <= 1",
        ],
        "precondition": [
            "length(brackets) > 0",
            "brackets[0].from == 0",
            "FORALL i IN range(1, length(brackets)) SATISFIES brackets[i].from > brackets[i - 1].from",
        ],
        "postcondition": [
            "tax + net == income",
            "tax >= 0 AND tax <= income",
        ],
    },
)  # fmt: skip
