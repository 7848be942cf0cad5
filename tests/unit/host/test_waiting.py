"""Runs that wait between attempts: they react to Ctrl-C, and coroutines among them have no thread each."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path

import pytest

import vesper
from vesper.config.settings import config_from
from vesper.effects.performer import Ask, EffectFailed
from vesper.engines.registry import ENGINES
from vesper.host.host import Host
from vesper.journal.journal import Status

NODE = """\
node_id: waits_v1
type: event_handler
intent: Wait between two attempts
inputs:
  event_id: string
outputs:
  success: {{text: string}}
flow:
  - step: act
    operation: custom
    name: act
    request: {{event_id: event_id}}
    returns: string
    effect: unsafe
  - step: look
    operation: custom
    name: look
    returns: string
    effect: read
    retry: {{attempts: 2, on: [unavailable], backoff: {{base: {delay}, factor: 1, max: {delay}}}}}
  - operation: return
    success: {{text: look}}
security:
  capabilities_required: [effect.call.act, effect.call.look]
"""


class Failing:
    """Fails the first attempt to look of each run."""

    def __init__(self) -> None:
        self.has_failed = threading.Event()
        self._seen: set[str] = set()

    def perform(self, ask: Ask) -> object:
        if ask.fixed["name"] == "look" and ask.execution not in self._seen:
            self._seen.add(ask.execution)
            self.has_failed.set()
            raise EffectFailed("unavailable", "not yet")
        return "done"

    def probe(self, ask: Ask) -> object:
        raise AssertionError(f"{ask.path} is not of class `probe`")

    def close(self) -> None: ...


def threads() -> int:
    """Return the number of threads of this process, those of the runtime among them."""
    return len(list(Path("/proc/self/task").iterdir()))


def host_in(folder: Path, performer: Failing, delay: str) -> Host:
    (folder / "waits_v1.vsp").write_text(NODE.format(delay=delay), encoding="utf-8")
    values = {
        "grants": [{"nodes": ["*"], "allow": ["*"]}],
        "journal": {"dsn": f"sqlite:{folder / 'journal.db'}"},
        "recovery": {"enabled": False},
    }
    return Host(config_from(values, folder), performers={"custom": performer})


@pytest.mark.parametrize("engine", list(ENGINES))
def test_an_interrupt_ends_a_wait_and_leaves_the_run_to_recovery(tmp_path: Path, engine: str) -> None:
    performer = Failing()
    with host_in(tmp_path, performer, "60s") as host:
        node = vesper.load(tmp_path / "waits_v1.vsp", engine=engine, host=host)

        def interrupt() -> None:
            assert performer.has_failed.wait(30)
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            node(event_id="e")
        assert time.monotonic() - began < 30
        (summary,) = host.journal.find()
        assert summary.status is Status.RUNNING, "it has acted: recovery finishes it"


def test_coroutines_that_wait_have_no_thread_each(tmp_path: Path) -> None:
    performer = Failing()
    most = 0

    async def run(node: vesper.Node) -> None:
        nonlocal most
        tasks = [asyncio.create_task(node.arun(event_id=f"e{number}")) for number in range(400)]
        while not all(task.done() for task in tasks):
            most = max(most, threads())
            await asyncio.sleep(0.05)
        assert all(task.result().ok for task in tasks)

    with host_in(tmp_path, performer, "1s") as host:
        asyncio.run(run(vesper.load(tmp_path / "waits_v1.vsp", engine="interp", host=host)))
    assert most < 300, "workers and their replacements, and not a thread for each run"
