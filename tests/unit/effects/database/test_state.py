"""State machines that outlive executions: who may move, what is given, and who wins a race."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest

from tests.unit.effects.database.databases import Database, fails
from tests.unit.effects.database.test_processes import race
from vesper.effects.database.performer import joined
from vesper.effects.database.state_machines import StatePerformer
from vesper.effects.performer import NOT_DONE, Ask, EffectFailed
from vesper.values.types import Enum

STATES = Enum(("draft", "paid", "shipped", "gone"))


def move(
    entity: str, sources: str, target: str, *, execution: str = "e", path: str = "move", machine: str = "order"
) -> Ask:
    fixed = {"machine": machine, "from": sources, "to": target}
    return Ask(execution, path, "state_transition", "txn", fixed, {"entity": entity}, STATES)


def read(entity: str, machine: str = "order") -> Ask:
    return Ask("e", "read", "state_read", "read", {"machine": machine}, {"entity": entity}, STATES)


def performer_of(database: Database) -> StatePerformer:
    states = StatePerformer(database.performer, "main")
    states.know("order", "draft")
    states.know("parcel", "paid")
    return states


@pytest.fixture
def states(database: Database) -> StatePerformer:
    return performer_of(database)


def test_an_entity_that_nobody_has_moved_is_in_the_initial_state(states: StatePerformer) -> None:
    assert states.perform(read("o-1")) == "draft"
    assert states.perform(read("o-1", "parcel")) == "paid"


def test_a_move_gives_the_state_before(states: StatePerformer, database: Database) -> None:
    assert states.perform(move("o-1", "draft", "paid", path="a")) == "draft"
    assert states.perform(read("o-1")) == "paid"
    assert states.perform(move("o-1", "draft, paid", "shipped", path="b")) == "paid"
    assert states.perform(read("o-1")) == "shipped"
    assert states.perform(read("o-2")) == "draft"
    assert states.perform(read("o-1", "parcel")) == "paid"
    assert database.rows("SELECT machine, entity, state, version FROM vesper_states") == [
        ("order", "o-1", "shipped", 2)
    ]
    found = database.rows("SELECT machine, entity, from_state, to_state, receipt FROM vesper_state_history ORDER BY at")
    assert found == [
        ("order", "o-1", "draft", "paid", "run:e/a"),
        ("order", "o-1", "paid", "shipped", "run:e/b"),
    ]


def test_a_move_from_another_state_is_refused_and_leaves_nothing(states: StatePerformer, database: Database) -> None:
    with fails("invalid_transition", "`draft`", "`paid`, `shipped`"):
        states.perform(move("o-1", "paid,shipped", "gone"))
    assert database.rows("SELECT * FROM vesper_states") == []
    assert database.rows("SELECT * FROM vesper_state_history") == []
    assert database.receipts() == []
    assert states.perform(read("o-1")) == "draft"


def test_asked_again_it_gives_what_it_gave(states: StatePerformer, database: Database) -> None:
    ask = move("o-1", "draft", "paid")
    assert states.probe(ask) is NOT_DONE
    assert [states.perform(ask), states.perform(ask)] == ["draft", "draft"]
    assert states.probe(ask) == "draft"
    assert database.rows("SELECT version FROM vesper_states") == [(1,)]
    with fails("invalid_transition"):
        states.perform(move("o-1", "draft", "paid", execution="another"))


def test_a_move_in_the_callers_transaction(states: StatePerformer, database: Database) -> None:
    for ends, found in (("rollback", "draft"), ("commit", "paid")):
        with closing(database.connect()) as connection:
            with joined("main", connection):
                assert states.perform(move("o-1", "draft", "paid")) == "draft"
                assert states.perform(read("o-1")) == "paid"
            getattr(connection, ends)()
        assert states.perform(read("o-1")) == found


def test_a_state_that_the_machine_has_lost(states: StatePerformer) -> None:
    states.perform(move("o-1", "draft", "gone"))
    asked = Ask("e", "read", "state_read", "read", {"machine": "order"}, {"entity": "o-1"}, Enum(("draft", "paid")))
    with fails("unavailable", "`gone`", "does not have"):
        states.perform(asked)


def test_strange_entities(states: StatePerformer, database: Database) -> None:
    for number, entity in enumerate(("", "ü 漢 🎉", "'; --", " a", "a ", "e" * 1_000)):
        assert states.perform(move(entity, "draft", "paid", path=f"m[{number}]")) == "draft"
        assert states.perform(read(entity)) == "paid"
    with fails("unavailable", "1,000 bytes"):
        states.perform(read("e" * 1_001))
    if database.kind == "postgres":
        with fails("unavailable", "NUL"):
            states.perform(move("a\0", "draft", "paid", path="nul"))


def test_of_many_threads_one_wins(states: StatePerformer, database: Database) -> None:
    start = threading.Barrier(6)
    given: list[str] = []

    def run(number: int) -> None:
        start.wait()
        try:
            given.append(str(states.perform(move("o-1", "draft", "paid", execution=f"e{number}"))))
        except EffectFailed as failed:
            given.append(failed.code)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(given) == ["draft", *["invalid_transition"] * 5]
    assert database.rows("SELECT state, version FROM vesper_states") == [("paid", 1)]


RACE = """
import os, sys
from tests.unit.effects.database.databases import Database
from tests.unit.effects.database.test_state import move, performer_of
from vesper.effects.performer import EffectFailed
kind, dsn = sys.argv[1:]
database = Database(kind, dsn)
states = performer_of(database)
sys.stdin.readline()
for number in range(25):
    try:
        states.perform(move(f"o-{number}", "draft", "paid", execution=str(os.getpid()), path=f"move[{number}]"))
        print(number)
    except EffectFailed as failed:
        assert failed.code == "invalid_transition", failed
database.close()
"""


def test_of_two_processes_one_wins(database: Database) -> None:
    first, second = race(RACE, database)
    assert sorted([*first.split(), *second.split()], key=int) == [str(number) for number in range(25)]
    assert database.rows("SELECT count(*), max(version) FROM vesper_states WHERE state = 'paid'") == [(25, 1)]
    assert database.rows("SELECT count(*) FROM vesper_state_history") == [(25,)]
