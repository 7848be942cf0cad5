# AUTO-GENERATED - DO NOT EDIT
# api_key_issue_v1, from nodes/access/api_key_issue_v1.vsp
# semantic hash 2643143c9808961fffb3d577ad793cee57c28c0cc6dc7c3728a87216481a70c6
"""Issue an API key - shown once, kept as a hash, registered with the gateway."""

from datetime import datetime
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.bytes import hex as bytes_hex
from vesper.kernels.bytes import sha256 as bytes_sha256
from vesper.kernels.bytes import utf8 as bytes_utf8
from vesper.kernels.integer import text as integer_text
from vesper.kernels.json import from_value as json_from_value
from vesper.kernels.raised import ContractBroken, DeclaredError
from vesper.kernels.runtime.entry import Inputs, read_inputs
from vesper.kernels.runtime.flow import (
    FAILURES,
    Asking,
    Request,
    code_of,
    exact_steps,
    http_class,
    one_of,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.set import to_array as set_to_array
from vesper.kernels.text import concat as text_concat
from vesper.kernels.text import join as text_join
from vesper.kernels.text import percent_encode as text_percent_encode
from vesper.kernels.text import replace as text_replace


class Success(TypedDict):
    key_id: str
    key: str
    check_digit: int
    issued_at: datetime


MOST: Final[int] = 10


@exact_steps
def api_key_issue_v1(
    owner: str,
    scopes: frozenset[Literal["read", "write", "admin"]],
    label: str = "",
    *,
    now: datetime,
) -> Asking[Success]:
    """Issue an API key - shown once, kept as a hash, registered with the gateway."""

    # constraint, line 8: length(owner) > 0
    if not len(owner) > 0:
        raise ContractBroken("constraint", 0, {"owner": owner})

    # constraint, line 8: length(owner) <= 80
    if not len(owner) <= 80:
        raise ContractBroken("constraint", 1, {"owner": owner})

    try:
        if not len(scopes) > 0:
            raise DeclaredError(
                {"error_code": "no_scopes", "message": "a key for nothing is no key"}
            )

        # validation, line 35: NOT (admin IN scopes AND label == '')
        if "admin" in scopes and label == "":
            raise ContractBroken("validation", 0, {"scopes": scopes, "label": label})

        # step existing, line 37
        existing: int = yield Request(
            "existing",
            "database_query",
            "read",
            {
                "database": "accounts",
                "sql": (
                    "SELECT COUNT(*) AS keys FROM api_keys WHERE owner = :owner AND revoked = FALSE"
                ),
                "rows": "one",
            },
            {"bind": {"owner": owner}},
        )

        # raise_2, line 44
        if existing >= MOST:
            message = text_join(
                [
                    owner,
                    " has ",
                    integer_text(existing),
                    " keys; ",
                    integer_text(MOST),
                    " is the most",
                ],
                "",
            )

            raise DeclaredError({"error_code": "too_many_keys", "message": message})

        # step key_id, line 48
        key_id: str = yield Request("key_id", "uuid_new", "read", {}, {})

        # step secret_part, line 49
        secret_part: str = yield Request("secret_part", "uuid_new", "read", {}, {})

        # step check_digit, line 50
        check_digit: int = yield Request(
            "check_digit", "random_integer", "read", {}, {"min": 0, "max": 9}
        )

        # step issued_at, line 51
        issued_at: datetime = yield Request("issued_at", "clock_now", "read", {}, {})

        # step gateway_token, line 52
        gateway_token: str = yield Request(
            "gateway_token", "secret_read", "read", {"name": "gateway_token"}, {}
        )

        # step key, line 54
        key = text_join(["vk_", text_replace(secret_part, "-", ""), integer_text(check_digit)], "")

        # step hashed, line 58
        hashed = bytes_hex(bytes_sha256(bytes_utf8(key)))

        # step keep, line 62
        yield Request(
            "keep",
            "database_write",
            "txn",
            {
                "database": "accounts",
                "sql": (
                    "INSERT INTO api_keys (key_id, owner, hash, label, issued_at, revoked) "
                    "VALUES (:key_id, :owner, :hash, :label, :issued_at, :revoked)"
                ),
            },
            {
                "bind": {
                    "key_id": key_id,
                    "owner": owner,
                    "hash": hashed,
                    "label": label,
                    "issued_at": issued_at,
                    "revoked": False,
                }
            },
        )

        # step register, line 69
        try:
            # timeout 3s
            yield Request(
                "register",
                "http_request",
                "keyed",
                {"provider": "gateway", "method": "PUT"},
                key=key_id,
                arguments={
                    "endpoint": text_concat("/keys/", text_percent_encode(key_id)),
                    "headers": {"authorization": text_concat("Bearer ", gateway_token)},
                    "body": json_from_value(
                        {
                            "hash": hashed,
                            "scopes": set_to_array(scopes, ("read", "write", "admin")),
                            "owner": owner,
                        },
                        "{hash: string, scopes: array<enum[read, write, admin]>, owner: string}",
                    ),
                },
            )
        except FAILURES as failure:
            if not (
                code_of(failure) in ("timeout", "unavailable")
                or http_class(code_of(failure)) == "http_4xx"
            ):
                raise
            # step forget, line 83
            yield Request(
                "forget",
                "database_write",
                "txn",
                {"database": "accounts", "sql": "DELETE FROM api_keys WHERE key_id = :key_id"},
                {"bind": {"key_id": key_id}},
            )
            raise DeclaredError(
                {
                    "error_code": "gateway_refused",
                    "message": "the gateway does not take the key; nothing was issued",
                }
            ) from failure

        # step forget_list, line 90
        try:
            yield Request(
                "forget_list", "cache_delete", "read", {"cache": "key_lists"}, {"key": owner}
            )
        except FAILURES:
            _forget_list = False

        # postcondition, line 27: length(key) > 20
        if not len(key) > 20:
            raise ContractBroken("postcondition", 0, {"key": key})

        # postcondition, line 28: check_digit >= 0 AND check_digit <= 9
        if not (check_digit >= 0 and check_digit <= 9):
            raise ContractBroken("postcondition", 1, {"check_digit": check_digit})

        return {"key_id": key_id, "key": key, "check_digit": check_digit, "issued_at": issued_at}
    except FAILURES as failure:
        code: Literal["not_found"] | None = one_of(code_of(failure), ("not_found",))
        if code is None:
            raise
        raise DeclaredError({"error_code": code, "message": code}) from failure


INPUTS: Final = Inputs(
    {"owner": "string", "scopes": "set<enum[read, write, admin]>", "label": "string"}, {"label": ""}
)


def call(inputs: dict[str, Any], *, now: datetime) -> Asking[Success]:
    """Run the node on a caller's own objects; each is checked and converted first."""
    owner, scopes, label = read_inputs(INPUTS, inputs)
    return api_key_issue_v1(owner, scopes, label, now=now)


SOURCE: Final = Source(
    "nodes/access/api_key_issue_v1.vsp",
    lines={
        55: 8, 59: 8, 63: 34, 69: 35, 72: 37, 88: 46, 100: 46, 103: 48, 106: 49, 109: 50, 114: 51,
        117: 52, 122: 56, 125: 60, 128: 62, 154: 69, 161: 73, 162: 74, 163: 75, 180: 83, 187: 88,
        196: 90, 204: 27, 208: 28,
    },
    clauses={
        "constraint": [
            "length(owner) > 0",
            "length(owner) <= 80",
        ],
        "validation": [
            "NOT (admin IN scopes AND label == '')",
        ],
        "postcondition": [
            "length(key) > 20",
            "check_digit >= 0 AND check_digit <= 9",
        ],
    },
)  # fmt: skip
