"""Memory of crowds in one process of Vesper: many streams at once, and many agents that sleep.

$ python -m tests.bench.agents.crowds streams URL PROTOCOL COUNT      # the last line of each is JSON
$ python -m tests.bench.agents.crowds sleepers COUNT
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

import vesper
from tests.bench.agents.contestant import Wrong, resident_mib, sample
from tests.bench.agents.provider import Pace
from tests.bench.agents.vesper_agent import load, texts
from vesper import agents
from vesper.config.settings import config_from
from vesper.host.host import Host
from vesper.journal.journal import Status

PACE = Pace(first=3.0, gap=0.25, chunks=8)
"""The first chunk comes when all requests have: the streams are open at once."""
SLEEPER = """\
node_id: sleeper_v1
type: event_handler
intent: Sleep for a day
inputs: {event_id: string}
outputs:
  success: {at: timestamp}
flow:
  - {step: night, operation: sleep, duration: 1d}
  - {operation: return, success: {at: night}}
security:
  capabilities_required: [clock.sleep.system]
"""
_POLL_SECONDS = 0.2
_MAX_SECONDS = 1200


async def streams(url: str, protocol: str, count: int, folder: Path) -> dict[str, float]:
    """Hold `count` streams at once; return the most memory, and the streams that the provider had before one ended."""
    agent = load(url, protocol, PACE.model, folder, streams=count)
    before = resident_mib()
    began = time.monotonic()
    questions = (f"What is {number}?" for number in range(count))
    found = await asyncio.gather(*(sample(lambda each: texts(agent, each), question, PACE) for question in questions))
    seconds = time.monotonic() - began
    agent.node.host.close()
    overheads = sorted(each.overhead_ms for each in found)
    first_end = min(each.ended_ns for each in found)
    return {
        "streams": count, "open_at_once": sum(each.came_ns < first_end for each in found),
        "rss_mib": round(resident_mib("VmHWM"), 1), "rss_before_mib": round(before, 1), "seconds": round(seconds, 2),
        "first_chunk_overhead_ms_p95": round(overheads[round(0.95 * (count - 1))], 1),
    }  # fmt: skip


def sleepers(count: int, folder: Path) -> dict[str, float]:
    """Spawn agents, each with a run that sleeps; return the memory while all of them do."""
    path = folder / "sleeper_v1.vsp"
    path.write_text(SLEEPER, encoding="ascii")
    values = {
        "journal": {"dsn": f"sqlite:{folder / 'journal.db'}"},
        "grants": [{"nodes": ["*"], "allow": ["clock.sleep.system"]}],
        "queues": {"agents": {"threads": 4, "poll": "20ms"}},
    }
    with Host(config_from(values, folder)) as host:
        node = vesper.load(path, host=host)
        before = resident_mib()
        with agents.working(host):
            began = time.monotonic()
            for number in range(count):
                address = agents.spawn(node, name=f"sleeper-{number}", host=host)
                agents.send(address, {"event_id": str(number)}, host=host)
            while not host.journal.find(status=Status.WAITING, offset=count - 1, limit=1):
                if time.monotonic() - began > _MAX_SECONDS:
                    raise Wrong(f"not all of {count:,} agents sleep after {_MAX_SECONDS} s")
                time.sleep(_POLL_SECONDS)
            seconds = time.monotonic() - began
            found = resident_mib()
    return {
        "agents": count, "rss_mib": round(found, 1), "rss_before_mib": round(before, 1),
        "most_rss_mib": round(resident_mib("VmHWM"), 1), "seconds": round(seconds, 1),
    }  # fmt: skip


def main() -> None:
    kind, *rest = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        if kind == "streams":
            url, protocol, count = rest
            found = asyncio.run(streams(url, protocol, int(count), Path(name)))
        else:
            found = sleepers(int(rest[0]), Path(name))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
