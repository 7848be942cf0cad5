"""Operations with the types of their operands, rotated over programs so that each is drawn.

Operations are many and some need a type that a program rarely has, so independent draws miss hundreds of pairs. Each
program prefers the next few operations, and its inputs have the types of their operands. A round over all operations
takes some fifty programs; each round has other types.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from vesper.values.generated.operations import IMPLEMENTED
from vesper.values.operation import OpSpec
from vesper.values.types import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGER,
    JSON,
    STRING,
    TIMESTAMP,
    ArrayOf,
    Enum,
    Function,
    MapOf,
    OptionalOf,
    Parameter,
    Primitive,
    SetOf,
    Type,
    declared_type,
    fits_bound,
    substitute,
)
from vesper.verify.programs.terms import LEVELS
from vesper.verify.programs.types import SCALARS

CELLS_PER_PROGRAM = 6
CAST = "json.cast"
"""The only operation of a cell that is written as a form."""
_STRIDE = 7919
"""Distance of consecutive operations, since neighbours have one type. Prime, and no divisor of their number."""
_MEMBERS = Enum(("low", "high", "two words"))
_OPERANDS: tuple[Type, ...] = (
    *SCALARS,
    _MEMBERS,
    ArrayOf(INTEGER),
    ArrayOf(DECIMAL),
    ArrayOf(OptionalOf(STRING)),
    SetOf(STRING),
    SetOf(INTEGER),
    MapOf(STRING, DECIMAL),
    MapOf(INTEGER, ArrayOf(STRING)),
    OptionalOf(INTEGER),
    OptionalOf(DECIMAL),
    OptionalOf(ArrayOf(INTEGER)),
)
_KEYS: tuple[Type, ...] = (STRING, INTEGER, BOOLEAN, BYTES, DATE, TIMESTAMP, _MEMBERS)
_VALUES: tuple[Type, ...] = (DECIMAL, INTEGER, STRING, ArrayOf(INTEGER), OptionalOf(STRING), FLOAT, JSON, DURATION)


@dataclass(frozen=True, slots=True)
class OperandCell:
    """An operation and the types of its type parameters."""

    spec: OpSpec
    bindings: tuple[tuple[str, Type], ...]

    def operands(self) -> list[Type]:
        """Return the types of the operands."""
        return [substitute(declared_type(text), dict(self.bindings)) for _, text in self.spec.params]

    def returns(self) -> Type:
        """Return the type of the result."""
        return substitute(declared_type(self.spec.returns), dict(self.bindings))


def is_writable(type_: Type) -> bool:
    """Return whether a node can contain values of this type."""
    match type_:
        case Primitive():
            return type_ in SCALARS
        case ArrayOf(inner) | SetOf(inner) | OptionalOf(inner):
            return is_writable(inner)
        case MapOf(key, value):
            return is_writable(key) and is_writable(value)
        case Function():
            return False
        case _:
            return True


def is_infix(operator: str | None) -> bool:
    """Return whether an operator is written between or beside operands; `SUM` and others are forms."""
    return operator in ("IS NULL", "IS NOT NULL") or operator in LEVELS


@cache
def usable_operations() -> tuple[OpSpec, ...]:
    """Return the operations that can occur in an expression."""
    return tuple(spec for spec in IMPLEMENTED.values() if _is_usable(spec))


def _is_usable(spec: OpSpec) -> bool:
    types = [declared_type(text) for _, text in spec.params]
    is_written = spec.function is not None or is_infix(spec.operator)
    return is_written and all(is_writable(each) for each in (*types, declared_type(spec.returns)))


@cache
def is_in_optional(operation: str, name: str) -> bool:
    """Return whether an operation takes an optional of this type parameter."""
    wanted = OptionalOf(Parameter(name))
    spec = IMPLEMENTED[operation]
    return any(declared_type(text) == wanted for text in (*(each for _, each in spec.params), spec.returns))


@cache
def operand_cells() -> tuple[tuple[OperandCell, ...], ...]:
    """Return the cells of each operation: one for each type that its parameters can have."""
    casts = (*_OPERANDS, *(MapOf(key, _VALUES[number % 2]) for number, key in enumerate(_KEYS)))
    rows = [tuple(OperandCell(spec, each) for each in _bindings(spec)) for spec in usable_operations()]
    rows.append(tuple(OperandCell(IMPLEMENTED[CAST], (("T", each),)) for each in casts))
    return tuple(row for row in rows if row)


def _bindings(spec: OpSpec) -> Iterator[tuple[tuple[str, Type], ...]]:
    """Yield the types of the parameters; those of two parameters are paired, not multiplied."""
    columns = [
        [each for each in (_KEYS if bound == "key" else _OPERANDS) if _fits(spec, name, bound, each)]
        for name, bound in spec.type_params
    ]
    if len(columns) > 1:
        columns[-1] = [*_VALUES]
    names = [name for name, _ in spec.type_params]
    for number in range(max((len(column) for column in columns), default=1) if all(columns) else 0):
        yield tuple((name, column[number % len(column)]) for name, column in zip(names, columns, strict=True))


def _fits(spec: OpSpec, name: str, bound: str, type_: Type) -> bool:
    return fits_bound(type_, bound) and not (isinstance(type_, OptionalOf) and is_in_optional(spec.name, name))


def preferred_cells(program: int) -> tuple[OperandCell, ...]:
    """Return the cells that a program prefers: of the next operations, with the types of this round."""
    rows = operand_cells()
    first = program * CELLS_PER_PROGRAM
    found = []
    for number in range(first, first + CELLS_PER_PROGRAM):
        row = rows[number * _STRIDE % len(rows)]
        found.append(row[number // len(rows) % len(row)])
    return tuple(found)
