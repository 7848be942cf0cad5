"""Dataclasses of the inputs and outputs of a node: `node.Input`, `node.Output`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import field, make_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from keyword import iskeyword
from typing import Any, Literal

from vesper.language.ir import nodes as ir
from vesper.values.model import plain
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
    STRING,
    TIME_OF_DAY,
    TIMESTAMP,
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Record,
    SetOf,
    Type,
)

_SCALARS: dict[Type, Any] = {
    BOOLEAN: bool,
    BYTES: bytes,
    DATE: date,
    DECIMAL: Decimal,
    DURATION: timedelta,
    FLOAT: float,
    INTEGER: int,
    JSON: Any,
    PERIOD: Period,
    STRING: str,
    TIMESTAMP: datetime,
    TIME_OF_DAY: time,
}
MISSING: Any = object()
"""In place of the default of a field that has none."""


def python_type(type_: Type, record_class: Callable[[Record], Any]) -> Any:
    """Return the Python type of a value as callers get it, with a class for each record."""
    match type_:
        case OptionalOf(inner):
            return python_type(inner, record_class) | None
        case Enum(members):
            return Literal[members]
        case ArrayOf(element):
            return list[python_type(element, record_class)]  # type: ignore[misc]  # made at run time
        case SetOf(element):
            return frozenset[python_type(element, record_class)]  # type: ignore[misc]  # as above
        case MapOf(key, value):
            return dict[python_type(key, record_class), python_type(value, record_class)]  # type: ignore[misc]  # as above
        case Record():
            return record_class(type_)
        case _:
            return _SCALARS[type_]


def defaults_of(node: ir.Node) -> dict[str, Any]:
    """Return the inputs with a default. A flag has none: it states whether another field was left out."""
    return {
        each.name: None if each.default is None else plain(each.default)
        for each in node.inputs
        if each.name not in node.flagged and (each.default is not None or isinstance(each.type, OptionalOf))
    }


def class_name(record: Record) -> str:
    """Return the name of the class of a record."""
    return record.name or "Record"


def attribute_name(name: str) -> str:
    """Return the name of a field in a Python class: `from_` for `from`, which is a keyword."""
    return f"{name}_" if iskeyword(name) else name


class Records:
    """The dataclasses of one node. Records with equal fields share a class."""

    def __init__(self, node: ir.Node) -> None:
        self._node = node
        self._classes: dict[Record, type] = {}

    def input_class(self) -> type:
        """Return the dataclass of the inputs."""
        return self._top("Input", ir.record_of(self._node.inputs), defaults_of(self._node))

    def output_class(self) -> type:
        """Return the dataclass of the outputs."""
        return self._top("Output", ir.record_of(self._node.outputs), {})

    def _top(self, name: str, record: Record, defaults: Mapping[str, Any]) -> type:
        found = self._make(name, f"{self._node.source.intent}\n", record, defaults)
        names = {field for field, _ in record.fields}
        for nested, made in self._classes.items():
            if class_name(nested) not in names and holds(record, nested):
                setattr(found, class_name(nested), made)
        return found

    def _make(self, name: str, summary: str, record: Record, defaults: Mapping[str, Any]) -> type:
        fields = [
            (
                attribute_name(each),
                python_type(type_, self.record_class),
                self._field(type_, defaults.get(each, MISSING)),
            )
            for each, type_ in record.fields
        ]
        lines = [summary, *(f"{each}: {type_}" for each, type_ in record.fields)]
        namespace = {"__doc__": "\n".join(lines), "__module__": __name__}
        return make_dataclass(name, fields, namespace=namespace, frozen=True, slots=True, kw_only=True)

    def _field(self, type_: Type, default: Any) -> Any:
        if default is MISSING:
            return field()
        if isinstance(default, list | dict):
            return field(default_factory=lambda: self.value(type_, deepcopy(default)))
        return field(default=default)

    def record_class(self, record: Record) -> type:
        """Return the dataclass of a record. Its optional fields may be left out."""
        if record not in self._classes:
            optional = {name: None for name, type_ in record.fields if isinstance(type_, OptionalOf)}
            summary = f"{class_name(record)} of {self._node.node_id}.\n"
            self._classes[record] = self._make(class_name(record), summary, record, optional)
        return self._classes[record]

    def value(self, type_: Type, value: Any) -> Any:
        """Return a value as callers get it, with dataclasses in place of dicts of records."""
        match type_:
            case OptionalOf(inner):
                return None if value is None else self.value(inner, value)
            case ArrayOf(element):
                return [self.value(element, each) for each in value]
            case MapOf(_, of):
                return {key: self.value(of, each) for key, each in value.items()}
            case Record(fields):
                made = self.record_class(type_)
                return made(**{attribute_name(name): self.value(of, value[name]) for name, of in fields})
            case _:
                return value

    def outputs(self, output: type, values: Mapping[str, Any]) -> Any:
        """Return outputs as an object of `node.Output`."""
        whole = self._node.outputs
        return output(**{attribute_name(each.name): self.value(each.type, values[each.name]) for each in whole})


def holds(type_: Type, record: Record) -> bool:
    """Return whether a type is the record or has it among its parts."""
    match type_:
        case OptionalOf(inner) | ArrayOf(inner) | SetOf(inner):
            return holds(inner, record)
        case MapOf(key, value):
            return holds(key, record) or holds(value, record)
        case Record(fields):
            return type_ == record or any(holds(of, record) for _, of in fields)
        case _:
            return False
