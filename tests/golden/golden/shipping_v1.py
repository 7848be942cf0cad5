# AUTO-GENERATED - DO NOT EDIT
# shipping_v1, from nodes/shop/shipping_v1.vsp
# semantic hash 3f6cec5d3da233d49d86efeef14069939c415345125fa97b33e2d8b9be7ec863
"""Price a parcel by zone and weight, with the surcharges that apply."""

from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import concat as array_concat
from vesper.kernels.decimal import exact_decimals, exact_entry, round as decimal_round
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_finite,
    new_objects,
    read_inputs,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.value import max as value_max

D_0: Final = Decimal("0")
D_0_01: Final = Decimal("0.01")
D_0_40: Final = Decimal("0.40")
D_1: Final = Decimal("1")
D_1_10: Final = Decimal("1.10")
D_1_60: Final = Decimal("1.60")
D_2_00: Final = Decimal("2.00")
D_3_25: Final = Decimal("3.25")
D_3_70: Final = Decimal("3.70")
D_4_90: Final = Decimal("4.90")
D_12_50: Final = Decimal("12.50")
D_15_00: Final = Decimal("15.00")
D_20: Final = Decimal("20")
D_24_00: Final = Decimal("24.00")
D_31_5: Final = Decimal("31.5")
D_49_00: Final = Decimal("49.00")
D_5000: Final = Decimal("5000")


class Success(TypedDict):
    price: Decimal
    service: Literal["letter", "parcel", "freight"]
    days: int
    surcharges: list[str]


PER_KG: Final[dict[Literal["domestic", "europe", "world"], Decimal]] = {
    "domestic": D_0_40,
    "europe": D_1_10,
    "world": D_3_25,
}


@exact_decimals
def shipping_v1(
    zone: Literal["domestic", "europe", "world"],
    weight_kg: Decimal,
    is_bulky: bool = False,
    insured: Decimal | None = None,
) -> Success:
    """Price a parcel by zone and weight, with the surcharges that apply."""

    # constraint, line 7: weight_kg > 0
    if not weight_kg > D_0:
        raise ContractBroken("constraint", 0, {"weight_kg": weight_kg})

    # constraint, line 7: weight_kg <= 31.5
    if not weight_kg <= D_31_5:
        raise ContractBroken("constraint", 1, {"weight_kg": weight_kg})

    # precondition, line 23: insured IS NULL OR insured <= 5000
    if not (insured is None or insured <= D_5000):
        raise ContractBroken("precondition", 0, {"insured": insured})

    # step service, line 29
    service: Literal["letter", "parcel", "freight"]
    if is_bulky or weight_kg > D_20:
        service = "freight"
    elif weight_kg <= D_1:
        service = "letter"
    else:
        service = "parcel"

    # step base, line 36
    if service == "letter" and zone == "domestic":
        base = D_1_60
    elif service == "letter":
        base = D_3_70
    elif service == "parcel" and zone == "domestic":
        base = D_4_90
    elif service == "parcel" and zone == "europe":
        base = D_12_50
    elif service == "parcel":
        base = D_24_00
    else:
        base = D_49_00

    # step insurance, line 48
    insurance = D_0 if insured is None else value_max(insured * D_0_01, D_2_00)

    # step bulk, line 49
    bulk = D_15_00 if is_bulky else D_0

    # step price, line 50
    price = decimal_round(base + PER_KG[zone] * weight_kg + insurance + bulk, 2, "half_up")

    # step days, line 51
    if zone == "domestic":
        days = 2
    elif zone == "europe":
        days = 5
    else:
        days = 12

    # step surcharges, line 52
    surcharges = array_concat(
        ["bulky"] if bulk > D_0 else [], ["insurance"] if insurance > D_0 else []
    )

    # postcondition, line 25: price > 0
    if not price > D_0:
        raise ContractBroken("postcondition", 0, {"price": price})

    # postcondition, line 26: service == letter => weight_kg <= 1
    if not (service != "letter" or weight_kg <= D_1):
        raise ContractBroken("postcondition", 1, {"service": service, "weight_kg": weight_kg})

    return {"price": price, "service": service, "days": days, "surcharges": surcharges}


INPUTS: Final = Inputs(
    {
        "zone": "enum[domestic, europe, world]",
        "weight_kg": "decimal",
        "is_bulky": "boolean",
        "insured": "optional<decimal>",
    },
    {"is_bulky": False},
)
RUN: Final = undecorated(shipping_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 2 + ("is_bulky" in inputs) + ("insured" in inputs):
            raise NotPlain
        zone = inputs["zone"]
        if type(zone) is not str or zone not in {"domestic", "europe", "world"}:
            raise NotPlain
        weight_kg = inputs["weight_kg"]
        if type(weight_kg) is not Decimal or not is_finite(weight_kg):
            raise NotPlain
        weight_kg = weight_kg + D_0
        is_bulky = inputs["is_bulky"] if "is_bulky" in inputs else False
        if type(is_bulky) is not bool:
            raise NotPlain
        insured = inputs["insured"] if "insured" in inputs else None
        if insured is not None and (type(insured) is not Decimal or not is_finite(insured)):
            raise NotPlain
        insured = None if insured is None else insured + D_0
    except NOT_PLAIN:
        zone, weight_kg, is_bulky, insured = read_inputs(INPUTS, inputs)
    return new_objects(RUN(zone, weight_kg, is_bulky, insured))


SOURCE: Final = Source(
    "nodes/shop/shipping_v1.vsp",
    lines={
        68: 7, 72: 7, 76: 23, 102: 48, 108: 50, 119: 52, 125: 25, 129: 26,
    },
    clauses={
        "constraint": [
            "weight_kg > 0",
            "weight_kg <= 31.5",
        ],
        "precondition": [
            "insured IS NULL OR insured <= 5000",
        ],
        "postcondition": [
            "price > 0",
            "service == letter => weight_kg <= 1",
        ],
    },
)  # fmt: skip
