# AUTO-GENERATED - DO NOT EDIT
# webhook_signature_v1, from nodes/security/webhook_signature_v1.vsp
# semantic hash f63b43aa49ebceed6810122302f209a40bc41a10aac9c4a85be401160ce29623
"""Check the HMAC-SHA256 signature of a webhook and that it is neither old nor from the future."""

from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import at as array_at, range as array_range
from vesper.kernels.bytes import (
    at as bytes_at,
    base64 as bytes_base64,
    concat as bytes_concat,
    hex as bytes_hex,
    parse_base64 as bytes_parse_base64,
    parse_hex as bytes_parse_hex,
    sha256 as bytes_sha256,
    slice as bytes_slice,
    utf8 as bytes_utf8,
)
from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.duration import (
    abs as duration_abs,
    from_hours as duration_from_hours,
    from_seconds as duration_from_seconds,
)
from vesper.kernels.integer import (
    bit_xor as integer_bit_xor,
    checked,
    checked_sum,
    parse as integer_parse,
    shift_right as integer_shift_right,
)
from vesper.kernels.raised import ContractBroken
from vesper.kernels.regex import groups as regex_groups
from vesper.kernels.runtime.entry import (
    MAX_TEXT,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_ascii,
    is_text,
    read_inputs,
    read_value,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import (
    at as text_at,
    concat as text_concat,
    join as text_join,
    repeat as text_repeat,
)
from vesper.kernels.timestamp import from_epoch_seconds as timestamp_from_epoch_seconds


class Success(TypedDict):
    verdict: Literal["genuine", "forged", "stale", "malformed"]
    expected: str
    signed_at: datetime | None
    age: timedelta | None
    digest: str
    preview: str


HEX_DIGITS: Final[str] = "0123456789abcdef"
BLOCK_SIZE: Final[int] = 64


@exact_decimals
def webhook_signature_v1(
    body: bytes,
    header: str,
    secret: bytes,
    received: datetime,
    tolerance: timedelta = timedelta(seconds=300),
) -> Success:
    """Check the HMAC-SHA256 signature of a webhook and that it is neither old nor from the
    future."""

    # precondition, line 27: length(secret) >= 4
    if not len(secret) >= 4:
        raise ContractBroken("precondition", 0, {"secret": secret})

    # precondition, line 28: tolerance >= seconds(1) AND tolerance <= hours(24)
    if not (tolerance >= duration_from_seconds(1) and tolerance <= duration_from_hours(24)):
        raise ContractBroken("precondition", 1, {"tolerance": tolerance})

    # step parts, line 38
    parts = regex_groups(header, "^t=([0-9]{1,10}),v1=([0-9a-fA-F]{64})$")

    # step seconds_text, line 39
    seconds_text = (
        "0"
        if parts is None
        else ["0" if value is None else value for value in [array_at(parts, 1)]][0]
    )

    # step given_text, line 40
    given_text = (
        ""
        if parts is None
        else ["" if value is None else value for value in [array_at(parts, 2)]][0]
    )

    # step signed_at, line 41
    signed_at = None if parts is None else timestamp_from_epoch_seconds(integer_parse(seconds_text))

    # step age, line 42
    age = None if signed_at is None else received - signed_at

    # step message, line 43
    message = bytes_concat(bytes_utf8(text_concat(seconds_text, ".")), body)

    # step short_key, line 46
    short_key = bytes_sha256(secret) if len(secret) > BLOCK_SIZE else secret

    # step key, line 47
    key = bytes_concat(
        short_key, bytes_parse_hex(text_repeat("00", checked(BLOCK_SIZE - len(short_key))))
    )

    # step inner_numbers, line 48
    inner_numbers = [integer_bit_xor(bytes_at(key, i), 54) for i in array_range(0, BLOCK_SIZE, 1)]

    # step outer_numbers, line 49
    outer_numbers = [integer_bit_xor(bytes_at(key, i), 92) for i in array_range(0, BLOCK_SIZE, 1)]

    # step inner_pad, line 50
    inner_pad = bytes_parse_hex(
        text_join(
            [
                text_concat(
                    text_at(HEX_DIGITS, integer_shift_right(n, 4)), text_at(HEX_DIGITS, n & 15)
                )
                for n in inner_numbers
            ],
            "",
        )
    )

    # step outer_pad, line 51
    outer_pad = bytes_parse_hex(
        text_join(
            [
                text_concat(
                    text_at(HEX_DIGITS, integer_shift_right(n, 4)), text_at(HEX_DIGITS, n & 15)
                )
                for n in outer_numbers
            ],
            "",
        )
    )

    # step hmac, line 52
    hmac = bytes_sha256(bytes_concat(outer_pad, bytes_sha256(bytes_concat(inner_pad, message))))

    # step given, line 53
    given = bytes_parse_hex(given_text)

    # step difference, line 55
    difference = (
        1
        if len(given) != len(hmac)
        else checked_sum(
            integer_bit_xor(bytes_at(given, i), bytes_at(hmac, i)) for i in array_range(0, 32, 1)
        )
    )

    # step verdict, line 57
    verdict: Literal["genuine", "forged", "stale", "malformed"]
    if age is None:
        verdict = "malformed"
    elif difference != 0 or given != hmac:
        verdict = "forged"
    elif duration_abs(age) > tolerance:
        verdict = "stale"
    else:
        verdict = "genuine"

    # output expected, line 68
    expected = bytes_hex(hmac)

    # output digest, line 71
    digest = bytes_base64(bytes_sha256(body))

    # output preview, line 72
    preview = text_concat(bytes_hex(bytes_slice(body, 0, 8)), "…" if len(body) > 8 else "")

    # postcondition, line 30: length(expected) == 64
    if len(expected) != 64:
        raise ContractBroken("postcondition", 0, {"expected": expected})

    # postcondition, line 31: verdict == genuine => age IS NOT NULL AND abs(age) <= tolerance
    if not (verdict != "genuine" or (age is not None and duration_abs(age) <= tolerance)):
        raise ContractBroken(
            "postcondition", 1, {"verdict": verdict, "age": age, "tolerance": tolerance}
        )

    # postcondition, line 32: length(parse_base64(digest)) == 32
    if len(bytes_parse_base64(digest)) != 32:
        raise ContractBroken("postcondition", 2, {"digest": digest})

    return {
        "verdict": verdict,
        "expected": expected,
        "signed_at": signed_at,
        "age": age,
        "digest": digest,
        "preview": preview,
    }


INPUTS: Final = Inputs(
    {
        "body": "bytes",
        "header": "string",
        "secret": "bytes",
        "received": "timestamp",
        "tolerance": "duration",
    },
    {"tolerance": timedelta(seconds=300)},
)
RUN: Final = undecorated(webhook_signature_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 4 + ("tolerance" in inputs):
            raise NotPlain
        body = inputs["body"]
        body = read_value("bytes", body)
        header = inputs["header"]
        if (
            type(header) is not str
            or not (is_ascii(header) or is_text(header))
            or len(header) > MAX_TEXT
        ):
            raise NotPlain
        secret = inputs["secret"]
        secret = read_value("bytes", secret)
        received = inputs["received"]
        received = read_value("timestamp", received)
        tolerance = inputs["tolerance"] if "tolerance" in inputs else timedelta(seconds=300)
        tolerance = read_value("duration", tolerance)
    except NOT_PLAIN:
        body, header, secret, received, tolerance = read_inputs(INPUTS, inputs)
    return RUN(body, header, secret, received, tolerance)


SOURCE: Final = Source(
    "nodes/security/webhook_signature_v1.vsp",
    lines={
        83: 27, 86: 28, 87: 28, 96: 39, 103: 40, 107: 41, 113: 43, 119: 47, 120: 47, 124: 48,
        127: 49, 130: 50, 131: 50, 133: 50, 134: 50, 143: 51, 144: 51, 146: 51, 147: 51, 156: 52,
        159: 53, 165: 55, 166: 55, 182: 68, 185: 71, 188: 72, 192: 30, 196: 31, 201: 32, 202: 32,
    },
    clauses={
        "precondition": [
            "length(secret) >= 4",
            "tolerance >= seconds(1) AND tolerance <= hours(24)",
        ],
        "postcondition": [
            "length(expected) == 64",
            "verdict == genuine => age IS NOT NULL AND abs(age) <= tolerance",
            "length(parse_base64(digest)) == 32",
        ],
    },
)  # fmt: skip
