# AUTO-GENERATED - DO NOT EDIT
# stages_v1, from tests/integration/differential/nodes/stages_v1.vsp
# semantic hash db76658efb2367caed3295950356973ef3b8feab8f8b30a48548025042d3a5cd
"""Use every stage of a transform, and folds in blocks at any depth."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypedDict

from vesper.kernels.array import (
    drop as array_drop,
    flatten as array_flatten,
    range as array_range,
    take as array_take,
)
from vesper.kernels.date import text as date_text
from vesper.kernels.decimal import exact_decimals, exact_entry, unsigned_zero
from vesper.kernels.duration import sum as duration_sum
from vesper.kernels.float import is_nan as float_is_nan, sum as float_sum
from vesper.kernels.integer import checked, checked_sum, text as integer_text
from vesper.kernels.json import Json
from vesper.kernels.map import entries_of
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
from vesper.kernels.runtime.flow import counted, keep
from vesper.kernels.runtime.forms import distinct_by, grouped_by, sorted_by
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import concat as text_concat

D_0: Final = Decimal("0")
D_0_0: Final = Decimal("0.0")
D_2: Final = Decimal("2")
D_1000: Final = Decimal("1000")


class Sale(TypedDict):
    city: str
    day: date
    pieces: int
    price: Decimal
    weight: float
    took: timedelta
    tag: Json


class GroupsGroup(TypedDict):
    key: date
    items: list[Sale]


class Totals(TypedDict):
    weight: float
    waited: timedelta
    count: int


class Outcome(TypedDict):
    weighed: Decimal
    rounds: list[int]


class Each(TypedDict):
    seen: int
    collected: list[int]


class City(TypedDict):
    name: str
    rate: Decimal


class Success(TypedDict):
    sorted: list[Sale]
    groups: list[str]
    pairs: list[Decimal]
    summary: str
    joined: str
    heavy: float
    pieces: int
    waited: timedelta
    weighed: Decimal
    rounds: list[int]


@exact_decimals
def stages_v1(
    sales: list[Sale],
    cities: list[City],
    rates: dict[str, Decimal],
    deep: bool,
    *,
    now: datetime,
) -> Success:
    """Use every stage of a transform, and folds in blocks at any depth."""

    # precondition, line 32: COUNT(sales) <= 12
    if not len(sales) <= 12:
        raise ContractBroken("precondition", 0, {"sales": sales})

    # precondition, line 33: COUNT(cities) <= 6
    if not len(cities) <= 6:
        raise ContractBroken("precondition", 1, {"cities": cities})

    # precondition, line 34: FORALL sale IN sales SATISFIES sale.pieces >= 0 AND sale.pieces <= 1000
    #   AND sale.took < duration('1000d') AND sale.took > duration('0s')
    if not all(
        sale["pieces"] >= 0
        and sale["pieces"] <= 1000
        and sale["took"] < timedelta(days=1000)
        and sale["took"] > timedelta(days=0)
        for sale in sales
    ):
        raise ContractBroken("precondition", 2, {"sales": sales})

    # step sorted, line 37
    sorted_: list[Sale] = array_drop(
        array_take(
            distinct_by(
                lambda sale: sale["tag"],
                sorted_by(
                    lambda sale_: sale_["day"],
                    (sale_ for sale_ in sales if sale_["pieces"] > 0),
                    "descending",
                ),
            ),
            5,
        ),
        1,
    )

    # step groups, line 46
    groups = [
        text_concat(text_concat(date_text(sale["key"]), " "), integer_text(len(sale["items"])))
        for sale in [
            GroupsGroup(key=_key, items=_items)
            for _key, _items in entries_of(grouped_by(lambda sale_: sale_["day"], sales))
        ]
    ]

    # step pairs, line 52
    pairs = array_flatten(
        [
            [
                unsigned_zero(sale["price"] * city["rate"])
                for city in cities
                if city["name"] == sale["city"]
            ]
            for sale in sales
        ]
    )

    # step totals, line 57
    items = [sale for sale in sales if not float_is_nan(sale["weight"])]
    totals = Totals(
        weight=float_sum(s["weight"] for s in items),
        waited=duration_sum(s_["took"] for s_ in items),
        count=len(items),
    )

    # step joined, line 66
    so_far = ""
    for sale in sales:
        if sale["pieces"] < 500:
            so_far = text_concat(so_far, sale["city"])
    joined = so_far

    # step outcome, line 72
    outcome: Outcome
    if deep:
        # step weighed_inside, line 77
        so_far_ = D_0
        for _name, rate in entries_of(rates):
            if so_far_ < D_1000:
                so_far_ = so_far_ + rate * D_2
        weighed_inside = so_far_

        # step each, line 80
        seen = 0
        collected: list[int] = []
        iterations = 0
        for sale_ in sales:
            iterations = counted(iterations, 20)

            # step inner, line 86
            so_far__ = seen
            for s in sales:
                if s["day"] <= sale_["day"]:
                    so_far__ = checked(so_far__ + s["pieces"])
            inner = so_far__
            keep(collected, inner)
            seen = checked(seen + 1)
        each = Each(seen=seen, collected=collected)
        outcome = Outcome(weighed=weighed_inside, rounds=each["collected"])
    else:
        outcome = Outcome(weighed=D_0_0, rounds=array_range(0, 2, 1))

    # output summary, line 99
    summary = integer_text(totals["count"])

    # output heavy, line 101
    heavy = totals["weight"]

    # output pieces, line 102
    pieces = checked_sum(sale_["pieces"] for sale_ in sales)

    # output waited, line 103
    waited = totals["waited"]

    # output weighed, line 104
    weighed = outcome["weighed"]

    # output rounds, line 105
    rounds: list[int] = outcome["rounds"]

    return {
        "sorted": sorted_,
        "groups": groups,
        "pairs": pairs,
        "summary": summary,
        "joined": joined,
        "heavy": heavy,
        "pieces": pieces,
        "waited": waited,
        "weighed": weighed,
        "rounds": rounds,
    }


INPUTS: Final = Inputs(
    {
        "sales": "array<{city: string, day: date, pieces: integer, price: decimal, weight: float, took: duration, tag: json}>",
        "cities": "array<{name: string, rate: decimal}>",
        "rates": "map<string, decimal>",
        "deep": "boolean",
    },
    {},
)
RUN: Final = undecorated(stages_v1)


def read_sale(given: Any) -> Sale:
    """What is a Sale already, field by field."""
    if type(given) is not dict:
        raise NotPlain
    for name in given:
        if type(name) is not str:
            raise NotPlain
    if len(given) != 7:
        raise NotPlain
    city = given["city"]
    if type(city) is not str or not (is_ascii(city) or is_text(city)) or len(city) > MAX_TEXT:
        raise NotPlain
    day = given["day"]
    pieces = given["pieces"]
    if type(pieces) is not int or pieces < MIN_INTEGER or pieces > MAX_INTEGER:
        raise NotPlain
    price = given["price"]
    if type(price) is not Decimal or not is_finite(price):
        raise NotPlain
    weight = given["weight"]
    if type(weight) is not float:
        raise NotPlain
    took = given["took"]
    tag = given["tag"]
    return {
        "city": city,
        "day": read_value("date", day),
        "pieces": pieces,
        "price": price + D_0,
        "weight": weight,
        "took": read_value("duration", took),
        "tag": read_value("json", tag),
    }


def read_city(given: Any) -> City:
    """What is a City already, field by field."""
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
    rate = given["rate"]
    if type(rate) is not Decimal or not is_finite(rate):
        raise NotPlain
    return {"name": name_, "rate": rate + D_0}


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
        cities = inputs["cities"]
        if type(cities) is not list or len(cities) > MAX_ENTRIES:
            raise NotPlain
        cities = [read_city(item) for item in cities]
        rates = inputs["rates"]
        rates = read_value("map<string, decimal>", rates)
        deep = inputs["deep"]
        if type(deep) is not bool:
            raise NotPlain
    except NOT_PLAIN:
        sales, cities, rates, deep = read_inputs(INPUTS, inputs)
    return new_objects(RUN(sales, cities, rates, deep, now=now))


SOURCE: Final = Source(
    "tests/integration/differential/nodes/stages_v1.vsp",
    lines={
        113: 32, 117: 33, 128: 34, 131: 45, 132: 44, 148: 51, 156: 56, 159: 56, 170: 63, 171: 64,
        179: 71, 189: 79, 197: 82, 203: 88, 205: 89, 206: 90, 210: 93, 219: 102,
    },
    clauses={
        "precondition": [
            "COUNT(sales) <= 12",
            "COUNT(cities) <= 6",
            "FORALL sale IN sales SATISFIES sale.pieces >= 0 AND sale.pieces <= 1000 AND sale.took < duration('1000d') AND sale.took > duration('0s')",
        ],
    },
)  # fmt: skip
