"""Decision tables of a model as decision tables of a node: rows of cells."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vesper.importers.dmn.code import Code
from vesper.importers.dmn.feel import syntax as feel
from vesper.importers.dmn.operators import truth
from vesper.importers.dmn.tables import Table
from vesper.importers.dmn.types import NUMBER, Ty, list_of
from vesper.importers.writer import InlineValue, QuotedText, node_name

if TYPE_CHECKING:
    from vesper.importers.dmn.boxed import BoxedTranslator
    from vesper.importers.dmn.model import BoxedTable, TableRule
    from vesper.importers.dmn.translate import Env

_HITS = {
    "UNIQUE": "unique", "ANY": "any", "FIRST": "first", "PRIORITY": "priority", "COLLECT": "collect",
    "RULE ORDER": "rule_order", "OUTPUT ORDER": "output_order",
}  # fmt: skip
_AGGREGATIONS = {"": "collect", "MIN": "min", "MAX": "max", "COUNT": "count"}
_LISTS = ("collect", "rule_order", "output_order")
_RANKED = ("priority", "output_order")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*$")
_WORDS = frozenset({"null", "true", "false", "not", "value", "AND", "OR", "NOT", "IF", "IN", "LET"})


class CellExpression(Exception):
    """A test that no cell can state, so that it needs an expression."""


def table_fields(build: BoxedTranslator, box: BoxedTable, env: Env) -> tuple[dict[str, object], Ty] | None:
    """Return the fields of a table and the type of its value; None where only an expression has the same value."""
    hit = _HITS.get(box.hit.upper())
    if hit == "collect":
        hit = _AGGREGATIONS.get(box.aggregation.upper())  # a sum of no rows is null in DMN, and 0 in Vesper
    if hit is None or not box.rules or not box.inputs or (hit in _RANKED and len(box.outputs) > 1):
        return None
    table = Table(build, box, env)
    if table.default is not None and (hit in _LISTS or hit in ("min", "max", "count")):
        return None
    if table.ty.kind in ("null", "never") or (hit in ("min", "max") and table.ty != NUMBER):
        return None
    names, columns = _columns(build, box, env)
    rows: list[dict[str, object]] = []
    for rule, value in zip(box.rules, table.values, strict=True):
        cells: dict[str, object] = {}
        for name, column, cell in zip(names, table.inputs, rule.inputs, strict=True):
            text = _cell(build, column, cell.text, env, cell.line)
            if text != "-":
                cells[name] = text
        rows.append(_row(table, rule, cells, value))
    fields: dict[str, object] = {"hit": hit}
    if columns:
        fields["columns"] = columns
    ty = _value_type(table, hit)
    if hit in _RANKED:
        fields["outputs"] = _ranked_output(build, table)
    has_every = any(not row["in"] for row in rows)
    if hit not in (*_LISTS, "min", "max", "count", "priority") and not has_every:
        rows.append({"otherwise": "null" if table.default is None else table.default.text})
    elif hit == "priority" and table.default is not None:
        rows.append({"otherwise": table.default.text})
    fields["rows"] = [InlineValue(row) for row in rows]
    return fields, ty


def _value_type(table: Table, hit: str) -> Ty:
    if hit in _LISTS:
        return list_of(table.ty)
    if hit == "count":
        return Ty("count")
    return table.ty if table.default is not None and hit != "unique" else table.ty.optional()


def _columns(build: BoxedTranslator, box: BoxedTable, env: Env) -> tuple[list[str], dict[str, object]]:
    """Return the names of the columns, and the expressions of those that are no names in scope."""
    names: list[str] = []
    columns: dict[str, object] = {}
    for column in box.inputs:
        code = build.close(build.boxed(column.expression, env))
        if code.is_path and "." not in code.text and code.text not in names:
            names.append(code.text)
            continue
        hint = column.label or column.expression.text.rpartition(".")[2]
        name = node_name(hint, build.taken | set(names))
        build.taken.add(name)
        names.append(name)
        columns[name] = code.text
    return names, columns


def _row(table: Table, rule: TableRule, cells: dict[str, object], value: Code) -> dict[str, object]:
    row: dict[str, object] = {"in": cells, "then": value.text}
    notes = [f"{name}: {text}" if name else text for name, text in _annotations(table.box, rule) if text]
    if notes:
        row["annotation"] = QuotedText("; ".join(notes))
    return row


def _annotations(box: BoxedTable, rule: TableRule) -> list[tuple[str, str]]:
    names = [*box.annotations, *([""] * len(rule.annotations))] if len(box.annotations) > 1 else [""] * 100
    return list(zip(names, rule.annotations, strict=False))


def _ranked_output(build: BoxedTranslator, table: Table) -> dict[str, object]:
    """Return the output with its values in order of priority."""
    column = table.box.outputs[0]
    tests = build.cell(column.values, {}, column.line)
    listed = []
    for test in tests.tests:
        code = build.translate(test, {})
        listed.append(code.text[1:-1] if code.ty.kind == "string" and code.is_literal else code.text)
    name = node_name(column.name or "result", build.taken)
    return {name: {"type": build.records.written(table.ty), "values": InlineValue(list(map(QuotedText, listed)))}}


def _cell(build: BoxedTranslator, column: Code, text: str, env: Env, line: int) -> str:
    """Return a cell: tests as the table writes them, or a condition over `value`."""
    tests = build.cell(text, env, line)
    if not tests.tests:
        return "-"
    try:
        found = ", ".join(_test(build, column, test) for test in tests.tests)
        return f"not({found})" if tests.is_negated else found
    except CellExpression:
        value = Code("value", column.ty, is_path=True)
        parts = [truth(build, build.test(value, test, env)) for test in tests.tests]
        condition = " OR ".join(each.at(3) for each in parts)
        return f"{{NOT ({condition})}}" if tests.is_negated else f"{{{condition}}}"


def _test(build: BoxedTranslator, column: Code, test: feel.Feel) -> str:
    match test:
        case feel.Comparison() if test.operator in ("<", "<=", ">", ">="):
            return f"{test.operator} {_literal(build, column, test.endpoint)}"
        case feel.Range() if test.low is not None and test.high is not None:
            low, high = _literal(build, column, test.low), _literal(build, column, test.high)
            return f"{'[' if test.is_low_closed else '('}{low}..{high}{']' if test.is_high_closed else ')'}"
        case feel.Null():
            if column.ty.is_nullable:
                return "null"
            raise CellExpression
    return _literal(build, column, test)


def _is_constant(node: feel.Call | feel.AtLiteral) -> bool:
    return isinstance(node, feel.AtLiteral) or all(isinstance(each, feel.Text) for each in node.arguments)


def _literal(build: BoxedTranslator, column: Code, node: feel.Feel) -> str:
    """Return a literal of the column's type."""
    is_negative = isinstance(node, feel.Unary) and isinstance(node.operand, feel.Number)
    if column.ty.kind == "date" and isinstance(node, feel.Call | feel.AtLiteral):
        found = re.fullmatch(r"date\('([-0-9]{10})'\)", build.translate(node, {}).text) if _is_constant(node) else None
        if found is None:
            raise CellExpression
        return found[1]
    if not (isinstance(node, feel.Number | feel.Text | feel.Truth) or is_negative):
        raise CellExpression
    code = build.translate(node, {})
    if code.ty.kind != column.ty.kind:
        raise CellExpression
    if code.ty.kind != "string":
        return code.text
    text = code.text[1:-1]
    if not code.is_literal:
        raise CellExpression
    return text if _WORD.match(text) and text not in _WORDS else code.text
