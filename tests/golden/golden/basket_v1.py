# AUTO-GENERATED - DO NOT EDIT
# basket_v1, from tests/integration/differential/nodes/basket_v1.vsp
# semantic hash 5ad2894bc3620c6b9e47d709f3c76d5e3b1830faade30af34137407c17a953da
"""Use every form of collections, records and optionals at least once."""

from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import at as array_at, largest, smallest
from vesper.kernels.decimal import exact_decimals, exact_entry, unsigned_zero
from vesper.kernels.integer import checked
from vesper.kernels.map import entries_of, map_of, map_of_members
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
    read_value,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.set import members_in_order

D_MINUS_1: Final = Decimal("-1")
D_0: Final = Decimal("0")
D_2: Final = Decimal("2")
D_5_00: Final = Decimal("5.00")
D_10: Final = Decimal("10")


class Tag(TypedDict):
    name: str
    weight: int


class Line(TypedDict):
    sku: str
    qty: int
    price: Decimal
    note: str | None
    tags: list[Tag]


class Success(TypedDict):
    skus: list[str]
    by_sku: dict[str, int]
    distinct: frozenset[str]
    biggest: Decimal | None
    smallest_qty: int
    count_red: int
    first: Line
    cheap: list[Line]
    capped: Decimal
    any_note: bool
    by_kind: dict[Literal["big", "small"], int]
    nested: list[list[int]]
    total_rate: Decimal
    made: Tag
    pairs: list[Tag]
    listed: list[int]


@exact_decimals
def basket_v1(
    *,
    lines: list[Line],
    rates: dict[str, Decimal],
    colours: frozenset[Literal["red", "green", "blue"]],
    pick: int,
    cap: Decimal | None = None,
    kind: Literal["big", "small"],
) -> Success:
    """Use every form of collections, records and optionals at least once."""

    # constraint, line 8: weight >= 0
    for item in lines:
        if not all(item_["weight"] >= 0 for item_ in item["tags"]):
            raise ContractBroken("constraint", 0, {"lines": lines})

    # constraint, line 17: qty > 0
    for item in lines:
        if not item["qty"] > 0:
            raise ContractBroken("constraint", 1, {"lines": lines})

    # constraint, line 18: note IS NULL OR length(note) <= 5
    for item in lines:
        if not (item["note"] is None or len(item["note"]) <= 5):
            raise ContractBroken("constraint", 2, {"lines": lines})

    # step skus, line 50
    skus = [line["sku"] for line in lines if line["qty"] > 1]

    # step by_sku, line 51
    by_sku = map_of((line["sku"], checked(line["qty"] * 2)) for line in lines)

    # step distinct, line 52
    distinct = frozenset(
        tag["name"] for tag in (array_at(lines, 0)["tags"] if len(lines) > 0 else [])
    )

    # step smallest_qty, line 53
    smallest_qty = smallest(line["qty"] for line in lines)

    # step biggest, line 54
    biggest = (
        largest(line_["price"] for line_ in lines)
        if any(line["price"] > D_10 for line in lines)
        else None
    )

    # step count_red, line 55
    count_red = len([c for c in members_in_order(("red", "green", "blue"), colours) if c == "red"])

    # step any_note, line 56
    any_note = any(line["note"] is not None and len(line["note"]) > 2 for line in lines)

    # step first, line 57
    record = array_at(lines, pick)
    first = Line(
        sku=record["sku"],
        qty=checked(array_at(lines, pick)["qty"] + 1),
        price=unsigned_zero(array_at(lines, pick)["price"] * D_MINUS_1),
        note=record["note"],
        tags=record["tags"],
    )

    # step cheap, line 58
    cheap: list[Line] = [line for line in lines if line["price"] < (D_5_00 if cap is None else cap)]

    # step base, line 59
    t = sum((line["price"] for line in lines), D_0)
    u = unsigned_zero(t * D_0)
    base = t + u

    # step capped, line 60
    capped = cap if cap is not None and base > cap else base

    # step by_kind, line 61
    by_kind: dict[Literal["big", "small"], int] = map_of_members(
        ("big", "small"), ((kind if k == "x" else "small", v) for k, v in entries_of(by_sku))
    )

    # step nested, line 62
    nested = [[tag["weight"] for tag in line["tags"]] for line in lines]

    # step total_rate, line 63
    total_rate = sum((v * D_2 for k, v in entries_of(rates) if k != "skip"), D_0) + sum(
        (rates[k_] for k_ in rates), D_0
    )

    # step made, line 64
    made = Tag(name=array_at(skus, 0), weight=smallest_qty)

    # step pairs, line 67
    pairs: list[Tag] = [Tag(name=line["sku"], weight=line["qty"]) for line in lines]

    # step listed, line 68
    listed = [pick, smallest_qty, 3]

    # postcondition, line 8: weight >= 0
    if not all(item["weight"] >= 0 for item in first["tags"]):
        raise ContractBroken("postcondition", 0, {"first": first})

    # postcondition, line 17: qty > 0
    if not first["qty"] > 0:
        raise ContractBroken("postcondition", 1, {"first": first})

    # postcondition, line 18: note IS NULL OR length(note) <= 5
    if not (first["note"] is None or len(first["note"]) <= 5):
        raise ContractBroken("postcondition", 2, {"first": first})

    # postcondition, line 8: weight >= 0
    for item in cheap:
        if not all(item_["weight"] >= 0 for item_ in item["tags"]):
            raise ContractBroken("postcondition", 3, {"cheap": cheap})

    # postcondition, line 17: qty > 0
    for item in cheap:
        if not item["qty"] > 0:
            raise ContractBroken("postcondition", 4, {"cheap": cheap})

    # postcondition, line 18: note IS NULL OR length(note) <= 5
    for item in cheap:
        if not (item["note"] is None or len(item["note"]) <= 5):
            raise ContractBroken("postcondition", 5, {"cheap": cheap})

    # postcondition, line 8: weight >= 0
    if not made["weight"] >= 0:
        raise ContractBroken("postcondition", 6, {"made": made})

    # postcondition, line 8: weight >= 0
    if not all(item["weight"] >= 0 for item in pairs):
        raise ContractBroken("postcondition", 7, {"pairs": pairs})

    return {
        "skus": skus,
        "by_sku": by_sku,
        "distinct": distinct,
        "biggest": biggest,
        "smallest_qty": smallest_qty,
        "count_red": count_red,
        "first": first,
        "cheap": cheap,
        "capped": capped,
        "any_note": any_note,
        "by_kind": by_kind,
        "nested": nested,
        "total_rate": total_rate,
        "made": made,
        "pairs": pairs,
        "listed": listed,
    }


