"""Time, locks, and servers that are not there: each has its code, and says whether anything may have happened."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.support.servers import Postgres, free_port
from tests.unit.effects.database.databases import Database, fails, perform, query, sqlite_at, write
from vesper.effects.database.performer import DatabasePerformer, DatabaseSettings
from vesper.effects.performer import EffectFailed
from vesper.effects.settings import Table
from vesper.values.types import INTEGER, STRING

ADD = "INSERT INTO t (id) VALUES (:id)"


@pytest.fixture
def table(database: Database) -> Database:
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    return database


def test_a_query_that_takes_too_long(table: Database) -> None:
    start = time.monotonic()
    with fails("timeout", "longer than 0.3 s"):
        table.ask(query(table.slow_query(), INTEGER, timeout=0.3))
    assert time.monotonic() - start < 60
    assert table.ask(query("SELECT count(*) AS n FROM t", INTEGER)) == 0


def test_a_write_that_takes_too_long_did_not_happen(table: Database) -> None:
    with fails("timeout"):
        table.ask(write(table.slow_insert(), timeout=0.3))
    assert table.rows("SELECT * FROM t") == []
    assert table.receipts() == []
    assert table.ask(write(ADD, id=1)) == 1


def test_the_timeout_of_the_settings_holds_where_the_step_has_none(table: Database) -> None:
    performer = table.new_performer(timeout="300ms")
    with fails("timeout", "longer than 0.3 s"):
        perform(performer, query(table.slow_query(), INTEGER))
    performer.close()


def test_a_row_that_is_locked_for_too_long(table: Database) -> None:
    table.run("INSERT INTO t VALUES (1)")
    with closing(table.connect()) as blocker:
        blocker.execute("UPDATE t SET id = 2")
        with fails("timeout"):
            table.ask(write("DELETE FROM t", timeout=0.3))
        blocker.rollback()
    assert table.rows("SELECT * FROM t") == [(1,)]


def test_a_database_of_sqlite_that_is_locked_for_longer_than_the_busy_timeout(tmp_path: Path) -> None:
    database = sqlite_at(tmp_path, busy_timeout="200ms")
    database.run("CREATE TABLE t (id INTEGER)")
    with closing(database.connect()) as blocker:
        blocker.execute("INSERT INTO t VALUES (1)")
        with fails("unavailable", "locked", "did not end in time"):
            database.ask(write(ADD, id=2))
        assert database.ask(query("SELECT count(*) AS n FROM t", INTEGER)) == 0  # readers do not wait
    database.close()


def test_more_writers_of_sqlite_than_connections_all_come_to_write(tmp_path: Path) -> None:
    """However long all of them together take: `busy_timeout` is what one may be waited for."""
    database = sqlite_at(tmp_path, busy_timeout="2s", pool_size=3)
    database.run("CREATE TABLE t (id INTEGER)")
    slow = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 300000)"
    found: list[object] = []

    def run(number: int) -> None:
        sql = f"INSERT INTO t (id) {slow} SELECT max(x) + :id FROM c"  # noqa: S608
        found.append(database.ask(write(sql, path=f"add[{number}]", id=number)))

    writers = [threading.Thread(target=run, args=(number,)) for number in range(30)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    assert found == [1] * 30
    assert database.rows("SELECT count(DISTINCT id) FROM t") == [(30,)]
    database.close()


@contextmanager
def _in_use(database: Database, performer: DatabasePerformer, count: int, seconds: float) -> Iterator[None]:
    """Hold so many connections with queries that are stopped after so many seconds."""

    def hold() -> None:
        with fails("timeout"):
            perform(performer, query(database.slow_query(), INTEGER, timeout=seconds))

    threads = [threading.Thread(target=hold) for _ in range(count)]
    for each in threads:
        each.start()
    time.sleep(0.4)
    yield
    for each in threads:
        each.join()


def test_a_pool_whose_connections_are_all_in_use(table: Database) -> None:
    performer = table.new_performer(pool_size=2)
    ask, hurried = query("SELECT 1 AS n", INTEGER), query("SELECT 1 AS n", INTEGER, timeout=0.2)
    with _in_use(table, performer, 1, 1.5):
        assert perform(performer, ask) == 1
    with _in_use(table, performer, 2, 1.5), fails("unavailable", "all 2 connections", "pool_size"):
        perform(performer, hurried)
    assert perform(performer, ask) == 1
    performer.close()


def test_one_that_waits_for_a_connection_gets_the_next_one(table: Database) -> None:
    performer = table.new_performer(pool_size=1)
    start = time.monotonic()
    with _in_use(table, performer, 1, 1.5):
        assert perform(performer, query("SELECT 1 AS n", INTEGER)) == 1
        assert 1 < time.monotonic() - start < 20
    performer.close()


def test_a_performer_may_be_used_again_after_close(table: Database) -> None:
    table.ask(write(ADD, path="a", id=1))
    table.performer.close()
    table.ask(write(ADD, path="b", id=2))
    assert table.rows("SELECT count(*) FROM t") == [(2,)]


def _performer(dsn: str, **settings: object) -> DatabasePerformer:
    table = Table("databases.main", {"dsn": dsn, **settings})
    return DatabasePerformer({"main": DatabaseSettings.from_table("main", table)}, {"pw": "geheim"}.__getitem__)


def test_nobody_listens() -> None:
    performer = _performer(f"postgresql://u@127.0.0.1:{free_port()}/d", password_secret="pw")
    start = time.monotonic()
    with pytest.raises(EffectFailed, match="cannot be reached") as caught:
        perform(performer, query("SELECT 1 AS n", INTEGER, timeout=20))
    assert caught.value.code == "unavailable"
    assert "geheim" not in caught.value.message
    assert time.monotonic() - start < 15  # it says so at once, and does not wait for the end of its time


def test_somebody_listens_and_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        performer = _performer(f"postgresql://u@127.0.0.1:{server.getsockname()[1]}/d")
        with pytest.raises(EffectFailed) as caught:
            perform(performer, query("SELECT 1 AS n", INTEGER, timeout=1))
    assert caught.value.code in ("timeout", "unavailable")


def test_a_database_that_does_not_exist(postgres: Postgres) -> None:
    with fails("unavailable", "cannot be reached", "absent"):
        perform(_performer(postgres.dsn("absent")), query("SELECT 1 AS n", INTEGER))


def test_deadlocks_may_be_tried_again(table: Database) -> None:
    if table.kind == "sqlite":
        return  # has one writer at a time
    table.run("CREATE TABLE u (id INTEGER PRIMARY KEY, n INTEGER)")
    table.run("INSERT INTO u VALUES (1, 0), (2, 0)")
    with closing(table.connect()) as other:
        other.execute("SET deadlock_timeout = '60s'")
        other.execute("UPDATE u SET n = 1 WHERE id = 2")
        failed: list[EffectFailed] = []

        def run() -> None:
            try:
                # One statement that locks row 1, then waits for row 2.
                table.ask(
                    write(
                        "WITH a AS (SELECT id FROM u WHERE id IN (1, 2) ORDER BY id FOR UPDATE) "
                        "UPDATE u SET n = 2 FROM a WHERE u.id = a.id"
                    )
                )
            except EffectFailed as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        _wait_for(lambda: table.rows("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'") != [])
        other.execute("UPDATE u SET n = 1 WHERE id = 1")
        thread.join()
        other.rollback()
    assert [error.code for error in failed] == ["unavailable"]
    assert "deadlock" in failed[0].message
    assert not failed[0].may_have_happened


def _wait_for(is_so: object, seconds: float = 30) -> None:
    assert callable(is_so)
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def test_a_statement_that_somebody_else_stops(table: Database) -> None:
    if table.kind == "sqlite":
        return  # nobody else can
    failed: list[EffectFailed] = []

    def run() -> None:
        try:
            table.ask(query(table.slow_query(), INTEGER))
        except EffectFailed as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    _wait_for(lambda: table.rows("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'") != [])
    table.rows("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
    thread.join()
    assert [error.code for error in failed] == ["unavailable"]


# -- a server that is killed ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def own_server() -> Iterator[Postgres]:
    """A server that tests may kill: it keeps what it has committed."""
    server = Postgres(durable=True)
    yield server
    server.remove()


def test_a_server_that_is_killed_under_a_query_and_comes_back(own_server: Postgres) -> None:
    database = Database("postgres", own_server.new_database())
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    for number in range(3):
        database.ask(write(ADD, path=f"add[{number}]", id=number))
    failed: list[EffectFailed] = []

    def run(sql: str, is_write: bool) -> None:
        try:
            database.ask(write(sql, path="slow") if is_write else query(sql, INTEGER))
        except EffectFailed as error:
            failed.append(error)

    threads = [
        threading.Thread(target=run, args=(database.slow_query(), False)),
        threading.Thread(target=run, args=(database.slow_insert(), True)),
    ]
    for each in threads:
        each.start()
    _wait_for(lambda: len(database.rows("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'")) == 2)
    own_server.stop(hard=True)
    for each in threads:
        each.join()
    assert [error.code for error in failed] == ["unavailable", "unavailable"]
    assert [error.may_have_happened for error in failed] == [False, False]
    with fails("unavailable", "cannot be reached"):
        database.ask(query("SELECT 1 AS n", INTEGER))
    own_server.start()
    # The pool still has connections to the server that was: they are replaced, and nobody notices.
    assert database.ask(query("SELECT count(*) AS n FROM t", INTEGER)) == 3
    assert database.ask(write(ADD, path="add[3]", id=3)) == 1
    database.close()


def test_connections_that_died_while_they_waited(own_server: Postgres) -> None:
    database = Database("postgres", own_server.new_database())
    barrier = threading.Barrier(3)

    def use() -> None:
        barrier.wait()
        database.ask(query("SELECT 1 AS n FROM pg_sleep(0.2)", INTEGER))

    threads = [threading.Thread(target=use) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    own_server.stop()
    own_server.start()
    for _ in range(4):
        assert database.ask(query("SELECT 1 AS n", INTEGER)) == 1
    database.close()


_SLOW_FUNCTION = (
    "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(300); RETURN NULL; END $$"
)
_SLOW_COMMIT = (
    "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED "
    "FOR EACH ROW EXECUTE FUNCTION slow()"
)


def test_a_commit_whose_answer_is_lost_may_have_happened(own_server: Postgres) -> None:
    """A deferred trigger sleeps inside COMMIT, and its server process is killed there."""
    database = Database("postgres", own_server.new_database())
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    database.run(_SLOW_FUNCTION)
    database.run(_SLOW_COMMIT)
    failed: list[EffectFailed] = []

    def run() -> None:
        try:
            database.ask(write(ADD, id=1))
        except EffectFailed as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    slow = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query = 'COMMIT'"
    _wait_for(lambda: database.rows(slow) != [])
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'COMMIT'")
    thread.join()
    assert [(error.code, error.may_have_happened) for error in failed] == [("unavailable", True)]
    database.close()


def test_a_commit_that_takes_too_long_may_have_happened(own_server: Postgres) -> None:
    database = Database("postgres", own_server.new_database())
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    database.run(_SLOW_FUNCTION)
    database.run(_SLOW_COMMIT)
    # The server does not stop a COMMIT: it would go on when this side has hung up.
    with fails("timeout", "longer than 0.5 s", may_have_happened=True):
        database.ask(write(ADD, id=1, timeout=0.5))
    database.close()


def test_a_server_that_stands_still_is_not_waited_for(own_server: Postgres) -> None:
    database = Database("postgres", own_server.new_database())
    pid = database.ask(query("SELECT pg_backend_pid() AS n", INTEGER))  # of the one connection that there is
    os.kill(pid, signal.SIGSTOP)
    try:
        with fails("timeout", "did not answer"):
            database.ask(query("SELECT 1 AS n", INTEGER, timeout=0.3))
    finally:
        os.kill(pid, signal.SIGCONT)
    assert database.ask(query("SELECT 'again' AS s", STRING)) == "again"
    database.close()
