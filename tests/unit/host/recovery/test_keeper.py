"""The keeper wakes waiting runs at their time, once, and resumes them on their own definition."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import vesper
from tests.support.waiting import eventually
from tests.unit.host.recovery.sleeping import HOUR_US, PLAIN_ASKER, SLEEPER, Clock, clocked_host
from tests.unit.host.small import host_in, node_from
from vesper.engines.outcome import Returned
from vesper.engines.registry import NAMES
from vesper.host.host import Host
from vesper.host.keeper import Keeper
from vesper.host.recovery.deferred import Deferred
from vesper.host.waiting import RunWaits
from vesper.host.waiting_runs import answer, find_waiting
from vesper.journal.entry import Kind
from vesper.journal.journal import NotTaken, Status
from vesper.observe.metrics import snapshot
from vesper.values.generated.metrics import EXECUTIONS_ERRORS, EXECUTIONS_TOTAL, RECOVERIES

AN_HOUR = {"event_id": "e1", "for": timedelta(hours=1)}


def begin(
    host: Host, folder: Path, engine: str = "python", text: str = SLEEPER, inputs: dict[str, Any] = AN_HOUR
) -> RunWaits:
    with pytest.raises(RunWaits) as waits:
        node_from(text, folder, host, engine)(inputs)
    return waits.value


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return value


@pytest.mark.parametrize("engine", NAMES)
def test_a_sleep_ends_at_its_time_and_not_before(tmp_path: Path, engine: str) -> None:
    clock = Clock()
    with clocked_host(tmp_path, clock) as host:
        waits = begin(host, tmp_path, engine)
        assert (waits.kind, waits.path, host.journal.summary(waits.execution).status) == (
            "sleep",
            "pause",
            Status.WAITING,
        )
        clock.shift_us = HOUR_US - 1_000_000
        assert host.keep() == []
        with pytest.raises(NotTaken):
            host.resume(waits.execution)
        clock.shift_us = HOUR_US
        (ended,) = host.keep()
        assert ended.outcome == Returned({"woken": waits.due})
        assert host.keep() == []
        kinds = [each.entry.kind for each in host.journal.read(waits.execution).entries]
        assert [kinds.count(each) for each in (Kind.INTENT, Kind.RESULT, Kind.HANDOFF, Kind.END)] == [1, 1, 1, 1]


def test_a_clock_that_jumps_neither_loses_nor_repeats_a_wake(tmp_path: Path) -> None:
    clock = Clock()
    with clocked_host(tmp_path, clock) as host:
        waits = begin(host, tmp_path)
        clock.shift_us = -10 * HOUR_US
        assert host.keep() == []
        clock.shift_us = 100 * HOUR_US
        assert [each.execution for each in host.keep()] == [waits.execution]
        clock.shift_us = 0
        assert host.keep() == []


def test_one_of_two_hosts_wakes_a_run(tmp_path: Path) -> None:
    clock = Clock()
    with clocked_host(tmp_path, clock) as first, clocked_host(tmp_path, clock) as second:
        runs = [begin(first, tmp_path).execution for _ in range(8)]
        clock.shift_us = 2 * HOUR_US
        found: list[str] = []
        threads = [
            threading.Thread(target=lambda host=host: found.extend(each.execution for each in host.keep()))
            for host in (first, second)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert sorted(found) == sorted(runs)


def test_the_keeper_of_a_host_works_by_itself(tmp_path: Path) -> None:
    with host_in(tmp_path, {"recovery": {"enabled": True}, "keeper": {"threads": 2}}) as host:
        waits = begin(host, tmp_path, inputs={"event_id": "e1", "for": timedelta(milliseconds=50)})
        eventually(lambda: host.journal.summary(waits.execution).status is Status.ENDED)
        eventually(lambda: host.keeper.state().facts["resumed"] == 1)
        assert host.keeper.state().is_running
    assert not host.keeper.state().is_running
    assert "vesper-keeper" not in [each.name for each in threading.enumerate()]


def test_a_keeper_resumes_at_most_so_many_runs_at_once(tmp_path: Path) -> None:
    clock, most, inside, lock = Clock(), [0], [0], threading.Lock()

    def count_run(_prepared: object, _execution: str) -> None:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        threading.Event().wait(0.01)
        with lock:
            inside[0] -= 1

    with clocked_host(tmp_path, clock, recovery={"enabled": True}, keeper={"threads": 2}) as host:
        host.after_run = count_run
        runs = [begin(host, tmp_path).execution for _ in range(6)]
        clock.shift_us = 2 * HOUR_US
        host.keeper.notice()
        eventually(lambda: all(host.journal.summary(each).status is Status.ENDED for each in runs))
    assert 1 <= most[0] <= 2


def test_a_waiting_run_has_not_failed_and_is_counted_when_it_ends(tmp_path: Path) -> None:
    clock = Clock()

    def counts() -> list[float]:
        samples = [each for each in snapshot() if "sleeper_v1" in each.labels]
        wanted = (EXECUTIONS_TOTAL, EXECUTIONS_ERRORS, RECOVERIES)
        return [sum(_number(each.value) for each in samples if each.metric is metric) for metric in wanted]

    with clocked_host(tmp_path, clock) as host:
        before = counts()
        begin(host, tmp_path)
        assert counts() == before
        clock.shift_us = 2 * HOUR_US
        host.keep()
        assert counts() == [before[0] + 1, *before[1:]]


def test_runs_finish_on_their_definition_when_its_file_is_gone(tmp_path: Path) -> None:
    clock = Clock()
    with clocked_host(tmp_path, clock) as host:
        waits = begin(host, tmp_path)
    (tmp_path / "sleeper_v1.vsp").unlink()
    changed = tmp_path / "changed"
    changed.mkdir()
    with clocked_host(tmp_path, clock) as host:
        text = SLEEPER.replace("success: {woken: pause}", "success: {woken: pause + for}")
        later = begin(host, changed, text=text)
        clock.shift_us = 2 * HOUR_US
        ended = {each.execution: each.outcome for each in host.keep()}
    assert ended[waits.execution] == Returned({"woken": waits.due})
    assert later.due is not None
    assert ended[later.execution] == Returned({"woken": later.due + timedelta(hours=1)})


def test_a_repeat_of_a_waiting_run_waits_as_well(tmp_path: Path) -> None:
    with clocked_host(tmp_path, Clock()) as host, vesper.run_context(key="k1"):
        first = begin(host, tmp_path)
        again = begin(host, tmp_path)
        assert (again.execution, again.due_us, again.kind) == (first.execution, first.due_us, "sleep")


def test_a_coroutine_gets_the_wait_as_well(tmp_path: Path) -> None:
    with clocked_host(tmp_path, Clock()) as host:
        node = node_from(SLEEPER, tmp_path, host)
        with pytest.raises(RunWaits):
            asyncio.run(node.arun(AN_HOUR))
        assert host.lull(5)


def test_a_run_waits_again_after_it_was_woken(tmp_path: Path) -> None:
    with clocked_host(tmp_path, Clock()) as host:
        waits = begin(host, tmp_path, text=PLAIN_ASKER, inputs={"event_id": "e1"})
        answer(host.journal, waits.execution, {"approved": True}, "ann")
        (recovered,) = host.keep()
        assert recovered.is_waiting
        waiting = find_waiting(host.journal, waits.execution)
        assert waiting is not None
        assert (waiting.kind, waiting.name, waiting.match) == ("signal", "payment_settled", "e1")


def test_a_thread_that_cannot_start_leaves_its_run_to_the_next_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    host: Any = SimpleNamespace(config=SimpleNamespace(journal=SimpleNamespace(dsn="sqlite:")))
    keeper = Keeper(host, 1)
    monkeypatch.setattr(threading.Thread, "start", fail)
    with pytest.raises(RuntimeError):
        keeper._begin("run", "work_v1")
    assert keeper.state().facts["under_way"] == 0


def test_the_clock_of_the_store_decides_which_started_runs_are_due() -> None:
    rows = [SimpleNamespace(execution=name, node_id="work_v1", due_us=due_us) for name, due_us in (("a", 5), ("b", 15))]
    journal = SimpleNamespace(unfinished=lambda *_, **__: [], due=lambda *_, **__: rows, now_us=lambda: 10)
    resuming = SimpleNamespace(deferred=Deferred())
    settings = SimpleNamespace(journal=SimpleNamespace(dsn="sqlite:"))
    host: Any = SimpleNamespace(config=settings, journal=journal, _resuming=resuming, now_us=lambda: 0)
    assert Keeper(host, 1)._ready(8) == [("a", "work_v1")]
