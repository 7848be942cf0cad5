# AUTO-GENERATED - DO NOT EDIT
# basket_rules_v1, from nodes/shop/basket_rules_v1.vsp
# semantic hash d271e04281d856bfc49bc3026f923a5adfdb0e8d7b3795541320bf3ad17738db
"""Apply a shop's rules to a basket, what may not be sold, what is given away and what belongs
together."""

from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import (
    append as array_append,
    chunks as array_chunks,
    contains as array_contains,
    first as array_first,
    flatten as array_flatten,
    index_of as array_index_of,
    max as array_max,
    replace_at as array_replace_at,
    reverse as array_reverse,
    sort as array_sort,
)
from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.integer import checked, sum as integer_sum, text as integer_text
from vesper.kernels.map import (
    contains as map_contains,
    entries_of,
    get as map_get,
    keys as map_keys,
    map_of,
    merge as map_merge,
    put as map_put,
    remove as map_remove,
    values as map_values,
)
from vesper.kernels.optional import require as optional_require
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
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
    read_member,
    read_value,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.set import (
    contains as set_contains,
    difference as set_difference,
    intersection as set_intersection,
    is_disjoint as set_is_disjoint,
    is_subset as set_is_subset,
    put as set_put,
    remove as set_remove,
    to_array as set_to_array,
)
from vesper.kernels.text import concat as text_concat, join as text_join


class Change(TypedDict):
    action: Literal["add", "take_out", "replace_with"]
    sku: str
    qty: int


class Success(TypedDict):
    basket: dict[str, int]
    gifts: dict[str, int]
    refused: frozenset[str]
    missing: frozenset[str]
    rights: frozenset[Literal["adult", "member", "staff"]]
    coupons: list[str]
    pieces: int
    largest: str | None
    is_empty: bool
    pages: list[list[str]]
    log: list[str]


SETS_OF: Final[dict[str, frozenset[str]]] = {
    "camera": frozenset({"battery", "strap"}),
    "tent": frozenset({"pegs"}),
}
SPENT: Final[frozenset[str]] = frozenset({"WELCOME"})


@exact_decimals
def basket_rules_v1(
    *,
    basket: dict[str, int],
    change: Change | None = None,
    gift_for: dict[str, str],
    banned: frozenset[str],
    customer: frozenset[Literal["adult", "member", "staff"]],
    coupons: frozenset[str] = frozenset(),
    voucher: str | None = None,
) -> Success:
    """Apply a shop's rules to a basket, what may not be sold, what is given away and what belongs
    together."""

    # constraint, line 11: qty >= 1
    if not (change is None or change["qty"] >= 1):
        raise ContractBroken("constraint", 0, {"change": change})

    # constraint, line 11: qty <= 99
    if not (change is None or change["qty"] <= 99):
        raise ContractBroken("constraint", 1, {"change": change})

    # constraint, line 11: length(sku) > 0
    if not (change is None or len(change["sku"]) > 0):
        raise ContractBroken("constraint", 2, {"change": change})

    # precondition, line 42: FORALL sku, qty IN basket SATISFIES qty > 0
    for sku, qty in entries_of(basket):
        if not qty > 0:
            raise ContractBroken("precondition", 0, {"basket": basket})

    # precondition, line 43: length(basket) <= 200
    if not len(basket) <= 200:
        raise ContractBroken("precondition", 1, {"basket": basket})

    # step asked, line 54
    if change is None:
        asked = basket
    elif change["action"] == "add":
        asked = map_put(
            basket,
            change["sku"],
            checked(
                [0 if value is None else value for value in [map_get(basket, change["sku"])]][0]
                + change["qty"]
            ),
        )
    elif change["action"] == "take_out":
        asked = map_remove(basket, change["sku"])
    else:
        asked = map_put(basket, change["sku"], change["qty"])

    # step refused, line 59
    refused = set_intersection(frozenset(map_keys(asked)), banned)

    # step allowed, line 60
    allowed = map_of((sku, qty) for sku, qty in entries_of(asked) if not set_contains(refused, sku))

    # step given, line 61
    given = frozenset(
        gift
        for sku, gift in entries_of(gift_for)
        if map_contains(allowed, sku) and gift not in banned
    )

    # step gifts, line 62
    gifts = map_of((gift, 1) for gift in sorted(given))

    # step bought, line 64
    bought = map_of(
        (sku, checked(qty + (1 if sku in gifts else 0))) for sku, qty in entries_of(allowed)
    )

    # step new_basket, line 65
    new_basket = map_merge(gifts, bought)

    # step wanted, line 66
    wanted = frozenset(
        array_flatten(
            [
                set_to_array(SETS_OF[sku])
                for sku in map_keys(SETS_OF)
                if map_contains(new_basket, sku)
            ]
        )
    )

    # step missing, line 67
    missing = set_difference(wanted, frozenset(map_keys(new_basket)))

    # step rights, line 68
    rights: frozenset[Literal["adult", "member", "staff"]] = (
        set_put(customer, "member") if set_contains(customer, "staff") else customer
    )

    # step usable, line 69
    usable = set_remove(set_difference(coupons, SPENT), "")

    # step codes, line 70
    codes = array_sort(
        set_to_array(usable if voucher is None else set_put(usable, voucher)), "descending"
    )

    # step pieces, line 71
    pieces = integer_sum(map_values(new_basket))

    # step most, line 72
    most = [sku for sku, qty in entries_of(new_basket) if qty == array_max(map_values(new_basket))]

    # step lines, line 73
    lines = [
        text_concat(text_concat(integer_text(qty), " × "), sku)
        for sku, qty in entries_of(new_basket)
    ]

    # output coupons, line 82
    coupons_: list[str] = (
        array_replace_at(codes, optional_require(array_index_of(codes, "STAFF")), "(staff only)")
        if len(codes) > 0 and array_contains(codes, "STAFF") and "staff" not in customer
        else codes
    )

    # output largest, line 84
    largest_: str | None = array_first(most)

    # output is_empty, line 85
    is_empty = len(new_basket) == 0

    # output pages, line 86
    pages: list[list[str]] = array_chunks(lines, 3)

    # output log, line 87
    log: list[str] = array_append(
        array_reverse(lines),
        text_concat("missing: ", text_join(set_to_array(missing), ", "))
        if len(missing) > 0
        else "complete",
    )

    # postcondition, line 45: is_disjoint(to_set(keys(output.basket)), banned)
    if not set_is_disjoint(frozenset(map_keys(new_basket)), banned):
        raise ContractBroken("postcondition", 0, {"basket": new_basket, "banned": banned})

    # postcondition, line 46: FORALL gift IN keys(gifts) SATISFIES contains(output.basket, gift)
    for gift in map_keys(gifts):
        if not map_contains(new_basket, gift):
            raise ContractBroken("postcondition", 1, {"gifts": gifts, "basket": new_basket})

    # postcondition, line 47: is_empty == (length(output.basket) == 0)
    if is_empty != (len(new_basket) == 0):
        raise ContractBroken("postcondition", 2, {"is_empty": is_empty, "basket": new_basket})

    # postcondition, line 48: NOT is_empty => largest IS NOT NULL
    if not (is_empty or largest_ is not None):
        raise ContractBroken("postcondition", 3, {"is_empty": is_empty, "largest": largest_})

    # postcondition, line 49: is_subset(customer, rights)
    if not set_is_subset(customer, rights):
        raise ContractBroken("postcondition", 4, {"customer": customer, "rights": rights})

    return {
        "basket": new_basket,
        "gifts": gifts,
        "refused": refused,
        "missing": missing,
        "rights": rights,
        "coupons": coupons_,
        "pieces": pieces,
        "largest": largest_,
        "is_empty": is_empty,
        "pages": pages,
        "log": log,
    }


