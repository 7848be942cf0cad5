# AUTO-GENERATED - DO NOT EDIT
# price_ladder_v1, from nodes/numbers/price_ladder_v1.vsp
# semantic hash 50fb832728dd646f45d854c52d5a15e7f483e6f319c1a251bd61b56e9d4a2661
"""Derive list, retail and clearance prices from a cost, each rounded the way its market wants
it."""

from decimal import Decimal
from typing import Final, Literal, TypedDict

from vesper.kernels.array import at as array_at
from vesper.kernels.decimal import (
    abs as decimal_abs,
    allocate as decimal_allocate,
    ceil as decimal_ceil,
    div as decimal_div,
    divide as decimal_divide,
    exact_decimals,
    floor as decimal_floor,
    normalize as decimal_normalize,
    pow as decimal_pow,
    round as decimal_round,
    scale as decimal_scale,
    sign as decimal_sign,
    text as decimal_text,
    to_float as decimal_to_float,
    to_integer as decimal_to_integer,
    trunc as decimal_trunc,
    unsigned_zero,
)
from vesper.kernels.map import at as map_at, map_of
from vesper.kernels.raised import ContractBroken
from vesper.kernels.text import concat as text_concat
from vesper.kernels.value import clamp as value_clamp, max as value_max

D_MINUS_0_5: Final = Decimal("-0.5")
D_0: Final = Decimal("0")
D_0_01: Final = Decimal("0.01")
D_0_02: Final = Decimal("0.02")
D_0_1: Final = Decimal("0.1")
D_0_19: Final = Decimal("0.19")
D_0_35: Final = Decimal("0.35")
D_0_5: Final = Decimal("0.5")
D_0_95: Final = Decimal("0.95")
D_1: Final = Decimal("1")
D_2: Final = Decimal("2")
D_3: Final = Decimal("3")
D_10_00: Final = Decimal("10.00")
D_96: Final = Decimal("96")
D_100: Final = Decimal("100")
D_1000000: Final = Decimal("1000000")


class Success(TypedDict):
    net: Decimal
    by_mode: dict[
        Literal["half_even", "half_up", "half_down", "up", "down", "floor", "ceiling"], Decimal
    ]
    gross: Decimal
    charm: Decimal
    in_future: Decimal
    instalments: list[Decimal]
    pallet: Decimal
    whole: dict[str, int]
    trend: int
    rebate: Decimal
    capped: Decimal
    shown: str
    digits: int
    share: float


