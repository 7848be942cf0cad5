"""Stores that fail: each message contains cause and remedy, and nothing is overwritten or lost."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.journal.helpers import in_child
from tests.unit.migration.support.places import KEY, KINDS, MAIN, NOW, SETTINGS, agreed, diverged, fresh_dsn
from tests.unit.migration.support.proxy import Proxy
from vesper.migration.control.state import Kill
from vesper.migration.stores import ledger, postgres_store, redis_store, sqlite_store
from vesper.migration.stores.ledger import Applied
from vesper.migration.stores.redis_values import PREFIX
from vesper.migration.stores.store import Batch, Store, StoreAway, StoreError, Transaction, open_store

if TYPE_CHECKING:
    from tests.support.servers import Postgres, Redis


def apply(store: Store, batch: Batch) -> Applied:
    return ledger.apply(store, KEY, batch, SETTINGS, NOW)


def used(store: Store) -> object:
    return apply(store, agreed("one", 1, MAIN, range(10)))


USES: list[Callable[[Store], object]] = [used, lambda store: store.versions(), lambda store: store.read(KEY)]


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dsn", ["", "migration.db", "mysql://x/y", "sqlite", "sqlite:", "sqlite::memory:", "sqlite://host/x", "sqlite://x",
            "postgresql:x", "redis:x", "sqlite:a\0b"],
)  # fmt: skip
def test_a_dsn_that_names_no_store(dsn: str) -> None:
    with pytest.raises(StoreError, match=r"sqlite:"):
        open_store(dsn)


@pytest.mark.parametrize(
    "dsn", ["postgresql://vesper:hunter2@ho st/x?nonsense=1", "redis://:hunter2@localhost:port/1",
            "redis://:hunter2@localhost/1?nonsense=1", "redis://:hunter2@localhost/1?decode_responses=yes"],
)  # fmt: skip
def test_a_dsn_that_cannot_be_read_is_not_shown(dsn: str) -> None:
    with pytest.raises(StoreError) as caught:
        open_store(dsn)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("kind", ["postgresql", "redis"])
def test_a_message_never_shows_a_password(kind: str) -> None:
    """The port belongs to a listener that was closed."""
    proxy = Proxy(1)
    proxy.close()
    store = open_store(f"{kind}://vesper:hunter2@127.0.0.1:{proxy.port}/1")
    assert store.name == f"{kind}://127.0.0.1:{proxy.port}/1"  # two servers of one machine have two names
    for use in USES:
        with pytest.raises(StoreAway, match=r"127\.0\.0\.1.*cannot be reached") as caught:
            use(store)
        assert "hunter2" not in str(caught.value)


def test_opening_touches_nothing(tmp_path: Path) -> None:
    open_store(f"sqlite:{tmp_path}/none/none/migration.db")
    assert list(tmp_path.iterdir()) == []


# -- files ----------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "migration.db"


def fails(path: Path, why: str, use: Callable[[Store], object] = used, kind: type[StoreError] = StoreError) -> None:
    store = open_store(f"sqlite:{path}")
    with pytest.raises(StoreError) as caught:
        use(store)
    assert type(caught.value) is kind
    assert str(path) in str(caught.value)
    assert re.search(why, str(caught.value)), str(caught.value)
    store.close()


@pytest.mark.parametrize("content", [b"a text file\n" * 300, b"SQLite format 3\0" + b"x" * 4080])
@pytest.mark.parametrize("use", USES)
def test_another_file_is_no_store_and_stays_as_it_is(
    path: Path, content: bytes, use: Callable[[Store], object]
) -> None:
    path.write_bytes(content)
    fails(path, r"no migration state|is damaged", use)
    assert path.read_bytes() == content


def test_pages_that_were_overwritten(path: Path) -> None:
    store = open_store(f"sqlite:{path}")
    used(store)
    store.close()
    data = bytearray(path.read_bytes())
    for page in range(1, len(data) // 4096):
        data[page * 4096 : page * 4096 + 512] = b"\xa5" * 512
    path.write_bytes(data)
    for use in USES:
        fails(path, "damaged. Nothing more is written", use)
    assert path.read_bytes() == bytes(data)


def test_a_folder_that_is_missing_or_no_file(path: Path) -> None:
    fails(path.parent / "a" / "b" / "migration.db", "the folder .*/a does not exist")
    fails(path.parent, "is a folder")


def test_a_new_file_is_for_its_owner_alone(path: Path) -> None:
    store = open_store(f"sqlite:{path}")
    store.secret()
    assert {each.stat().st_mode & 0o777 for each in path.parent.iterdir()} == {0o600}
    store.close()


@pytest.mark.parametrize("what", ["file", "folder"])
def test_an_unwritable_file_or_folder(tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESPER_TRUST", str(tmp_path))
    folder = tmp_path / "folder"
    path = folder / "migration.db"
    store = open_store(f"sqlite:{path}")
    used(store)
    store.close()
    before = path.read_bytes()
    path.chmod(0o444)
    for parent in (tmp_path, *tmp_path.parents[:3]):  # with several workers there is one more
        if parent.stat().st_uid == os.getuid() and parent != Path(tempfile.gettempdir()):
            parent.chmod(parent.stat().st_mode | 0o055)
    folder.chmod(0o777 if what == "file" else 0o555)

    def as_somebody_else() -> None:
        if os.getuid() == 0:  # who may do anything
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        fails(
            path, "read-only for this user|not for this user", lambda store: apply(store, agreed("two", 1, MAIN, [1]))
        )

    assert in_child(as_somebody_else) == 0
    assert path.read_bytes() == before


def test_a_disk_that_is_full(path: Path) -> None:
    store = sqlite_store.SqliteMigrationStore(str(path))
    used(store)
    connection = store._database._here.writer  # type: ignore[attr-defined]
    connection.execute("PRAGMA max_page_count = 1")  # as many as there are
    batch = agreed("one", 2, MAIN, range(1000, 21_000))
    before = store.read(KEY)
    with pytest.raises(StoreAway, match=r"migration\.db: the disk is full.*Make room"):
        apply(store, batch)
    assert store.read(KEY) == before
    connection.execute("PRAGMA max_page_count = 1000000")
    after = apply(store, batch)
    assert (after.is_repeat, after.state.clean) == (False, 20_010)
    store.close()


def test_a_file_that_was_deleted_while_it_was_used(path: Path) -> None:
    store = open_store(f"sqlite:{path}")
    used(store)
    for file in path.parent.iterdir():
        file.unlink()
    with pytest.raises(StoreError, match="somebody deleted or replaced the migration state while it was in use"):
        used(store)
    store.close()


def _hold(path: Path, ready: int, release: int) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    os.write(ready, b"x")
    os.read(release, 1)


def test_a_file_that_another_process_has_locked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store, "BUSY_SECONDS", 0.05)
    store = open_store(f"sqlite:{path}")
    used(store)
    told, tell = os.pipe(), os.pipe()
    holder = multiprocessing.get_context("fork").Process(target=_hold, args=(path, told[1], tell[0]))
    holder.start()
    os.read(told[0], 1)
    with pytest.raises(StoreAway, match=rf"process {holder.pid} has had the migration state locked .* 0.05 s"):
        apply(store, agreed("one", 2, MAIN, [99]))
    assert store.versions() == {KEY: 1}, "who only looks need not wait"
    os.write(tell[1], b"x")
    holder.join()
    for descriptor in (*told, *tell):
        os.close(descriptor)
    assert apply(store, agreed("one", 2, MAIN, [99])).state.clean == 11
    store.close()


def test_a_thread_waits_for_others_with_a_limit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store, "BUSY_SECONDS", 0.05)
    store = open_store(f"sqlite:{path}")
    is_in, may_go = threading.Event(), threading.Event()

    def stay(transaction: Transaction) -> None:
        is_in.set()
        may_go.wait(30)

    thread = threading.Thread(target=lambda: store.transact(KEY, stay))
    thread.start()
    is_in.wait(30)
    with pytest.raises(StoreAway, match=r"other threads of this process .* 0.05 s"):
        used(store)
    may_go.set()
    thread.join()
    used(store)
    store.close()


# -- other versions, and tables that somebody changed ---------------------------------------------


def run_sql(dsn: str, sql: str) -> None:
    if dsn.startswith("sqlite:"):
        connection = sqlite3.connect(dsn.removeprefix("sqlite:"))
        with connection:
            connection.execute(sql)
        connection.close()
        return
    import psycopg

    with psycopg.connect(dsn, autocommit=True) as postgres:
        postgres.execute(sql.encode())


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_of_a_newer_vesper_is_refused(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Also by a process that opened it before its upgrade, as in a rolling deploy."""
    dsn = fresh_dsn(kind, request, tmp_path, has_tables=False)
    before = open_store(dsn)
    used(before)
    state = before.read(KEY)
    if kind == "redis":
        from redis import Redis

        with Redis.from_url(dsn) as client:
            client.set(PREFIX + "format", 999)
    else:
        run_sql(dsn, "INSERT INTO vesper_control_format VALUES (999, 1)")
    later = open_store(dsn)
    for store in (before, later):
        with pytest.raises(StoreError, match="has the format 999, and this Vesper knows 1: a newer one made it"):
            used(store)
    assert before.read(KEY) == state
    before.close()
    later.close()


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_does_not_keep_every_text_is_refused(postgres: Postgres, encoding: str) -> None:
    """Before any table is made: SQL_ASCII returns bytes for texts, and others lack most characters."""
    import psycopg

    name = f"migration_{encoding.lower()}_{os.getpid()}"
    run_sql(
        postgres.dsn(),
        f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'",
    )
    store = open_store(postgres.dsn(name))
    for use in USES:
        with pytest.raises(StoreError, match=rf"/{name}: .* encoding {encoding}.* `CREATE DATABASE .* ENCODING 'UTF8'"):
            use(store)
    store.close()
    with psycopg.connect(postgres.dsn(name)) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)
    run_sql(postgres.dsn(), f"DROP DATABASE {name}")


