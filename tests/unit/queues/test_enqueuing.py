"""Enqueues: checks, debounce and singletons."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.proofs.queues.queued_node import host_in, load
from vesper.engines.outcome import LimitHit
from vesper.host.outcomes import recorded_outcome
from vesper.journal.journal import Status
from vesper.queues import enqueuing
from vesper.queues.overview import queued_runs
from vesper.queues.retrying import place_of

ONE = {"event_id": "e", "merchant": "m"}


def test_refused_inputs_and_arguments_write_nothing(tmp_path: Path) -> None:
    with host_in(tmp_path, lambda event, _: event) as host:
        node = load(tmp_path, host)
        with pytest.raises(vesper.BadInput):
            node.enqueue({"event_id": 7, "merchant": "m"})
        wrong_ones: list[dict[str, Any]] = [
            *({"delay": delay} for delay in (-1, 1e15, float("inf"), float("nan"), timedelta.max, "5")),
            *({"priority": priority} for priority in (5000, 1.5, True)),
            {"at": datetime.max.replace(tzinfo=timezone(timedelta(hours=-1)))},
            {"delay": 1, "at": datetime.now(UTC)},
            {"at": datetime.now(UTC).replace(tzinfo=None)},
        ]
        for wrong in wrong_ones:
            with pytest.raises(ValueError, match="`"):
                node.enqueue(ONE, **wrong)
        assert host.journal.find() == []


def test_a_function_has_no_queue(tmp_path: Path) -> None:
    path = tmp_path / "double_v1.vsp"
    path.write_text(
        "node_id: double_v1\ntype: function\nintent: Double\ninputs: {n: integer}\noutputs: {success: {m: integer}}\n"
        "flow:\n  - {operation: return, success: {m: n * 2}}\n",
        encoding="utf-8",
    )
    with pytest.raises(TypeError, match="call it"):
        vesper.load(path).enqueue({"n": 1})


def test_the_last_enqueue_within_the_debounce_wins(tmp_path: Path) -> None:
    with host_in(tmp_path, lambda event, _: event) as host:
        node = load(tmp_path, host, "{by: merchant, debounce: 1h}")
        runs = [node.enqueue({"event_id": str(number), "merchant": "m"}) for number in range(3)]
        other = node.enqueue({"event_id": "9", "merchant": "other"})
        assert [each.status() for each in (*runs, other)] == ["ended", "ended", "queued", "queued"]
        end = host.journal.read(runs[0].execution).entries[-1].entry.body
        assert recorded_outcome(end) == LimitHit("cancelled")
        assert end["why"] == f"superseded by execution {runs[1].execution}"
        assert {each.state for each in queued_runs(host.journal, "default", host.now_us())} == {"delayed"}


def test_a_singleton_is_queued_once_in_its_lane(tmp_path: Path) -> None:
    with host_in(tmp_path, lambda event, _: event) as host:
        node = load(tmp_path, host, "{by: merchant, singleton: true}")
        first = node.enqueue(ONE)
        assert node.enqueue({"event_id": "2", "merchant": "m"}).execution == first.execution
        assert node.enqueue({"event_id": "2", "merchant": "n"}).execution != first.execution
        ((due, run),) = host.journal.claim_queued("default", 1, 60_000_000, lane_limit=1, after_lane="")
        assert run is not None
        assert (due.execution, due.lane) == (first.execution, "m")
        assert node.enqueue({"event_id": "3", "merchant": "m"}).execution == first.execution, "while it runs, too"


@pytest.mark.parametrize("rule, kept", [("debounce: 1h", 2), ("singleton: true", 0)])
def test_of_enqueues_at_the_same_time_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str, kept: int
) -> None:
    """The processes of the first two see no other row, as where their commits overlap."""
    with host_in(tmp_path, lambda event, _: event) as host:
        node = load(tmp_path, host, f"{{by: merchant, {rule}}}")
        with monkeypatch.context() as patch:
            patch.setattr(enqueuing, "_others", lambda *_: [])
            runs = [node.enqueue(ONE).execution for _ in range(2)]
            put_run = host.put_run

            def put_and_see(*given: Any, **named: Any) -> str:
                execution = put_run(*given, **named)
                patch.undo()
                return execution

            patch.setattr(host, "put_run", put_and_see)
            runs.append(node.enqueue(ONE).execution)
        (queued,) = host.journal.find(status=Status.QUEUED)
        assert queued.execution == runs[kept]


@pytest.mark.parametrize("rule", ["debounce: 1h", "singleton: true"])
def test_tenants_do_not_touch_the_runs_of_each_other(tmp_path: Path, rule: str) -> None:
    with host_in(tmp_path, lambda event, _: event) as host:
        node = load(tmp_path, host, f"{{by: merchant, {rule}}}")
        runs = []
        for tenant in ("acme", "umbrella", "acme"):
            with vesper.run_context(tenant=tenant):
                runs.append(node.enqueue(ONE))
        runs.append(node.enqueue(ONE))
        assert runs[1].status() == runs[2].status() == runs[3].status() == "queued"
        assert len(host.journal.find(status=Status.QUEUED)) == 3, "one for each tenant, and one without"


def test_the_default_of_an_input_is_a_lane(tmp_path: Path) -> None:
    with host_in(tmp_path, lambda event, _: event) as host:
        load(tmp_path, host, "{by: merchant}")
        path = tmp_path / "work_v1.vsp"
        text = path.read_text(encoding="utf-8").replace("merchant: string", "merchant: {type: string, default: all}")
        path.write_text(text, encoding="utf-8")
        node = vesper.load(path, engine="python", host=host)
        given, absent = (node.enqueue(each).execution for each in ({**ONE, "merchant": "all"}, {"event_id": "e"}))
        assert [host.journal.due(execution=each)[0].lane for each in (given, absent)] == ["all", "all"]
        assert place_of(host, host.journal.read(absent)).terms.lane == "all"


def test_a_delayed_run_starts_at_its_time(tmp_path: Path) -> None:
    with host_in(tmp_path, lambda event, _: event) as host:
        node = load(tmp_path, host)
        at = datetime.now(UTC) + timedelta(hours=2)
        for arguments in ({"at": at}, {"delay": timedelta(hours=2)}, {"delay": 7200.0}):
            node.enqueue(ONE, **arguments)
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        for each in queued_runs(host.journal, "default", host.now_us()):
            assert each.due.due_us is not None
            assert abs(epoch + timedelta(microseconds=each.due.due_us) - at) < timedelta(minutes=1)
        assert host.journal.claim_queued("default", 8, 1_000_000) == []
