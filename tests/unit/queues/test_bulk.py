"""Runs that an expression selects: retried once each, cancelled; the commands on them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.proofs.queues.queued_node import host_in, load
from vesper.cli.main import vesper as cli
from vesper.effects.performer import EffectFailed
from vesper.journal.journal import Status
from vesper.queues.bulk import RunFilter, WrongFilter, cancel_all, retry_all, select
from vesper.queues.workers import QueueWorkers


def failing(event: str, _: str) -> str:
    if event.startswith("bad"):
        raise EffectFailed("unavailable", "down", may_have_happened=False)
    return event


def run_all(folder: Path, queue: str = "{attempts: 1}") -> None:
    """Run two that fail and one that does not, and leave one queued."""
    with host_in(folder, failing) as host:
        node = load(folder, host, queue)
        handles = [node.enqueue({"event_id": event, "merchant": "m"}) for event in ("bad1", "bad2", "good")]
        workers = QueueWorkers(host, [node])
        workers.start()
        for each in handles:
            each.wait(30)
        assert workers.stop(30)
        node.enqueue({"event_id": "later", "merchant": "m"}, delay=3600)


def test_each_failed_run_is_retried_once(tmp_path: Path) -> None:
    run_all(tmp_path)
    with host_in(tmp_path, failing) as host:
        wanted = RunFilter(
            "node == 'work_v1' AND code == 'unavailable' AND started > timestamp('2020-01-01T00:00:00Z')"
        )
        found = select(host.journal, wanted, True, None)
        assert len(found) == 2
        assert len(select(host.journal, wanted, True, 1)) == 1
        first = [each.execution for each in retry_all(host, found[:1], None, "anna")]
        again = [each.execution for each in retry_all(host, found, 1000.0, "anna")]
        assert again[0] is None, "interrupted and called again, it repeats nothing"
        assert None not in (first[0], again[1])
        assert len(host.journal.find(status=Status.QUEUED)) == 3
        retried = host.journal.read(first[0] or "").entries[0].entry.body
        assert retried["inputs"] == {"event_id": "bad1", "merchant": "m"}


def test_queued_runs_are_cancelled(tmp_path: Path) -> None:
    run_all(tmp_path)
    with host_in(tmp_path, failing) as host:
        found = select(host.journal, RunFilter("queue == 'default' AND lane == 'work'"), False, None)
        assert [each.status for each in found] == [Status.QUEUED]
        done = list(cancel_all(host, found, None, "anna", "not needed"))
        assert done[0].execution == found[0].execution
        assert next(cancel_all(host, found, None, "anna", "not needed")).execution is None
        retried = select(host.journal, RunFilter("outcome != 'returned'"), True, None)
        assert [each.outcome for each in retried] == ["failed", "failed"], "what was cancelled stays so"
        next(retry_all(host, retried, None, "anna"))
        actions = [json.loads(line)["action"] for _, line, _ in host.journal.audit_rows()]
        assert actions[-1] == "runs_retry", "an interrupted call has its line"


@pytest.mark.parametrize("expression", ["nodes == 'x'", "node", "node == ", "node == 1", "started > 'x'"])
def test_an_expression_that_selects_no_runs_is_refused_with_its_diagnostic(expression: str) -> None:
    with pytest.raises(WrongFilter, match="an expression over node, status"):
        RunFilter(expression)


def test_the_commands(tmp_path: Path) -> None:
    run_all(tmp_path)
    runner = CliRunner()
    journal = ["--journal", f"sqlite:{tmp_path / 'journal.db'}"]

    def call(*arguments: str) -> str:
        done = runner.invoke(cli, [*arguments, *journal], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    (line,) = json.loads(call("queue", "list", "--format", "json"))
    assert (line["queue"], line["delayed"], line["dead"]) == ("default", 1, 2)
    assert "default" in call("queue", "list")
    shown = json.loads(call("queue", "show", "default", "--format", "json"))
    assert [each["state"] for each in shown["runs"]] == ["delayed"]
    assert [each["lane"] for each in shown["lanes"]] == ["work"]
    dead = json.loads(call("queue", "dead", "default", "--format", "json"))
    assert [each["code"] for each in dead] == ["unavailable", "unavailable"]
    assert "is paused" in call("queue", "pause", "default", "--why", "night")
    assert "is paused by" in call("queue", "list")
    assert "goes on" in call("queue", "resume", "default")
    assert "queued 1 run" in call("queue", "requeue", dead[0]["execution"])
    assert "dropped 1 dead letter" in call("queue", "drop", "--all", "default", "--yes")
    assert "has no dead letters" in call("queue", "dead", "default")
    assert "2 executions would be retried" in call("journal", "retry", "--where", "outcome == 'failed'", "--dry-run")
    assert "retried 1 execution; 1 execution had been before" in call(
        "journal", "retry", "--where", "outcome == 'failed'"
    )
    assert "cancelled 3 executions" in call("journal", "cancel", "--where", "status == 'queued'", "--why", "enough")
    refused = runner.invoke(cli, ["queue", "cancel", dead[0]["execution"], "--why", "x", *journal])
    assert refused.exit_code == 1
    assert "has ended" in refused.output
    refused = runner.invoke(cli, ["journal", "retry", "--where", "nodes == 1", *journal])
    assert refused.exit_code == 1
    assert "did you mean" in refused.output