def test_it_stands_beside_the_journal(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """In a database of PostgreSQL: a journal in SQLite has a file of its own."""
    from vesper.journal.journal import open_journal

    dsn = fresh_dsn("postgres", request, tmp_path, has_tables=False)
    journal = open_journal(dsn)
    assert journal.find() == []
    store = open_store(dsn)
    used(store)
    assert journal.find() == []
    journal.close()
    store.close()


@pytest.mark.parametrize(
    "change", ["UPDATE vesper_control_nodes SET state = x'00'", "UPDATE vesper_control_sets SET size = 'many'",
               "UPDATE vesper_control_batches SET number = 'last'"],
)  # fmt: skip
def test_a_changed_cell(path: Path, change: str) -> None:
    store = open_store(f"sqlite:{path}")
    used(store)
    run_sql(f"sqlite:{path}", change)
    with pytest.raises(StoreError, match=r"migration\.db: a cell .* somebody changed the tables"):
        apply(store, agreed("one", 2, MAIN, [1]))
    store.close()


def test_a_changed_secret(path: Path) -> None:
    store = open_store(f"sqlite:{path}")
    store.secret()
    run_sql(f"sqlite:{path}", "UPDATE vesper_control_secret SET secret = x'00'")
    with pytest.raises(StoreError, match="the secret of the store is damaged"):
        store.secret()
    store.close()


# -- servers that go away -------------------------------------------------------------------------


@pytest.fixture(params=["postgres", "redis"])
def behind(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Proxy, Store]]:
    """Return a store behind a network that can be broken."""
    for module in (postgres_store, redis_store):
        monkeypatch.setattr(module, "WAIT_SECONDS", 0.8)
    dsn = fresh_dsn(request.param, request, tmp_path)
    match = re.search(r":(\d+)/", dsn)
    assert match is not None
    proxy = Proxy(int(match[1]))
    store = open_store(dsn.replace(f":{match[1]}/", f":{proxy.port}/"))
    yield proxy, store
    store.close()
    proxy.close()


