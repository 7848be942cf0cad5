"""Handles of runs: started, waited for, signalled and cancelled from any process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import vesper
from tests.support.waiting import eventually
from tests.unit.host.recovery.sleeping import PLAIN_ASKER, SLEEPER
from tests.unit.host.small import host_in, node_from
from vesper.host.host import Host
from vesper.journal.journal import UnknownExecution

SHORT = {"event_id": "e1", "for": timedelta(milliseconds=1)}


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with host_in(tmp_path, {}) as found:
        yield found


def test_a_started_run_is_performed_without_its_caller(tmp_path: Path) -> None:
    with host_in(tmp_path, {"recovery": {"enabled": True}}) as host:
        handle = node_from(SLEEPER, tmp_path, host).start_run(SHORT)
        eventually(lambda: handle.status() == "ended")
        outcome = handle.wait()
        assert outcome.unwrap()["woken"] is not None
        assert outcome.trace_id == handle.execution


def test_without_a_keeper_the_waiting_thread_does_its_work(tmp_path: Path, host: Host) -> None:
    handle = node_from(SLEEPER, tmp_path, host).start_run(SHORT)
    assert handle.status() == "queued"
    assert handle.wait(10).unwrap().keys() == {"woken"}


def test_a_key_begins_one_run(tmp_path: Path, host: Host) -> None:
    node = node_from(SLEEPER, tmp_path, host)
    first = node.start_run(SHORT, key="k")
    assert node.start_run(SHORT, key="k").execution == first.execution
    with pytest.raises(vesper.KeyReused):
        node.start_run({**SHORT, "event_id": "e2"}, key="k")


def test_inputs_that_do_not_fit_begin_no_run(tmp_path: Path, host: Host) -> None:
    node = node_from(SLEEPER, tmp_path, host)
    for given in ({"event_id": 1, "for": timedelta(1)}, "[]"):
        with pytest.raises(vesper.BadInput):
            node.start_run(given)
    assert host.journal.find() == []


def test_a_wait_for_a_run_has_an_end(tmp_path: Path, host: Host) -> None:
    handle = node_from(PLAIN_ASKER, tmp_path, host).start_run({"event_id": "e1"})
    with pytest.raises(vesper.RunNotEnded, match="waits at `approval` for an answer"):
        handle.wait(0.05)
    with pytest.raises(TimeoutError):
        asyncio.run(handle.wait_async(0.01))


def test_a_handle_answers_signals_and_cancels(tmp_path: Path, host: Host) -> None:
    node = node_from(PLAIN_ASKER, tmp_path, host)
    handle = node.start_run({"event_id": "e1"})
    with pytest.raises(vesper.RunNotEnded):
        handle.wait(0)
    with vesper.run_context(actor="ann"):
        handle.answer({"approved": True})
    host.keep()
    assert node.signal(handle.execution[:20], "payment_settled", {"reference": "r", "amount": 1}).woken
    assert asyncio.run(handle.wait_async(10)).unwrap() == {"answer": "r"}
    other = node.start_run({"event_id": "e2"})
    assert other.cancel("not wanted") == "ended"
    assert other.wait(1).error is not None


def test_a_signal_by_match_and_a_handle_by_prefix(tmp_path: Path, host: Host) -> None:
    sent = vesper.signal("payment_settled", {"reference": "r"}, match="nobody", host=host)
    assert sent.is_kept
    with pytest.raises(UnknownExecution):
        vesper.run_handle("01", host=host)
