"""Stages of `data_transform`, rewritten as comprehensions or calls over the array before them."""

from __future__ import annotations

from dataclasses import replace

from vesper.language.diagnostics.source import Span
from vesper.language.syntax import ast

_KEY, _ITEMS = "_key", "_items"
"""Names for the parts of a group. The grammar does not allow authors to write them."""


class Stages:
    """The array after the stages that were applied, as a binding over it."""

    def __init__(self, binding: ast.Binding, span: Span) -> None:
        self._item = binding.names[0]
        self._binding = binding
        self._span = span
        self._is_array = False
        """True once a stage has made the collection an array."""
        self._result: ast.Expression | None = None

    def result(self) -> ast.Expression:
        """Return the value after all stages."""
        return self._array() if self._result is None else self._result

    def _array(self) -> ast.Expression:
        if self._is_array and self._binding.where is None:
            return self._binding.over
        item = ast.Name(self._item.text, self._item.span)
        return ast.Comprehension("array", None, item, self._binding, self._span)

    def _set_array(self, array: ast.Expression) -> bool:
        self._binding = ast.Binding((self._item,), array, None)
        self._is_array = True
        return True

    def _call(self, function: str, arguments: tuple[ast.Expression, ...], span: Span) -> ast.Expression:
        return ast.Call(ast.Word(function, span), arguments, None, span)

    def _call_over_items(self, function: str, arguments: tuple[ast.Expression, ...], span: Span) -> ast.Expression:
        return ast.Call(ast.Word(function, span), arguments, self._binding, span)

    def apply_simple(self, stage: str, given: ast.Expression) -> bool:
        """Apply a stage with one expression: `filter`, `distinct`, `take`, `drop` or `group_by`."""
        match stage:
            case "filter":
                self._binding = replace(self._binding, where=_and(self._binding.where, given))
                return True
            case "distinct":
                return self._set_array(self._call_over_items("distinct_by", (given,), given.span))
            case "take" | "drop":
                return self._set_array(self._call(stage, (self._array(), given), given.span))
            case _:
                groups = self._call_over_items("group_by", (given,), given.span)
                key, items = ast.Word(_KEY, given.span), ast.Word(_ITEMS, given.span)
                entry = ast.RecordLiteral(
                    (
                        (ast.Word("key", given.span), ast.Name(_KEY, given.span)),
                        (ast.Word("items", given.span), ast.Name(_ITEMS, given.span)),
                    ),
                    given.span,
                )
                binding = ast.Binding((key, items), groups, None)
                return self._set_array(ast.Comprehension("array", None, entry, binding, given.span))

    def map(self, value: ast.Expression) -> bool:
        return self._set_array(ast.Comprehension("array", None, value, self._binding, value.span))

    def sort(self, by: ast.Expression, order: ast.Word | None) -> bool:
        arguments = (by,) if order is None else (by, ast.Name(order.text, order.span))
        return self._set_array(self._call_over_items("sort_by", arguments, by.span))

    def join(self, other: ast.Binding, condition: ast.Expression, value: ast.Expression) -> bool:
        inner = replace(other, where=_and(other.where, condition))
        pairs = ast.Comprehension("array", None, value, inner, value.span)
        nested = ast.Comprehension("array", None, pairs, self._binding, value.span)
        return self._set_array(self._call("flatten", (nested,), value.span))

    def aggregate(self, entries: tuple[tuple[ast.Word, ast.Expression], ...], span: Span) -> bool:
        self._result = ast.Let(ast.Word("items", span), self._array(), ast.RecordLiteral(entries, span), span)
        return True

    def reduce(self, state: ast.Word, initial: ast.Expression, next_: ast.Expression) -> bool:
        fold = ast.Word("fold", next_.span)
        self._result = ast.Call(fold, (next_,), self._binding, next_.span, named=((state, initial),))
        return True


def _and(left: ast.Expression | None, right: ast.Expression) -> ast.Expression:
    if left is None:
        return right
    return ast.Infix(left, ast.Word("AND", right.span), right, right.span)
