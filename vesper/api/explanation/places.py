"""Roles of marked expressions in the node's text: guard, branch, row, clause; tables, parameters and reasons."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from vesper.api.explanation.model import NamedValue
from vesper.compiler import Compiled
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements
from vesper.trace.model import MarkKind
from vesper.trace.places import mark_places
from vesper.values.model import plain
from vesper.verify.branches import condition_text, row_texts


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a decision table, as the `source` of the IR has it."""

    table: str
    hit: str
    number: int
    line: int
    when: int | None
    """Index of the condition; None for `otherwise`."""
    cells: Mapping[str, str]
    annotation: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Role:
    """The role of a marked condition."""

    kind: str
    step: str
    text: str
    expression: ir.Expression


@dataclass(frozen=True, slots=True)
class Lookup:
    """A date comparison in the lookup of a parameter.

    Each of its results leads to an entry or to a further comparison.
    """

    parameter: Mapping[str, Any]
    date: ir.Expression
    then: tuple[int, NamedValue] | None
    """Number of the entry, 0 before all dates, and its value; None where another comparison follows."""
    otherwise: tuple[int, NamedValue] | None


@dataclass(frozen=True, slots=True)
class NodePlaces:
    """Facts about a node that each of its explanations needs."""

    roles: Mapping[int, Role]
    tables: tuple[tuple[TableRow, ...], ...]
    row_of: Mapping[int, tuple[int, int]]
    """Table and position of the row, by the index of its condition."""
    lookups: Mapping[int, Lookup]
    """Lookups of parameters, by the index of the comparison."""
    reasons: Mapping[int, str]


def node_places(compiled: Compiled) -> NodePlaces:
    node = compiled.node
    source: dict[str, Any] = json.loads(compiled.ir)["source"]
    tables = tuple(_rows(each) for each in source.get("tables", ()))
    row_of = {
        row.when: (table, position)
        for table, rows in enumerate(tables)
        for position, row in enumerate(rows)
        if row.when is not None
    }
    expressions = tuple(node.expressions())
    kinds = _kinds(node, expressions)
    lookups = {index: found for each in source.get("parameters", ()) for index, found in _lookups(each, expressions)}
    roles: dict[int, Role] = {}
    texts = row_texts(node)
    for index, place in mark_places(node).items():
        if place.kind is MarkKind.VALUE:
            continue
        expression = expressions[index]
        is_clause = place.kind is MarkKind.CLAUSE
        kind = place.phase if is_clause else kinds[index]
        kind = "row" if index in row_of else "parameter" if index in lookups else kind
        text = place.text if is_clause else texts.get(index) or condition_text(compiled.source, expression)
        roles[index] = Role(kind, place.step, text, expression)
    reasons = {int(index): str(reason) for index, reason in source.get("reasons", {}).items()}
    return NodePlaces(roles, tables, row_of, lookups, reasons)


def _lookups(parameter: Mapping[str, Any], expressions: tuple[ir.Expression, ...]) -> Iterator[tuple[int, Lookup]]:
    """Yield the comparisons of a lookup. Its leaves, from left to right, are the values of the entries."""
    let = expressions[parameter["at"]]
    if not isinstance(let, ir.Let):
        return
    numbers = count()

    def visit(tree: ir.Expression) -> Iterator[tuple[int, Lookup]]:
        assert isinstance(tree, ir.If)
        leaves: list[tuple[int, NamedValue] | None] = []
        for side in (tree.then, tree.otherwise):
            if isinstance(side, ir.Literal):
                leaves.append((next(numbers), NamedValue(plain(side.value), side.type)))
            else:
                leaves.append(None)
                yield from visit(side)
        yield tree.condition.index, Lookup(parameter, let.value, leaves[0], leaves[1])

    roots = [each for each in ir.children(let.body) if isinstance(each, ir.If)]
    for root in roots:
        yield from visit(root)


def _rows(table: dict[str, Any]) -> tuple[TableRow, ...]:
    return tuple(
        TableRow(
            table["name"],
            table["hit"],
            number,
            row["line"],
            row.get("when"),
            row.get("cells", {}),
            row.get("annotation"),
            row.get("reason"),
        )
        for number, row in enumerate(table["rows"], start=1)
    )


def _kinds(node: ir.Node, expressions: tuple[ir.Expression, ...]) -> dict[int, str]:
    """Return the kind of each condition by its index."""
    found: dict[int, str] = {}
    for each in expressions:
        if isinstance(each, ir.If):
            found[each.condition.index] = "if"
        elif isinstance(each, ir.For) and each.where is not None:
            found[each.where.index] = "where"
    for statement in all_statements(node.body):
        match statement:
            case ir.Step(value=ir.If(condition=condition, otherwise=ir.Literal(value=None, place=place))):
                if place == condition.place:  # the value of a step with conditions
                    found[condition.index] = "when"
            case ir.Branch(name=name, arms=arms):
                kind = "when" if name.startswith("_") and len(arms) == 1 else "branch"
                found |= {arm.when.index: kind for arm in arms}
            case ir.Loop(where=where, condition=condition, stop_when=stop_when):
                parts = {"where": where, "while": condition, "stop_when": stop_when}
                found |= {part.index: kind for kind, part in parts.items() if part is not None}
            case _:
                pass
    return found
