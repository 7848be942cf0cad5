"""Base of the translation of expressions: the scope, null, types, and records that fit a place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from vesper.importers.writer import node_name
from vesper.importers.zen.syntax import (
    Node,
)
from vesper.importers.zen.terms import (
    AND,
    ATOM,
    COMPARE,
    NULL,
    OR,
    Leaf,
    Term,
    Tree,
    Untranslatable,
    Value,
    field_term,
    finished,
    inside_names,
    plain,
)
from vesper.importers.zen.types import (
    BOOLEAN,
    JSON,
    MOMENT,
    NOTHING,
    NUMBER,
    TEXT,
    ArrayOf,
    Record,
    Scalar,
    Slot,
    Type,
    Variable,
    resolve,
    unify,
)

_CAN_FAIL = re.compile(r"\b(require|max|min|avg|median|parse_decimal|zen_date|to_integer|timestamp|date)\(|\[")

if TYPE_CHECKING:
    from vesper.importers.zen.functions import Functions


@dataclass(slots=True)
class Scope:
    """Names that an expression sees."""

    context: Value
    column: Value | None = None
    """The value of `$`."""
    nodes: Tree | None = None
    """Results of the nodes so far, by name: `$nodes`."""
    items: list[tuple[str | None, Term]] = field(default_factory=list)
    """Items of the enclosing closures with their aliases."""


class TermBuilder:
    """Holds the scope of an expression, and turns terms into values that are not null or fit a type."""

    functions: Functions

    def __init__(self, is_taken: Callable[[str], bool]) -> None:
        self.is_taken = is_taken
        """Whether a name is an input or a step, so that no closure binds it."""
        self.scope = Scope(Tree())
        self.guards: list[str] | None = None
        """Conditions under which no error happens; None where an error ends the evaluation."""
        self.facts: set[str] = set()
        """Paths that are known not to be null."""
        self.uses: set[str] = set()
        """Parts of the node that the text needs: `now`, `zen_date`."""

    @contextmanager
    def mode(self, guards: list[str] | None, facts: set[str] | None = None) -> Iterator[None]:
        """Translate with these guards and facts; without guards an error ends the evaluation."""
        before = self.guards, self.facts
        self.guards, self.facts = guards, set() if facts is None else facts
        try:
            yield
        finally:
            self.guards, self.facts = before

    def need(self, term: Term, wanted: Type | None = None) -> Term:
        """Return a term that is not null and, where given, of the wanted type; an error of zen otherwise."""
        if wanted is not None:
            found = resolve(term.type)
            if found == NOTHING or unify(found, wanted) is None:
                name = type_name(found)
                raise Untranslatable(f"{name} where zen needs {type_name(wanted)}", is_fault=found != JSON)
            term = replace(term, type=resolve(wanted))
        if term.type == NOTHING:
            raise Untranslatable("null where zen needs a value", is_fault=True)
        if not term.is_nullable:
            return term
        missing = [check for check in term.checks if check not in self.facts]
        if self.guards is None:
            text = (
                f"require({plain(replace(term, checks=tuple(missing))).text})"
                if missing or term.is_optional
                else term.text
            )
            return replace(
                term, text=text, level=ATOM, checks=(), is_optional=False, is_path=term.is_path and not missing
            )
        for check in missing:
            self.guards.append(f"{check} IS NOT NULL")
            self.facts.add(check)
        if term.is_optional:
            self.guards.append(f"{term.at(COMPARE)} IS NOT NULL")
            return Term(f"require({term.text})", term.type)
        return replace(term, checks=())

    def is_null(self, term: Term, *, is_not: bool = False) -> Term:
        """Return the test for null."""
        checks = [check for check in term.checks if check not in self.facts]
        if term.type == NOTHING:
            return constant(not is_not)
        if term.is_optional:
            checks.append(term.at(COMPARE))
        if not checks:
            if term.slot is not None and not term.checks:
                term.slot.is_optional = True
            return constant(is_not)
        word, level = ("AND", AND) if is_not else ("OR", OR)
        tests = [f"{check} IS NOT NULL" if is_not else f"{check} IS NULL" for check in checks]
        return Term(f" {word} ".join(tests), BOOLEAN, COMPARE if len(tests) == 1 else level)

    def as_value(self, term: Term) -> Term:
        """Return a term with its open null checks written into its text, or marked as optional.

        Checks that are known facts are dropped.
        """
        return plain(replace(term, checks=tuple(check for check in term.checks if check not in self.facts)))

    def decimal(self, term: Term) -> Term:
        """Return a number as a decimal of the language. A literal needs no conversion."""
        is_literal = re.fullmatch(r"-?[0-9]+", term.text)
        return Term(f"to_decimal({term.text})", NUMBER) if term.is_integer and not is_literal else term

    def from_context(self, value: Value) -> Term:
        """Return a value of the context as a term; an object with known keys is a record."""
        if isinstance(value, Leaf):
            return value.term
        if not value.fields:
            return NULL
        return self.record({key: self.from_context(each) for key, each in value.fields.items()}, "value")

    def record(self, terms: dict[str, Term], hint: str) -> Term:
        """Return a record of the terms."""
        if not terms:
            raise Untranslatable("an object without keys")
        record = Record(hint)
        values = {key: self.as_value(term) for key, term in terms.items()}
        for key, term in values.items():
            is_null = term.type == NOTHING
            record.fields[key] = Slot(Variable() if is_null else term.type, is_null or term.is_nullable)
        names = inside_names(record)
        return Term("{" + ", ".join(f"{names[key]}: {finished(term)}" for key, term in values.items()) + "}", record)

    def fit(self, term: Term, slot: Slot) -> Term:
        """Return a term as a value of the slot: a record gets the fields that it lacks, other types become json."""
        wanted, found = resolve(slot.type), resolve(term.type)
        if found == NOTHING or isinstance(wanted, Variable):
            return term
        if wanted == JSON and found != JSON:
            return self.functions.json(term)
        if isinstance(wanted, ArrayOf) and isinstance(found, ArrayOf):
            return self._fit_items(term, found, wanted)
        if not isinstance(wanted, Record) or not isinstance(found, Record) or unify(found, wanted) is not None:
            return term
        needed = self.need(term)
        terms = {
            key: self.fit(field_term(needed, key), each) if key in found.fields else NULL
            for key, each in wanted.fields.items()
        }
        names = inside_names(wanted)
        text = "{" + ", ".join(f"{names[key]}: {finished(self.as_value(each))}" for key, each in terms.items()) + "}"
        return Term(text, wanted)

    def _fit_items(self, term: Term, found: ArrayOf, wanted: ArrayOf) -> Term:
        """Return an array with items that may be null, where the place has such items."""
        if unify(found.item.type, wanted.item.type) is None:
            raise Untranslatable("arrays of objects with several shapes")
        if not wanted.item.is_optional or found.item.is_optional:
            return term
        item = f"optional<{scalar_name(wanted.item.type)}>"
        if term.text.endswith("] AS array<decimal>"):
            return replace(term, text=f"{term.text.removesuffix('decimal>')}{item}>", type=wanted)
        if term.is_nullable:
            raise Untranslatable("an array that may be null, beside one with items that may be null")
        name = self.item_name("each")
        return Term(f"[({name} AS {item}) FOR {name} IN {term.at(COMPARE)}]", wanted)

    def refuse_to_drop(self, *terms: Term) -> None:
        """Refuse to leave out a value whose computation ends the evaluation for some inputs."""
        if self.guards is None and any(_CAN_FAIL.search(term.text) for term in terms):
            raise Untranslatable("a comparison that is decided by its types, of a value that may fail")

    def item_name(self, alias: str | None) -> str:
        """Return a name for the item of a closure that no input, step or enclosing closure has."""
        bound = {term.text for _, term in self.scope.items}
        name = node_name(alias or "item")
        number = 1
        while self.is_taken(name) or name in bound:
            number += 1
            name = f"{node_name(alias or 'item')}_{number}"
        return name

    def term(self, node: Node) -> Term:
        """Return the translation of an expression."""
        raise NotImplementedError

    def boolean(self, node: Node) -> Term:
        """Return the translation of a condition."""
        return self.need(self.term(node), BOOLEAN)

    def deferred(self, node: Node, test: Term, *, is_true: bool) -> Term:
        """Return a value that is computed only where the test has this result."""
        raise NotImplementedError

    def established(self, node: Node, *, is_true: bool) -> set[str]:
        """Return the paths that are not null where the condition has this value."""
        raise NotImplementedError


def scalar_name(type_: Type) -> str:
    found = resolve(type_)
    if not isinstance(found, Scalar):
        raise Untranslatable("an array of arrays or objects with items that may be null")
    return found.name


def is_decimal(term: Term) -> bool:
    """Return whether the text of a number is a decimal of the language in every place."""
    return not term.is_nullable and not re.fullmatch(r"-?[0-9]+", term.text) and not term.is_integer


def constant(value: bool) -> Term:
    return Term("true" if value else "false", BOOLEAN)


def conjunction(conjuncts: list[str]) -> Term:
    if not conjuncts:
        return constant(True)
    return Term(" AND ".join(conjuncts), BOOLEAN, AND)


def is_nonzero(text: str) -> bool:
    digits = text.replace(".", "", 1)
    return digits.isdigit() and int(digits) != 0


def type_name(type_: Type) -> str:
    type_ = resolve(type_)
    names = {
        NUMBER: "a number",
        TEXT: "a string",
        BOOLEAN: "a boolean",
        MOMENT: "a date",
        JSON: "a value of several types",
        NOTHING: "null",
    }
    if isinstance(type_, Variable):
        return "a value of unknown type"
    return (
        names[type_]
        if not isinstance(type_, ArrayOf | Record)
        else "an array"
        if isinstance(type_, ArrayOf)
        else "an object"
    )
