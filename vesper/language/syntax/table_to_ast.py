"""Decision tables, from YAML to AST: columns, outputs, rows and the grammar of their cells."""

from __future__ import annotations

from dataclasses import replace

from vesper.language.diagnostics.codes import Code
from vesper.language.syntax import ast, shapes
from vesper.language.syntax.fields import Fields, expect_mapping, expect_scalar, expect_sequence, report_wrong_kind
from vesper.language.syntax.scalar_text import place_text
from vesper.language.syntax.slots import SlotReader
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree
from vesper.language.tables.cells import Between, CellProblem, Not, Test, parse_cell
from vesper.language.tables.model import HITS

MAX_ROWS = 1_000
MAX_COLUMNS = 64
MAX_TESTS = 4_096
"""Maximum number of tests in the cells of a document; a range counts as two."""


class TableReader(SlotReader):
    """Reads decision tables: steps, top-level tables, and tables of functions."""

    _tests = 0

    def _decision_table(self, entry: Fields) -> ast.DecisionTable | None:
        hit = self._word(entry.scalar("hit"), "hit", HITS)
        listed_columns, listed_outputs = entry.mapping("columns"), entry.mapping("outputs")
        columns = self._read_each(listed_columns, self._column)
        outputs = self._read_each(listed_outputs, self._table_output)
        type_ = self._type(entry.scalar("type")) if "type" in entry.names() else None
        read = self._rows(entry.get("rows"), needs_result=hit is None or hit.text != "count")
        is_whole = len(columns) == _size(listed_columns) and len(outputs) == _size(listed_outputs)
        if read is None or not is_whole or (hit is None and "hit" in entry.names()):
            return None
        if type_ is not None and listed_outputs is not None:
            help_ = "`outputs` states the types of the results: leave `type` out"
            self._bag.error(
                Code.UNKNOWN_KEY, listed_outputs.span, where="a table with `type`", key="outputs", help=help_
            )
            return None
        rows, otherwise = read
        listed = entry.get("rows")
        assert listed is not None
        table = ast.DecisionTable(rows, otherwise, listed.span, type_, hit, columns, outputs)
        return table if isinstance(rows, ast.TableFile) else _drop_undecided_rows(table)

    # -- columns and outputs ----------------------------------------------------------------------

    def _column(self, name: ast.Word, tree: Tree) -> ast.Column | None:
        if isinstance(tree, Scalar):
            value = self._expression(expect_scalar(tree, name.text, self._bag))
            return None if value is None else ast.Column(name, value)
        mapping = expect_mapping(tree, name.text, self._bag)
        if mapping is None:
            return None
        entry = Fields(mapping, shapes.TABLE_COLUMN, self._bag)
        value = self._expression(entry.scalar("value"))
        listed = entry.sequence("allowed")
        cells = [self._cell(expect_scalar(item, "allowed", self._bag)) for item in (listed.items if listed else ())]
        known = tuple(cell for cell in cells if cell is not None)
        is_whole = len(known) == len(cells) and (value is not None or "value" not in entry.names())
        return ast.Column(name, value, known) if is_whole else None

    def _table_output(self, name: ast.Word, tree: Tree) -> ast.TableOutput | None:
        if isinstance(tree, Scalar):
            type_ = self._type(expect_scalar(tree, name.text, self._bag))
            return None if type_ is None else ast.TableOutput(name, type_)
        entry = self._fields(expect_mapping(tree, name.text, self._bag), shapes.TABLE_OUTPUT)
        if entry is None:
            return None
        type_, listed = self._type(entry.scalar("type")), entry.sequence("values")
        return None if type_ is None else ast.TableOutput(name, type_, listed.items if listed else ())

    # -- rows -------------------------------------------------------------------------------------

    def _rows(
        self, tree: Tree | None, needs_result: bool
    ) -> tuple[tuple[ast.Row, ...] | ast.TableFile, ast.Row | None] | None:
        """Read the rows and the default row; None after reporting an error."""
        if isinstance(tree, Mapping) and {"when", "then", "otherwise", "in"} & {key.text for key, _ in tree.entries}:
            help_ = f"each row begins with `- `: write `- {tree.entries[0][0].text}: …`, one row below the other"
            report_wrong_kind(tree, "rows", "a list", self._bag, help_)
            return None
        if isinstance(tree, Mapping):
            file = self._table_file(tree)
            return None if file is None else (file, None)
        listed = None if tree is None else expect_sequence(tree, "rows", self._bag)
        if listed is None:
            return None
        if not listed.items:
            self._bag.error(Code.MISSING_KEY, listed.span, where="a decision table", key="otherwise")
            return None
        if len(listed.items) > MAX_ROWS:
            help_ = "put the rows in a file: `rows: {file: rates.csv}`"
            span = listed.items[MAX_ROWS].span
            self._bag.error(Code.TOO_LARGE, span, limit=f"{MAX_ROWS:,}", what="rows in this table", help=help_)
            return None
        return self._listed_rows(listed, needs_result)

    def _listed_rows(self, listed: Sequence, needs_result: bool) -> tuple[tuple[ast.Row, ...], ast.Row | None] | None:
        items, otherwise = listed.items, None
        last = items[-1]
        has_default = _is_default(last)
        early = next((item for item in items[:-1] if _is_default(item)), None)
        if early is not None:
            expected = "in the last row: the rows below would never be reached"
            self._bag.error(Code.WRONG_KIND, early.span, key="otherwise", expected=expected, found="above others")
            return None
        rows = [self._row(item, needs_result) for item in (items[:-1] if has_default else items)]
        if has_default:
            assert isinstance(last, Mapping)
            otherwise = self._default_row(last)
        known = tuple(row for row in rows if row is not None)
        return None if len(known) < len(rows) or (has_default and otherwise is None) else (known, otherwise)

    def _row(self, tree: Tree, needs_result: bool) -> ast.Row | None:
        mapping = expect_mapping(tree, "a row", self._bag)
        if mapping is None:
            return None
        entry = Fields(mapping, shapes.ROW, self._bag)
        when, then = self._expression(entry.scalar("when")), self._expression_in(entry.get("then"), "then")
        listed = entry.mapping("in")
        cells = self._read_each(listed, self._cell_of)
        if len(cells) < _size(listed):
            return None
        if then is None and needs_result and "then" not in entry.names():
            self._bag.error(Code.MISSING_KEY, entry.span, where="a row", key="then")
        if not {"in", "when"} & set(entry.names()):
            self._bag.error(Code.MISSING_KEY, entry.span, where="a row", key="when", help="or `in` with cells")
            return None
        if (then is None and (needs_result or "then" in entry.names())) or (when is None and "when" in entry.names()):
            return None
        return self._as_row(cells, when, then, entry)

    def _default_row(self, mapping: Mapping) -> ast.Row | None:
        entry = Fields(mapping, shapes.OTHERWISE, self._bag)
        then = self._expression_in(entry.get("otherwise"), "otherwise")
        if then is None:
            return None
        return self._as_row((), None, then, entry)

    def _as_row(
        self,
        cells: tuple[tuple[ast.Word, ast.Cell], ...],
        when: ast.Expression | None,
        then: ast.Expression | None,
        entry: Fields,
    ) -> ast.Row:
        line, _ = self._bag.source.position(entry.span.start)
        annotation = self._text(entry, "annotation")
        return ast.Row(cells, when, then, entry.span, line, annotation, self._reason(entry))

    def _text(self, entry: Fields, key: str) -> str | None:
        scalar = entry.scalar(key)
        return None if scalar is None else " ".join(scalar.text.split())

    def _reason(self, entry: Fields) -> str | None:
        scalar = entry.scalar("reason")
        return None if scalar is None else self._name(scalar, "a reason").text

    def _table_file(self, mapping: Mapping) -> ast.TableFile | None:
        entry = Fields(mapping, shapes.TABLE_FILE, self._bag)
        path, sheet = entry.scalar("file"), entry.scalar("sheet")
        if path is None:
            return None
        name = None if sheet is None else ast.Word(sheet.text, sheet.span)
        return ast.TableFile(ast.Word(path.text, path.span), name, entry.span)

    # -- cells ------------------------------------------------------------------------------------

    def _cell_of(self, name: ast.Word, tree: Tree) -> tuple[ast.Word, ast.Cell] | None:
        cell = self._cell(expect_scalar(tree, name.text, self._bag))
        return None if cell is None else (name, cell)

    def _cell(self, scalar: Scalar | None) -> ast.Cell | None:
        if scalar is None:
            return None
        placed = place_text(self._bag.source, scalar)
        try:
            tests: tuple[Test, ...] = parse_cell(placed.text)
        except CellProblem as problem:
            span = placed.span(problem.start, problem.end) if problem.end > problem.start else scalar.span
            expected, found = problem.expected, problem.found
            self._bag.error(Code.EXPRESSION_SYNTAX, span, expected=expected, found=found, help=problem.help)
            return None
        self._tests += _count(tests)
        if self._tests > MAX_TESTS:
            self._stop_too_large(scalar, MAX_TESTS, "tests in the cells of this document")
        return ast.Cell(tests, placed, scalar.span)


