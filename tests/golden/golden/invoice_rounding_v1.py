# AUTO-GENERATED - DO NOT EDIT
# invoice_rounding_v1, from nodes/finance/invoice_rounding_v1.vsp
# semantic hash 113079f12c6638bd14c6d77da07c4ee1e23ce854511dea79a15408e63b1845c4
"""Round the lines of an invoice so that they add up to the rounded total."""

from decimal import Decimal
from typing import Any, Final, TypedDict

from vesper.kernels.decimal import (
    allocate as decimal_allocate,
    exact_decimals,
    exact_entry,
    round as decimal_round,
    unsigned_zero,
)
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    MAX_ENTRIES,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_finite,
    new_objects,
    read_decimal,
    read_inputs,
    undecorated,
)
from vesper.kernels.runtime.source import Source

D_0: Final = Decimal("0")
D_1: Final = Decimal("1")


class Success(TypedDict):
    vat_total: Decimal
    vat_lines: list[Decimal]
    gross_total: Decimal
    rounded_off: Decimal


@exact_decimals
def invoice_rounding_v1(net_amounts: list[Decimal], vat_rate: Decimal) -> Success:
    """Round the lines of an invoice so that they add up to the rounded total."""

    # constraint, line 7: vat_rate >= 0
    if not vat_rate >= D_0:
        raise ContractBroken("constraint", 0, {"vat_rate": vat_rate})

    # constraint, line 7: vat_rate <= 1
    if not vat_rate <= D_1:
        raise ContractBroken("constraint", 1, {"vat_rate": vat_rate})

    # precondition, line 18: length(net_amounts) > 0
    if not len(net_amounts) > 0:
        raise ContractBroken("precondition", 0, {"net_amounts": net_amounts})

    # precondition, line 19: FORALL amount IN net_amounts SATISFIES amount >= 0
    for amount in net_amounts:
        if not amount >= D_0:
            raise ContractBroken("precondition", 1, {"net_amounts": net_amounts})

    # precondition, line 20: SUM(net_amounts) > 0
    if not sum(net_amounts, D_0) > D_0:
        raise ContractBroken("precondition", 2, {"net_amounts": net_amounts})

    # step exact, line 28
    exact = unsigned_zero(sum(net_amounts, D_0) * vat_rate)

    # step vat_total, line 29
    vat_total = decimal_round(exact, 2, "half_up")

    # step vat_lines, line 30
    vat_lines = decimal_allocate(vat_total, net_amounts)

    # step gross_total, line 31
    gross_total = sum(net_amounts, D_0) + vat_total

    # step rounded_off, line 32
    rounded_off = exact - vat_total

    # postcondition, line 22: SUM(vat_lines) == vat_total
    if sum(vat_lines, D_0) != vat_total:
        raise ContractBroken("postcondition", 0, {"vat_lines": vat_lines, "vat_total": vat_total})

    # postcondition, line 23: gross_total == SUM(net_amounts) + vat_total
    if gross_total != sum(net_amounts, D_0) + vat_total:
        raise ContractBroken(
            "postcondition",
            1,
            {"gross_total": gross_total, "net_amounts": net_amounts, "vat_total": vat_total},
        )

    return {
        "vat_total": vat_total,
        "vat_lines": vat_lines,
        "gross_total": gross_total,
        "rounded_off": rounded_off,
    }


INPUTS: Final = Inputs({"net_amounts": "array<decimal>", "vat_rate": "decimal"}, {})
RUN: Final = undecorated(invoice_rounding_v1)


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
        net_amounts = inputs["net_amounts"]
        if type(net_amounts) is not list or len(net_amounts) > MAX_ENTRIES:
            raise NotPlain
        net_amounts = [read_decimal(item) for item in net_amounts]
        vat_rate = inputs["vat_rate"]
        if type(vat_rate) is not Decimal or not is_finite(vat_rate):
            raise NotPlain
        vat_rate = vat_rate + D_0
    except NOT_PLAIN:
        net_amounts, vat_rate = read_inputs(INPUTS, inputs)
    return new_objects(RUN(net_amounts, vat_rate))


SOURCE: Final = Source(
    "nodes/finance/invoice_rounding_v1.vsp",
    lines={
        47: 7, 51: 7, 55: 18, 60: 19, 63: 20, 64: 20, 67: 28, 70: 29, 73: 30, 76: 31, 79: 32,
        82: 22, 83: 22, 86: 23, 87: 23,
    },
    clauses={
        "constraint": [
            "vat_rate >= 0",
            "vat_rate <= 1",
        ],
        "precondition": [
            "length(net_amounts) > 0",
            "FORALL amount IN net_amounts SATISFIES amount >= 0",
            "SUM(net_amounts) > 0",
        ],
        "postcondition": [
            "SUM(vat_lines) == vat_total",
            "gross_total == SUM(net_amounts) + vat_total",
        ],
    },
)  # fmt: skip