def test_a_server_that_goes_away_and_comes_back(behind: tuple[Proxy, Store]) -> None:
    proxy, store = behind
    used(store)
    proxy.away()
    uses: list[Callable[[Store], object]] = [*USES, lambda store: store.secret()]
    for use in uses:
        with pytest.raises(StoreAway):
            use(store)
    proxy.mode = "pass"
    assert store.versions() == {KEY: 1}
    assert apply(store, agreed("one", 2, MAIN, [77])).state.clean == 11


def test_a_server_that_goes_away_in_the_middle(behind: tuple[Proxy, Store]) -> None:
    proxy, store = behind
    used(store)

    def work(transaction: Transaction) -> None:
        transaction.put_state("half")
        transaction.add("n1", [1234])
        proxy.away()
        transaction.known("n1", [1])
        transaction.path("x")

    before = store.read(KEY)
    with pytest.raises(StoreAway):
        store.transact(KEY, work)
    proxy.mode = "pass"
    assert store.read(KEY) == before


def test_a_silent_server(behind: tuple[Proxy, Store]) -> None:
    proxy, store = behind
    used(store)
    proxy.mode = "swallow"
    started = time.monotonic()
    with pytest.raises(StoreAway):
        used(store)
    assert time.monotonic() - started < 60
    proxy.mode = "pass"
    assert apply(store, agreed("one", 2, MAIN, [77])).state.clean == 11


