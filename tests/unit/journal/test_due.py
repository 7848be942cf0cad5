"""Due work of a journal, on both stores: queued runs, waits, signals, schedules."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.unit.journal.helpers import DEFINITION, INPUTS, NOW, Raw, end
from vesper.compiler import compile_source
from vesper.config.settings import config_from
from vesper.engines.engine import Program
from vesper.engines.outcome import Returned
from vesper.engines.registry import ENGINES
from vesper.host.host import Host
from vesper.host.prepared import Prepared
from vesper.host.waiting import RunWaits
from vesper.journal.entry import Kind
from vesper.journal.journal import Beginning, Journal, JournalError, KeyTaken, NotTaken, Status
from vesper.journal.typed_json import encode
from vesper.language.diagnostics.source import SourceFile

LEASE_US = 30_000_000
PAST = datetime(2020, 1, 1, tzinfo=UTC)
_SLEEPER = """\
node_id: sleeps_v1
type: event_handler
intent: Sleep, then report the time that was waited for
inputs: {event_id: string, due: timestamp}
outputs: {success: {woken: timestamp}}
flow:
  - step: pause
    operation: sleep
    until: due
  - operation: return
    success: {woken: pause}
security: {capabilities_required: [clock.sleep.system]}
"""
_RECEIVER = """\
node_id: receives_v1
type: event_handler
intent: Wait for the settlement of an order
inputs: {event_id: string}
outputs: {success: {amount: integer}}
flow:
  - step: settled
    operation: wait_for
    signal: settled
    match: event_id
    returns: integer
  - operation: return
    success: {amount: settled}