@exact_decimals
def price_ladder_v1(
    *,
    cost: Decimal,
    margin: Decimal = D_0_35,
    tax: Decimal = D_0_19,
    growth: Decimal = D_0_02,
    years: int = 1,
    places: int = 2,
    limits: list[Decimal],
) -> Success:
    """Derive list, retail and clearance prices from a cost, each rounded the way its market wants
    it."""

    # constraint, line 6: cost > 0
    if not cost > D_0:
        raise ContractBroken("constraint", 0, {"cost": cost})

    # constraint, line 6: cost <= 1000000
    if not cost <= D_1000000:
        raise ContractBroken("constraint", 1, {"cost": cost})

    # constraint, line 7: margin >= 0
    if not margin >= D_0:
        raise ContractBroken("constraint", 2, {"margin": margin})

    # constraint, line 7: margin <= 0.95
    if not margin <= D_0_95:
        raise ContractBroken("constraint", 3, {"margin": margin})

    # constraint, line 8: tax >= 0
    if not tax >= D_0:
        raise ContractBroken("constraint", 4, {"tax": tax})

    # constraint, line 8: tax <= 1
    if not tax <= D_1:
        raise ContractBroken("constraint", 5, {"tax": tax})

    # constraint, line 9: growth >= -0.5
    if not growth >= D_MINUS_0_5:
        raise ContractBroken("constraint", 6, {"growth": growth})

    # constraint, line 9: growth <= 0.5
    if not growth <= D_0_5:
        raise ContractBroken("constraint", 7, {"growth": growth})

    # constraint, line 10: years >= -10
    if not years >= -10:
        raise ContractBroken("constraint", 8, {"years": years})

    # constraint, line 10: years <= 10
    if not years <= 10:
        raise ContractBroken("constraint", 9, {"years": years})

    # constraint, line 11: places >= 0
    if not places >= 0:
        raise ContractBroken("constraint", 10, {"places": places})

    # constraint, line 11: places <= 4
    if not places <= 4:
        raise ContractBroken("constraint", 11, {"places": places})

    # precondition, line 33: length(limits) == 2 AND limits[0] <= limits[1]
    if not (len(limits) == 2 and array_at(limits, 0) <= array_at(limits, 1)):
        raise ContractBroken("precondition", 0, {"limits": limits})

    # step exact, line 44
    exact = decimal_divide(cost, D_1 - margin)

    # step net, line 45
    net = decimal_round(exact, places, "half_even")

    # step gross, line 46
    gross = decimal_round(unsigned_zero(exact * (D_1 + tax)), places, "up")

    # step charm, line 48
    charm = Decimal(decimal_ceil(gross)) + D_1 - D_0_01

    # step in_future, line 49
    in_future = decimal_round(
        unsigned_zero(exact * decimal_pow(D_1 + growth, years)), places, "half_even"
    )

    # step instalments, line 50
    instalments = decimal_allocate(gross, [D_3, D_2, D_1])

    # step pallet, line 52
    pallet = value_max(decimal_div(net * D_96 - D_10_00, D_96, places, "floor"), cost)

    # step rebate, line 53
    rebate = -decimal_abs(gross - charm)

    # step by_mode, line 54
    by_mode: dict[
        Literal["half_even", "half_up", "half_down", "up", "down", "floor", "ceiling"], Decimal
    ] = {
        "half_even": decimal_round(exact, places, "half_even"),
        "half_up": decimal_round(exact, places, "half_up"),
        "half_down": decimal_div(cost, D_1 - margin, places, "half_down"),
        "up": decimal_div(cost, D_1 - margin, places, "up"),
        "down": decimal_div(cost, D_1 - margin, places, "down"),
        "floor": decimal_div(cost, D_1 - margin, places, "floor"),
        "ceiling": decimal_div(cost, D_1 - margin, places, "ceiling"),
    }

    # output whole, line 70
    whole: dict[str, int] = map_of(
        [
            ("floor", decimal_floor(rebate)),
            ("ceil", decimal_ceil(rebate)),
            ("trunc", decimal_trunc(rebate)),
            ("cents", decimal_to_integer(decimal_round(gross, 2, "up") * D_100)),
        ]
    )

    # output trend, line 71
    trend = decimal_sign(in_future - net)

    # output capped, line 73
    capped = value_clamp(gross, array_at(limits, 0), array_at(limits, 1))

    # output shown, line 74
    shown = text_concat(
        decimal_text(decimal_normalize(gross)), " incl. tax" if gross != net else ""
    )

    # output digits, line 75
    digits = decimal_scale(exact)

    # output share, line 76
    share = decimal_to_float(margin)

    # postcondition, line 35: SUM(part FOR part IN instalments) == gross
    if sum(instalments, D_0) != gross:
        raise ContractBroken("postcondition", 0, {"instalments": instalments, "gross": gross})

    # postcondition, line 36: by_mode['down'] <= by_mode['up'] AND by_mode['floor'] <=
    #   by_mode['ceiling']
    if not (
        map_at(by_mode, "down") <= map_at(by_mode, "up")
        and map_at(by_mode, "floor") <= map_at(by_mode, "ceiling")
    ):
        raise ContractBroken("postcondition", 1, {"by_mode": by_mode})

    # postcondition, line 37: by_mode['up'] - by_mode['down'] <= pow(0.1, places)
    if not map_at(by_mode, "up") - map_at(by_mode, "down") <= decimal_pow(D_0_1, places):
        raise ContractBroken("postcondition", 2, {"by_mode": by_mode, "places": places})

    # postcondition, line 38: gross >= net AND charm > 0
    if not (gross >= net and charm > D_0):
        raise ContractBroken("postcondition", 3, {"gross": gross, "net": net, "charm": charm})

    # postcondition, line 39: capped >= limits[0] AND capped <= limits[1]
    if not (capped >= array_at(limits, 0) and capped <= array_at(limits, 1)):
        raise ContractBroken("postcondition", 4, {"capped": capped, "limits": limits})

    return {
        "net": net,
        "by_mode": by_mode,
        "gross": gross,
        "charm": charm,
        "in_future": in_future,
        "instalments": instalments,
        "pallet": pallet,
        "whole": whole,
        "trend": trend,
        "rebate": rebate,
        "capped": capped,
        "shown": shown,
        "digits": digits,
        "share": share,
    }
