# AUTO-GENERATED - DO NOT EDIT
# iban_check_v1, from nodes/checks/iban_check_v1.vsp
# semantic hash 399c8a844841b07eb537eca668ecd36b3298c0fac88e080819b14c83f39a7222
"""Check the length and the check digits of an IBAN and say what is wrong with it."""

from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import range as array_range
from vesper.kernels.decimal import (
    div as decimal_div,
    exact_decimals,
    exact_entry,
    parse as decimal_parse,
)
from vesper.kernels.integer import checked, text as integer_text
from vesper.kernels.runtime.entry import (
    MAX_TEXT,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_ascii,
    is_text,
    read_inputs,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import (
    at as text_at,
    concat as text_concat,
    index_of as text_index_of,
    join as text_join,
    replace as text_replace,
    slice as text_slice,
)
from vesper.kernels.value import min as value_min

D_1: Final = Decimal("1")
D_97: Final = Decimal("97")


class Success(TypedDict):
    is_valid: bool
    reason: Literal[
        "fine",
        "too_short",
        "too_long",
        "bad_character",
        "unknown_country",
        "wrong_length",
        "wrong_digits",
    ]
    country: str
    shown: str


LENGTHS: Final[dict[str, int]] = {
    "AT": 20,
    "BE": 16,
    "CH": 21,
    "DE": 22,
    "ES": 24,
    "FR": 27,
    "GB": 22,
    "IT": 27,
    "NL": 18,
}
LETTERS: Final[str] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@exact_decimals
def iban_check_v1(iban: str) -> Success:
    """Check the length and the check digits of an IBAN and say what is wrong with it."""

    # step compact, line 22
    compact = text_replace(iban, " ", "")

    # step country, line 23
    country = text_slice(compact, 0, 2)

    # step moved, line 24
    moved = (
        ""
        if len(compact) < 4
        else text_concat(text_slice(compact, 4, 9223372036854775807), text_slice(compact, 0, 4))
    )

    # step values, line 25
    values = [
        99 if value is None else value
        for i in array_range(0, len(moved), 1)
        for value in [text_index_of(LETTERS, text_at(moved, i))]
    ]

    # step digits, line 27
    digits = text_join([integer_text(v) for v in values], "")

    # step reason, line 29
    reason: Literal[
        "fine",
        "too_short",
        "too_long",
        "bad_character",
        "unknown_country",
        "wrong_length",
        "wrong_digits",
    ]
    if len(compact) < 5:
        reason = "too_short"
    elif len(compact) > 34:
        reason = "too_long"
    elif any(v > 35 for v in values):
        reason = "bad_character"
    elif country not in LENGTHS:
        reason = "unknown_country"
    elif LENGTHS[country] != len(compact):
        reason = "wrong_length"
    elif decimal_parse(digits) - decimal_div(decimal_parse(digits), D_97, 0, "floor") * D_97 != D_1:
        reason = "wrong_digits"
    else:
        reason = "fine"

    # output is_valid, line 41
    is_valid = reason == "fine"

    # output shown, line 41
    shown = text_join(
        [
            text_slice(compact, i, value_min(checked(i + 4), len(compact)))
            for i in array_range(0, len(compact), 4)
        ],
        " ",
    )

    return {"is_valid": is_valid, "reason": reason, "country": country, "shown": shown}


INPUTS: Final = Inputs({"iban": "string"}, {})
RUN: Final = undecorated(iban_check_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 1:
            raise NotPlain
        iban = inputs["iban"]
        if type(iban) is not str or not (is_ascii(iban) or is_text(iban)) or len(iban) > MAX_TEXT:
            raise NotPlain
    except NOT_PLAIN:
        (iban,) = read_inputs(INPUTS, inputs)
    return RUN(iban)


SOURCE: Final = Source(
    "nodes/checks/iban_check_v1.vsp",
    lines={
        76: 22, 79: 23, 85: 24, 91: 25, 92: 25, 96: 27, 116: 36, 118: 37, 127: 41, 129: 41, 130: 41,
    },
)  # fmt: skip
