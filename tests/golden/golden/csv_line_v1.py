# AUTO-GENERATED - DO NOT EDIT
# csv_line_v1, from nodes/text/csv_line_v1.vsp
# semantic hash b3f264ece0d3baca86744163c08b2b93f2c715d86c4e428ab5c554bfcc5e04d4
"""Read one line of a bank's CSV export, with quoted fields, into a booking."""

from datetime import date
from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import (
    at as array_at,
    concat as array_concat,
    get as array_get,
    range as array_range,
)
from vesper.kernels.date import parse as date_parse
from vesper.kernels.decimal import exact_decimals, exact_entry, parse as decimal_parse
from vesper.kernels.enum import text as enum_text
from vesper.kernels.integer import checked, rem as integer_rem
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
    concat as text_concat,
    contains as text_contains,
    ends_with as text_ends_with,
    from_code_point as text_from_code_point,
    index_of as text_index_of,
    join as text_join,
    replace as text_replace,
    reverse as text_reverse,
    slice as text_slice,
    split as text_split,
    starts_with as text_starts_with,
    trim as text_trim,
    trim_start as text_trim_start,
    upper as text_upper,
)


class Success(TypedDict):
    fields: list[str]
    booked: date | None
    text: str
    amount: Decimal | None
    currency: str
    problems: list[str]
    again: str


@exact_decimals
def csv_line_v1(
    line: str,
    separator: Literal[";", ",", "|"] = ";",
    is_german: bool = True,
) -> Success:
    """Read one line of a bank's CSV export, with quoted fields, into a booking."""

    # constraint, line 6: length(line) > 0
    if not len(line) > 0:
        raise ContractBroken("constraint", 0, {"line": line})

    # constraint, line 6: length(line) <= 2000
    if not len(line) <= 2000:
        raise ContractBroken("constraint", 1, {"line": line})

    # precondition, line 22: rem(length(split(line, '"')), 2) == 1
    if integer_rem(len(text_split(line, '"')), 2) != 1:
        raise ContractBroken("precondition", 0, {"line": line})

    # precondition, line 23: NOT line CONTAINS from_code_point(10)
    if text_contains(line, text_from_code_point(10)):
        raise ContractBroken("precondition", 1, {"line": line})

    # step mark, line 32
    mark_ = enum_text(separator)

    # step pieces, line 34
    pieces = text_split(line, '"')

    # step hidden, line 35
    hidden = text_join(
        [
            text_replace(array_at(pieces, i), mark_, text_from_code_point(31))
            if integer_rem(i, 2) == 0
            else array_at(pieces, i)
            for i in array_range(0, len(pieces), 1)
        ],
        '"',
    )

    # step raw, line 36
    raw = text_split(hidden, text_from_code_point(31))

    # step bare, line 37
    bare = [text_trim(field) for field in raw]

    # step fields, line 39
    fields = [
        text_replace(text_slice(f, 1, len(f) - 1), '""', '"')
        if len(f) >= 2 and text_starts_with(f, '"') and text_ends_with(f, '"')
        else f
        for f in bare
    ]

    # step day, line 40
    value = array_get(fields, 0)
    day = "" if value is None else value

    # step number, line 41
    number = text_replace(
        ["" if value is None else value for value in [array_get(fields, 2)]][0], " ", ""
    )

    # step point, line 42
    point = (
        text_replace(text_replace(number, ".", ""), ",", ".")
        if is_german
        else text_replace(number, ",", "")
    )

    # step booked, line 43
    booked = (
        date_parse(
            text_concat(
                text_concat(
                    text_concat(
                        text_concat(text_slice(day, 6, 9223372036854775807), "-"),
                        text_slice(day, 3, 5),
                    ),
                    "-",
                ),
                text_slice(day, 0, 2),
            )
        )
        if regex_matches(day, "^(0[1-9]|1[0-9]|2[0-8])\\.(0[1-9]|1[0-2])\\.[1-9][0-9]{3}$")
        else None
    )

    # step amount, line 47
    amount = (
        decimal_parse(point) if regex_matches(point, "^-?[0-9]{1,12}([.][0-9]{1,4})?$") else None
    )

    # step note, line 49
    value = array_get(fields, 1)
    note = "" if value is None else value

    # step gap, line 50
    gap = text_index_of(text_reverse(note), " ")

    # step currency, line 51
    if len(fields) > 3:
        currency = array_at(fields, 3)
    elif gap is None:
        currency = ""
    else:
        currency = text_slice(note, checked(len(note) - gap), 9223372036854775807)

    # step problems, line 52
    problems = array_concat(
        array_concat(
            ["too few fields"] if len(fields) < 3 else [],
            [text_concat("no date: ", day)] if booked is None else [],
        ),
        [text_concat("no amount: ", number)] if amount is None else [],
    )

    # output text, line 61
    text = text_trim(note)

    # output currency, line 63
    currency_ = text_upper(text_trim_start(currency))

    # output again, line 65
    again = text_join(
        [text_concat(text_concat('"', text_replace(f, '"', '""')), '"') for f in fields], mark_
    )

    # postcondition, line 25: length(fields) >= 1
    if not len(fields) >= 1:
        raise ContractBroken("postcondition", 0, {"fields": fields})

    # postcondition, line 26: amount IS NULL OR booked IS NULL => length(problems) > 0
    if not (not (amount is None or booked is None) or len(problems) > 0):
        raise ContractBroken(
            "postcondition", 1, {"amount": amount, "booked": booked, "problems": problems}
        )

    # postcondition, line 27: length(problems) <= 3
    if not len(problems) <= 3:
        raise ContractBroken("postcondition", 2, {"problems": problems})

    return {
        "fields": fields,
        "booked": booked,
        "text": text,
        "amount": amount,
        "currency": currency_,
        "problems": problems,
        "again": again,
    }


