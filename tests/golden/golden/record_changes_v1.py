# AUTO-GENERATED - DO NOT EDIT
# record_changes_v1, from nodes/data/record_changes_v1.vsp
# semantic hash ba39ef9632cefb816052a71877409182866cc5c4650646d5da8dc85138274e9a
"""List what changed between two versions of a customer, and whether somebody must look at it."""

from datetime import date
from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import sort as array_sort
from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.integer import text as integer_text
from vesper.kernels.json import Json
from vesper.kernels.map import entries_of, get as map_get, map_of
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    MAX_ENTRIES,
    MAX_TEXT,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_ascii,
    is_text,
    new_objects,
    read_inputs,
    read_member,
    read_text,
    read_value,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.set import difference as set_difference, is_subset as set_is_subset
from vesper.kernels.text import join as text_join

D_0: Final = Decimal("0")


class ChecksItem(TypedDict):
    name: str
    differs: bool


class Address(TypedDict):
    street: str
    city: str


class Customer(TypedDict):
    name: str
    address: Address
    billing: Address | None
    phones: list[str]
    tags: frozenset[str]
    limits: dict[str, Decimal]
    note: str | None
    birthday: date | None
    is_company: bool
    level: Literal["basic", "plus", "pro"]
    extra: Json


class Success(TypedDict):
    changed: list[str]
    is_same: bool
    needs_look: bool
    raised: dict[str, Decimal]
    dropped_tags: frozenset[str]
    moved_to: str | None
    summary: str


@exact_decimals
def record_changes_v1(
    before: Customer,
    after: Customer,
    quiet: frozenset[str] = frozenset({"note", "tags"}),
) -> Success:
    """List what changed between two versions of a customer, and whether somebody must look at
    it."""

    # step checks, line 46
    checks: list[ChecksItem] = [
        ChecksItem(name="name", differs=before["name"] != after["name"]),
        ChecksItem(name="address", differs=before["address"] != after["address"]),
        ChecksItem(name="billing", differs=before["billing"] != after["billing"]),
        ChecksItem(name="phones", differs=before["phones"] != after["phones"]),
        ChecksItem(name="tags", differs=before["tags"] != after["tags"]),
        ChecksItem(name="limits", differs=before["limits"] != after["limits"]),
        ChecksItem(name="note", differs=before["note"] != after["note"]),
        ChecksItem(name="birthday", differs=before["birthday"] != after["birthday"]),
        ChecksItem(name="is_company", differs=before["is_company"] != after["is_company"]),
        ChecksItem(name="level", differs=before["level"] != after["level"]),
        ChecksItem(name="extra", differs=before["extra"] != after["extra"]),
    ]

    # step changed, line 58
    changed = [check["name"] for check in checks if check["differs"]]

    # step raised, line 59
    raised = map_of(
        (
            name,
            limit
            - [D_0 if value_ is None else value_ for value_ in [map_get(before["limits"], name)]][
                0
            ],
        )
        for name, limit in entries_of(after["limits"])
        if limit
        > [D_0 if value is None else value for value in [map_get(before["limits"], name)]][0]
    )

    # step loud, line 60
    loud = [name for name in changed if name not in quiet]

    # step same_phones, line 62
    same_phones = array_sort(before["phones"], "ascending") == array_sort(
        after["phones"], "ascending"
    )

    # step needs_look, line 63
    needs_look = len(loud) > 0 and not (loud == ["phones"] and same_phones)

    # step moved_to, line 65
    moved_to: str | None
    if before["address"]["city"] != after["address"]["city"]:
        moved_to = after["address"]["city"]
    else:
        moved_to = None

    # step summary, line 70
    summary = text_join(
        [
            after["name"],
            ": ",
            integer_text(len(changed)),
            " changed",
            ", look at it" if needs_look else "",
        ],
        "",
    )

    # output is_same, line 77
    is_same = before == after

    # output dropped_tags, line 80
    dropped_tags: frozenset[str] = set_difference(before["tags"], after["tags"])

    # postcondition, line 39: is_same == (length(changed) == 0)
    if is_same != (len(changed) == 0):
        raise ContractBroken("postcondition", 0, {"is_same": is_same, "changed": changed})

    # postcondition, line 40: needs_look => before != after
    if not (not needs_look or before != after):
        raise ContractBroken(
            "postcondition", 1, {"needs_look": needs_look, "before": before, "after": after}
        )

    # postcondition, line 41: is_subset(dropped_tags, input.before.tags)
    if not set_is_subset(dropped_tags, before["tags"]):
        raise ContractBroken("postcondition", 2, {"dropped_tags": dropped_tags, "before": before})

    return {
        "changed": changed,
        "is_same": is_same,
        "needs_look": needs_look,
        "raised": raised,
        "dropped_tags": dropped_tags,
        "moved_to": moved_to,
        "summary": summary,
    }


