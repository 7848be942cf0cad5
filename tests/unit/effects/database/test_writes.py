"""A write happens once, whatever is asked twice; what the database refuses is a conflict."""

from __future__ import annotations

import threading
from decimal import Decimal

import pytest

from tests.unit.effects.database.databases import Database, fails, perform, write
from vesper.effects.performer import NOT_DONE, Ask, EffectFailed

ADD = "INSERT INTO t (id, n) VALUES (:id, :n)"


@pytest.fixture
def table(database: Database) -> Database:
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL CHECK (n < 1000))")
    return database


def test_the_number_of_rows(table: Database) -> None:
    assert table.ask(write("INSERT INTO t (id, n) VALUES (1, 1), (2, 2), (3, 3)", path="a")) == 3
    assert table.ask(write("UPDATE t SET n = n + :by WHERE id > :id", path="b", by=10, id=1)) == 2
    assert table.ask(write("DELETE FROM t WHERE id = :id", path="c", id=9)) == 0
    assert table.ask(write("DELETE FROM t WHERE id < :id RETURNING id", path="d", id=3)) == 2
    assert table.rows("SELECT id, n FROM t") == [(3, 13)]


def test_txn_is_done_once_for_its_place(table: Database) -> None:
    ask = write("UPDATE t SET n = n + 1", execution="e1", path="bump[2]")
    table.run("INSERT INTO t VALUES (1, 0), (2, 0)")
    assert [table.ask(ask), table.ask(ask), table.ask(ask)] == [2, 2, 2]
    assert table.rows("SELECT n FROM t") == [(1,), (1,)]
    assert table.receipts() == [("run:e1/bump[2]", "2")]
    table.ask(write("UPDATE t SET n = n + 1", execution="e1", path="bump[3]"))
    table.ask(write("UPDATE t SET n = n + 1", execution="e2", path="bump[2]"))
    assert table.rows("SELECT n FROM t") == [(3,), (3,)]


def test_keyed_is_done_once_for_its_key_in_all_executions(table: Database) -> None:
    def keyed(execution: str, key: str, sql: str = ADD, **bind: int) -> Ask:
        return write(sql, execution=execution, effect_class="keyed", key=key, **bind)  # type: ignore[arg-type]

    assert table.ask(keyed("e1", "k1", id=1, n=1)) == 1
    assert table.ask(keyed("e2", "k1", id=1, n=2)) == 1
    assert table.rows("SELECT id, n FROM t") == [(1, 1)]
    with fails("conflict"):
        table.ask(keyed("e3", "k2", id=1, n=3))
    # Two steps of one event handler have its event's id for a key: they are two writes all the same.
    assert table.ask(keyed("e1", "k1", "UPDATE t SET n = :n WHERE id = :id", id=1, n=9)) == 1
    assert table.rows("SELECT id, n FROM t") == [(1, 9)]


def test_probe(table: Database) -> None:
    ask = write(ADD, effect_class="probe", id=1, n=1)
    assert table.performer.probe(ask) is NOT_DONE
    assert table.ask(ask) == 1
    assert table.performer.probe(ask) == 1
    assert table.performer.probe(write(ADD, effect_class="probe", path="other", id=2, n=2)) is NOT_DONE


def test_unsafe_leaves_no_receipt(table: Database) -> None:
    ask = write("INSERT INTO t (id, n) SELECT count(*), 1 FROM t", effect_class="unsafe")
    assert [table.ask(ask), table.ask(ask)] == [1, 1]
    assert table.rows("SELECT id FROM t ORDER BY id") == [(0,), (1,)]
    with pytest.raises(Exception, match="vesper_receipts"):
        table.receipts()


def test_a_failure_leaves_no_receipt_and_no_row(table: Database) -> None:
    table.run("INSERT INTO t VALUES (5, 5)")
    ask = write("INSERT INTO t (id, n) VALUES (4, 4), (5, 5)")
    with fails("conflict"):
        table.ask(ask)
    assert table.rows("SELECT id FROM t") == [(5,)]
    assert table.receipts() == []
    table.run("DELETE FROM t")
    assert table.ask(ask) == 2


