"""Findings that neither the spool nor the store can take: Python runs alone, and the log says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.migration.router.test_node_state import KEY, MAIN, OTHER, Shaky, agree, differs, happened, state_of
from tests.unit.migration.support.routed import compiled
from vesper.config.migration import MigrationSettings
from vesper.migration.compare.reports import Fault
from vesper.migration.control.modes import Mode
from vesper.migration.control.state import Enumerated
from vesper.migration.router.node_state import Live
from vesper.migration.router.store_sync import Migration
from vesper.migration.stores.store import StoreError


class ReadOnly(Shaky):
    """A store that can be switched to read-only."""

    is_read_only = False

    def transact(self, key, work):  # type: ignore[no-untyped-def]
        if self.is_read_only:
            raise StoreError("read-only for this user")
        return super().transact(key, work)


@pytest.fixture
def store() -> ReadOnly:
    return ReadOnly()


@pytest.fixture
def migration(store: ReadOnly, tmp_path: Path) -> Iterator[Migration]:
    (tmp_path / "file").touch()  # no folder can be made in it, whoever tries
    made = Migration(MigrationSettings("", refresh=600.0, hold=600.0), tmp_path / "file" / "spool", store)
    yield made
    made.close()


@pytest.fixture
def live(migration: Migration) -> Live:
    found = migration.node(KEY, compiled(), happened)
    agree(found, 300)
    migration.tend(is_all=True)
    assert found.local.mode is Mode.CANARY_DIRECT
    return found


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each for each in caplog.messages if "cannot be spooled" in each]


def test_python_runs_alone_at_once_and_until_the_store_has_it(
    live: Live, migration: Migration, store: ReadOnly, caplog: pytest.LogCaptureFixture
) -> None:
    store.is_read_only = True
    live.report(differs(OTHER))
    assert live.local.mode is Mode.PYTHON_ONLY
    migration.tend()
    assert live.local.mode is Mode.PYTHON_ONLY
    store.is_read_only = False
    migration.tend()
    assert state_of(store).divergences == 1
    assert live.local.mode is state_of(store).mode is not Mode.PYTHON_ONLY
    assert not live.trusts(OTHER.name)
    migration.close()
    assert "lost" not in "".join(each for each in caplog.messages if "cannot be spooled" not in each)


def test_a_flood_is_logged_in_a_few_lines(live: Live, store: ReadOnly, caplog: pytest.LogCaptureFixture) -> None:
    store.is_read_only = True
    for number in range(150):
        live.report(differs(MAIN if number % 2 else OTHER, fingerprint=number))
    live.report(Fault("it panicked"))
    lines = said(caplog)
    assert [each.rpartition(": ")[2] for each in lines] == ["1", "10", "100", "151"]
    assert all("Until the store has it Python runs alone in this process" in each for each in lines)
    assert f"divergence {happened(differs()).divergence.fingerprint} (outcome at outputs.fee)" in lines[0]  # type: ignore[union-attr]
    assert "(fault at " in lines[-1]
    assert "it is told to the store" not in caplog.text


@pytest.mark.parametrize("count, words", [(1, "1 divergence of {} was"), (1200, "1,200 divergences of {} were")])
def test_lost_findings_are_logged_at_the_end(
    live: Live, migration: Migration, store: ReadOnly, caplog: pytest.LogCaptureFixture, count: int, words: str
) -> None:
    store.is_read_only = True
    for number in range(count):
        live.report(differs(fingerprint=number))
    migration.close()
    assert f"{words.format(KEY.node)} lost: neither store nor spool could be written" in caplog.messages


def test_an_unsaved_enumeration_stops_nothing(live: Live, store: ReadOnly, caplog: pytest.LogCaptureFixture) -> None:
    store.is_read_only = True
    live.report_enumeration(Enumerated(12))
    assert live.local.mode is Mode.CANARY_DIRECT
    assert said(caplog) == []


def test_a_child_loses_nothing_of_its_parents(live: Live, store: ReadOnly) -> None:
    store.is_read_only = True
    live.report(differs())
    live.after_fork("child")
    assert not live._unsaved
    assert not live.trusts(MAIN.name)
