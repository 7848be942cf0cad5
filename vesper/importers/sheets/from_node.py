"""The decision tables of a node's text, for export."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from vesper.importers.sheets.model import ColumnOfCells, ColumnOfResults, SheetRow, SheetTable
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree

RESULT = "result"
"""The name of the one result that a table does not name."""


class NotExported(Exception):
    """A node whose tables have no sheet; the text says why."""


def tables_of_text(text: str, path: str = "node.vsp") -> list[SheetTable]:
    """Return the tables of a node or a library: its steps, `tables` and functions. Raises `NotExported`."""
    bag = DiagnosticBag(SourceFile(path, text))
    tree = read_yaml(bag)
    if not isinstance(tree, Mapping):
        raise NotExported("; ".join(each.headline for each in bag.sorted()) or "the file is no node")
    document = _entries(tree)
    types = _types(document.get("inputs"))
    found = []
    for name, declared in _entries(document.get("tables")).items():
        if isinstance(declared, Mapping):
            found.append(_table(name, _entries(declared), _types(_entries(declared).get("inputs"))))
    for name, declared in _entries(document.get("functions")).items():
        entry = _entries(declared)
        if isinstance(entry.get("table"), Mapping):
            found.append(_table(name, _entries(entry["table"]), _types(entry.get("params"))))
    for step in _steps(document.get("flow")):
        found.append(_table(_text(step.get("step")) or "table", step, types))
    return found


def _steps(tree: Tree | None) -> Iterator[dict[str, Tree]]:
    """Yield the steps that are tables, also those inside blocks."""
    if isinstance(tree, Sequence):
        for item in tree.items:
            yield from _steps(item)
    elif isinstance(tree, Mapping):
        entry = _entries(tree)
        parameters = _entries(entry.get("parameters"))
        if _text(entry.get("operation")) == "decision_table":
            yield {**entry, **parameters}
            return
        for value in entry.values():
            yield from _steps(value)


def _entries(tree: Tree | None) -> dict[str, Tree]:
    return {key.text: value for key, value in tree.entries} if isinstance(tree, Mapping) else {}


def _text(tree: Tree | None) -> str:
    return tree.text if isinstance(tree, Scalar) else ""


def _types(tree: Tree | None) -> dict[str, str]:
    """Return the texts of declared types by name."""
    return {
        name: _text(declared) if isinstance(declared, Scalar) else _text(_entries(declared).get("type"))
        for name, declared in _entries(tree).items()
    }


def _table(name: str, entry: dict[str, Tree], types: dict[str, str]) -> SheetTable:
    table = SheetTable(name, _text(entry.get("hit")) or "first")
    rows = entry.get("rows")
    if isinstance(rows, Mapping):
        raise NotExported(
            f"table `{name}` has its rows in `{_text(_entries(rows).get('file'))}`: that file is the sheet"
        )
    listed = [_entries(item) for item in rows.items] if isinstance(rows, Sequence) else []
    table.outputs = _outputs(entry, listed)
    table.columns = _columns(entry, listed, types)
    outputs = {each.name: each for each in table.outputs}
    for item in listed:
        is_default = "otherwise" in item
        cells = {key: _text(value) for key, value in _entries(item.get("in")).items()}
        table.rows.append(
            SheetRow(
                0,
                {key: text for key, text in cells.items() if text.strip() != "-"},
                _results(item.get("otherwise" if is_default else "then"), outputs),
                _text(item.get("when")),
                _text(item.get("annotation")),
                _text(item.get("reason")),
                is_default,
            )
        )
    return table


def _outputs(entry: dict[str, Tree], rows: list[dict[str, Tree]]) -> list[ColumnOfResults]:
    declared = _entries(entry.get("outputs"))
    if declared:
        outputs = []
        for name, each in declared.items():
            type_ = _text(each) if isinstance(each, Scalar) else _text(_entries(each).get("type"))
            values = _entries(each).get("values")
            listed = [_text(value) for value in values.items] if isinstance(values, Sequence) else []
            outputs.append(ColumnOfResults(name, type_, listed))
        return outputs
    keys = dict.fromkeys(key for row in rows for key in _entries(row.get("then") or row.get("otherwise")))
    if keys:
        return [ColumnOfResults(key) for key in keys]
    return [ColumnOfResults(RESULT, _text(entry.get("type")))] if _text(entry.get("hit")) != "count" else []


def _columns(entry: dict[str, Tree], rows: list[dict[str, Tree]], types: dict[str, str]) -> list[ColumnOfCells]:
    declared = _entries(entry.get("columns"))
    names = dict.fromkeys([*declared, *(key for row in rows for key in _entries(row.get("in")))])
    columns = []
    places = {name: at for at, name in enumerate(types)}
    for name in sorted(names, key=lambda each: places.get(each, len(places))):
        each = declared.get(name)
        expression = _text(each) if isinstance(each, Scalar) else _text(_entries(each).get("value"))
        allowed = _entries(each).get("allowed")
        listed = [_text(value) for value in allowed.items] if isinstance(allowed, Sequence) else []
        source = expression or name
        columns.append(ColumnOfCells(name, types.get(source, ""), listed, expression if expression != name else ""))
    return columns


def _results(tree: Tree | None, outputs: dict[str, ColumnOfResults]) -> dict[str, str]:
    if isinstance(tree, Mapping):
        written = {key: _result(_text(value), outputs.get(key)) for key, value in _entries(tree).items()}
    else:
        name = next(iter(outputs), RESULT)
        written = {name: _result(_text(tree), outputs.get(name))}
    return {key: text for key, text in written.items() if text}


def _result(text: str, output: ColumnOfResults | None) -> str:
    """Return a result as a cell: a literal without quotes where its type allows it, else `=` and the expression."""
    type_ = output.type if output is not None else ""
    if output is not None and text in output.values:
        return text
    inner = type_.removeprefix("optional<").removesuffix(">") if type_.startswith("optional<") else type_
    if text == "null" and type_.startswith("optional<"):
        return ""
    if inner == "string":
        for quote in ("'", '"'):
            body = text[1:-1]
            if len(text) > 1 and text[0] == text[-1] == quote and quote not in body and is_plain_text(body):
                return body
        return f"= {text}"
    if inner == "boolean" and text in ("true", "false"):
        return text
    if inner in ("integer", "decimal") and _is_number(text, inner):
        return text
    if inner.startswith("enum[") and text.replace("_", "a").isalnum():
        return text
    return f"= {text}" if text else ""


def is_plain_text(text: str) -> bool:
    """Return whether a text can be a cell unchanged. It must not read as an expression, nor lose spaces."""
    return bool(text) and text == text.strip() and not text.startswith("=") and "\n" not in text


def _is_number(text: str, type_: str) -> bool:
    if not text.removeprefix("-").replace(".", "", 1).isdigit() or not text.isascii():
        return False
    try:
        return Decimal(text).is_finite() and (type_ == "decimal" or "." not in text)
    except InvalidOperation:
        return False
