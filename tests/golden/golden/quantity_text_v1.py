# AUTO-GENERATED - DO NOT EDIT
# quantity_text_v1, from nodes/text/quantity_text_v1.vsp
# semantic hash 7e9806ba2bb83d45b7235c745678d8830872655810aa4e63a5aab8dd0e369d2d
"""Read an amount with its unit from a recipe or a form, and give it in grams, millilitres or
pieces."""

from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import at as array_at
from vesper.kernels.decimal import (
    divide as decimal_divide,
    exact_decimals,
    exact_entry,
    normalize as decimal_normalize,
    parse as decimal_parse,
    round as decimal_round,
    text as decimal_text,
    unsigned_zero,
)
from vesper.kernels.enum import text as enum_text
from vesper.kernels.raised import ContractBroken, DeclaredError
from vesper.kernels.regex import groups as regex_groups
from vesper.kernels.runtime.entry import (
    MAX_TEXT,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    is_ascii,
    is_finite,
    is_text,
    read_inputs,
    undecorated,
)
from vesper.kernels.runtime.flow import FAILURES, code_of, one_of
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import (
    concat as text_concat,
    join as text_join,
    lower as text_lower,
    replace as text_replace,
    trim as text_trim,
)

D_0: Final = Decimal("0")
D_1_0: Final = Decimal("1.0")
D_1: Final = Decimal("1")
D_25: Final = Decimal("25")
D_100: Final = Decimal("100")
D_236_6: Final = Decimal("236.6")
D_1000_0: Final = Decimal("1000.0")
D_1000: Final = Decimal("1000")


class Read(TypedDict):
    factor: Decimal
    unit: str


class Success(TypedDict):
    amount: Decimal
    unit: Literal["g", "ml", "piece"]
    text: str
    was_guess: bool


def check_invariants(
    *,
    error_code: Literal["unreadable", "unknown_unit", "no_density", "division_by_zero"] | None,
    amount: Decimal | None,
) -> None:
    # invariant, line 27: error.error_code IS NULL => output.amount IS NOT NULL
    if not (error_code is not None or amount is not None):
        raise ContractBroken("invariant", 0, {"error_code": error_code, "amount": amount})


