"""Declared types of a step's value, each with the part that has it."""

from __future__ import annotations

from collections.abc import Iterator

from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.language.tables.model import LIST_HITS
from vesper.values.types import Record


def declared_parts(
    action: ast.Action, value: ir.Expression, shown: str
) -> Iterator[tuple[ast.TypeText, ir.Expression, str]]:
    """Yield each declared type in a step, with the typed value and its name."""
    match action:
        case ast.Compute() | ast.Conditional() | ast.Match():
            if action.type is not None:
                yield action.type, value, shown
        case ast.DecisionTable():
            yield from _declared_results(action, value, shown)
        case ast.EffectStep(returns=text, expect=fields):
            if text is not None:
                yield text, value, shown
            if fields is not None and isinstance(value.type, Record):
                types = dict(value.type.fields)
                for each in fields:
                    name = each.name.text
                    yield each.type, ir.Field(value, name, types[name], value.place), name
        case _:
            return


def _declared_results(
    table: ast.DecisionTable, value: ir.Expression, shown: str
) -> Iterator[tuple[ast.TypeText, ir.Expression, str]]:
    """Yield the declared types of a table's results. They belong to the value, its items or its fields."""
    hit = "first" if table.hit is None else table.hit.text
    type_ = table.outputs[0].type if len(table.outputs) == 1 else table.type
    if hit == "count":
        return
    if type_ is not None:
        yield _array_of(type_) if hit in LIST_HITS else type_, value, shown
    elif table.outputs and isinstance(value.type, Record):
        for each in table.outputs:
            name = each.name.text
            yield each.type, ir.Field(value, name, dict(value.type.fields)[name], value.place), name


def _array_of(type_: ast.TypeText) -> ast.TypeText:
    return ast.TypeApplied(ast.Word("array", type_.span), (type_,), type_.span)
