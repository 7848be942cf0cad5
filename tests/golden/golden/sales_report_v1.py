# AUTO-GENERATED - DO NOT EDIT
# sales_report_v1, from nodes/sales/sales_report_v1.vsp
# semantic hash f6af1cf011ec7e463de5c55036515792d6366662d6d101cbc2629821ce6f78a5
"""Report a quarter of sales by region and seller, with the best, the worst and what changed."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import (
    append as array_append,
    enumerate as array_enumerate,
    get as array_get,
    last as array_last,
    smallest,
    zip as array_zip,
)
from vesper.kernels.decimal import (
    avg as decimal_avg,
    div as decimal_div,
    exact_decimals,
    exact_entry,
    round as decimal_round,
)
from vesper.kernels.integer import (
    avg as integer_avg,
    checked,
    checked_sum,
    quot as integer_quot,
    text as integer_text,
)
from vesper.kernels.map import (
    contains as map_contains,
    entries as map_entries,
    entries_of,
    from_entries as map_from_entries,
    get as map_get,
    map_of,
    map_of_members,
    values as map_values,
)
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    MAX_ENTRIES,
    MAX_TEXT,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_ascii,
    is_finite,
    is_text,
    new_objects,
    read_inputs,
    read_member,
    read_text,
    read_value,
    undecorated,
)
from vesper.kernels.runtime.forms import (
    counted_by,
    distinct_by,
    dropped_while,
    greatest_by,
    grouped_by,
    least_by,
    taken_while,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import concat as text_concat

D_0: Final = Decimal("0")
D_100: Final = Decimal("100")
D_10000000: Final = Decimal("10000000")


class Line(TypedDict):
    region: Literal["north", "south", "east", "west"]
    revenue: Decimal
    sales: int
    mean: Decimal


class Sale(TypedDict):
    id: str
    seller: str
    region: Literal["north", "south", "east", "west"]
    amount: Decimal
    on: date


class RankedItem(TypedDict):
    key: str
    value: int


class BothItem(TypedDict):
    key: Literal["north", "south", "east", "west"]
    value: Decimal


class PairsItem(TypedDict):
    first: str
    second: int


class Success(TypedDict):
    lines: list[Line]
    best: Sale | None
    worst: Sale | None
    ranking: list[str]
    sold: dict[str, int]
    by_id: dict[str, Sale]
    first_each: list[str]
    running: list[Decimal]
    until_target: int
    quiet_start: int
    missed: frozenset[Literal["north", "south", "east", "west"]]
    change: dict[Literal["north", "south", "east", "west"], Decimal]
    unchanged: bool
    idle: list[str]
    average: Decimal
    median_rank: int | None
    first_day: date | None


@exact_decimals
def sales_report_v1(
    sales: list[Sale],
    targets: dict[Literal["north", "south", "east", "west"], Decimal],
    previous: dict[Literal["north", "south", "east", "west"], Decimal],
    sellers: list[str],
    *,
    now: datetime,
) -> Success:
    """Report a quarter of sales by region and seller, with the best, the worst and what changed."""

    # constraint, line 6: length(id) > 0
    for item in sales:
        if not len(item["id"]) > 0:
            raise ContractBroken("constraint", 0, {"sales": sales})

    # constraint, line 6: length(id) <= 12
    for item in sales:
        if not len(item["id"]) <= 12:
            raise ContractBroken("constraint", 1, {"sales": sales})

    # constraint, line 6: length(seller) > 0
    for item in sales:
        if not len(item["seller"]) > 0:
            raise ContractBroken("constraint", 2, {"sales": sales})

    # constraint, line 6: length(seller) <= 12
    for item in sales:
        if not len(item["seller"]) <= 12:
            raise ContractBroken("constraint", 3, {"sales": sales})

    # constraint, line 14: amount > 0
    for item in sales:
        if not item["amount"] > D_0:
            raise ContractBroken("constraint", 4, {"sales": sales})

    # constraint, line 14: amount <= 10000000
    for item in sales:
        if not item["amount"] <= D_10000000:
            raise ContractBroken("constraint", 5, {"sales": sales})

    # constraint, line 6: length(item) > 0
    if not all(len(item) > 0 for item in sellers):
        raise ContractBroken("constraint", 6, {"sellers": sellers})

    # constraint, line 6: length(item) <= 12
    if not all(len(item) <= 12 for item in sellers):
        raise ContractBroken("constraint", 7, {"sellers": sellers})

    # precondition, line 56: length(distinct_by(sale.id FOR sale IN sales)) == length(sales)
    if len(distinct_by(lambda sale: sale["id"], sales)) != len(sales):
        raise ContractBroken("precondition", 0, {"sales": sales})

    # precondition, line 57: FORALL sale IN sales SATISFIES sale.seller IN sellers
    for sale in sales:
        if sale["seller"] not in sellers:
            raise ContractBroken("precondition", 1, {"sales": sales, "sellers": sellers})

    # step groups, line 68
    groups: dict[Literal["north", "south", "east", "west"], list[Sale]] = grouped_by(
        lambda sale: sale["region"], sales, ("north", "south", "east", "west")
    )

    # step revenue, line 69
    revenue: dict[Literal["north", "south", "east", "west"], Decimal] = map_of_members(
        ("north", "south", "east", "west"),
        (
            (group["key"], sum((sale["amount"] for sale in group["value"]), D_0))
            for group in map_entries(groups)
        ),
    )

    # step unsorted, line 70
    unsorted: list[Line] = [
        Line(
            region=group["key"],
            revenue=revenue[group["key"]],
            sales=len(group["value"]),
            mean=decimal_round(
                decimal_avg([sale["amount"] for sale in group["value"]]), 2, "half_even"
            ),
        )
        for group in map_entries(groups)
    ]

    # step lines, line 71
    lines: list[Line] = sorted(unsorted, key=lambda line: line["revenue"], reverse=True)

    # step sold, line 72
    sold = counted_by(lambda sale: sale["seller"], sales)

    # step ranked, line 74
    ranked: list[RankedItem] = sorted(
        map_entries(sold), key=lambda entry: entry["value"], reverse=True
    )

    # step ranking, line 75
    ranking = [
        text_concat(
            text_concat(integer_text(checked(place["index"] + 1)), ". "), place["value"]["key"]
        )
        for place in array_enumerate(ranked)
    ]

    # step by_id, line 76
    by_id: dict[str, Sale] = map_of((sale["id"], sale) for sale in sales)

    # step in_time, line 77
    in_time: list[Sale] = sorted(sales, key=lambda sale: sale["on"])

    # step first_each, line 78
    first_each = [sale["id"] for sale in distinct_by(lambda sale_: sale_["seller"], in_time)]

    # step running, line 79
    sums: list[Decimal] = []
    for sale in in_time:
        sums = array_append(
            sums,
            [D_0 if value is None else value for value in [array_last(sums)]][0] + sale["amount"],
        )
    running = sums

    # step goal, line 80
    goal = D_0
    for region, target in entries_of(targets):
        goal = goal + target

    # step until_target, line 81
    until_target = len(taken_while(lambda sum_: sum_ < goal, running))

    # step quiet_start, line 82
    quiet_start = len(sales) - len(dropped_while(lambda sale_: sale_["amount"] < D_100, in_time))

    # step missed, line 83
    missed: frozenset[Literal["north", "south", "east", "west"]] = frozenset(
        region
        for region, target in entries_of(targets)
        if [D_0 if value is None else value for value in [map_get(revenue, region)]][0] < target
    )

    # step both, line 84
    both: list[BothItem] = [
        BothItem(
            key=region,
            value=[
                D_0 if before == D_0 else decimal_div(part, before, 4, "half_up")
                for part in [revenue[region] - before]
            ][0],
        )
        for region, before in entries_of(previous)
        if map_contains(revenue, region)
    ]

    # step change, line 85
    change: dict[Literal["north", "south", "east", "west"], Decimal] = map_from_entries(
        both, ("north", "south", "east", "west")
    )

    # step idle, line 86
    idle = [seller for seller in sellers if not map_contains(sold, seller)]

    # step pairs, line 87
    pairs: list[PairsItem] = array_zip(
        [entry["key"] for entry in ranked], [entry_["value"] for entry_ in ranked]
    )

    # step middle, line 88
    middle: PairsItem | None = array_get(pairs, integer_quot(len(pairs), 2))

    # output best, line 93
    best: Sale | None = greatest_by(lambda sale_: sale_["amount"], sales)

    # output worst, line 94
    worst: Sale | None = least_by(lambda sale_: sale_["amount"], sales)

    # output unchanged, line 104
    unchanged = revenue == previous

    # output average, line 106
    average = D_0 if len(sold) == 0 else integer_avg(map_values(sold))

    # output median_rank, line 107
    median_rank: int | None = None if middle is None else middle["second"]

    # output first_day, line 108
    first_day: date | None = None if len(sales) == 0 else smallest(sale_["on"] for sale_ in sales)

    # postcondition, line 6: length(id) > 0
    if not (best is None or len(best["id"]) > 0):
        raise ContractBroken("postcondition", 0, {"best": best})

    # postcondition, line 6: length(id) <= 12
    if not (best is None or len(best["id"]) <= 12):
        raise ContractBroken("postcondition", 1, {"best": best})

    # postcondition, line 6: length(seller) > 0
    if not (best is None or len(best["seller"]) > 0):
        raise ContractBroken("postcondition", 2, {"best": best})

    # postcondition, line 6: length(seller) <= 12
    if not (best is None or len(best["seller"]) <= 12):
        raise ContractBroken("postcondition", 3, {"best": best})

    # postcondition, line 14: amount > 0
    if not (best is None or best["amount"] > D_0):
        raise ContractBroken("postcondition", 4, {"best": best})

    # postcondition, line 14: amount <= 10000000
    if not (best is None or best["amount"] <= D_10000000):
        raise ContractBroken("postcondition", 5, {"best": best})

    # postcondition, line 6: length(id) > 0
    if not (worst is None or len(worst["id"]) > 0):
        raise ContractBroken("postcondition", 6, {"worst": worst})

    # postcondition, line 6: length(id) <= 12
    if not (worst is None or len(worst["id"]) <= 12):
        raise ContractBroken("postcondition", 7, {"worst": worst})

    # postcondition, line 6: length(seller) > 0
    if not (worst is None or len(worst["seller"]) > 0):
        raise ContractBroken("postcondition", 8, {"worst": worst})

    # postcondition, line 6: length(seller) <= 12
    if not (worst is None or len(worst["seller"]) <= 12):
        raise ContractBroken("postcondition", 9, {"worst": worst})

    # postcondition, line 14: amount > 0
    if not (worst is None or worst["amount"] > D_0):
        raise ContractBroken("postcondition", 10, {"worst": worst})

    # postcondition, line 14: amount <= 10000000
    if not (worst is None or worst["amount"] <= D_10000000):
        raise ContractBroken("postcondition", 11, {"worst": worst})

    # postcondition, line 6: length(id) > 0
    for key, item in entries_of(by_id):
        if not len(item["id"]) > 0:
            raise ContractBroken("postcondition", 12, {"by_id": by_id})

    # postcondition, line 6: length(id) <= 12
    for key, item in entries_of(by_id):
        if not len(item["id"]) <= 12:
            raise ContractBroken("postcondition", 13, {"by_id": by_id})

    # postcondition, line 6: length(seller) > 0
    for key, item in entries_of(by_id):
        if not len(item["seller"]) > 0:
            raise ContractBroken("postcondition", 14, {"by_id": by_id})

    # postcondition, line 6: length(seller) <= 12
    for key, item in entries_of(by_id):
        if not len(item["seller"]) <= 12:
            raise ContractBroken("postcondition", 15, {"by_id": by_id})

    # postcondition, line 14: amount > 0
    for key, item in entries_of(by_id):
        if not item["amount"] > D_0:
            raise ContractBroken("postcondition", 16, {"by_id": by_id})

    # postcondition, line 14: amount <= 10000000
    for key, item in entries_of(by_id):
        if not item["amount"] <= D_10000000:
            raise ContractBroken("postcondition", 17, {"by_id": by_id})

    # postcondition, line 59: SUM(line.revenue FOR line IN lines) == SUM(sale.amount FOR sale IN
    #   sales)
    if sum((line["revenue"] for line in lines), D_0) != sum(
        (sale_["amount"] for sale_ in sales), D_0
    ):
        raise ContractBroken("postcondition", 18, {"lines": lines, "sales": sales})

    # postcondition, line 60: SUM(n FOR seller, n IN sold) == length(sales)
    if checked_sum(n for seller, n in entries_of(sold)) != len(sales):
        raise ContractBroken("postcondition", 19, {"sold": sold, "sales": sales})

    # postcondition, line 61: best IS NULL => worst == null
    if not (best is not None or worst is None):
        raise ContractBroken("postcondition", 20, {"best": best, "worst": worst})

    # postcondition, line 62: worst IS NOT NULL AND best IS NOT NULL => worst.amount <= best.amount
    if not (not (worst is not None and best is not None) or worst["amount"] <= best["amount"]):
        raise ContractBroken("postcondition", 21, {"worst": worst, "best": best})

    # postcondition, line 63: unchanged => FORALL region, part IN change SATISFIES part == 0
    if not (not unchanged or all(part == D_0 for region, part in entries_of(change))):
        raise ContractBroken("postcondition", 22, {"unchanged": unchanged, "change": change})

    return {
        "lines": lines,
        "best": best,
        "worst": worst,
        "ranking": ranking,
        "sold": sold,
        "by_id": by_id,
        "first_each": first_each,
        "running": running,
        "until_target": until_target,
        "quiet_start": quiet_start,
        "missed": missed,
        "change": change,
        "unchanged": unchanged,
        "idle": idle,
        "average": average,
        "median_rank": median_rank,
        "first_day": first_day,
    }


INPUTS: Final = Inputs(
    {
        "sales": "array<{id: string, seller: string, region: enum[north, south, east, west], amount: decimal, on: date}>",
        "targets": "map<enum[north, south, east, west], decimal>",
        "previous": "map<enum[north, south, east, west], decimal>",
        "sellers": "array<string>",
    },
    {},
)
RUN: Final = undecorated(sales_report_v1)


def read_sale(given: Any) -> Sale:
    """What is a Sale already, field by field."""
    if type(given) is not dict:
        raise NotPlain
    for name in given:
        if type(name) is not str:
            raise NotPlain
    if len(given) != 5:
        raise NotPlain
    id = given["id"]
    if type(id) is not str or not (is_ascii(id) or is_text(id)) or len(id) > MAX_TEXT:
        raise NotPlain
    seller = given["seller"]
    if (
        type(seller) is not str
        or not (is_ascii(seller) or is_text(seller))
        or len(seller) > MAX_TEXT
    ):
        raise NotPlain
    region = read_member(given["region"], ("north", "south", "east", "west"))
    amount = given["amount"]
    if type(amount) is not Decimal or not is_finite(amount):
        raise NotPlain
    on = given["on"]
    return {
        "id": id,
        "seller": seller,
        "region": region,
        "amount": amount + D_0,
        "on": read_value("date", on),
    }


@exact_entry
def call(inputs: dict[str, Any], *, now: datetime) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 4:
            raise NotPlain
        sales = inputs["sales"]
        if type(sales) is not list or len(sales) > MAX_ENTRIES:
            raise NotPlain
        sales = [read_sale(item) for item in sales]
        targets = inputs["targets"]
        targets = read_value("map<enum[north, south, east, west], decimal>", targets)
        previous = inputs["previous"]
        previous = read_value("map<enum[north, south, east, west], decimal>", previous)
        sellers = inputs["sellers"]
        if type(sellers) is not list or len(sellers) > MAX_ENTRIES:
            raise NotPlain
        sellers = [read_text(item) for item in sellers]
    except NOT_PLAIN:
        sales, targets, previous, sellers = read_inputs(INPUTS, inputs)
    return new_objects(RUN(sales, targets, previous, sellers, now=now))


SOURCE: Final = Source(
    "nodes/sales/sales_report_v1.vsp",
    lines={
        140: 6, 145: 6, 150: 6, 155: 6, 160: 14, 165: 14, 169: 6, 173: 6, 177: 56, 182: 57, 190: 69,
        193: 69, 202: 70, 204: 70, 205: 70, 224: 75, 225: 75, 231: 76, 242: 79, 244: 79, 251: 80,
        257: 82, 271: 52, 272: 84, 280: 85, 288: 87, 293: 88, 305: 106, 311: 108, 315: 6, 319: 6,
        323: 6, 327: 6, 331: 14, 335: 14, 339: 6, 343: 6, 347: 6, 351: 6, 355: 14, 359: 14, 364: 6,
        369: 6, 374: 6, 379: 6, 384: 14, 389: 14, 393: 59, 396: 59, 399: 60, 400: 60, 404: 61,
        408: 62, 412: 63,
    },
    clauses={
        "constraint": [
            "length(id) > 0",
            "length(id) <= 12",
            "length(seller) > 0",
            "length(seller) <= 12",
            "amount > 0",
            "amount <= 10000000",
            "length(item) > 0",
            "length(item) <= 12",
        ],
        "precondition": [
            "length(distinct_by(sale.id FOR sale IN sales)) == length(sales)",
            "FORALL sale IN sales SATISFIES sale.seller IN sellers",
        ],
        "postcondition": [
            "length(id) > 0",
            "length(id) <= 12",
            "length(seller) > 0",
            "length(seller) <= 12",
            "amount > 0",
            "amount <= 10000000",
            "length(id) > 0",
            "length(id) <= 12",
            "length(seller) > 0",
            "length(seller) <= 12",
            "amount > 0",
            "amount <= 10000000",
            "length(id) > 0",
            "length(id) <= 12",
            "length(seller) > 0",
            "length(seller) <= 12",
            "amount > 0",
            "amount <= 10000000",
            "SUM(line.revenue FOR line IN lines) == SUM(sale.amount FOR sale IN sales)",
            "SUM(n FOR seller, n IN sold) == length(sales)",
            "best IS NULL => worst == null",
            "worst IS NOT NULL AND best IS NOT NULL => worst.amount <= best.amount",
            "unchanged => FORALL region, part IN change SATISFIES part == 0",
        ],
    },
)  # fmt: skip
