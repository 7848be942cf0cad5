"""Expressions of generated steps, read from text, with other expressions in place of names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.syntax import ast
from vesper.language.syntax.expression_parser import parse_placed
from vesper.language.syntax.scalar_text import PlacedText
from vesper.values.types import Type

_TYPE = "_type"
"""Name of the given type in a text."""


def read_expression(
    text: str, span: Span, bag: DiagnosticBag, parts: Mapping[str, ast.Expression], type_: Type | None = None
) -> ast.Expression:
    """Return the expression in a text, with `parts` in place of names.

    All of it has the span `span`, and `_type` in it is the given type.
    """
    placed = PlacedText(text, (span.start,) * len(text), span.end)
    found = parse_placed(placed, bag)
    assert found is not None, f"a generated expression is malformed: {text}"
    return substitute_names(cast("ast.Expression", _relocate(found, span, type_)), parts)


def substitute_names(expression: ast.Expression, parts: Mapping[str, ast.Expression]) -> ast.Expression:
    """Replace free names in an expression by other expressions. In `old(…)` names remain."""
    return cast("ast.Expression", _substitute(expression, dict(parts)))


def _substitute(found: Any, parts: dict[str, ast.Expression]) -> Any:
    match found:
        case ast.Name(text=text):
            return parts.get(text, found)
        case ast.Call(function=ast.Word(text="old")):
            return found.arguments[0] if len(found.arguments) == 1 else found
        case ast.Field(base=ast.Name(text="output"), name=name) if name.text in parts:
            return parts[name.text]
        case ast.Word() | ast.KnownType() | ast.TypeName() | ast.TypeEnum() | ast.TypeApplied():
            return found
        case tuple():
            return tuple(_substitute(each, parts) for each in found)
    if not is_dataclass(found) or isinstance(found, type):
        return found
    hidden = _bound_names(found)
    inner = {name: value for name, value in parts.items() if name not in hidden}
    changed = {each.name: _substitute(getattr(found, each.name), inner) for each in fields(found)}
    return replace(found, **changed)


def _bound_names(found: object) -> set[str]:
    """Return the names that a form binds in its parts."""
    match found:
        case ast.Let(name=name):
            return {name.text}
        case ast.Binding(names=names):
            return {word.text for word in names}
        case ast.Call(binding=binding, named=named):
            return {word.text for word, _ in named} | (set() if binding is None else _bound_names(binding))
        case ast.Aggregate(binding=ast.Binding() as binding) | ast.Quantifier(binding=binding):
            return _bound_names(binding)
        case ast.Comprehension(binding=binding):
            return _bound_names(binding)
        case _:
            return set()


def _relocate(found: Any, span: Span, type_: Type | None) -> Any:
    """Return a tree with one span everywhere. The given type replaces the name `_type`."""
    if isinstance(found, Span):
        return span
    if isinstance(found, tuple):
        return tuple(_relocate(each, span, type_) for each in found)
    if isinstance(found, ast.TypeName) and found.name.text == _TYPE and type_ is not None:
        return ast.KnownType(type_, span)
    if not is_dataclass(found) or isinstance(found, type):
        return found
    inner = [each.name for each in fields(found) if each.name != "offsets"]
    return replace(found, **{name: _relocate(getattr(found, name), span, type_) for name in inner})
