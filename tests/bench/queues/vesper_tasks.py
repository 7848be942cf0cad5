"""The task on Vesper: a node that reads the clock, in a queue; `worker` as the second argument runs the queue."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import vesper
from tests.bench.queues.contestant import serve
from vesper.config.settings import config_from
from vesper.host.host import Host
from vesper.queues.workers import QueueWorkers

NODE = """\
node_id: stamp_v1
type: event_handler
intent: Read the clock
inputs: {event_id: string}
outputs:
  success: {at: timestamp}
flow:
  - {step: now, operation: clock}
  - {operation: return, success: {at: now}}
queue: {name: bench}
security:
  capabilities_required: [clock.read.system]
"""


def load(dsn: str, folder: Path) -> tuple[Host, vesper.Node]:
    """Return the node on the engine that `VESPER_BENCH_ENGINE` names, and its Host."""
    values = {
        "journal": {"dsn": dsn},
        "grants": [{"nodes": ["*"], "allow": ["clock.read.system"]}],
        "queues": {"bench": {"poll": "10ms"}},
    }
    host = Host(config_from(values, folder))
    path = folder / "stamp_v1.vsp"
    path.write_text(NODE, encoding="ascii")
    return host, vesper.load(path, host=host, engine=os.environ.get("VESPER_BENCH_ENGINE", "interp"))


class VesperProducer:
    def __init__(self, dsn: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._host, self._node = load(dsn, Path(self._folder.name))
        self._enqueued: list[int] = []

    def enqueue(self, number: int) -> None:
        self._node.enqueue({"event_id": str(number)})
        self._enqueued.append(number)

    def done(self) -> int:
        """Return the number of those that are neither queued nor running."""
        depths = self._host.journal.queue_depths()
        return len(self._enqueued) - sum(each.count for each in depths if each.queue == "bench")

    def close(self) -> None:
        self._host.close()
        self._folder.cleanup()


def work(dsn: str) -> None:
    """Run the queue until standard input ends."""
    with tempfile.TemporaryDirectory() as folder:
        host, node = load(dsn, Path(folder))
        workers = QueueWorkers(host, [node])
        workers.start()
        print("ready", flush=True)
        sys.stdin.read()
        workers.stop()
        host.close()


if __name__ == "__main__":
    if sys.argv[2:] == ["worker"]:
        work(sys.argv[1])
    else:
        serve(VesperProducer)
