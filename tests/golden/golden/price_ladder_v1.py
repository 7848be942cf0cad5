# AUTO-GENERATED - DO NOT EDIT
# price_ladder_v1, from nodes/numbers/price_ladder_v1.vsp
# semantic hash 50fb832728dd646f45d854c52d5a15e7f483e6f319c1a251bd61b56e9d4a2661
"""Derive list, retail and clearance prices from a cost, each rounded the way its market wants
it."""

from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import at as array_at
from vesper.kernels.decimal import (
    abs as decimal_abs,
    allocate as decimal_allocate,
    ceil as decimal_ceil,
    div as decimal_div,
    divide as decimal_divide,
    exact_decimals,
    exact_entry,
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
from vesper.kernels.map import map_of
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    MAX_ENTRIES,
    MAX_INTEGER,
    MIN_INTEGER,
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
    charm = decimal_ceil(gross) + D_1 - D_0_01

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
    if not (by_mode["down"] <= by_mode["up"] and by_mode["floor"] <= by_mode["ceiling"]):
        raise ContractBroken("postcondition", 1, {"by_mode": by_mode})

    # postcondition, line 37: by_mode['up'] - by_mode['down'] <= pow(0.1, places)
    if not by_mode["up"] - by_mode["down"] <= decimal_pow(D_0_1, places):
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


INPUTS: Final = Inputs(
    {
        "cost": "decimal",
        "margin": "decimal",
        "tax": "decimal",
        "growth": "decimal",
        "years": "integer",
        "places": "integer",
        "limits": "array<decimal>",
    },
    {"margin": D_0_35, "tax": D_0_19, "growth": D_0_02, "years": 1, "places": 2},
)
RUN: Final = undecorated(price_ladder_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != (
            2
            + ("margin" in inputs)
            + ("tax" in inputs)
            + ("growth" in inputs)
            + ("years" in inputs)
            + ("places" in inputs)
        ):
            raise NotPlain
        cost = inputs["cost"]
        if type(cost) is not Decimal or not is_finite(cost):
            raise NotPlain
        cost = cost + D_0
        margin = inputs["margin"] if "margin" in inputs else D_0_35
        if type(margin) is not Decimal or not is_finite(margin):
            raise NotPlain
        margin = margin + D_0
        tax = inputs["tax"] if "tax" in inputs else D_0_19
        if type(tax) is not Decimal or not is_finite(tax):
            raise NotPlain
        tax = tax + D_0
        growth = inputs["growth"] if "growth" in inputs else D_0_02
        if type(growth) is not Decimal or not is_finite(growth):
            raise NotPlain
        growth = growth + D_0
        years = inputs["years"] if "years" in inputs else 1
        if type(years) is not int or years < MIN_INTEGER or years > MAX_INTEGER:
            raise NotPlain
        places = inputs["places"] if "places" in inputs else 2
        if type(places) is not int or places < MIN_INTEGER or places > MAX_INTEGER:
            raise NotPlain
        limits = inputs["limits"]
        if type(limits) is not list or len(limits) > MAX_ENTRIES:
            raise NotPlain
        limits = [read_decimal(item) for item in limits]
    except NOT_PLAIN:
        cost, margin, tax, growth, years, places, limits = read_inputs(INPUTS, inputs)
    return new_objects(
        RUN(
            cost=cost,
            margin=margin,
            tax=tax,
            growth=growth,
            years=years,
            places=places,
            limits=limits,
        )
    )


SOURCE: Final = Source(
    "nodes/numbers/price_ladder_v1.vsp",
    lines={
        103: 6, 107: 6, 111: 7, 115: 7, 119: 8, 123: 8, 127: 9, 131: 9, 135: 10, 139: 10, 143: 11,
        147: 11, 150: 33, 151: 33, 154: 44, 157: 45, 160: 46, 163: 48, 166: 49, 167: 49, 171: 50,
        174: 52, 177: 53, 183: 56, 184: 56, 185: 57, 186: 57, 187: 58, 188: 58, 189: 59, 193: 70,
        195: 70, 196: 70, 197: 70, 198: 70, 203: 71, 206: 73, 209: 74, 220: 35, 221: 35, 225: 36,
        226: 36, 229: 37, 230: 37, 234: 38, 237: 39, 238: 39,
    },
    clauses={
        "constraint": [
            "cost > 0",
            "cost <= 1000000",
            "margin >= 0",
            "margin <= 0.95",
            "tax >= 0",
            "tax <= 1",
            "growth >= -0.5",
            "growth <= 0.5",
            "years >= -10",
            "years <= 10",
            "places >= 0",
            "places <= 4",
        ],
        "precondition": [
            "length(limits) == 2 AND limits[0] <= limits[1]",
        ],
        "postcondition": [
            "SUM(part FOR part IN instalments) == gross",
            "by_mode['down'] <= by_mode['up'] AND by_mode['floor'] <= by_mode['ceiling']",
            "by_mode['up'] - by_mode['down'] <= pow(0.1, places)",
            "gross >= net AND charm > 0",
            "capped >= limits[0] AND capped <= limits[1]",
        ],
    },
)  # fmt: skip
