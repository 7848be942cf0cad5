"""SQL of a node, read at check time. One statement yields its tables, verbs, parameters and columns.

SAFETY: SQL is always a literal, and statements that the parser does not understand are rejected. Only statements
checked here reach a database.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

MAX_SQL = 16 * 1024
READS = ("SELECT",)
WRITES = ("INSERT", "UPDATE", "DELETE")


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement: its verb, tables, parameters and columns."""

    verb: str
    read_tables: tuple[str, ...]
    write_tables: tuple[str, ...]
    parameters: tuple[str, ...]
    """Names in order of first use."""
    columns: tuple[str, ...] | None
    """Column names of a SELECT; None where a column has no name."""
    has_star: bool


class SqlProblem(Exception):
    """A problem of a statement; its text continues a sentence that begins with `this SQL`."""


def read_sql(text: str) -> Statement:
    """Return what one statement reads, writes and takes as parameters, or raise `SqlProblem`."""
    import logging

    import sqlglot  # 100 ms, and most nodes have no SQL

    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # unsupported SQL is reported here, not in its log
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if len(text) > MAX_SQL:
        raise SqlProblem(f"is longer than {MAX_SQL:,} characters")
    try:
        statements = [each for each in sqlglot.parse(text, read="postgres") if each is not None]
    except (SqlglotError, RecursionError) as error:
        reason = str(error).splitlines()[0] if isinstance(error, SqlglotError) else "too deep"
        raise SqlProblem(f"cannot be read: {_plain(reason)}") from None
    if len(statements) != 1:
        raise SqlProblem("must be one statement" if len(statements) > 1 else "is empty")
    tree = statements[0]
    verb = _verb(tree)
    if verb is None:
        raise SqlProblem("must be a SELECT, INSERT, UPDATE or DELETE")
    names = {cte.alias_or_name for cte in tree.find_all(exp.CTE)}
    target = _target(tree)
    written = [] if target is None else [_table_name(target)]
    read = [_table_name(table) for table in tree.find_all(exp.Table) if table is not target]
    read = [name for name in read if name not in names]
    for inner in tree.find_all(exp.Insert, exp.Update, exp.Delete):
        if inner is not tree:
            raise SqlProblem(f"has a {inner.key.upper()} inside; give it a step of its own")
    if tree.find(exp.Into) is not None:
        raise SqlProblem("has INTO, which writes; a query only reads")
    columns, has_star = _columns(tree)
    if verb == "SELECT" and not columns and columns is not None:
        raise SqlProblem("selects nothing")
    return Statement(verb, _unique(read), _unique(written), _parameters(tree), columns, has_star)


def _verb(tree: exp.Expr) -> str | None:
    from sqlglot import exp

    kinds = ((exp.Query, "SELECT"), (exp.Insert, "INSERT"), (exp.Update, "UPDATE"), (exp.Delete, "DELETE"))
    return next((verb for kind, verb in kinds if isinstance(tree, kind)), None)


def _target(tree: exp.Expr) -> exp.Table | None:
    """Return the table that a statement writes, or None for a query."""
    from sqlglot import exp

    if not isinstance(tree, exp.Insert | exp.Update | exp.Delete):
        return None
    found = tree.this
    if isinstance(found, exp.Schema):
        found = found.this
    if not isinstance(found, exp.Table):
        raise SqlProblem("names no table to write")
    return found


def _table_name(table: exp.Table) -> str:
    name = table.name
    if table.db or table.catalog:
        raise SqlProblem(f"names the table `{table.sql()}` with its schema; name the table alone")
    if not name:
        raise SqlProblem("reads from a function; only tables can be read")
    return name.lower() if name.islower() or not table.this.args.get("quoted") else name


def _parameters(tree: exp.Expr) -> tuple[str, ...]:
    from sqlglot import exp

    found: list[str] = []
    for part in tree.walk(bfs=False):
        if isinstance(part, exp.Placeholder):
            if not part.name or part.name == "?":
                raise SqlProblem("has `?`; parameters are `:name`")
            found.append(part.name)
        elif isinstance(part, exp.Parameter):
            raise SqlProblem(f"has `{part.sql()}`; parameters are `:name`")
    return _unique(found)


def _columns(tree: exp.Expr) -> tuple[tuple[str, ...] | None, bool]:
    from sqlglot import exp

    if not isinstance(tree, exp.Query):
        return None, False
    selected = tree.selects
    has_star = any(isinstance(each, exp.Star) or isinstance(each.this, exp.Star) for each in selected)
    names = [each.alias_or_name for each in selected]
    return (tuple(names) if all(names) else None), has_star


def _unique(names: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _plain(text: str) -> str:
    """Return a message without the terminal escapes that sqlglot adds."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).rstrip(". ")
