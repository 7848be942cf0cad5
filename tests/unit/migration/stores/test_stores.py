"""The promises of every store of migration state, on all three."""

from __future__ import annotations

import os
import random
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import processor_seconds
from tests.unit.journal.helpers import in_child
from tests.unit.migration.support.places import KEY, KINDS, fresh_dsn
from tests.unit.migration.support.plain_store import PlainTransaction
from vesper.migration.stores import postgres_store, redis_store, sql_store
from vesper.migration.stores.store import WHOLE, Line, NodeKey, Store, StoreError, Transaction, keys_of, open_store


@pytest.fixture(params=KINDS)
def dsn(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return fresh_dsn(request.param, request, tmp_path)


@pytest.fixture
def store(dsn: str) -> Iterator[Store]:
    opened = open_store(dsn)
    yield opened
    opened.close()


class Broken(Exception):
    pass


FINGERPRINTS = [0, 1, 2**63 - 1, 2**63, 2**64 - 1, *range(100, 120)]
SCOPES = ["n1", "pa:1", "pa:2", "pab:1", "d"]
CHANGED = '{"kind":"changed"}'
WORDS = [CHANGED, "", "plain", "zwölf \u2028 \U0001f600", '{"a":"\\u0000"}', "x" * 20_000]


def one_call(draw: random.Random, model: PlainTransaction) -> tuple[str, tuple[Any, ...]]:
    scope, some = draw.choice(SCOPES), draw.sample(FINGERPRINTS, draw.randint(0, 8))
    word, name = draw.choice(WORDS), draw.choice("uvw")
    calls: list[tuple[str, tuple[Any, ...]]] = [
        ("state", ()), ("put_state", (word,)), ("applied", (name,)), ("put_applied", (name, draw.randint(1, 9))),
        ("known", (scope, some)), ("known", (scope, FINGERPRINTS)), ("add", (scope, some)), ("add", (scope, some)),
        ("remove", (scope, draw.choice(FINGERPRINTS))), ("size", (scope,)), ("size", (scope,)),
        ("drop", (draw.choice(["n", "p", "pa:", "pab", "d"]),)), ("head", ()),
        ("append", (Line(model.head()[0] + 1, word, f"hash {draw.random()}"),)),
        ("divergence", (name,)), ("put_divergence", (name, word)), ("path", (name,)), ("put_path", (name, word)),
        ("document", (name,)), ("put_document", (name, word)), ("clear", ()),
    ]  # fmt: skip
    return draw.choice(calls)


@pytest.mark.parametrize("seed", range(4))
def test_a_store_does_what_plain_values_do(store: Store, seed: int) -> None:
    """Also within a transaction; an aborted one leaves nothing."""
    draw = random.Random(seed)
    models = {KEY: PlainTransaction(), NodeKey("pay_v1", "another"): PlainTransaction()}
    for _ in range(25):
        key = draw.choice(list(models))
        after = models[key].copy()
        is_broken = draw.random() < 0.25

        def work(transaction: Transaction, after: PlainTransaction = after, is_broken: bool = is_broken) -> None:
            for _ in range(draw.randint(1, 12)):
                name, arguments = one_call(draw, after)
                assert getattr(transaction, name)(*arguments) == getattr(after, name)(*arguments), (name, arguments)
            if is_broken:
                raise Broken

        if is_broken:
            with pytest.raises(Broken):
                store.transact(key, work)
        else:
            store.transact(key, work)
            models[key] = after
        model = models[key]
        assert store.read(key) == model.text
        assert list(store.history(key)) == model.lines
        assert list(store.divergences(key)) == [*reversed(model.divergences.values())]
        assert store.paths(key) == model.paths
        assert [store.document(key, name) for name in "uvwx"] == [model.documents.get(name) for name in "uvwx"]
    known = {key: each for key, each in models.items() if each.version}
    assert store.versions() == {key: each.version for key, each in known.items()}
    assert store.states() == {key: each.text for key, each in known.items()}
    assert store.histories("changed") == {
        key: [line for line in each.lines if line.number == 1 or line.text == CHANGED]
        for key, each in known.items()
        if each.lines
    }
    divergences = {key: store.divergences(key) for key in known}
    assert store.all_divergences() == {key: each for key, each in divergences.items() if each}
    assert store.documents("u") == {key: each.documents["u"] for key, each in known.items() if "u" in each.documents}


def test_an_unused_store(store: Store) -> None:
    assert store.versions() == {}
    assert keys_of(store) == []
    assert store.read(KEY) is None
    assert (list(store.history(KEY)), list(store.divergences(KEY)), dict(store.paths(KEY))) == ([], [], {})
    store.transact(KEY, lambda transaction: transaction.state())
    assert store.versions() == {}, "who only looks leaves nothing"


def test_names_are_kept_apart(store: Store) -> None:
    keys = [NodeKey("a", "b:c"), NodeKey("a:b", "c"), NodeKey("a%3Ab", "c"), NodeKey("größe", "e"), WHOLE]
    for number, key in enumerate(keys):
        store.transact(key, lambda transaction, number=number: transaction.put_state(str(number)))  # type: ignore[misc]
    assert [store.read(key) for key in keys] == ["0", "1", "2", "3", "4"]
    assert store.versions() == dict.fromkeys(keys, 1)
    assert keys_of(store) == sorted(keys[:-1])


@pytest.mark.parametrize("number", [-1, 2**64])
def test_a_value_out_of_64_bits_is_refused(store: Store, number: int) -> None:
    with pytest.raises(ValueError, match="64 bits"):
        store.transact(KEY, lambda transaction: transaction.add("n1", [1, number]))
    assert store.transact(KEY, lambda transaction: transaction.size("n1")) == 0


@pytest.mark.parametrize("number", [0, 1, 3])
def test_only_the_next_line_of_a_history_is_taken(store: Store, number: int) -> None:
    store.transact(KEY, lambda transaction: transaction.append(Line(1, "first", "h1")))
    with pytest.raises(StoreError, match=f"has 1 lines, and line {number} is not the next one"):
        store.transact(KEY, lambda transaction: transaction.append(Line(number, "again", "h2")))
    assert store.history(KEY) == [Line(1, "first", "h1")]


def _add(members: list[int], transaction: Transaction) -> None:
    transaction.add("n1", members)


def test_ten_thousand_at_once(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lookup and insertion among thirty thousand take well under a second each, on a free machine."""
    monkeypatch.setattr(postgres_store._Server, "statement_seconds", 30)
    with closing(open_store(dsn)) as store:
        _put_ten_thousand(store)


def _put_ten_thousand(store: Store) -> None:
    draw = random.Random(1)
    before = [draw.getrandbits(64) for _ in range(30_000)]
    more = [draw.getrandbits(64) for _ in range(10_000)]
    for start in range(0, len(before), 10_000):
        store.transact(KEY, partial(_add, before[start : start + 10_000]))

    def work(transaction: Transaction) -> tuple[int, int, int]:
        found = transaction.known("n1", [*more, *before[:5]])
        transaction.add("n1", more)
        return len(found), len(transaction.known("n1", more)), transaction.size("n1")

    with processor_seconds(4):
        assert store.transact(KEY, work) == (5, 10_000, 40_000)
    store.transact(KEY, lambda transaction: transaction.drop("n"))
    assert store.transact(KEY, lambda transaction: transaction.size("n1")) == 0


def test_dropped_members_are_deleted_little_by_little(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sqlite3

    monkeypatch.setattr(sql_store, "_MAX_SWEPT", 40)
    store = open_store(fresh_dsn("sqlite", request, tmp_path))
    store.transact(KEY, lambda transaction: transaction.add("n1", range(100)))
    store.transact(KEY, lambda transaction: transaction.add("n2", range(3)))
    store.transact(KEY, lambda transaction: transaction.drop("n1"))
    for _ in range(4):
        store.transact(KEY, lambda transaction: transaction.put_state("x"))
    store.close()
    connection = sqlite3.connect(tmp_path / "migration.db")
    assert connection.execute("SELECT count(*) FROM vesper_control_members").fetchone() == (3,)
    assert connection.execute("SELECT scope, size FROM vesper_control_sets").fetchall() == [("n2", 3)]
    connection.close()


def test_long_ended_processes_are_deleted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def applied(transaction: Transaction) -> list[int]:
        return [transaction.applied(each) for each in ("old", "new")]

    store.transact(KEY, lambda transaction: transaction.put_applied("old", 7))
    store.transact(KEY, lambda transaction: transaction.put_applied("new", 1))
    assert store.transact(KEY, applied) == [7, 1]
    for module in (sql_store, redis_store):
        monkeypatch.setattr(module, "PROCESS_RETENTION_US", -1_000_000)
    store.transact(KEY, lambda transaction: transaction.put_applied("new", 2))
    assert store.transact(KEY, applied) == [7, 2], "looked at when a process is new"
    store.transact(KEY, lambda transaction: transaction.put_applied("newest", 1))
    assert store.transact(KEY, applied) == [0, 0]


# -- many at once ---------------------------------------------------------------------------------

ROUNDS = 25


def count(store: Store, key: NodeKey = KEY) -> None:
    """Increment a number once per round; a lost update shows in the sum."""
    for _ in range(ROUNDS):
        store.transact(key, lambda transaction: transaction.put_state(str(int(transaction.state() or 0) + 1)))


def test_threads_that_count_at_once_lose_nothing(store: Store) -> None:
    problems: list[BaseException] = []

    def work() -> None:
        try:
            count(store)
        except BaseException as error:  # noqa: BLE001  # it is looked at below
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert (store.read(KEY), store.versions()) == (str(3 * ROUNDS), {KEY: 3 * ROUNDS})


def processes(works: list[Callable[[], None]]) -> list[int]:
    pids = []
    for work in works:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                work()
                status = 0
            except BaseException:  # noqa: BLE001  # the child must not come back into pytest
                traceback.print_exc()
            finally:
                os._exit(status)
        pids.append(pid)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


@pytest.mark.parametrize("kind", KINDS)
def test_processes_that_count_at_once_lose_nothing(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Each process opens the store at the same time, and makes the tables."""
    dsn = fresh_dsn(kind, request, tmp_path, has_tables=False)
    assert processes([lambda: count(open_store(dsn))] * 3) == [0, 0, 0]
    store = open_store(dsn)
    assert store.read(KEY) == str(3 * ROUNDS)
    store.close()


def test_parent_and_child_use_a_store_side_by_side(store: Store) -> None:
    count(store)
    store.versions()
    assert in_child(lambda: count(store)) == 0
    count(store)
    assert store.read(KEY) == str(3 * ROUNDS)


def test_a_fork_while_threads_write(store: Store) -> None:
    stop = threading.Event()
    problems: list[BaseException] = []

    def work() -> None:
        try:
            while not stop.wait(0.005):  # SQLite's turns are not fair: who never pauses keeps others out
                store.transact(NodeKey("busy", "e"), lambda transaction: transaction.put_state("x"))
        except BaseException as error:  # noqa: BLE001  # it is looked at below
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    statuses = [in_child(lambda: count(store)) for _ in range(2)]
    stop.set()
    for thread in threads:
        thread.join()
    assert (statuses, problems) == ([0, 0], [])
    assert store.read(KEY) == str(2 * ROUNDS)


def test_the_secret_is_created_once(dsn: str) -> None:
    found: list[bytes] = []
    barrier = threading.Barrier(4)

    def work() -> None:
        store = open_store(dsn)
        barrier.wait()
        found.append(store.secret())
        store.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1
    assert len(found[0]) == 16
    again = open_store(dsn)
    assert again.secret() == found[0]
    again.close()
    again.close()
    assert again.secret() == found[0], "what was closed opens again"
    again.close()
