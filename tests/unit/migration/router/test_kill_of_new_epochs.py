"""A killed node stays killed in an epoch that the store does not know yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.migration.router.test_node_state import KEY, agree, happened, is_in
from tests.unit.migration.support.memory_store import MemoryStore
from tests.unit.migration.support.routed import compiled
from vesper.config.migration import MigrationSettings
from vesper.migration.compare.reports import Fault
from vesper.migration.control.modes import Mode, Reason
from vesper.migration.control.state import EngineFaulted, Kill, Resume, Settings
from vesper.migration.router.node_state import Live
from vesper.migration.router.store_sync import Migration
from vesper.migration.stores import ledger
from vesper.migration.stores.kill_scope import limit_kill_to_epoch, widen_kill
from vesper.migration.stores.store import NodeKey, Store

RULES = Settings()
NEW = NodeKey(KEY.node, "two")
NEWEST = NodeKey(KEY.node, "three")


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def route(store: Store, folder: Path, key: NodeKey) -> tuple[Migration, Live]:
    migration = Migration(MigrationSettings("", refresh=600.0), folder, store)
    return migration, migration.node(key, compiled(), happened)


def mode_in(store: Store, folder: Path, key: NodeKey) -> Mode:
    """Return the mode in which a process that starts now routes the node."""
    migration, live = route(store, folder, key)
    agree(live, 300)
    migration.tend(is_all=True)
    mode = live.local.mode
    migration.close()
    return mode


def test_a_new_epoch_of_a_killed_node_begins_latched(store: MemoryStore, tmp_path: Path) -> None:
    ledger.apply_event(store, KEY, Kill("ann", "an incident"), RULES, 1)
    assert mode_in(store, tmp_path, NEW) is Mode.PYTHON_ONLY
    (latch,) = ledger.load(store, NEW, RULES).latches
    assert (latch.reason, latch.who) == (Reason.KILL, "ann")
    assert latch.why.startswith("an incident")
    assert mode_in(store, tmp_path, NEWEST) is Mode.PYTHON_ONLY
    (third,) = ledger.load(store, NEWEST, RULES).latches
    assert third.why == latch.why


def test_a_kill_reaches_a_process_whose_epoch_the_store_does_not_know_yet(store: MemoryStore, tmp_path: Path) -> None:
    ledger.apply_event(store, KEY, Resume("ann", "so that the store knows it"), RULES, 1)
    migration, live = route(store, tmp_path, NEW)
    assert is_in(live, Mode.SHADOW_DIRECT)()
    ledger.apply_event(store, KEY, Kill("ann", "an incident"), RULES, 2)
    agree(live, 300)
    migration.tend(is_all=True)
    assert live.local.mode is Mode.PYTHON_ONLY
    migration.close()


def test_a_resumed_epoch_stays_resumed_and_so_does_the_next(store: MemoryStore, tmp_path: Path) -> None:
    ledger.apply_event(store, KEY, Kill("ann", "an incident"), RULES, 1)
    migration, live = route(store, tmp_path, NEW)
    ledger.apply_event(store, NEW, Resume("ann", "it is over"), RULES, 2)
    migration.tend(is_all=True)
    assert live.local.mode is Mode.SHADOW_DIRECT
    migration.close()
    assert mode_in(store, tmp_path, NEW) is Mode.CANARY_DIRECT
    assert mode_in(store, tmp_path, NEWEST) is Mode.CANARY_DIRECT


def test_a_kill_of_one_epoch_leaves_the_next_alone(store: MemoryStore, tmp_path: Path) -> None:
    limit_kill_to_epoch(store, KEY, RULES)
    ledger.apply_event(store, KEY, Kill("ann", "a bad definition"), RULES, 1)
    assert mode_in(store, tmp_path, NEW) is not Mode.PYTHON_ONLY


def test_a_later_kill_of_every_epoch_widens_that_of_one(store: MemoryStore, tmp_path: Path) -> None:
    limit_kill_to_epoch(store, KEY, RULES)
    ledger.apply_event(store, KEY, Kill("ann", "a bad definition"), RULES, 1)
    widen_kill(store, KEY)
    assert mode_in(store, tmp_path, NEW) is Mode.PYTHON_ONLY


def test_a_kill_of_every_epoch_is_not_narrowed(store: MemoryStore, tmp_path: Path) -> None:
    ledger.apply_event(store, KEY, Kill("ann", "an incident"), RULES, 1)
    limit_kill_to_epoch(store, KEY, RULES)
    assert mode_in(store, tmp_path, NEW) is Mode.PYTHON_ONLY


def test_a_fault_of_an_old_definition_does_not_stop_the_next(store: MemoryStore, tmp_path: Path) -> None:
    ledger.apply_event(store, KEY, EngineFaulted("a panic"), RULES, 1)
    assert mode_in(store, tmp_path, NEW) is not Mode.PYTHON_ONLY


def test_a_fault_carried_into_a_replaced_store_does_not_stop_the_next(tmp_path: Path) -> None:
    class Other(MemoryStore):
        def secret(self) -> bytes:
            return b"another 16 bytes"

    migration, live = route(MemoryStore(), tmp_path, KEY)
    live.report(Fault("a panic"))
    migration.tend(is_all=True)
    migration.store = other = Other()
    migration.tend(is_all=True)
    migration.close()
    assert [each.reason for each in ledger.load(other, KEY, RULES).latches] == [Reason.KILL]
    assert mode_in(other, tmp_path, NEW) is not Mode.PYTHON_ONLY


def test_another_node_is_left_alone(store: MemoryStore, tmp_path: Path) -> None:
    ledger.apply_event(store, NodeKey("fee_v1", "one"), Kill("ann", "an incident"), RULES, 1)
    assert mode_in(store, tmp_path, NEW) is not Mode.PYTHON_ONLY


def test_an_epoch_that_cannot_be_read_stops_nothing_new(store: MemoryStore, tmp_path: Path) -> None:
    store.transact(KEY, lambda transaction: transaction.put_state("{}"))
    assert mode_in(store, tmp_path, NEW) is not Mode.PYTHON_ONLY
