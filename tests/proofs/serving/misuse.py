"""`make proof-http`: `vesper serve` against clients that misbehave, beside a proper one that must not notice.

Slow heads, slow bodies, clients that never read, oversized, malformed and smuggled requests, 15,000 connections that
are held open, then 60 minutes of fuzzed requests (`fuzz`). In all of it no worker ends, memory is bounded, no answer
is a 500 or no HTTP, every attack is refused, and the proper client has every answer.

The fuzzing is resumable: its state is in `.proofs/http/`. `--show NUMBER` prints a request of a seed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import STATE, engine_hash, read_json, whole_hash, write_json, write_proof  # noqa: E402
from tests.proofs.serving.attacks import MALFORMED, OVERSIZED, SMUGGLED, post  # noqa: E402
from tests.proofs.serving.fuzz import draw  # noqa: E402
from tests.proofs.serving.hostile import (  # noqa: E402
    ANSWER_SECONDS,
    Neighbour,
    attack_problem,
    drip,
    hold,
    never_read,
    talk,
)
from tests.support.serving import Serving, vesper_serve  # noqa: E402
from tests.support.waiting import eventually  # noqa: E402

NAME = "http"
NODE = ROOT / "nodes" / "payments" / "payment_decision_v1.vsp"
SECONDS, CONNECTIONS, WORKERS = 3600.0, 15_000, 2
SLOW_CLIENTS = 200
AT_ONCE, FUZZED_AT_ONCE = 16, 64
LIMIT_MIB = 400
"""Of each process, whatever clients do."""
SAVE_SECONDS = 10.0
PROGRESS = STATE / NAME / "state.json"
# Timeouts that a proof can wait for; everything else is what users have.
CONFIG = """\
[serve.limits]
head_timeout = "2s"
body_timeout = "2s"
write_timeout = "2s"
"""


class Watched:
    """The server, its first workers, and what went wrong so far."""

    def __init__(self, server: Serving) -> None:
        self.server = server
        self.neighbour = Neighbour(server.port)
        eventually(lambda: len(server.workers()) == WORKERS)
        self.workers = set(server.workers())
        self.problems: list[str] = []
        self.largest_mib = 0.0

    def look(self, where: str) -> None:
        """Check that the same processes run, in bounded memory."""
        now = set(self.server.workers())
        if now != self.workers:
            self.problems.append(
                f"{where}: workers {sorted(self.workers)} became {sorted(now)}: {self.server.text()[-800:]}"
            )
            self.workers = now
        largest = self.server.largest_mib()
        if largest > LIMIT_MIB:
            self.problems.append(f"{where}: a process has {largest:.0f} MiB; {LIMIT_MIB} MiB is the limit")
        self.largest_mib = max(self.largest_mib, largest)
        self.problems += [f"{where}: the proper client: {each}" for each in self.neighbour.problems]
        self.neighbour.problems.clear()


async def attacks(watched: Watched) -> int:
    """Send every attack; return their number."""
    port = watched.server.port
    all_of_them = [*MALFORMED, *OVERSIZED, *SMUGGLED]
    async with watched.neighbour.beside():
        for start in range(0, len(all_of_them), AT_ONCE):
            found = await asyncio.gather(*(attack_problem(port, each) for each in all_of_them[start : start + AT_ONCE]))
            watched.problems += filter(None, found)
    watched.look("attacks")
    return len(all_of_them)


async def slow_clients(watched: Watched, count: int) -> dict[str, int]:
    """Hold `count` connections of each kind slowly; all must be ended by the server."""
    port = watched.server.port
    patience = 3 * ANSWER_SECONDS
    head = b"POST / HTTP/1.1\r\nHost: x\r\nX-A: "
    body = post("Content-Length: 100000", has_length=False, body=b"{")
    unread = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
    kinds: dict[str, Callable[[], Any]] = {
        "slow_heads": lambda: drip(port, head, b"a", 0.5, patience),
        "slow_bodies": lambda: drip(port, body, b" ", 0.5, patience),
        "silent": lambda: drip(port, b"", b"", 0.5, patience),
        "never_reading": lambda: never_read(port, unread, 5_000, patience),
    }
    found = {}
    async with watched.neighbour.beside():
        for name, client in kinds.items():
            ended = await asyncio.gather(*(client() for _ in range(count)))
            found[name] = sum(ended)
            if not all(ended):
                watched.problems.append(f"{name}: {count - sum(ended)} of {count} were not ended within {patience:g} s")
            watched.look(name)
    return found


async def many_connections(watched: Watched, count: int) -> dict[str, Any]:
    """Hold this many connections open, each after one answer, and let go of them."""
    before = watched.server.largest_mib()
    async with watched.neighbour.beside():
        begun = time.monotonic()
        held = await hold(watched.server.port, count)
        seconds = time.monotonic() - begun
        await asyncio.sleep(2)
        during = watched.server.largest_mib()
        alive = sum(not reader.at_eof() for reader, _ in held)
        for _, writer in held:
            writer.close()
    watched.look(f"{count} connections")
    if alive < count:
        watched.problems.append(f"{alive} of {count} connections were held")
    return {
        "held": alive,
        "opened_within_seconds": round(seconds, 1),
        "worker_mib": [round(before, 1), round(during, 1)],
    }


async def fuzz(watched: Watched, seed: int, seconds: float, is_kept: bool) -> dict[str, Any]:
    """Send drawn requests for this long in all, with what earlier runs did."""
    known = (read_json(PROGRESS) or {}) if is_kept else {}
    if (known.get("seed"), known.get("engine_hash")) != (seed, engine_hash()):
        known = {"seed": seed, "engine_hash": engine_hash(), "next": 0, "seconds": 0.0, "statuses": {}}
    statuses: Counter[str] = Counter(known["statuses"])
    begun, saved = time.monotonic(), time.monotonic()
    before, problems_before = known["seconds"], len(watched.problems)

    def state() -> dict[str, Any]:
        spent = before + time.monotonic() - begun
        return {**known, "seconds": round(spent, 1), "statuses": dict(sorted(statuses.items()))}

    async def one(number: int) -> None:
        drawn = draw(seed, number)
        try:
            found = await talk(watched.server.port, drawn.pieces, 0.3, drawn.pause, drawn.ends)
        except OSError as problem:
            watched.problems.append(f"request {number}: {type(problem).__name__}: {problem}")
            return
        if found.data and not found.data.startswith(b"HTTP/1.1 "):
            watched.problems.append(f"request {number}: no HTTP: {found.data[:100]!r}")
        statuses.update([str(each) for each in found.statuses] or ["none"])
        if 500 in found.statuses:
            watched.problems.append(f"request {number}: {found.data[:300]!r}")

    async with watched.neighbour.beside():
        while before + time.monotonic() - begun < seconds and len(watched.problems) < problems_before + 20:
            # Strictly in order, so that a resumed run omits none.
            await asyncio.gather(*(one(known["next"] + step) for step in range(FUZZED_AT_ONCE)))
            known["next"] += FUZZED_AT_ONCE
            if time.monotonic() - saved > SAVE_SECONDS:
                saved = time.monotonic()
                watched.look(f"fuzzed requests before {known['next']}")
                if is_kept:
                    write_json(PROGRESS, state())
    watched.look("fuzzed requests")
    if is_kept:
        write_json(PROGRESS, state())
    found = state()
    return {"requests": found["next"], "seconds": found["seconds"], "statuses": found["statuses"]}


async def run(server: Serving, given: argparse.Namespace, is_sample: bool) -> dict[str, Any]:
    watched = Watched(server)
    found: dict[str, Any] = {"attacks": await attacks(watched)}
    print(f"{found['attacks']} attacks, {len(watched.problems)} problems", flush=True)
    found["slow"] = await slow_clients(watched, max(4, given.connections * SLOW_CLIENTS // CONNECTIONS))
    print(f"slow clients ended: {found['slow']}", flush=True)
    found["connections"] = await many_connections(watched, given.connections)
    print(f"connections: {found['connections']}", flush=True)
    found["fuzz"] = await fuzz(watched, given.seed, given.seconds, is_kept=not is_sample)
    return {
        **found,
        "proper_client": {"requests": watched.neighbour.requests, "longest_ms": round(watched.neighbour.longest_ms, 1)},
        "largest_mib": round(watched.largest_mib, 1),
        "problems": watched.problems,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of fuzzing, with those of earlier runs (3600)")
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help="held at the same time (15,000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, metavar="NUMBER", help="print this fuzzed request and stop")
    given = parser.parse_args()
    if given.show is not None:
        print(draw(given.seed, given.show))
        return 0
    is_sample = given.seconds < SECONDS or given.connections < CONNECTIONS
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # the server inherits it
    if hard < given.connections + 1_000:
        print(f"error: {hard} open files are allowed here, and {given.connections} connections are wanted: ulimit -n")
        return 1
    begun = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="proof-http-")))
        (folder / "vesper.toml").write_text(CONFIG, encoding="utf-8")
        command = vesper_serve([NODE], "--workers", str(WORKERS), "--expose", "*", "--engine", "direct")
        server = stack.enter_context(Serving(command, "/readyz", folder))
        found = asyncio.run(run(server, given, is_sample))
        code = server.stop()
    if code:
        found["problems"].append(f"the server ended with {code}")
    found = {"source_hash": whole_hash(), "engine_hash": engine_hash(), "seed": given.seed, **found}
    found["elapsed_seconds"] = round(time.monotonic() - begun, 1)
    print(json.dumps(found, indent=2))
    for problem in found["problems"]:
        print(f"FAILED: {problem}")
    if not found["problems"] and not is_sample:
        write_proof(NAME, found)
    return bool(found["problems"])


if __name__ == "__main__":
    sys.exit(main())