INPUTS: Final = Inputs(
    {
        "before": "{name: string, address: {street: string, city: string}, billing: optional<{street: string, city: string}>, phones: array<string>, tags: set<string>, limits: map<string, decimal>, note: optional<string>, birthday: optional<date>, is_company: boolean, level: enum[basic, plus, pro], extra: json}",
        "after": "{name: string, address: {street: string, city: string}, billing: optional<{street: string, city: string}>, phones: array<string>, tags: set<string>, limits: map<string, decimal>, note: optional<string>, birthday: optional<date>, is_company: boolean, level: enum[basic, plus, pro], extra: json}",
        "quiet": "set<string>",
    },
    {"quiet": frozenset({"note", "tags"})},
)
RUN: Final = undecorated(record_changes_v1)


def read_address(given: Any) -> Address:
    """What is a Address already, field by field."""
    if type(given) is not dict:
        raise NotPlain
    for name in given:
        if type(name) is not str:
            raise NotPlain
    if len(given) != 2:
        raise NotPlain
    street = given["street"]
    if (
        type(street) is not str
        or not (is_ascii(street) or is_text(street))
        or len(street) > MAX_TEXT
    ):
        raise NotPlain
    city = given["city"]
    if type(city) is not str or not (is_ascii(city) or is_text(city)) or len(city) > MAX_TEXT:
        raise NotPlain
    return {"street": street, "city": city}


def read_customer(given: Any) -> Customer:
    """What is a Customer already, field by field."""
    if type(given) is not dict:
        raise NotPlain
    for name in given:
        if type(name) is not str:
            raise NotPlain
    if len(given) != 8 + ("billing" in given) + ("note" in given) + ("birthday" in given):
        raise NotPlain
    name_ = given["name"]
    if type(name_) is not str or not (is_ascii(name_) or is_text(name_)) or len(name_) > MAX_TEXT:
        raise NotPlain
    address = given["address"]
    billing = given["billing"] if "billing" in given else None
    phones = given["phones"]
    if type(phones) is not list or len(phones) > MAX_ENTRIES:
        raise NotPlain
    tags = given["tags"]
    limits = given["limits"]
    note = given["note"] if "note" in given else None
    if note is not None:
        if type(note) is not str or not (is_ascii(note) or is_text(note)) or len(note) > MAX_TEXT:
            raise NotPlain
    birthday = given["birthday"] if "birthday" in given else None
    is_company = given["is_company"]
    if type(is_company) is not bool:
        raise NotPlain
    level = read_member(given["level"], ("basic", "plus", "pro"))
    extra = given["extra"]
    return {
        "name": name_,
        "address": read_address(address),
        "billing": None if billing is None else read_address(billing),
        "phones": [read_text(item) for item in phones],
        "tags": read_value("set<string>", tags),
        "limits": read_value("map<string, decimal>", limits),
        "note": note,
        "birthday": None if birthday is None else read_value("date", birthday),
        "is_company": is_company,
        "level": level,
        "extra": read_value("json", extra),
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
        if len(inputs) != 2 + ("quiet" in inputs):
            raise NotPlain
        before = inputs["before"]
        before = read_customer(before)
        after = inputs["after"]
        after = read_customer(after)
        quiet = inputs["quiet"] if "quiet" in inputs else frozenset({"note", "tags"})
        quiet = read_value("set<string>", quiet)
    except NOT_PLAIN:
        before, after, quiet = read_inputs(INPUTS, inputs)
    return new_objects(RUN(before, after, quiet))


SOURCE: Final = Source(
    "nodes/data/record_changes_v1.vsp",
    lines={
        100: 59, 103: 59, 132: 72, 151: 39, 155: 40, 161: 41,
    },
    clauses={
        "postcondition": [
            "is_same == (length(changed) == 0)",
            "needs_look => before != after",
            "is_subset(dropped_tags, input.before.tags)",
        ],
    },
)  # fmt: skip
