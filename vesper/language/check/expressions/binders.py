"""Expressions evaluated for each item of a collection: comprehensions, quantifiers, aggregates, functions with FOR.

All of them become one IR form, the `for`; its kind decides how the values are combined.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace

from vesper.language.check.expressions.checker_part import CheckerPart
from vesper.language.check.expressions.narrowing import NOTHING, facts_when
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.source import Span
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.values.types import (
    BOOLEAN,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGER,
    KEY_TYPES,
    ArrayOf,
    MapOf,
    SetOf,
    Type,
    is_key,
    is_ordered,
    is_sortable,
)

AGGREGATES = ("sum", "count", "min", "max", "avg")
CONDITIONS = ("forall", "exists", "take_while", "drop_while")
MAX_WIDENED = 64
"""Maximum number of folds per node whose initial integer becomes a decimal.

Their values, and folds inside them, are checked twice.
"""

_NUMBERS = (INTEGER, DECIMAL, FLOAT)
_ORDERED = (is_ordered, "a type that has an order")
_KEY = (is_key, f"{KEY_TYPES} as a key")
_WANTED: dict[str, tuple[Callable[[Type], bool], str]] = {
    "sum": (lambda type_: type_ in (*_NUMBERS, DURATION), "integer, decimal, float or duration"),
    "avg": (lambda type_: type_ in _NUMBERS, "integer, decimal or float"),
    **dict.fromkeys(("min", "max", "min_by", "max_by"), _ORDERED),
    "sort_by": (is_sortable, "a type that has an order"),
    **dict.fromkeys(("set", "group_by", "count_by", "index_by"), _KEY),
}
"""Type test and its description for the value of a `for`, by kind. Other kinds accept any type."""


@dataclass(frozen=True, slots=True)
class _InitialValue:
    """The initial value of a fold, and its name in the fold's expression."""

    name: ast.Word
    value: ir.Expression


