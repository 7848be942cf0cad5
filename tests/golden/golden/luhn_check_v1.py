# AUTO-GENERATED - DO NOT EDIT
# luhn_check_v1, from nodes/checks/luhn_check_v1.vsp
# semantic hash 8c5463c26c7a688a8914d1d4ec4030bd7089f1804babcb0257376142ac355dd4
"""Check the last digit of a card number by the Luhn rule and name the brand."""

from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import range as array_range
from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.integer import checked, checked_sum, mod as integer_mod, parse as integer_parse
from vesper.kernels.raised import ContractBroken
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
    is_digits as text_is_digits,
    repeat as text_repeat,
    replace as text_replace,
    slice as text_slice,
    starts_with as text_starts_with,
)


class Success(TypedDict):
    is_valid: bool
    brand: Literal["visa", "mastercard", "amex", "other"]
    masked: str


@exact_decimals
def luhn_check_v1(number: str) -> Success:
    """Check the last digit of a card number by the Luhn rule and name the brand."""

    # constraint, line 6: length(number) <= 40
    if not len(number) <= 40:
        raise ContractBroken("constraint", 0, {"number": number})

    # step digits, line 17
    digits = text_replace(number, " ", "")

    # step is_card, line 18
    is_card = text_is_digits(digits) and len(digits) >= 12 and len(digits) <= 19

    # step weights, line 20
    weights = [
        d if integer_mod(i, 2) == 0 else checked(checked(d * 2) - 9) if d > 4 else checked(d * 2)
        for i in array_range(0, len(digits) if is_card else 0, 1)
        for d in [integer_parse(text_at(digits, checked(len(digits) - 1 - i)))]
    ]

    # step is_valid, line 21
    is_valid = is_card and integer_mod(checked_sum(weights), 10) == 0

    # step masked, line 22
    masked = (
        digits
        if len(digits) <= 4
        else text_concat(
            text_repeat("*", len(digits) - 4),
            text_slice(digits, len(digits) - 4, 9223372036854775807),
        )
    )

    # step brand, line 24
    brand: Literal["visa", "mastercard", "amex", "other"]
    if text_starts_with(digits, "4"):
        brand = "visa"
    elif len(digits) >= 2 and text_slice(digits, 0, 2) >= "51" and text_slice(digits, 0, 2) <= "55":
        brand = "mastercard"
    elif text_starts_with(digits, "34") or text_starts_with(digits, "37"):
        brand = "amex"
    else:
        brand = "other"

    return {"is_valid": is_valid, "brand": brand, "masked": masked}


INPUTS: Final = Inputs({"number": "string"}, {})
RUN: Final = undecorated(luhn_check_v1)


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
        number = inputs["number"]
        if (
            type(number) is not str
            or not (is_ascii(number) or is_text(number))
            or len(number) > MAX_TEXT
        ):
            raise NotPlain
    except NOT_PLAIN:
        (number,) = read_inputs(INPUTS, inputs)
    return RUN(number)


SOURCE: Final = Source(
    "nodes/checks/luhn_check_v1.vsp",
    lines={
        46: 6, 49: 17, 56: 20, 57: 20, 58: 20, 62: 21, 68: 22, 69: 22, 70: 22, 78: 28,
    },
    clauses={
        "constraint": [
            "length(number) <= 40",
        ],
    },
)  # fmt: skip
