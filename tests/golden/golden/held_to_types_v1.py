# AUTO-GENERATED - DO NOT EDIT
# held_to_types_v1, from tests/integration/differential/nodes/held_to_types_v1.vsp
# semantic hash 18854a1a71c7bb0b5c4da480a09339a133b1530131c47179e3bfd0ab1524c00a
"""Hold values to the constraints of their types wherever the names of those are written."""

from decimal import Decimal
from typing import Any, Final, TypedDict

from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.json import cast as json_cast, json_literal, parse as json_parse
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
    undecorated,
)
from vesper.kernels.runtime.source import Source

D_0: Final = Decimal("0")
D_100: Final = Decimal("100")


class Offer(TypedDict):
    name: str
    off: Decimal


class Success(TypedDict):
    best: Offer
    all: list[Offer]
    off: Decimal


@exact_decimals
def held_to_types_v1(given: str, more: Decimal) -> Success:
    """Hold values to the constraints of their types wherever the names of those are written."""

    # step read, line 22
    cast = json_cast(json_parse(given), "{name: string, off: decimal}")
    read: Offer = (
        cast
        if cast["off"] >= D_0 and cast["off"] <= D_100 and len(cast["name"]) > 0
        else json_cast(json_literal("null"), "{name: string, off: decimal}")
    )

    # step raised, line 25
    raised = read["off"] + more

    # validation, line 6: raised >= 0
    if not raised >= D_0:
        raise ContractBroken("validation", 0, {"raised": raised})

    # validation, line 6: raised <= 100
    if not raised <= D_100:
        raise ContractBroken("validation", 1, {"raised": raised})

    # step list, line 29
    list_: list[Offer] = [read, Offer(name=read["name"], off=raised)]

    # validation, line 6: off >= 0
    for item in list_:
        if not item["off"] >= D_0:
            raise ContractBroken("validation", 2, {"list": list_})

    # validation, line 6: off <= 100
    for item in list_:
        if not item["off"] <= D_100:
            raise ContractBroken("validation", 3, {"list": list_})

    # validation, line 9: length(name) > 0
    for item in list_:
        if not len(item["name"]) > 0:
            raise ContractBroken("validation", 4, {"list": list_})

    # postcondition, line 6: off >= 0
    if not read["off"] >= D_0:
        raise ContractBroken("postcondition", 0, {"best": read})

    # postcondition, line 6: off <= 100
    if not read["off"] <= D_100:
        raise ContractBroken("postcondition", 1, {"best": read})

    # postcondition, line 9: length(name) > 0
    if not len(read["name"]) > 0:
        raise ContractBroken("postcondition", 2, {"best": read})

    # postcondition, line 6: off >= 0
    for item in list_:
        if not item["off"] >= D_0:
            raise ContractBroken("postcondition", 3, {"all": list_})

    # postcondition, line 6: off <= 100
    for item in list_:
        if not item["off"] <= D_100:
            raise ContractBroken("postcondition", 4, {"all": list_})

    # postcondition, line 9: length(name) > 0
    for item in list_:
        if not len(item["name"]) > 0:
            raise ContractBroken("postcondition", 5, {"all": list_})

    # postcondition, line 6: off >= 0
    if not raised >= D_0:
        raise ContractBroken("postcondition", 6, {"off": raised})

    # postcondition, line 6: off <= 100
    if not raised <= D_100:
        raise ContractBroken("postcondition", 7, {"off": raised})

    return {"best": read, "all": list_, "off": raised}


INPUTS: Final = Inputs({"given": "string", "more": "decimal"}, {})
RUN: Final = undecorated(held_to_types_v1)


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
        given = inputs["given"]
        if (
            type(given) is not str
            or not (is_ascii(given) or is_text(given))
            or len(given) > MAX_TEXT
        ):
            raise NotPlain
        more = inputs["more"]
        if type(more) is not Decimal or not is_finite(more):
            raise NotPlain
        more = more + D_0
    except NOT_PLAIN:
        given, more = read_inputs(INPUTS, inputs)
    return new_objects(RUN(given, more))


SOURCE: Final = Source(
    "tests/integration/differential/nodes/held_to_types_v1.vsp",
    lines={
        46: 24, 50: 24, 54: 28, 58: 6, 62: 6, 70: 6, 75: 6, 80: 9, 84: 6, 88: 6, 92: 9, 97: 6,
        102: 6, 107: 9, 111: 6, 115: 6,
    },
    clauses={
        "validation": [
            "raised >= 0",
            "raised <= 100",
            "off >= 0",
            "off <= 100",
            "length(name) > 0",
        ],
        "postcondition": [
            "off >= 0",
            "off <= 100",
            "length(name) > 0",
            "off >= 0",
            "off <= 100",
            "length(name) > 0",
            "off >= 0",
            "off <= 100",
        ],
    },
)  # fmt: skip