def test_conflicts(table: Database) -> None:
    table.run("CREATE TABLE child (t_id INTEGER NOT NULL REFERENCES t (id), code TEXT UNIQUE)")
    table.ask(write(ADD, path="a", id=1, n=1))
    with fails("conflict", "t"):
        table.ask(write(ADD, path="b", id=1, n=2))
    with fails("conflict"):
        table.ask(write(ADD, path="c", id=2, n=1000))
    with fails("conflict"):
        table.ask(write(ADD, path="d", id=3, n=None))
    with fails("conflict"):
        table.ask(write("INSERT INTO child (t_id, code) VALUES (:t, 'x')", path="e", t=99))
    table.ask(write("INSERT INTO child (t_id, code) VALUES (:t, :code)", path="f", t=1, code="geheim"))
    with pytest.raises(EffectFailed, match="code") as caught:
        table.ask(write("INSERT INTO child (t_id, code) VALUES (:t, :code)", path="g", t=1, code="geheim"))
    assert caught.value.code == "conflict"
    assert "geheim" not in caught.value.message
    with fails("conflict"):
        table.ask(write("DELETE FROM t WHERE id = 1", path="h"))


def test_a_conflict_that_only_the_commit_finds(table: Database) -> None:
    table.run("CREATE TABLE child (t_id INTEGER REFERENCES t (id) DEFERRABLE INITIALLY DEFERRED)")
    with fails("conflict"):
        table.ask(write("INSERT INTO child (t_id) VALUES (:id)", id=7))
    assert table.receipts() == []
    assert table.rows("SELECT * FROM child") == []


def test_a_trigger_that_refuses(table: Database) -> None:
    if table.kind == "sqlite":
        table.run("CREATE TRIGGER no BEFORE INSERT ON t BEGIN SELECT RAISE(ABORT, 'closed'); END")
    else:
        table.run("CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'closed'; END $$")
        table.run("CREATE TRIGGER no BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION no()")
    with fails("conflict", "closed"):
        table.ask(write(ADD, id=1, n=1))


def test_values_that_postgres_refuses(table: Database) -> None:
    table.run("CREATE TABLE c (s VARCHAR(3), n NUMERIC(4, 2))")
    if table.kind == "sqlite":
        return  # it has no such limits, and its NUL is a character like others: test_values
    with fails("conflict", "refuses a value"):
        table.ask(write("INSERT INTO c (s) VALUES (:s)", path="a", s="geheim"))
    with fails("conflict", "refuses a value"):
        table.ask(write("INSERT INTO c (n) VALUES (:n)", path="b", n=Decimal(1000)))
    with fails("conflict", "`:s`", "NUL"):
        table.ask(write("INSERT INTO c (s) VALUES (:s)", path="c", s="a\0"))


def test_names_of_receipts_that_no_index_holds(table: Database) -> None:
    for key in ("k" * 100_000, "a\0b", "\n"):
        ask = write("UPDATE t SET n = n + 1", effect_class="keyed", key=key)
        table.run("DELETE FROM t")
        table.run("INSERT INTO t VALUES (1, 0)")
        assert [table.ask(ask), table.ask(ask)] == [1, 1]
        assert table.rows("SELECT n FROM t") == [(1,)]
    assert len({name for name, _ in table.receipts()}) == 3


def test_threads_that_ask_for_one_thing_at_once(table: Database) -> None:
    table.run("INSERT INTO t VALUES (1, 0)")
    ask = write("UPDATE t SET n = n + 1 WHERE id = 1")
    start = threading.Barrier(6)
    found: list[object] = []

    def run() -> None:
        start.wait()
        found.append(perform(table.performer, ask))

    threads = [threading.Thread(target=run) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [1] * 6
    assert table.rows("SELECT n FROM t") == [(1,)]


def test_the_second_waits_for_the_first_and_sees_its_receipt(table: Database) -> None:
    """The first holds its transaction open, as long as a row of the table is locked by the test."""
    table.run("INSERT INTO t VALUES (1, 0)")
    ask = write("UPDATE t SET n = n + 1 WHERE id = 1")
    table.ask(write("UPDATE t SET n = n WHERE id = 1", path="makes the table of receipts"))
    blocker = table.connect()
    blocker.execute("UPDATE t SET n = 10 WHERE id = 1")
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(perform(table.performer, ask))) for _ in range(2)]
    for each in threads:
        each.start()
    threads[0].join(0.2)
    assert found == []
    blocker.commit()
    blocker.close()
    for each in threads:
        each.join()
    assert found == [1, 1]
    assert table.rows("SELECT n FROM t") == [(11,)]


def test_the_tables_of_ours_may_be_made_by_many_at_once(table: Database) -> None:
    start = threading.Barrier(5)
    found: list[object] = []

    def run(number: int) -> None:
        performer = table.new_performer()
        start.wait()
        found.append(perform(performer, write(ADD, path=f"add[{number}]", id=number, n=1)))
        performer.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [1] * 5
    assert len(table.receipts()) == 5
