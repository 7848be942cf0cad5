# AUTO-GENERATED - DO NOT EDIT
# json_address_v1, from nodes/data/json_address_v1.vsp
# semantic hash 2d77024bb3fed60577b59e88ba7e67a5d361e71874b875e5cf3946e4d76a3f8e
"""Read a postal address from whatever a partner's API sent, and write it in one canonical form."""

from datetime import date
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.bytes import hex as bytes_hex, sha256 as bytes_sha256, utf8 as bytes_utf8
from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.integer import text as integer_text
from vesper.kernels.json import (
    Json,
    cast as json_cast,
    field as json_field,
    from_value as json_from_value,
    get as json_get,
    has as json_has,
    item as json_item,
    json_literal,
    kind as json_kind,
    parse as json_parse,
    text as json_text,
)
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    MAX_TEXT,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_ascii,
    is_text,
    new_objects,
    read_inputs,
    read_value,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import pad_start as text_pad_start


class Address(TypedDict):
    street: str
    zip: str
    city: str
    country: str | None
    since: date | None


class Success(TypedDict):
    address: Address
    source: Literal["object", "list", "text"]
    canonical: str
    print: str
    is_same: bool
    tags: list[str]
    extra: Json | None


NO_TAGS: Final[Json] = json_literal("[]")


@exact_decimals
def json_address_v1(payload: Json, country: str = "DE") -> Success:
    """Read a postal address from whatever a partner's API sent, and write it in one canonical
    form."""

    # constraint, line 16: length(country) == 2
    if len(country) != 2:
        raise ContractBroken("constraint", 0, {"country": country})

    # precondition, line 33: kind(payload) == object OR kind(payload) == array OR kind(payload) ==
    #   string
    if not (
        json_kind(payload) == "object"
        or json_kind(payload) == "array"
        or json_kind(payload) == "string"
    ):
        raise ContractBroken("precondition", 0, {"payload": payload})

    # step source, line 40
    source: Literal["object", "list", "text"]
    if json_kind(payload) == "object":
        source = "object"
    elif json_kind(payload) == "array":
        source = "list"
    else:
        source = "text"

    # step read, line 50
    read = json_parse(json_cast(payload, "string")) if source == "text" else payload

    # step item, line 51
    item = json_item(read, 0) if json_kind(read) == "array" else read

    # step body, line 52
    value = json_get(item, "/data/address")
    body = (
        [item if value_ is None else value_ for value_ in [json_get(item, "/address")]][0]
        if value is None
        else value
    )

    # step abroad, line 53
    abroad = (
        json_cast(json_field(body, "country"), "optional<string>")
        if json_has(body, "/country")
        else country
    )

    # step address, line 54
    address = Address(
        street=json_cast(json_field(body, "street"), "string"),
        zip=text_pad_start(integer_text(json_cast(json_field(body, "zip"), "integer")), 5, "0")
        if json_kind(json_field(body, "zip")) == "number"
        else json_cast(json_field(body, "zip"), "string"),
        city=json_cast(json_field(json_field(body, "city"), "name"), "string")
        if json_has(body, "/city/name")
        else json_cast(json_field(body, "city"), "string"),
        country=abroad,
        since=json_cast(
            [
                json_parse("null") if value is None else value
                for value in [json_get(body, "/since")]
            ][0],
            "optional<date>",
        ),
    )

    # step form, line 60
    form = json_from_value(
        address,
        "{street: string, zip: string, city: string, country: optional<string>, since: optional<date>}",
    )

    # output canonical, line 66
    canonical = json_text(form)

    # output print, line 67
    print = bytes_hex(bytes_sha256(bytes_utf8(json_text(form))))

    # output is_same, line 68
    is_same = form == payload

    # output tags, line 69
    tags: list[str] = json_cast(
        [NO_TAGS if value is None else value for value in [json_get(body, "/tags")]][0],
        "array<string>",
    )

    # output extra, line 70
    extra: Json | None = json_get(item, "/meta")

    # postcondition, line 35: length(print) == 64
    if len(print) != 64:
        raise ContractBroken("postcondition", 0, {"print": print})

    # postcondition, line 36: parse_json(canonical) == to_json(address)
    if json_parse(canonical) != json_from_value(
        address,
        "{street: string, zip: string, city: string, country: optional<string>, since: optional<date>}",
    ):
        raise ContractBroken("postcondition", 1, {"canonical": canonical, "address": address})

    # postcondition, line 37: is_same => to_json(address) == payload
    if not (
        not is_same
        or json_from_value(
            address,
            "{street: string, zip: string, city: string, country: optional<string>, since: optional<date>}",
        )
        == payload
    ):
        raise ContractBroken(
            "postcondition", 2, {"is_same": is_same, "address": address, "payload": payload}
        )

    return {
        "address": address,
        "source": source,
        "canonical": canonical,
        "print": print,
        "is_same": is_same,
        "tags": tags,
        "extra": extra,
    }


INPUTS: Final = Inputs({"payload": "json", "country": "string"}, {"country": "DE"})
RUN: Final = undecorated(json_address_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 1 + ("country" in inputs):
            raise NotPlain
        payload = inputs["payload"]
        payload = read_value("json", payload)
        country = inputs["country"] if "country" in inputs else "DE"
        if (
            type(country) is not str
            or not (is_ascii(country) or is_text(country))
            or len(country) > MAX_TEXT
        ):
            raise NotPlain
    except NOT_PLAIN:
        payload, country = read_inputs(INPUTS, inputs)
    return new_objects(RUN(payload, country))


SOURCE: Final = Source(
    "nodes/data/json_address_v1.vsp",
    lines={
        70: 16, 79: 33, 91: 50, 94: 51, 97: 52, 99: 52, 106: 53, 107: 53, 113: 55, 114: 56, 115: 56,
        116: 56, 117: 57, 118: 57, 119: 57, 121: 59, 123: 59, 124: 59, 131: 60, 137: 66, 140: 67,
        146: 69, 147: 69, 152: 70, 156: 35, 159: 36, 163: 36, 168: 37, 174: 37,
    },
    clauses={
        "constraint": [
            "length(country) == 2",
        ],
        "precondition": [
            "kind(payload) == object OR kind(payload) == array OR kind(payload) == string",
        ],
        "postcondition": [
            "length(print) == 64",
            "parse_json(canonical) == to_json(address)",
            "is_same => to_json(address) == payload",
        ],
    },
)  # fmt: skip
