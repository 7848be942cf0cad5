"""Translation of zen's functions and closures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from vesper.importers.writer import string_literal
from vesper.importers.zen.dates import MONTHS, WEEKDAYS, Dates
from vesper.importers.zen.syntax import CLOSURES, Array, Call, Node, String
from vesper.importers.zen.terms import (
    COALESCE,
    COMPARE,
    NOT,
    OPEN,
    PRODUCT,
    Term,
    Tree,
    Untranslatable,
    field_term,
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
    Type,
    Variable,
    join,
    resolve,
    unify,
)

if TYPE_CHECKING:
    from vesper.importers.zen.expressions import Expressions

_UNSUPPORTED = {
    "rand": "draws a random number, so the outcome would not depend on the inputs alone",
    "fuzzyMatch": "compares texts by a measure that the language does not have",
    "mergeDeep": "merges objects whose keys are known only when it runs",
    "extract": "returns groups of a pattern",
}


class Functions(Dates):
    """Translates calls. The names of its methods are those of zen's functions in snake case."""

    def __init__(self, expressions: Expressions) -> None:
        super().__init__(expressions)
        self._table: dict[str, Callable[[tuple[Node, ...]], Term]] = {
            "len": self._len,
            "contains": self._contains,
            "flatten": self._flatten,
            "upper": lambda arguments: self._text_call("upper", arguments),
            "lower": lambda arguments: self._text_call("lower", arguments),
            "trim": lambda arguments: self._text_call("trim", arguments),
            "startsWith": lambda arguments: self._text_call("starts_with", arguments, 2, BOOLEAN),
            "endsWith": lambda arguments: self._text_call("ends_with", arguments, 2, BOOLEAN),
            "matches": self._matches,
            "split": self._split,
            "join": self._join,
            "abs": self._abs,
            "floor": lambda arguments: self._number_call("round({}, 0, floor)", arguments),
            "ceil": lambda arguments: self._number_call("round({}, 0, ceiling)", arguments),
            "round": lambda arguments: self._rounded("half_up", arguments),
            "trunc": lambda arguments: self._rounded("down", arguments),
            "sum": lambda arguments: self._aggregate("sum", arguments),
            "avg": lambda arguments: self._aggregate("avg", arguments),
            "min": lambda arguments: self._aggregate("min", arguments),
            "max": lambda arguments: self._aggregate("max", arguments),
            "median": self._median,
            "string": lambda arguments: self.text(self._only(arguments)),
            "number": self._number,
            "bool": self._bool,
            "isNumeric": self._is_numeric,
            "type": self._type,
            "keys": self._keys,
            "values": self._values,
            "merge": self._merge,
            "date": self._date,
            "d": self._moment,
            "time": self._time,
            "duration": self._duration,
            "year": lambda arguments: self._part("year", arguments),
            "monthOfYear": lambda arguments: self._part("month", arguments),
            "dayOfMonth": lambda arguments: self._part("day", arguments),
            "dayOfWeek": lambda arguments: self._part("weekday_number", arguments),
            "dayOfYear": lambda arguments: self._part("day_of_year", arguments),
            "monthString": lambda arguments: self._part_name("month", MONTHS, arguments),
            "weekdayString": lambda arguments: self._part_name("weekday_number", WEEKDAYS, arguments),
            "dateString": self._date_string,
            "startOf": lambda arguments: self._boundary(arguments, is_end=False),
            "endOf": lambda arguments: self._boundary(arguments, is_end=True),
        }

    def call(self, node: Call) -> Term:
        """Return the translation of a call."""
        if node.name in CLOSURES:
            return self._closure(node)
        if node.name in _UNSUPPORTED:
            raise Untranslatable(f"`{node.name}` {_UNSUPPORTED[node.name]}")
        if node.name not in self._table:
            raise Untranslatable(f"the function `{node.name}`")
        return self._table[node.name](node.arguments)

    def _text_call(self, name: str, arguments: tuple[Node, ...], count: int = 1, result: Type = TEXT) -> Term:
        if len(arguments) != count:
            raise Untranslatable(f"{len(arguments)} arguments where zen takes {count}", is_fault=True)
        return Term(f"{name}({', '.join(self._need(each, TEXT).text for each in arguments)})", result)

    def _number_call(self, form: str, arguments: tuple[Node, ...]) -> Term:
        term = self.expressions.need(self._only(arguments), NUMBER)
        return Term(form.format(self.expressions.decimal(term).text), NUMBER)

    def _abs(self, arguments: tuple[Node, ...]) -> Term:
        term = self.expressions.need(self._only(arguments), NUMBER)
        return Term(f"abs({term.text})", NUMBER, is_integer=term.is_integer)

    def _rounded(self, mode: str, arguments: tuple[Node, ...]) -> Term:
        if len(arguments) not in (1, 2):
            raise Untranslatable("a rounding with more than two arguments", is_fault=True)
        value = self.expressions.decimal(self._need(arguments[0], NUMBER))
        scale = self._whole(arguments[1]) if len(arguments) == 2 else "0"
        return Term(f"round({value.text}, {scale}, {mode})", NUMBER)

    # Text and conversion

    def text(self, term: Term) -> Term:
        """Return the text of a value, as templates and `string` write it."""
        if term.type == NOTHING:
            return Term("'null'", TEXT)
        type_ = resolve(term.type)
        if isinstance(type_, Variable):
            type_.bound = TEXT
            type_ = TEXT
        if type_ not in (TEXT, NUMBER, BOOLEAN):
            raise Untranslatable("the text of an array, an object or a date")
        if (term.is_nullable and any(check not in self.expressions.facts for check in term.checks)) or term.is_optional:
            value = self.expressions.as_value(term)
            if type_ == TEXT:
                return Term(f"{value.at(COALESCE + 1)} ?? 'null'", TEXT, COALESCE)
            is_null = self.expressions.is_null(term)
            text = f"require({term.text})" if term.is_optional else term.text
            return Term(f"IF {is_null.text} THEN 'null' ELSE text({text})", TEXT, OPEN)
        return term if type_ == TEXT else Term(f"text({term.text})", TEXT)

    def json(self, term: Term) -> Term:
        """Return a value as json, null where the value is null. A number stays a number of JSON."""
        type_ = resolve(term.type)
        if type_ == JSON:
            return self.expressions.as_value(term)
        if type_ == NOTHING:
            return term
        if (term.is_optional and not term.is_path) or not _is_plain(type_):
            raise Untranslatable("an object, or a computed value that may be null, where values of several types meet")
        text = f"parse_json(text({term.text}))" if type_ == NUMBER else f"to_json({term.text})"
        is_null = self.expressions.is_null(term)
        if is_null.text == "false" and not term.is_optional:
            return Term(text, JSON)
        test = is_null.text if is_null.text != "false" else f"{term.text} IS NULL"
        return Term(f"IF {test} THEN null ELSE {text}", JSON, OPEN, is_optional=True)

    def _number(self, arguments: tuple[Node, ...]) -> Term:
        term = self.expressions.need(self._only(arguments))
        match resolve(term.type):
            case t if t == NUMBER:
                return term
            case t if t == TEXT:
                return Term(f"parse_decimal(trim({term.text}))", NUMBER)
            case t if t == BOOLEAN:
                return Term(f"IF {term.text} THEN 1 ELSE 0", NUMBER, OPEN, is_integer=True)
        return self.expressions.need(term, NUMBER)

    def _bool(self, arguments: tuple[Node, ...]) -> Term:
        term = self._only(arguments)
        type_ = resolve(term.type)
        if type_ == NOTHING:
            return Term("false", BOOLEAN)
        if isinstance(type_, Variable):
            unify(type_, BOOLEAN)
            type_ = BOOLEAN
        checks = self.expressions.is_null(term, is_not=True)
        prefix = f"{checks.at(4)} AND " if checks.text != "true" else ""
        level = 2 if prefix else None
        if term.is_optional:
            term = Term(f"require({term.text})", type_)
        if type_ == BOOLEAN:
            return Term(f"{prefix}{term.at(3)}", BOOLEAN, level or term.level)
        if type_ == NUMBER:
            return Term(f"{prefix}{term.at(COALESCE)} != 0", BOOLEAN, level or COMPARE)
        if type_ == TEXT:
            return Term(f"{prefix}{term.at(COALESCE)} IN ['true', '']", BOOLEAN, level or COMPARE)
        return checks

    def _is_numeric(self, arguments: tuple[Node, ...]) -> Term:
        term = self._only(arguments)
        match resolve(term.type):
            case t if t == NUMBER:
                return self.expressions.is_null(term, is_not=True)
            case t if t == TEXT:
                text = self.expressions.need(term, TEXT).text
                return Term(f"matches(trim({text}), '^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)$')", BOOLEAN)
        return Term("false", BOOLEAN)

    def _type(self, arguments: tuple[Node, ...]) -> Term:
        term = self._only(arguments)
        type_ = resolve(term.type)
        if type_ == JSON:
            value = self.expressions.need(term)
            return Term(f"IF kind({value.text}) == boolean THEN 'bool' ELSE text(kind({value.text}))", TEXT, OPEN)
        if isinstance(type_, Variable):
            raise Untranslatable("`type` of a value that nothing else says anything about")
        names = {NUMBER: "number", TEXT: "string", BOOLEAN: "bool", NOTHING: "null", MOMENT: "date"}
        name = (
            names[type_]
            if not isinstance(type_, ArrayOf | Record)
            else "array"
            if isinstance(type_, ArrayOf)
            else "object"
        )
        is_null = self.expressions.is_null(term)
        if is_null.text == "false" or type_ == NOTHING:
            self.expressions.refuse_to_drop(term)
            return Term(f"'{name}'", TEXT)
        return Term(f"IF {is_null.text} THEN 'null' ELSE '{name}'", TEXT, OPEN)

    def _matches(self, arguments: tuple[Node, ...]) -> Term:
        if len(arguments) != 2 or not isinstance(arguments[1], String):
            raise Untranslatable("`matches` with a pattern that is computed")
        # SEMANTICS: zen looks for the pattern anywhere in the text.
        return Term(f"matches({self._need(arguments[0], TEXT).text}, {string_literal(arguments[1].text)})", BOOLEAN)

    def _split(self, arguments: tuple[Node, ...]) -> Term:
        return replace(self._text_call("split", arguments, 2), type=ArrayOf(Slot(TEXT)))

    def _join(self, arguments: tuple[Node, ...]) -> Term:
        if len(arguments) != 2:
            raise Untranslatable("`join` without a separator", is_fault=True)
        return Term(f"join({self._array(arguments[0], TEXT).text}, {self._need(arguments[1], TEXT).text})", TEXT)

    # Numbers

    def _aggregate(self, name: str, arguments: tuple[Node, ...]) -> Term:
        if len(arguments) != 1:
            raise Untranslatable(f"`{name}` of several arguments; zen takes one array", is_fault=True)
        if name in ("min", "max") and isinstance(arguments[0], Array) and len(arguments[0].items) == 2:
            items = [self.expressions.decimal(self._need(each, NUMBER)) for each in arguments[0].items]
            is_integer = all(item.is_integer for item in items)
            return Term(f"{name}({', '.join(item.text for item in items)})", NUMBER, is_integer=is_integer)
        array = self._array(arguments[0], NUMBER)
        return Term(f"{name}({array.text})", NUMBER)

    def _median(self, arguments: tuple[Node, ...]) -> Term:
        if len(arguments) != 1:
            raise Untranslatable("`median` of several arguments", is_fault=True)
        sorted_ = f"sort({self._array(arguments[0], NUMBER).text})"
        name = self.expressions.item_name("sorted")
        middle = f"quot(length({name}), 2)"
        even = f"({name}[{middle} - 1] + {name}[{middle}]) / 2"
        text = f"LET {name} = {sorted_} IN IF rem(length({name}), 2) == 1 THEN {name}[{middle}] ELSE {even}"
        return Term(text, NUMBER, OPEN)

    def remainder(self, first: Term, second: Term) -> Term:
        """Return `first % second`, with the sign of the first."""
        first, second = self.expressions.decimal(first), self.expressions.decimal(second)
        quotient = f"round({first.at(PRODUCT)} / {second.at(PRODUCT + 1)}, 0, down)"
        return Term(f"({first.text} - {second.at(PRODUCT)} * {quotient})", NUMBER)

    def power(self, first: Term, second: Term) -> Term:
        """Return `first ^ second` for a whole second."""
        whole = second.text if second.text.lstrip("-").isdigit() else f"to_integer({second.text})"
        base = f"to_decimal({first.text})" if first.is_integer or first.text.isdigit() else first.text
        return Term(f"pow({base}, {whole})", NUMBER)

    # Collections

    def _len(self, arguments: tuple[Node, ...]) -> Term:
        term = self._only(arguments)
        type_ = resolve(term.type)
        if isinstance(type_, Variable):
            type_.bound = ArrayOf(Slot(Variable()))
            type_ = type_.bound
        if type_ != TEXT and not isinstance(type_, ArrayOf):
            raise Untranslatable("the length of a value that is neither a string nor an array", is_fault=type_ != JSON)
        return Term(f"length({self.expressions.need(replace(term, type=type_)).text})", NUMBER, is_integer=True)

    def _contains(self, arguments: tuple[Node, ...]) -> Term:
        if len(arguments) != 2:
            raise Untranslatable("`contains` without two arguments", is_fault=True)
        first, second = self._term(arguments[0]), self._term(arguments[1])
        type_ = resolve(first.type)
        if isinstance(type_, Variable):
            type_.bound = ArrayOf(Slot(second.type)) if second.type != NOTHING else TEXT
            type_ = type_.bound
            first = replace(first, type=type_)
        if isinstance(type_, ArrayOf):
            first = self.expressions.need(first)
            return self.expressions.contained(second, first, is_not=False)
        first, second = self.expressions.need(first, TEXT), self.expressions.need(second, TEXT)
        return Term(f"{first.at(COALESCE)} CONTAINS {second.at(COALESCE)}", BOOLEAN, COMPARE)

    def _flatten(self, arguments: tuple[Node, ...]) -> Term:
        array = self._array(arguments[0]) if len(arguments) == 1 else self._array(Array(arguments))
        type_ = resolve(array.type)
        assert isinstance(type_, ArrayOf)
        inner = resolve(type_.item.type)
        return Term(f"flatten({array.text})", inner) if isinstance(inner, ArrayOf) else array

    def _keys(self, arguments: tuple[Node, ...]) -> Term:
        type_ = resolve(self._only(arguments).type)
        if not isinstance(type_, Record) or any(slot.is_optional for slot in type_.fields.values()):
            raise Untranslatable("`keys` of a value whose keys are known only when it runs")
        return Term("[" + ", ".join(map(string_literal, type_.fields)) + "]", ArrayOf(Slot(TEXT)))

    def _values(self, arguments: tuple[Node, ...]) -> Term:
        if len(arguments) != 1:
            raise Untranslatable("`values` without its one argument", is_fault=True)
        terms = [self.expressions.as_value(each) for each in self._field_terms(arguments[0])]
        slot = join([Slot(term.type, term.is_nullable) for term in terms], "value")
        if resolve(slot.type) == JSON or isinstance(resolve(slot.type), Record):
            raise Untranslatable("`values` of an object whose values have several types")
        text = "[" + ", ".join(term.text for term in terms if term.type != NOTHING) + "]"
        if not slot.is_optional:
            return Term(text, ArrayOf(slot))
        # SEMANTICS: keys that are absent in zen are null here, and have no value.
        name = self.expressions.item_name("each")
        return Term(f"[{name} FOR {name} IN {text} WHERE {name} IS NOT NULL]", ArrayOf(Slot(slot.type)))

    def _field_terms(self, node: Node) -> list[Term]:
        value = self.expressions.base(node)
        if isinstance(value, Tree):
            return [self.expressions.from_context(each) for each in value.fields.values()]
        record = resolve(value.term.type)
        if not isinstance(record, Record) or not value.term.is_path:
            raise Untranslatable("`values` of a value whose keys are known only when it runs")
        base = self.expressions.need(value.term)
        return [field_term(base, key) for key in list(record.fields)]

    def _merge(self, arguments: tuple[Node, ...]) -> Term:
        arrays = [self._array(each) for each in (arguments[0].items if isinstance(arguments[0], Array) else arguments)]
        item = arrays[0].type
        for each in arrays[1:]:
            if unify(item, each.type) is None:
                raise Untranslatable("`merge` of arrays with items of several types")
        return Term(" + ".join(each.at(PRODUCT) for each in arrays), item, 6)

    def _closure(self, node: Call) -> Term:
        source = self._array(node.arguments[0])
        type_ = resolve(source.type)
        assert isinstance(type_, ArrayOf)
        name = self.expressions.item_name(node.alias)
        checks = (name,) if type_.item.is_optional else ()
        item = Term(name, resolve(type_.item.type), checks=checks, is_path=True)
        self.expressions.scope.items.append((node.alias, item))
        # An error inside a closure ends the evaluation: a guard cannot name the item.
        with self.expressions.mode(None, self.expressions.facts):
            body = self._body(node)
        self.expressions.scope.items.pop()
        binding = f"{name} IN {source.at(COMPARE)}"
        match node.name:
            case "map":
                value = self.expressions.as_value(self.expressions.decimal(body))
                return Term(f"[{value.text} FOR {binding}]", ArrayOf(Slot(value.type, value.is_nullable)))
            case "flatMap":
                return Term(f"flatten([{body.text} FOR {binding}])", body.type)
            case "filter":
                return Term(f"[{name} FOR {binding} WHERE {body.text}]", type_)
            case "some":
                return Term(f"EXISTS {binding} SATISFIES {body.text}", BOOLEAN, OPEN)
            case "all":
                return Term(f"FORALL {binding} SATISFIES {body.text}", BOOLEAN, OPEN)
            case "none":
                return Term(f"NOT (EXISTS {binding} SATISFIES {body.text})", BOOLEAN, NOT)
            case "count":
                return Term(f"COUNT({name} FOR {binding} WHERE {body.text})", NUMBER, is_integer=True)
        return Term(f"COUNT({name} FOR {binding} WHERE {body.text}) == 1", BOOLEAN, COMPARE)

    def _body(self, node: Call) -> Term:
        term = self._term(node.arguments[1])
        if node.name == "map":
            return term
        if node.name == "flatMap":
            if not isinstance(resolve(term.type), ArrayOf):
                raise Untranslatable("`flatMap` of values that are no arrays")
            return self.expressions.need(term)
        return self.expressions.need(term, BOOLEAN)


def _is_plain(type_: Type) -> bool:
    return type_ in (NUMBER, TEXT, BOOLEAN) or (
        isinstance(type_, ArrayOf) and resolve(type_.item.type) in (TEXT, BOOLEAN)
    )
