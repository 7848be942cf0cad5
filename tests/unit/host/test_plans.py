"""Capabilities of the SQL of compiled nodes."""

from __future__ import annotations

import pytest

from vesper.host.plans import RefusedSql, capabilities_of


def needs(sql: str) -> tuple[str, ...]:
    return capabilities_of("database_query", (("database", "main"), ("sql", sql), ("rows", "all")))


def test_sql_needs_its_tables_and_its_functions() -> None:
    found = needs("SELECT now() AS t, lower(name) AS n FROM users WHERE id IN (SELECT user_id FROM orders)")
    assert found == ("database.read.users", "database.read.orders", "database.function.now")


def test_sql_of_an_older_version_is_refused_with_the_reason() -> None:
    with pytest.raises(RefusedSql, match=r"system table `pg_authid`.*check the node again"):
        needs("SELECT rolname FROM pg_authid")
