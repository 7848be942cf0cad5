"""Decision tables: cells and rows in words, and the alignment of rows that stand on one line each."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.syntax import ast
from vesper.language.syntax.format.formatter import format_source, same_tree
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree
from vesper.language.tables.cells import Between, Compare, Condition, IsNull, Not, Operand, Test
from vesper.lsp.features.knowledge import Knowledge, knowledge
from vesper.lsp.positions import to_range, to_span
from vesper.lsp.view import View

_COMPARED = {
    "==": "is",
    "!=": "is not",
    "<": "is less than",
    "<=": "is at most",
    ">": "is more than",
    ">=": "is at least",
}


def describe_cell(known: Knowledge, offset: int) -> str | None:
    """Return the cell or row at an offset in words, with the rule on one line; None outside of tables."""
    for table in known.all(ast.DecisionTable):
        if isinstance(table.rows, ast.TableFile) or not table.span.start <= offset <= table.span.end:
            continue
        for number, row in enumerate(table.rows, 1):
            cell = next((each for each in row.cells if _touches(each[1].span, offset)), None)
            if cell is not None:
                return f"{cell_text(*cell)}.\n\nRow {number}: {rule_text(known.source, row)}"
            if any(_touches(word.span, offset) for word, _ in row.cells):
                return f"Row {number}: {rule_text(known.source, row)}"
    return None


def _touches(span: Span, offset: int) -> bool:
    return span.start <= offset <= span.end


def cell_text(column: ast.Word, cell: ast.Cell) -> str:
    """Return the condition of a cell in words."""
    if not cell.tests:
        return f"`{column.text}` has any value"
    bare = [each for each in cell.tests if isinstance(each, Compare) and each.is_bare]
    if len(bare) == len(cell.tests) > 1:
        return f"`{column.text}` is one of " + ", ".join(_operand(each.operand) for each in bare)
    return " or ".join(_test_text(f"`{column.text}`", each, cell) for each in cell.tests)


def _test_text(column: str, test: Test, cell: ast.Cell) -> str:
    match test:
        case Compare(operator=operator, operand=operand):
            return f"{column} {_COMPARED[operator]} {_operand(operand)}"
        case Between():
            low = f"{'at least' if test.is_low_closed else 'more than'} {_operand(test.low)}"
            return f"{column} is {low} and {'at most' if test.is_high_closed else 'less than'} {_operand(test.high)}"
        case Not(tests=tests):
            return "not (" + " or ".join(_test_text(column, each, cell) for each in tests) + ")"
        case IsNull():
            return f"{column} is null"
        case Condition(start=start, end=end):
            return f"`{cell.text.text[start:end].strip()}`, where `value` is {column}"


def _operand(operand: Operand) -> str:
    return f"`{operand.text}`"


def rule_text(source: SourceFile, row: ast.Row) -> str:
    """Return a row as one sentence."""
    conditions = [cell_text(*each) for each in row.cells if each[1].tests]
    if row.when is not None:
        conditions.append(f"`{_flat(source, row.when.span)}`")
    result = "the row counts" if row.then is None else f"the result is `{_flat(source, row.then.span)}`"
    text = f"if {', and '.join(conditions)}, then {result}" if conditions else f"in every case {result}"
    return f"{text} ({row.annotation})" if row.annotation else text


def _flat(source: SourceFile, span: Span) -> str:
    return " ".join(source.slice(span).split())


# -- alignment ------------------------------------------------------------------------------------


def align_actions(view: View, uri: str, range_: types.Range) -> list[types.CodeAction]:
    """Return the action that aligns the table around a range, where that changes it."""
    known = knowledge(view)
    offset = to_span(view.source, range_).start
    tables = () if known is None else known.all(ast.DecisionTable)
    table = next((each for each in tables if _touches(each.span, offset)), None)
    if known is None or table is None or isinstance(table.rows, ast.TableFile):
        return []
    edits = align_table(view.source, known.tree, table.span)
    if not edits:
        return []
    listed = [types.TextEdit(to_range(view.source, span), text) for span, text in edits]
    edit = types.WorkspaceEdit({uri: listed})
    return [types.CodeAction("Align the table", types.CodeActionKind.RefactorRewrite, edit=edit)]


def align_table(source: SourceFile, tree: Tree, rows_span: Span) -> list[tuple[Span, str]]:
    """Return the changed rows of a table, in the layout that `vesper fmt` keeps."""
    rows = _rows(tree, rows_span)
    if rows is None or any(not _is_on_one_line(source, each) for each in rows):
        return []
    texts = _padded([_pieces(source, each) for each in rows])
    text = source.text
    for row, new in reversed(list(zip(rows, texts, strict=True))):
        text = text[: row.span.start] + new + text[row.span.end :]
    number = [each.span for each in _sequences(tree)].index(rows_span)
    settled = _formatted_rows(source.path, text, tree, number)
    if settled is None:
        return []
    return [(row.span, new) for row, new in zip(rows, settled, strict=True) if source.slice(row.span) != new]


def _formatted_rows(path: str, text: str, before: Tree, number: int) -> list[str] | None:
    """Return the rows of the same list in the formatted text, since the formatter decides which gaps stay.

    None where the text has another meaning: rows that have their keys in different orders cannot be aligned.
    """
    formatted = format_source(DiagnosticBag(SourceFile(path, text)))
    tree = None if formatted is None else read_yaml(DiagnosticBag(SourceFile(path, formatted)))
    if formatted is None or tree is None or not same_tree(before, tree):
        return None
    return [formatted[each.span.start : each.span.end] for each in list(_sequences(tree))[number].items]


def _sequences(tree: Tree) -> Iterator[Sequence]:
    if isinstance(tree, Sequence):
        yield tree
    parts = (
        () if isinstance(tree, Scalar) else tree.items if isinstance(tree, Sequence) else [v for _, v in tree.entries]
    )
    for part in parts:
        yield from _sequences(part)


def _rows(tree: Tree, span: Span) -> list[Mapping] | None:
    found = next((each for each in _sequences(tree) if each.span == span), None)
    rows = [each for each in found.items if isinstance(each, Mapping)] if found is not None else []
    return rows if found is not None and len(rows) == len(found.items) else None


def _is_on_one_line(source: SourceFile, row: Mapping) -> bool:
    text = source.slice(row.span)
    return text.startswith("{") and "\n" not in text


def _pieces(source: SourceFile, row: Mapping, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], str]]:
    """Return a row in flow style as pieces, each with the path of its key."""
    found: list[tuple[tuple[str, ...], str]] = []
    for number, (key, value) in enumerate(row.entries):
        here, last = (*path, key.text), number == len(row.entries) - 1
        opening = ("{" if number == 0 and not path else "") + source.slice(key.span) + ": "
        if isinstance(value, Mapping) and value.entries and len(path) == 0:
            inner = _pieces(source, value, here)
            inner[0] = (here, f"{opening}{{{inner[0][1]}")
            inner[-1] = (inner[-1][0], inner[-1][1] + "}")
        else:
            inner = [(here, opening + source.slice(value.span))]
        inner[-1] = (inner[-1][0], inner[-1][1] + ("" if last and path else "}" if last else ","))
        found += inner
    return found


def _padded(rows: list[list[tuple[tuple[str, ...], str]]]) -> list[str]:
    """Return the rows with the pieces of each key in one column."""
    keys = list(dict.fromkeys(key for row in rows for key, _ in row))
    texts = ["" for _ in rows]
    for key in sorted(keys, key=lambda each: max(i for row in rows for i, (own, _) in enumerate(row) if own == each)):
        having = [number for number, row in enumerate(rows) if key in dict(row)]
        column = max(len(texts[number]) + (1 if texts[number] else 0) for number in having)
        for number in having:
            texts[number] = texts[number].ljust(column) + dict(rows[number])[key]
    return texts
