# AUTO-GENERATED - DO NOT EDIT
# basket_v1, from tests/differential/nodes/basket_v1.vsp
# semantic hash fd57bd27d6893ee530e432cd1303a1f1c42438eade677f1d12dbc90370c87d7c
"""Use every form of collections, records and optionals at least once."""

from decimal import Decimal
from typing import Final, Literal, TypedDict

from vesper.kernels.array import largest, smallest
from vesper.kernels.array import at as array_at
from vesper.kernels.decimal import exact_decimals, unsigned_zero
from vesper.kernels.integer import checked
from vesper.kernels.map import at as map_at
from vesper.kernels.map import entries_of, map_of, map_of_members
from vesper.kernels.raised import ContractBroken
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


class Record(TypedDict):
    sku: str
    qty: int
    price: Decimal
    note: str | None
    tags: list[Tag]


class Record_(TypedDict):
    name: str
    weight: int


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

    # constraint, line 16: qty > 0
    if not all(item["qty"] > 0 for item in lines):
        raise ContractBroken("constraint", 0, {"lines": lines})

    # constraint, line 17: note IS NULL OR length(note) <= 5
    if not all(item["note"] is None or len(item["note"]) <= 5 for item in lines):
        raise ContractBroken("constraint", 1, {"lines": lines})

    # constraint, line 7: weight >= 0
    if not all(all(item_["weight"] >= 0 for item_ in item["tags"]) for item in lines):
        raise ContractBroken("constraint", 2, {"lines": lines})

    # step skus, line 46
    skus = [line["sku"] for line in lines if line["qty"] > 1]

    # step by_sku, line 47
    by_sku = map_of((line["sku"], checked(line["qty"] * 2)) for line in lines)

    # step distinct, line 48
    distinct = frozenset(
        tag["name"] for tag in (array_at(lines, 0)["tags"] if len(lines) > 0 else [])
    )

    # step smallest_qty, line 49
    smallest_qty = smallest(line["qty"] for line in lines)

    # step biggest, line 50
    biggest = (
        largest(line_["price"] for line_ in lines)
        if any(line["price"] > D_10 for line in lines)
        else None
    )

    # step count_red, line 51
    count_red = len(
        [c for c in members_in_order(("red", "green", "blue"), colours) if c == "red"],
    )

    # step any_note, line 52
    any_note = any(line["note"] is not None and len(line["note"]) > 2 for line in lines)

    # step first, line 53
    record = array_at(lines, pick)
    first: Record = {
        "sku": record["sku"],
        "qty": checked(array_at(lines, pick)["qty"] + 1),
        "price": unsigned_zero(array_at(lines, pick)["price"] * D_MINUS_1),
        "note": record["note"],
        "tags": record["tags"],
    }

    # step cheap, line 54
    cheap: list[Line] = [
        line for line in lines if line["price"] < (D_5_00 if cap is None else cap)
    ]

    # step base, line 55
    t = sum((line["price"] for line in lines), D_0)
    u = unsigned_zero(t * D_0)
    base = t + u

    # step capped, line 56
    capped = cap if cap is not None and base > cap else base

    # step by_kind, line 57
    by_kind: dict[Literal["big", "small"], int] = map_of_members(
        ("big", "small"),
        ((kind if k == "x" else "small", v) for k, v in entries_of(by_sku)),
    )

    # step nested, line 58
    nested = [[tag["weight"] for tag in line["tags"]] for line in lines]

    # step total_rate, line 59
    total_rate = (
        sum((v * D_2 for k, v in entries_of(rates) if k != "skip"), D_0)
        + sum((map_at(rates, k_) for k_ in rates), D_0)
    )

    # step made, line 60
    made: Record_ = {"name": array_at(skus, 0), "weight": smallest_qty}

    # step pairs, line 63
    pairs: list[Record_] = [
        {"name": line["sku"], "weight": line["qty"]} for line in lines
    ]

    # step listed, line 64
    listed = [pick, smallest_qty, 3]

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
