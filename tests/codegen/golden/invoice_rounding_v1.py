# AUTO-GENERATED - DO NOT EDIT
# invoice_rounding_v1, from nodes/finance/invoice_rounding_v1.vsp
# semantic hash 113079f12c6638bd14c6d77da07c4ee1e23ce854511dea79a15408e63b1845c4
"""Round the lines of an invoice so that they add up to the rounded total."""

from decimal import Decimal
from typing import Final, TypedDict

from vesper.kernels.decimal import (
    allocate as decimal_allocate,
    exact_decimals,
    round as decimal_round,
    unsigned_zero,
)
from vesper.kernels.raised import ContractBroken

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
    if not all(amount >= D_0 for amount in net_amounts):
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
