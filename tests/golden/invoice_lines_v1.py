# AUTO-GENERATED - DO NOT EDIT
# invoice_lines_v1, from nodes/orders/invoice_lines_v1.vsp
# semantic hash d06528985c0c9bcb77cf6495893d1a434e724ec846ff481c13baf1be7ed1e413
"""Compare what was ordered with what was delivered and invoice only that, line by line."""

from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import enumerate as array_enumerate
from vesper.kernels.array import equal as array_equal
from vesper.kernels.array import first as array_first
from vesper.kernels.array import reverse as array_reverse
from vesper.kernels.array import to_set as array_to_set
from vesper.kernels.array import zip as array_zip
from vesper.kernels.decimal import exact_decimals, exact_entry, unsigned_zero
from vesper.kernels.decimal import round as decimal_round
from vesper.kernels.decimal import text as decimal_text
from vesper.kernels.enum import text as enum_text
from vesper.kernels.integer import checked
from vesper.kernels.integer import text as integer_text
from vesper.kernels.map import contains as map_contains
from vesper.kernels.map import equal as map_equal
from vesper.kernels.map import keys as map_keys
from vesper.kernels.map import map_of
from vesper.kernels.raised import ContractBroken, DeclaredError
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
    read_value,
    undecorated,
)
from vesper.kernels.runtime.flow import keep
from vesper.kernels.runtime.forms import distinct_by
from vesper.kernels.runtime.source import Source
from vesper.kernels.set import difference as set_difference
from vesper.kernels.set import equal as set_equal
from vesper.kernels.text import concat as text_concat
from vesper.kernels.text import join as text_join
from vesper.kernels.text import trim as text_trim
from vesper.kernels.value import min as value_min

D_0: Final = Decimal(0)
D_0_00: Final = Decimal("0.00")
D_0_07: Final = Decimal("0.07")
D_0_19: Final = Decimal("0.19")


class Billed(TypedDict):
    position: int
    sku: str
    qty: int
    net: Decimal
    status: Literal["complete", "short", "missing"]


class Line(TypedDict):
    sku: str
    qty: int
    price: Decimal


class Billed2(TypedDict):
    net: Decimal
    collected: list[Billed]


class Success(TypedDict):
    lines: list[Billed]
    net: Decimal
    tax: Decimal
    gross: Decimal
    letter: str
    is_exact: bool
    is_repeat: bool
    unasked: frozenset[str]
    ends_alike: bool


