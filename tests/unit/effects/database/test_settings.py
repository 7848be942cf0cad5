"""Every mistake in `[databases.NAME]` has its place and says what to do."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.servers import Postgres
from tests.unit.effects.database.databases import Database, fails, perform, query, sqlite_at, write
from vesper.effects.database.performer import DatabasePerformer, DatabaseSettings, joined
from vesper.effects.performer import EffectFailed, no_secret
from vesper.effects.settings import ConfigError, Table
from vesper.values.types import INTEGER


def read(**values: object) -> DatabaseSettings:
    return DatabaseSettings.from_table("main", Table("databases.main", values))


def test_defaults() -> None:
    found = read(dsn="postgresql://u@h/d")
    assert (found.timeout, found.pool_size, found.max_rows, found.max_value) == (30.0, 8, 10_000, 1 << 20)
    assert not found.read_only
    assert found.foreign_keys
    assert not found.create
    assert not found.is_sqlite


@pytest.mark.parametrize(
    "dsn, path", [("sqlite:a/b.db", "a/b.db"), ("sqlite:/a/b.db", "/a/b.db"), ("sqlite:///a/b.db", "/a/b.db")]
)
def test_paths(dsn: str, path: str) -> None:
    assert read(dsn=dsn).path == Path(path)


def test_a_relative_path_is_taken_from_the_folder_of_the_configuration(tmp_path: Path) -> None:
    table = Table("databases.main", {"dsn": "sqlite:a.db"})
    assert DatabaseSettings.from_table("main", table, tmp_path).path == tmp_path / "a.db"


@pytest.mark.parametrize(
    "values, said",
    [
        ({}, "`dsn` is missing"),
        ({"dsn": "mysql://u:geheim@h/d"}, "is expected"),
        ({"dsn": "sqlite:"}, "a file is expected"),
        ({"dsn": "sqlite::memory:"}, "in memory"),
        ({"dsn": "sqlite://host/a.db"}, "no host"),
        ({"dsn": "postgresql://u:geheim@h/d"}, "password_secret"),
        ({"dsn": "postgresql://u@h/d?password=geheim"}, "password_secret"),
        ({"dsn": "postgresql://u@h:port/d"}, "no address"),
        ({"dsn": "postgresql://u@h/d", "create": True}, "no such setting"),
        ({"dsn": "postgresql://u@h/d", "foreign_keys": False}, "no such setting"),
        ({"dsn": "sqlite:a.db", "password_secret": "x"}, "no such setting"),
        ({"dsn": "sqlite:a.db", "pool_sise": 3}, "did you mean `pool_size`"),
        ({"dsn": "sqlite:a.db", "pool_size": 0}, "from 1"),
        ({"dsn": "sqlite:a.db", "timeout": "0s"}, "above zero"),
        ({"dsn": "sqlite:a.db", "timeout": 30}, "a duration"),
        ({"dsn": "sqlite:a.db", "create": True, "read_only": True}, "only read"),
    ],
)
def test_mistakes(values: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(**values)
    assert "databases.main" in str(caught.value)
    assert said in str(caught.value)
    assert "geheim" not in str(caught.value)


def test_a_file_that_is_missing_is_not_made(tmp_path: Path) -> None:
    database = sqlite_at(tmp_path, create=False)
    with fails("unavailable", "there is no file", "test.db", "create = true"):
        database.ask(query("SELECT 1 AS n", INTEGER))
    assert not (tmp_path / "test.db").exists()


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "test.db").write_bytes(b"no database at all " * 100)
    database = sqlite_at(tmp_path)
    with fails("unavailable", "not a database"):
        database.ask(query("SELECT 1 AS n", INTEGER))


def test_an_unknown_database() -> None:
    performer = DatabasePerformer({}, no_secret)
    with fails("unavailable", "no database `main` is configured"):
        perform(performer, query("SELECT 1 AS n", INTEGER))


def test_read_only(database: Database) -> None:
    database.run("CREATE TABLE t (id INTEGER)")
    performer = database.new_performer(read_only=True, **({"create": False} if database.kind == "sqlite" else {}))
    assert perform(performer, query("SELECT count(*) AS n FROM t", INTEGER)) == 0
    for effect_class in ("txn", "unsafe"):
        with fails("unavailable", "read_only"):
            perform(performer, write("INSERT INTO t (id) VALUES (1)", effect_class=effect_class))
    with closing(database.connect()) as connection, joined("main", connection), fails("unavailable", "read_only"):
        perform(performer, write("INSERT INTO t (id) VALUES (1)"))
    performer.close()
    assert database.rows("SELECT * FROM t") == []


def test_the_password_is_asked_for_at_each_new_connection(postgres: Postgres) -> None:
    asked: list[str] = []

    def secret(name: str) -> str:
        if name != "shop_db":
            raise EffectFailed("not_found", f"no secret `{name}`")
        asked.append(name)
        return "geheim"

    settings = read(dsn=postgres.dsn(), password_secret="shop_db")
    performer = DatabasePerformer({"main": settings}, secret)
    assert asked == []
    for _ in range(2):
        assert perform(performer, query("SELECT 1 AS n", INTEGER)) == 1
    assert asked == ["shop_db"]
    performer.close()
    assert perform(performer, query("SELECT 1 AS n", INTEGER)) == 1
    assert asked == ["shop_db", "shop_db"]
    performer.close()
    other = DatabasePerformer({"main": read(dsn=postgres.dsn(), password_secret="other")}, secret)
    with fails("not_found", "`other`"):
        perform(other, query("SELECT 1 AS n", INTEGER))


def test_a_database_needs_no_psycopg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    performer = DatabasePerformer({"main": read(dsn="postgresql://u@127.0.0.1:1/d")}, no_secret)
    with fails("unavailable", "cannot be reached"):
        perform(performer, query("SELECT 1 AS n", INTEGER))


def test_another_library_than_that_of_python_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sqlite3.sqlite_version", "3.0.0")
    with pytest.raises(ConfigError, match=r"cannot be used for `main`: .*its version is .*, and 3\.0\.0 is expected"):
        sqlite_at(tmp_path)
    monkeypatch.setattr("_sqlite3.__file__", str(tmp_path / "absent.so"))
    with pytest.raises(ConfigError, match=r"absent\.so"):
        sqlite_at(tmp_path)
