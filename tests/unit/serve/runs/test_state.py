"""What callers see of a run: reasons without sensitive values, the attempts of a queued run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.proofs.queues.queued_node import NODE, host_in
from tests.support.waiting import eventually
from vesper.effects.performer import EffectFailed
from vesper.host.host import Host
from vesper.host.waiting_runs import cancel
from vesper.queues.workers import QueueWorkers
from vesper.serve.runs.state import read_state

INPUTS = {"event_id": "4111", "merchant": "m"}
SECRET_ANSWER = "returns: {type: string, sensitive: true}"
SECRET_INPUT = "security:\n  sensitive_data: [event_id]"


def fail(event: str, _: str) -> str:
    raise EffectFailed("unavailable", f"no answer for {event}", may_have_happened=False)


def load(folder: Path, host: Host, queue: str, *changes: tuple[str, str]) -> vesper.Node:
    text = NODE.format(queue=queue, name="work", effect_class="keyed")
    for old, new in changes:
        text = text.replace(old, new)
    (folder / "work_v1.vsp").write_text(text)
    return vesper.load(folder / "work_v1.vsp", engine="python", host=host)


def seen(host: Host, execution: str, reveals: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(read_state(host, host.journal.read(execution), reveals).body)
    return found


@pytest.mark.parametrize(
    "change, is_told",
    [(("", ""), True), (("returns: string", SECRET_ANSWER), False), (("security:", SECRET_INPUT), False)],
)
def test_the_reason_of_a_failure_is_for_the_caller_of_a_node_without_secrets(
    tmp_path: Path, change: tuple[str, str], is_told: bool
) -> None:
    with host_in(tmp_path, fail) as host:
        node = load(tmp_path, host, "{}", change)
        failed = node(INPUTS)
        assert failed.error is not None
        assert ("4111" in failed.error.message) == is_told
        execution = host.journal.find()[0].execution
        assert ("4111" in json.dumps(seen(host, execution, reveals=True))) == is_told
        other = seen(host, execution)["outcome"]
        assert "4111" not in json.dumps(other)
        assert other["kind"] == "failed"


def test_the_rule_that_denies_is_not_for_other_callers(tmp_path: Path) -> None:
    with host_in(tmp_path, fail, grants=[]) as host:  # type: ignore[arg-type]  # a list of tables
        node = load(tmp_path, host, "{}")
        assert node(INPUTS).error is not None
        execution = host.journal.find()[0].execution
        assert "nothing in the configuration" in seen(host, execution, reveals=True)["outcome"]["message"]
        assert seen(host, execution)["outcome"]["message"] == "denied: work_v1 may not use `effect.call.act`"


def test_a_failed_attempt_is_not_the_end_of_a_queued_run(tmp_path: Path) -> None:
    tries: list[str] = []

    def act(event: str, merchant: str) -> str:
        tries.append(event)
        return fail(event, merchant) if len(tries) == 1 else "done"

    with host_in(tmp_path, act) as host:
        node = load(tmp_path, host, "{attempts: 2, backoff: {base: 1h, factor: 1, max: 1h}}")
        execution = node.enqueue(INPUTS).execution
        workers = QueueWorkers(host, [node])
        workers.start()
        try:
            eventually(lambda: seen(host, execution)["next_attempt"] is not None)
        finally:
            assert workers.stop(30)
        found = seen(host, execution)
        assert (found["execution"], found["status"], found["outcome"]) == (execution, "queued", None)
        cancel(host.journal, found["next_attempt"], "not needed", None)
        found = seen(host, execution)
        assert (found["status"], found["outcome"]["kind"]) == ("ended", "limit_hit")
