"""Ctrl-C at any moment, and forks during closing: no lock stays held, and no evidence is lost."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path

import pytest

from tests.support.striking import SOON, is_free, strikes, within
from tests.support.waiting import eventually
from tests.unit.journal.helpers import in_child
from tests.unit.migration.router.test_background_checks import SWITCH, made
from tests.unit.migration.router.test_node_state import KEY, differs, happened
from tests.unit.migration.support.memory_store import MemoryStore
from tests.unit.migration.support.routed import compiled, payment, routes_in, state_of
from vesper.config.migration import MigrationSettings
from vesper.migration.compare.paths import PathNote
from vesper.migration.compare.reports import Agreement, Fault, Lost, Report
from vesper.migration.control.modes import Mode
from vesper.migration.router import node_state as live_module
from vesper.migration.router.background_checks import BackgroundChecks
from vesper.migration.router.node_state import Live
from vesper.migration.router.store_sync import Migration
from vesper.migration.shadow.admission import Admission
from vesper.migration.shadow.shadow_queue import Followers, Following
from vesper.migration.stores import ledger
from vesper.migration.stores.store import Batch, NodeKey
from vesper.migration.workers.helper import Helper, Known, _Task

NOTE = PathNote(b"\x01" * 8, (), "returned")


def nothing() -> Report | None:
    return None


def a_live(spooled: list[Batch] | None = None) -> Live:
    def spool(_: NodeKey, batch: Batch, __: bool) -> None:
        if spooled is not None:
            spooled.append(batch)

    return Live(KEY, compiled(), "p", Mode.DIRECT_ONLY, spool, lambda: None, happened)


# -- Ctrl-C ----------------------------------------------------------------------------------------


def test_ctrl_c_in_put_leaves_a_working_shadow_queue() -> None:
    followers = [Followers(Admission(1.0, 1_000_000))]
    following = Following(nothing, lambda _: None, 1)
    for moment in strikes(lambda: followers[-1].put(following)):
        assert is_free(followers[-1]._lock), moment
        reports: list[Report] = []
        followers[-1].put(Following(lambda: Lost("it was followed"), reports.append, 1))
        assert followers[-1].drain(SOON), moment
        assert reports == [Lost("it was followed")], moment
        followers[-1].close(SOON)
        followers.append(Followers(Admission(1.0, 1_000_000)))


class Idle(Helper):
    """A helper whose tasks complete at once, without a child."""

    def _run_task(self, task: _Task) -> Report | None:
        return None


def test_ctrl_c_in_a_helper_call_leaves_a_working_helper() -> None:
    helpers, known = [Idle()], Known("a", b"")
    for moment in strikes(lambda: helpers[-1]._admit(_Task(known, b"?", Future()))):
        assert is_free(helpers[-1]._lock), moment
        answer = helpers[-1]._admit(_Task(known, b"?", Future()))
        assert answer is not None
        assert answer.result(SOON) is None
        helpers[-1].close()
        helpers.append(Idle())


def test_ctrl_c_in_wake_leaves_a_wakeable_thread(tmp_path: Path) -> None:
    migration = Migration(MigrationSettings("", refresh=600.0), tmp_path, MemoryStore())
    for _ in strikes(migration._wake):
        within(migration._wake)
    migration.close()


# -- callers do not wait ----------------------------------------------------------------------------


def test_no_caller_waits_while_a_flood_is_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    live, united = a_live(), live_module._merge_batches
    for _ in range(3):
        live.report(differs())

    def looks(batches: list[Batch]) -> list[Batch]:
        within(lambda: live.report(Agreement(NOTE, 1, 10, 5)))
        within(lambda: live.report(differs()))
        assert live.has_unsent, "it is not in the store yet"
        return united(batches)

    monkeypatch.setattr(live_module, "_merge_batches", looks)
    (first,) = live.due(is_all=False)
    assert first.number == 3
    live.remove_sent(first)
    monkeypatch.undo()
    numbers = [each.number for each in live.due(is_all=True)]
    assert numbers == [4, 5], "what came meanwhile comes after it"


# -- the end ----------------------------------------------------------------------------------------


def test_findings_set_aside_in_the_last_round_are_compared(tmp_path: Path) -> None:
    store = MemoryStore()
    migration = Migration(MigrationSettings("", refresh=600.0), tmp_path, store)
    live = migration.node(KEY, compiled(), happened)
    aside: list[Fault] = []
    stopped: list[int] = []

    def gather() -> None:
        if not stopped and threading.current_thread() is not migration._thread:
            stopped.append(1)
            ledger.kill_all(store, "ann", "an incident", 1)
        while aside:
            live.report(aside.pop())

    migration.gatherers.append(gather)
    live.listen(lambda local: aside.append(Fault("it broke")) if local.mode is Mode.PYTHON_ONLY else None)
    migration.close()
    assert len(store.divergences(KEY)) == 1


def test_findings_set_aside_on_closing_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BackgroundChecks, "begin", lambda _: None)
    routes = routes_in(tmp_path)
    program = routes.program(compiled())
    assert program.fast_entry(lambda outcome, _: dict(outcome.value), takes_now=False) is not None  # type: ignore[union-attr]
    way_in = program._way_in
    assert way_in is not None
    lost: list[int] = []
    monkeypatch.setattr(program.live, "count_lost", lost.append)
    take = way_in._take

    def puts_aside(is_counted: bool) -> None:
        if routes.followers.is_closed and not lost:
            lost.append(0)
            outputs = program._python.call(payment()).value  # type: ignore[union-attr]
            way_in._aside.append((payment(), outputs, 10_000_000_000, False, None))
        take(is_counted)

    monkeypatch.setattr(way_in, "_take", puts_aside)
    routes.close()
    assert lost == [0]
    assert state_of(routes, program).clean == 1


def test_a_given_up_helper_is_not_polled_for_ever(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    routes = routes_in(tmp_path)
    routes.helper._restarts.is_given_up = True
    routes.program(made(SWITCH))
    (tending,) = routes._tended
    try:
        eventually(lambda: not any(each.is_alive() for each in tending._threads), within=SOON)
        assert tending._is_ending()
        assert caplog.text.count("switch_v1: no more is run again beside its traffic") == 1
    finally:
        routes.close()


# -- forks ------------------------------------------------------------------------------------------


def test_closed_parts_stay_closed_after_a_fork(tmp_path: Path) -> None:
    routes = routes_in(tmp_path)
    routes.program(compiled())
    routes.close()

    def child() -> None:
        assert routes.is_closed
        assert routes.migration._thread is None
        routes.migration.start()
        assert routes.migration._thread is None
        lost: list[Report] = []
        routes.followers.put(Following(nothing, lost.append, 1))
        assert isinstance(lost[0], Lost)
        assert threading.active_count() == 1

    assert in_child(child) == 0


def test_a_child_forked_during_closing_works(tmp_path: Path) -> None:
    routes = routes_in(tmp_path)
    routes.program(compiled())
    (tending,) = routes._tended
    routes.is_closed = True
    routes.helper.close()
    tending.close()

    def child() -> None:
        assert not routes.is_closed
        assert not tending._is_ending()
        assert routes.migration._thread is not None
        routes.close()

    assert in_child(child) == 0
    routes.close()
