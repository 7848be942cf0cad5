"""Arrow columns for inputs, and the cells that outputs must have (docs/spec/batches.md).

A column's type is drawn among those that hold values of the input. A number is cut to fit the column; any other value
that does not fit becomes null. The objects that the engine must read are those that pyarrow reads from the column.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, time, timedelta
from decimal import ROUND_DOWN, Context, Decimal
from typing import Any

from vesper.values.json_value import canonical_text, json_of
from vesper.values.model import base64_text, decimal_text, in_order, same, scalar_text
from vesper.values.period import Period
from vesper.values.types import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGER,
    JSON,
    PERIOD,
    TIME_OF_DAY,
    TIMESTAMP,
    ArrayOf,
    MapOf,
    OptionalOf,
    Record,
    SetOf,
    Type,
)

_LEAST_FITTING = 0.6
"""Share of the values that a narrow column must hold; otherwise the widest type is taken."""
_CUTTING = Context(prec=2_100)
"""Rounds where a number is cut; numbers have at most a thousand digits before and after the point."""
_LAST_YEAR = 9998
_NANOSECONDS_SHARE = 0.3
_MAX_DIGITS = {"decimal32": 9, "decimal64": 18, "decimal128": 38, "decimal256": 76}


class ColumnMaker:
    """A maker of tables: draws the type of each column."""

    def __init__(self, pa: Any, chance: random.Random) -> None:
        self._pa = pa
        self._chance = chance

    def column(self, type_: Type, values: Sequence[object]) -> Any:
        """Return an array of the values; null where one does not fit."""
        drawn = self._array(self._with_other_unit(self._draw(type_, values)), values)
        is_roomy = len(values) - drawn.null_count >= _LEAST_FITTING * sum(each is not None for each in values)
        return drawn if is_roomy else self._array(self._widest_arrow_type(type_, values), values)

    def _array(self, arrow_type: Any, values: Sequence[object]) -> Any:
        pa = self._pa
        is_encoded = pa.types.is_dictionary(arrow_type)
        flat = arrow_type.value_type if is_encoded else arrow_type
        try:
            array = pa.array([_adapt(pa, flat, value) for value in values], flat)
        except self._misfits:
            array = pa.array([self._cell(flat, value) for value in values], flat)
        return array.dictionary_encode() if is_encoded else array

    @property
    def _misfits(self) -> tuple[type[Exception], ...]:
        """The exceptions for a value that pyarrow cannot store in a column."""
        return self._pa.ArrowException, ValueError, TypeError, ArithmeticError, AttributeError

    def _cell(self, arrow_type: Any, value: object) -> object:
        """Return the value in the form of the column; None where pyarrow cannot store it."""
        try:
            cell = _adapt(self._pa, arrow_type, value)
            self._pa.array([cell], arrow_type)
        except self._misfits:
            return None
        return cell

    def _draw(self, type_: Type, values: Sequence[object]) -> Any:
        pa, choose = self._pa, self._chance.choice
        present = [each for each in values if each is not None]
        match type_:
            case OptionalOf(inner):
                return self._draw(inner, present)
            case ArrayOf(element) | SetOf(element):
                inner = self._draw(element, _items(present))
                return choose((pa.list_, pa.list_, pa.large_list))(inner)
            case MapOf(key, value):
                keys, items = _entries(present)
                return pa.map_(self._widest_arrow_type(key, keys), self._draw(value, items))
            case Record(fields):
                return pa.struct([(name, self._draw(of, _members(present, name))) for name, of in fields])
            case _ if type_ == JSON:
                return self._infer(present)
            case _ if type_ == DECIMAL:
                return choose((*self._decimals(present), *_integers(pa), pa.string()))
            case _:
                return choose(_SCALARS.get(type_, _texts)(pa))

    def _with_other_unit(self, arrow_type: Any) -> Any:
        """Return some columns of times in nanoseconds, as pandas makes them."""
        pa = self._pa
        if self._chance.random() >= _NANOSECONDS_SHARE:
            return arrow_type
        if pa.types.is_timestamp(arrow_type):
            return pa.timestamp("ns", arrow_type.tz)
        return pa.duration("ns") if pa.types.is_duration(arrow_type) else arrow_type

    def _decimals(self, values: Sequence[object]) -> list[Any]:
        """Return decimal columns at the scale of the values, and with more and fewer places."""
        pa = self._pa
        scale = min(38, max([_places(each) for each in values], default=0))
        found = []
        for name, digits in _MAX_DIGITS.items():
            make: Callable[[int, int], Any] | None = getattr(pa, name, None)  # narrow ones came with pyarrow 19
            if make is not None:
                places = min(digits, scale + self._chance.choice((0, 0, 0, 1, 2, -1)))
                found.append(make(digits, places))
        return found

    def _widest_arrow_type(self, type_: Type, values: Sequence[object]) -> Any:
        pa = self._pa
        present = [each for each in values if each is not None]
        match type_:
            case OptionalOf(inner):
                return self._widest_arrow_type(inner, present)
            case ArrayOf(element) | SetOf(element):
                return pa.list_(self._widest_arrow_type(element, _items(present)))
            case MapOf(key, value):
                keys, items = _entries(present)
                return pa.map_(self._widest_arrow_type(key, keys), self._widest_arrow_type(value, items))
            case Record(fields):
                return pa.struct([(name, self._widest_arrow_type(of, _members(present, name))) for name, of in fields])
            case _ if type_ == JSON:
                return self._infer(present)
            case _ if type_ == DECIMAL:
                return pa.string()
            case _:
                return _SCALARS.get(type_, _texts)(pa)[0]

    def _infer(self, values: Sequence[object]) -> Any:
        """Return the type of the first json that has one; the others become null where they differ."""
        pa = self._pa
        for value in values:
            try:
                found = pa.infer_type([value])
            except self._misfits:
                continue
            if not pa.types.is_null(found):
                return found
        return pa.string()


def _integers(pa: Any) -> tuple[Any, ...]:
    return pa.int64(), pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()


def _texts(pa: Any) -> tuple[Any, ...]:
    encoded = pa.dictionary(pa.int32(), pa.string())
    return pa.string(), pa.large_string(), pa.string_view(), encoded


_SCALARS: Mapping[Type, Callable[[Any], tuple[Any, ...]]] = {
    BOOLEAN: lambda pa: (pa.bool_(),),
    INTEGER: lambda pa: (*_integers(pa), pa.int64(), pa.int64(), pa.string()),
    FLOAT: lambda pa: (pa.float64(), pa.float64(), pa.float32(), pa.int32()),
    BYTES: lambda pa: (pa.binary(), pa.large_binary(), pa.binary_view(), pa.string()),
    DATE: lambda pa: (pa.date32(), pa.date64(), pa.string()),
    TIMESTAMP: lambda pa: (
        pa.timestamp("us", "UTC"),
        pa.timestamp("ms", "UTC"),
        pa.timestamp("us", "+02:00"),
        pa.timestamp("us"),
        pa.string(),
    ),
    DURATION: lambda pa: (pa.duration("us"), pa.duration("ms"), pa.string()),
    TIME_OF_DAY: lambda pa: (pa.time64("us"), pa.time32("ms"), pa.string()),
    PERIOD: lambda pa: (pa.string(),),
}
"""Columns of a scalar type, the widest first; texts and enums are columns of texts."""


def _items(values: Sequence[object]) -> list[object]:
    return [item for each in values if isinstance(each, list | tuple | set | frozenset) for item in each]


def _entries(values: Sequence[object]) -> tuple[list[object], list[object]]:
    maps = [each for each in values if isinstance(each, dict)]
    return [key for each in maps for key in each], [item for each in maps for item in each.values()]


def _members(values: Sequence[object], name: str) -> list[object]:
    return [each[name] for each in values if isinstance(each, dict) and name in each]


def _places(value: object) -> int:
    if not isinstance(value, Decimal) or not value.is_finite():
        return 0
    exponent = value.as_tuple().exponent
    return -exponent if isinstance(exponent, int) and exponent < 0 else 0


def _adapt(pa: Any, arrow_type: Any, value: object) -> object:
    """Return a value in a form that pyarrow stores in a column of this type.

    Raises an exception if there is no form.
    """
    types = pa.types
    if value is None:
        return None
    if types.is_list(arrow_type) or types.is_large_list(arrow_type):
        if not isinstance(value, list | tuple | set | frozenset):
            raise TypeError(value)
        items = value if isinstance(value, list | tuple) else sorted(value, key=repr)
        return [_adapt(pa, arrow_type.value_type, each) for each in items]
    if types.is_map(arrow_type) or types.is_struct(arrow_type):
        return _adapt_entries(pa, arrow_type, value)
    if types.is_boolean(arrow_type) != isinstance(value, bool):
        raise TypeError(value)
    if types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type):
        return _text(value)
    if types.is_integer(arrow_type) and isinstance(value, int | Decimal):
        return _wrap(arrow_type, int(value))
    if types.is_decimal(arrow_type) and isinstance(value, int | Decimal):
        return Decimal(value).quantize(Decimal(1).scaleb(-arrow_type.scale), ROUND_DOWN, _CUTTING)
    if types.is_timestamp(arrow_type) and isinstance(value, datetime) and value.year > _LAST_YEAR:
        raise ValueError(value)  # in another zone it may be beyond what pyarrow reads back
    if types.is_duration(arrow_type) and isinstance(value, timedelta) and arrow_type.unit == "ms":
        return timedelta(milliseconds=value // timedelta(milliseconds=1))
    if types.is_time32(arrow_type) and isinstance(value, time):
        return value.replace(microsecond=value.microsecond // 1000 * 1000)
    return value


def _wrap(arrow_type: Any, number: int) -> int:
    """Return the low bits of a number.

    Thus every column of integers has values for any number.
    """
    count = 1 << int(arrow_type.bit_width)
    wrapped = number % count
    is_signed = str(arrow_type).startswith("int")
    return wrapped - count if is_signed and wrapped >= count // 2 else wrapped


def _adapt_entries(pa: Any, arrow_type: Any, value: object) -> object:
    if not isinstance(value, dict):
        raise TypeError(value)
    if pa.types.is_map(arrow_type):
        key, item = arrow_type.key_type, arrow_type.item_type
        return [(_adapt(pa, key, name), _adapt(pa, item, each)) for name, each in value.items()]
    fields = {field.name: field.type for field in arrow_type}
    if not set(value) <= set(fields):
        raise ValueError(value)
    return {name: _adapt(pa, of, value.get(name)) for name, of in fields.items()}


def _text(value: object) -> str:
    if isinstance(value, bytes | bytearray):
        return base64_text(bytes(value))
    if isinstance(value, str):
        return value
    if isinstance(value, int | float | Decimal | timedelta | Period) or hasattr(value, "isoformat"):
        return scalar_text(value)  # type: ignore[arg-type]  # dates and timestamps have `isoformat`
    raise TypeError(value)


def read_cells(pa: Any, array: Any) -> list[object]:
    """Return the cells of a column as the Python objects that the engine must read."""
    type_ = array.type
    if pa.types.is_timestamp(type_) or pa.types.is_duration(type_):
        # Nanoseconds as objects would import pandas; the values have none.
        array = array.cast(pa.timestamp("us", type_.tz) if pa.types.is_timestamp(type_) else pa.duration("us"))
    return [_object(pa, type_, each) for each in array.to_pylist()]


def _object(pa: Any, arrow_type: Any, cell: Any) -> object:
    types = pa.types
    if cell is None:
        return None
    if types.is_list(arrow_type) or types.is_large_list(arrow_type):
        return [_object(pa, arrow_type.value_type, each) for each in cell]
    if types.is_map(arrow_type):
        return {_object(pa, arrow_type.key_type, key): _object(pa, arrow_type.item_type, each) for key, each in cell}
    if types.is_struct(arrow_type):
        return {field.name: _object(pa, field.type, cell[field.name]) for field in arrow_type}
    return cell


# -- outputs --------------------------------------------------------------------------------------


def is_cell(pa: Any, type_: Type, arrow_type: Any, value: Any, cell: Any) -> bool:
    """Return whether a cell is this output, exactly."""
    match type_:
        case OptionalOf(inner):
            return cell is None if value is None else cell is not None and is_cell(pa, inner, arrow_type, value, cell)
        case ArrayOf(element) | SetOf(element):
            items = value if isinstance(value, list) else in_order(element, value)
            return isinstance(cell, list) and _are_cells(pa, element, arrow_type.value_type, items, cell)
        case MapOf(key, of):
            names = in_order(key, value)
            return (
                isinstance(cell, list)
                and _are_cells(pa, key, arrow_type.key_type, names, [each for each, _ in cell])
                and _are_cells(
                    pa, of, arrow_type.item_type, [value[each] for each in names], [each for _, each in cell]
                )
            )
        case Record(fields):
            return isinstance(cell, dict) and all(
                is_cell(pa, of, arrow_type.field(name).type, value[name], cell[name]) for name, of in fields
            )
        case _ if type_ == JSON:
            return bool(cell == canonical_text(json_of(value)))
        case _ if type_ == DECIMAL and pa.types.is_decimal(arrow_type):
            return isinstance(cell, Decimal) and cell == value and cell.as_tuple().exponent == -arrow_type.scale
        case _ if type_ == DECIMAL:
            return bool(cell == decimal_text(value))
        case _ if type_ == PERIOD:
            return bool(cell == scalar_text(value))
        case _ if type_ == TIMESTAMP:
            return bool(cell == value)  # pyarrow has its own class for UTC
        case _:
            return same(value, cell)


def _are_cells(pa: Any, type_: Type, arrow_type: Any, values: Sequence[Any], cells: Sequence[Any]) -> bool:
    return len(values) == len(cells) and all(
        is_cell(pa, type_, arrow_type, value, cell) for value, cell in zip(values, cells, strict=True)
    )


def fits_column(pa: Any, type_: Type, arrow_type: Any, value: Any) -> bool:
    """Return whether an output can be stored in its column.

    A column of decimals has a fixed number of digits after the point.
    """
    match type_:
        case OptionalOf(inner):
            return value is None or fits_column(pa, inner, arrow_type, value)
        case ArrayOf(element):
            return all(fits_column(pa, element, arrow_type.value_type, each) for each in value)
        case SetOf(element):
            return all(fits_column(pa, element, arrow_type.value_type, each) for each in value)
        case MapOf(_, of):
            return all(fits_column(pa, of, arrow_type.item_type, each) for each in value.values())
        case Record(fields):
            return all(fits_column(pa, of, arrow_type.field(name).type, value[name]) for name, of in fields)
        case _ if type_ == DECIMAL and pa.types.is_decimal(arrow_type):
            places, digits = _significant(value)
            return bool(places <= arrow_type.scale and digits + arrow_type.scale <= arrow_type.precision)
        case _:
            return True


def _significant(value: Decimal) -> tuple[int, int]:
    """Return the non-zero digits after the point, and the digits before it."""
    whole, _, fraction = decimal_text(abs(value)).partition(".")
    return len(fraction.rstrip("0")), len(whole.lstrip("0"))
