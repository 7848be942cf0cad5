# AUTO-GENERATED - DO NOT EDIT
# token_parts_v1, from nodes/security/token_parts_v1.vsp
# semantic hash 7c6d786a3f5beb4cdaa165be95c90b724409f54e85873f2d7ef9d144b9b3a1a5
"""Take a JSON Web Token apart, without trusting it, and say who it names and when it ends."""

from datetime import datetime
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import at as array_at
from vesper.kernels.bytes import parse_base64 as bytes_parse_base64, parse_utf8 as bytes_parse_utf8
from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.integer import mod as integer_mod, rem as integer_rem
from vesper.kernels.json import (
    cast as json_cast,
    field as json_field,
    from_value as json_from_value,
    get as json_get,
    has as json_has,
    kind as json_kind,
    parse as json_parse,
)
from vesper.kernels.raised import ContractBroken
from vesper.kernels.regex import matches as regex_matches
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
from vesper.kernels.set import contains as set_contains
from vesper.kernels.text import (
    concat as text_concat,
    repeat as text_repeat,
    replace as text_replace,
    split as text_split,
)
from vesper.kernels.timestamp import from_epoch_seconds as timestamp_from_epoch_seconds


class Claims(TypedDict):
    sub: str
    exp: int
    name: str | None
    scope: list[str] | None


class Success(TypedDict):
    algorithm: str
    claims: Claims
    expires: datetime
    is_expired: bool
    is_usable: bool
    can_write: bool
    unknown: bool
    signature_length: int
    claim_kind: Literal["null", "boolean", "number", "string", "array", "object"]


REFUSED: Final[frozenset[str]] = frozenset({"NONE", "none"})


@exact_decimals
def token_parts_v1(token: str, at: datetime) -> Success:
    """Take a JSON Web Token apart, without trusting it, and say who it names and when it ends."""

    # constraint, line 14: matches(token, "^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$")
    if not regex_matches(token, "^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]*$"):
        raise ContractBroken("constraint", 0, {"token": token})

    # constraint, line 14: length(token) <= 8000
    if not len(token) <= 8000:
        raise ContractBroken("constraint", 1, {"token": token})

    # precondition, line 34: FORALL part IN split(token, '.') SATISFIES rem(length(part), 4) != 1
    for part in text_split(token, "."):
        if integer_rem(len(part), 4) == 1:
            raise ContractBroken("precondition", 0, {"token": token})

    # step parts, line 44
    parts = [
        text_replace(text_replace(part, "-", "+"), "_", "/") for part in text_split(token, ".")
    ]

    # step padded, line 45
    padded = [text_concat(part, text_repeat("=", integer_mod(-len(part), 4))) for part in parts]

    # step header, line 46
    header = json_parse(bytes_parse_utf8(bytes_parse_base64(array_at(padded, 0))))

    # step payload, line 47
    payload = json_parse(bytes_parse_utf8(bytes_parse_base64(array_at(padded, 1))))

    # step algorithm, line 48
    algorithm = json_cast(json_field(header, "alg"), "string")

    # step claims, line 49
    claims: Claims = json_cast(
        payload,
        "{sub: string, exp: integer, name: optional<string>, scope: optional<array<string>>}",
    )

    # step expires, line 50
    expires = timestamp_from_epoch_seconds(claims["exp"])

    # step scopes, line 51
    scopes = frozenset([] if claims["scope"] is None else claims["scope"])

    # step known_type, line 52
    value = json_get(header, "/typ")
    known_type = json_parse('"JWT"') if value is None else value

    # output is_expired, line 59
    is_expired = expires <= at

    # output is_usable, line 60
    is_usable = expires > at and algorithm not in REFUSED and len(array_at(padded, 2)) > 0

    # output can_write, line 61
    can_write = set_contains(scopes, "write")

    # output unknown, line 62
    unknown = json_has(header, "/crit") or known_type != json_from_value("JWT", "string")

    # output signature_length, line 63
    signature_length = len(bytes_parse_base64(array_at(padded, 2)))

    # output claim_kind, line 64
    claim_kind: Literal["null", "boolean", "number", "string", "array", "object"] = json_kind(
        payload
    )

    # postcondition, line 36: is_usable => algorithm NOT IN refused AND expires > at
    if not (not is_usable or (algorithm not in REFUSED and expires > at)):
        raise ContractBroken(
            "postcondition",
            0,
            {"is_usable": is_usable, "algorithm": algorithm, "expires": expires, "at": at},
        )

    # postcondition, line 37: is_usable => NOT is_expired
    if not (not is_usable or not is_expired):
        raise ContractBroken("postcondition", 1, {"is_usable": is_usable, "is_expired": is_expired})

    # postcondition, line 38: claim_kind == object
    if claim_kind != "object":
        raise ContractBroken("postcondition", 2, {"claim_kind": claim_kind})

    return {
        "algorithm": algorithm,
        "claims": claims,
        "expires": expires,
        "is_expired": is_expired,
        "is_usable": is_usable,
        "can_write": can_write,
        "unknown": unknown,
        "signature_length": signature_length,
        "claim_kind": claim_kind,
    }


INPUTS: Final = Inputs({"token": "string", "at": "timestamp"}, {})
RUN: Final = undecorated(token_parts_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 2:
            raise NotPlain
        token = inputs["token"]
        if (
            type(token) is not str
            or not (is_ascii(token) or is_text(token))
            or len(token) > MAX_TEXT
        ):
            raise NotPlain
        at = inputs["at"]
        at = read_value("timestamp", at)
    except NOT_PLAIN:
        token, at = read_inputs(INPUTS, inputs)
    return new_objects(RUN(token, at))


SOURCE: Final = Source(
    "nodes/security/token_parts_v1.vsp",
    lines={
        75: 14, 79: 14, 82: 34, 83: 34, 84: 34, 88: 44, 92: 45, 95: 46, 98: 47, 101: 48, 104: 49,
        110: 50, 116: 52, 117: 52, 123: 60, 129: 62, 132: 63, 141: 36, 149: 37, 153: 38,
    },
    clauses={
        "constraint": [
            'matches(token, "^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]*$")',
            "length(token) <= 8000",
        ],
        "precondition": [
            "FORALL part IN split(token, '.') SATISFIES rem(length(part), 4) != 1",
        ],
        "postcondition": [
            "is_usable => algorithm NOT IN refused AND expires > at",
            "is_usable => NOT is_expired",
            "claim_kind == object",
        ],
    },
)  # fmt: skip
