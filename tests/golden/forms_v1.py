# AUTO-GENERATED - DO NOT EDIT
# forms_v1, from tests/integration/differential/nodes/forms_v1.vsp
# semantic hash a61abb85479bdf1a9796b79de60518b54dcdb1cdca72c583eb5012c8ddc85372
"""Use every form that goes by what it computes for each item, functions of the node and named
types."""

from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import enumerate as array_enumerate
from vesper.kernels.array import equal as array_equal
from vesper.kernels.array import first as array_first
from vesper.kernels.array import largest, smallest
from vesper.kernels.array import last as array_last
from vesper.kernels.array import reverse as array_reverse
from vesper.kernels.array import to_set as array_to_set
from vesper.kernels.array import zip as array_zip
from vesper.kernels.decimal import avg as decimal_avg
from vesper.kernels.decimal import exact_decimals, exact_entry, unsigned_zero
from vesper.kernels.decimal import round as decimal_round
from vesper.kernels.integer import avg as integer_avg
from vesper.kernels.integer import checked
from vesper.kernels.integer import div_floor as integer_div_floor
from vesper.kernels.integer import mod as integer_mod
from vesper.kernels.map import entries as map_entries
from vesper.kernels.map import entries_of, map_of
from vesper.kernels.map import from_entries as map_from_entries
from vesper.kernels.map import keys as map_keys
from vesper.kernels.map import not_equal as map_not_equal
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    MAX_ENTRIES,
    MAX_INTEGER,
    MAX_TEXT,
    MIN_INTEGER,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    get_entry,
    is_ascii,
    is_finite,
    is_text,
    new_objects,
    read_inputs,
    read_integer,
    read_member,
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
    sorted_by,
    taken_while,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.set import equal as set_equal
from vesper.kernels.text import join as text_join

D_MINUS_1: Final = Decimal(-1)
D_0: Final = Decimal(0)
D_0_19: Final = Decimal("0.19")
D_0_5: Final = Decimal("0.5")
D_1: Final = Decimal(1)
D_1000000: Final = Decimal(1000000)


class Line(TypedDict):
    code: str
    qty: int
    price: Decimal
    grade: Literal["low", "mid", "high"]
    spare: int | None


class KindsRow(TypedDict):
    a: Decimal
    b: list[Literal["low", "mid", "high"]]


class Success(TypedDict):
    by_price: list[Line]
    by_grade: list[str]
    turned: list[str]
    kinds: list[str]
    cheapest: Line | None
    best: str | None
    groups: dict[Literal["low", "mid", "high"], list[Line]]
    tally: dict[int, int]
    by_code: dict[str, Line]
    small: list[int]
    rest: list[int]
    number: int
    weight: Decimal
    worth: Decimal
    average: Decimal
    mean: Decimal
    least: Literal["low", "mid", "high"]
    top: int
    pairs: list[int]
    again: dict[str, int]
    same: bool
    wanted: bool
    names: str
    empty: dict[str, int]


RATE: Final[Decimal] = D_0_19


