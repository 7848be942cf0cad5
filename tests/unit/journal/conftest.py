"""Every test that asks for `dsn` or `journal` runs on both stores."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.journal.helpers import Raw
from vesper.journal.journal import Journal, open_journal

if TYPE_CHECKING:
    from tests.support.servers import Postgres

_schemas = itertools.count(1)


@pytest.fixture(scope="session")
def journal_database(postgres: Postgres) -> str:
    return postgres.new_database()


@pytest.fixture(params=["sqlite", "postgres"])
def dsn(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store that nobody has used: a new file, or a new schema of one database (which is faster than a database)."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'journal.db'}"
    import psycopg

    base: str = request.getfixturevalue("journal_database")
    name = f"journal_{next(_schemas)}"
    with psycopg.connect(base, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{base}?options=-csearch_path%3D{name}"


@pytest.fixture
def journal(dsn: str) -> Iterator[Journal]:
    opened = open_journal(dsn)
    yield opened
    opened.close()


@pytest.fixture
def raw(dsn: str) -> Raw:
    return Raw(dsn)
