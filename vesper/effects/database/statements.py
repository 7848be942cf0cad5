"""SQL of a node for the native databases: its parts and facts about it.

The SQL was parsed when the node was checked (vesper/language/check/flow/sql.py). This module reads it into tokens by
the rules of its database (vesper/language/sql/tokens.py), once for each statement of a process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from vesper.effects.performer import EffectFailed
from vesper.language.sql.calls import called_names
from vesper.language.sql.tokens import SqlRefused, tokens_of
from vesper.values.generated.sql_functions import FUNCTIONS, SYNTAX_FUNCTIONS, TYPES

if TYPE_CHECKING:
    from sqlglot import exp

_FOREIGN = {
    kind: FUNCTIONS[other] - FUNCTIONS[kind] - TYPES[kind]
    for kind, other in (("postgres", "sqlite"), ("sqlite", "postgres"))
}
PURE_NAMES = (sorted(FUNCTIONS["sqlite"]), sorted(SYNTAX_FUNCTIONS))
"""Functions of SQLite that a statement may use without a capability, and those that are part of the syntax."""

Names: TypeAlias = tuple[set[str], set[str], set[str], set[str]]
"""Tables read and written, tables written, functions, and names of WITH, in small letters."""
Target: TypeAlias = tuple[str, list[tuple[str, str | int]]]
"""A table, and each parameter that goes straight into a column: by its name, or by its place."""


@dataclass(frozen=True, slots=True)
class Facts:
    pieces: list[tuple[bool, str]]
    """Parts of the text in order; True marks the name of a parameter."""
    verb: str
    """The first word, in capitals."""
    foreign: str | None
    """Why the statement cannot run in this dialect."""
    limits: Names | str
    """For SQLite: what the statement may touch, or why that is not known."""
    target: Target | None
    """For SQLite: the columns that parameters go into; None where there are none."""


def facts_of(sql: str, kind: str) -> Facts:
    """Read a statement for a kind of database (`sqlite`, `postgres`). Raises `EffectFailed` for one that is refused."""
    try:
        pieces, verb = _split_statement(sql, kind)
        foreign = _find_foreign_function(sql, kind)
    except SqlRefused as refused:
        raise EffectFailed("unavailable", f"its SQL {refused}") from None
    is_sqlite = kind == "sqlite"
    limits: Names | str = _read_names(sql) if is_sqlite else (set(), set(), set(), set())
    return Facts(pieces, verb, foreign, limits, _find_target(sql) if is_sqlite else None)


def _split_statement(sql: str, kind: str) -> tuple[list[tuple[bool, str]], str]:
    """Split a text with one statement into its pieces; return them with its verb."""
    pieces: list[tuple[bool, str]] = []
    verb = ""
    has_ended = False
    for token, text, start in tokens_of(sql, kind):
        if token == "line" and start + len(text) == len(sql):
            # Whether it ended here, or its next line is now part of it, cannot be known any more.
            raise SqlRefused("ends in a comment with `--`; write it as /* … */")
        if token in ("space", "line", "block"):
            if not has_ended:
                pieces.append((False, text))
            continue
        if has_ended and token != "end":
            raise SqlRefused("is more than one statement")
        _check(token, text)
        if token == "end":
            has_ended = True
        elif token == "parameter":
            pieces.append((True, text[1:]))
        else:
            if not verb and token == "word":
                verb = text.upper()
            pieces.append((False, text))
    if not verb:
        raise SqlRefused("is empty")
    return pieces, verb


def _check(token: str, text: str) -> None:
    if token == "open_escape" or (token == "other" and text in "'\"`"):
        raise SqlRefused(f"has a {text} that does not end")
    if token == "no_cast":
        raise SqlRefused("has the cast `::`, which SQLite does not know; write CAST(x AS type)")
    if token == "hidden_name":
        raise SqlRefused('has a name with U&"…"; write its letters')
    if text.strip('"').lower() == "set_config" and token in ("word", "name"):
        raise SqlRefused("calls set_config, which would change the connection for those who use it next")
    if token == "position":
        raise SqlRefused(f"has the parameter `{text}`, which nothing gives; parameters are `:name`")


def _find_foreign_function(sql: str, kind: str) -> str | None:
    """Return the refusal of a function that is pure in the other dialect only. None without one.

    The check of a node allows it without a capability, but in this database it could only be a user-defined function.
    """
    for name in sorted(called_names(sql) & _FOREIGN[kind]):
        text = f"`{name}` is a function of {'SQLite' if kind == 'postgres' else 'PostgreSQL'}"
        return f"{text}, and this database is none; use another function"
    return None


def _read_names(sql: str) -> Names | str:
    """Return the names that the checker reads from a statement, or the reason why it refuses the statement."""
    from vesper.language.check.flow.sql import SqlProblem, read_sql

    try:
        found = read_sql(sql)
    except SqlProblem as problem:
        return f"its SQL {problem}: the node was not checked, or is damaged"
    tables, written = _lower(found.read_tables), _lower(found.write_tables)
    return tables | written, written, _lower(found.functions), _lower(found.local_names)


def _lower(names: tuple[str, ...]) -> set[str]:
    return {name.lower() for name in names}


# -- columns that parameters go into --------------------------------------------------------------


def _find_target(sql: str) -> Target | None:
    """Return the table and columns that a statement writes with its parameters. None for other statements."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(sql, read="sqlite")
    except (SqlglotError, RecursionError):
        return None  # a changed value is found when the column is read
    if isinstance(tree, exp.Insert):
        table = tree.find(exp.Table)
        columns = _insert_columns(tree)
    elif isinstance(tree, exp.Update):
        table = tree.this if isinstance(tree.this, exp.Table) else None
        columns = _update_columns(tree.expressions)
    else:
        return None
    return None if table is None or not columns else (table.name, columns)


def _insert_columns(tree: exp.Insert) -> list[tuple[str, str | int]]:
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
    return found + (_update_columns(conflict.expressions) if isinstance(conflict, exp.OnConflict) else [])


def _update_columns(changes: list[exp.Expr]) -> list[tuple[str, str | int]]:
    from sqlglot import exp

    return [
        (each.expression.name, each.this.name)
        for each in changes
        if isinstance(each, exp.EQ) and isinstance(each.expression, exp.Placeholder)
    ]