@exact_decimals
def forms_v1(
    lines: list[Line],
    counts: list[int],
    stock: dict[str, int],
    codes: frozenset[str],
    order: Literal["ascending", "descending"],
    most: int | None = None,
) -> Success:
    """Use every form that goes by what it computes for each item, functions of the node and named
    types."""

    # one pass over lines tests 7 clauses; where one is broken, the first is named
    for item in lines:
        if not (
            len(item["code"]) > 0
            and item["code"] != "none"
            and item["qty"] > 0
            and item["qty"] <= 1000
            and (item["spare"] is None or item["spare"] > 0)
            and (item["spare"] is None or item["spare"] <= 1000)
            and item["price"] >= D_0
        ):
            # constraint, line 7: length(code) > 0
            if not all(len(item["code"]) > 0 for item in lines):
                raise ContractBroken("constraint", 0, {"lines": lines})

            # constraint, line 7: value != 'none'
            if not all(item["code"] != "none" for item in lines):
                raise ContractBroken("constraint", 1, {"lines": lines})

            # constraint, line 6: qty > 0
            if not all(item["qty"] > 0 for item in lines):
                raise ContractBroken("constraint", 2, {"lines": lines})

            # constraint, line 6: qty <= 1000
            if not all(item["qty"] <= 1000 for item in lines):
                raise ContractBroken("constraint", 3, {"lines": lines})

            # constraint, line 6: spare > 0
            if not all(item["spare"] is None or item["spare"] > 0 for item in lines):
                raise ContractBroken("constraint", 4, {"lines": lines})

            # constraint, line 6: spare <= 1000
            if not all(item["spare"] is None or item["spare"] <= 1000 for item in lines):
                raise ContractBroken("constraint", 5, {"lines": lines})

            # constraint, line 17: price >= 0
            if not all(item["price"] >= D_0 for item in lines):
                raise ContractBroken("constraint", 6, {"lines": lines})

    # constraint, line 18: line_total(qty, price) <= 1000000
    for item in lines:
        if not item["qty"] * item["price"] <= D_1000000:
            raise ContractBroken("constraint", 7, {"lines": lines})

    # one pass over counts tests 2 clauses; where one is broken, the first is named
    for item_ in counts:
        if not (item_ > 0 and item_ <= 1000):
            # constraint, line 6: item > 0
            if not all(item > 0 for item in counts):
                raise ContractBroken("constraint", 8, {"counts": counts})

            # constraint, line 6: item <= 1000
            if not all(item <= 1000 for item in counts):
                raise ContractBroken("constraint", 9, {"counts": counts})

    # one pass over stock tests 2 clauses; where one is broken, the first is named
    for key in stock:
        if not (len(key) > 0 and key != "none"):
            # constraint, line 7: length(key) > 0
            if not all(len(key) > 0 for key in stock):
                raise ContractBroken("constraint", 10, {"stock": stock})

            # constraint, line 7: value != 'none'
            if not all(key != "none" for key in stock):
                raise ContractBroken("constraint", 11, {"stock": stock})

    # one pass over stock tests 2 clauses; where one is broken, the first is named
    for _key, item_ in entries_of(stock):
        if not (item_ > 0 and item_ <= 1000):
            # constraint, line 6: item > 0
            if not all(item > 0 for key, item in entries_of(stock)):
                raise ContractBroken("constraint", 12, {"stock": stock})

            # constraint, line 6: item <= 1000
            if not all(item <= 1000 for key, item in entries_of(stock)):
                raise ContractBroken("constraint", 13, {"stock": stock})

    # one pass over codes tests 2 clauses; where one is broken, the first is named
    for item__ in sorted(codes):
        if not (len(item__) > 0 and item__ != "none"):
            # constraint, line 7: length(item) > 0
            if not all(len(item) > 0 for item in sorted(codes)):
                raise ContractBroken("constraint", 14, {"codes": codes})

            # constraint, line 7: value != 'none'
            if not all(item != "none" for item in sorted(codes)):
                raise ContractBroken("constraint", 15, {"codes": codes})

    # constraint, line 6: most > 0
    if not (most is None or most > 0):
        raise ContractBroken("constraint", 16, {"most": most})

    # constraint, line 6: most <= 1000
    if not (most is None or most <= 1000):
        raise ContractBroken("constraint", 17, {"most": most})

    # step by_price, line 79
    by_price: list[Line] = sorted(
        lines, key=lambda line: line["price"], reverse=order == "descending"
    )

    # step by_grade, line 80
    by_grade = [
        line["code"]
        for line in sorted_by(
            lambda line_: line_["grade"],
            (line_ for line_ in lines if line_["qty"] > 1),
            "descending",
            ("low", "mid", "high"),
        )
    ]

    # step turned, line 81
    turned = [
        line["code"]
        for line in sorted(
            lines, key=lambda line_: integer_div_floor(100, checked(line_["qty"] - 3))
        )
    ]

    # step kinds, line 82
    kinds = [
        line["code"]
        for line in distinct_by(lambda line_: KindsRow(a=line_["price"], b=[line_["grade"]]), lines)
    ]

    # step cheapest, line 83
    cheapest: Line | None = least_by(
        lambda line: line["price"], (line for line in lines if line["grade"] != "low")
    )

    # step best, line 84
    found = greatest_by(lambda line: line["grade"], lines, ("low", "mid", "high"))
    best = None if found is None else found["code"]

    # step groups, line 85
    groups: dict[Literal["low", "mid", "high"], list[Line]] = grouped_by(
        lambda line: line["grade"], lines, ("low", "mid", "high")
    )

    # step tally, line 86
    tally = counted_by(lambda n: integer_mod(n, 3), (n for n in counts if n > 1))

    # step by_code, line 87
    by_code: dict[str, Line] = map_of((line["code"], line) for line in lines)

    # step small, line 88
    small = taken_while(lambda n: n < 10, (n for n in counts if integer_mod(n, 2) == 0))

    # step rest, line 89
    rest = dropped_while(
        lambda n: ("even" if integer_mod(n, 2) == 0 else "odd") == "odd",
        (n for n in counts if n > 1),
    )

    # step number, line 90
    acc = 0
    for n in counts:
        if n < 10:
            acc = checked(checked(acc * 10) + n)
    number = acc

    # step weight, line 91
    acc_ = D_0_5
    for k, v in entries_of(stock):
        acc_ = acc_ + checked(v * checked(len(k) + 1))
    weight = acc_

    # step worth, line 92
    worth = sum(
        (
            net + decimal_round(unsigned_zero(net * RATE * D_1), 2, "half_even")
            for each in lines
            for net in [unsigned_zero(each["qty"] * each["price"])]
        ),
        D_0,
    ) + sum(
        (
            net_ + decimal_round(unsigned_zero(net_ * RATE * D_1), 2, "half_even")
            for each_ in [line for line in lines if line["qty"] > 1]
            for net_ in [unsigned_zero(each_["qty"] * each_["price"])]
        ),
        D_0,
    )

    # step average, line 93
    average = integer_avg(counts) if len(counts) > 0 else D_0

    # step mean, line 94
    mean = decimal_avg(
        [unsigned_zero(line["price"] * D_MINUS_1) for line in lines if line["qty"] > 0]
    )

    # step least, line 95
    least: Literal["low", "mid", "high"] = smallest(
        (line["grade"] for line in lines), ("low", "mid", "high")
    )

    # step top, line 96
    top = largest(v_ for k_, v_ in entries_of(stock))

    # step pairs, line 97
    pairs = [
        checked(pair["first"] * pair["second"]["index"])
        for pair in array_zip(counts, array_enumerate(array_reverse(counts)))
    ]

    # step again, line 98
    again = map_from_entries([e for e in map_entries(stock) if e["value"] > 1])

    # step same, line 99
    same = (
        array_equal(by_price, lines)
        and map_not_equal(again, stock)
        and array_first(lines) == array_last(lines)
        and set_equal(codes, array_to_set(map_keys(stock)))
    )

    # step wanted, line 100
    wanted = (
        most == 3
        or (most is not None and most > 100)
        or array_first([n_ for n_ in counts if n_ > 5]) == most
    )

    # step names, line 101
    names = text_join(sorted(codes), "-")

    # step empty, line 102
    empty = {} if len(codes) > 1 else {"a": 1, "b": 2}

    # one pass over by_price tests 7 clauses; where one is broken, the first is named
    for item in by_price:
        if not (
            len(item["code"]) > 0
            and item["code"] != "none"
            and item["qty"] > 0
            and item["qty"] <= 1000
            and (item["spare"] is None or item["spare"] > 0)
            and (item["spare"] is None or item["spare"] <= 1000)
            and item["price"] >= D_0
        ):
            # postcondition, line 7: length(code) > 0
            if not all(len(item["code"]) > 0 for item in by_price):
                raise ContractBroken("postcondition", 0, {"by_price": by_price})

            # postcondition, line 7: value != 'none'
            if not all(item["code"] != "none" for item in by_price):
                raise ContractBroken("postcondition", 1, {"by_price": by_price})

            # postcondition, line 6: qty > 0
            if not all(item["qty"] > 0 for item in by_price):
                raise ContractBroken("postcondition", 2, {"by_price": by_price})

            # postcondition, line 6: qty <= 1000
            if not all(item["qty"] <= 1000 for item in by_price):
                raise ContractBroken("postcondition", 3, {"by_price": by_price})

            # postcondition, line 6: spare > 0
            if not all(item["spare"] is None or item["spare"] > 0 for item in by_price):
                raise ContractBroken("postcondition", 4, {"by_price": by_price})

            # postcondition, line 6: spare <= 1000
            if not all(item["spare"] is None or item["spare"] <= 1000 for item in by_price):
                raise ContractBroken("postcondition", 5, {"by_price": by_price})

            # postcondition, line 17: price >= 0
            if not all(item["price"] >= D_0 for item in by_price):
                raise ContractBroken("postcondition", 6, {"by_price": by_price})

    # postcondition, line 18: line_total(qty, price) <= 1000000
    for item in by_price:
        if not item["qty"] * item["price"] <= D_1000000:
            raise ContractBroken("postcondition", 7, {"by_price": by_price})

    # postcondition, line 7: length(code) > 0
    if not (cheapest is None or len(cheapest["code"]) > 0):
        raise ContractBroken("postcondition", 8, {"cheapest": cheapest})

    # postcondition, line 7: value != 'none'
    if not (cheapest is None or cheapest["code"] != "none"):
        raise ContractBroken("postcondition", 9, {"cheapest": cheapest})

    # postcondition, line 6: qty > 0
    if not (cheapest is None or cheapest["qty"] > 0):
        raise ContractBroken("postcondition", 10, {"cheapest": cheapest})

    # postcondition, line 6: qty <= 1000
    if not (cheapest is None or cheapest["qty"] <= 1000):
        raise ContractBroken("postcondition", 11, {"cheapest": cheapest})

    # postcondition, line 6: spare > 0
    if not (cheapest is None or (cheapest["spare"] is None or cheapest["spare"] > 0)):
        raise ContractBroken("postcondition", 12, {"cheapest": cheapest})

    # postcondition, line 6: spare <= 1000
    if not (cheapest is None or (cheapest["spare"] is None or cheapest["spare"] <= 1000)):
        raise ContractBroken("postcondition", 13, {"cheapest": cheapest})

    # postcondition, line 17: price >= 0
    if not (cheapest is None or cheapest["price"] >= D_0):
        raise ContractBroken("postcondition", 14, {"cheapest": cheapest})

    # postcondition, line 18: line_total(qty, price) <= 1000000
    if not (cheapest is None or cheapest["qty"] * cheapest["price"] <= D_1000000):
        raise ContractBroken("postcondition", 15, {"cheapest": cheapest})

    # one pass over groups tests 7 clauses; where one is broken, the first is named
    for __key, item___ in entries_of(groups):
        if not all(
            len(item["code"]) > 0
            and item["code"] != "none"
            and item["qty"] > 0
            and item["qty"] <= 1000
            and (item["spare"] is None or item["spare"] > 0)
            and (item["spare"] is None or item["spare"] <= 1000)
            and item["price"] >= D_0
            for item in item___
        ):
            # postcondition, line 7: length(code) > 0
            if not all(
                all(len(item_["code"]) > 0 for item_ in item) for key, item in entries_of(groups)
            ):
                raise ContractBroken("postcondition", 16, {"groups": groups})

            # postcondition, line 7: value != 'none'
            if not all(
                all(item_["code"] != "none" for item_ in item) for key, item in entries_of(groups)
            ):
                raise ContractBroken("postcondition", 17, {"groups": groups})

            # postcondition, line 6: qty > 0
            if not all(all(item_["qty"] > 0 for item_ in item) for key, item in entries_of(groups)):
                raise ContractBroken("postcondition", 18, {"groups": groups})

            # postcondition, line 6: qty <= 1000
            if not all(
                all(item_["qty"] <= 1000 for item_ in item) for key, item in entries_of(groups)
            ):
                raise ContractBroken("postcondition", 19, {"groups": groups})

            # postcondition, line 6: spare > 0
            if not all(
                all(item_["spare"] is None or item_["spare"] > 0 for item_ in item)
                for key, item in entries_of(groups)
            ):
                raise ContractBroken("postcondition", 20, {"groups": groups})

            # postcondition, line 6: spare <= 1000
            if not all(
                all(item_["spare"] is None or item_["spare"] <= 1000 for item_ in item)
                for key, item in entries_of(groups)
            ):
                raise ContractBroken("postcondition", 21, {"groups": groups})

            # postcondition, line 17: price >= 0
            if not all(
                all(item_["price"] >= D_0 for item_ in item) for key, item in entries_of(groups)
            ):
                raise ContractBroken("postcondition", 22, {"groups": groups})

    # postcondition, line 18: line_total(qty, price) <= 1000000
    if not all(
        all(item_["qty"] * item_["price"] <= D_1000000 for item_ in item)
        for key, item in entries_of(groups)
    ):
        raise ContractBroken("postcondition", 23, {"groups": groups})

    # one pass over by_code tests 7 clauses; where one is broken, the first is named
    for _key, item in entries_of(by_code):
        if not (
            len(item["code"]) > 0
            and item["code"] != "none"
            and item["qty"] > 0
            and item["qty"] <= 1000
            and (item["spare"] is None or item["spare"] > 0)
            and (item["spare"] is None or item["spare"] <= 1000)
            and item["price"] >= D_0
        ):
            # postcondition, line 7: length(code) > 0
            if not all(len(item["code"]) > 0 for key, item in entries_of(by_code)):
                raise ContractBroken("postcondition", 24, {"by_code": by_code})

            # postcondition, line 7: value != 'none'
            if not all(item["code"] != "none" for key, item in entries_of(by_code)):
                raise ContractBroken("postcondition", 25, {"by_code": by_code})

            # postcondition, line 6: qty > 0
            if not all(item["qty"] > 0 for key, item in entries_of(by_code)):
                raise ContractBroken("postcondition", 26, {"by_code": by_code})

            # postcondition, line 6: qty <= 1000
            if not all(item["qty"] <= 1000 for key, item in entries_of(by_code)):
                raise ContractBroken("postcondition", 27, {"by_code": by_code})

            # postcondition, line 6: spare > 0
            if not all(
                item["spare"] is None or item["spare"] > 0 for key, item in entries_of(by_code)
            ):
                raise ContractBroken("postcondition", 28, {"by_code": by_code})

            # postcondition, line 6: spare <= 1000
            if not all(
                item["spare"] is None or item["spare"] <= 1000 for key, item in entries_of(by_code)
            ):
                raise ContractBroken("postcondition", 29, {"by_code": by_code})

            # postcondition, line 17: price >= 0
            if not all(item["price"] >= D_0 for key, item in entries_of(by_code)):
                raise ContractBroken("postcondition", 30, {"by_code": by_code})

    # postcondition, line 18: line_total(qty, price) <= 1000000
    for _key, item in entries_of(by_code):
        if not item["qty"] * item["price"] <= D_1000000:
            raise ContractBroken("postcondition", 31, {"by_code": by_code})

    return {
        "by_price": by_price,
        "by_grade": by_grade,
        "turned": turned,
        "kinds": kinds,
        "cheapest": cheapest,
        "best": best,
        "groups": groups,
        "tally": tally,
        "by_code": by_code,
        "small": small,
        "rest": rest,
        "number": number,
        "weight": weight,
        "worth": worth,
        "average": average,
        "mean": mean,
        "least": least,
        "top": top,
        "pairs": pairs,
        "again": again,
        "same": same,
        "wanted": wanted,
        "names": names,
        "empty": empty,
    }