INPUTS: Final = Inputs(
    {"line": "string", "separator": "enum[';', ',', '|']", "is_german": "boolean"},
    {"separator": ";", "is_german": True},
)
RUN: Final = undecorated(csv_line_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 1 + ("separator" in inputs) + ("is_german" in inputs):
            raise NotPlain
        line = inputs["line"]
        if type(line) is not str or not (is_ascii(line) or is_text(line)) or len(line) > MAX_TEXT:
            raise NotPlain
        separator: Any = inputs["separator"] if "separator" in inputs else ";"
        if type(separator) is not str or separator not in {";", ",", "|"}:
            raise NotPlain
        is_german = inputs["is_german"] if "is_german" in inputs else True
        if type(is_german) is not bool:
            raise NotPlain
    except NOT_PLAIN:
        line, separator, is_german = read_inputs(INPUTS, inputs)
    return new_objects(RUN(line, separator, is_german))


SOURCE: Final = Source(
    "nodes/text/csv_line_v1.vsp",
    lines={
        72: 6, 76: 6, 79: 22, 80: 22, 83: 23, 84: 23, 90: 34, 93: 35, 95: 35, 96: 35, 97: 35,
        98: 35, 104: 36, 111: 39, 122: 41, 128: 42, 130: 42, 135: 45, 136: 45, 137: 45, 138: 45,
        139: 45, 140: 45, 144: 45, 153: 47, 165: 51, 169: 51, 172: 53, 173: 53, 175: 54, 177: 55,
        184: 63, 187: 65, 188: 65, 193: 25, 197: 26, 203: 27,
    },
    clauses={
        "constraint": [
            "length(line) > 0",
            "length(line) <= 2000",
        ],
        "precondition": [
            "rem(length(split(line, '\"')), 2) == 1",
            "NOT line CONTAINS from_code_point(10)",
        ],
        "postcondition": [
            "length(fields) >= 1",
            "amount IS NULL OR booked IS NULL => length(problems) > 0",
            "length(problems) <= 3",
        ],
    },
)  # fmt: skip
