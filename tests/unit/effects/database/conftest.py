"""One database of each kind for every test that asks for `database`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.servers import Postgres
from tests.unit.effects.database.databases import KINDS, Database, sqlite_at


@pytest.fixture(scope="session")
def emptied_dsn(postgres: Postgres) -> str:
    """Of a database that every test finds empty: making a new one takes ten times as long."""
    return postgres.new_database()


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        found = sqlite_at(tmp_path)
    else:
        dsn = request.getfixturevalue("emptied_dsn")
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        found = Database("postgres", dsn)
    yield found
    found.close()
