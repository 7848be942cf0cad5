"""The declarations as texts for readers: fields and their kinds, operations, types and codes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from vesper.values.generated.operations import OPERATIONS
from vesper.values.operation import OpSpec

WORDS = {
    "AND": "Both hold. The right side is evaluated only where the left one holds.",
    "OR": "One of both holds. The right side is evaluated only where the left one does not hold.",
    "NOT": "The negation of a condition.",
    "IN": "Whether a collection or a range has a value: `x IN xs`, `age IN [18..65)`.",
    "CONTAINS": "Whether a collection has a value: `xs CONTAINS x`.",
    "IS": "Whether a value is null: `x IS NULL`, `x IS NOT NULL`.",
    "IF": "One of two values: `IF c THEN a ELSE b`.",
    "LET": "A name for a value: `LET x = a IN x * x`.",
    "FORALL": "Whether a condition holds for every item: `FORALL x IN xs SATISFIES x > 0`.",
    "EXISTS": "Whether a condition holds for some item: `EXISTS x IN xs SATISFIES x > 0`.",
    "FOR": "One value for each item: `[x * 2 FOR x IN xs WHERE x > 0]`.",
    "WHERE": "The condition of the items that count.",
    "WITH": "A record with other values of some fields: `order WITH {paid: true}`.",
    "SUM": "The sum: `SUM(xs)`, `SUM(line.qty FOR line IN lines)`.",
    "COUNT": "The number of items: `COUNT(x FOR x IN xs WHERE x > 0)`.",
    "MIN": "The smallest value; fails with `empty_collection` without one.",
    "MAX": "The largest value; fails with `empty_collection` without one.",
    "AVG": "The average; fails with `empty_collection` without values.",
    "CAST": "A JSON value with its type: `CAST(body.amount AS decimal)`.",
    "AS": "The type of a value, stated beside it: `[] AS array<string>`.",
    "AT": "The value of a parameter at a date: `rate AT signed_on`.",
    "true": "The boolean true.",
    "false": "The boolean false.",
    "null": "No value; only an optional type has it.",
}
"""Words of expressions that have a meaning of their own."""
SNIPPETS = {
    "IF": "IF ${1:condition} THEN ${2:value} ELSE ${3:other}",
    "LET": "LET ${1:name} = ${2:value} IN ${3:result}",
    "FORALL": "FORALL ${1:item} IN ${2:items} SATISFIES ${3:condition}",
    "EXISTS": "EXISTS ${1:item} IN ${2:items} SATISFIES ${3:condition}",
    "SUM": "SUM(${1:item.value} FOR ${2:item} IN ${3:items})",
    "COUNT": "COUNT(${1:item} FOR ${1:item} IN ${2:items} WHERE ${3:condition})",
    "CAST": "CAST(${1:value} AS ${2:type})",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a mapping."""

    name: str
    kind: str
    doc: str
    is_required: bool
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of mapping."""

    name: str
    where: str
    step: str | None
    keys: tuple[str, ...]
    """Keys that make a step this one without `operation`."""
    short: str | None
    """Field that the value of a key with the name of the operation stands for."""
    fields: dict[str, Field]

    def field(self, key: str) -> Field | None:
        """Return the field of a key; that of a short form has the name of the operation."""
        found = self.fields.get(key)
        return self.fields.get(self.short) if found is None and self.short and key == self.step else found


@cache
def _document() -> dict[str, dict[str, Any]]:
    text = files(__package__).joinpath("reference.json").read_text(encoding="utf-8")
    found: dict[str, dict[str, Any]] = json.loads(text)
    return found


@cache
def shapes() -> dict[str, Shape]:
    """Return every kind of mapping by name."""
    return {name: _shape(name, **entry) for name, entry in _document()["mappings"].items()}


def _shape(name: str, where: str, step: str | None, keys: list[str], short: str | None, fields: Any) -> Shape:
    read = {
        key: Field(key, each["kind"], each["doc"], "required" in each, tuple(each.get("values", ())))
        for key, each in fields.items()
    }
    return Shape(name, where, step, tuple(keys), short, read)


@cache
def step_shapes() -> tuple[Shape, ...]:
    return tuple(each for each in shapes().values() if each.step is not None)


def type_docs() -> dict[str, str]:
    """Return the built-in types with their docs."""
    return _document()["types"]


def error_docs() -> dict[str, str]:
    """Return the run-time error codes with their docs."""
    return _document()["errors"]


@cache
def functions() -> dict[str, tuple[OpSpec, ...]]:
    """Return the operations of each function, in declared order."""
    found: dict[str, tuple[OpSpec, ...]] = {}
    for each in OPERATIONS.values():
        if each.function is not None and each.is_implemented:
            found[each.function] = (*found.get(each.function, ()), each)
    return found


def operation_text(name: str, part: str) -> str | None:
    """Return the `doc`, `signature`, `call` or `example` of an operation."""
    found: str | None = _document()["operations"].get(name, {}).get(part)
    return found


def describe_operation(spec: OpSpec) -> str:
    """Return the signature, doc, failures and an example of an operation in Markdown."""
    lines = [f"```\n{operation_text(spec.name, 'signature')}\n```", operation_text(spec.name, "doc") or ""]
    if spec.raises:
        lines.append("Fails with " + ", ".join(f"`{code}`" for code in spec.raises) + ".")
    if (example := operation_text(spec.name, "example")) is not None:
        lines.append(f"Example: {example}.")
    return "\n\n".join(lines)


def alternatives(kind: str) -> list[str]:
    """Split `a | b` at each `|` outside angle brackets."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(kind):
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "|" and depth == 0:
            parts.append(kind[start:position].strip())
            start = position + 1
    return [*parts, kind[start:].strip()]


def inside(kind: str, outer: str) -> str | None:
    """Return the kind of the parts of `list<…>` or `map<…>`; None for another kind."""
    return kind[len(outer) + 1 : -1] if kind.startswith(f"{outer}<") else None
