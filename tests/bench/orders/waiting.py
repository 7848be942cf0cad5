"""Runs that wait between two attempts: `python -m tests.bench.orders.waiting FOLDER RUNS SECONDS`.

Each run fails its first attempt and waits for longer than the measurement takes. A JSON line says how many wait at the
same time after so many seconds, and with how many threads and how much memory beyond that of the idle Host.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import threading
import time
from pathlib import Path

import vesper
from vesper.config.settings import config_from
from vesper.effects.performer import Ask, EffectFailed

NODE = """\
node_id: waits_v1
type: event_handler
intent: Wait for a second attempt
inputs:
  event_id: string
outputs:
  success: {text: string}
flow:
  - step: act
    operation: custom
    name: act
    request: {event: event_id}
    returns: string
    effect: keyed
    key: event_id
    retry: {attempts: 2, on: [unavailable], backoff: {base: 1h, factor: 1, max: 1h}}
  - operation: return
    success: {text: act}
security:
  capabilities_required: [effect.call.act]
"""
_PAGE_KIB = resource.getpagesize() // 1024


class Unavailable:
    """Fails each attempt and counts them."""

    def __init__(self) -> None:
        self.attempts: set[str] = set()

    def perform(self, ask: Ask) -> object:
        self.attempts.add(ask.execution)
        raise EffectFailed("unavailable", "not now")

    def probe(self, ask: Ask) -> object:
        raise AssertionError(ask)

    def close(self) -> None: ...


def resident_kib() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_KIB


def thread_count() -> int:
    """Return the threads of the process, those of Rust among them."""
    return sum(1 for _ in Path("/proc/self/task").iterdir())


async def count_waiting(node: vesper.Node, performer: Unavailable, runs: int, seconds: float) -> dict[str, object]:
    before, begun = resident_kib(), time.monotonic()
    tasks = [asyncio.create_task(node.arun(event_id=f"e{number}")) for number in range(runs)]
    while len(performer.attempts) < runs and time.monotonic() - begun < seconds:  # noqa: ASYNC110  # other threads count
        await asyncio.sleep(0.05)
    waiting = len(performer.attempts)
    found: dict[str, object] = {
        "runs": runs,
        "waiting": waiting,
        "threads": thread_count(),
        "python_threads": threading.active_count(),
        "seconds": round(time.monotonic() - begun, 2),
        "kib_each": round((resident_kib() - before) / runs, 1),
    }
    assert not any(task.done() for task in tasks)
    return found


def main() -> None:
    folder, runs, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    path = folder / "waits_v1.vsp"
    path.write_text(NODE, encoding="utf-8")
    settings = {
        "grants": [{"nodes": ["*"], "allow": ["effect.*"]}],
        "journal": {"dsn": f"sqlite:{folder / 'journal.db'}"},
    }
    performer = Unavailable()
    host = vesper.Host(config_from(settings, folder), performers={"custom": performer})
    node = vesper.load(path, host=host)
    asyncio.run(_print_waiting(node, performer, runs, seconds))


async def _print_waiting(node: vesper.Node, performer: Unavailable, runs: int, seconds: float) -> None:
    found = await count_waiting(node, performer, runs, seconds)
    print(json.dumps(found), flush=True)
    os._exit(0)  # the runs wait for an hour


if __name__ == "__main__":
    main()