INPUTS: Final = Inputs(
    {
        "basket": "map<string, integer>",
        "change": "optional<{action: enum[add, take_out, replace_with], sku: string, qty: integer}>",
        "gift_for": "map<string, string>",
        "banned": "set<string>",
        "customer": "set<enum[adult, member, staff]>",
        "coupons": "set<string>",
        "voucher": "optional<string>",
    },
    {"coupons": frozenset()},
)
RUN: Final = undecorated(basket_rules_v1)


def read_change(given: Any) -> Change:
    """What is a Change already, field by field."""
    if type(given) is not dict:
        raise NotPlain
    for name in given:
        if type(name) is not str:
            raise NotPlain
    if len(given) != 3:
        raise NotPlain
    action = read_member(given["action"], ("add", "take_out", "replace_with"))
    sku = given["sku"]
    if type(sku) is not str or not (is_ascii(sku) or is_text(sku)) or len(sku) > MAX_TEXT:
        raise NotPlain
    qty = given["qty"]
    if type(qty) is not int or qty < MIN_INTEGER or qty > MAX_INTEGER:
        raise NotPlain
    return {"action": action, "sku": sku, "qty": qty}


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 4 + ("change" in inputs) + ("coupons" in inputs) + ("voucher" in inputs):
            raise NotPlain
        basket = inputs["basket"]
        basket = read_value("map<string, integer>", basket)
        change = inputs["change"] if "change" in inputs else None
        change = None if change is None else read_change(change)
        gift_for = inputs["gift_for"]
        gift_for = read_value("map<string, string>", gift_for)
        banned = inputs["banned"]
        banned = read_value("set<string>", banned)
        customer = inputs["customer"]
        customer = read_value("set<enum[adult, member, staff]>", customer)
        coupons = inputs["coupons"] if "coupons" in inputs else frozenset()
        coupons = read_value("set<string>", coupons)
        voucher = inputs["voucher"] if "voucher" in inputs else None
        if voucher is not None:
            if (
                type(voucher) is not str
                or not (is_ascii(voucher) or is_text(voucher))
                or len(voucher) > MAX_TEXT
            ):
                raise NotPlain
    except NOT_PLAIN:
        basket, change, gift_for, banned, customer, coupons, voucher = read_inputs(INPUTS, inputs)
    return new_objects(
        RUN(
            basket=basket,
            change=change,
            gift_for=gift_for,
            banned=banned,
            customer=customer,
            coupons=coupons,
            voucher=voucher,
        )
    )


SOURCE: Final = Source(
    "nodes/shop/basket_rules_v1.vsp",
    lines={
        108: 11, 112: 11, 116: 11, 121: 42, 125: 43, 131: 56, 134: 56, 142: 58, 148: 60, 158: 62,
        161: 64, 162: 64, 166: 65, 170: 66, 172: 66, 184: 68, 192: 70, 196: 71, 199: 72, 203: 73,
        209: 82, 221: 86, 224: 87, 226: 87, 233: 45, 238: 46, 242: 47, 246: 48, 250: 49,
    },
    clauses={
        "constraint": [
            "qty >= 1",
            "qty <= 99",
            "length(sku) > 0",
        ],
        "precondition": [
            "FORALL sku, qty IN basket SATISFIES qty > 0",
            "length(basket) <= 200",
        ],
        "postcondition": [
            "is_disjoint(to_set(keys(output.basket)), banned)",
            "FORALL gift IN keys(gifts) SATISFIES contains(output.basket, gift)",
            "is_empty == (length(output.basket) == 0)",
            "NOT is_empty => largest IS NOT NULL",
            "is_subset(customer, rights)",
        ],
    },
)  # fmt: skip
