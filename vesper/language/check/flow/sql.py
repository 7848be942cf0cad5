"""SQL of a node, read at check time. One statement yields its tables, verbs, parameters and columns.

SAFETY: SQL is always a literal, and statements that the parser does not understand are rejected. Only statements
checked here reach a database.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vesper.language.sql.calls import code_of, outside_names
from vesper.language.sql.tokens import SqlRefused
from vesper.values.generated.sql_functions import NEVER
from vesper.values.types import ArrayOf, OptionalOf, Type

if TYPE_CHECKING:
    from sqlglot import exp

    from vesper.language.sql.tokens import Token

MAX_SQL = 16 * 1024
READS = ("SELECT",)
WRITES = ("INSERT", "UPDATE", "DELETE")
_TARGET = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9_.-]*", re.ASCII)
_SYSTEM_TABLES = re.compile(r"(?:pg_|sqlite_|pragma_).*|bytecode|dbstat|information_schema|tables_used", re.DOTALL)


_FOREIGN = re.compile(
    r"\$?\{+ *(?P<braces>[a-z_][a-z0-9_.]*) *\}+|[@$](?P<sign>\w+)"
    r"|(?:(?P<column>[a-z_]\w*) *(?:=|<>|!=|<=?|>=?) *)?(?:%s|\?)",
    re.ASCII,
)
"""A value in braces, by a sign, or a `?` or `%s` after its column."""
_QUOTED = re.compile(r"'(?:[^']|'')*'")
_HOLE = re.compile(r"\$?\{+ *(?P<name>[a-z_][a-z0-9_.]*) *\}+|(?<=^'):(?P<parameter>[a-z_]\w*)(?='$)", re.ASCII)


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
    functions: tuple[str, ...] = ()
    """Functions and types that need a capability: all that are not on the list of pure ones."""
    local_names: tuple[str, ...] = ()
    """Names that the statement gives to queries by WITH."""

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Return the capabilities of a request with this statement.

        Empty for a query of no table, which no grant can cover.
        """
        kinds = (("write", self.write_tables), ("read", self.read_tables), ("function", self.functions))
        return tuple(f"database.{kind}.{name}" for kind, names in kinds for name in names)


class SqlProblem(Exception):
    """A problem of a statement. Its text continues a sentence that begins with `this SQL`."""


def read_sql(text: str) -> Statement:
    """Return the tables, verbs, parameters and columns of one statement. Raises `SqlProblem` for an unsupported one."""
    import logging

    import sqlglot  # 100 ms, and most nodes have no SQL

    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # unsupported SQL is reported here, not in its log
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if len(text) > MAX_SQL:
        raise SqlProblem(f"is longer than {MAX_SQL:,} characters")
    try:
        code = code_of(text)
        statements = [each for each in sqlglot.parse(text, read="postgres") if each is not None]
    except SqlRefused as refused:
        raise SqlProblem(str(refused)) from None
    except (SqlglotError, RecursionError) as error:
        reason = str(error).splitlines()[0] if isinstance(error, SqlglotError) else "too deep"
        raise SqlProblem(f"cannot be read: {_strip_escapes(reason)}") from None
    if len(statements) != 1:
        raise SqlProblem("must be one statement" if len(statements) > 1 else "is empty")
    tree = statements[0]
    verb = _verb(tree)
    if verb is None:
        raise SqlProblem("must be a SELECT, INSERT, UPDATE or DELETE")
    target = _target(tree)
    written = [] if target is None else [_table_name(target)]
    read = _read_tables(tree, target)
    for inner in tree.find_all(exp.Insert, exp.Update, exp.Delete):
        if inner is not tree:
            raise SqlProblem(f"has a {inner.key.upper()} inside; give it a step of its own")
    if tree.find(exp.Into) is not None:
        raise SqlProblem("has INTO, which writes; a query only reads")
    columns, has_star = _columns(tree)
    if verb == "SELECT" and not columns and columns is not None:
        raise SqlProblem("selects nothing")
    functions = _functions(code, tree, target)
    local = [_fold_case(each.args["alias"].this) for each in tree.find_all(exp.CTE)]
    return Statement(
        verb,
        _deduplicate(read),
        _deduplicate(written),
        _parameters(tree, text),
        columns,
        has_star,
        functions,
        _deduplicate(local),
    )


def help_for_placeholder(sql: str, names: Container[str], has_bind: bool = False) -> str | None:
    """Return the help for a value that SQL asks for in a form of another language, outside of quotes."""
    found = _FOREIGN.search(re.sub(r"'[^']*'", "''", sql))
    if found is None:
        return None
    written = found["braces"] or found["sign"] or found["column"] or ""
    return _write_parameter(written if written.partition(".")[0] in names else "name", has_bind)


def _write_parameter(written: str, has_bind: bool) -> str:
    name = written.rpartition(".")[2]
    return f"write `:{name}` without quotes, and add {_entry(name, written, has_bind)}"


def _entry(name: str, value: str, has_bind: bool) -> str:
    """Return what a step needs so that a parameter has this value."""
    if has_bind:
        return f"`{name}` to `bind`" if name == value else f"`{name}: {value}` to `bind`"
    return f"`bind: [{name}]`" if name == value else f"`bind: {{{name}: {value}}}`"


