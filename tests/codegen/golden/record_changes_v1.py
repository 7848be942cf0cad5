# AUTO-GENERATED - DO NOT EDIT
# record_changes_v1, from nodes/data/record_changes_v1.vsp
# semantic hash ba39ef9632cefb816052a71877409182866cc5c4650646d5da8dc85138274e9a
"""List what changed between two versions of a customer, and whether somebody must look at it."""

from datetime import date
from decimal import Decimal
from typing import Final, Literal, TypedDict

from vesper.kernels.array import sort as array_sort
from vesper.kernels.decimal import exact_decimals
from vesper.kernels.integer import text as integer_text
from vesper.kernels.json import Json
from vesper.kernels.map import entries_of, get as map_get, map_of
from vesper.kernels.raised import ContractBroken
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
