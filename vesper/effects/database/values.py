"""Values of the language in columns, and back.

A value goes into a database as the class of its Python form says, because a request has no other type: collections and
json as JSON text. What comes out is read by the type that the step declares, and nothing is guessed: a column that does
not hold such a value is a `bad_response` that names the column and the row, and never repeats what stands in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal

from vesper.effects.performer import EffectFailed
from vesper.values.json_forms import has_names, value_of_form
from vesper.values.json_value import Json, exact_text, parse_json
from vesper.values.model import Key, ProblemKind, Scalar, Value, ValueProblem, accept, plain, scalar_text
from vesper.values.numbers import normal_decimal
from vesper.values.strict_json import JsonContent
from vesper.values.types import (
    BOOLEAN,
    BYTES,
    DECIMAL,
    FLOAT,
    INTEGER,
    JSON,
    ArrayOf,
    MapOf,
    OptionalOf,
    Record,
    SetOf,
    Type,
    without_null,
)


class JsonText(str):
    """What stands in a column of JSON: it is no string of the language."""

    __slots__ = ()


class Unreadable:
    """What stands in a column and is no value at all; `called` says what it is."""

    __slots__ = ("called",)

    def __init__(self, called: str) -> None:
        self.called = called


def to_column(value: Value) -> object:
    """What a driver is given: numbers, texts, times and bytes as they are, everything else as JSON text."""
    if isinstance(value, Json | list | frozenset | dict):
        return exact_text(Json(_form(value)))
    return value


def _form(value: Value) -> JsonContent:
    """The JSON form (docs/spec/values.md) as far as it can be known without the type: sets are in plain order, and a
    map without entries is an object whatever its keys would be. `_read_form` knows both."""
    match value:
        case None | bool() | str():
            return value
        case Json():
            return value.content
        case int():
            return Decimal(value)
        case float() if math.isfinite(value):
            return normal_decimal(Decimal(scalar_text(value)))
        case list():
            return tuple(_form(item) for item in value)
        case frozenset():
            return tuple(_form(item) for item in sorted(value, key=_order))
        case dict() if all(isinstance(key, str) for key in value):
            return {str(key): _form(value[key]) for key in sorted(value)}  # type: ignore[index]
        case dict():
            return tuple((_form(key), _form(item)) for key, item in value.items())
        case _:
            assert isinstance(value, Scalar)
            return scalar_text(value)


def _order(member: Key) -> tuple[str, str]:
    return type(member).__name__, str(member)


# -- reading --------------------------------------------------------------------------------------


class Reader:
    """Reads the rows of one result by the type that a step declares."""

    def __init__(self, columns: Sequence[str], row: Type, database: str, booleans_are_integers: bool) -> None:
        self._database = database
        self._booleans_are_integers = booleans_are_integers
        self._is_record = isinstance(without_null(row), Record)
        inner = without_null(row)
        if isinstance(inner, Record):
            self._fields = self._positions(columns, inner)
        elif len(columns) != 1:
            raise EffectFailed("bad_response", f"the query gives {len(columns)} columns, and {row} holds one")
        else:
            self._fields = [(columns[0], 0, row)]

    def _positions(self, columns: Sequence[str], row: Record) -> list[tuple[str, int, Type]]:
        """Each field with the place of its column; PostgreSQL gives names in small letters, whatever the SQL said."""
        if len(set(columns)) < len(columns):
            twice = next(name for name in columns if list(columns).count(name) > 1)
            raise EffectFailed("bad_response", f"the query gives two columns with the name `{twice}`")
        places = {name.lower(): place for place, name in enumerate(columns)}
        places.update({name: place for place, name in enumerate(columns)})
        found: list[tuple[str, int, Type]] = []
        for name, type_ in row.fields:
            place = places.get(name, places.get(name.lower()))
            if place is None:
                raise EffectFailed("bad_response", f"the query gives no column `{name}`")
            found.append((name, place, type_))
        used = {place for _, place, _ in found}
        extra = [name for place, name in enumerate(columns) if place not in used]
        if extra:
            shown = ", ".join(f"`{name}`" for name in extra)
            raise EffectFailed("bad_response", f"the query gives {shown}, and {row} has no such field")
        return found

    def read(self, cells: Sequence[object], number: int) -> object:
        """The value that the row with this number (from 1) stands for, in its Python form."""
        found: dict[str, object] = {}
        for name, place, type_ in self._fields:
            cell = cells[place]
            try:
                found[name] = None if cell is None and isinstance(type_, OptionalOf) else self._value(type_, cell)
            except ValueProblem as problem:
                raise EffectFailed(
                    "bad_response",
                    f"column `{name}` of row {number} of `{self._database}` holds {_called(cell, problem.kind)}, "
                    f"and the step declares {without_null(type_)}{_advice(type_, cell)}",
                ) from None
        return found if self._is_record else next(iter(found.values()))

    def _value(self, type_: Type, cell: object) -> object:
        if isinstance(cell, Unreadable) or cell is None:
            raise ValueProblem(ProblemKind.WRONG_TYPE)
        type_ = without_null(type_)
        if isinstance(type_, ArrayOf | SetOf | MapOf | Record) or type_ == JSON:
            if not isinstance(cell, str):
                raise ValueProblem(ProblemKind.WRONG_TYPE)
            return plain(value_of_form(type_, _read_form(type_, parse_json(str(cell)).content)))
        if isinstance(cell, JsonText):
            raise ValueProblem(ProblemKind.WRONG_TYPE)
        if type_ == BOOLEAN and self._booleans_are_integers and type(cell) is int and cell in (0, 1):
            return cell == 1
        if type_ == INTEGER and isinstance(cell, Decimal) and cell.as_tuple().exponent == 0:
            return accept(type_, int(cell))  # PostgreSQL adds up bigints into a numeric
        if (type_ == BYTES and isinstance(cell, str)) or (type_ == FLOAT and isinstance(cell, str) and cell != "NaN"):
            raise ValueProblem(ProblemKind.WRONG_TYPE)  # base64 and the names of infinities are of JSON alone
        return accept(type_, cell)


def _read_form(type_: Type, form: JsonContent) -> JsonContent:
    """A form in which a map without entries is what its type says: `_form` could not know."""
    match type_, form:
        case OptionalOf(inner), _:
            return None if form is None else _read_form(inner, form)
        case ((ArrayOf(element) | SetOf(element)), tuple()):
            return tuple(_read_form(element, item) for item in form)
        case MapOf(key, _), dict() if not form and not has_names(key):
            return ()
        case MapOf(key, of), dict() if has_names(key):
            return {name: _read_form(of, item) for name, item in form.items()}
        case MapOf(_, of), tuple():
            return tuple(
                (pair[0], _read_form(of, pair[1])) if isinstance(pair, tuple) and len(pair) == 2 else pair
                for pair in form
            )
        case Record(fields), dict():
            types = dict(fields)
            return {name: _read_form(types[name], item) if name in types else item for name, item in form.items()}
        case _:
            return form


_CALLED: tuple[tuple[type, str], ...] = (
    (bool, "a boolean"),
    (int, "an integer"),
    (float, "a float"),
    (Decimal, "a decimal"),
    (JsonText, "JSON"),
    (str, "a text"),
    (bytes, "bytes"),
    (datetime, "a timestamp"),
    (date, "a date"),
    (timedelta, "an interval"),
)
_BECAUSE = {
    ProblemKind.OUT_OF_RANGE: " that is out of range",
    ProblemKind.MALFORMED: " in another form",
    ProblemKind.NOT_A_MEMBER: " that is none of its members",
    ProblemKind.MISSING: " that lacks a field",
    ProblemKind.DUPLICATE: " with something twice",
    ProblemKind.TOO_DEEP: " that is too deep",
}


def _called(cell: object, kind: ProblemKind) -> str:
    if cell is None:
        return "null"
    if isinstance(cell, Unreadable):
        return cell.called
    called = next((name for of, name in _CALLED if isinstance(cell, of)), f"a {type(cell).__name__}")
    return called + _BECAUSE.get(kind, "")


def _advice(type_: Type, cell: object) -> str:
    inner = without_null(type_)
    if cell is None:
        return f"; declare optional<{inner}>, or leave such rows out"
    if inner == DECIMAL and isinstance(cell, float):
        return "; a float is not exact: keep decimals in a column of type TEXT (SQLite) or numeric (PostgreSQL)"
    if inner == FLOAT and isinstance(cell, Decimal):
        return "; CAST it to double precision in the query"
    return ""


def size_of(cell: object) -> int:
    """About how many bytes a cell takes; numbers and times count as eight."""
    return len(cell) if isinstance(cell, str | bytes) else 8
