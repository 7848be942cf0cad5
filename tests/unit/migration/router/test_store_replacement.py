"""A store that is deleted or emptied during operation: stops are carried over, trust is not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.unit.migration.router.test_node_state import KEY, agree, happened, is_in
from tests.unit.migration.support.hook import Hook
from tests.unit.migration.support.memory_store import MemoryStore
from tests.unit.migration.support.routed import compiled
from vesper.config.migration import MigrationSettings
from vesper.migration.compare.reports import Fault
from vesper.migration.control.modes import Mode, Reason
from vesper.migration.control.state import Kill, Resume, Settings
from vesper.migration.router.node_state import Live
from vesper.migration.router.store_sync import REPLACED_STORE_NOTE, Migration
from vesper.migration.stores import ledger
from vesper.migration.stores.store import NodeKey, Store, StoreAway, StoreError, open_store

RULES = Settings()


class Other(MemoryStore):
    """The store after it was emptied."""

    def secret(self) -> bytes:
        return b"another 16 bytes"


def started(store: Store, folder: Path) -> tuple[Migration, Live]:
    migration = Migration(MigrationSettings("", refresh=600.0), folder, store)
    return migration, migration.node(KEY, compiled(), happened)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[Migration, Live]]:
    migration, live = started(MemoryStore(), tmp_path)
    yield migration, live
    migration.close()


def test_a_switch_for_all_nodes_stands_in_the_new_store(running: tuple[Migration, Live]) -> None:
    migration, live = running
    agree(live, 300)
    ledger.kill_all(migration.store, "ann", "an incident", 1)
    migration.tend(is_all=True)
    migration.store = other = Other()
    migration.tend(is_all=True)
    switch = ledger.read_kill_switch(other)
    assert switch is not None
    assert (switch.who, switch.why) == ("ann", f"an incident ({REPLACED_STORE_NOTE})")
    assert live.local.mode is Mode.PYTHON_ONLY
    late = migration.node(NodeKey("late_v1", "one"), compiled(), happened)
    assert late.local.mode is Mode.PYTHON_ONLY
    ledger.resume_all(other, "ann", "it is over", 2)
    migration.tend()
    assert (live.local.mode, late.local.mode) == (Mode.SHADOW_DIRECT, Mode.SHADOW_DIRECT)


def test_a_latch_of_a_node_stands_in_the_new_store(running: tuple[Migration, Live]) -> None:
    migration, live = running
    ledger.apply_event(migration.store, KEY, Kill("ann", "an incident"), RULES, 1)
    migration.tend()
    migration.store = other = Other()
    migration.tend()
    assert live.local.mode is Mode.PYTHON_ONLY
    (latch,) = ledger.load(other, KEY, RULES).latches
    assert (latch.reason, latch.who, latch.why) == (Reason.KILL, "ann", f"an incident ({REPLACED_STORE_NOTE})")
    ledger.apply_event(other, KEY, Resume("ann", "it is over"), RULES, 2)
    migration.tend()
    assert is_in(live, Mode.SHADOW_DIRECT)()


def test_a_controllers_latch_is_carried_without_engine_texts(running: tuple[Migration, Live]) -> None:
    migration, live = running
    live.report(Fault("it panicked: 4111"))
    migration.tend()
    assert ledger.load(migration.store, KEY, RULES).latches
    migration.store = other = Other()
    migration.tend()
    (latch,) = ledger.load(other, KEY, RULES).latches
    assert (latch.who, latch.why) == ("controller", f"engine_fault ({REPLACED_STORE_NOTE})")
    assert not any("4111" in line.text for line in other.history(KEY))


def test_no_trust_is_carried_over(running: tuple[Migration, Live]) -> None:
    migration, live = running
    agree(live, 300)
    migration.tend(is_all=True)
    assert live.local.mode is Mode.CANARY_DIRECT
    migration.store = other = Other()
    migration.tend()
    migration.tend(is_all=True)
    state = ledger.load(other, KEY, RULES)
    assert (state.mode, state.clean, state.paths) == (Mode.SHADOW_DIRECT, 0, {})
    assert ledger.read_kill_switch(other) is None


def test_a_resume_in_the_new_store_is_not_undone(tmp_path: Path) -> None:
    """One process notices late, after the other carried the stops over and a person released them."""
    store, other = MemoryStore(), Other()
    (first, one), (second, two) = started(store, tmp_path / "one"), started(store, tmp_path / "two")
    ledger.kill_all(store, "ann", "an incident", 1)
    ledger.apply_event(store, KEY, Kill("ann", "an incident"), RULES, 1)
    first.tend()
    second.tend()
    first.store = second.store = other
    first.tend()
    ledger.resume_all(other, "ann", "it is over", 2)
    ledger.apply_event(other, KEY, Resume("ann", "it is over"), RULES, 2)
    for each in (first, second):
        each.tend()
        assert each.key == other.secret()
    assert (one.local.mode, two.local.mode) == (Mode.SHADOW_DIRECT, Mode.SHADOW_DIRECT)
    assert ledger.read_kill_switch(other) is None
    first.close()
    second.close()


def test_a_process_that_notices_late_counts_nothing_under_the_old_key(tmp_path: Path) -> None:
    """By then the new store has as high a version of the node as the old one had."""
    store, other = MemoryStore(), Other()
    migration, live = started(store, tmp_path)
    ledger.apply_event(store, KEY, Kill("ann", "an incident"), RULES, 1)
    ledger.apply_event(store, KEY, Resume("ann", "it is over"), RULES, 1)
    migration.tend(is_all=True)
    agree(live, 10)
    migration.store = other
    ledger.apply_event(other, KEY, Kill("bob", "another incident"), RULES, 1)
    ledger.apply_event(other, KEY, Resume("bob", "it is over"), RULES, 1)
    assert other.versions() == store.versions()
    migration.tend(is_all=True)
    assert migration.key == other.secret()
    assert ledger.load(other, KEY, RULES).clean == 0
    migration.close()


def test_an_interrupted_carry_over_is_repeated(running: tuple[Migration, Live]) -> None:
    class Failing(Other):
        fails = True

        def transact(self, key, work):  # type: ignore[no-untyped-def]
            if self.fails:
                raise StoreAway("it is away")
            return super().transact(key, work)

    migration, live = running
    ledger.kill_all(migration.store, "ann", "an incident", 1)
    ledger.apply_event(migration.store, KEY, Kill("ann", "an incident"), RULES, 1)
    migration.tend()
    migration.store = other = Failing()
    migration.tend()
    assert live.local.mode is Mode.PYTHON_ONLY
    other.fails = False
    migration.tend()
    assert ledger.read_kill_switch(other) is not None
    assert ledger.load(other, KEY, RULES).latches


def test_a_file_that_was_deleted(tmp_path: Path) -> None:
    dsn = f"sqlite:{tmp_path / 'migration.db'}"
    migration, live = started(open_store(dsn), tmp_path / "spool")
    ledger.kill_all(migration.store, "ann", "stop", 1)
    ledger.apply_event(migration.store, KEY, Kill("ann", "stop"), RULES, 1)
    migration.tend()
    for each in tmp_path.glob("migration.db*"):
        each.unlink()
    live.served(Mode.PYTHON_ONLY, "python")
    migration.tend(is_all=True)  # it finds that the file is gone
    migration.tend(is_all=True)
    found = open_store(dsn)
    assert ledger.read_kill_switch(found) is not None
    assert [latch.who for latch in ledger.load(found, KEY, RULES).latches] == ["ann"]
    assert json.loads(found.history(KEY)[0].text)["kind"] == "latched"
    found.close()
    assert live.local.mode is Mode.PYTHON_ONLY
    migration.close()
    migration.store.close()


# -- who runs the service is told -------------------------------------------------------------------


@pytest.fixture
def hook() -> Iterator[Hook]:
    found = Hook()
    yield found
    found.close()


def posted(migration: Migration, hook: Hook) -> list[tuple[str, str, str | None]]:
    """Return the posts until the end of the process."""
    migration._alerts.close(60)
    found = []
    while not hook.got.empty():
        got = hook.got.get()
        found.append((got["kind"], got["level"], got["node"]))
    return found


def told_at(hook: Hook, store: Store, folder: Path, hold: float = 600.0) -> tuple[Migration, Live]:
    migration = Migration(MigrationSettings("", refresh=600.0, hold=hold, webhook=hook.url), folder, store)
    return migration, migration.node(KEY, compiled(), happened)


def test_a_store_that_was_replaced_is_posted_once(hook: Hook, tmp_path: Path) -> None:
    migration, live = told_at(hook, open_store(f"sqlite:{tmp_path / 'migration.db'}"), tmp_path / "spool")
    agree(live, 10)
    migration.tend(is_all=True)
    for each in tmp_path.glob("migration.db*"):
        each.unlink()
    for _ in range(3):
        agree(live, 10)
        migration.tend(is_all=True)
    assert posted(migration, hook) == [("store_replaced", "warning", None)]
    migration.close()
    migration.store.close()


class Troubled(MemoryStore):
    error: Exception | None = None

    def versions(self) -> Mapping[NodeKey, int]:
        if self.error is not None:
            raise self.error
        return super().versions()


def test_a_store_that_is_away_for_longer_than_it_is_held_is_posted_each_time(
    hook: Hook, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Troubled()
    migration, _ = told_at(hook, store, tmp_path, hold=0.0)
    for _ in range(2):
        store.error = StoreAway("it is away")
        for _ in range(3):
            migration.tend()
        store.error = None
        migration.tend()
    assert posted(migration, hook) == [("store_away", "warning", None)] * 2
    assert caplog.text.count("(`hold`)") == 2
    migration.close()


@pytest.mark.parametrize("error", [StoreError("is damaged: card 4111"), ValueError("the switch: card 4111")])
def test_a_store_that_is_damaged_is_posted_each_time(hook: Hook, tmp_path: Path, error: Exception) -> None:
    store = Troubled()
    migration, _ = told_at(hook, store, tmp_path)
    for _ in range(2):
        for store.error in (error, StoreAway("it is away"), error, error):
            migration.tend()
        store.error = None
        migration.tend()
    bodies = [hook.next(), hook.next()]
    assert [(each["kind"], each["level"], each["node"]) for each in bodies] == [("store_damaged", "error", None)] * 2
    assert "4111" not in json.dumps(bodies)
    assert posted(migration, hook) == []
    migration.close()


def test_a_damaged_node_state_is_posted_once(hook: Hook, tmp_path: Path) -> None:
    migration, live = told_at(hook, MemoryStore(), tmp_path)
    migration.store.transact(KEY, lambda transaction: transaction.put_state("{"))
    for _ in range(3):
        agree(live, 10)
        migration.tend(is_all=True)
    assert posted(migration, hook) == [("store_damaged", "error", KEY.node)]
    migration.close()