def _count(tests: tuple[Test, ...]) -> int:
    """Return the number of comparisons that tests stand for."""
    return sum(_count(each.tests) if isinstance(each, Not) else 2 if isinstance(each, Between) else 1 for each in tests)


def _is_default(row: Tree) -> bool:
    """Return whether a row is the default. A row with only `else` or `default` is one too."""
    names = {key.text for key, _ in row.entries} if isinstance(row, Mapping) else set()
    return "otherwise" in names or (len(names) == 1 and names <= {"else", "default"})


def _size(mapping: Mapping | None) -> int:
    return 0 if mapping is None else len(mapping.entries)


def _drop_undecided_rows(table: ast.DecisionTable) -> ast.DecisionTable:
    """Replace the first row with an unreadable condition, and all below it, by unread ones.

    Facts about null from that condition would decide which of these rows are valid.
    """
    assert not isinstance(table.rows, ast.TableFile)
    for position, row in enumerate(table.rows):
        if isinstance(row.when, ast.Unread):
            unread = [
                replace(each, when=ast.Unread(each.span), then=ast.Unread(each.span)) for each in table.rows[position:]
            ]
            last = table.otherwise
            otherwise = None if last is None else replace(last, then=ast.Unread(last.span))
            return replace(table, rows=(*table.rows[:position], *unread), otherwise=otherwise)
    return table
