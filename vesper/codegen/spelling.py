"""Operations that are written inline, because an operator or a builtin is equal to their kernel.

All other operations are written as a call of their kernel. `tests/unit/codegen/test_spelling.py` compares every entry
with the kernel on generated values, so an entry can make generated code shorter but never give it another meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from vesper.values.types import FLOAT, Type, mentions


@dataclass(frozen=True, slots=True)
class Infix:
    sign: str


@dataclass(frozen=True, slots=True)
class Prefix:
    sign: str


@dataclass(frozen=True, slots=True)
class Function:
    name: str


@dataclass(frozen=True, slots=True)
class Itself:
    """The bare argument: Python's form of the types needs no conversion."""


@dataclass(frozen=True, slots=True)
class Item:
    """The entry of a dict under a key; a `KeyError` is the failure `missing_key`."""


@dataclass(frozen=True, slots=True)
class IsNone:
    is_negated: bool = False


Spelling: TypeAlias = Infix | Prefix | Function | Itself | Item | IsNone

_COMPARISONS = {
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_or_equal": "<=",
    "greater": ">",
    "greater_or_equal": ">=",
}
_ARITHMETIC = {"add": "+", "subtract": "-", "multiply": "*"}

SPELLINGS: Final[dict[str, Spelling]] = {
    **{
        f"{family}.{verb}": Infix(sign)
        for family in ("integer", "decimal", "float", "text", "date", "timestamp", "duration")
        for verb, sign in _COMPARISONS.items()
    },
    **{
        f"{family}.{verb}": Infix(_COMPARISONS[verb])
        for family in ("boolean", "enum", "bytes", "json")
        for verb in ("equal", "not_equal")
    },
    **{
        f"{family}.{verb}": Infix(sign)
        for family in ("integer", "decimal", "float")
        for verb, sign in _ARITHMETIC.items()
    },
    "integer.negate": Prefix("-"),
    # SEMANTICS: Python's integers have no width, but `&` of two that fit 64 bits fits them, bit for bit the same.
    "integer.bit_and": Infix("&"),
    "decimal.negate": Prefix("-"),
    "float.negate": Prefix("-"),
    "duration.negate": Prefix("-"),
    "timestamp.since": Infix("-"),
    "decimal.from_integer": Function("Decimal"),
    "boolean.not": Prefix("not"),
    **{f"{family}.length": Function("len") for family in ("text", "bytes", "array", "set", "map")},
    **{op: Infix("in") for op in ("set.is_member", "array.is_item", "map.is_key")},
    "array.to_set": Function("frozenset"),
    "map.at": Item(),
    "optional.some": Itself(),
    "optional.unwrap": Itself(),
    "optional.is_null": IsNone(),
    "optional.is_not_null": IsNone(is_negated=True),
    **{f"set.{verb}": Infix(_COMPARISONS[verb]) for verb in ("equal", "not_equal")},
    "array.count": Function("len"),
}

EQUALITIES: Final[dict[str, Spelling]] = {
    f"{family}.{verb}": Infix(_COMPARISONS[verb])
    for family in ("array", "map", "record", "optional")
    for verb in ("equal", "not_equal")
}
"""Equalities of composed values; equal to Python's where the parts have `has_plain_equality`."""


def has_plain_equality(type_: Type) -> bool:
    """Return whether Python's `==` compares values of a type as the language does, also inside of collections."""
    # SEMANTICS: Python's lists and dicts ask for identity first, so that a NaN in one would equal itself.
    return not mentions(type_, FLOAT)


# SEMANTICS: an inline operator gives more than the operation does, and the rest must be put right around it:
# integers must be checked for 64 bits (ranges.py proves where not), and a product of decimals may be -0
# (negative_zero.py proves where not).
CHECKED: Final = frozenset({"integer.add", "integer.subtract", "integer.multiply", "integer.negate"})

# SEMANTICS: in Python a member of an enum is a string that does not know its type. Where the first type argument of
# one of these is an enum, their kernels take its members as one more argument, `declared`, and go by that order.
BY_ORDER: Final = frozenset(
    {
        "array.max", "array.min", "array.sort", "map.from_entries", "map.merge", "map.put", "set.to_array",
        "value.clamp", "value.max", "value.min",
    }
)  # fmt: skip

# SEMANTICS: nothing that holds a NaN is equal to anything, but Python takes an object that it finds in a list for
# equal to itself. Where these may meet a float their kernel is called, which compares first.
BY_EQUALITY: Final = frozenset({"array.is_item"})

# Operations whose result depends on a type that no argument shows: their kernels take its text as a last argument.
BY_TYPE: Final = frozenset({"json.cast", "json.from_value"})
