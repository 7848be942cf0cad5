"""Fresh stores of migration state on real servers, and events for them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from vesper.migration.compare.divergence import Divergence, Exemplar
from vesper.migration.control.state import Diverged, Settings
from vesper.migration.stores.store import Batch, Happened, NodeKey, SeenOnPath

KINDS = ["sqlite", "postgres", "redis"]
KEY = NodeKey("pay_v1", "0123456789abcdef")
SETTINGS = Settings()
NOW = 1_700_000_000_000_000
MAIN, OTHER = "a1b2", "a1b2c3"
"""Paths of which one name is a prefix of the other."""
_REDIS_DATABASE = 9
_schemas = itertools.count(1)


def fresh_dsn(kind: str, request: pytest.FixtureRequest, folder: Path, has_tables: bool = True) -> str:
    """Return a new file, an emptied Redis, or an emptied schema of a database.

    Making the tables in PostgreSQL takes longer than most tests; `has_tables=False` returns a schema without them.
    """
    if kind == "sqlite":
        return f"sqlite:{folder / 'migration.db'}"
    if kind == "postgres":
        base: str = request.getfixturevalue("postgres").dsn()
        return _emptied_schema(base) if has_tables else _new_schema(base)
    from redis import Redis

    url = f"redis://127.0.0.1:{request.getfixturevalue('redis_server').port}/{_REDIS_DATABASE}"
    with Redis.from_url(url) as client:
        client.flushdb()
    return url


def _new_schema(base: str) -> str:
    import psycopg

    name = f"migration_{os.getpid()}_{next(_schemas)}"
    with psycopg.connect(base, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{base}?options=-csearch_path%3D{name}"


def _emptied_schema(base: str) -> str:
    import psycopg

    dsn = _emptied.setdefault(base, "") or _new_schema(base)
    _emptied[base] = dsn
    with psycopg.connect(dsn, autocommit=True) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename LIKE 'vesper_control_%' "
            "AND tablename <> 'vesper_control_format'"
        ).fetchall()
        connection.execute(";".join(f"DELETE FROM {table}" for (table,) in tables).encode())  # noqa: S608
    return dsn


_emptied: dict[str, str] = {}


def agreed(process: str, number: int, path: str, fingerprints: Iterable[int], compared: int | None = None) -> Batch:
    found = frozenset(fingerprints)
    return Batch(process, number, agreed={path: SeenOnPath(found, len(found) if compared is None else compared)})


def divergence(fingerprint: str, execution: str, at_us: int = NOW, path: str = MAIN) -> Divergence:
    exemplar = Exemplar(execution, at_us, '{"amount": "1"}', None, None, "returned 1", "returned 2")
    engines = ("python", "interp")
    return Divergence(
        fingerprint, KEY.node, "outcome", "outputs.fee", path, engines, None, 1, at_us, at_us, (exemplar,)
    )


def diverged(
    process: str, number: int, fingerprint: str, read: int | None = None, path: str = MAIN, is_effect: bool = False
) -> Batch:
    kept = divergence(fingerprint, f"run-{process}-{number}", NOW + number, path)
    return Batch(process, number, [Happened(Diverged(path, fingerprint, is_effect), kept, read)])
