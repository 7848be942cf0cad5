# AUTO-GENERATED - DO NOT EDIT
# forms_v1, from tests/differential/nodes/forms_v1.vsp
# semantic hash a61abb85479bdf1a9796b79de60518b54dcdb1cdca72c583eb5012c8ddc85372
"""Use every form that goes by what it computes for each item, functions of the node and named
types."""

from decimal import Decimal
from typing import Final, Literal, TypedDict

from vesper.kernels.array import (
    enumerate as array_enumerate,
    first as array_first,
    largest,
    last as array_last,
    reverse as array_reverse,
    smallest,
    zip as array_zip,
)
from vesper.kernels.decimal import (
    avg as decimal_avg,
    exact_decimals,
    round as decimal_round,
    unsigned_zero,
)
from vesper.kernels.forms import (
    counted_by,
    distinct_by,
    dropped_while,
    greatest_by,
    grouped_by,
    least_by,
    sorted_by,
    taken_while,
)
from vesper.kernels.integer import (
    avg as integer_avg,
    checked,
    div_floor as integer_div_floor,
    mod as integer_mod,
)
from vesper.kernels.map import (
    entries as map_entries,
    entries_of,
    from_entries as map_from_entries,
    keys as map_keys,
    map_of,
)
from vesper.kernels.raised import ContractBroken
from vesper.kernels.text import join as text_join

D_MINUS_1: Final = Decimal("-1")
D_0: Final = Decimal("0")
D_0_19: Final = Decimal("0.19")
D_0_5: Final = Decimal("0.5")
D_1: Final = Decimal("1")
D_1000000: Final = Decimal("1000000")


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
    if not all(Decimal(item["qty"]) * item["price"] <= D_1000000 for item in lines):
        raise ContractBroken("constraint", 7, {"lines": lines})

    # constraint, line 6: item > 0
    if not all(item > 0 for item in counts):
        raise ContractBroken("constraint", 8, {"counts": counts})

    # constraint, line 6: item <= 1000
    if not all(item <= 1000 for item in counts):
        raise ContractBroken("constraint", 9, {"counts": counts})

    # constraint, line 7: length(key) > 0
    if not all(len(key) > 0 for key in stock):
        raise ContractBroken("constraint", 10, {"stock": stock})

    # constraint, line 7: value != 'none'
    if not all(key != "none" for key in stock):
        raise ContractBroken("constraint", 11, {"stock": stock})

    # constraint, line 6: item > 0
    if not all(item > 0 for key, item in entries_of(stock)):
        raise ContractBroken("constraint", 12, {"stock": stock})

    # constraint, line 6: item <= 1000
    if not all(item <= 1000 for key, item in entries_of(stock)):
        raise ContractBroken("constraint", 13, {"stock": stock})

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
        acc_ = acc_ + Decimal(checked(v * checked(len(k) + 1)))
    weight = acc_

    # step worth, line 92
    worth = (
        sum(
            (
                net + decimal_round(unsigned_zero(net * RATE * D_1), 2, "half_even")
                for each in lines
                for net in [unsigned_zero(Decimal(each["qty"]) * each["price"])]
            ),
            D_0,
        )
        + [
            sum(
                (
                    net_ + decimal_round(unsigned_zero(net_ * RATE * D_1), 2, "half_even")
                    for each_ in of
                    for net_ in [unsigned_zero(Decimal(each_["qty"]) * each_["price"])]
                ),
                D_0,
            )
            for of in [[line for line in lines if line["qty"] > 1]]
        ][0]
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
        by_price == lines
        and again != stock
        and array_first(lines) == array_last(lines)
        and codes == frozenset(map_keys(stock))
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
    if not all(Decimal(item["qty"]) * item["price"] <= D_1000000 for item in by_price):
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
    if not (cheapest is None or Decimal(cheapest["qty"]) * cheapest["price"] <= D_1000000):
        raise ContractBroken("postcondition", 15, {"cheapest": cheapest})

    # postcondition, line 7: length(code) > 0
    if not all(all(len(item_["code"]) > 0 for item_ in item) for key, item in entries_of(groups)):
        raise ContractBroken("postcondition", 16, {"groups": groups})

    # postcondition, line 7: value != 'none'
    if not all(all(item_["code"] != "none" for item_ in item) for key, item in entries_of(groups)):
        raise ContractBroken("postcondition", 17, {"groups": groups})

    # postcondition, line 6: qty > 0
    if not all(all(item_["qty"] > 0 for item_ in item) for key, item in entries_of(groups)):
        raise ContractBroken("postcondition", 18, {"groups": groups})

    # postcondition, line 6: qty <= 1000
    if not all(all(item_["qty"] <= 1000 for item_ in item) for key, item in entries_of(groups)):
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
    if not all(all(item_["price"] >= D_0 for item_ in item) for key, item in entries_of(groups)):
        raise ContractBroken("postcondition", 22, {"groups": groups})

    # postcondition, line 18: line_total(qty, price) <= 1000000
    if not all(
        all(Decimal(item_["qty"]) * item_["price"] <= D_1000000 for item_ in item)
        for key, item in entries_of(groups)
    ):
        raise ContractBroken("postcondition", 23, {"groups": groups})

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
    if not all(item["spare"] is None or item["spare"] > 0 for key, item in entries_of(by_code)):
        raise ContractBroken("postcondition", 28, {"by_code": by_code})

    # postcondition, line 6: spare <= 1000
    if not all(item["spare"] is None or item["spare"] <= 1000 for key, item in entries_of(by_code)):
        raise ContractBroken("postcondition", 29, {"by_code": by_code})

    # postcondition, line 17: price >= 0
    if not all(item["price"] >= D_0 for key, item in entries_of(by_code)):
        raise ContractBroken("postcondition", 30, {"by_code": by_code})

    # postcondition, line 18: line_total(qty, price) <= 1000000
    if not all(
        Decimal(item["qty"]) * item["price"] <= D_1000000 for key, item in entries_of(by_code)
    ):
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
