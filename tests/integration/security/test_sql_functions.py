"""An SQL function outside the list: refused by the check, denied without its grant, performed with it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.servers import Postgres
from tests.unit.host.small import host_in, node_from
from vesper.compiler import compile_file
from vesper.host.host import Host
from vesper.language.diagnostics.codes import Code

NODE = """\
node_id: find_user_v1
type: data_transform
intent: Look up users
inputs:
  ids: array<string>
outputs:
  success:
    found: string
flow:
  - step: found
    operation: database_query
    query: {sql}
    returns: string
  - operation: return
    success: [found]
security:
  capabilities_required: [{capabilities}]
"""
SCHEMA = "CREATE TABLE users (name text); INSERT INTO users VALUES ('ada')"
OWN = {"sqlite": "last_insert_rowid", "postgres": "pg_backend_pid"}


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    if request.param == "sqlite":
        with sqlite3.connect(tmp_path / "a.db") as lite:
            lite.executescript(SCHEMA)
        lite.close()
        yield request.param, f"sqlite:{tmp_path / 'a.db'}"
        return
    server: Postgres = request.getfixturevalue("postgres")
    dsn = server.new_database()
    with psycopg.connect(dsn) as connection:
        connection.execute(SCHEMA.encode())
    yield request.param, dsn


def host(folder: Path, dsn: str, *allow: str) -> Host:
    settings: dict[str, Any] = {"databases": {"main": {"dsn": dsn}}, "grants": [{"nodes": ["*"], "allow": list(allow)}]}
    return host_in(folder, settings)


def test_function_needs_declaration_and_grant(database: tuple[str, str], tmp_path: Path) -> None:
    kind, dsn = database
    name = OWN[kind]
    sql = f"SELECT CAST({name}() AS text) AS found FROM users"  # noqa: S608  # a constant
    path = tmp_path / "find_user_v1.vsp"
    path.write_text(NODE.format(sql=sql, capabilities="database.read.users"), encoding="utf-8")
    compiled, bag = compile_file(path)
    assert compiled is None
    (problem,) = bag.sorted()
    assert problem.code is Code.SQL_FUNCTION
    assert f"database.function.{name}" in (problem.help or "")
    text = NODE.format(sql=sql, capabilities=f"database.read.users, database.function.{name}")
    with host(tmp_path, dsn, "database.read.users") as without:
        outcome = node_from(text, tmp_path, without)(ids=[])
        assert outcome.error is not None
        assert (outcome.error.kind, outcome.error.code) == ("denied", f"database.function.{name}")
    with host(tmp_path, dsn, "database.read.users", f"database.function.{name}") as granting:
        outcome = node_from(text, tmp_path, granting)(ids=[])
        assert outcome.ok, outcome.error
        assert outcome.found.isdigit()


def test_pure_function_needs_neither(database: tuple[str, str], tmp_path: Path) -> None:
    text = NODE.format(sql="SELECT upper(name) AS found FROM users", capabilities="database.read.users")
    with host(tmp_path, database[1], "database.read.users") as granting:
        assert node_from(text, tmp_path, granting)(ids=[]).found == "ADA"


def test_function_of_the_other_dialect_fails(database: tuple[str, str], tmp_path: Path) -> None:
    call = "initcap(name)" if database[0] == "sqlite" else "hex(name)"
    text = NODE.format(sql=f"SELECT {call} AS found FROM users", capabilities="database.read.users")  # noqa: S608  # a constant
    with host(tmp_path, database[1], "database.read.users") as granting:
        outcome = node_from(text, tmp_path, granting)(ids=[])
        assert outcome.error is not None
        assert outcome.error.code == "unavailable"