class Binders(CheckerPart):
    """The part of the expression checker for `for` forms."""

    _widened = 0

    def comprehension(self, expression: ast.Comprehension, hint: Type | None) -> ir.Expression | None:
        """Check an array, set or map comprehension."""
        expected = None
        if isinstance(hint, ArrayOf | SetOf):
            expected = hint.element
        elif isinstance(hint, MapOf):
            expected = hint.value
        return self.bound_form(
            expression.kind, expression.binding, expression.value, expression.span, expected, expression.key
        )

    def aggregate(self, kind: str, expression: ast.Aggregate) -> ir.Expression | None:
        """Check SUM, COUNT, MIN, MAX or AVG."""
        if expression.binding is not None:
            return self.bound_form(kind, expression.binding, expression.value, expression.span)
        # `SUM(xs)` is `SUM(x FOR x IN xs)` with a name that the grammar does not allow authors to write.
        over = self.infer(expression.value, None)
        item = None if over is None else self._item_types(over, expression.value.span)
        if over is None or item is None:
            return None
        number = self.fresh_local()
        place = self.place(expression.span)
        local = ir.Local(number, "item", item[0], place)
        made = ir.For(kind, (number,), ("item",), over, None, None, local, local.type, place)
        return self.finish(made, expression.value.span)

    def form(self, kind: str, call: ast.Call, usage: str, hint: Type | None) -> ir.Expression | None:
        """Check a function evaluated for each item: `sort_by(line.price FOR line IN lines, descending)`."""
        binding = call.binding
        named = 1 if kind == "fold" else 0
        maximum = 2 if kind == "sort_by" else 1
        if binding is None or not 1 <= len(call.arguments) <= maximum or len(call.named) != named:
            given = f"{len(call.arguments)} arguments" if binding is not None else "values without a FOR"
            self.bag.error(
                Code.OPERATOR_TYPES, call.span, operator=call.function.text, types=given, help=f"it is `{usage}`"
            )
            return None
        if kind == "fold":
            return self._fold(call, binding, hint)
        with_: ir.Expression | None = None
        if kind == "sort_by":
            with_ = ir.Literal(ir.ORDER, "ascending", self.place(call.span))
            if len(call.arguments) > 1:
                with_ = self.check(call.arguments[1], ir.ORDER)
                if with_ is None:
                    return None
        expected = BOOLEAN if kind in CONDITIONS else None
        return self.bound_form(kind, binding, call.arguments[0], call.span, expected, with_=with_)

    def _fold(self, call: ast.Call, binding: ast.Binding, hint: Type | None) -> ir.Expression | None:
        name, start = call.named[0]
        initial = self.infer(start, hint)
        if initial is None or self.is_bare_null(initial, start.span):
            return None
        found = self._check_fold(call, binding, _InitialValue(name, initial))
        if found is None or found.value.type == initial.type:
            return found
        if initial.type == INTEGER and found.value.type == DECIMAL and self._widened < MAX_WIDENED:
            # Initial value and result share one type, the wider of the two.
            self._widened += 1
            widened = self.convert(initial, DECIMAL)
            assert widened is not None
            found = self._check_fold(call, binding, _InitialValue(name, widened))
            if found is None or found.value.type == DECIMAL:
                return found
            initial = widened
        value = self.fit(found.value, initial.type, call.arguments[0].span)
        if value is None:
            return None
        return ir.For(
            "fold", found.locals, found.names, found.over, found.where, None, value, value.type, found.place,
            with_=found.with_,
        )  # fmt: skip

    def _check_fold(self, call: ast.Call, binding: ast.Binding, initial: _InitialValue) -> ir.For | None:
        return self.bound_form("fold", binding, call.arguments[0], call.span, initial=initial)

    def bound_form(
        self, kind: str, binding: ast.Binding, value: ast.Expression, span: Span, expected: Type | None = None,
        key: ast.Expression | None = None, with_: ir.Expression | None = None, initial: _InitialValue | None = None,
    ) -> ir.For | None:  # fmt: skip
        """Check a `for` of any kind: its collection, condition, key and value."""
        over = self._collection(binding.over)
        types = None if over is None else self._item_types(over, binding.over.span)
        if types is not None and len(binding.names) > (1 if kind in ir.OF_ITEMS else len(types)):
            reason = "only a map has keys" if len(types) == 1 else f"`{kind}` goes over the keys"
            self.bag.error(Code.TYPE_MISMATCH, binding.names[1].span, expected="one name", found=f"two: {reason}")
            types = None
        with ExitStack() as bound:
            locals_ = [
                bound.enter_context(self.scope.bind(word, None if types is None else types[position], self.bag))
                for position, word in enumerate(binding.names)
            ]
            if initial is not None:
                locals_.append(bound.enter_context(self.scope.bind(initial.name, initial.value.type, self.bag)))
            where = None if binding.where is None else self.check(binding.where, BOOLEAN)
            facts = NOTHING if binding.where is None else facts_when(binding.where, True, self.scope)
            with self.assuming(facts):
                found_key = None if key is None else self.infer(key, None)
                found = self.check(value, expected) if expected is not None else self.infer(value, None)
        is_sound = (
            found is not None and (where is None) == (binding.where is None) and (found_key is None) == (key is None)
        )
        if over is None or types is None or found is None or not is_sound:
            return None
        numbers = tuple(local.number for local in locals_)
        names = tuple(local.name for local in locals_)
        with_ = with_ if initial is None else initial.value
        place = self.place(span)
        made = ir.For(kind, numbers, names, over, where, found_key, found, found.type, place, with_=with_)
        return self.finish(made, value.span)

    def _collection(self, expression: ast.Expression) -> ir.Expression | None:
        """Check the collection of a FOR. The items of an empty array are never read, so they become integers."""
        is_empty = isinstance(expression, ast.ArrayLiteral) and not expression.items
        return self.infer(expression, ArrayOf(INTEGER) if is_empty else None)

    def finish(self, made: ir.For, span: Span) -> ir.For | None:
        """Return the `for` with its type. Report a value or key that its kind does not accept."""
        fits, expected = _WANTED.get(made.kind, (None, ""))
        subject = made.value
        if made.key is not None:
            (fits, expected), subject = _KEY, made.key
        if fits is not None and not fits(subject.type):
            word = "" if fits is is_key else f" in {made.kind.upper() if made.kind in AGGREGATES else made.kind}"
            self.bag.error(Code.TYPE_MISMATCH, span, expected=f"{expected}{word}", found=subject.type)
            return None
        if self.is_bare_null(made.value, span):
            return None
        type_ = ir.for_type(made.kind, made.key, made.value, made.over.type)
        return ir.For(
            made.kind, made.locals, made.names, made.over, made.where, made.key, made.value, type_, made.place,
            with_=made.with_,
        )  # fmt: skip

    def _item_types(self, over: ir.Expression, span: Span) -> tuple[Type, ...] | None:
        types = ir.item_types(over.type)
        if types:
            return types
        self.bag.error(Code.TYPE_MISMATCH, span, expected="an array, a set or a map", found=over.type)
        return None


def with_array(call: ast.Call) -> ast.Call:
    """Rewrite `first(x FOR x IN xs)` as `first([x FOR x IN xs])`."""
    if call.binding is None or not call.arguments:
        return call
    first = call.arguments[0]
    span = first.span.to((call.binding.where or call.binding.over).span)
    array = ast.Comprehension("array", None, first, call.binding, span)
    return replace(call, arguments=(array, *call.arguments[1:]), binding=None)