INPUTS: Final = Inputs(
    {
        "lines": "array<{code: string, qty: integer, price: decimal, grade: enum[low, mid, high], spare: optional<integer>}>",
        "counts": "array<integer>",
        "stock": "map<string, integer>",
        "codes": "set<string>",
        "order": "enum[ascending, descending]",
        "most": "optional<integer>",
    },
    {},
)
RUN: Final = undecorated(forms_v1)


def read_line(given: Any) -> Line:
    """Read a plain Line, field by field."""
    if type(given) is not dict:
        raise NotPlain
    for name in given:
        if type(name) is not str:
            raise NotPlain
    if len(given) != 4 + ("spare" in given):
        raise NotPlain
    code = given["code"]
    if type(code) is not str or not (is_ascii(code) or is_text(code)) or len(code) > MAX_TEXT:
        raise NotPlain
    qty = given["qty"]
    if type(qty) is not int or qty < MIN_INTEGER or qty > MAX_INTEGER:
        raise NotPlain
    price = given["price"]
    if type(price) is not Decimal or not is_finite(price):
        raise NotPlain
    grade = read_member(given["grade"], ("low", "mid", "high"))
    spare = get_entry(given, "spare")
    if spare is not None and (type(spare) is not int or spare < MIN_INTEGER or spare > MAX_INTEGER):
        raise NotPlain
    return {"code": code, "qty": qty, "price": price + D_0, "grade": grade, "spare": spare}


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """Run the node on a caller's own objects; each is checked and converted first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 5 + ("most" in inputs):
            raise NotPlain
        lines = inputs["lines"]
        if type(lines) is not list or len(lines) > MAX_ENTRIES:
            raise NotPlain
        lines = [read_line(item) for item in lines]
        counts = inputs["counts"]
        if type(counts) is not list or len(counts) > MAX_ENTRIES:
            raise NotPlain
        counts = [read_integer(item) for item in counts]
        stock = inputs["stock"]
        stock = read_value("map<string, integer>", stock)
        codes = inputs["codes"]
        codes = read_value("set<string>", codes)
        order = inputs["order"]
        if type(order) is not str or order not in {"ascending", "descending"}:
            raise NotPlain
        most = get_entry(inputs, "most")
        if most is not None and (type(most) is not int or most < MIN_INTEGER or most > MAX_INTEGER):
            raise NotPlain
    except NOT_PLAIN:
        lines, counts, stock, codes, order, most = read_inputs(INPUTS, inputs)
    return new_objects(RUN(lines, counts, stock, codes, order, most))


SOURCE: Final = Source(
    "tests/integration/differential/nodes/forms_v1.vsp",
    lines={
        140: 7, 144: 7, 148: 6, 152: 6, 156: 6, 160: 6, 164: 17, 168: 62, 169: 18, 176: 6, 180: 6,
        187: 7, 191: 7, 198: 6, 202: 6, 209: 7, 213: 7, 217: 6, 221: 6, 243: 81, 268: 86, 271: 87,
        274: 88, 278: 74, 286: 90, 292: 91, 296: 70, 298: 66, 300: 62, 303: 70, 305: 66, 307: 62,
        313: 93, 316: 94, 317: 94, 321: 95, 326: 96, 330: 97, 331: 97, 335: 98, 353: 101, 371: 7,
        375: 7, 379: 6, 383: 6, 387: 6, 391: 6, 395: 17, 399: 62, 400: 18, 404: 7, 408: 7, 412: 6,
        416: 6, 420: 6, 424: 6, 428: 17, 431: 62, 432: 18, 450: 7, 456: 7, 460: 6, 466: 6, 473: 6,
        480: 6, 486: 17, 490: 62, 493: 18, 508: 7, 512: 7, 516: 6, 520: 6, 526: 6, 532: 6, 536: 17,
        540: 62, 541: 18,
    },
    clauses={
        "constraint": [
            "length(code) > 0",
            "value != 'none'",
            "qty > 0",
            "qty <= 1000",
            "spare > 0",
            "spare <= 1000",
            "price >= 0",
            "line_total(qty, price) <= 1000000",
            "item > 0",
            "item <= 1000",
            "length(key) > 0",
            "value != 'none'",
            "item > 0",
            "item <= 1000",
            "length(item) > 0",
            "value != 'none'",
            "most > 0",
            "most <= 1000",
        ],
        "postcondition": [
            "length(code) > 0",
            "value != 'none'",
            "qty > 0",
            "qty <= 1000",
            "spare > 0",
            "spare <= 1000",
            "price >= 0",
            "line_total(qty, price) <= 1000000",
            "length(code) > 0",
            "value != 'none'",
            "qty > 0",
            "qty <= 1000",
            "spare > 0",
            "spare <= 1000",
            "price >= 0",
            "line_total(qty, price) <= 1000000",
            "length(code) > 0",
            "value != 'none'",
            "qty > 0",
            "qty <= 1000",
            "spare > 0",
            "spare <= 1000",
            "price >= 0",
            "line_total(qty, price) <= 1000000",
            "length(code) > 0",
            "value != 'none'",
            "qty > 0",
            "qty <= 1000",
            "spare > 0",
            "spare <= 1000",
            "price >= 0",
            "line_total(qty, price) <= 1000000",
        ],
    },
)  # fmt: skip
