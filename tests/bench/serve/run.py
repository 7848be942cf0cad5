"""`make bench-serve`: W1 by POST on loopback, `vesper serve` beside a handler of axum and the frameworks of Python.

Every server has one worker, on a processor of its own where there are two; wrk is on the others. Every answer is
checked before anything is measured. Rounds of all of them take turns; the cost is the processor time of the server's
processes a request, of the best round. Latency is measured at 1,000 requests a second, in rounds too: the median round
counts. The last line is JSON:

    vs_axum         requests that a processor serves, of those of axum
    vs_fastapi      the same, of those of FastAPI on uvicorn with pydantic
    vs_others       the same, of the best of Litestar, BlackSheep and Robyn
    p99_us          at 1,000 requests a second, by server
    worker_mib      resident memory of the largest process, by server
    is_quickest     whether the p99 of `vesper serve` is below that of every rival in Python
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.bench.ours import requests_of  # noqa: E402  # after the path is set
from tests.bench.serve.contestants import OTHERS, VESPER, Contestant, build_axum, contestants  # noqa: E402
from tests.bench.workloads import W1, Wrong  # noqa: E402
from tests.support.serving import Serving  # noqa: E402

SCRIPT = Path(__file__).with_name("load.lua")
CONNECTIONS = 16
RATE = 1000
PACED_CONNECTIONS = 20
BARS = {"vs_axum": 0.6, "vs_fastapi": 12.0, "vs_others": 5.0}


@dataclass
class Measured:
    """What the rounds of one server found."""

    processor_us: list[float] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)
    paced_rate: list[float] = field(default_factory=list)
    p50_us: list[int] = field(default_factory=list)
    p99_us: list[int] = field(default_factory=list)
    mib: float = 0.0

    @property
    def cost(self) -> float:
        return min(self.processor_us)


def check(contestant: Contestant, server: Serving) -> None:
    """Raise `Wrong` unless every input has the right answer, and every bad one is refused."""
    for each in W1.inputs:
        status, found = server.post(contestant.path, each)
        expected = W1.reference(each)
        is_right = status == 200 and all(
            Decimal(found[name]) == value if isinstance(value, Decimal) else found[name] == value
            for name, value in expected.items()
        )
        if not is_right:
            raise Wrong(f"{contestant.name}: {status} {found} on {each}; expected {expected}")
    for each in W1.bad:
        status, _, body = server.request("POST", contestant.path, json.dumps(each, default=str).encode())
        if not 400 <= status < 500:
            raise Wrong(f"{contestant.name}: {status} {body!r} on {each}, which breaks a precondition")


def wrk(url: str, bodies: Path, connections: int, seconds: float, pause_ms: int | None = None) -> dict[str, Any]:
    """Send requests; return what load.lua prints at the end. Raises `Wrong` where some failed."""
    paced = [] if pause_ms is None else [str(pause_ms)]
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "-s", str(SCRIPT), url, "--", str(bodies), *paced]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if found["failed"] or not found["requests"]:
        raise Wrong(f"{url}: {found['failed']} of {found['requests']} requests failed")
    return found


def measure(servers: dict[str, tuple[Contestant, Serving]], rounds: int, seconds: float) -> dict[str, Measured]:
    """Let the servers take turns, `rounds` times."""
    found = {name: Measured() for name in servers}
    with tempfile.NamedTemporaryFile("wb", suffix=".jsonl") as bodies:
        bodies.write(b"\n".join(requests_of(W1)) + b"\n")
        bodies.flush()
        path = Path(bodies.name)
        for number in range(rounds + 1):
            for name, (contestant, server) in servers.items():
                url = f"http://127.0.0.1:{server.port}{contestant.path}"
                before = server.processor_seconds()
                busy = wrk(url, path, CONNECTIONS, seconds)
                spent = server.processor_seconds() - before
                paced = wrk(url, path, PACED_CONNECTIONS, seconds, PACED_CONNECTIONS * 1000 // RATE)
                if number == 0:
                    continue  # warm
                each = found[name]
                each.processor_us.append(spent * 1e6 / busy["requests"])
                each.rate.append(busy["requests"] / busy["seconds"])
                each.paced_rate.append(paced["requests"] / paced["seconds"])
                each.p50_us.append(paced["p50_us"])
                each.p99_us.append(paced["p99_us"])
                each.mib = server.largest_mib()
    return found


def ratios(found: dict[str, Measured]) -> dict[str, Any]:
    ours = found[VESPER].cost

    def against(*names: str) -> float | None:
        here = [found[name].cost for name in names if name in found]
        return round(min(here) / ours, 3) if here else None

    p99 = {name: round(statistics.median(each.p99_us)) for name, each in found.items()}
    python = [p99[name] for name in ("fastapi", *OTHERS) if name in p99]
    return {
        "vs_axum": against("axum"),
        "vs_fastapi": against("fastapi"),
        "vs_others": against(*OTHERS),
        "processor_us": {name: round(each.cost, 2) for name, each in found.items()},
        "p99_us": p99,
        "worker_mib": {name: round(each.mib, 1) for name, each in found.items()},
        "is_quickest": bool(python) and p99[VESPER] < min(python),
    }


def print_table(found: dict[str, Measured]) -> None:
    print("server      processor a request   spread   requests/s   p50 and p99 at the rate    memory")
    for name, each in found.items():
        spread = statistics.median(each.processor_us) / each.cost
        print(
            f"{name:<11} {each.cost:16.2f} µs {spread:8.2f} {max(each.rate):12,.0f} "
            f"{statistics.median(each.p50_us):7.0f} {statistics.median(each.p99_us):7.0f} µs at "
            f"{statistics.median(each.paced_rate):5.0f}/s {each.mib:6.1f} MiB"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each of the two measurements of a round (3)")
    parser.add_argument("--quick", action="store_true", help="two rounds of a second")
    parser.add_argument("--only", nargs="+", metavar="SERVER", help="measure these")
    given = parser.parse_args()
    rounds, seconds = (2, 1) if given.quick else (given.rounds, given.seconds)
    build_axum()
    processors = sorted(os.sched_getaffinity(0))
    load, served = processors[:-1] or processors, processors[-1:]
    print(f"wrk on processors {load}, servers on {served}; Python {sys.version.split()[0]}")
    servers: dict[str, tuple[Contestant, Serving]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-serve-")))
        os.sched_setaffinity(0, served)  # the servers inherit it
        for each in contestants():
            if given.only and each.name not in given.only:
                continue
            server = stack.enter_context(Serving(each.command, "/livez", folder))
            servers[each.name] = each, server
        os.sched_setaffinity(0, load)
        try:
            for each, server in servers.values():
                check(each, server)
            found = measure(servers, rounds, seconds)
        except Wrong as problem:
            print(f"error: {problem}", file=sys.stderr)
            return 1
    print_table(found)
    if VESPER not in found:
        return 0
    last = ratios(found)
    for name, bar in BARS.items():
        if last[name] is not None and last[name] < bar:
            print(f"BELOW THE BAR: {name} is {last[name]}, the bar is {bar}")
    print(json.dumps(last))
    return 0


if __name__ == "__main__":
    sys.exit(main())
