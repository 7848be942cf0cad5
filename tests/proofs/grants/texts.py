"""SQL texts under a grant of the table `users`: every function, type and attribute that the two databases ship.

Functions are drawn from the catalogs of running servers (`pg_proc`, `pragma_function_list`), with arguments by the
types of their parameters. Texts that functions take are baits: a query of `secrets`, its name, and the path of a file.
"""
# ruff: noqa: S608  # the names in these statements are constants, or come from the catalogs of a test server

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from vesper.values.generated.sql_functions import VALUE_WORDS

if TYPE_CHECKING:
    import psycopg

PLACES = {
    "select": "SELECT {call} AS x FROM users",
    "where": "SELECT id AS x FROM users WHERE {call} IS NOT NULL",
    "order": "SELECT id AS x FROM users ORDER BY {call}",
    "cte": "WITH c AS (SELECT {call} AS x FROM users) SELECT x FROM c",
    "subquery": "SELECT s.x FROM (SELECT {call} AS x FROM users) s",
    "from": "SELECT f.* FROM users, {call} AS f",
    "insert": "INSERT INTO users (id, name) SELECT 7, CAST({call} AS text) FROM users",
    "update": "UPDATE users SET name = CAST({call} AS text)",
}
_WRITES = ("insert", "update")
_NUMBERS = {
    "smallint",
    "integer",
    "bigint",
    "numeric",
    "real",
    "double precision",
    "oid",
    "xid",
    "xid8",
    "cid",
    "money",
}
_LITERALS = {
    "boolean": "true",
    "bytea": "'\\x00'",
    "date": "'2026-01-01'",
    "timestamp without time zone": "'2026-01-01'",
    "timestamp with time zone": "'2026-01-01'",
    "time without time zone": "'10:00'",
    "time with time zone": "'10:00+00'",
    "interval": "'1 day'",
    "uuid": "'00000000-0000-0000-0000-000000000000'",
    "json": "'[1]'",
    "jsonb": "'[1]'",
    "jsonpath": "'$'",
    "xml": "'<a/>'",
    "inet": "'10.0.0.1'",
    "cidr": "'10.0.0.0/8'",
    "bit": "'1'",
    "bit varying": "'1'",
    "point": "'(1,1)'",
    "internal": "NULL",
    "anyelement": "users.name",
    "anynonarray": "users.name",
    '"any"': "users.name",
    "anycompatible": "users.name",
    "record": "users",
    "anyarray": "'{1}'",
    "anycompatiblearray": "'{1}'",
    "regclass": "'secrets'",
    "name": "'secrets'",
    "regproc": "'pg_read_file'",
    "regrole": "'vesper'",
    "regnamespace": "'public'",
    "tid": "'(0,1)'",
    "aclitem": "'=r/vesper'",
}


class Text(NamedTuple):
    """One statement: what it tries, where, and whether it writes."""

    name: str
    place: str
    sql: str

    @property
    def writes(self) -> bool:
        return self.place in _WRITES


def baits(path: str) -> tuple[str, ...]:
    """Return literals that make a function read what is not granted, if it can."""
    return ("'select pw from secrets'", "'secrets'", "'" + path.replace("'", "''") + "'")


def in_places(name: str, call: str, places: Sequence[str] = tuple(PLACES)) -> Iterator[Text]:
    for place in places:
        yield Text(name, place, PLACES[place].format(call=call))


def postgres_texts(connection: psycopg.Connection[Any], path: str) -> Iterator[Text]:
    """Yield every function with every list of parameters, type, and attribute of a row."""
    names: set[str] = set()
    for name, kind, types in _functions(connection):
        names.add(name)
        quoted = name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else f'"{name}"'
        for bait in baits(path) if {"text", "cstring", '"any"'} & set(types) else ("'secrets'",):
            call = f"{quoted}({', '.join(_argument(each, bait) for each in types)})"
            yield from in_places(name, f"{call} OVER ()" if kind == "w" else call)
    for name in sorted(names):
        if re.fullmatch(r"[a-z_][a-z0-9_]*", name):
            yield Text(name, "attribute", f"SELECT (u).{name} AS x FROM users u")
            yield Text(name, "column", f"SELECT u.{name} AS x FROM users u")
    for (name,) in connection.execute(
        "SELECT typname FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype <> 'c' ORDER BY 1"
    ):
        for call in (f"'secrets'::{name}", f"CAST('secrets' AS {name})", f"{name} 'secrets'", f"{name}('secrets')"):
            yield from in_places(name, call, ("select", "where", "update"))
    for (name,) in connection.execute("SELECT DISTINCT oprname FROM pg_operator ORDER BY 1"):
        yield from in_places(name, f"(name {name} 'secrets')", ("select", "where", "update"))
    for name in sorted(VALUE_WORDS):
        yield from in_places(name, name)


def _functions(connection: psycopg.Connection[Any]) -> list[tuple[str, str, list[str]]]:
    rows = connection.execute(
        """SELECT proname, prokind::text, array(SELECT format_type(t, NULL) FROM unnest(proargtypes) t)
        FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace ORDER BY proname, oid"""
    ).fetchall()
    return [(name, kind, list(types)) for name, kind, types in rows]


def _argument(type_: str, bait: str) -> str:
    if type_ in _NUMBERS:
        return "1"
    if type_ in ("text", "cstring", "character varying", "character"):
        return bait
    return _LITERALS.get(type_, "'{}'" if type_.endswith("[]") else "'secrets'")


def sqlite_texts(connection: sqlite3.Connection, path: str) -> Iterator[Text]:
    """Yield every function with each number of arguments, each table function, and each module as a table."""
    rows = connection.execute("SELECT DISTINCT name, narg, type FROM pragma_function_list ORDER BY 1, 2").fetchall()
    for name, count, kind in rows:
        if not re.fullmatch(r"\w+", name):
            continue
        for bait in baits(path):
            for number in (0, 1, 2, 3) if count < 0 else (count,):
                call = f"{name}({', '.join([bait] * number)})"
                yield from in_places(name, f"{call} OVER ()" if kind == "w" else call)
    for (name,) in connection.execute("SELECT name FROM pragma_module_list ORDER BY 1").fetchall():
        yield Text(name, "table", f"SELECT * FROM {name}")
        yield Text(name, "from", f"SELECT id AS x FROM users, {name}('secrets')")
    for (name,) in connection.execute("SELECT name FROM pragma_pragma_list ORDER BY 1").fetchall():
        yield Text(name, "from", f"SELECT id AS x FROM users, pragma_{name}('secrets')")
        yield Text(name, "table", f"SELECT * FROM pragma_{name}")
        yield Text(name, "statement", f"PRAGMA {name}")
    for name in sorted(VALUE_WORDS):
        yield from in_places(name, name)