def quoted_placeholders(sql: str, names: Container[str], has_bind: bool = False) -> Iterator[tuple[str, str]]:
    """Yield each string of SQL that names a value of the node in braces or by a colon, with help."""
    for found in _QUOTED.finditer(sql):
        before = sql[: found.start()].rstrip()
        if before.endswith(("#>", "#>>", "#-")) or sql[found.end() :].startswith("::"):
            continue  # the path of a JSON value, or an array of PostgreSQL
        for hole in _HOLE.finditer(found[0]):
            written = hole["name"] or hole["parameter"]
            if written.partition(".")[0] in names:
                before, _, after = found[0][1:-1].partition(hole[0])
                parts = [f"'{before}'"] * bool(before) + [written] + [f"'{after}'"] * bool(after)
                entry = _entry("joined", f'"{" + ".join(parts)}"', has_bind)
                joined = f"write `:joined` in place of the string, and add {entry}"
                yield hole[0], _write_parameter(written, has_bind) if len(parts) == 1 else joined


def _functions(code: list[Token], tree: exp.Expr, target: exp.Table | None) -> tuple[str, ...]:
    """Return the functions and types that need a capability.

    Raises `SqlProblem` for a name that no capability allows.
    """
    from sqlglot import exp

    columns = Counter(_fold_case(each.this) for each in tree.find_all(exp.TableAlias) if each.columns and each.this)
    if target is not None and isinstance(target.parent, exp.Schema):
        columns[_fold_case(target.this)] += 1
    try:
        found = outside_names(code, columns)
    except SqlRefused as refused:
        raise SqlProblem(str(refused)) from None
    for name in found:
        if name.lower() in NEVER:
            raise SqlProblem(f"calls {name}, which would change the connection for the executions that use it next")
        if not _TARGET.fullmatch(name):
            raise SqlProblem(f"calls {name!r}, and no capability can have this name")
    return tuple(found)


def _read_tables(tree: exp.Expr, target: exp.Table | None) -> list[str]:
    from sqlglot import exp

    found = []
    for table in tree.find_all(exp.Table):
        is_function = not table.name and (isinstance(table.this, exp.Func) or "rows_from" in table.args)
        if table is not target and not is_function and not _names_cte(table):
            found.append(_table_name(table))
    for lateral in tree.find_all(exp.Lateral):
        if isinstance(lateral.this, exp.Column | exp.Identifier):
            raise SqlProblem("has LATERAL before a table; leave it out")
    return found


def _names_cte(table: exp.Table) -> bool:
    """Return whether a table name refers to a visible WITH, by the rules of PostgreSQL.

    Without RECURSIVE a WITH is visible after its own definition only: `WITH t AS (SELECT x FROM t)` reads the table.
    """
    from sqlglot import exp

    if not table.name or table.db or table.catalog:
        return False
    name = _fold_case(table.this)
    own: exp.CTE | None = None
    around = table.parent
    while around is not None:
        if isinstance(around, exp.CTE):
            own = around
        block = around.args.get("with_")
        if isinstance(block, exp.With) and _defines(block, name, own):
            return True
        around = around.parent
    return False


def _defines(block: exp.With, name: str, own: exp.CTE | None) -> bool:
    """Return whether a block of WITH defines a name that is visible in `own`.

    Those before `own` are visible, and `own` itself if the block is recursive.
    """
    for cte in block.expressions:
        if _fold_case(cte.args["alias"].this) == name and (cte is not own or block.recursive):
            return True
        if cte is own:
            return False
    return False


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
    if table.db or table.catalog:
        raise SqlProblem(f"names the table `{table.sql()}` with its schema; name the table alone")
    if not table.name:
        raise SqlProblem("reads from something that is neither a table nor a function")
    if _SYSTEM_TABLES.fullmatch(table.name.lower()):
        raise SqlProblem(f"names the system table `{table.name}`; read a view that shows what the node may know of it")
    return _fold_case(table.this)


def _fold_case(identifier: exp.Expr) -> str:
    """Return a name as PostgreSQL stores it: in lower case unless quoted."""
    name = identifier.name
    return name if identifier.args.get("quoted") else name.lower()


def _parameters(tree: exp.Expr, text: str) -> tuple[str, ...]:
    from sqlglot import exp

    found: list[str] = []
    for part in tree.walk(bfs=False):
        if isinstance(part, exp.Placeholder):
            if not part.name or part.name == "?":
                sign = "?" if "?" in text or "%s" not in text else "%s"
                raise SqlProblem(f"has `{sign}`; parameters are `:name`")
            found.append(part.name)
        elif isinstance(part, exp.Parameter):
            written = part.sql() if part.sql() in text else f"${part.sql()[1:]}"
            raise SqlProblem(f"has `{written}`; parameters are `:name`")
    return _deduplicate(found)


def _columns(tree: exp.Expr) -> tuple[tuple[str, ...] | None, bool]:
    from sqlglot import exp

    if not isinstance(tree, exp.Query):
        return None, False
    selected = tree.selects
    has_star = any(isinstance(each, exp.Star) or isinstance(each.this, exp.Star) for each in selected)
    names = [each.alias_or_name for each in selected]
    return (tuple(names) if all(names) else None), has_star


def row_type(gives: Type) -> tuple[str, Type]:
    """Return how many rows a query of a declared type returns (`all`, `optional`, `one`), and the type of a row."""
    match gives:
        case ArrayOf(element):
            return "all", element
        case OptionalOf(inner):
            return "optional", inner
        case _:
            return "one", gives


def one_line(sql: str) -> str:
    """Return SQL on one line, unless line breaks in literals or comments matter."""
    return sql.strip() if any(sign in sql for sign in ("'", '"', "--", "/*", "$")) else " ".join(sql.split())


def _deduplicate(names: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _strip_escapes(text: str) -> str:
    """Return a message without the terminal escapes that sqlglot adds."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).rstrip(". ")
