"""The state of a node in one process: batches, spool, revoked trust, store outages, forks."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

import pytest

from tests.support.waiting import eventually
from tests.unit.migration.support.memory_store import MemoryStore
from vesper.compiler import compile_file
from vesper.config.migration import MigrationSettings, NodeMigration
from vesper.engines.outcome import Returned
from vesper.journal.owner import this_owner
from vesper.migration.compare.divergence import Divergence, fingerprint_of
from vesper.migration.compare.paths import PathNote
from vesper.migration.compare.reports import Agreement, Difference, Disagreement, Fault, Lost
from vesper.migration.compare.transcript import Transcript
from vesper.migration.control.controller import is_proven
from vesper.migration.control.modes import Mode
from vesper.migration.control.state import Close, Demote, Diverged, Kill, NodeState, Settings
from vesper.migration.router import spool as spool_module
from vesper.migration.router.node_state import Live
from vesper.migration.router.routes import happened_of
from vesper.migration.router.spool import Spool
from vesper.migration.router.store_sync import Migration
from vesper.migration.stores import ledger
from vesper.migration.stores.codec import state_text
from vesper.migration.stores.store import WHOLE, Batch, Happened, NodeKey, Store, StoreAway, StoreError, Transaction

T = TypeVar("T")
KEY = NodeKey("payment_decision_v1", "one")
MAIN = PathNote(b"\x01" * 8, (), "returned", ("0a",))
OTHER = PathNote(b"\x02" * 8, (), "returned")
SEEN = Transcript({"amount": 1}, None, (), Returned({"fee": 1}))


class Shaky(MemoryStore):
    """A store that can be away."""

    is_away = False

    def versions(self) -> Mapping[NodeKey, int]:
        self._here()
        return super().versions()

    def transact(self, key: NodeKey, work: Callable[[Transaction], T]) -> T:
        self._here()
        return super().transact(key, work)

    def _here(self) -> None:
        if self.is_away:
            raise StoreAway("it is away")


def differs(path: PathNote = MAIN, is_effect: bool = False, fingerprint: int | None = 1) -> Disagreement:
    difference = Difference("request" if is_effect else "outcome", "outputs.fee", "returned", "returned", is_effect)
    return Disagreement(difference, path, fingerprint, SEEN, Returned({"fee": 2}))


def happened(report: Disagreement | Fault) -> Happened:
    if isinstance(report, Fault):
        kept = Divergence(fingerprint_of("n", "fault", report.what, "", ""), "n", "fault", report.what, "", ("p", "d"))
    else:
        where = report.difference.where
        path = report.note.name if report.note else ""
        kept = Divergence(fingerprint_of("n", "outcome", where, "", ""), "n", "outcome", where, path, ("p", "d"))
    return happened_of(report, kept)


@pytest.fixture
def store() -> Shaky:
    return Shaky()


@pytest.fixture
def migration(store: Shaky, tmp_path: Path) -> Iterator[Migration]:
    made = Migration(MigrationSettings("", refresh=0.05, hold=0.3), tmp_path / "spool", store)
    yield made
    store.is_away = False
    made.close()


@pytest.fixture
def live(migration: Migration) -> Live:
    compiled, _ = compile_file(Path("nodes/payments/payment_decision_v1.vsp"))
    assert compiled is not None
    return migration.node(KEY, compiled, happened)


def state_of(store: MemoryStore) -> NodeState:
    return ledger.load(store, KEY, Settings())


def agree(live: Live, count: int, note: PathNote = MAIN, first: int = 0) -> None:
    for number in range(first, first + count):
        live.report(Agreement(note, number, 10, 5))


def is_in(live: Live, mode: Mode) -> Callable[[], bool]:
    return lambda: live.local.mode is mode


def test_agreements_reach_the_store_and_raise_the_mode(live: Live, migration: Migration, store: Shaky) -> None:
    agree(live, 205)
    migration.tend(is_all=True)
    assert (state_of(store).clean, live.local.mode) == (205, Mode.SHADOW_DIRECT)
    agree(live, 205)  # the same again
    agree(live, 1, first=205)
    migration.tend(is_all=True)
    assert state_of(store).clean == 206
    assert live.local.mode is Mode.CANARY_DIRECT
    assert live.trusts(MAIN.name)
    assert live.trusts_prefix("0a")
    assert live.local.points == {MAIN.points}


def test_uncompared_requests_are_no_agreement(live: Live, migration: Migration, store: Shaky) -> None:
    agree(live, 300)
    for _ in range(2):
        live.report(Lost("too much waits"))
    migration.tend(is_all=True)
    found = state_of(store)
    assert (found.unknown, found.mode) == (2, Mode.SHADOW_DIRECT)  # over 0.1 % came to nothing


def test_a_divergence_takes_trust_away_before_the_store_knows(live: Live, migration: Migration, store: Shaky) -> None:
    agree(live, 300)
    agree(live, 300, OTHER, 1000)
    migration.tend(is_all=True)
    assert live.trusts(MAIN.name)
    store.is_away = True
    live.report(differs())
    assert not live.trusts(MAIN.name)
    assert not live.trusts_prefix("0a")
    assert live.trusts(OTHER.name)
    store.is_away = False
    eventually(lambda: state_of(store).divergences == 1)
    assert [Divergence.from_text(text).count for text in store.divergences(KEY)] == [1]


def test_a_divergence_beside_agreements_is_no_repetition(live: Live, migration: Migration, store: Shaky) -> None:
    store.is_away = True
    for number in range(3):
        agree(live, 10, OTHER, 10 * number)
        live.report(differs(fingerprint=100 + number))
        migration.tend(is_all=True)
    store.is_away = False
    migration.tend(is_all=True)
    migration.tend(is_all=True)
    found = state_of(store)
    assert (found.divergences, found.clean) == (3, 30)


@pytest.mark.parametrize("report", [differs(is_effect=True), Fault("it panicked")], ids=["effects differ", "fault"])
def test_a_latching_finding_stops_the_direct_engine_at_once(
    report: Disagreement | Fault, live: Live, migration: Migration, store: Shaky
) -> None:
    agree(live, 300)
    migration.tend(is_all=True)
    store.is_away = True
    live.report(report)
    assert live.local.mode is Mode.PYTHON_ONLY
    store.is_away = False
    eventually(lambda: bool(state_of(store).latches))
    eventually(is_in(live, Mode.PYTHON_ONLY))
    assert len(store.divergences(KEY)) == 1


def test_a_store_that_is_away_is_held_for_a_while_and_then_python_runs_alone(
    live: Live, migration: Migration, store: Shaky, caplog: pytest.LogCaptureFixture
) -> None:
    agree(live, 300)
    migration.tend(is_all=True)
    store.is_away = True
    migration.tend()
    assert live.local.mode is Mode.CANARY_DIRECT  # held
    assert "runs on Python alone" not in caplog.text
    eventually(is_in(live, Mode.PYTHON_ONLY))
    migration.tend()
    assert caplog.text.count("every node of this process runs on Python alone until it is back") == 1
    agree(live, 20, first=500)
    store.is_away = False
    eventually(is_in(live, Mode.CANARY_DIRECT))
    migration.tend(is_all=True)
    assert state_of(store).clean == 320  # nothing was lost meanwhile


def test_a_node_that_begins_without_its_store_runs_on_python(store: Shaky, tmp_path: Path) -> None:
    store.is_away = True
    migration = Migration(MigrationSettings("", refresh=0.05), tmp_path, store)
    compiled, _ = compile_file(Path("nodes/payments/payment_decision_v1.vsp"))
    assert compiled is not None
    live = migration.node(KEY, compiled, happened)
    assert live.local.mode is Mode.PYTHON_ONLY
    store.is_away = False
    eventually(is_in(live, Mode.SHADOW_DIRECT))
    migration.close()


def test_agreements_wait_for_a_moment_without_callers(live: Live, migration: Migration, store: Shaky) -> None:
    waits, may_go_on = threading.Event(), threading.Event()

    def lull() -> None:
        waits.set()
        assert may_go_on.wait(60)

    migration.lull = lull
    agree(live, 5)
    assert waits.wait(60)
    assert state_of(store).clean == 0
    may_go_on.set()
    eventually(lambda: state_of(store).clean == 5)


def test_a_batch_with_an_unknown_result_counts_once(
    live: Live, migration: Migration, store: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = ledger.apply

    def applied_and_then_gone(*arguments):  # type: ignore[no-untyped-def]
        apply(*arguments)
        raise StoreAway("nobody heard the answer")

    agree(live, 50)
    live.report(Lost("one"))
    monkeypatch.setattr(ledger, "apply", applied_and_then_gone)
    migration.tend(is_all=True)
    monkeypatch.setattr(ledger, "apply", apply)
    migration.tend(is_all=True)
    found = state_of(store)
    assert (found.clean, found.compared, found.unknown) == (50, 50, 1)


def test_a_switch_for_all_nodes(
    live: Live, migration: Migration, store: Shaky, caplog: pytest.LogCaptureFixture
) -> None:
    ledger.kill_all(store, "ann", "an incident", 1)
    eventually(is_in(live, Mode.PYTHON_ONLY))
    migration.tend()
    assert caplog.text.count("all were stopped by ann: an incident") == 1
    assert WHOLE in store.versions()
    ledger.resume_all(store, "ann", "it is over", 2)
    eventually(is_in(live, Mode.SHADOW_DIRECT))
    assert state_of(store).mode is Mode.SHADOW_DIRECT  # nothing of the node was changed
    migration.tend()
    assert caplog.text.count("nobody stops all of them any more") == 1


def test_decisions_of_other_processes_take_effect(
    live: Live, migration: Migration, store: Shaky, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "vesper.migration"):
        ledger.apply_event(store, KEY, Kill("ann", "an incident"), Settings(), 1)
        eventually(is_in(live, Mode.PYTHON_ONLY))
        migration.tend()
    assert f"{KEY.node}: shadow_direct → python_only in this process" in caplog.messages


def test_the_configuration_may_hold_a_node_down(store: Shaky, tmp_path: Path) -> None:
    settings = MigrationSettings("", nodes={KEY.node: NodeMigration(max_mode="shadow_direct")})
    migration = Migration(settings, tmp_path, store)
    compiled, _ = compile_file(Path("nodes/payments/payment_decision_v1.vsp"))
    assert compiled is not None
    live = migration.node(KEY, compiled, happened)
    agree(live, 300)
    migration.tend(is_all=True)
    assert state_of(store).mode is Mode.CANARY_DIRECT
    assert live.local.mode is Mode.SHADOW_DIRECT
    migration.close()


def test_a_child_counts_for_itself(live: Live, migration: Migration, store: Shaky) -> None:
    agree(live, 10)
    before = migration.process
    child = os.fork()
    if child == 0:
        is_its_own = migration.process != before and not live.due(is_all=True)
        os._exit(0 if is_its_own else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    migration.tend(is_all=True)
    assert state_of(store).clean == 10


# -- what must not undo, hold up or hide what was found -------------------------------------------


def test_an_older_state_restores_no_trust(live: Live, migration: Migration, monkeypatch: pytest.MonkeyPatch) -> None:
    agree(live, 300)
    migration.tend(is_all=True)
    notes = {MAIN.name: MAIN}

    def slow(report: Disagreement | Fault) -> Happened:
        live.update_state(live.state, 99, notes)  # it was asked for before, and comes now
        assert live.local.mode is Mode.PYTHON_ONLY
        return happened(report)

    monkeypatch.setattr(live, "_divergence_of", slow)
    live.report(Fault("it panicked"))


def test_a_concurrent_read_does_not_undo_a_finding(
    live: Live, migration: Migration, store: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    agree(live, 300)
    migration.tend(is_all=True)
    store.is_away = True
    begun, may_end = threading.Event(), threading.Event()

    def slow(state: NodeState, path: str) -> bool:
        begun.set()
        may_end.wait(10)
        return is_proven(state, path)

    monkeypatch.setattr("vesper.migration.router.node_state.is_proven", slow)
    looks = threading.Thread(target=live.update_state, args=(live.state, 99, {MAIN.name: MAIN}))
    looks.start()
    begun.wait(10)
    finds = threading.Thread(target=live.report, args=(Fault("it panicked"),))
    finds.start()
    finds.join(0.2)  # without order it would be done by now, and overwritten
    may_end.set()
    looks.join()
    finds.join()
    assert live.local.mode is Mode.PYTHON_ONLY


def test_an_unsent_finding_keeps_trust_revoked(
    live: Live, migration: Migration, store: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    agree(live, 300)
    migration.tend(is_all=True)

    def breaks(report: Disagreement | Fault) -> Happened:
        raise RuntimeError("no words for it")

    monkeypatch.setattr(live, "_divergence_of", breaks)
    with pytest.raises(RuntimeError):
        live.report(differs())
    agree(live, 10, OTHER, 1000)
    migration.tend(is_all=True)
    assert not live.trusts(MAIN.name)


def test_only_the_finding_thread_waits_for_the_disk(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(key: NodeKey, batch: Batch, is_synced: bool) -> None:
        other = threading.Thread(target=agree, args=(live, 1))
        other.start()
        other.join(10)
        assert not other.is_alive()

    monkeypatch.setattr(live, "_spool", slow)
    live.report(differs())


def test_a_flood_of_one_divergence_is_synced_once_and_merged(
    live: Live, migration: Migration, store: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.is_away = True
    spooled: list[bool] = []
    monkeypatch.setattr(live, "_spool", lambda *given: spooled.append(given[2]))
    for number in range(1200):
        live.report(differs(fingerprint=number))
    assert (sum(spooled), len(spooled)) == (1, 1200)
    told: list[Batch] = []
    apply = ledger.apply

    def applied(store: Store, key: NodeKey, batch: Batch, settings: Settings, now_us: int) -> ledger.Applied:
        told.append(batch)
        return apply(store, key, batch, settings, now_us)

    monkeypatch.setattr(ledger, "apply", applied)
    store.is_away = False
    eventually(lambda: state_of(store).divergences == 1200)
    assert len(told) < 10
    assert [Divergence.from_text(text).count for text in store.divergences(KEY)] == [1200]


def test_a_finding_wakes_the_thread_of_a_forked_child(
    live: Live, migration: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Woken(SimpleQueue[None]):
        times = 0

        def put(self, *_: object, **__: object) -> None:
            self.times += 1

    its_own = Woken()
    monkeypatch.setattr(migration, "_wakes", its_own)  # as after a fork
    live.report(differs())
    assert its_own.times == 1


def test_a_node_that_begins_after_all_were_stopped_begins_on_python(store: Shaky, tmp_path: Path) -> None:
    ledger.kill_all(store, "ann", "an incident", 1)
    migration = Migration(MigrationSettings("", refresh=600.0), tmp_path, store)
    compiled, _ = compile_file(Path("nodes/payments/payment_decision_v1.vsp"))
    assert compiled is not None
    assert migration.node(KEY, compiled, happened).local.mode is Mode.PYTHON_ONLY
    migration.close()


@pytest.mark.parametrize("error", [StoreError("it takes no documents"), RuntimeError("it broke")])
def test_a_failing_chore_delays_no_batch(error: Exception, live: Live, migration: Migration, store: Shaky) -> None:
    def fails() -> None:
        raise error

    migration.chores.append(fails)
    live.report(differs())
    migration.tend()
    assert state_of(store).divergences == 1
    assert not migration.is_away


@pytest.mark.parametrize("what", ["a path", "the state"])
def test_a_damaged_state_stops_its_node_alone(
    what: str, live: Live, migration: Migration, store: Shaky, caplog: pytest.LogCaptureFixture
) -> None:
    def damage(transaction: Transaction) -> None:
        if what == "a path":
            transaction.put_path("p", '{"format": 99}')
        transaction.put_state(state_text(NodeState(*key)) if what == "a path" else "{")

    compiled, _ = compile_file(Path("nodes/payments/payment_decision_v1.vsp"))
    assert compiled is not None
    key = ("another_v1", "one")
    damaged = migration.node(NodeKey(*key), compiled, happened)
    store.transact(NodeKey(*key), damage)
    damaged.report(differs())
    eventually(is_in(damaged, Mode.PYTHON_ONLY))
    agree(live, 300)
    migration.tend(is_all=True)
    assert live.local.mode is Mode.CANARY_DIRECT
    assert not migration.is_away
    assert caplog.text.count("another_v1: what the store has of it cannot be used") <= 2  # to be told, and asked for
    ledger.kill_all(store, "ann", "an incident", 1)
    eventually(is_in(live, Mode.PYTHON_ONLY))


def test_all_findings_are_sent_at_the_end(store: Shaky, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Migration, "start", lambda _: None)
    migration = Migration(MigrationSettings("", refresh=600.0), tmp_path, store)
    compiled, _ = compile_file(Path("nodes/payments/payment_decision_v1.vsp"))
    assert compiled is not None
    live = migration.node(KEY, compiled, happened)
    agree(live, 10)
    store.is_away = True
    migration.tend(is_all=True)
    agree(live, 10, first=100)
    live.report(Lost("one"))
    store.is_away = False
    migration.close()
    assert (state_of(store).clean, state_of(store).unknown) == (20, 1)


def test_a_store_that_was_replaced_has_another_key(store: Shaky, tmp_path: Path) -> None:
    """A process that continued with the old key would count inputs twice that others count under the new one."""

    class Other(Shaky):
        def secret(self) -> bytes:
            return b"another 16 bytes"

    migration = Migration(MigrationSettings("", refresh=600.0), tmp_path, store)
    compiled, _ = compile_file(Path("nodes/payments/payment_decision_v1.vsp"))
    assert compiled is not None
    live = migration.node(KEY, compiled, happened)
    agree(live, 300)
    migration.tend(is_all=True)
    agree(live, 10, OTHER, 1000)
    migration.store = other = Other()
    migration.tend(is_all=True)
    assert migration.key == other.secret()
    migration.tend(is_all=True)
    assert (state_of(other).clean, live.local.mode) == (0, Mode.SHADOW_DIRECT)
    migration.close()


def test_agreements_from_before_a_fall_do_not_count(live: Live, migration: Migration, store: Shaky) -> None:
    agree(live, 300)
    migration.tend(is_all=True)
    agree(live, 300, first=1000)  # gathered in the first attempt, and told after the fall
    ledger.apply_event(store, KEY, Demote(Mode.SHADOW_DIRECT, "ann", "for a test"), Settings(), 1)
    migration.tend(is_all=True)
    migration.tend(is_all=True)
    assert (state_of(store).attempt, state_of(store).clean) == (2, 0)
    agree(live, 10, first=2000)
    migration.tend(is_all=True)
    assert state_of(store).clean == 10


def test_agreements_from_before_a_divergence_do_not_count_for_its_path(
    live: Live, migration: Migration, store: Shaky
) -> None:
    """The divergence is sent at once in its own batch; earlier agreements follow later, also from other processes."""
    live.report(differs(fingerprint=90_000))
    for number in range(5):
        agree(live, 900, first=1000 * number)
        live.report(differs(fingerprint=90_001 + number))
        migration.tend()
        migration.tend(is_all=True)
    found = state_of(store)
    assert (found.divergences, found.clean, found.paths[MAIN.name].clean) == (6, 4500, 0)
    [kept] = store.divergences(KEY)
    ledger.apply_event(store, KEY, Close(Divergence.from_text(kept).fingerprint, "ann", "looked"), Settings(), 1)
    migration.tend(is_all=True)
    assert not live.trusts(MAIN.name)
    agree(live, 900, first=10_000)
    migration.tend(is_all=True)
    assert (state_of(store).paths[MAIN.name].clean, live.trusts(MAIN.name)) == (900, True), "gathered afterwards"


def test_a_process_that_begins_after_a_divergence_gathers_evidence_at_once(
    live: Live, migration: Migration, store: Shaky, tmp_path: Path
) -> None:
    live.report(differs())
    migration.tend(is_all=True)
    other = Migration(MigrationSettings("", refresh=0.05), tmp_path / "other", store)
    agree(other.node(KEY, live.compiled, happened), 10)
    other.close()
    assert state_of(store).paths[MAIN.name].clean == 9, "one input is the one that diverged"


# -- the spool ------------------------------------------------------------------------------------


def batch_of(process: str, number: int) -> Batch:
    return Batch(process, number, (happened(differs()),), paths={MAIN.name: MAIN.to_text()})


def test_the_spool_of_a_killed_process_is_sent_once(migration: Migration, store: Shaky, tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    child = os.fork()
    if child == 0:
        process = f"{this_owner()}+dead"
        spool = Spool(folder, process)
        for number in (1, 2):
            spool.write(KEY, batch_of(process, number))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    (left,) = folder.glob("*+dead.spool")
    again = left.read_bytes()
    migration._last_look_around = 0.0
    migration.tend()
    assert state_of(store).divergences == 2
    assert not left.exists()
    left.write_bytes(again)  # as if the process had died between the store and the file
    migration._last_look_around = 0.0
    migration.tend()
    assert state_of(store).divergences == 2


def test_a_damaged_spool_yields_its_complete_lines(
    migration: Migration, store: Shaky, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spool = Spool(tmp_path / "spool", f"{this_owner()}+mine")
    for number in (1, 2, 3):
        spool.write(KEY, batch_of("mine", number))
    spool.close()
    (path,) = (tmp_path / "spool").glob("*+mine.spool")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"outputs.fee", b"outputs.fie")
    dead = path.with_name(path.name.replace(f":{os.getpid()}:", ":4194303:"))
    path.unlink()
    dead.write_bytes(b"".join(lines)[:-20])
    migration._last_look_around = 0.0
    migration.tend()
    assert state_of(store).divergences == 1
    assert "line 2 cannot be read" in caplog.text
    assert "line 3 was cut off" in caplog.text
    (kept,) = (tmp_path / "spool" / "aside").iterdir()  # nothing is deleted that nobody could read
    assert kept.read_bytes().splitlines()[1] == lines[1].rstrip()


def test_a_spool_that_is_too_large_to_be_read_is_kept(
    migration: Migration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "spool"
    folder.mkdir(exist_ok=True)
    dead = folder / f"{this_owner().replace(f':{os.getpid()}:', ':4194303:')}+dead.spool"
    dead.write_bytes(b"x" * 100)
    monkeypatch.setattr(spool_module, "_MAX_BYTES", 10)
    migration._last_look_around = 0.0
    migration.tend()
    assert not dead.exists()
    assert (folder / "aside" / dead.name).read_bytes() == b"x" * 100


def test_a_spool_from_before_a_reboot_is_sent(migration: Migration, store: Shaky, tmp_path: Path) -> None:
    """Only the lock on the file shows whether such a process lives."""
    process = f"{this_owner()[:-1]}!+other"
    spool = Spool(tmp_path / "spool", process)
    spool.write(KEY, batch_of(process, 1))
    migration._last_look_around = 0.0
    migration.tend()
    assert state_of(store).divergences == 0  # it lives
    spool.close()
    migration._last_look_around = 0.0
    migration.tend()
    assert state_of(store).divergences == 1
    spool.write(KEY, batch_of(process, 2))  # one that was closed may be written to again
    spool.close()
    migration._last_look_around = 0.0
    migration.tend()
    assert state_of(store).divergences == 2


def test_a_partial_line_corrupts_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = f"{this_owner().replace(f':{os.getpid()}:', ':4194303:')}+dead"
    spool = Spool(tmp_path, process)
    spool.write(KEY, batch_of(process, 1))
    write = os.write
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda file, data: write(file, data[:40]))
        with pytest.raises(OSError, match="a part of it"):
            spool.write(KEY, batch_of(process, 2))
    spool.write(KEY, batch_of(process, 3))
    spool.close()
    ((_, read),) = Spool(tmp_path, "other+1").read_leftovers()
    assert [batch.number for _, batch in read] == [1, 3]


def test_a_vanishing_spool_file_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        process = f"{this_owner().replace(f':{os.getpid()}:', ':4194303:')}+{name}"
        spool = Spool(tmp_path, process)
        spool.write(KEY, batch_of(process, 1))
        spool.close()
    read = spool_module._read

    def quicker(path: Path) -> list[tuple[NodeKey, Batch]]:
        if "+a" in path.name:
            path.unlink()
        return read(path)

    monkeypatch.setattr(spool_module, "_read", quicker)
    assert [path.name.partition("+")[2] for path, _ in Spool(tmp_path, "other+1").read_leftovers()] == ["b.spool"]


def test_the_spool_is_cleared_only_when_the_store_has_all_of_it(tmp_path: Path) -> None:
    spool = Spool(tmp_path, f"{this_owner()}+mine")
    spool.write(KEY, batch_of("mine", 1))
    before = spool.written
    spool.write(KEY, batch_of("mine", 2))
    spool.clear(before)
    (path,) = tmp_path.glob("*.spool")
    assert len(path.read_bytes().splitlines()) == 2
    spool.clear(spool.written)
    assert path.read_bytes() == b""
    spool.close()
    assert not path.exists()


def test_events_of_every_kind_go_through_the_spool(tmp_path: Path) -> None:
    process = f"{this_owner().replace(str(os.getpid()), '4194303')}+dead"
    spool = Spool(tmp_path, process)
    given = [
        happened(differs()),
        happened(Fault("it broke")),
        Happened(Diverged("p", "f", True, True)),
    ]
    spool.write(KEY, Batch(process, 7, tuple(given)))
    spool.close()
    ((_, ((key, read),)),) = Spool(tmp_path, "other+1").read_leftovers()
    assert (key, read.number, list(read.happened)) == (KEY, 7, given)


# -- what must not stop ---------------------------------------------------------------------------


def test_a_finding_without_description_is_sent_as_a_fault(live: Live, migration: Migration, store: Shaky) -> None:
    described = live._divergence_of

    def deep(report: Disagreement | Fault) -> Happened:
        if isinstance(report, Disagreement):
            raise RecursionError("too deep")
        return described(report)

    live._divergence_of = deep
    live.report(differs())
    migration.tend()
    (found,) = store.divergences(KEY)
    assert Divergence.from_text(found).where == "what was found cannot be described: RecursionError"
    assert live._finding == 0


def test_listeners_get_the_present_state_in_order(live: Live) -> None:
    told: list[Mode] = []
    live.set_killed(True)
    live.listen(lambda local: told.append(local.mode))
    assert told == [Mode.PYTHON_ONLY]
    live.set_killed(False)
    assert told == [Mode.PYTHON_ONLY, Mode.SHADOW_DIRECT]
    live._is_killed = True  # and nobody was told of it: the process is forked
    live.after_fork("another")
    assert told[2:] == [Mode.PYTHON_ONLY]


def test_the_thread_survives_errors(
    live: Live, migration: Migration, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken = threading.Event()

    def breaks() -> None:
        broken.set()
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(migration, "_run_round", breaks)
        assert broken.wait(60)
    agree(live, 1)
    eventually(lambda: not live.has_gathered)
    assert "it is tried again" in caplog.text


def test_without_its_thread_python_runs_alone_until_there_is_one(
    migration: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    compiled, _ = compile_file(Path("nodes/payments/payment_decision_v1.vsp"))
    assert compiled is not None
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        found = migration.node(KEY, compiled, happened)
    assert found.local.mode is Mode.PYTHON_ONLY
    migration.start()
    eventually(is_in(found, Mode.SHADOW_DIRECT))