@exact_decimals
def quantity_text_v1(
    written: str,
    density: Decimal | None = None,
    wanted: Literal["any", "mass", "volume"] = "any",
) -> Success:
    """Read an amount with its unit from a recipe or a form, and give it in grams, millilitres or
    pieces."""

    # constraint, line 6: length(written) >= 1
    if not len(written) >= 1:
        raise ContractBroken("constraint", 0, {"written": written})

    # constraint, line 6: length(written) <= 100
    if not len(written) <= 100:
        raise ContractBroken("constraint", 1, {"written": written})

    # precondition, line 22: density IS NULL OR (density > 0 AND density <= 25)
    if not (density is None or (density > D_0 and density <= D_25)):
        raise ContractBroken("precondition", 0, {"density": density})

    try:
        parts = regex_groups(
            text_lower(text_trim(written)), "^([0-9]+(?:[.,][0-9]+)?)(?:/([0-9]+))? *([a-z]*)$"
        )

        # raise_1, line 34
        if parts is None:
            error_code: Literal["unreadable", "unknown_unit", "no_density", "division_by_zero"] = (
                "unreadable"
            )
            message = text_join(["cannot read an amount in '", written, "'"], "")
            check_invariants(error_code=error_code, amount=None)

            raise DeclaredError({"error_code": error_code, "message": message})

        # step number, line 38
        try:
            number = decimal_divide(
                decimal_parse(
                    text_replace(
                        ["" if value is None else value for value in [array_at(parts, 1)]][0],
                        ",",
                        ".",
                    )
                ),
                decimal_parse(
                    ["1" if value_ is None else value_ for value_ in [array_at(parts, 2)]][0]
                ),
            )
        except FAILURES as failure:
            if code_of(failure) != "decimal_overflow":
                raise
            error_code = "unreadable"
            message = text_join(["the amount in '", written, "' is too long"], "")
            check_invariants(error_code=error_code, amount=None)

            raise DeclaredError({"error_code": error_code, "message": message}) from failure

        # step word, line 45
        value = array_at(parts, 3)
        word = "" if value is None else value

        # step read, line 49
        read: Read
        if word == "g" or word == "gram" or word == "grams":
            read = Read(factor=D_1_0, unit="g")
        elif word == "kg":
            read = Read(factor=D_1000_0, unit="g")
        elif word == "ml":
            read = Read(factor=D_1_0, unit="ml")
        elif word == "l" or word == "litre" or word == "liter":
            read = Read(factor=D_1000_0, unit="ml")
        elif word == "cup":
            read = Read(factor=D_236_6, unit="ml")
        elif word == "":
            read = Read(factor=D_1_0, unit="piece")
        else:
            error_code = "unknown_unit"
            message = text_concat("nobody here knows the unit ", word)
            check_invariants(error_code=error_code, amount=None)

            raise DeclaredError({"error_code": error_code, "message": message})

        # step factor, line 64
        if (wanted == "mass" and read["unit"] == "ml") or (
            wanted == "volume" and read["unit"] == "g"
        ):
            # validation_2, line 72
            if density is None:
                error_code = "no_density"
                message = "how heavy is a litre of it?"
                check_invariants(error_code=error_code, amount=None)

                raise DeclaredError({"error_code": error_code, "message": message})
            factor = density if wanted == "mass" else decimal_divide(D_1, density)
        else:
            factor = D_1

        # step guessed, line 77
        guessed = number > D_100 if word == "" and number <= D_1000 else None

        # step unit, line 84
        unit: Literal["g", "ml", "piece"]
        if read["unit"] == "piece":
            unit = "piece"
        elif (read["unit"] == "g" and wanted != "volume") or wanted == "mass":
            unit = "g"
        else:
            unit = "ml"

        # step amount, line 92
        try:
            amount = decimal_round(unsigned_zero(number * read["factor"] * factor), 2, "half_up")
        except FAILURES as failure:
            # step hint, line 99
            hint = text_concat("written: ", written)
            error_code = "unreadable"
            message = text_join(["too much (", hint, ")"], "")
            check_invariants(error_code=error_code, amount=None)

            raise DeclaredError({"error_code": error_code, "message": message}) from failure

        # output text, line 103
        text = text_concat(
            text_concat(decimal_text(decimal_normalize(amount)), " "), enum_text(unit)
        )

        # output was_guess, line 103
        was_guess = False if guessed is None else guessed

        # postcondition, line 24: amount >= 0
        if not amount >= D_0:
            raise ContractBroken("postcondition", 0, {"amount": amount})

        # postcondition, line 25: wanted == volume => unit != g
        if not (wanted != "volume" or unit != "g"):
            raise ContractBroken("postcondition", 1, {"wanted": wanted, "unit": unit})
        check_invariants(error_code=None, amount=amount)

        return {"amount": amount, "unit": unit, "text": text, "was_guess": was_guess}
    except FAILURES as failure:
        code: Literal["division_by_zero"] | None = one_of(code_of(failure), ("division_by_zero",))
        if code is None:
            raise
        check_invariants(error_code=code, amount=None)
        raise DeclaredError({"error_code": code, "message": code}) from failure


INPUTS: Final = Inputs(
    {"written": "string", "density": "optional<decimal>", "wanted": "enum[any, mass, volume]"},
    {"wanted": "any"},
)
RUN: Final = undecorated(quantity_text_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 1 + ("density" in inputs) + ("wanted" in inputs):
            raise NotPlain
        written = inputs["written"]
        if (
            type(written) is not str
            or not (is_ascii(written) or is_text(written))
            or len(written) > MAX_TEXT
        ):
            raise NotPlain
        density = inputs["density"] if "density" in inputs else None
        if density is not None and (type(density) is not Decimal or not is_finite(density)):
            raise NotPlain
        density = None if density is None else density + D_0
        wanted: Any = inputs["wanted"] if "wanted" in inputs else "any"
        if type(wanted) is not str or wanted not in {"any", "mass", "volume"}:
            raise NotPlain
    except NOT_PLAIN:
        written, density, wanted = read_inputs(INPUTS, inputs)
    return RUN(written, density, wanted)


SOURCE: Final = Source(
    "nodes/text/quantity_text_v1.vsp",
    lines={
        74: 27, 88: 6, 92: 6, 96: 22, 100: 32, 108: 36, 111: 36, 115: 40, 116: 40, 117: 40, 118: 40,
        123: 40, 124: 40, 131: 43, 134: 43, 137: 47, 156: 62, 159: 62, 171: 73, 172: 74, 190: 95,
        193: 99, 195: 100, 198: 100, 201: 103, 202: 103, 210: 24, 214: 25,
    },
    clauses={
        "constraint": [
            "length(written) >= 1",
            "length(written) <= 100",
        ],
        "precondition": [
            "density IS NULL OR (density > 0 AND density <= 25)",
        ],
        "postcondition": [
            "amount >= 0",
            "wanted == volume => unit != g",
        ],
        "invariant": [
            "error.error_code IS NULL => output.amount IS NOT NULL",
        ],
    },
)  # fmt: skip
