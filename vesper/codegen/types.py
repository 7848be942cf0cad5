"""Annotations: the Python form of every type, and a class for every record that a node has."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from functools import cache

import libcst as cst
from libcst.helpers import parse_template_statement

from vesper.codegen import templates
from vesper.codegen.layout.python_expression import write_string
from vesper.codegen.naming import Naming
from vesper.codegen.record_names import choose_record_names
from vesper.language.ir import nodes as ir
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

_PRIMITIVES: dict[Type, str] = {
    BOOLEAN: "bool",
    INTEGER: "int",
    DECIMAL: "Decimal",
    FLOAT: "float",
    STRING: "str",
    BYTES: "bytes",
    TIMESTAMP: "datetime",
    DATE: "date",
    DURATION: "timedelta",
    TIME_OF_DAY: "time",
    PERIOD: "Period",
    JSON: "Json",
}


class TypeWriter:
    """Writer of annotations; it collects the classes that they need, each before its first use."""

    def __init__(self, naming: Naming) -> None:
        self._naming = naming
        self._names: dict[Record, str] = {}
        self._classes: dict[str, cst.BaseStatement] = {}

    def name_records(self, node: ir.Node) -> None:
        """Choose the names of the node's records. Called before anything is written."""
        self._names = choose_record_names(node, self._naming.name_type)

    @property
    def classes(self) -> list[cst.BaseStatement]:
        return list(self._classes.values())

    def write_annotation(self, type_: Type) -> cst.BaseExpression:
        match type_:
            case Enum(members):
                return _write_subscript("Literal", [cst.SimpleString(write_string(member)) for member in members])
            case ArrayOf(element):
                return _write_subscript("list", [self.write_annotation(element)])
            case SetOf(element):
                return _write_subscript("frozenset", [self.write_annotation(element)])
            case MapOf(key, value):
                return _write_subscript("dict", [self.write_annotation(key), self.write_annotation(value)])
            case OptionalOf(inner):
                return cst.BinaryOperation(self.write_annotation(inner), cst.BitOr(), cst.Name("None"))
            case Record():
                return cst.Name(self.write_record_class(type_))
            case _:
                return cst.Name(_PRIMITIVES[type_])

    def write_record_class(self, type_: Record) -> str:
        """Write the class of a record, once, and return its name."""
        name = self._names[type_]
        if name not in self._classes:
            fields = [(field, self.write_annotation(each)) for field, each in type_.fields]
            self._classes[name] = write_typed_dict(name, fields)
        return name


def write_typed_dict(name: str, fields: Sequence[tuple[str, cst.BaseExpression]]) -> cst.BaseStatement:
    """Write a `TypedDict` with these fields, as a call if a field's name is a keyword of Python."""
    if any(keyword.iskeyword(field) for field, _ in fields):
        entries = [cst.DictElement(cst.SimpleString(write_string(field)), each) for field, each in fields]
        arguments = [cst.Arg(cst.SimpleString(f'"{name}"')), cst.Arg(cst.Dict(entries))]
        call = cst.Call(cst.Name("TypedDict"), arguments)
        return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], call)])
    lines = [
        cst.SimpleStatementLine([cst.AnnAssign(cst.Name(field), cst.Annotation(annotation))])
        for field, annotation in fields
    ]
    return _parse_class_shell().with_changes(name=cst.Name(name), body=cst.IndentedBlock(lines))


@cache
def _parse_class_shell() -> cst.ClassDef:
    """Parse the template of classes, once."""
    shell = parse_template_statement(templates.SUCCESS)
    assert isinstance(shell, cst.ClassDef)
    return shell


def has_plain_fields(type_: Record) -> bool:
    """Return whether Python can name every field; it cannot name `class`."""
    return not any(keyword.iskeyword(field) for field, _ in type_.fields)


def _write_subscript(head: str, arguments: Sequence[cst.BaseExpression]) -> cst.Subscript:
    return cst.Subscript(cst.Name(head), [cst.SubscriptElement(cst.Index(argument)) for argument in arguments])


def is_annotation_needed(type_: Type) -> bool:
    """Return whether Python would not infer the type from a value: it contains an enum or a record."""
    match type_:
        case Enum() | Record():
            return True
        case ArrayOf(inner) | SetOf(inner) | OptionalOf(inner):
            return is_annotation_needed(inner)
        case MapOf(key, value):
            return is_annotation_needed(key) or is_annotation_needed(value)
        case _:
            return False
