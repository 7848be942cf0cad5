"""Arrays, records, maps and sets in expressions: literals and WITH."""

from __future__ import annotations

from collections.abc import Sequence

from vesper.language.check.expressions.binders import Binders
from vesper.language.check.recursive_types import as_record
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.source import Span
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.values.outside_names import spelled_type
from vesper.values.types import (
    BOOLEAN,
    DECIMAL,
    INTEGER,
    JSON,
    NULL,
    STRING,
    ArrayOf,
    MapOf,
    OptionalOf,
    Record,
    Recursive,
    SetOf,
    Type,
    optional,
)


class CollectionForms(Binders):
    """The part of the expression checker for collections and records."""

    def collection_form(self, expression: ast.Expression, hint: Type | None) -> ir.Expression | None:
        """Check a collection or record expression; None after reporting an error."""
        match expression:
            case ast.ArrayLiteral():
                return self._array(expression, hint)
            case ast.RecordLiteral():
                return self._record(expression, hint)
            case ast.With():
                return self._with(expression)
            case ast.Comprehension():
                return self.comprehension(expression, hint)
            case ast.Quantifier():
                kind = expression.word.text.lower()
                return self.bound_form(kind, expression.binding, expression.holds, expression.span, BOOLEAN)
            case ast.Aggregate():
                return self.aggregate(expression.function.text.lower(), expression)
            case ast.MapLiteral():
                return self._map_literal(expression, hint)
            case _:
                raise AssertionError(f"no form of a collection: {expression}")

    # -- literals ---------------------------------------------------------------------------------

    def _array(self, literal: ast.ArrayLiteral, hint: Type | None) -> ir.Expression | None:
        element = hint.element if isinstance(hint, ArrayOf | SetOf) else None
        items = self._unify(literal.items, element)
        if items is None:
            return None
        if not items and element is None:
            self._report_untyped(literal.span, "array<integer>")
            return None
        place = self.place(literal.span)
        array = ir.Array(tuple(items), element if element is not None else items[0].type, place)
        if isinstance(hint, SetOf):  # SEMANTICS: an array literal where a set is expected is a set
            return ir.Call("array.to_set", (hint.element,), (array,), hint, place)
        return array

    def _unify(self, parts: Sequence[ast.Expression], wanted: Type | None) -> list[ir.Expression] | None:
        """Check the parts and convert them to the wanted type, or to their common type."""
        found = {index: self.infer(part, wanted) for index, part in enumerate(parts) if not _is_empty(part)}
        if wanted is None:
            known = [part for part in found.values() if part is not None]
            if len(known) < len(found):
                return None
            wanted = _common_type(known) if known else None
            if known and wanted == NULL and self.is_bare_null(known[0], parts[next(iter(found))].span):
                return None
        # `[[1], []]`: non-empty parts give the type of the empty ones.
        found |= {index: self.infer(part, wanted) for index, part in enumerate(parts) if _is_empty(part)}
        if wanted is None:
            return None if parts else []
        fitted = [
            None if item is None else self.fit(item, wanted, parts[index].span) for index, item in sorted(found.items())
        ]
        sound = [item for item in fitted if item is not None]
        return sound if len(sound) == len(parts) else None

    def _map_literal(self, literal: ast.MapLiteral, hint: Type | None) -> ir.Expression | None:
        """Check a map literal. `{'a': 1}` becomes `{e.key: e.value FOR e IN [{key: 'a', value: 1}]}`."""
        place = self.place(literal.span)
        wanted = hint if isinstance(hint, MapOf) else None
        self._refuse_repeats(literal)
        keys = self._unify([key for key, _ in literal.entries], None if wanted is None else wanted.key)
        values = self._unify([value for _, value in literal.entries], None if wanted is None else wanted.value)
        if keys is None or values is None:
            return None
        entries = [
            ir.RecordValue((("key", key), ("value", value)), place) for key, value in zip(keys, values, strict=True)
        ]
        key_type, value_type = keys[0].type, values[0].type  # `{}` is a record, so a map literal has an entry
        entry = Record((("key", key_type), ("value", value_type)))
        number = self.fresh_local()
        local = ir.Local(number, "entry", entry, place)
        made = ir.For(
            "map", (number,), ("entry",), ir.Array(tuple(entries), entry, place), None,
            ir.Field(local, "key", key_type, place), ir.Field(local, "value", value_type, place), value_type, place,
        )  # fmt: skip
        return self.finish(made, literal.span)

    def _refuse_repeats(self, literal: ast.MapLiteral) -> None:
        """Report keys that are written twice, since such a literal always fails."""
        seen: set[tuple[type, object]] = set()
        for key, _ in literal.entries:
            if not isinstance(key, ast.String | ast.Number | ast.Boolean | ast.Name):
                continue
            text = key.value if isinstance(key, ast.Boolean) else key.text
            # A bare word and a string may be the same enum member; two equal names are not reported.
            if (type(key), text) in seen and not isinstance(key, ast.Name):
                help_ = "keep one of the two: a map with two equal keys always fails"
                self.bag.error(Code.DUPLICATE_KEY, key.span, key=self.bag.source.slice(key.span), help=help_)
            seen.add((type(key), text))

    def _record(self, literal: ast.RecordLiteral, hint: Type | None) -> ir.Expression | None:
        hint = as_record(hint) if isinstance(hint, Recursive) else hint  # `fit` converts it
        if not literal.entries and not isinstance(hint, Record):
            return self._empty_map(literal, hint)
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
        self._add_omitted_fields(wanted, given, place)
        for name, type_ in wanted.fields:
            if name not in given and isinstance(type_, OptionalOf):
                given[name] = ir.Literal(type_, None, place)
            elif name not in given and is_sound:
                self.bag.error(Code.MISSING_KEY, literal.span, where=f"the record {wanted}", key=name)
                is_sound = False
        if not is_sound or any(name not in given for name, _ in wanted.fields):
            return None
        return ir.RecordValue(
            tuple((name, given[name]) for name, _ in wanted.fields), place, declared=_record_with_outside_names(wanted)
        )

    def _add_omitted_fields(self, wanted: Record, given: dict[str, ir.Expression], place: ir.Place) -> None:
        """Add the fields that a literal may omit: flags and the undeclared keys.

        The flag of an omitted field is true, and there are no undeclared keys.
        """
        if wanted.outside is None:
            return
        for name, flag in wanted.outside.flags:
            given.setdefault(flag, ir.Literal(BOOLEAN, name not in given, place))
        rest = wanted.outside.rest
        if rest is not None:
            given.setdefault(rest, ir.Literal(MapOf(STRING, JSON), {}, place))

    def _empty_map(self, literal: ast.RecordLiteral, hint: Type | None) -> ir.Expression | None:
        """Check `{}`: an empty map where a map is expected, an error elsewhere."""
        if isinstance(hint, MapOf):
            return ir.Literal(hint, {}, self.place(literal.span))
        self._report_untyped(literal.span, "map<string, integer>")
        return None

    def _report_untyped(self, span: Span, example: str) -> None:
        """Report `[]` or `{}` without a type from the context."""
        help_ = f"compute it in a step of its own with a `type`, such as `type: {example}`"
        self.bag.error(Code.TYPE_MISMATCH, span, expected="a value of a known type", found="an empty one", help=help_)

    def _with(self, expression: ast.With) -> ir.Expression | None:
        """Check `r WITH {a: x}`. It is a new record with the fields of `r`, evaluated once, except the given ones."""
        base = self.infer(expression.base, None)
        if base is None:
            return None
        if not isinstance(base.type, Record):
            help_ = "write a whole record: the type contains itself" if isinstance(base.type, Recursive) else None
            self.bag.error(Code.TYPE_MISMATCH, expression.base.span, expected="a record", found=base.type, help=help_)
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
        for name, flag in base.type.outside.flags if base.type.outside is not None else ():
            if name in changes:
                changes.setdefault(flag, ir.Literal(BOOLEAN, False, place))
        number = self.fresh_local()
        fields: list[tuple[str, ir.Expression]] = []
        for name, type_ in base.type.fields:
            local = ir.Local(number, "record", base.type, place)
            part = changes[name] if name in changes else ir.Field(local, name, type_, place)
            if part is None:
                return None
            fields.append((name, part))
        changed = ir.RecordValue(tuple(fields), place, declared=_record_with_outside_names(base.type))
        return ir.Let(number, "record", base, changed, place)


def _record_with_outside_names(type_: Record) -> Record | None:
    """Return the record type if it has outside names, else None. A field of the record may also have them."""
    return None if spelled_type(type_) is type_ else type_


def _is_empty(literal: ast.Expression) -> bool:
    """Return whether the literal is `[]` or `{}`, which have no type of their own."""
    if isinstance(literal, ast.ArrayLiteral):
        return not literal.items
    return isinstance(literal, ast.RecordLiteral) and not literal.entries


def _common_type(values: Sequence[ir.Expression]) -> Type:
    """Return the common type of values, or else the type of the first."""
    types = {value.type for value in values}
    if types == {INTEGER, DECIMAL}:
        return DECIMAL
    others = types - {NULL}
    return optional(others.pop()) if NULL in types and len(others) == 1 else values[0].type