@exact_decimals
def invoice_lines_v1(
    ordered: list[Line],
    delivered: list[Line],
    vat: Literal["standard", "reduced", "none"] = "standard",
    customer: str = "",
    previous: dict[str, int] | None = None,
    last_sku: str | None = None,
) -> Success:
    """Compare what was ordered with what was delivered and invoice only that, line by line."""

    # one pass over ordered tests 4 clauses; where one is broken, the first is named
    for item in ordered:
        if not (
            item["qty"] >= 0
            and item["qty"] <= 10000
            and item["price"] >= D_0
            and len(item["sku"]) > 0
        ):
            # constraint, line 6: qty >= 0
            if not all(item["qty"] >= 0 for item in ordered):
                raise ContractBroken("constraint", 0, {"ordered": ordered})

            # constraint, line 6: qty <= 10000
            if not all(item["qty"] <= 10000 for item in ordered):
                raise ContractBroken("constraint", 1, {"ordered": ordered})

            # constraint, line 12: price >= 0
            if not all(item["price"] >= D_0 for item in ordered):
                raise ContractBroken("constraint", 2, {"ordered": ordered})

            # constraint, line 12: length(sku) > 0
            if not all(len(item["sku"]) > 0 for item in ordered):
                raise ContractBroken("constraint", 3, {"ordered": ordered})

    # one pass over delivered tests 4 clauses; where one is broken, the first is named
    for item in delivered:
        if not (
            item["qty"] >= 0
            and item["qty"] <= 10000
            and item["price"] >= D_0
            and len(item["sku"]) > 0
        ):
            # constraint, line 6: qty >= 0
            if not all(item["qty"] >= 0 for item in delivered):
                raise ContractBroken("constraint", 4, {"delivered": delivered})

            # constraint, line 6: qty <= 10000
            if not all(item["qty"] <= 10000 for item in delivered):
                raise ContractBroken("constraint", 5, {"delivered": delivered})

            # constraint, line 12: price >= 0
            if not all(item["price"] >= D_0 for item in delivered):
                raise ContractBroken("constraint", 6, {"delivered": delivered})

            # constraint, line 12: length(sku) > 0
            if not all(len(item["sku"]) > 0 for item in delivered):
                raise ContractBroken("constraint", 7, {"delivered": delivered})

    # constraint, line 25: length(customer) <= 80
    if not len(customer) <= 80:
        raise ContractBroken("constraint", 8, {"customer": customer})

    # precondition, line 47: length(ordered) > 0
    if not len(ordered) > 0:
        raise ContractBroken("precondition", 0, {"ordered": ordered})

    # precondition, line 48: to_set([line.sku FOR line IN ordered]) == to_set([line.sku FOR line IN
    #   distinct_by(line.sku FOR line IN ordered)])
    if not set_equal(
        array_to_set([line["sku"] for line in ordered]),
        array_to_set(
            [line_["sku"] for line_ in distinct_by(lambda line__: line__["sku"], ordered)]
        ),
    ):
        raise ContractBroken("precondition", 1, {"ordered": ordered})

    # precondition, line 49: length(distinct_by(line.sku FOR line IN ordered)) == length(ordered)
    if len(distinct_by(lambda line: line["sku"], ordered)) != len(ordered):
        raise ContractBroken("precondition", 2, {"ordered": ordered})

    # precondition, line 50: length(distinct_by(line.sku FOR line IN delivered)) ==
    #   length(delivered)
    if len(distinct_by(lambda line: line["sku"], delivered)) != len(delivered):
        raise ContractBroken("precondition", 3, {"delivered": delivered})

    # step arrived, line 58
    arrived: dict[str, Line] = map_of((line["sku"], line) for line in delivered if line["qty"] > 0)

    # raise_1, line 62
    if len(arrived) == 0:
        message = text_join(["nothing of ", integer_text(len(ordered)), " lines was delivered"], "")

        raise DeclaredError({"error_code": "nothing_delivered", "message": message, "sku": None})

    # step changed, line 66
    changed = array_first(
        [
            line["sku"]
            for line in ordered
            if map_contains(arrived, line["sku"]) and arrived[line["sku"]]["price"] != line["price"]
        ]
    )

    # return_2, line 70
    if changed is not None:
        message = text_join(["the price of ", changed, " is another one"], "")
        sku: str | None = changed

        raise DeclaredError({"error_code": "price_changed", "message": message, "sku": sku})

    # step billed, line 74
    items = array_enumerate(ordered)
    net = D_0_00
    collected: list[Billed] = []
    for place in items:
        # step here, line 80
        here: Line = (
            arrived[place["value"]["sku"]]
            if map_contains(arrived, place["value"]["sku"])
            else Line(sku=place["value"]["sku"], qty=0, price=place["value"]["price"])
        )

        # step counted, line 83
        counted_ = value_min(here["qty"], place["value"]["qty"])

        # step status, line 86
        status: Literal["complete", "short", "missing"]
        if here == place["value"]:
            status = "complete"
        else:
            status = (
                "missing"
                if counted_ == 0 and place["value"]["qty"] > 0
                else "short"
                if counted_ < place["value"]["qty"]
                else "complete"
            )

        # step amount, line 92
        amount = unsigned_zero(counted_ * place["value"]["price"])
        keep(
            collected,
            Billed(
                position=checked(place["index"] + 1),
                sku=place["value"]["sku"],
                qty=counted_,
                net=amount,
                status=status,
            ),
        )
        net = net + amount
    billed = Billed2(net=net, collected=collected)

    # step rate, line 104
    if vat == "standard":
        rate = D_0_19
    else:
        rate = D_0_07 if vat == "reduced" else D_0

    # step lines, line 114
    lines: list[Billed] = billed["collected"]

    # step net, line 115
    net = billed["net"]

    # step tax, line 116
    tax = decimal_round(unsigned_zero(net * rate), 2, "half_up")

    # step gross, line 117
    gross = net + tax

    # step quantities, line 118
    quantities = map_of((line["sku"], line["qty"]) for line in lines)

    # step greeting, line 120
    if text_trim(customer) != "":
        greeting = text_concat(text_concat("Dear ", text_trim(customer)), ",")
    else:
        # step nobody, line 126
        nobody = "Dear customer"
        greeting = text_concat(nobody, ",")

    # step letter, line 129
    letter = text_join(
        [
            greeting,
            " your ",
            integer_text(len(lines)),
            " lines come to ",
            decimal_text(gross),
            " with ",
            decimal_text(tax),
            " tax (",
            enum_text(vat),
            ").",
        ],
        "",
    )

    # output is_exact, line 140
    is_exact = array_equal(ordered, delivered)

    # output is_repeat, line 141
    is_repeat = previous is not None and map_equal(previous, quantities)

    # output unasked, line 142
    unasked: frozenset[str] = set_difference(
        array_to_set(map_keys(arrived)), array_to_set(map_keys(quantities))
    )

    # output ends_alike, line 143
    ends_alike = array_first([line["sku"] for line in array_reverse(ordered)]) == last_sku

    # postcondition, line 52: gross == net + tax
    if gross != net + tax:
        raise ContractBroken("postcondition", 0, {"gross": gross, "net": net, "tax": tax})

    # postcondition, line 53: length(lines) == length(ordered)
    if len(lines) != len(ordered):
        raise ContractBroken("postcondition", 1, {"lines": lines, "ordered": ordered})

    # postcondition, line 54: is_exact => FORALL line IN lines SATISFIES line.status == complete
    if not (not is_exact or all(line["status"] == "complete" for line in lines)):
        raise ContractBroken("postcondition", 2, {"is_exact": is_exact, "lines": lines})

    # postcondition, line 55: FORALL pair IN zip(ordered, lines) SATISFIES pair.first.sku ==
    #   pair.second.sku AND pair.second.qty <= pair.first.qty
    for pair in array_zip(ordered, lines):
        if not (
            pair["first"]["sku"] == pair["second"]["sku"]
            and pair["second"]["qty"] <= pair["first"]["qty"]
        ):
            raise ContractBroken("postcondition", 3, {"ordered": ordered, "lines": lines})

    return {
        "lines": lines,
        "net": net,
        "tax": tax,
        "gross": gross,
        "letter": letter,
        "is_exact": is_exact,
        "is_repeat": is_repeat,
        "unasked": unasked,
        "ends_alike": ends_alike,
    }


