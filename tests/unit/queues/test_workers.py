"""Workers: claims, limits, attempts, dead letters."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.proofs.queues.queued_node import host_in, load
from vesper.effects.performer import EffectFailed
from vesper.effects.settings import ConfigError
from vesper.engines.outcome import EngineFault
from vesper.host.host import Host
from vesper.host.outcomes import recorded_outcome
from vesper.queues import workers as workers_module
from vesper.queues.overview import dead_letters, drop, pause, queue_lines, queued_runs, requeue, resume
from vesper.queues.workers import QueueWorkers

_YEAR_US = 31_536_000_000_000
FAST = "attempts: 3, backoff: {base: 1ms, factor: 1, max: 1ms}"


@contextmanager
def working(host: Host, *nodes: vesper.Node) -> Iterator[QueueWorkers]:
    workers = QueueWorkers(host, nodes)
    workers.start()
    try:
        yield workers
    finally:
        assert workers.stop(30)


def noting(seen: list[str]) -> Callable[[str, str], str]:
    def act(event: str, _: str) -> str:
        seen.append(event)
        return event

    return act


def wait_for(is_true: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not is_true():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_a_queued_run_is_run_once_and_leaves_its_queue(tmp_path: Path) -> None:
    seen: list[str] = []
    with host_in(tmp_path, noting(seen)) as host:
        node = load(tmp_path, host)
        handles = [node.enqueue({"event_id": str(number), "merchant": "m"}) for number in range(8)]
        assert {each.status() for each in handles} == {"queued"}
        assert seen == []
        with working(host, node) as workers:
            assert [each.wait(30).unwrap()["text"] for each in handles] == list(map(str, range(8)))
            assert workers.state().problem is None
        assert sorted(seen, key=int) == list(map(str, range(8)))
        assert queue_lines(host.journal) == []
        assert all(host.journal.verify(each.execution) == [] for each in handles)


def test_lanes_take_turns_and_keep_their_order(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    def act(event: str, merchant: str) -> str:
        seen.append((merchant, event))
        return event

    with host_in(tmp_path, act, queues={"lanes": {"threads": 2, "poll": "10ms"}}) as host:
        node = load(tmp_path, host, "{name: lanes, by: merchant, concurrency: 1}")
        for number in range(16):
            node.enqueue({"event_id": f"{number:02}", "merchant": "long"})
        last = [node.enqueue({"event_id": f"{number:02}", "merchant": "short"}) for number in range(3)]
        with working(host, node):
            for each in last:
                each.wait(30)
            is_fair = len(seen) < 15
            wait_for(lambda: len(seen) == 19)
        assert is_fair, "the short lane did not wait for the long one"
        for merchant in ("long", "short"):
            events = [event for lane, event in seen if lane == merchant]
            assert events == sorted(events)


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_concurrency_of_a_key_and_of_a_queue_are_kept_by_several_workers(
    tmp_path: Path, store: str, request: pytest.FixtureRequest
) -> None:
    lock, inside, most, total = threading.Lock(), Counter[str](), Counter[str](), [0]

    def act(event: str, merchant: str) -> str:
        with lock:
            inside[merchant] += 1
            most[merchant] = max(most[merchant], inside[merchant])
            total[0] = max(total[0], sum(inside.values()))
        time.sleep(0.004)
        with lock:
            inside[merchant] -= 1
        return event

    queues = {"limited": {"concurrency": 5, "threads": 8, "poll": "10ms"}}
    dsn = request.getfixturevalue("postgres").new_database() if store == "postgres" else None
    with host_in(tmp_path, act, dsn, queues=queues) as host:
        node = load(tmp_path, host, "{name: limited, by: merchant, concurrency: 2}")
        handles = [node.enqueue({"event_id": str(number), "merchant": f"m{number % 4}"}) for number in range(12)]
        with working(host, node), working(host, node):
            for each in handles:
                each.wait(30)
        assert max(most.values()) <= 2
        assert total[0] <= 5
        for number in range(4):
            node.enqueue({"event_id": str(number), "merchant": f"m{number % 2}"})
            node.enqueue({"event_id": str(number), "merchant": "m2"})
        claimed = host.journal.claim_queued("limited", 8, 60_000_000, queue_limit=5, lane_limit=2)
        assert sorted(Counter(due.lane for due, _ in claimed).values()) == [1, 2, 2]
        assert host.journal.claim_queued("limited", 8, 60_000_000, queue_limit=5, lane_limit=2) == []


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_rates_give_each_run_its_start(tmp_path: Path, store: str, request: pytest.FixtureRequest) -> None:
    dsn = request.getfixturevalue("postgres").new_database() if store == "postgres" else None
    with host_in(tmp_path, lambda event, _: event, dsn) as host:
        node = load(tmp_path, host, "{by: merchant, rate: {limit: 50, per: 1s}}")
        for number in range(20):
            node.enqueue({"event_id": str(number), "merchant": "ab"[number % 2]})

        def claim(ahead_us: int, queue_rate: tuple[int, int] | None = None) -> dict[str, list[int]]:
            starts: dict[str, list[int]] = {"a": [], "b": []}
            for due, run in host.journal.claim_queued(
                "default", 8, 60_000_000, lane_rate=(6, 3_600_000_000), ahead_us=ahead_us, queue_rate=queue_rate
            ):
                assert run is not None
                assert due.due_us is not None
                starts[due.lane].append(due.due_us)
            return starts

        first, second = claim(_YEAR_US), claim(_YEAR_US)
        for lane in ("a", "b"):
            starts = [*first[lane], *second[lane]]
            assert {later - earlier for earlier, later in pairwise(starts)} == {600_000_000}, "in the second claim too"
        assert claim(0) == {"a": [], "b": []}
        together = sorted(start for starts in claim(_YEAR_US, (1, 3_600_000_000)).values() for start in starts)
        assert {later - earlier for earlier, later in pairwise(together)} == {3_600_000_000}, (
            "the queue has one as well"
        )


def test_a_rate_runs_all_whatever_the_clock_of_the_process_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with host_in(tmp_path, lambda event, _: event) as host:
        monkeypatch.setattr(host, "now_us", lambda: 0)  # years behind that of the store
        node = load(tmp_path, host, "{by: merchant, rate: {limit: 50, per: 1s}}")
        handles = [node.enqueue({"event_id": str(number), "merchant": "a"}) for number in range(6)]
        with working(host, node):
            assert all(each.wait(30).ok for each in handles)


def test_priority_goes_first_and_a_delay_later(tmp_path: Path) -> None:
    seen: list[str] = []
    queues = {"default": {"threads": 1, "poll": "10ms"}}
    with host_in(tmp_path, noting(seen), queues=queues) as host:
        node = load(tmp_path, host, "{concurrency: 1}")
        for name, priority, delay in (("late", 9, 0.2), ("low", 0, None), ("high", 5, None)):
            node.enqueue({"event_id": name, "merchant": "m"}, priority=priority, delay=delay)
        with working(host, node):
            wait_for(lambda: len(seen) == 3)
    assert seen == ["high", "low", "late"]


def test_attempts_are_new_runs_and_the_handle_follows_them(tmp_path: Path) -> None:
    tries: list[str] = []

    def act(event: str, _: str) -> str:
        tries.append(event)
        if len(tries) < 3:
            raise EffectFailed("unavailable", "not yet", may_have_happened=False)
        return event

    with host_in(tmp_path, act) as host:
        node = load(tmp_path, host, f"{{{FAST}}}")
        handle = node.enqueue({"event_id": "e", "merchant": "m"}, key="order-1")
        first = handle.execution
        with working(host, node):
            assert handle.wait(30).unwrap() == {"text": "e"}
        assert handle.execution != first
        assert vesper.run_handle(first, host=host).wait(0).unwrap() == {"text": "e"}
        assert len(host.journal.find(limit=10)) == 3
        assert node.enqueue({"event_id": "e", "merchant": "m"}, key="order-1").execution == first, "one run for a key"
        with pytest.raises(vesper.KeyReused):
            node.enqueue({"event_id": "other", "merchant": "m"}, key="order-1")


def test_a_dead_letter_is_kept_requeued_and_dropped(tmp_path: Path) -> None:
    is_up: list[bool] = []

    def act(event: str, _: str) -> str:
        if not is_up:
            raise EffectFailed("unavailable", "down", may_have_happened=False)
        return event

    with host_in(tmp_path, act) as host:
        node = load(tmp_path, host, f"{{name: letters, {FAST}}}")
        handles = [node.enqueue({"event_id": str(number), "merchant": "m"}) for number in range(2)]
        with working(host, node):
            assert not any(each.wait(30).ok for each in handles)
            (line,) = queue_lines(host.journal)
            assert (line.queue, line.dead, line.waiting, line.running) == ("letters", 2, 0, 0)
            shown = queued_runs(host.journal, "letters", host.now_us(), dead=True)
            assert [(each.state, each.attempt, each.code) for each in shown] == [("dead", 3, "unavailable")] * 2
            first, second = dead_letters(host.journal, "letters")
            is_up.append(True)
            again = requeue(host, first, "anna")
            assert again is not None
            assert requeue(host, first, "anna") is None, "once"
            assert vesper.run_handle(again, host=host).wait(30).ok
            assert drop(host.journal, second, "anna")
        assert queue_lines(host.journal) == []


def test_a_failure_that_another_attempt_would_not_change_is_dead_at_once(tmp_path: Path) -> None:
    def act(_: str, __: str) -> str:
        raise EffectFailed("effect_failed", "no such merchant", may_have_happened=False)

    with host_in(tmp_path, act) as host:
        node = load(tmp_path, host, f"{{{FAST}}}")
        with working(host, node):
            assert not node.enqueue({"event_id": "e", "merchant": "m"}).wait(30).ok
        assert len(host.journal.find(limit=10)) == 1
        assert len(list(dead_letters(host.journal, "default"))) == 1


def test_a_row_of_an_ended_run_is_settled_by_the_next_claim(tmp_path: Path) -> None:
    """As after a kill between the end of a run and the queueing of its next attempt."""

    def act(_: str, __: str) -> str:
        raise EffectFailed("unavailable", "down", may_have_happened=False)

    with host_in(tmp_path, act) as host:
        node = load(tmp_path, host, "{attempts: 1}")
        execution = node.enqueue({"event_id": "e", "merchant": "m"}).execution
        ((due, run),) = host.journal.claim_queued("default", 1, 60_000_000)
        assert run is not None
        summary = host.journal.summary(execution)
        assert host.finish(run, host.prepared_of(summary, {})).outcome is not None
        assert host.journal.release(due, due.due_us, due.attempts)
        with working(host, node):
            wait_for(lambda: len(list(dead_letters(host.journal, "default"))) == 1)


def test_a_worker_survives_a_claim_that_it_cannot_submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    submit, failures = ThreadPoolExecutor.submit, ["can't start new thread"]

    def fail_once(pool: ThreadPoolExecutor, *arguments: Any) -> Any:
        if failures:
            raise RuntimeError(failures.pop())
        return submit(pool, *arguments)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", fail_once)
    monkeypatch.setattr(workers_module, "_PROBLEM_SECONDS", 0.01)
    with host_in(tmp_path, lambda event, _: event) as host:
        node = load(tmp_path, host)
        node.enqueue({"event_id": "lost", "merchant": "m"})
        with working(host, node) as workers:
            wait_for(lambda: not failures and workers.state().facts == {"running": {"default": 0}})
            assert node.enqueue({"event_id": "e", "merchant": "m"}).wait(30).ok


def test_a_run_that_workers_lose_again_and_again_is_a_dead_letter(tmp_path: Path) -> None:
    with host_in(tmp_path, lambda event, _: event) as host:
        node = load(tmp_path, host)
        handle, beside = (node.enqueue({"event_id": event, "merchant": "m"}) for event in ("killer", "beside"))
        for _ in range(workers_module.MAX_LOSSES):  # each worker dies
            (_, run), _ = host.journal.claim_queued("default", 2, 0)
            assert run is not None
            run.commit()
        with working(host, node):
            assert not handle.wait(30).ok
            assert beside.wait(30).ok, "claimed with it each time, and never begun"
        assert [each.execution for each in dead_letters(host.journal, "default")] == [handle.execution]
        outcome = recorded_outcome(host.journal.read(handle.execution).entries[-1].entry.body)
        assert isinstance(outcome, EngineFault)
        assert "10 workers" in outcome.message


def test_a_worker_without_what_a_run_needs_leaves_it_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ConfigError("secret", "it is missing here")

    with host_in(tmp_path, lambda event, _: event) as host:
        node = load(tmp_path, host)
        handle = node.enqueue({"event_id": "e", "merchant": "m"})
        monkeypatch.setattr(host, "check_equipped", refuse)
        with working(host, node):
            wait_for(lambda: host.journal.due("queued")[0].attempts == 1)
        (due,) = host.journal.due("queued")
        assert (due.owner, due.queue, handle.status()) == ("", "default", "running")
        assert due.due_us is not None
        assert due.due_us > host.now_us(), "not before the lease of the run is over"
        assert workers_module._losses(replace(due, fence=due.fence + 1)) == 0, "no loss: another process may have it"


def test_a_paused_queue_starts_nothing(tmp_path: Path) -> None:
    with host_in(tmp_path, lambda event, _: event) as host:
        node = load(tmp_path, host)
        assert pause(host.journal, "default", "anna", "the provider is down")
        assert not pause(host.journal, "default", "anna", "again")
        handle = node.enqueue({"event_id": "e", "merchant": "m"})
        (line,) = queue_lines(host.journal)
        assert (line.waiting, line.paused_by, line.paused_why) == (1, "anna", "the provider is down")
        assert host.journal.claim_queued("default", 8, 1_000_000) == []
        assert resume(host.journal, "default", "anna")
        with working(host, node):
            assert handle.wait(30).ok


def test_nodes_of_one_queue_agree_on_its_limits(tmp_path: Path) -> None:
    with host_in(tmp_path, lambda event, _: event) as host:
        nodes = [load(tmp_path, host, f"{{concurrency: {limit}}}", f"work{limit}") for limit in (1, 2)]
        with pytest.raises(ConfigError, match="different limits"):
            QueueWorkers(host, nodes)
