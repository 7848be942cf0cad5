"""The kernel's control flow with real processes: routing, an edge limit, branches, a person, and two deaths.

Kernel and worker are killed while the process waits for a person. It continues, and no step is performed twice.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.servers import free_port
from tests.support.waiting import eventually
from tests.support.work.kernel import performed, start_command, worker, write_project
from vesper.kernel import Kernel, v1

ONCE = {"draft": 2, "review": 2, "legal": 1, "finance": 1}


def test_a_pipeline_survives_the_death_of_kernel_and_worker(tmp_path: Path) -> None:
    pipeline = write_project(tmp_path)
    kernel = Kernel(f"sqlite:{tmp_path / 'kernel.db'}", port=free_port())
    with kernel:
        address = kernel.address
        run = start_command(
            tmp_path, "run", pipeline.name, "-i", "event_id=e1", "-i", "drafts_needed=2", "--address", address
        )
        with worker(tmp_path, address) as first:
            eventually(lambda: len(pending(kernel)) == 1)
            first.kill()
        assert performed(tmp_path, "e1") == ONCE
        kernel.kill()
        kernel.start()
        with worker(tmp_path, address):
            (asked,) = pending(kernel)
            assert asked.message == "Publish e1?"
            assert asked.stage == "publish"
            response = v1.InterruptResponse(value_json='{"approved": true}', by="alice")
            kernel.client.resolve_interrupt(
                v1.ResolveInterruptRequest(interrupt_id=asked.interrupt_id, response=response)
            )
            printed, events = run.communicate(timeout=60)
            assert run.returncode == 0, events
            outcome = json.loads(printed)
            assert outcome["reason"] == "completed"
            assert outcome["stages"][:4] == ["draft", "review", "draft", "review"]
            assert sorted(outcome["stages"][4:6]) == ["finance", "legal"]
            assert outcome["outputs"]["publish"] == {"stage": "publish"}
            assert performed(tmp_path, "e1") == {**ONCE, "publish": 1}
            limited = start_command(
                tmp_path, "run", pipeline.name, "-i", "event_id=e2", "-i", "drafts_needed=99", "--address", address
            )
            printed, _ = limited.communicate(timeout=60)
            assert limited.returncode == 1
            assert json.loads(printed)["reason"] == "edge_limit_exceeded"
            assert performed(tmp_path, "e2") == {"draft": 4, "review": 4}


def pending(kernel: Kernel) -> list[v1.FlowInterrupt]:
    request = v1.ListInterruptsRequest(status="INTERRUPT_STATUS_PENDING")
    return list(kernel.client.list_interrupts(request).interrupts)
