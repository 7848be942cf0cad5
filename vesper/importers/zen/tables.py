"""Translation of decision tables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from vesper.importers.writer import node_name
from vesper.importers.zen.cells import cell_text
from vesper.importers.zen.expressions import Expressions
from vesper.importers.zen.flow import Flow, Problem, Step
from vesper.importers.zen.model import Column, Table
from vesper.importers.zen.parser import COLUMN, parse_cell, parse_expression
from vesper.importers.zen.syntax import (
    Binary,
    Call,
    Conditional,
    Member,
    Method,
    Name,
    Node,
    Template,
    Unary,
    ZenSyntaxError,
)
from vesper.importers.zen.terms import (
    NULL,
    OPEN,
    Leaf,
    Term,
    Tree,
    Untranslatable,
    Value,
    finished,
    inside_names,
    plain,
    set_path,
)
from vesper.importers.zen.types import NOTHING, ArrayOf, Record, Slot, join, resolve


@dataclass(slots=True)
class Row:
    cells: dict[str, str]
    """Cells by the name of their column."""
    conjuncts: list[str]
    """Conditions that are no cells."""
    outputs: dict[str, Term]
    """Values of the outputs that are not empty, by path."""
    note: str

    @property
    def is_default(self) -> bool:
        return not self.cells and not self.conjuncts


@dataclass(slots=True)
class ColumnValue:
    """The value of an input column: its term, and the conditions under which zen computes it."""

    name: str
    term: Term
    guards: list[str]
    path: Leaf | None = None
    """The value as a path, once a condition needs it."""

    def text(self) -> str:
        """Return the value as an expression that is null where zen fails."""
        value = plain(self.term).text
        return f"IF {' AND '.join(self.guards)} THEN {value} ELSE null" if self.guards else value


@dataclass(slots=True)
class Columns:
    """The input columns of one table as far as its rows use them."""

    values: dict[str, ColumnValue | None] = field(default_factory=dict)
    """Values by the id of the column; None for one that zen cannot compute."""
    used: dict[str, str] = field(default_factory=dict)
    """Expressions of the columns that have cells, by name."""
    facts: set[str] = field(default_factory=set)
    """Paths that are not null below the rows so far."""


class Tables:
    """Translates the tables of one model into steps."""

    def __init__(self, expressions: Expressions, flow: Flow) -> None:
        self.expressions = expressions
        self.flow = flow

    def translate(self, table: Table, name: str, condition: str) -> Value:
        """Add the step of a table in the present scope, and return its outputs."""
        columns = Columns()
        paths = [column.field for column in table.outputs if column.field]
        # A table with several outputs has its condition in a row, so that nothing is known by it.
        has_when = table.is_collect or len(set(paths)) == 1
        rows, has_default = self._rows(table, name, condition if has_when else "", columns)
        slots: dict[str, Slot] = {}
        for path in dict.fromkeys(paths):
            cells = [row.outputs[path] for row in rows if path in row.outputs]
            slot = join([Slot(cell.type, cell.is_nullable) for cell in cells], path.rsplit(".", 1)[-1])
            is_always = len(cells) == len(rows) and (has_default or table.is_collect)
            is_always = is_always and not (condition and len(paths) > 1 and not table.is_collect)
            slots[path] = Slot(slot.type, slot.is_optional or not is_always)
        if not slots or not rows:
            return Leaf(NULL, is_absent_if_null=True) if not table.is_collect else self._empty(name, condition)
        step = _TableStep(name, rows, slots, columns.used, condition, has_default)
        if table.is_collect:
            return self._collect(step)
        return self._single(step) if len(slots) == 1 else self._several(step)

    # Rows

    def _rows(self, table: Table, name: str, condition: str, columns: Columns) -> tuple[list[Row], bool]:
        """Return the rows that can match, and whether the last of them always does."""
        rows: list[Row] = []
        for at, rule in enumerate(table.rules, 1):
            place = f"table `{name}`, row {at}"
            try:
                row = self._row(table, rule, columns, condition)
            except ZenSyntaxError as error:
                self._note(place, f"zen never matches it: {error}")
                continue
            except Untranslatable as error:
                if not error.is_fault:
                    raise Untranslatable(f"row {at}: {error}") from error
                self._note(place, f"zen never matches it: {error}")
                continue
            rows.append(row)
            if not table.is_collect:
                columns.facts |= _refuted_path(row, columns)
            if row.is_default and not table.is_collect:
                if at < len(table.rules):
                    self._note(place, "it always matches, so the rows after it never do")
                return rows, True
        return rows, False

    def _note(self, place: str, text: str) -> None:
        self.flow.problems.append(Problem(place, text, is_refused=False))

    def _row(self, table: Table, rule: dict[str, str], columns: Columns, condition: str) -> Row:
        facts = self.flow.facts(condition) | columns.facts
        row = Row({}, [], {}, rule.get("_description", ""))
        for column in table.inputs:
            cell = rule.get(column.id, "")
            if cell.strip():
                self._cell(column, cell, columns, facts, row)
        outputs = {column.field: rule.get(column.id, "") for column in table.outputs if column.field}
        trees = {path: parse_expression(cell) for path, cell in outputs.items() if cell.strip()}
        # The guards of every output hold for all of them, so the values are translated once all are known.
        for tree in trees.values():
            row.conjuncts += self.expressions.guarded(tree, facts)[0]
        for path, tree in trees.items():
            row.outputs[path] = self._with_facts(self.expressions.guarded(tree, facts)[1], facts)
        row.conjuncts = list(dict.fromkeys(row.conjuncts))
        return row

    def _with_facts(self, term: Term, facts: set[str]) -> Term:
        missing = tuple(check for check in term.checks if check not in facts)
        return plain(Term(term.text, term.type, term.level, missing, term.is_optional, term.is_path, term.is_integer))

    def _cell(self, column: Column, cell: str, columns: Columns, facts: set[str], row: Row) -> None:
        """Add the condition of a cell to its row: as a cell if one can state it, else as an expression."""
        if not column.field:
            row.conjuncts += self.expressions.condition(parse_expression(cell), facts)
            return
        node = parse_cell(cell)
        if column.field == "$" and not _uses_column(node):
            row.conjuncts += self.expressions.condition(node, facts)
            return
        if column.id not in columns.values:
            columns.values[column.id] = self._column(column, columns)
        value = columns.values[column.id]
        if value is None:
            raise Untranslatable(f"column `{column.field}` fails", is_fault=True)
        if not _uses_column(node):
            # SEMANTICS: zen computes the column before the cell; where it fails, the row does not match.
            if "require(" in value.term.text:
                raise Untranslatable(f"column `{column.field}` may fail beside a cell that does not use it")
            row.conjuncts += [*value.guards, *self.expressions.condition(node, facts)]
            return
        text = cell_text(node, value.term, is_optional=False)
        if value.guards and text is not None and _matches_null(text):
            # Null stands for a column that zen cannot compute, which no cell matches.
            text = None
        if text is not None and value.name not in row.cells:
            columns.used[value.name] = value.text()
            row.cells[value.name] = text
            if value.term.is_path and not _matches_null(text):
                facts.add(value.term.text)
            return
        scope = self.expressions.scope
        before, scope.column = scope.column, self._path(value)
        if value.guards:
            row.conjuncts.append(f"{scope.column.term.text} IS NOT NULL")
            facts.add(scope.column.term.text)
        try:
            row.conjuncts += self.expressions.condition(node, facts)
        finally:
            scope.column = before

    def _column(self, column: Column, columns: Columns) -> ColumnValue | None:
        """Return the value of a column, None where zen cannot compute it."""
        try:
            guards, term = self.expressions.guarded(parse_expression(column.field), set())
        except ZenSyntaxError:
            return None
        except Untranslatable as error:
            if error.is_fault:
                return None
            raise
        if guards and term.is_nullable:
            raise Untranslatable(f"column `{column.field}` may be null and may fail")
        taken = {each.name for each in columns.values.values() if each is not None}
        last = term.text.rsplit(".", 1)[-1] if term.is_path else node_name(column.name or "column")
        name = node_name(last, taken | (self.flow.taken - {term.text}))
        return ColumnValue(name, term, guards)

    def _path(self, value: ColumnValue) -> Leaf:
        """Return a column as a path; a computed one becomes a step."""
        if value.path is None:
            term = value.term
            if not term.is_path and term.type != NOTHING:
                is_optional = bool(value.guards) or term.is_nullable
                computed = Term(value.text(), term.type, OPEN, is_optional=is_optional, is_integer=term.is_integer)
                term = self.flow.compute(value.name, computed, is_helper=True)
            value.path = Leaf(term)
        return value.path

    # Steps

    def _add(self, step: _TableStep, fields: dict[str, Any], rows: list[dict[str, Any]], slot: Slot, when: str) -> Term:
        unique = self.flow.fresh(step.name)
        written: dict[str, Any] = {"step": unique, "operation": "decision_table"}
        if when:
            written["when"] = when
        columns = {name: text for name, text in step.columns.items() if text != name}
        if columns:
            fields = {**fields, "columns": columns}
        written |= {**fields, "rows": rows}
        typed = None if "outputs" in fields else slot
        if typed is not None and isinstance(typed.type, ArrayOf) and "hit" in fields:
            # `type` is the type of one row's result.
            typed = typed.type.item
        self.flow.steps.append(Step(unique, written, typed, note=(f"table {step.name}",)))
        return self.flow.path(unique, slot, when)

    def _single(self, step: _TableStep) -> Value:
        [(path, slot)] = step.slots.items()
        rows = [_written(row, finished(self._result(row, path, slot))) for row in step.rows]
        if not step.has_default:
            rows.append({"otherwise": "null"})
        term = self._add(step, {}, rows, slot, step.condition)
        tree = Tree()
        set_path(tree, path, Leaf(term, step.condition, is_absent_if_null=True))
        return tree

    def _several(self, step: _TableStep) -> Value:
        names = _short_names(list(step.slots))
        record = Record(step.name, {names[path]: slot for path, slot in step.slots.items()})
        nothing = dict.fromkeys(names.values(), "null")
        rows: list[dict[str, Any]] = [{"when": f"NOT {step.condition}", "then": nothing}] if step.condition else []
        for row in step.rows:
            values = {names[path]: finished(self._result(row, path, slot)) for path, slot in step.slots.items()}
            rows.append(_written(row, values))
        if not step.has_default:
            rows.append({"otherwise": nothing})
        outputs = {names[path]: slot for path, slot in step.slots.items()}
        term = self._add(step, {"outputs": outputs}, rows, Slot(record), "")
        tree = Tree()
        for path, slot in step.slots.items():
            text = f"{term.text}.{names[path]}"
            checks = (text,) if slot.is_optional else ()
            term_of_path = Term(text, slot.type, checks=checks, is_path=True)
            set_path(tree, path, Leaf(term_of_path, step.condition, is_absent_if_null=True))
        return tree

    def _result(self, row: Row, path: str, slot: Slot) -> Term:
        return self.expressions.fit(row.outputs.get(path, NULL), slot)

    def _empty(self, name: str, condition: str) -> Value:
        return Leaf(self.flow.compute(name, Term("[]", ArrayOf(Slot(Record(name)))), condition), condition)

    def _collect(self, step: _TableStep) -> Value:
        """Add a step with the array of the outputs of all rows that match."""
        shape = _nested(step.name, step.slots)
        rows = []
        for row in step.rows:
            tree = Tree()
            for path, slot in step.slots.items():
                term = self._result(row, path, slot)
                set_path(tree, path, Leaf(Term(finished(term), term.type, term.level)))
            if row.is_default:
                row.conjuncts.append("true")
            rows.append(_written(row, _tree_literal(tree, shape)))
        slot = Slot(ArrayOf(Slot(shape)))
        term = self._add(step, {"hit": "collect"}, rows, slot, step.condition)
        return Leaf(term, step.condition, is_absent_if_null=True)


@dataclass(slots=True)
class _TableStep:
    """The parts of the step of a table."""

    name: str
    rows: list[Row]
    slots: dict[str, Slot]
    columns: dict[str, str]
    condition: str
    has_default: bool


def _matches_null(cell: str) -> bool:
    return "not(" in cell or re.search(r"(?:^|, )null(?:$|,)", cell) is not None


def _refuted_path(row: Row, columns: Columns) -> set[str]:
    """Return the path that is not null where a row with this one condition does not match."""
    if len(row.conjuncts) == 1 and not row.cells and row.conjuncts[0].endswith(" IS NULL"):
        return {row.conjuncts[0].removesuffix(" IS NULL")}
    if not row.conjuncts and list(row.cells.values()) == ["null"]:
        return {columns.used[name] for name in row.cells}
    return set()


def _written(row: Row, value: str | dict[str, str]) -> dict[str, Any]:
    written: dict[str, Any] = {}
    if row.is_default:
        written["otherwise"] = value
    else:
        if row.cells:
            written["in"] = dict(row.cells)
        if row.conjuncts:
            written["when"] = " AND ".join(row.conjuncts)
        written["then"] = value
    if row.note.strip():
        written["annotation"] = " ".join(row.note.split())
    return written


def _short_names(paths: list[str]) -> dict[str, str]:
    """Return names of outputs by their paths: the last key where no other path ends with it."""
    last = [path.rsplit(".", 1)[-1] for path in paths]
    names: dict[str, str] = {}
    for path, key in zip(paths, last, strict=True):
        names[path] = node_name(key if last.count(key) == 1 else path, set(names.values()))
    return names


def _nested(name: str, slots: dict[str, Slot]) -> Record:
    """Return the record of an output: paths with points are objects inside."""
    shape = Record(name)
    for path, slot in slots.items():
        *heads, last = path.split(".")
        record = shape
        for head in heads:
            inner = record.fields.get(head)
            if inner is None or not isinstance(inner.type, Record):
                inner = Slot(Record(head))
                record.fields[head] = inner
            assert isinstance(inner.type, Record)
            record = inner.type
        record.fields[last] = slot
    return shape


def _tree_literal(tree: Tree, shape: Record) -> str:
    names = inside_names(shape)
    parts = []
    for key, slot in shape.fields.items():
        value = tree.fields[key]
        inner = resolve(slot.type)
        if isinstance(value, Tree):
            assert isinstance(inner, Record)
            parts.append(f"{names[key]}: {_tree_literal(value, inner)}")
        else:
            parts.append(f"{names[key]}: {value.term.text}")
    return "{" + ", ".join(parts) + "}"


def _uses_column(node: Node) -> bool:
    match node:
        case Name():
            return node == COLUMN
        case Binary(_, left, right):
            return _uses_column(left) or _uses_column(right)
        case Unary(_, operand):
            return _uses_column(operand)
        case Member(base, key):
            return _uses_column(base) or _uses_column(key)
        case Conditional(test, then, otherwise):
            return any(map(_uses_column, (test, then, otherwise)))
        case Call(_, arguments):
            return any(map(_uses_column, arguments))
        case Method(base, _, arguments):
            return any(map(_uses_column, (base, *arguments)))
        case Template(parts):
            return any(map(_uses_column, parts))
    return False