def test_a_lost_reply(behind: tuple[Proxy, Store]) -> None:
    """The write was applied, and its sender does not know: sent again, it changes nothing.

    The store itself does not repeat an event without a number.
    """
    proxy, store = behind
    answer = b"COMMIT" if store.name.startswith("postgres") else b"EXEC"
    used(store)
    batch = diverged("one", 2, "f1", 5)
    proxy.cut_at = answer
    with pytest.raises(StoreAway):
        apply(store, batch)
    after = apply(store, batch)
    assert after.is_repeat
    assert (after.state.divergences, after.state.clean) == (1, 9)
    proxy.cut_at = answer
    with pytest.raises(StoreAway):
        ledger.apply_event(store, KEY, Kill("ann", "once"), SETTINGS, NOW)
    assert [each.why for each in ledger.load(store, KEY, SETTINGS).latches] == ["once"]
    assert ledger.verify_history(store.history(KEY)) is None


def test_sessions_that_the_server_ended(postgres: Postgres, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    import psycopg

    store = open_store(fresh_dsn("postgres", request, tmp_path) + "&application_name=ended")
    used(store)
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'ended'"
        )
    assert store.versions() == {KEY: 1}
    store.close()


def test_a_locked_row(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    monkeypatch.setattr(postgres_store._Server, "statement_seconds", 0.5)
    dsn = fresh_dsn("postgres", request, tmp_path)
    store = open_store(dsn)
    used(store)
    with psycopg.connect(dsn) as other:
        other.execute("SELECT 1 FROM vesper_control_nodes FOR UPDATE")
        with pytest.raises(StoreAway, match=r"did not answer within 0.5 s; somebody may hold a lock"):
            apply(store, agreed("one", 2, MAIN, [77]))
        assert store.versions() == {KEY: 1}, "who only looks need not wait"
    assert apply(store, agreed("one", 2, MAIN, [77])).state.clean == 11
    store.close()


@pytest.fixture(scope="module")
def own_redis() -> Iterator[Redis]:
    from tests.support.servers import Redis

    server = Redis(durable=True)
    yield server
    server.remove()


def test_a_crashed_redis_keeps_acknowledged_writes(own_redis: Redis) -> None:
    store = open_store(own_redis.url)
    used(store)
    secret = store.secret()
    own_redis.stop(hard=True)
    with pytest.raises(StoreAway):
        used(store)
    own_redis.start()
    assert used(store) == Applied(ledger.load(store, KEY, SETTINGS), (), is_repeat=True)
    assert store.secret() == secret
    store.close()


def test_a_redis_that_stands_still(own_redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_store, "WAIT_SECONDS", 0.8)
    store = open_store(own_redis.url)
    used(store)
    pid = own_redis._process.pid  # type: ignore[union-attr]
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(StoreAway, match="does not answer"):
            used(store)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert used(store)
    store.close()


def test_a_redis_without_memory(own_redis: Redis) -> None:
    from redis import Redis as Client

    store = open_store(own_redis.url)
    used(store)
    with Client.from_url(own_redis.url) as client:
        client.config_set("maxmemory", "1")
        try:
            with pytest.raises(StoreAway, match="no memory left") as caught:
                apply(store, agreed("one", 9, MAIN, [4711]))
            assert "4711" not in str(caught.value)
        finally:
            client.config_set("maxmemory", "0")
    assert apply(store, agreed("one", 9, MAIN, [4711])).state.clean == 11
    store.close()


def test_foreign_keys_in_redis(own_redis: Redis) -> None:
    from redis import Redis as Client

    url = own_redis.url.removesuffix("0") + "3"
    store = open_store(url)
    used(store)
    with Client.from_url(url) as client:
        names = [each for each in client.scan_iter() if each.endswith(b":state")]
        client.delete(names[0])
        client.rpush(names[0], "a list")
        client.hset(PREFIX + "versions", "x:y", "many")
    with pytest.raises(StoreError, match="damaged: somebody else writes keys"):
        store.read(KEY)
    with pytest.raises(StoreError, match="damaged: somebody else writes keys"):
        store.versions()
    store.close()


def test_warnings_about_data_loss(own_redis: Redis, redis_server: Redis, postgres: Postgres, path: Path) -> None:
    from redis import Redis as Client

    def warnings(dsn: str) -> list[str]:
        store = open_store(dsn)
        said = list(store.warnings())
        store.close()
        return said

    assert warnings(own_redis.url) == []
    with Client.from_url(own_redis.url) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        said = warnings(own_redis.url)
        client.config_set("maxmemory-policy", "noeviction")
    assert len(said) == 1
    assert "set it to noeviction" in said[0]
    assert "writes nothing to disk" in warnings(redis_server.url)[0]
    assert "fsync is off" in warnings(postgres.dsn())[0]
    assert "/tmp is a folder for temporary files" in warnings("sqlite:/tmp/vesper/migration.db")[0]
