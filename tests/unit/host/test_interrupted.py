"""Ctrl-C while a Host runs something, or a connection is taken."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.striking import SOON, is_free, strikes, within
from vesper.config.settings import config_from
from vesper.effects.database.pool import Deadline, Pool
from vesper.host.host import Host, Ran

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Quick(Host):
    """One whose runs are nothing but a beginning and an end."""

    def _run(self, *_: Any) -> Any:
        return None


def test_a_run_that_is_struck_does_not_count_for_ever(tmp_path: Path) -> None:
    host = Quick(config_from({}, tmp_path))
    nobody: Any = None

    def run() -> Ran:
        return host.run(nobody, {}, NOW)

    for moment in strikes(run):
        assert not host._active, moment
        assert is_free(host._lock), moment
        assert host.lull(0.0), moment
    host.close()


def test_who_waits_for_runs_hears_of_the_last_one_also_where_it_was_struck_before_it_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vesper.host.host._LOOK", 0.01)
    host = Quick(config_from({}, tmp_path))
    entry = object()
    host._enter(entry)
    closing = threading.Thread(target=host.close, daemon=True)
    closing.start()
    host._active.pop(entry)
    closing.join(SOON)
    assert not closing.is_alive()


def test_nobody_closes_a_host_from_within_one_of_its_runs(tmp_path: Path) -> None:
    class Closes(Host):
        def _run(self, *_: Any) -> Any:
            self.close()

    host = Closes(config_from({}, tmp_path))
    nobody: Any = None
    with pytest.raises(RuntimeError, match="a run cannot close its Host"):
        within(lambda: host.run(nobody, {}, NOW))
    host.close()


def test_a_connection_that_somebody_is_struck_on_is_nobodys() -> None:
    pool = Pool("`main`", 2, lambda _: object(), lambda _: None)
    taken: list[object] = []

    def take() -> None:
        connection, _ = pool.take(Deadline(SOON))
        taken.append(connection)

    for is_idle in (False, True):
        for moment in strikes(take):
            assert is_free(pool._lock), moment
            assert pool._taken == len(taken), (moment, is_idle)
            while taken:
                pool.drop(taken.pop())
            if is_idle:
                connection, _ = pool.take(Deadline(SOON))
                pool.give_back(connection, pool.generation)
        while taken:
            pool.give_back(taken.pop(), pool.generation)


def test_of_two_threads_that_fork_the_first_to_be_done_lets_nobody_at_the_file() -> None:
    pool = Pool("`main`", 2, lambda _: object(), lambda _: None, closes_before_fork=True)

    def forks() -> None:
        pool.before_fork()
        pool.after_fork_in_parent()

    pool.before_fork()
    within(forks)
    assert not pool._has_room()
    pool.after_fork_in_parent()
    assert pool._has_room()
