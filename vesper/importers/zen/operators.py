"""Translation of operators: logic, arithmetic, comparison and membership."""

from __future__ import annotations

from dataclasses import replace

from vesper.importers.writer import string_literal
from vesper.importers.zen.core import TermBuilder, conjunction, constant, is_nonzero, scalar_name, type_name
from vesper.importers.zen.syntax import (
    Array,
    Interval,
    Node,
)
from vesper.importers.zen.terms import (
    AND,
    ATOM,
    COALESCE,
    COMPARE,
    NOT,
    OPEN,
    OR,
    PREFIX,
    PRODUCT,
    SUM,
    Term,
    Untranslatable,
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
    Slot,
    Variable,
    join,
    resolve,
    unify,
)

_ARITHMETIC = {"-": ("-", SUM), "*": ("*", PRODUCT), "/": ("/", PRODUCT)}

_ORDER = frozenset({"<", "<=", ">", ">="})


class Operators(TermBuilder):
    """Translates unary and binary operators."""

    def _unary(self, operator: str, operand: Node) -> Term:
        if operator == "not":
            term = self.boolean(operand)
            return Term(f"NOT {term.at(NOT)}", BOOLEAN, NOT)
        term = self.need(self.term(operand), NUMBER)
        if operator == "+":
            return term
        return Term(f"-{term.at(ATOM)}", NUMBER, PREFIX, is_integer=term.is_integer)

    def _binary(self, operator: str, left: Node, right: Node) -> Term:
        if operator in ("and", "or"):
            return self._logical(operator, left, right)
        if operator in ("in", "not in"):
            return self._membership(left, right, is_not=operator == "not in")
        if operator == "??":
            return self._coalesce(self.term(left), right)
        first, second = self.term(left), self.term(right)
        if operator in ("==", "!="):
            return self._equal(first, second, is_not=operator == "!=")
        if operator in _ORDER:
            wanted = MOMENT if MOMENT in (resolve(first.type), resolve(second.type)) else NUMBER
            first, second = self.need(first, wanted), self.need(second, wanted)
            return Term(f"{first.at(COALESCE)} {operator} {second.at(COALESCE)}", BOOLEAN, COMPARE)
        if operator == "+" and TEXT in (resolve(first.type), resolve(second.type)):
            first, second = self.need(first, TEXT), self.need(second, TEXT)
            return Term(f"{first.at(SUM)} + {second.at(PRODUCT)}", TEXT, SUM)
        first, second = self.need(first, NUMBER), self.need(second, NUMBER)
        is_integer = first.is_integer and second.is_integer
        if operator == "+":
            return Term(f"{first.at(SUM)} + {second.at(PRODUCT)}", NUMBER, SUM, is_integer=is_integer)
        if operator == "%":
            return self.functions.remainder(first, second)
        if operator == "^":
            return self.functions.power(first, second)
        sign, level = _ARITHMETIC[operator]
        if operator == "/" and self.guards is not None and not is_nonzero(second.text):
            self.guards.append(f"{second.at(COALESCE)} != 0")
        text = f"{first.at(level)} {sign} {second.at(level + 1)}"
        return Term(text, NUMBER, level, is_integer=is_integer and operator != "/")

    def _logical(self, operator: str, left: Node, right: Node) -> Term:
        word, level = ("AND", AND) if operator == "and" else ("OR", OR)
        first = self.boolean(left)
        before = self.facts
        self.facts = before | self.established(left, is_true=operator == "and")
        second = self._deferred_side(right, first, is_and=operator == "and")
        self.facts = before
        return Term(f"{first.at(level)} {word} {second.at(level + 1)}", BOOLEAN, level)

    def _deferred_side(self, node: Node, first: Term, *, is_and: bool) -> Term:
        """Return the right side of `and` or `or`, whose guards matter only where the left side does not decide."""
        if self.guards is None:
            return self.boolean(node)
        facts = set(self.facts)
        with self.mode([], set(facts)):
            self.boolean(node)
            guards = self.guards or []
        if guards:
            decided = f"NOT {first.at(NOT)}" if is_and else first.at(OR)
            self.guards.append(f"({decided} OR {conjunction(guards).at(AND)})")
        with self.mode(None, facts):
            return self.boolean(node)

    def _coalesce(self, first: Term, right: Node) -> Term:
        if first.type == NOTHING:
            return self.term(right)
        if first.slot is not None and not first.checks:
            first.slot.is_optional = True
        self_value = self.as_value(first)
        second = self.deferred(right, self.is_null(first), is_true=True)
        if second.type == NOTHING:
            return self_value
        if isinstance(second.type, ArrayOf) and isinstance(resolve(first.type), ArrayOf):
            unify(second.type, first.type)
        slot = join([Slot(first.type, False), Slot(second.type, second.is_nullable)], "value")
        if not self_value.is_nullable:
            return self_value
        first_fitted, second = self.fit(self_value, slot), self.fit(second, slot)
        if second.is_integer != first_fitted.is_integer:
            second = self.decimal(second)
        text = f"{first_fitted.at(COALESCE + 1)} ?? {second.at(COALESCE)}"
        is_integer = first_fitted.is_integer and second.is_integer
        return Term(text, slot.type, COALESCE, is_optional=second.is_nullable, is_integer=is_integer)

    def _equal(self, first: Term, second: Term, *, is_not: bool) -> Term:
        if first.type == NOTHING or second.type == NOTHING:
            return self.is_null(second if first.type == NOTHING else first, is_not=is_not)
        type_ = unify(first.type, second.type)
        if type_ is None:
            if JSON in (resolve(first.type), resolve(second.type)):
                first, second = (self.functions.json(each) for each in (first, second))
            else:
                self.refuse_to_drop(first, second)
                return constant(is_not)
        elif isinstance(type_, ArrayOf | Record):
            # SEMANTICS: zen compares neither arrays nor objects; such a comparison is false.
            self.refuse_to_drop(first, second)
            return constant(is_not)
        sign = "!=" if is_not else "=="
        prefixes: list[str] = []
        for term in (first, second):
            prefixes += [check for check in term.checks if check != term.text and check not in self.facts]
        text = f"{first.at(COALESCE)} {sign} {second.at(COALESCE)}"
        if not prefixes:
            return Term(text, BOOLEAN, COMPARE)
        if first.is_nullable and second.is_nullable:
            first, second = self.as_value(first), self.as_value(second)
            return Term(f"{first.at(COALESCE)} {sign} {second.at(COALESCE)}", BOOLEAN, COMPARE)
        if is_not:
            return Term(" OR ".join([*(f"{check} IS NULL" for check in prefixes), text]), BOOLEAN, OR)
        return Term(" AND ".join([*(f"{check} IS NOT NULL" for check in prefixes), text]), BOOLEAN, AND)

    def _membership(self, left: Node, right: Node, *, is_not: bool) -> Term:
        value = self.term(left)
        while isinstance(right, Array) and len(right.items) == 1 and isinstance(right.items[0], Interval):
            right = right.items[0]
        if isinstance(right, Interval):
            return self._within(value, right, is_not=is_not)
        if isinstance(right, Array) and not right.items:
            return constant(is_not)
        collection = self.term(right)
        if isinstance(right, Array) and collection.text.endswith("] AS array<decimal>"):
            collection = replace(collection, text=collection.text.removesuffix(" AS array<decimal>"))
        type_ = resolve(collection.type)
        if isinstance(type_, Record):
            keys = ", ".join(string_literal(key) for key in type_.fields)
            return self.contained(value, Term(f"[{keys}]", ArrayOf(Slot(TEXT))), is_not=is_not)
        if isinstance(type_, Variable):
            unify(type_, ArrayOf(Slot(Variable())))
            type_ = resolve(type_)
        if not isinstance(type_, ArrayOf):
            raise Untranslatable(f"`in` {type_name(type_)}", is_fault=type_ != JSON)
        return self.contained(value, self.need(replace(collection, type=type_)), is_not=is_not)

    def contained(self, value: Term, collection: Term, *, is_not: bool) -> Term:
        """Return whether a value is an item of an array; null is no item unless the array has nulls."""
        type_ = resolve(collection.type)
        assert isinstance(type_, ArrayOf)
        if value.type == NOTHING or unify(value.type, type_.item.type) is None:
            self.refuse_to_drop(value, collection)
            return constant(is_not)
        value = self.decimal(value)
        if type_.item.is_optional:
            value = self.as_value(value)
            if not value.is_nullable:
                value = Term(f"({value.at(ATOM)} AS optional<{scalar_name(value.type)}>)", value.type)
        word = "NOT IN" if is_not else "IN"
        checks = [check for check in value.checks if check not in self.facts]
        if value.is_optional and not type_.item.is_optional:
            checks.append(value.at(COMPARE))
            value = Term(f"require({value.text})", value.type)
        if value.text.lstrip("-").isdigit():
            value = Term(f"({value.at(ATOM)} AS decimal)", NUMBER)
        text = f"{value.at(COALESCE)} {word} {collection.at(COALESCE)}"
        if not checks:
            return Term(text, BOOLEAN, COMPARE)
        if is_not:
            return Term(" OR ".join([*(f"{check} IS NULL" for check in checks), text]), BOOLEAN, OR)
        return Term(" AND ".join([*(f"{check} IS NOT NULL" for check in checks), text]), BOOLEAN, AND)

    def _within(self, value: Term, interval: Interval, *, is_not: bool) -> Term:
        low, high = self.term(interval.left), self.term(interval.right)
        wanted = MOMENT if resolve(low.type) == MOMENT else NUMBER
        value, low, high = (self.need(each, wanted) for each in (value, low, high))
        at_least, at_most = (">=" if interval.has_left else ">"), ("<=" if interval.has_right else "<")
        if self.guards is None and "require(" in high.text:
            # SEMANTICS: zen computes both ends before it compares.
            name = self.item_name("high")
            inner = self._within_text(value, low, Term(name, wanted), at_least, at_most, is_not=is_not)
            return Term(f"LET {name} = {high.text} IN {inner.text}", BOOLEAN, OPEN)
        return self._within_text(value, low, high, at_least, at_most, is_not=is_not)

    def _within_text(self, value: Term, low: Term, high: Term, at_least: str, at_most: str, *, is_not: bool) -> Term:
        subject = value.at(COALESCE)
        text = f"{subject} {at_least} {low.at(COALESCE)} AND {subject} {at_most} {high.at(COALESCE)}"
        return Term(f"NOT ({text})", BOOLEAN, NOT) if is_not else Term(text, BOOLEAN, AND)
