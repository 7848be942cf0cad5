"""Types of values in a model: taken from its tests and its schema, and completed by how expressions use them.

JDM declares no types. A `Variable` stands for a type that nothing has decided yet; `bind` decides it. Records of inputs
are open while a model is read: a key that an expression uses and no test has becomes an optional field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias

MAX_FIELDS = 256
_MAX_DEPTH = 24


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type without parts, by its name in a node."""

    name: str


NUMBER = Scalar("decimal")
TEXT = Scalar("string")
BOOLEAN = Scalar("boolean")
MOMENT = Scalar("timestamp")
JSON = Scalar("json")
NOTHING = Scalar("null")
"""The type of `null` alone."""


@dataclass(slots=True, eq=False)
class Variable:
    """A type that is not decided yet."""

    bound: Type | None = None


@dataclass(slots=True)
class Slot:
    """The type of a field or an item, and whether null is a value of it."""

    type: Type
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class ArrayOf:
    item: Slot

    def __hash__(self) -> int:
        return id(self.item)


@dataclass(slots=True, eq=False)
class Record:
    """Fields by their outside names. `hint` is the outside name that the record's type is named after."""

    hint: str
    fields: dict[str, Slot] = field(default_factory=dict)
    is_open: bool = False
    """Whether the caller may pass keys that no test has: true for records of inputs."""


Type: TypeAlias = Scalar | Variable | ArrayOf | Record


def resolve(type_: Type) -> Type:
    """Return the type that a variable is bound to, or the type itself."""
    while isinstance(type_, Variable) and type_.bound is not None:
        type_ = type_.bound
    return type_


def unify(left: Type, right: Type) -> Type | None:
    """Return the one type of both, binding variables on the way; None where the types differ."""
    left, right = resolve(left), resolve(right)
    if left is right:
        return left
    if isinstance(left, Variable):
        left.bound = right
        return right
    if isinstance(right, Variable):
        right.bound = left
        return left
    if isinstance(left, ArrayOf) and isinstance(right, ArrayOf):
        item = unify(left.item.type, right.item.type)
        if item is None:
            return None
        return ArrayOf(Slot(item, left.item.is_optional or right.item.is_optional))
    if isinstance(left, Record) and isinstance(right, Record):
        return left if _same_fields(left, right) else None
    return left if left == right else None


def _same_fields(left: Record, right: Record) -> bool:
    return list(left.fields) == list(right.fields) and all(
        slot.is_optional == right.fields[key].is_optional and unify(slot.type, right.fields[key].type) is not None
        for key, slot in left.fields.items()
    )


def join(slots: Iterable[Slot], hint: str) -> Slot:
    """Return the slot that holds the values of all slots: optional if one is, records by all their fields."""
    is_optional = False
    types: list[Type] = []
    for slot in slots:
        type_ = resolve(slot.type)
        is_optional = is_optional or slot.is_optional or type_ == NOTHING
        if type_ != NOTHING:
            types.append(type_)
    if not types:
        return Slot(Variable(), is_optional)
    if all(isinstance(each, Record) for each in types):
        return Slot(join_records([each for each in types if isinstance(each, Record)], hint), is_optional)
    if all(isinstance(each, ArrayOf) for each in types):
        items = [each.item for each in types if isinstance(each, ArrayOf)]
        return Slot(ArrayOf(join(items, hint)), is_optional)
    found: Type | None = types[0]
    for each in types[1:]:
        found = unify(found, each) if found is not None else None
    return Slot(found if found is not None else JSON, is_optional)


def join_records(records: list[Record], hint: str) -> Record:
    """Return the record with the fields of all records; a field that one of them lacks is optional."""
    if len(records) == 1:
        return records[0]
    keys = list(dict.fromkeys(key for record in records for key in record.fields))
    joined = Record(hint, is_open=any(record.is_open for record in records))
    for key in keys:
        slots = [record.fields[key] for record in records if key in record.fields]
        slot = join(slots, key)
        joined.fields[key] = Slot(slot.type, slot.is_optional or len(slots) < len(records))
    return joined


def type_of_json(value: Any, hint: str, *, is_open: bool, depth: int = 0) -> Slot:
    """Return the slot of a JSON value as `json.loads` returns it, with numbers as int and Decimal."""
    if depth > _MAX_DEPTH:
        return Slot(JSON)
    match value:
        case None:
            return Slot(NOTHING, is_optional=True)
        case bool():
            return Slot(BOOLEAN)
        case int() | Decimal():
            return Slot(NUMBER)
        case str():
            return Slot(TEXT)
        case list():
            return Slot(
                ArrayOf(join((type_of_json(each, hint, is_open=is_open, depth=depth + 1) for each in value), hint))
            )
        case Mapping():
            if len(value) > MAX_FIELDS:
                return Slot(JSON)
            record = Record(hint, is_open=is_open)
            for key, each in value.items():
                slot = type_of_json(each, key, is_open=is_open, depth=depth + 1)
                record.fields[key] = Slot(Variable() if slot.type == NOTHING else slot.type, slot.is_optional)
            return Slot(record)
    raise TypeError(type(value).__name__)


def type_of_schema(schema: Any, hint: str, depth: int = 0) -> Slot | None:
    """Return the slot that a JSON Schema describes, or None where it says nothing about the type."""
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return None
    match schema.get("type"):
        case "number" | "integer":
            return Slot(NUMBER)
        case "string":
            return Slot(TEXT)
        case "boolean":
            return Slot(BOOLEAN)
        case "array":
            item = type_of_schema(schema.get("items"), hint, depth + 1)
            return Slot(ArrayOf(item or Slot(Variable())))
        case "object":
            properties = schema.get("properties")
            if not isinstance(properties, Mapping) or len(properties) > MAX_FIELDS:
                return None
            required = schema.get("required")
            listed = set(required) if isinstance(required, list) else set()
            record = Record(hint, is_open=True)
            for key, each in properties.items():
                slot = type_of_schema(each, str(key), depth + 1) or Slot(Variable())
                record.fields[str(key)] = Slot(slot.type, str(key) not in listed)
            return Slot(record)
    return None


def complete(shape: Slot, schema: Slot) -> None:
    """Add to the records of `shape` the fields that only the schema has, as optional ones."""
    left, right = resolve(shape.type), resolve(schema.type)
    if isinstance(left, Variable):
        left.bound = right
    elif isinstance(left, ArrayOf) and isinstance(right, ArrayOf):
        complete(left.item, right.item)
    elif isinstance(left, Record) and isinstance(right, Record):
        for key, slot in right.fields.items():
            if key in left.fields:
                complete(left.fields[key], slot)
            else:
                left.fields[key] = Slot(slot.type, is_optional=True)