INPUTS: Final = Inputs(
    {
        "lines": "array<{sku: string, qty: integer, price: decimal, note: optional<string>, tags: array<{name: string, weight: integer}>}>",
        "rates": "map<string, decimal>",
        "colours": "set<enum[red, green, blue]>",
        "pick": "integer",
        "cap": "optional<decimal>",
        "kind": "enum[big, small]",
    },
    {},
)
RUN: Final = undecorated(basket_v1)


def read_tag(given: Any) -> Tag:
    """What is a Tag already, field by field."""
    if type(given) is not dict:
        raise NotPlain
    for name in given:
        if type(name) is not str:
            raise NotPlain
    if len(given) != 2:
        raise NotPlain
    name_ = given["name"]
    if type(name_) is not str or not (is_ascii(name_) or is_text(name_)) or len(name_) > MAX_TEXT:
        raise NotPlain
    weight = given["weight"]
    if type(weight) is not int or weight < MIN_INTEGER or weight > MAX_INTEGER:
        raise NotPlain
    return {"name": name_, "weight": weight}


def read_line(given: Any) -> Line:
    """What is a Line already, field by field."""
    if type(given) is not dict:
        raise NotPlain
    for name in given:
        if type(name) is not str:
            raise NotPlain
    if len(given) != 4 + ("note" in given):
        raise NotPlain
    sku = given["sku"]
    if type(sku) is not str or not (is_ascii(sku) or is_text(sku)) or len(sku) > MAX_TEXT:
        raise NotPlain
    qty = given["qty"]
    if type(qty) is not int or qty < MIN_INTEGER or qty > MAX_INTEGER:
        raise NotPlain
    price = given["price"]
    if type(price) is not Decimal or not is_finite(price):
        raise NotPlain
    note = given["note"] if "note" in given else None
    if note is not None:
        if type(note) is not str or not (is_ascii(note) or is_text(note)) or len(note) > MAX_TEXT:
            raise NotPlain
    tags = given["tags"]
    if type(tags) is not list or len(tags) > MAX_ENTRIES:
        raise NotPlain
    return {
        "sku": sku,
        "qty": qty,
        "price": price + D_0,
        "note": note,
        "tags": [read_tag(item) for item in tags],
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
        if len(inputs) != 5 + ("cap" in inputs):
            raise NotPlain
        lines = inputs["lines"]
        if type(lines) is not list or len(lines) > MAX_ENTRIES:
            raise NotPlain
        lines = [read_line(item) for item in lines]
        rates = inputs["rates"]
        rates = read_value("map<string, decimal>", rates)
        colours = inputs["colours"]
        colours = read_value("set<enum[red, green, blue]>", colours)
        pick = inputs["pick"]
        if type(pick) is not int or pick < MIN_INTEGER or pick > MAX_INTEGER:
            raise NotPlain
        cap = inputs["cap"] if "cap" in inputs else None
        if cap is not None and (type(cap) is not Decimal or not is_finite(cap)):
            raise NotPlain
        cap = None if cap is None else cap + D_0
        kind = inputs["kind"]
        if type(kind) is not str or kind not in {"big", "small"}:
            raise NotPlain
    except NOT_PLAIN:
        lines, rates, colours, pick, cap, kind = read_inputs(INPUTS, inputs)
    return new_objects(
        RUN(lines=lines, rates=rates, colours=colours, pick=pick, cap=cap, kind=kind)
    )


SOURCE: Final = Source(
    "tests/integration/differential/nodes/basket_v1.vsp",
    lines={
        87: 8, 92: 17, 97: 18, 103: 51, 107: 52, 111: 53, 115: 54, 127: 57, 130: 57, 131: 57,
        140: 59, 141: 59, 142: 59, 148: 61, 156: 63, 157: 63, 161: 65, 171: 8, 175: 17, 179: 18,
        184: 8, 189: 17, 194: 18, 198: 8, 202: 8,
    },
    clauses={
        "constraint": [
            "weight >= 0",
            "qty > 0",
            "note IS NULL OR length(note) <= 5",
        ],
        "postcondition": [
            "weight >= 0",
            "qty > 0",
            "note IS NULL OR length(note) <= 5",
            "weight >= 0",
            "qty > 0",
            "note IS NULL OR length(note) <= 5",
            "weight >= 0",
            "weight >= 0",
        ],
    },
)  # fmt: skip
