"""Expressions of a node as text with their types, and the values of a model's context that consist of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TypeAlias

from vesper.importers.writer import node_name
from vesper.importers.zen.types import NOTHING, NUMBER, Record, Slot, Type, Variable, resolve

OPEN, OR, AND, NOT, COMPARE, COALESCE, SUM, PRODUCT, PREFIX, ATOM = range(10)
"""How tightly the outermost operator of a text binds; `OPEN` is an `IF`, a quantifier or a `LET`."""


class Untranslatable(Exception):
    """A part of a model without a translation."""

    def __init__(self, text: str, *, is_fault: bool = False) -> None:
        super().__init__(text)
        self.is_fault = is_fault
        """Whether zen itself fails here for every value: in a cell such a row never matches."""


@dataclass(frozen=True, slots=True)
class Term:
    """The text of an expression. It is a value of `type` where no check is null."""

    text: str
    type: Type
    level: int = ATOM
    checks: tuple[str, ...] = ()
    """Paths, from left to right, each of which may be null; the value is null if one of them is."""
    is_optional: bool = False
    """Whether the text itself may be null and is no path."""
    is_path: bool = False
    is_integer: bool = False
    """Whether the text is an integer of the language; zen has decimals only."""
    slot: Slot | None = None
    """The field of an input that the text reads."""

    @property
    def is_nullable(self) -> bool:
        return bool(self.checks) or self.is_optional or self.type == NOTHING

    def at(self, level: int) -> str:
        """Return the text as an operand of an operator that binds at `level`."""
        return self.text if self.level >= level else f"({self.text})"


NULL = Term("null", NOTHING)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value of the context that is one term."""

    term: Term
    condition: str = ""
    """The condition of the step that computes the term; null elsewhere. Empty for a step that always runs."""
    is_absent_if_null: bool = False
    """Whether null means that the key is absent, so that a merge keeps an older value."""


@dataclass(slots=True)
class Tree:
    """A value of the context that is an object with known keys."""

    fields: dict[str, Value] = field(default_factory=dict)
    source: Record | None = None
    """The record of inputs that unknown keys are read from."""
    prefix: str = ""
    """Text before the inside name of a key of `source`."""


Value: TypeAlias = Leaf | Tree


def inside_names(record: Record) -> dict[str, str]:
    """Return the inside name of every field of a record, by its outside name."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for key in record.fields:
        names[key] = node_name(key, taken)
        taken.add(names[key])
    return names


def field_term(base: Term, key: str) -> Term:
    """Return the field of a record as a path with its checks."""
    record = resolve(base.type)
    assert isinstance(record, Record)
    if key not in record.fields:
        if not record.is_open:
            return NULL
        record.fields[key] = Slot(Variable(), is_optional=True)
    slot = record.fields[key]
    text = f"{base.at(ATOM)}.{inside_names(record)[key]}"
    checks = (*base.checks, *((text,) if slot.is_optional and base.is_path else ()))
    return Term(
        text,
        resolve(slot.type),
        checks=checks,
        is_optional=slot.is_optional and not base.is_path,
        is_path=base.is_path,
        slot=slot if record.is_open else None,
    )


def plain(term: Term) -> Term:
    """Return a term whose text is typed on its own: null where the value is null, whatever the checks are."""
    prefixes = tuple(check for check in term.checks if check != term.text)
    if not prefixes:
        return replace(term, is_optional=bool(term.checks) or term.is_optional, checks=())
    condition = " OR ".join(f"{check} IS NULL" for check in prefixes)
    return Term(f"IF {condition} THEN null ELSE {term.text}", term.type, OPEN, is_optional=True)


def finished(term: Term) -> str:
    """Return the text of a stored value; a computed number has no zeros at the end, as zen writes it."""
    is_computed = re.search(r"[*/+(]| - ", term.text) and not term.text.startswith("normalize(")
    if (
        resolve(term.type) == NUMBER
        and is_computed
        and not term.is_integer
        and not term.is_nullable
        and not term.is_path
    ):
        return f"normalize({term.text})"
    return term.text


def number_literal(text: str) -> str:
    """Return a number without zeros at the end of its fraction."""
    value = Decimal(text)
    plain_text = f"{value:f}"
    return plain_text.rstrip("0").rstrip(".") if "." in plain_text else plain_text


def set_path(tree: Tree, path: str, value: Value) -> None:
    """Insert a value at a path of keys separated by points, with objects on the way."""
    *heads, last = path.split(".")
    for head in heads:
        inner = tree.fields.get(head)
        if not isinstance(inner, Tree):
            inner = Tree()
            tree.fields[head] = inner
        tree = inner
    tree.fields[last] = value
