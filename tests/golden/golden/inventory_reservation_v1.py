# AUTO-GENERATED - DO NOT EDIT
# inventory_reservation_v1, from nodes/shop/inventory_reservation_v1.vsp
# semantic hash c0018273515dac56943cb924ffaac9104d7c5c092aab24ddc5234542b0c0ae30
"""Reserve what is in stock for an order and say what must wait."""

from typing import Any, Final, TypedDict

from vesper.kernels.array import distinct as array_distinct
from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.integer import checked
from vesper.kernels.map import entries_of, get as map_get, map_of
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    MAX_ENTRIES,
    MAX_INTEGER,
    MAX_TEXT,
    MIN_INTEGER,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_ascii,
    is_text,
    new_objects,
    read_inputs,
    read_value,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.value import min as value_min


class Wanted(TypedDict):
    sku: str
    qty: int


class Success(TypedDict):
    reserved: dict[str, int]
    back_order: dict[str, int]
    left: dict[str, int]
    is_complete: bool


@exact_decimals
def inventory_reservation_v1(order: list[Wanted], stock: dict[str, int]) -> Success:
    """Reserve what is in stock for an order and say what must wait."""

    # constraint, line 10: qty > 0
    for item in order:
        if not item["qty"] > 0:
            raise ContractBroken("constraint", 0, {"order": order})

    # constraint, line 10: qty <= 1000
    for item in order:
        if not item["qty"] <= 1000:
            raise ContractBroken("constraint", 1, {"order": order})

    # constraint, line 10: length(sku) > 0
    for item in order:
        if not len(item["sku"]) > 0:
            raise ContractBroken("constraint", 2, {"order": order})

    # precondition, line 25: FORALL sku, qty IN stock SATISFIES qty >= 0
    for sku, qty in entries_of(stock):
        if not qty >= 0:
            raise ContractBroken("precondition", 0, {"stock": stock})

    # precondition, line 26: length(distinct([line.sku FOR line IN order])) == length(order)
    if len(array_distinct([line["sku"] for line in order])) != len(order):
        raise ContractBroken("precondition", 1, {"order": order})

    # step reserved, line 34
    reserved = map_of(
        (
            line["sku"],
            value_min(
                line["qty"],
                [0 if value_ is None else value_ for value_ in [map_get(stock, line["sku"])]][0],
            ),
        )
        for line in order
        if [0 if value is None else value for value in [map_get(stock, line["sku"])]][0] > 0
    )

    # step back_order, line 35
    back_order = map_of(
        (
            line["sku"],
            checked(
                line["qty"]
                - [0 if value_ is None else value_ for value_ in [map_get(reserved, line["sku"])]][
                    0
                ]
            ),
        )
        for line in order
        if line["qty"]
        > [0 if value is None else value for value in [map_get(reserved, line["sku"])]][0]
    )

    # step left, line 36
    left = map_of(
        (
            sku,
            checked(qty - [0 if value is None else value for value in [map_get(reserved, sku)]][0]),
        )
        for sku, qty in entries_of(stock)
    )

    # step is_complete, line 37
    is_complete = len(back_order) == 0

    # postcondition, line 28: FORALL sku, qty IN left SATISFIES qty >= 0
    for sku, qty in entries_of(left):
        if not qty >= 0:
            raise ContractBroken("postcondition", 0, {"left": left})

    # postcondition, line 29: is_complete => length(back_order) == 0
    if not (not is_complete or len(back_order) == 0):
        raise ContractBroken(
            "postcondition", 1, {"is_complete": is_complete, "back_order": back_order}
        )

    return {
        "reserved": reserved,
        "back_order": back_order,
        "left": left,
        "is_complete": is_complete,
    }


INPUTS: Final = Inputs(
    {"order": "array<{sku: string, qty: integer}>", "stock": "map<string, integer>"}, {}
)
RUN: Final = undecorated(inventory_reservation_v1)


def read_wanted(given: Any) -> Wanted:
    """What is a Wanted already, field by field."""
    if type(given) is not dict:
        raise NotPlain
    for name in given:
        if type(name) is not str:
            raise NotPlain
    if len(given) != 2:
        raise NotPlain
    sku = given["sku"]
    if type(sku) is not str or not (is_ascii(sku) or is_text(sku)) or len(sku) > MAX_TEXT:
        raise NotPlain
    qty = given["qty"]
    if type(qty) is not int or qty < MIN_INTEGER or qty > MAX_INTEGER:
        raise NotPlain
    return {"sku": sku, "qty": qty}


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
        order = inputs["order"]
        if type(order) is not list or len(order) > MAX_ENTRIES:
            raise NotPlain
        order = [read_wanted(item) for item in order]
        stock = inputs["stock"]
        stock = read_value("map<string, integer>", stock)
    except NOT_PLAIN:
        order, stock = read_inputs(INPUTS, inputs)
    return new_objects(RUN(order, stock))


SOURCE: Final = Source(
    "nodes/shop/inventory_reservation_v1.vsp",
    lines={
        51: 10, 56: 10, 61: 10, 66: 25, 70: 26, 73: 34, 86: 35, 89: 35, 102: 36, 105: 36, 116: 28,
        120: 29,
    },
    clauses={
        "constraint": [
            "qty > 0",
            "qty <= 1000",
            "length(sku) > 0",
        ],
        "precondition": [
            "FORALL sku, qty IN stock SATISFIES qty >= 0",
            "length(distinct([line.sku FOR line IN order])) == length(order)",
        ],
        "postcondition": [
            "FORALL sku, qty IN left SATISFIES qty >= 0",
            "is_complete => length(back_order) == 0",
        ],
    },
)  # fmt: skip
