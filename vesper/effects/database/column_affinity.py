"""Columns of SQLite that would change what is put into them.

A column that is declared NUMERIC, DECIMAL(10, 2), REAL, INTEGER or, of all names, STRING, turns a text that looks like
a number into a number: a decimal 0.10 becomes the float 0.1, and the text `007` the integer 7, without a word. A write
that would do so is refused. Only parameters that are put into a column as they are can be seen here; what went through
an expression is found when it is read (database_values: a float is no decimal).
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

from vesper.effects.performer import EffectFailed
from vesper.values.model import MAX_INTEGER, MIN_INTEGER, Value
from vesper.values.numbers import decimal_text

if TYPE_CHECKING:
    from sqlglot import exp

_NUMBER = re.compile(r"[ \t\n\v\f\r]*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t\n\v\f\r]*")
_WHOLE = re.compile(r"-?[1-9][0-9]{0,18}|0")


def refuse_changed(connection: sqlite3.Connection, sql: str, values: Mapping[str, Value], refusal: str) -> None:
    """Raises `EffectFailed` where a column would not keep the decimal or the text that the statement puts into it."""
    at_risk = {name for name, value in values.items() if _is_at_risk(value)}
    if not at_risk:
        return
    found = _targets(sql)
    if found is None:
        return
    table, targets = found
    declared = _declared(connection, table)
    names = list(declared)
    for parameter, column in targets:
        if parameter not in at_risk:
            continue
        name = column.lower() if isinstance(column, str) else names[column] if column < len(names) else ""
        kind = declared.get(name)
        if kind is not None and _changes(affinity(kind), values[parameter]):
            what = "a decimal" if isinstance(values[parameter], Decimal) else "a text that looks like a number"
            raise EffectFailed(
                refusal,
                f"column `{name}` of `{table}` is declared `{kind}`, and SQLite would keep {what} there as another "
                "number; declare the column TEXT",
            )


def _is_at_risk(value: Value) -> bool:
    return isinstance(value, Decimal) or (isinstance(value, str) and _NUMBER.fullmatch(value) is not None)


def affinity(declared: str) -> str:
    """What SQLite does with values in a column that is declared so, by the rules of its documentation, in order."""
    name = declared.upper()
    if "INT" in name:
        return "INTEGER"
    if any(part in name for part in ("CHAR", "CLOB", "TEXT")):
        return "TEXT"
    if not name or "BLOB" in name:
        return "BLOB"
    return "REAL" if any(part in name for part in ("REAL", "FLOA", "DOUB")) else "NUMERIC"


def _changes(kind: str, value: Value) -> bool:
    if kind in ("TEXT", "BLOB"):
        return False
    if not isinstance(value, Decimal):
        return True
    text = decimal_text(value)
    is_kept = _WHOLE.fullmatch(text) is not None and MIN_INTEGER <= int(text) <= MAX_INTEGER
    return kind == "REAL" or not is_kept


def _declared(connection: sqlite3.Connection, table: str) -> dict[str, str]:
    """The columns of a table in order, in small letters, with their declared types."""
    cursor = connection.cursor()
    cursor.row_factory = None
    rows = cursor.execute(
        "SELECT CAST(name AS BLOB), CAST(type AS BLOB) FROM pragma_table_info(?)", (table,)
    ).fetchall()
    return {bytes(name).decode().lower(): bytes(type_).decode() for name, type_ in rows}


@lru_cache(maxsize=1024)
def _targets(sql: str) -> tuple[str, tuple[tuple[str, str | int], ...]] | None:
    """The table that a statement writes, and each parameter that goes straight into a column: by its name, or by its
    place where the statement names no columns. None where the statement is none that puts values into columns."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(sql, read="sqlite")
    except (SqlglotError, RecursionError):
        return None  # what it would have shown is found when the column is read
    if isinstance(tree, exp.Insert):
        table = tree.find(exp.Table)
        targets = _of_insert(tree)
    elif isinstance(tree, exp.Update):
        table = tree.this if isinstance(tree.this, exp.Table) else None
        targets = _of_changes(tree.expressions)
    else:
        return None
    return None if table is None else (table.name, tuple(targets))


def _of_insert(tree: exp.Insert) -> list[tuple[str, str | int]]:
    from sqlglot import exp

    columns = [each.name for each in tree.this.expressions] if isinstance(tree.this, exp.Schema) else []
    source = tree.expression
    rows: list[list[exp.Expr]] = []
    if isinstance(source, exp.Values):
        rows = [list(each.expressions) for each in source.expressions if isinstance(each, exp.Tuple)]
    elif isinstance(source, exp.Select):
        rows = [[each.unalias() for each in source.selects]]
    found: list[tuple[str, str | int]] = []
    for row in rows:
        for place, value in enumerate(row):
            if isinstance(value, exp.Placeholder) and (not columns or place < len(columns)):
                found.append((value.name, columns[place] if columns else place))
    conflict = tree.args.get("conflict")
    return found + (_of_changes(conflict.expressions) if isinstance(conflict, exp.OnConflict) else [])


def _of_changes(changes: list[exp.Expr]) -> list[tuple[str, str | int]]:
    from sqlglot import exp

    return [
        (each.expression.name, each.this.name)
        for each in changes
        if isinstance(each, exp.EQ) and isinstance(each.expression, exp.Placeholder)
    ]
