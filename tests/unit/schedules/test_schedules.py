"""Schedules of several processes on one store, which die between any two of their commits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from vesper.host.run_context import current_context
from vesper.journal.entry import AuditEvent
from vesper.journal.errors import KeyTaken
from vesper.language.work_bindings import Backoff, QueueField, ScheduleField, WorkBindings
from vesper.queues.rules import Terms
from vesper.schedules import schedules as module
from vesper.schedules.overview import overview
from vesper.schedules.rows import UnknownSchedule, pause, read_rows, resume
from vesper.schedules.schedules import Schedules
from vesper.schedules.timetable import moment_of, time_text, us_of

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
NOON = us_of(datetime(2026, 11, 18, 12, tzinfo=UTC))
NODE = "report_v1"
HOURLY = ScheduleField("0 * * * *", "UTC", 0, "skip", "latest", '{"region": "eu"}', "scheduled_at")


class Killed(BaseException):
    """The process is gone."""


@dataclass
class Store:
    """Rows and runs, as the journal has them."""

    rows: dict[str, tuple[int, str]] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)
    """Status by key, in the order of their beginning."""
    inputs: list[tuple[Mapping[str, object], Mapping[str, object]]] = field(default_factory=list)
    audited: list[str] = field(default_factory=list)
    now_us: int = NOON - HOUR

    @property
    def hours(self) -> list[str]:
        return [key.removeprefix(f"schedule:{NODE}:2026-11-18T")[:5] for key in self.runs]


def _plain(text: str) -> SimpleNamespace:
    return SimpleNamespace(inputs=json.loads(text), refused=())


class Process:
    """A process with the job; it dies before or after one of its changes of the store."""

    def __init__(self, store: Store, schedule: ScheduleField = HOURLY, queue: QueueField | None = None) -> None:
        self.store = store
        self.changes_left: float = float("inf")
        inputs = [SimpleNamespace(name=name, default=None) for name in ("region", "scheduled_at")]
        compiled = SimpleNamespace(
            work=WorkBindings(schedule, queue), node=SimpleNamespace(node_id=NODE, inputs=inputs)
        )
        node = SimpleNamespace(id=NODE, _compiled=compiled, _prepare=lambda _: None, _to_plain=_plain)
        fast_us = store.now_us + HOUR  # the clock of the machine, which decides nothing
        host: Any = SimpleNamespace(journal=self, moment=lambda: moment_of(fast_us), put_run=self.put_run)
        self.schedules = Schedules(host, [node])

    def step(self) -> None:
        self.schedules.step()

    def _change(self) -> None:
        self.changes_left -= 1
        if self.changes_left < 0:
            raise Killed

    def put_due(self, kind: str, name: str, due_us: int, body: str, expected_due_us: int | None) -> bool:
        self._change()
        if self.store.rows.get(name, (None, ""))[0] != expected_due_us:
            return False
        self.store.rows[name] = due_us, body
        return True

    def put_run(self, prepared: object, inputs: Mapping[str, object], now: datetime, **where: object) -> str:
        self._change()
        context = current_context()
        assert context is not None
        assert context.key is not None
        if context.key in self.store.runs:
            raise KeyTaken(context.key)
        self.store.runs[context.key] = "queued"
        self.store.inputs.append((inputs, where))
        return context.key

    def now_us(self) -> int:
        return self.store.now_us

    def audit(self, events: list[AuditEvent]) -> None:
        self.store.audited += [each.action for each in events]

    def next_due(self, kinds: list[str]) -> int | None:
        return min((due_us for due_us, _ in self.store.rows.values()), default=None)

    def due(self, kind: str, limit: int, after: int | None) -> list[SimpleNamespace]:
        rows = self.store.rows.items() if after is None else ()
        return [SimpleNamespace(id=1, name=name, due_us=due_us, body=body) for name, (due_us, body) in rows]

    def keyed(self, node_id: str, record: Mapping[str, str]) -> tuple[SimpleNamespace, bool] | None:
        return (self.summary(record["key"]), False) if record["key"] in self.store.runs else None

    def summary(self, execution: str) -> SimpleNamespace:
        status = self.store.runs[execution]
        outcome = {"ended": "returned", "failed": "failed"}.get(status)
        status = "ended" if outcome else status
        return SimpleNamespace(execution=execution, status=status, outcome=outcome)


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    found: dict[str, int] = {"late": 0, "overlap": 0}

    def count(_metric: object, labels: tuple[str, str], by: int) -> None:
        found[labels[1]] += by

    monkeypatch.setattr(module, "count", count)
    monkeypatch.setattr(module, "observe", lambda *_: None)
    return found


@pytest.fixture
def store() -> Store:
    return Store()


def run_until(store: Store, processes: list[Process], end_us: int, seconds: int = 300) -> None:
    while store.now_us < end_us:
        store.now_us = min(store.now_us + seconds * SECOND, end_us)
        for process in processes:
            process.step()
            process.step()


def end_all(store: Store) -> None:
    store.runs = dict.fromkeys(store.runs, "ended")


def test_each_due_time_has_one_run_among_all_processes(store: Store) -> None:
    processes = [Process(store, replace(HOURLY, overlap="allow")) for _ in range(8)]
    run_until(store, processes, NOON + 3 * HOUR)
    assert store.hours == ["12:00", "13:00", "14:00", "15:00"]
    assert store.inputs[0] == ({"region": "eu", "scheduled_at": "2026-11-18T12:00:00Z"}, {})


@pytest.mark.parametrize("policy", ["skip", "queue", "allow"])
@pytest.mark.parametrize("changes", range(5))
def test_a_process_that_dies_between_any_two_commits_loses_and_doubles_nothing(
    store: Store, changes: int, policy: str
) -> None:
    schedule = replace(HOURLY, overlap=policy, missed="all")
    Process(store, schedule).step()
    store.now_us = NOON + 2 * HOUR
    dying, other = Process(store, schedule), Process(store, schedule)
    dying.changes_left = changes
    with suppress(Killed):
        dying.step()
    for _ in range(10):
        other.step()
        end_all(store)
        store.now_us += 10 * SECOND
    assert store.hours == ["12:00", "13:00", "14:00"]
    assert overview(other, store.now_us, {})[0].row.run_count == 3  # type: ignore[arg-type]  # a journal as above


def test_a_stopped_process_continues_without_harm(store: Store) -> None:
    """One process reads the row, stops for an hour, and acts on what it has read."""
    sleeper, other = Process(store), Process(store)
    sleeper.step()
    other.step()
    store.now_us = NOON
    stale = dict(store.rows)
    other.step()
    end_all(store)
    store.now_us = NOON + HOUR
    other.step()
    present, store.rows = store.rows, stale
    job = sleeper.schedules._jobs[NODE]
    due_us, row = read_rows(sleeper)[NODE]  # type: ignore[arg-type]  # a journal as above
    store.rows = present
    job.advance(due_us, row)
    assert store.hours == ["12:00", "13:00"]
    assert store.rows == present


def test_overlapping_times_are_skipped_by_default(store: Store, counted: dict[str, int]) -> None:
    process = Process(store)
    run_until(store, [process], NOON + 2 * HOUR)
    assert store.hours == ["12:00"]
    assert counted == {"late": 0, "overlap": 2}
    end_all(store)
    run_until(store, [process], NOON + 3 * HOUR)
    assert store.hours == ["12:00", "15:00"]


def test_overlapping_times_wait_in_order_with_queue(store: Store) -> None:
    process = Process(store, replace(HOURLY, overlap="queue"))
    run_until(store, [process], NOON + 2 * HOUR)
    assert store.hours == ["12:00"]
    for expected in (["12:00", "13:00"], ["12:00", "13:00", "14:00"]):
        end_all(store)
        store.now_us += 2 * SECOND
        process.step()
        assert store.hours == expected


def test_a_night_without_a_process_runs_the_latest(store: Store, counted: dict[str, int]) -> None:
    Process(store).step()
    store.now_us = NOON + 5 * HOUR + 1
    Process(store).step()
    assert store.hours == ["17:00"]
    assert counted["late"] == 5


def test_a_pause_is_durable_and_what_it_hid_never_runs(store: Store) -> None:
    process: Any = Process(store)
    process.step()
    assert pause(process, NODE, "alice").paused_by == "alice"
    assert pause(process, NODE, "bob").paused_by == "alice"
    run_until(store, [process, Process(store)], NOON + 2 * HOUR)
    assert store.hours == []
    (line,) = overview(process, store.now_us, {})
    assert (line.state, line.row.paused_by, line.next_us) == ("paused", "alice", None)
    store.now_us += 30 * MINUTE
    resume(process, NODE, "alice")
    run_until(store, [process], NOON + 3 * HOUR)
    assert store.hours == ["15:00"]
    assert store.audited == ["schedule_pause", "schedule_resume"]
    with pytest.raises(UnknownSchedule, match="vesper work"):
        resume(process, "other_v1", "alice")


def test_the_last_deployment_decides_the_text(store: Store) -> None:
    old = Process(store)
    old.step()
    new = Process(store, replace(HOURLY, cron="30 * * * *"))
    new.step()
    run_until(store, [old, new], NOON + 40 * MINUTE, seconds=30)
    assert store.hours == ["11:30"]  # the run of 12:30 overlaps
    end_all(store)
    # The new deployment is gone: after a minute the old text is served again.
    run_until(store, [old], NOON + 2 * HOUR, seconds=30)
    assert store.hours == ["11:30", "14:00"]


def test_a_removed_job_does_not_run_and_is_shown(store: Store) -> None:
    process: Any = Process(store)
    process.step()
    store.now_us = NOON + HOUR
    (line,) = overview(process, store.now_us, {})
    assert (line.state, line.row.cron, time_text(line.next_us or 0)) == (
        "unserved",
        "0 * * * *",
        "2026-11-18T12:00:00Z",
    )


def test_a_node_that_no_process_has_served_is_new(store: Store) -> None:
    process: Any = Process(store)
    (line,) = overview(process, NOON, {NODE: HOURLY})
    assert (line.state, line.to_json()["next"], line.last_status) == ("new", "2026-11-18T13:00:00Z", None)


def test_a_job_with_a_queue_goes_there(store: Store) -> None:
    process = Process(store, queue=QueueField("reports", by="region", priority=3, attempts=7))
    run_until(store, [process], NOON)
    where = dict(store.inputs[0][1])
    assert Terms.from_body(str(where.pop("body"))) == Terms(7, Backoff(), "eu")
    assert where == {"queue": "reports", "lane": "eu", "priority": 3}


def test_a_due_time_overlaps_with_attempts_after_a_failure(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process(store)
    run_until(store, [process], NOON)
    (first,) = store.runs
    attempts: dict[str, tuple[str | None, bool]] = {first: ("retry", False), "retry": (None, True)}
    monkeypatch.setattr(module, "next_attempt", lambda _, execution: attempts[execution])
    store.runs |= {first: "failed", "retry": "queued"}
    run_until(store, [process], NOON + HOUR)
    assert list(store.runs) == [first, "retry"], "the second attempt has not ended"
    store.runs["retry"] = "failed"
    run_until(store, [process], NOON + 2 * HOUR)
    assert len(store.runs) == 3, "no attempt is left"


def test_refused_inputs_of_a_schedule_begin_nothing(store: Store) -> None:
    process = Process(store)
    node: Any = process.schedules._jobs[NODE]._node
    node._to_plain = lambda _: SimpleNamespace(inputs={}, refused=("scheduled_at",))
    node._run_at = lambda *_: (_ for _ in ()).throw(ValueError("no timestamp"))
    with pytest.raises(ValueError, match="no timestamp"):
        run_until(store, [process], NOON)
    assert store.runs == {}


def test_the_state_has_the_problem_until_it_is_gone(store: Store) -> None:
    process = Process(store)
    process.changes_left = 0
    process._change = lambda: (_ for _ in ()).throw(RuntimeError("the disk is full"))  # type: ignore[method-assign]  # as a full disk does
    process.schedules._poll()
    assert process.schedules.state().problem == "RuntimeError: the disk is full"
    del process._change
    process.changes_left = 9
    process.schedules._poll()
    assert process.schedules.state().problem is None
