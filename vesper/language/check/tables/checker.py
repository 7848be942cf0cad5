"""Check of one decision table. Takes the AST and returns an expression that computes the table's value.

A table is lowered to existing forms. Where one row decides, rows become a chain of `if`; otherwise the results of all
matching rows form an array, which the hit policy combines. The value of a column is computed once, before the rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vesper.language.check.expressions.literals import Unread, read_literal
from vesper.language.check.expressions.narrowing import NOTHING, Facts, facts_when
from vesper.language.check.tables.cells import CellChecker, CheckedColumn, all_of, any_of, has_conditions
from vesper.language.check.tables.findings import Findings
from vesper.language.check.tables.from_files import FileTableChecker
from vesper.language.check.tables.hits import Combiner
from vesper.language.check.tables.lowered import LoweredRow, LoweredTable, literal_of
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import Label
from vesper.language.diagnostics.source import Span
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.language.syntax.table_to_ast import MAX_COLUMNS
from vesper.language.tables.files import condition_names
from vesper.language.tables.model import LIST_HITS, RANKED_HITS, SINGLE_HITS, OutputColumn
from vesper.values.model import Value
from vesper.values.types import (
    BOOLEAN,
    DECIMAL,
    INTEGER,
    NULL,
    STRING,
    ArrayOf,
    Enum,
    OptionalOf,
    Record,
    Type,
    optional,
    without_null,
)

if TYPE_CHECKING:
    from vesper.language.check.expressions.checker import ExpressionChecker


@dataclass(slots=True)
class _Output:
    """An output of the table. `values` has its literals in order of priority."""

    name: ast.Word
    type: Type
    values: tuple[Value, ...]


class TableChecker:
    """Checks decision tables with the expression checker of their node."""

    def __init__(self, checker: ExpressionChecker) -> None:
        self._checker = checker
        self._bag = checker.bag
        self._cells = CellChecker(checker)

    def check(self, table: ast.DecisionTable, name: ast.Word, expected: Type | None) -> ir.Expression | None:
        """Return the value of a table, or None after reporting an error."""
        if isinstance(table.rows, ast.TableFile):
            return self._check_file(table, table.rows, name, expected)
        hit = "first" if table.hit is None else table.hit.text
        if hit == "count" and not self._check_count(table, table.rows):
            return None
        columns = self._columns(table)
        outputs = self._outputs(table)
        if columns is None or outputs is None:
            return None
        declared = None if table.type is None else self._checker.resolve(table.type)
        if table.type is not None and declared is None:
            return None
        wanted = declared or self._row_type(outputs, hit, expected)
        rows = self._rows(table, table.rows, hit, columns, outputs, wanted)
        if rows is None:
            return None
        ranks = self._ranks(rows, table, hit, outputs) if hit in RANKED_HITS else None
        if hit in RANKED_HITS and ranks is None:
            return None
        facts = Findings(self._checker, name).examine(table, hit, list(columns.values()), rows)
        span = name.span if table.hit is None else table.hit.span
        body = Combiner(self._checker, hit, span, rows, ranks, facts, rows[0].value.type).combine()
        if body is None or facts.is_refused:
            return None
        self._checker.tables.append(LoweredTable(name.text, hit, tuple(columns), tuple(rows)))
        body = _bind(body, columns.values())
        return self._as_expected(body, expected, hit, name.span)

    def _check_file(
        self, table: ast.DecisionTable, file: ast.TableFile, name: ast.Word, expected: Type | None
    ) -> ir.Expression | None:
        """Return the value of a table with rows in a file. None after reporting an error."""
        hit = "first" if table.hit is None else table.hit.text
        outputs = self._outputs(table)
        if not table.outputs:
            help_ = (
                "name them and their types: `outputs: {rate: decimal}`; the other columns of the file are conditions"
            )
            self._bag.error(Code.MISSING_KEY, file.span, where="a table with a file", key="outputs", help=help_)
        files = FileTableChecker(self._checker)
        sheet = files.read(file)
        if sheet is None or not outputs:
            return None
        results = [OutputColumn(each.name.text, each.type, each.values) for each in outputs]
        declared = {column.name.text: column for column in table.columns}
        names = [*declared, *(each for each in condition_names(sheet, results) if each not in declared)]
        words = [declared.get(each) or _named_column(each, file.span) for each in names]
        columns = [self._column(each, False) for each in words]
        known = [column for column in columns if column is not None]
        if len(known) < len(columns):
            return None
        body = files.combine(table, sheet, name, hit, known, results)
        return None if body is None else self._as_expected(_bind(body, known), expected, hit, name.span)

    def _check_count(self, table: ast.DecisionTable, rows: tuple[ast.Row, ...]) -> bool:
        """Report a default row, or results in only some rows.

        A count can have neither. Returns whether there was no error.
        """
        if table.otherwise is not None:
            help_ = "a count is 0 if no row matches: leave `otherwise` out"
            span = table.otherwise.span
            self._bag.error(Code.UNKNOWN_KEY, span, where="a table with `hit: count`", key="otherwise", help=help_)
            return False
        missing = [row for row in rows if row.then is None]
        if missing and len(missing) < len(rows):
            expected = "`then` in every row, or in none"
            self._bag.error(Code.WRONG_KIND, missing[0].span, key="then", expected=expected, found="some")
            return False
        return True

    def _as_expected(self, body: ir.Expression, expected: Type | None, hit: str, span: Span) -> ir.Expression | None:
        if expected is None or body.type == expected:
            return body
        fitted = self._checker.convert(body, expected)
        if fitted is None:
            help_ = None
            if isinstance(body.type, OptionalOf) and body.type.inner == expected:
                help_ = "no row may match: end the table with `otherwise`, or cover every value"
            elif hit in LIST_HITS:
                help_ = f"`hit: {hit}` gives an array of the results"
            self._bag.error(
                Code.TYPE_MISMATCH, span, f"this is {body.type}", expected=expected, found=body.type, help=help_
            )
        return fitted

    # -- columns ----------------------------------------------------------------------------------

    def _columns(self, table: ast.DecisionTable) -> dict[str, CheckedColumn] | None:
        """Return the declared columns, then those that only cells name, in order of first use."""
        assert not isinstance(table.rows, ast.TableFile)
        declared = {column.name.text: column for column in table.columns}
        used: dict[str, ast.Word] = {}
        bound: set[str] = set()
        for row in table.rows:
            for word, cell in row.cells:
                used.setdefault(word.text, word)
                if has_conditions(cell.tests):
                    bound.add(word.text)
        for word in used.values():
            declared.setdefault(word.text, ast.Column(word, None))
        if len(declared) > MAX_COLUMNS:
            span = list(declared.values())[MAX_COLUMNS].name.span
            self._bag.error(Code.TOO_LARGE, span, limit=MAX_COLUMNS, what="columns in this table")
            return None
        found: dict[str, CheckedColumn] = {}
        for each in declared.values():
            if each.name.text not in used:
                self._bag.warning(Code.UNUSED_VALUE, each.name.span, what="the column", name=each.name.text)
            column = self._column(each, each.name.text in bound)
            if column is not None:
                found[each.name.text] = column
        return found if len(found) == len(declared) else None

    def _column(self, declared: ast.Column, needs_local: bool) -> CheckedColumn | None:
        name = declared.name
        source = ast.Name(name.text, name.span) if declared.value is None else declared.value
        value = self._checker.infer(source, None)
        if value is None or self._checker.is_bare_null(value, source.span):
            return None
        needs_local = needs_local or any(has_conditions(cell.tests) for cell in declared.allowed)
        if isinstance(value, ir.Ref | ir.Local) and not needs_local and not declared.allowed:
            return CheckedColumn(name, source, value)
        number = self._checker.fresh_local()
        local = ir.Local(number, name.text, value.type, value.place)
        column = CheckedColumn(name, source, local, ((number, value),))
        return self._with_allowed(column, declared) if declared.allowed else column

    def _with_allowed(self, column: CheckedColumn, declared: ast.Column) -> CheckedColumn | None:
        """Return the column with a check of its value against the allowed ones."""
        tests = [self._cells.condition(column, cell) for cell in declared.allowed if cell.tests]
        known = [test for test in tests if test is not None]
        if len(known) < len(tests):
            return None
        if len(tests) < len(declared.allowed):
            span = next(cell.span for cell in declared.allowed if not cell.tests)
            expected = "values: `-` allows all, as no list does"
            self._bag.error(Code.WRONG_KIND, span, key="allowed", expected=expected, found="`-`")
            return None
        place = column.value.place
        number = self._checker.fresh_local()
        checked = ir.Call("table.allowed", (column.type,), (column.value, any_of(known, place)), column.type, place)
        bound = (*column.bound, (number, checked))
        local = ir.Local(number, column.name.text, column.type, place)
        allowed = self._cells.ranges(column, declared.allowed)
        return replace(column, value=local, bound=bound, allowed=allowed)

    # -- outputs ----------------------------------------------------------------------------------

    def _outputs(self, table: ast.DecisionTable) -> list[_Output] | None:
        found: list[_Output] = []
        for declared in table.outputs:
            type_ = self._checker.resolve(declared.type)
            if type_ is None:
                continue
            values = [read_literal(type_, tree, "values", self._bag) for tree in declared.values]
            known = tuple(value for value in values if not isinstance(value, Unread))
            if len(known) == len(values):
                found.append(_Output(declared.name, type_, known))
        return found if len(found) == len(table.outputs) else None

    def _row_type(self, outputs: list[_Output], hit: str, expected: Type | None) -> Type | None:
        """Return the type that the result of each row must have. None if the rows determine it."""
        if len(outputs) == 1:
            return outputs[0].type
        if outputs:
            return Record(tuple((each.name.text, each.type) for each in outputs))
        if hit in SINGLE_HITS:
            return expected
        if hit in LIST_HITS:
            return expected.element if isinstance(expected, ArrayOf) else None
        return None if hit == "count" or expected is None else without_null(expected)

    def _result(self, row: ast.Row, outputs: list[_Output], wanted: Type | None) -> ir.Expression | None:
        """Check the result of a row against the outputs."""
        then = row.then
        if then is None:
            return ir.Literal(BOOLEAN, True, self._checker.place(row.span))
        if len(outputs) == 1 and isinstance(then, ast.RecordLiteral) and not isinstance(outputs[0].type, Record):
            then = self._only_entry(then, outputs[0])
            if then is None:
                return None
        is_null = isinstance(then, ast.Null)
        if len(outputs) > 1 and not (is_null or isinstance(then, ast.RecordLiteral | ast.Unread)):
            names = ", ".join(f"`{each.name.text}`" for each in outputs)
            expected = f"a mapping with {names}"
            self._bag.error(Code.WRONG_KIND, then.span, key="then", expected=expected, found="one expression")
            return None
        value = self._checker.infer(self._quote_words(then, outputs), wanted)
        if value is None or value.type == NULL:
            return value
        value = value if wanted is None else self._checker.fit(value, wanted, then.span)
        if value is None or not any(each.values for each in outputs):
            return value
        return self._within_values(value, outputs, then.span)

    def _quote_words(self, then: ast.Expression, outputs: list[_Output]) -> ast.Expression:
        """Return the result with bare words as strings if they are among the `values`."""
        if len(outputs) == 1:
            return self._quote_word(then, outputs[0])
        if not outputs or not isinstance(then, ast.RecordLiteral):
            return then
        by_name = {each.name.text: each for each in outputs}
        entries = [
            (word, self._quote_word(part, by_name[word.text]) if word.text in by_name else part)
            for word, part in then.entries
        ]
        return replace(then, entries=tuple(entries))

    def _quote_word(self, part: ast.Expression, output: _Output) -> ast.Expression:
        is_text = isinstance(part, ast.Name) and part.text in output.values and without_null(output.type) == STRING
        if not is_text:
            return part
        assert isinstance(part, ast.Name)
        declared = self._checker.scope.find(part.text)
        if declared is None:
            return ast.String(part.text, part.span)
        also = (Label(declared.span, f"{declared.describe()} is declared here"),)
        help_, one = f"write `'{part.text}'` for the text", declared.describe()
        self._bag.error(Code.AMBIGUOUS_WORD, part.span, also=also, help=help_, name=part.text, one=one)
        return ast.Unread(part.span)

    def _only_entry(self, then: ast.RecordLiteral, output: _Output) -> ast.Expression | None:
        if len(then.entries) == 1 and then.entries[0][0].text == output.name.text:
            return then.entries[0][1]
        where = "the result of this table"
        word = next((word for word, _ in then.entries if word.text != output.name.text), None)
        if word is None:
            self._bag.error(Code.MISSING_KEY, then.span, where=where, key=output.name.text)
        else:
            help_ = f"its only output is `{output.name.text}`"
            self._bag.error(Code.UNKNOWN_KEY, word.span, where=where, key=word.text, help=help_)
        return None

    def _within_values(self, value: ir.Expression, outputs: list[_Output], span: Span) -> ir.Expression | None:
        """Return a result whose outputs are among their `values`.

        Literals are checked here, other results at run time.
        """
        if len(outputs) == 1:
            return self._check_allowed(value, outputs[0], span)
        assert isinstance(value, ir.RecordValue)
        fields = [
            (name, self._check_allowed(part, each, span))
            for (name, part), each in zip(value.fields, outputs, strict=True)
        ]
        known = tuple((name, part) for name, part in fields if part is not None)
        return replace(value, fields=known) if len(known) == len(fields) else None

    def _check_allowed(self, value: ir.Expression, output: _Output, span: Span) -> ir.Expression | None:
        if not output.values:
            return value
        literal = literal_of(value)
        if literal is not None:
            if literal.value in output.values:
                return value
            name = output.name.text
            expected = f"one of the `values` of the output `{name}`"
            shown = self._bag.source.slice(span)
            self._bag.error(Code.BAD_LITERAL, span, text=shown, expected=expected)
            return None
        place = value.place
        number = self._checker.fresh_local()
        local = ir.Local(number, output.name.text, value.type, place)
        word = ast.Word("==", span)
        tests = [
            self._checker.operation(word, (local, ir.Literal(output.type, each, place)), span) for each in output.values
        ]
        known = [test for test in tests if test is not None]
        if len(known) < len(tests):
            return None
        checked = ir.Call("table.allowed", (value.type,), (local, any_of(known, place)), value.type, place)
        return ir.Let(number, output.name.text, value, checked, place)

    # -- rows -------------------------------------------------------------------------------------

    def _rows(
        self,
        table: ast.DecisionTable,
        listed: tuple[ast.Row, ...],
        hit: str,
        columns: dict[str, CheckedColumn],
        outputs: list[_Output],
        wanted: Type | None,
    ) -> list[LoweredRow] | None:
        """Check the rows in order, the default row last.

        A row of a first-hit table assumes that the rows above failed.
        """
        conditions: list[ir.Expression | None] = []
        values: list[ir.Expression | None] = []
        failed: Facts = NOTHING
        for row in listed:
            with self._checker.assuming(failed):
                condition, holds = self._row_condition(row, columns)
                with self._checker.assuming(holds):
                    value = self._result(row, outputs, wanted)
            conditions.append(condition)
            values.append(value)
            if hit == "first":
                failed |= self._row_facts(row, columns)
        rows = list(listed)
        if table.otherwise is not None:
            rows.append(table.otherwise)
            conditions.append(None)
            with self._checker.assuming(failed):
                values.append(self._result(table.otherwise, outputs, wanted))
        fitted = self._one_type(rows, values, wanted, bool(outputs))
        if fitted is None or any(each is None for each in conditions[: len(listed)]):
            return None
        return [LoweredRow(*each) for each in zip(rows, conditions, fitted, strict=True)]

    def _row_condition(self, row: ast.Row, columns: dict[str, CheckedColumn]) -> tuple[ir.Expression | None, Facts]:
        """Return the condition of a row, and the facts about null where it holds."""
        holds: Facts = NOTHING
        parts: list[ir.Expression | None] = []
        for word, cell in row.cells:
            column = columns[word.text]
            if cell.tests:
                with self._checker.assuming(holds):
                    parts.append(self._cells.condition(column, cell))
                holds |= self._cells.facts(column, cell, True)
        if row.when is not None:
            with self._checker.assuming(holds):
                parts.append(self._checker.check(row.when, BOOLEAN))
            holds |= facts_when(row.when, True, self._checker.scope)
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None, holds
        if row.when is not None and not row.cells:
            return known[0], holds
        return all_of(known, self._checker.place(row.span)), holds

    def _row_facts(self, row: ast.Row, columns: dict[str, CheckedColumn]) -> Facts:
        """Return the facts about null where a row does not match."""
        cells = [(word, cell) for word, cell in row.cells if cell.tests]
        if row.when is not None:
            return facts_when(row.when, False, self._checker.scope) if not cells else NOTHING
        if len(cells) != 1:
            return NOTHING
        return self._cells.facts(columns[cells[0][0].text], cells[0][1], False)

    def _one_type(
        self, rows: list[ast.Row], values: list[ir.Expression | None], wanted: Type | None, may_be_null: bool
    ) -> list[ir.Expression] | None:
        """Convert the results to one type.

        A null among them makes it optional, unless the context expects another type.
        """
        known = [value for value in values if value is not None]
        if len(known) < len(values) or not known:
            return None
        types = {value.type for value in known if value.type != NULL}
        if wanted is None:
            if not types:
                span = _result_span(rows[0])
                self._bag.error(Code.TYPE_MISMATCH, span, expected="a value", found="null")
                return None
            wanted = DECIMAL if types == {INTEGER, DECIMAL} else next(v.type for v in known if v.type != NULL)
            may_be_null = True
        if may_be_null and any(value.type == NULL for value in known):
            wanted = optional(wanted)
        fitted = [self._checker.fit(value, wanted, _result_span(row)) for value, row in zip(known, rows, strict=True)]
        sound = [value for value in fitted if value is not None]
        return sound if len(sound) == len(fitted) else None

    # -- priority ---------------------------------------------------------------------------------

    def _ranks(
        self, rows: list[LoweredRow], table: ast.DecisionTable, hit: str, outputs: list[_Output]
    ) -> list[tuple[int, ...]] | None:
        """Return the priority of each row, the lowest first.

        It has the positions of the row's outputs in their `values`.
        """
        assert table.hit is not None
        ranked: list[tuple[int, ...]] = []
        for row in rows:
            if row.condition is None:
                continue
            parts = [part for _, part in row.value.fields] if isinstance(row.value, ir.RecordValue) else [row.value]
            orders = [each.values or _members(each.type) for each in outputs] or [_members(row.value.type)]
            if not any(orders):
                help_ = "list the outputs with `values`, the highest priority first"
                expected = f"outputs with `values`, or an enum, under `{hit}`"
                self._bag.error(Code.WRONG_KIND, table.hit.span, key="hit", expected=expected, found="none", help=help_)
                return None
            rank: list[int] = []
            for part, order in zip(parts, orders, strict=len(parts) == len(orders)):
                literal = literal_of(part)
                if order and literal is None:
                    expected = f"a literal of the output's values: `{hit}` orders the rows by them"
                    also = (Label(table.hit.span, "the hit policy"),)
                    span = _result_span(row.source)
                    self._bag.error(
                        Code.WRONG_KIND, span, also=also, key="then", expected=expected, found="an expression"
                    )
                    return None
                if order and literal is not None:
                    rank.append(len(order) if literal.value is None else order.index(literal.value))
            ranked.append(tuple(rank))
        return ranked


def _named_column(name: str, span: Span) -> ast.Column:
    return ast.Column(ast.Word(name, span), ast.Name(name, span))


def _members(type_: Type) -> tuple[Value, ...]:
    inner = type_.inner if isinstance(type_, OptionalOf) else type_
    return inner.members if isinstance(inner, Enum) else ()


def _result_span(row: ast.Row) -> Span:
    return row.span if row.then is None else row.then.span


def _bind(body: ir.Expression, columns: Iterable[CheckedColumn]) -> ir.Expression:
    """Return the body inside a LET for each column's value, the first outermost."""
    bindings = [(column.name.text, number, value) for column in columns for number, value in column.bound]
    for name, number, value in reversed(bindings):
        body = ir.Let(number, name, value, body, value.place)
    return body
