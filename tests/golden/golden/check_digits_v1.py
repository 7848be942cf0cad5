# AUTO-GENERATED - DO NOT EDIT
# check_digits_v1, from nodes/numbers/check_digits_v1.vsp
# semantic hash c63cdcbb0b6b134f676090879b2a14e2299095c2fd66b55614f626a240a5b956
"""Find the check digit of an article, book or vehicle number and say whether the one given is
right."""

from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import (
    at as array_at,
    chunks as array_chunks,
    concat as array_concat,
    range as array_range,
    take as array_take,
)
from vesper.kernels.boolean import text as boolean_text
from vesper.kernels.decimal import (
    div as decimal_div,
    exact_decimals,
    exact_entry,
    parse as decimal_parse,
    to_integer as decimal_to_integer,
)
from vesper.kernels.integer import (
    checked,
    checked_sum,
    mod as integer_mod,
    rem as integer_rem,
    text as integer_text,
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
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import (
    code_point as text_code_point,
    code_points as text_code_points,
    concat as text_concat,
    from_code_point as text_from_code_point,
    is_digits as text_is_digits,
    join as text_join,
    pad_start as text_pad_start,
    reverse as text_reverse,
    starts_with as text_starts_with,
)

D_97: Final = Decimal("97")


class Success(TypedDict):
    digit: str
    full: str
    is_right: bool | None
    remainder: int
    blocks: list[str]
    warning: str


DAMM_ROWS: Final[list[list[int]]] = [
    [0, 3, 1, 7, 5, 9, 8, 6, 4, 2],
    [7, 0, 9, 2, 1, 5, 4, 8, 6, 3],
    [4, 2, 0, 6, 8, 7, 1, 3, 5, 9],
    [1, 7, 5, 0, 9, 8, 3, 4, 2, 6],
    [6, 1, 2, 3, 0, 4, 5, 9, 7, 8],
    [3, 6, 7, 4, 2, 0, 9, 5, 8, 1],
    [5, 8, 6, 9, 7, 2, 0, 1, 3, 4],
    [8, 9, 4, 5, 3, 6, 2, 0, 1, 7],
    [9, 4, 3, 8, 6, 1, 7, 2, 0, 5],
    [2, 5, 8, 1, 4, 3, 6, 7, 9, 0],
]


@exact_decimals
def check_digits_v1(
    scheme: Literal["ean13", "isbn10", "damm", "mod97"],
    number: str,
    given: str | None = None,
) -> Success:
    """Find the check digit of an article, book or vehicle number and say whether the one given is
    right."""

    # constraint, line 7: matches(number, "^[0-9A-Z]{1,24}$")
    if not regex_matches(number, "^[0-9A-Z]{1,24}$"):
        raise ContractBroken("constraint", 0, {"number": number})

    # precondition, line 37: scheme == mod97 OR is_digits(number)
    if not (scheme == "mod97" or text_is_digits(number)):
        raise ContractBroken("precondition", 0, {"scheme": scheme, "number": number})

    # precondition, line 38: scheme == ean13 => length(number) <= 12
    if not (scheme != "ean13" or len(number) <= 12):
        raise ContractBroken("precondition", 1, {"scheme": scheme, "number": number})

    # precondition, line 39: scheme == isbn10 => length(number) <= 9
    if not (scheme != "isbn10" or len(number) <= 9):
        raise ContractBroken("precondition", 2, {"scheme": scheme, "number": number})

    # precondition, line 40: scheme == damm => length(number) <= 4
    if not (scheme != "damm" or len(number) <= 4):
        raise ContractBroken("precondition", 3, {"scheme": scheme, "number": number})

    # step padded, line 49
    if scheme == "ean13":
        padded = text_pad_start(number, 12, "0")
    elif scheme == "isbn10":
        padded = text_pad_start(number, 9, "0")
    else:
        padded = number

    # step values, line 51
    values = [checked(c - 48) if c < 65 else checked(c - 55) for c in text_code_points(padded)]

    # step ean, line 52
    ean = integer_mod(
        checked(
            -checked_sum(
                checked(array_at(values, i) * (1 if integer_rem(i, 2) == 0 else 3))
                for i in array_range(0, len(values), 1)
            )
        ),
        10,
    )

    # step isbn, line 53
    isbn = integer_mod(
        checked(
            -checked_sum(
                checked(array_at(values, i) * checked(10 - i))
                for i in array_range(0, len(values), 1)
            )
        ),
        11,
    )

    # step spelled, line 54
    spelled = text_concat(text_join([integer_text(v) for v in values], ""), "00")

    # step big, line 55
    big = decimal_parse(spelled)

    # step iso, line 56
    iso = checked(98 - decimal_to_integer(big - decimal_div(big, D_97, 0, "floor") * D_97))

    # step fours, line 57
    fours = array_take(array_concat(values, [0, 0, 0, 0]), 4)

    # step one, line 59
    one = (
        0
        if len(values) < 1
        else array_at(array_at(DAMM_ROWS, 0), integer_mod(array_at(fours, 0), 10))
    )

    # step two, line 60
    two = (
        one
        if len(values) < 2
        else array_at(array_at(DAMM_ROWS, one), integer_mod(array_at(fours, 1), 10))
    )

    # step three, line 61
    three = (
        two
        if len(values) < 3
        else array_at(array_at(DAMM_ROWS, two), integer_mod(array_at(fours, 2), 10))
    )

    # step four, line 62
    four = (
        three
        if len(values) < 4
        else array_at(array_at(DAMM_ROWS, three), integer_mod(array_at(fours, 3), 10))
    )

    # step remainder, line 64
    if scheme == "ean13":
        remainder = ean
    elif scheme == "isbn10":
        remainder = isbn
    elif scheme == "mod97":
        remainder = iso
    else:
        remainder = four

    # step digit, line 74
    if scheme == "mod97":
        digit = text_pad_start(integer_text(remainder), 2, "0")
    elif remainder == 10:
        digit = text_from_code_point(text_code_point("X"))
    else:
        digit = integer_text(remainder)

    # step full, line 75
    full = text_concat(padded, digit)

    # output is_right, line 81
    is_right: bool | None = None if given is None else given == digit

    # output blocks, line 83
    blocks: list[str] = [
        text_join(block, "")
        for block in array_chunks([text_from_code_point(c) for c in text_code_points(full)], 4)
    ]

    # output warning, line 84
    warning = (
        text_concat(text_concat(text_concat("expected ", digit), ", got "), given)
        if given is not None and given != digit
        else text_concat("right: ", boolean_text(given is not None))
    )

    # postcondition, line 42: length(digit) == (IF scheme == mod97 THEN 2 ELSE 1)
    if len(digit) != (2 if scheme == "mod97" else 1):
        raise ContractBroken("postcondition", 0, {"digit": digit, "scheme": scheme})

    # postcondition, line 43: starts_with(reverse(full), reverse(digit))
    if not text_starts_with(text_reverse(full), text_reverse(digit)):
        raise ContractBroken("postcondition", 1, {"full": full, "digit": digit})

    # postcondition, line 44: is_right IS NULL => given IS NULL
    if not (is_right is not None or given is None):
        raise ContractBroken("postcondition", 2, {"is_right": is_right, "given": given})

    return {
        "digit": digit,
        "full": full,
        "is_right": is_right,
        "remainder": remainder,
        "blocks": blocks,
        "warning": warning,
    }


INPUTS: Final = Inputs(
    {"scheme": "enum[ean13, isbn10, damm, mod97]", "number": "string", "given": "optional<string>"},
    {},
)
RUN: Final = undecorated(check_digits_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 2 + ("given" in inputs):
            raise NotPlain
        scheme = inputs["scheme"]
        if type(scheme) is not str or scheme not in {"ean13", "isbn10", "damm", "mod97"}:
            raise NotPlain
        number = inputs["number"]
        if (
            type(number) is not str
            or not (is_ascii(number) or is_text(number))
            or len(number) > MAX_TEXT
        ):
            raise NotPlain
        given = inputs["given"] if "given" in inputs else None
        if given is not None:
            if (
                type(given) is not str
                or not (is_ascii(given) or is_text(given))
                or len(given) > MAX_TEXT
            ):
                raise NotPlain
    except NOT_PLAIN:
        scheme, number, given = read_inputs(INPUTS, inputs)
    return new_objects(RUN(scheme, number, given))


SOURCE: Final = Source(
    "nodes/numbers/check_digits_v1.vsp",
    lines={
        95: 7, 99: 37, 103: 38, 107: 39, 111: 40, 115: 49, 117: 49, 122: 51, 125: 52, 126: 52,
        127: 52, 128: 52, 129: 52, 136: 53, 137: 53, 138: 53, 139: 53, 140: 53, 147: 54, 150: 55,
        153: 56, 156: 57, 162: 59, 169: 60, 176: 61, 183: 62, 198: 74, 200: 74, 205: 75, 212: 83,
        213: 83, 218: 84, 220: 84, 225: 42, 229: 43, 233: 44,
    },
    clauses={
        "constraint": [
            'matches(number, "^[0-9A-Z]{1,24}$")',
        ],
        "precondition": [
            "scheme == mod97 OR is_digits(number)",
            "scheme == ean13 => length(number) <= 12",
            "scheme == isbn10 => length(number) <= 9",
            "scheme == damm => length(number) <= 4",
        ],
        "postcondition": [
            "length(digit) == (IF scheme == mod97 THEN 2 ELSE 1)",
            "starts_with(reverse(full), reverse(digit))",
            "is_right IS NULL => given IS NULL",
        ],
    },
)  # fmt: skip
