# AUTO-GENERATED - DO NOT EDIT
# orders_by_city_v1, from tests/integration/differential/nodes/orders_by_city_v1.vsp
# semantic hash 0d183c69eb0b24f7aa0b1fa99742f530f1e8523cbbeb65fd12e13c0b0c3976dd
"""Group and compare, with keys that are integers, booleans and members."""

from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import at as array_at, smallest
from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.integer import checked
from vesper.kernels.map import entries_of, map_of
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
    is_finite,
    is_text,
    new_objects,
    read_inputs,
    read_member,
    read_value,
    undecorated,
)
from vesper.kernels.runtime.source import Source

D_0: Final = Decimal("0")


class Order(TypedDict):
    id: int
    city: str
    total: Decimal
    state: Literal["open", "paid", "sent"]
    discount: Decimal | None


class Success(TypedDict):
    cities: frozenset[str]
    totals: list[Decimal]
    by_id: dict[int, Decimal]
    all_known: bool
    some_over: bool
    lowest: Decimal
    last_city: str
    net: list[Decimal]
    states: list[Literal["open", "paid", "sent"]]
    picked: list[int]
    labels: list[str]
    limit_sum: Decimal
    swapped: dict[str, bool]


@exact_decimals
def orders_by_city_v1(
    orders: list[Order],
    wanted: frozenset[int],
    limits: dict[Literal["open", "paid", "sent"], Decimal],
    flags: dict[bool, str],
    offset: int = 0,
) -> Success:
    """Group and compare, with keys that are integers, booleans and members."""

    # precondition, line 39: COUNT(orders) <= 50
    if not len(orders) <= 50:
        raise ContractBroken("precondition", 0, {"orders": orders})

    # precondition, line 40: FORALL order IN orders SATISFIES order.discount IS NOT NULL =>
    #   order.discount <= order.total
    for order in orders:
        if not (order["discount"] is None or order["discount"] <= order["total"]):
            raise ContractBroken("precondition", 1, {"orders": orders})

    # step cities, line 48
    cities = frozenset(order["city"] for order in orders)

    # step totals, line 49
    totals = [order["total"] for order in orders]

    # step by_id, line 50
    by_id = map_of(
        (checked(order["id"] + offset), order["total"])
        for order in orders
        if order["state"] != "open"
    )

    # step all_known, line 51
    all_known = all(order["id"] in wanted for order in orders)

    # step some_over, line 52
    some_over = any(
        order["total"] > limits[order["state"]] for order in orders if order["state"] in limits
    )

    # step lowest, line 53
    lowest = (
        D_0
        if len(orders) == 0
        else smallest(
            order["total"] - (D_0 if order["discount"] is None else order["discount"])
            for order in orders
        )
    )

    # step last_city, line 54
    last_city = "none" if len(orders) == 0 else array_at(orders, len(orders) - 1)["city"]

    # step net, line 55
    net = [
        order["total"] if order["discount"] is None else order["total"] - order["discount"]
        for order in orders
    ]

    # step states, line 56
    states: list[Literal["open", "paid", "sent"]] = list(limits)

    # step picked, line 57
    picked = [id for id in sorted(wanted) if id not in [1, 2, 3]]

    # step labels, line 58
    labels = [flags[flag] for flag in flags]

    # step limit_sum, line 59
    limit_sum = sum((limit for state, limit in entries_of(limits) if state != "paid"), D_0)

    # step swapped, line 60
    swapped = map_of((name, flag) for flag, name in entries_of(flags))

    # postcondition, line 42: COUNT(totals) == COUNT(orders)
    if len(totals) != len(orders):
        raise ContractBroken("postcondition", 0, {"totals": totals, "orders": orders})

    # postcondition, line 43: all_known OR COUNT(cities) > 0
    if not (all_known or len(cities) > 0):
        raise ContractBroken("postcondition", 1, {"all_known": all_known, "cities": cities})

    return {
        "cities": cities,
        "totals": totals,
        "by_id": by_id,
        "all_known": all_known,
        "some_over": some_over,
        "lowest": lowest,
        "last_city": last_city,
        "net": net,
        "states": states,
        "picked": picked,
        "labels": labels,
        "limit_sum": limit_sum,
        "swapped": swapped,
    }


INPUTS: Final = Inputs(
    {
        "orders": "array<{id: integer, city: string, total: decimal, state: enum[open, paid, sent], discount: optional<decimal>}>",
        "wanted": "set<integer>",
        "limits": "map<enum[open, paid, sent], decimal>",
        "flags": "map<boolean, string>",
        "offset": "integer",
    },
    {"offset": 0},
)
RUN: Final = undecorated(orders_by_city_v1)


def read_order(given: Any) -> Order:
    """What is a Order already, field by field."""
    if type(given) is not dict:
        raise NotPlain
    for name in given:
        if type(name) is not str:
            raise NotPlain
    if len(given) != 4 + ("discount" in given):
        raise NotPlain
    id = given["id"]
    if type(id) is not int or id < MIN_INTEGER or id > MAX_INTEGER:
        raise NotPlain
    city = given["city"]
    if type(city) is not str or not (is_ascii(city) or is_text(city)) or len(city) > MAX_TEXT:
        raise NotPlain
    total = given["total"]
    if type(total) is not Decimal or not is_finite(total):
        raise NotPlain
    state = read_member(given["state"], ("open", "paid", "sent"))
    discount = given["discount"] if "discount" in given else None
    if discount is not None and (type(discount) is not Decimal or not is_finite(discount)):
        raise NotPlain
    return {
        "id": id,
        "city": city,
        "total": total + D_0,
        "state": state,
        "discount": None if discount is None else discount + D_0,
    }


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 4 + ("offset" in inputs):
            raise NotPlain
        orders = inputs["orders"]
        if type(orders) is not list or len(orders) > MAX_ENTRIES:
            raise NotPlain
        orders = [read_order(item) for item in orders]
        wanted = inputs["wanted"]
        wanted = read_value("set<integer>", wanted)
        limits = inputs["limits"]
        limits = read_value("map<enum[open, paid, sent], decimal>", limits)
        flags = inputs["flags"]
        flags = read_value("map<boolean, string>", flags)
        offset = inputs["offset"] if "offset" in inputs else 0
        if type(offset) is not int or offset < MIN_INTEGER or offset > MAX_INTEGER:
            raise NotPlain
    except NOT_PLAIN:
        orders, wanted, limits, flags, offset = read_inputs(INPUTS, inputs)
    return new_objects(RUN(orders, wanted, limits, flags, offset))


SOURCE: Final = Source(
    "tests/integration/differential/nodes/orders_by_city_v1.vsp",
    lines={
        72: 39, 78: 40, 87: 50, 88: 50, 98: 52, 105: 53, 106: 53, 112: 54, 116: 55, 127: 58,
        130: 59, 133: 60, 137: 42, 141: 43,
    },
    clauses={
        "precondition": [
            "COUNT(orders) <= 50",
            "FORALL order IN orders SATISFIES order.discount IS NOT NULL => order.discount <= order.total",
        ],
        "postcondition": [
            "COUNT(totals) == COUNT(orders)",
            "all_known OR COUNT(cities) > 0",
        ],
    },
)  # fmt: skip