security: {capabilities_required: [signals.receive.settled]%s}
"""


def beginning(execution: str, *, key: str | None = None, is_sensitive: bool = False) -> Beginning:
    context = None if key is None else {"key": key, "via": "test"}
    return Beginning(
        execution, DEFINITION, INPUTS, NOW, "interp", is_sensitive=is_sensitive, writes=False, context=context
    )


def put(journal: Journal, execution: str, queue: str = "mail", **more: object) -> str:
    place = {"lane": "", "priority": 0, "due_us": None, "body": "{}", **more}
    return journal.begin_queued(beginning(execution), queue, **place)  # type: ignore[arg-type]  # of a dict


@contextmanager
def prepared_on(journal: Journal, folder: Path, text: str) -> Iterator[tuple[Host, Prepared]]:
    compiled, bag = compile_source(SourceFile("node.vsp", text))
    assert compiled is not None, bag.sorted()
    values = {"grants": [{"nodes": ["*"], "allow": ["*"]}], "recovery": {"enabled": False}}
    program: Program = ENGINES["interp"].load(compiled)
    with Host(config_from(values, folder), journal=journal) as host:
        yield host, host.prepare(compiled, program, "interp")


def start(host: Host, prepared: Prepared, **inputs: object) -> RunWaits:
    with pytest.raises(RunWaits) as waits:
        host.run(prepared, inputs, NOW)
    return waits.value


def test_a_queued_run_is_in_the_journal_with_its_row(journal: Journal) -> None:
    put(journal, "run-a", lane="ada", priority=3, body='{"by": "ada"}')
    assert journal.summary("run-a").status is Status.QUEUED
    assert journal.unfinished() == []
    (row,) = journal.due(queue="mail", lane="ada")
    assert (row.execution, row.node_id, row.kind, row.priority) == ("run-a", "pay", "queued", 3)
    assert (json.loads(row.body), row.status, row.owner) == ({"by": "ada"}, Status.QUEUED, "")
    assert journal.verify("run-a") == []


def test_a_key_has_one_queued_run(journal: Journal) -> None:
    journal.begin_queued(beginning("run-a", key="k"), "mail", "", 0, None, "{}")
    with pytest.raises(KeyTaken, match="run-a"):
        journal.begin_queued(beginning("run-b", key="k"), "mail", "", 0, None, "{}")
    assert len(journal.due()) == 1


def test_claims_come_by_priority_and_time_and_each_row_has_one_owner(journal: Journal) -> None:
    for name, priority, due_us in [("run-a", 0, 20), ("run-b", 0, 10), ("run-c", 9, 30), ("run-d", 9, 2**62)]:
        put(journal, name, priority=priority, due_us=due_us)
    claimed = journal.claim(["queued"], 10, LEASE_US, "mail")
    assert [each.execution for each in claimed] == ["run-c", "run-b", "run-a"]
    assert journal.claim(["queued"], 10, LEASE_US, "mail") == []
    assert journal.renew_due(claimed) == 3
    assert journal.release(claimed[0], 5, 1)
    assert not journal.remove([replace(claimed[0], fence=99)])
    assert journal.next_due(["queued"]) == 5


def test_threads_that_claim_at_the_same_time_share_the_rows(journal: Journal) -> None:
    for number in range(30):
        put(journal, f"run-{number:02}", lane=f"lane-{number % 3}")
    found: list[str] = []

    def claim() -> None:
        while rows := journal.claim_queued("mail", 4, LEASE_US):
            found.extend(str(row.execution) for row, run in rows if run is not None)

    threads = [threading.Thread(target=claim) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(found) == [f"run-{number:02}" for number in range(30)]
    assert [(each.queue, each.running) for each in journal.queue_depths()] == [("mail", 30)]


def test_a_claimed_run_is_taken_over_and_its_end_deletes_its_row(journal: Journal) -> None:
    put(journal, "run-a")
    put(journal, "run-b")
    ((_, first), (row, second)) = journal.claim_queued("mail", 2, LEASE_US, "python")
    assert first is not None
    assert second is not None
    assert journal.summary("run-a").status is Status.RUNNING
    assert journal.verify("run-a") == []
    end(first)
    end(second, "failed")
    assert [(each.execution, each.status) for each in journal.due()] == [("run-b", Status.ENDED)]
    kinds = [each.entry.kind for each in journal.read("run-a").entries]
    assert kinds == [Kind.START, Kind.HANDOFF, Kind.END]
    assert journal.remove(row)


def test_taking_over_a_started_run_removes_its_row(journal: Journal) -> None:
    put(journal, "run-a", queue="")
    journal.take_over("run-a", "interp")
    assert journal.due() == []


def test_a_sleep_is_woken_at_its_time_by_one_process(journal: Journal, tmp_path: Path) -> None:
    due = datetime.now(UTC) + timedelta(hours=1)
    with prepared_on(journal, tmp_path, _SLEEPER) as (host, prepared):
        waits = start(host, prepared, event_id="a", due=due)
        assert (waits.kind, waits.path, waits.due) == ("sleep", "pause", due)
        assert journal.wake_due() == []
        over = start(host, prepared, event_id="b", due=PAST)
        assert journal.next_due(["sleep"]) == over.due_us
        assert [each.execution for each in journal.wake_due()] == [over.execution]
        with pytest.raises(NotTaken, match="it waits"):
            journal.take_over(waits.execution, "interp")
        (woken,) = journal.unfinished(is_released=True)
        recovered = host.resume(woken.execution)
        assert recovered.outcome == Returned({"woken": PAST})
        for each in (waits.execution, over.execution):
            assert journal.verify(each) == []


def test_a_signal_wakes_its_runs_or_is_kept(journal: Journal, tmp_path: Path) -> None:
    with prepared_on(journal, tmp_path, _RECEIVER % "") as (host, prepared):
        first, second = (start(host, prepared, event_id="order-1") for _ in range(2))
        other = start(host, prepared, event_id="order-2")
        sent = journal.signal(None, "settled", "order-1", "5", "once", "ann")
        assert sorted(sent.woken) == sorted([first.execution, second.execution])
        assert journal.signal(None, "settled", "order-1", "6", "once", "ann").is_repeat
        assert host.resume(first.execution).outcome == Returned({"amount": 5})
        assert journal.signal(None, "settled", "order-3", "7", None, None).is_kept
        assert host.run(prepared, {"event_id": "order-3"}, NOW).outcome == Returned({"amount": 7})
        start(host, prepared, event_id="order-3")
        assert journal.cancel(other.execution, "no longer needed", "ann") is Status.RUNNING
        assert journal.read(other.execution).entries[-1].entry.body["code"] == "cancelled"
        with pytest.raises(JournalError, match="it is running"):
            journal.cancel(other.execution, "again", "ann")


def test_a_sensitive_wait_has_no_value_in_its_row(journal: Journal, raw: Raw, tmp_path: Path) -> None:
    text = _RECEIVER % ", sensitive_data: [event_id]"
    with prepared_on(journal, tmp_path, text) as (host, prepared):
        waits = start(host, prepared, event_id="order-1")
        stored = raw.run("SELECT lane, body FROM vesper_due")
        assert "order-1" not in str(stored[0][0])
        assert b"order-1" not in bytes(stored[0][1])
        (row,) = journal.due("signal", "settled", lane="order-1")
        assert (row.execution, row.is_sensitive, "order-1" in row.body) == (waits.execution, True, True)
        assert journal.signal(None, "settled", "order-1", "5", None, None).woken == (waits.execution,)
        assert host.resume(waits.execution).outcome == Returned({"amount": 5})


def test_a_wait_is_settled_once_whoever_is_faster(journal: Journal, tmp_path: Path) -> None:
    with prepared_on(journal, tmp_path, _RECEIVER % "") as (host, prepared):
        waits = start(host, prepared, event_id="order-1")
        won: list[bool] = []

        def wake(number: int) -> None:
            text = encode(number).decode()
            won.append(journal.wake(waits.execution, "settled", text, None, "", None))

        threads = [threading.Thread(target=wake, args=(number,)) for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert sorted(won) == [False, False, False, True]
        assert not journal.wake(waits.execution, "elsewhere", "1", None, "", None)


def test_schedules_are_changed_by_compare_and_swap(journal: Journal) -> None:
    assert journal.put_schedule("nightly", 10, "{}", None)
    assert not journal.put_schedule("nightly", 11, "{}", None)
    assert journal.put_schedule("nightly", 20, '{"n": 2}', 10)
    assert not journal.put_schedule("nightly", 30, "{}", 10)
    (row,) = journal.claim(["schedule"], 5, LEASE_US)
    assert (row.name, row.due_us, row.execution, json.loads(row.body)) == ("nightly", 20, None, {"n": 2})
    assert journal.put_due("topic", "orders:all", None, "{}", None, "orders", "all")
    assert [each.name for each in journal.due("topic", queue="orders")] == ["orders:all"]


def test_pruning_deletes_rows_and_signals_of_a_run(journal: Journal, raw: Raw) -> None:
    put(journal, "run-a")
    journal.signal("run-a", "settled", "", "1", None, None)
    assert journal.cancel("run-a", "not needed", None) is Status.ENDED
    assert journal.verify("run-a") == []
    assert journal.prune(2**62) == 1
    assert raw.run("SELECT 1 FROM vesper_signals UNION ALL SELECT 1 FROM vesper_due") == []


def test_a_row_without_its_run_is_reported(journal: Journal, raw: Raw) -> None:
    put(journal, "run-a")
    raw.run("DELETE FROM vesper_executions")
    assert any("vesper_due has 1 rows" in each for each in journal.verify_shared())


def test_a_rate_gives_each_claimed_run_its_delay_by_the_clock_of_the_store(journal: Journal) -> None:
    for number in range(3):
        put(journal, f"run-{number}")
    put(journal, "free", "other")
    before = journal.now_us()
    claimed = journal.claim_queued("mail", 3, LEASE_US, queue_rate=(1, 1_000_000), ahead_us=5_000_000)
    assert [due.start_in_us for due, _ in claimed] == [0, 1_000_000, 2_000_000]
    assert all(before <= (due.due_us or 0) - due.start_in_us <= journal.now_us() for due, _ in claimed)
    assert [due.start_in_us for due, _ in journal.claim_queued("other", 1, LEASE_US)] == [0]


@pytest.mark.parametrize("lane", ["x" * 5_000, "order\0-1"], ids=["long", "with NUL"])
def test_a_lane_that_an_index_cannot_hold_is_found_by_its_digest(journal: Journal, tmp_path: Path, lane: str) -> None:
    put(journal, "queued", lane=lane)
    assert [each.execution for each in journal.due(kind="queued", lane=lane)] == ["queued"]
    assert [due.execution for due, _ in journal.claim_queued("mail", 1, LEASE_US, lane_limit=1)] == ["queued"]
    with prepared_on(journal, tmp_path, _RECEIVER % "") as (host, prepared):
        waits = start(host, prepared, event_id=lane)
        assert journal.signal(None, "settled", lane, "1", None, None).woken == (waits.execution,)
        assert journal.signal(None, "settled", lane, "7", None, None).is_kept
        kept = host.run(prepared, {"event_id": lane}, NOW)
        assert kept.outcome == Returned({"amount": 7})
