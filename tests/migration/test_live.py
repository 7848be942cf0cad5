"""What one process knows of a node, and what it tells the store: batches, the spool, trust that is taken away at once,
a store that goes away and comes back, forks."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import pytest

from tests.migration.memory_store import MemoryStore
from tests.support.waiting import eventually
from vesper.compiler import compile_file
from vesper.engines.outcome import Returned
from vesper.host.migrating import MigrationSettings, NodeMigration
from vesper.journal.owner import this_owner
from vesper.migration import ledger
from vesper.migration.divergence import Divergence, fingerprint_of
from vesper.migration.live import Live
from vesper.migration.modes import Mode
from vesper.migration.paths import PathNote
from vesper.migration.process import Migration
from vesper.migration.reports import Agreement, Difference, Disagreement, Fault, Lost
from vesper.migration.routes import happened_of
from vesper.migration.spool import Spool
from vesper.migration.state import Diverged, Kill, Settings, State
from vesper.migration.store import WHOLE, Batch, Happened, NodeKey, StoreAway, Transaction
from vesper.migration.transcript import Transcript

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


def state_of(store: MemoryStore) -> State:
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


def test_what_was_not_compared_is_no_agreement(live: Live, migration: Migration, store: Shaky) -> None:
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


def test_a_divergence_beside_agreements_is_not_taken_for_one_that_was_sent_before(
    live: Live, migration: Migration, store: Shaky
) -> None:
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
def test_what_latches_stops_the_direct_engine_here_at_once(
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


def test_a_batch_of_which_nobody_knows_whether_it_came_through_counts_once(
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


def test_a_switch_for_all_nodes(live: Live, migration: Migration, store: Shaky) -> None:
    ledger.kill_all(store, "ann", "an incident", 1)
    eventually(is_in(live, Mode.PYTHON_ONLY))
    assert WHOLE in store.versions()
    ledger.resume_all(store, "ann", "it is over", 2)
    eventually(is_in(live, Mode.SHADOW_DIRECT))
    assert state_of(store).mode is Mode.SHADOW_DIRECT  # nothing of the node was changed


def test_what_another_process_decides_is_seen(live: Live, migration: Migration, store: Shaky) -> None:
    ledger.tell(store, KEY, Kill("ann", "an incident"), Settings(), 1)
    eventually(is_in(live, Mode.PYTHON_ONLY))


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


# -- the spool ------------------------------------------------------------------------------------


def batch_of(process: str, number: int) -> Batch:
    return Batch(process, number, (happened(differs()),), paths={MAIN.name: MAIN.to_text()})


def test_what_a_killed_process_had_spooled_is_told_once(migration: Migration, store: Shaky, tmp_path: Path) -> None:
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


def test_a_spool_that_was_cut_off_or_damaged_gives_what_is_whole(
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
    assert "line 3 cannot be read" in caplog.text


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
    ((_, ((key, read),)),) = Spool(tmp_path, "other+1").left_by_others()
    assert (key, read.number, list(read.happened)) == (KEY, 7, given)