INPUTS: Final = Inputs(
    {
        "ordered": "array<{sku: string, qty: integer, price: decimal}>",
        "delivered": "array<{sku: string, qty: integer, price: decimal}>",
        "vat": "enum[standard, reduced, none]",
        "customer": "string",
        "previous": "optional<map<string, integer>>",
        "last_sku": "optional<string>",
    },
    {"vat": "standard", "customer": ""},
)
RUN: Final = undecorated(invoice_lines_v1)


def read_line(given: Any) -> Line:
    """Read a plain Line, field by field."""
    if type(given) is not dict:
        raise NotPlain
    for name in given:
        if type(name) is not str:
            raise NotPlain
    if len(given) != 3:
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
    return {"sku": sku, "qty": qty, "price": price + D_0}


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """Run the node on a caller's own objects; each is checked and converted first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != (
            2
            + ("vat" in inputs)
            + ("customer" in inputs)
            + ("previous" in inputs)
            + ("last_sku" in inputs)
        ):
            raise NotPlain
        ordered = inputs["ordered"]
        if type(ordered) is not list or len(ordered) > MAX_ENTRIES:
            raise NotPlain
        ordered = [read_line(item) for item in ordered]
        delivered = inputs["delivered"]
        if type(delivered) is not list or len(delivered) > MAX_ENTRIES:
            raise NotPlain
        delivered = [read_line(item) for item in delivered]
        vat: Any = get_entry(inputs, "vat", "standard")
        if type(vat) is not str or vat not in {"standard", "reduced", "none"}:
            raise NotPlain
        customer = get_entry(inputs, "customer", "")
        if (
            type(customer) is not str
            or not (is_ascii(customer) or is_text(customer))
            or len(customer) > MAX_TEXT
        ):
            raise NotPlain
        previous = get_entry(inputs, "previous")
        previous = None if previous is None else read_value("map<string, integer>", previous)
        last_sku = get_entry(inputs, "last_sku")
        if last_sku is not None and (
            type(last_sku) is not str
            or not (is_ascii(last_sku) or is_text(last_sku))
            or len(last_sku) > MAX_TEXT
        ):
            raise NotPlain
    except NOT_PLAIN:
        ordered, delivered, vat, customer, previous, last_sku = read_inputs(INPUTS, inputs)
    return new_objects(RUN(ordered, delivered, vat, customer, previous, last_sku))


SOURCE: Final = Source(
    "nodes/orders/invoice_lines_v1.vsp",
    lines={
        111: 6, 115: 6, 119: 12, 123: 12, 135: 6, 139: 6, 143: 12, 147: 12, 151: 25, 155: 47,
        165: 48, 169: 49, 174: 50, 177: 60, 181: 64, 183: 64, 190: 68, 196: 72, 199: 72, 208: 82,
        230: 94, 231: 96, 234: 96, 241: 102, 257: 116, 260: 117, 263: 118, 267: 123, 271: 127,
        274: 131, 305: 52, 306: 52, 310: 53, 314: 54, 318: 55, 323: 55,
    },
    clauses={
        "constraint": [
            "qty >= 0",
            "qty <= 10000",
            "price >= 0",
            "length(sku) > 0",
            "qty >= 0",
            "qty <= 10000",
            "price >= 0",
            "length(sku) > 0",
            "length(customer) <= 80",
        ],
        "precondition": [
            "length(ordered) > 0",
            "to_set([line.sku FOR line IN ordered]) == to_set([line.sku FOR line IN distinct_by(line.sku FOR line IN ordered)])",
            "length(distinct_by(line.sku FOR line IN ordered)) == length(ordered)",
            "length(distinct_by(line.sku FOR line IN delivered)) == length(delivered)",
        ],
        "postcondition": [
            "gross == net + tax",
            "length(lines) == length(ordered)",
            "is_exact => FORALL line IN lines SATISFIES line.status == complete",
            "FORALL pair IN zip(ordered, lines) SATISFIES pair.first.sku == pair.second.sku AND pair.second.qty <= pair.first.qty",
        ],
    },
)  # fmt: skip
