"""Arrays, records, maps and sets in expressions: literals, comprehensions, quantifiers, aggregates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack

from vesper.check.narrowing import Facts, facts_when
from vesper.check.scope import Scope
from vesper.diagnostics.codes import Code
from vesper.diagnostics.diagnostic import DiagnosticBag
from vesper.diagnostics.source import Span
from vesper.diagnostics.suggest import did_you_mean
from vesper.ir import nodes as ir
from vesper.spec.types import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGER,
    KEY_TYPES,
    NULL,
    STRING,
    TIMESTAMP,
    ArrayOf,
    MapOf,
    OptionalOf,
    Record,
    SetOf,
    Type,
    is_key,
    optional,
)
from vesper.syntax import ast

_SUMMABLE = (INTEGER, DECIMAL, FLOAT)
_COMPARABLE = (INTEGER, DECIMAL, FLOAT, STRING, BYTES, DATE, TIMESTAMP, DURATION)


class CollectionForms:
    """The part of the expression checker that is about collections and records."""

    scope: Scope
    bag: DiagnosticBag

    @abstractmethod
    def infer(self, expression: ast.Expression, expected: Type | None) -> ir.Expression | None: ...
    @abstractmethod
    def check(self, expression: ast.Expression, expected: Type) -> ir.Expression | None: ...
    @abstractmethod
    def fit(self, found: ir.Expression, expected: Type, span: Span) -> ir.Expression | None: ...
    @abstractmethod
    def place(self, span: Span) -> ir.Place: ...
    @abstractmethod
    def assuming(self, facts: Facts) -> AbstractContextManager[None]: ...

    def collection_form(self, expression: ast.Expression, hint: Type | None) -> ir.Expression | None:
        match expression:
            case ast.ArrayLiteral():
                return self._array(expression, hint)
            case ast.RecordLiteral(entries=()):
                return self._empty(expression, hint)
            case ast.RecordLiteral():
                return self._record(expression, hint)
            case ast.With():
                return self._with(expression)
            case ast.Comprehension():
                return self._comprehension(expression, hint)
            case ast.Quantifier():
                kind = expression.word.text.lower()
                return self._for(kind, expression.binding, None, expression.holds, BOOLEAN, expression.span)
            case ast.Aggregate():
                return self._aggregate(expression)
            case ast.MapLiteral():
                return self._map_literal(expression, hint)
            case _:
                raise AssertionError(f"no form of a collection: {expression}")

    def is_bare_null(self, found: ir.Expression, span: Span) -> bool:
        """True, and reported, for a null whose place says no type: nothing can hold it."""
        if found.type == NULL:
            self.bag.error(Code.TYPE_MISMATCH, span, expected="a value", found="null")
        return found.type == NULL

    # -- literals ---------------------------------------------------------------------------------

    def _array(self, literal: ast.ArrayLiteral, hint: Type | None) -> ir.Expression | None:
        element = hint.element if isinstance(hint, ArrayOf | SetOf) else None
        items = self._alike(literal.items, element)
        if items is None:
            return None
        if not items and element is None:
            what = "the type of an empty array: its place does not say one"
            self.bag.error(Code.NOT_IN_THIS_VERSION, literal.span, what=what)
            return None
        of = element if element is not None else items[0].type
        return ir.Array(tuple(items), of, self.place(literal.span))

    def _alike(self, parts: Sequence[ast.Expression], wanted: Type | None) -> list[ir.Expression] | None:
        """The parts brought to one type: the wanted one, or the one that they have among them."""
        found = [self.infer(part, wanted) for part in parts]
        known = [part for part in found if part is not None]
        if len(known) < len(found):
            return None
        if wanted is None and known:
            wanted = _common(known)
            if wanted == NULL and self.is_bare_null(known[0], parts[0].span):
                return None
        fitted = [
            self.fit(item, wanted, part.span) for item, part in zip(known, parts, strict=True) if wanted is not None
        ]
        sound = [item for item in fitted if item is not None]
        return sound if len(sound) == len(known) else None

    def _map_literal(self, literal: ast.MapLiteral, hint: Type | None) -> ir.Expression | None:
        """`{'a': 1}` is the map of its entries: `{e.key: e.value FOR e IN [{key: 'a', value: 1}]}`."""
        wanted = hint if isinstance(hint, MapOf) else None
        keys = self._alike([key for key, _ in literal.entries], None if wanted is None else wanted.key)
        values = self._alike([value for _, value in literal.entries], None if wanted is None else wanted.value)
        if keys is None or values is None:
            return None
        key_type, value_type = keys[0].type, values[0].type  # `{}` is read as a record, so there is an entry here
        return self._map_of(keys, values, MapOf(key_type, value_type), literal.span)

    def _empty(self, literal: ast.RecordLiteral, hint: Type | None) -> ir.Expression | None:
        """`{}`: a map where one is expected. There is no record without fields."""
        wanted = hint.inner if isinstance(hint, OptionalOf) else hint
        if isinstance(wanted, MapOf):
            return self._map_of([], [], wanted, literal.span)
        if isinstance(wanted, Record):
            return self._record(literal, wanted)
        what = "the type of an empty map: its place does not say one"
        self.bag.error(Code.NOT_IN_THIS_VERSION, literal.span, what=what)
        return None

    def _map_of(
        self, keys: Sequence[ir.Expression], values: Sequence[ir.Expression], type_: MapOf, span: Span
    ) -> ir.Expression | None:
        place = self.place(span)
        entries = [
            ir.RecordValue((("key", key), ("value", value)), place) for key, value in zip(keys, values, strict=True)
        ]
        key_type, value_type = type_.key, type_.value
        entry = Record((("key", key_type), ("value", value_type)))
        number = self.scope.local_count
        self.scope.local_count += 1
        local = ir.Local(number, "entry", entry, place)
        return self._finished(
            "map", (number,), ("entry",), ir.Array(tuple(entries), entry, place), None,
            ir.Field(local, "key", key_type, place), ir.Field(local, "value", value_type, place), span, place,
        )  # fmt: skip

    def _record(self, literal: ast.RecordLiteral, hint: Type | None) -> ir.Expression | None:
        wanted = hint if isinstance(hint, Record) else None
        given: dict[str, ir.Expression] = {}
        is_sound = True
        for word, expression in literal.entries:
            if word.text in given:
                self.bag.error(Code.DUPLICATE_KEY, word.span, key=word.text)
            type_ = None if wanted is None else wanted.field(word.text)
            if wanted is not None and type_ is None:
                help_ = did_you_mean(word.text, [name for name, _ in wanted.fields])
                self.bag.error(Code.UNKNOWN_KEY, word.span, where=f"the record {wanted}", key=word.text, help=help_)
            value = self.infer(expression, None) if type_ is None else self.check(expression, type_)
            if value is None or self.is_bare_null(value, expression.span):
                is_sound = False
            else:
                given[word.text] = value
        place = self.place(literal.span)
        if wanted is None:
            fields = tuple(given.items())
            return ir.RecordValue(fields, place) if is_sound and fields else None
        for name, type_ in wanted.fields:
            if name not in given and isinstance(type_, OptionalOf):
                given[name] = ir.Literal(type_, None, place)
            elif name not in given and is_sound:
                self.bag.error(Code.MISSING_KEY, literal.span, where=f"the record {wanted}", key=name)
                is_sound = False
        if not is_sound or any(name not in given for name, _ in wanted.fields):
            return None
        return ir.RecordValue(tuple((name, given[name]) for name, _ in wanted.fields), place)

    def _with(self, expression: ast.With) -> ir.Expression | None:
        """`r WITH {a: x}` is a new record: the fields of `r`, evaluated once, but for those that are given."""
        base = self.infer(expression.base, None)
        if base is None:
            return None
        if not isinstance(base.type, Record):
            self.bag.error(Code.TYPE_MISMATCH, expression.base.span, expected="a record", found=base.type)
            return None
        changes: dict[str, ir.Expression | None] = {}
        for word, value in expression.changes.entries:
            type_ = base.type.field(word.text)
            if type_ is None:
                help_ = did_you_mean(word.text, [name for name, _ in base.type.fields])
                self.bag.error(Code.UNKNOWN_KEY, word.span, where=f"the record {base.type}", key=word.text, help=help_)
                return None
            changes[word.text] = self.check(value, type_)
        place = self.place(expression.span)
        number = self.scope.local_count
        self.scope.local_count += 1
        fields: list[tuple[str, ir.Expression]] = []
        for name, type_ in base.type.fields:
            local = ir.Local(number, "record", base.type, place)
            part = changes[name] if name in changes else ir.Field(local, name, type_, place)
            if part is None:
                return None
            fields.append((name, part))
        return ir.Let(number, "record", base, ir.RecordValue(tuple(fields), place), place)

    # -- for --------------------------------------------------------------------------------------

    def _comprehension(self, expression: ast.Comprehension, hint: Type | None) -> ir.Expression | None:
        expected = None
        if isinstance(hint, ArrayOf | SetOf):
            expected = hint.element
        elif isinstance(hint, MapOf):
            expected = hint.value
        return self._for(
            expression.kind, expression.binding, expression.key, expression.value, expected, expression.span
        )

    def _aggregate(self, expression: ast.Aggregate) -> ir.Expression | None:
        word = expression.function
        if word.text == "AVG":
            self.bag.error(Code.NOT_IN_THIS_VERSION, word.span, what="`AVG`")
            return None
        kind = word.text.lower()
        if expression.binding is not None:
            return self._for(kind, expression.binding, None, expression.value, None, expression.span)
        # `SUM(xs)` is `SUM(x FOR x IN xs)`; the name is one that nobody can write.
        over = self.infer(expression.value, None)
        item = None if over is None else self._item_types(over, expression.value.span)
        if over is None or item is None:
            return None
        number = self.scope.local_count
        self.scope.local_count += 1
        place = self.place(expression.span)
        local = ir.Local(number, "item", item[0], place)
        return self._finished(kind, (number,), ("item",), over, None, None, local, expression.value.span, place)

    def _for(
        self, kind: str, binding: ast.Binding, key: ast.Expression | None, value: ast.Expression, expected: Type | None,
        span: Span,
    ) -> ir.Expression | None:  # fmt: skip
        over = self.infer(binding.over, None)
        types = None if over is None else self._item_types(over, binding.over.span)
        if types is not None and len(binding.names) > len(types):
            self.bag.error(
                Code.TYPE_MISMATCH, binding.names[1].span, expected="one name", found="two: only a map has keys"
            )
            types = None
        with ExitStack() as bound:
            locals_ = [
                bound.enter_context(self.scope.bound(word, None if types is None else types[position], self.bag))
                for position, word in enumerate(binding.names)
            ]
            where = None if binding.where is None else self.check(binding.where, BOOLEAN)
            facts: Facts = frozenset()
            if binding.where is not None:
                facts = facts_when(binding.where, True, self.scope)
            with self.assuming(facts):
                found_key = None if key is None else self.infer(key, None)
                found = self.check(value, expected) if expected is not None else self.infer(value, None)
        is_sound = (
            found is not None and (where is None) == (binding.where is None) and (found_key is None) == (key is None)
        )
        if over is None or types is None or found is None or not is_sound:
            return None
        numbers = tuple(local.number for local in locals_)
        names = tuple(word.text for word in binding.names)
        return self._finished(kind, numbers, names, over, where, found_key, found, value.span, self.place(span))

    def _finished(
        self, kind: str, numbers: tuple[int, ...], names: tuple[str, ...], over: ir.Expression,
        where: ir.Expression | None, key: ir.Expression | None, value: ir.Expression, span: Span, place: ir.Place,
    ) -> ir.Expression | None:  # fmt: skip
        wanted = {"sum": _SUMMABLE, "min": _COMPARABLE, "max": _COMPARABLE}.get(kind)
        if wanted is not None and value.type not in wanted:
            expected = " or ".join(str(type_) for type_ in wanted)
            self.bag.error(Code.TYPE_MISMATCH, span, expected=f"{expected} in {kind.upper()}", found=value.type)
            return None
        of_key = {"set": value, "map": key}.get(kind)
        if of_key is not None and not is_key(of_key.type):
            expected = f"{KEY_TYPES} as a key"
            self.bag.error(Code.TYPE_MISMATCH, span, expected=expected, found=of_key.type)
            return None
        if self.is_bare_null(value, span):
            return None
        return ir.For(kind, numbers, names, over, where, key, value, ir.for_type(kind, key, value), place)

    def _item_types(self, over: ir.Expression, span: Span) -> tuple[Type, ...] | None:
        types = ir.item_types(over.type)
        if types:
            return types
        self.bag.error(Code.TYPE_MISMATCH, span, expected="an array, a set or a map", found=over.type)
        return None


def _common(values: Sequence[ir.Expression]) -> Type:
    """The type that values have among them; where they have none, that of the first, and the others are reported."""
    types = {value.type for value in values}
    if types == {INTEGER, DECIMAL}:
        return DECIMAL
    others = types - {NULL}
    return optional(others.pop()) if NULL in types and len(others) == 1 else values[0].type
