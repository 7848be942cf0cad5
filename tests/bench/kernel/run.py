"""RPCs a second and memory of the kernel beside `grpc.aio`: `make bench-kernel`.

The kernel (release build, store in memory) and a server of `grpc.aio` with the same logic in dictionaries take turns.
Each has a processor of its own where there are two, the load the others. The load is 8 connections with 32 calls
at once each, a mixture of four RPCs: create a process, get it, record usage, count. Every answer is read, and a failed
call ends the run. The load is a program in Rust without a library of gRPC, cheaper than both servers; its share of its
processors is printed. Each server counts with its median round. Memory is that of 100,000 processes with
names and quota, created in a fresh kernel. The last line is JSON:

    rpcs_per_second        by server
    vs_grpc_aio            those of the kernel, in those of grpc.aio; the bar is 10
    p99_us                 of an RPC under this load, by server
    processor_us           processor time of the server an RPC, which other work on the machine disturbs less
    bytes_per_process      resident memory of 100,000 processes, without that of the kernel itself; at most 1,024
    load_processor_share   of the load, by server; near 1 the load is the limit, not the server
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import compact_json  # noqa: E402  # after the path is set

FILE = ROOT / "docs" / "benchmarks" / "kernel.json"
TARGET = ROOT / "direct_runtime" / "target"
PROGRAM, LOAD = TARGET / "release" / "vesper-kernel", TARGET / "release" / "examples" / "load"
KERNEL, RIVAL = "kernel", "grpc_aio"
CONNECTIONS, AT_ONCE = 8, 32
ROUNDS, SECONDS, WARM_SECONDS = 5, 4.0, 1.0
PROCESSES = 100_000
BARS = {"vs_grpc_aio": 10.0, "bytes_per_process": 1024.0}
_LISTENING = "listening on "


def build() -> None:
    """Build kernel and load, as for users."""
    command = ["cargo", "build", "--quiet", "--release", "--locked", "--package", "vesper-kernel-grpc"]
    manifest = ["--manifest-path", str(ROOT / "direct_runtime" / "Cargo.toml"), "--target-dir", str(TARGET)]
    subprocess.run([*command, *manifest, "--bin", "vesper-kernel", "--example", "load"], check=True)


class Server:
    """A process that prints its address."""

    def __init__(self, command: list[str], processors: set[int]) -> None:
        names = [name for name in os.environ if name.startswith("VESPER_KERNEL_")]
        environment = {name: value for name, value in os.environ.items() if name not in names}
        environment["VESPER_KERNEL_LISTEN"] = "127.0.0.1:0"
        own = os.sched_getaffinity(0)
        os.sched_setaffinity(0, processors)  # the server inherits it, before it counts processors
        try:
            self._process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        finally:
            os.sched_setaffinity(0, own)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith(_LISTENING):
            raise RuntimeError(f"{command[0]} does not listen: {line!r}")
        self.address = line.removeprefix(_LISTENING).strip()

    def processor_seconds(self) -> float:
        # After the name in parentheses, which may hold anything: state is the third field, utime the 14th.
        fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_bytes(self) -> int:
        pages = Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@dataclass
class Measured:
    """What the rounds of one server found."""

    rate: list[float] = field(default_factory=list)
    p50_us: list[int] = field(default_factory=list)
    p99_us: list[int] = field(default_factory=list)
    load_share: list[float] = field(default_factory=list)
    processor_us: list[float] = field(default_factory=list)
    """Of the server, an RPC."""


def load(address: str, processors: set[int], *arguments: str) -> tuple[dict[str, Any], float]:
    """Run the load; return its last line and its processor time in elapsed time."""
    command = [str(LOAD), address, str(CONNECTIONS), str(AT_ONCE), *arguments]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    os.sched_setaffinity(process.pid, processors)
    text, _ = process.communicate()
    elapsed, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise RuntimeError(text.strip())
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(text.splitlines()[-1]), spent / elapsed / len(processors)


def measure(rounds: int, seconds: float, own: set[int], others: set[int]) -> dict[str, Measured]:
    """Let kernel and rival take turns, `rounds` times, each time as new processes."""
    commands = {KERNEL: [str(PROGRAM)], RIVAL: [sys.executable, "-m", "tests.bench.kernel.aio_server"]}
    found = {name: Measured() for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            with Server(command, own) as server:
                load(server.address, others, "0", str(WARM_SECONDS))
                before = server.processor_seconds()
                last, share = load(server.address, others, "0", str(seconds))
                spent = server.processor_seconds() - before
            if not last["rpcs"]:
                raise RuntimeError(f"{name} answered nothing within {seconds} s")
            each = found[name]
            each.processor_us.append(spent * 1e6 / last["rpcs"])
            each.rate.append(last["rpcs"] / last["seconds"])
            each.p50_us.append(last["p50_us"])
            each.p99_us.append(last["p99_us"])
            each.load_share.append(share)
    return found


def bytes_per_process(count: int, processors: set[int]) -> float:
    with ExitStack() as stack:
        server = stack.enter_context(Server([str(PROGRAM)], processors))
        # Connections and their buffers are there before, in the same number.
        load(server.address, processors, "create", str(CONNECTIONS * AT_ONCE))
        before = server.rss_bytes()
        load(server.address, processors, "create", str(count))
        return (server.rss_bytes() - before) / count


def summary(found: Mapping[str, Measured], memory: float) -> dict[str, Any]:
    """Return the figures of the last line."""
    rate = {name: round(statistics.median(each.rate)) for name, each in found.items()}
    return {
        "rpcs_per_second": rate,
        "vs_grpc_aio": round(rate[KERNEL] / rate[RIVAL], 2),
        "p99_us": {name: round(statistics.median(each.p99_us)) for name, each in found.items()},
        "p50_us": {name: round(statistics.median(each.p50_us)) for name, each in found.items()},
        "processor_us": {name: round(statistics.median(each.processor_us), 1) for name, each in found.items()},
        "bytes_per_process": round(memory),
        "load_processor_share": {name: round(statistics.median(each.load_share), 2) for name, each in found.items()},
    }


def missed(last: Mapping[str, Any]) -> list[str]:
    """Return the bars that are not reached."""
    found = []
    if last["vs_grpc_aio"] < BARS["vs_grpc_aio"]:
        found.append(f"{last['vs_grpc_aio']} times the RPCs of grpc.aio, the bar is {BARS['vs_grpc_aio']:g}")
    if last["bytes_per_process"] > BARS["bytes_per_process"]:
        found.append(f"{last['bytes_per_process']} bytes a process, the bar is {BARS['bytes_per_process']:g}")
    if last["p99_us"][KERNEL] >= last["p99_us"][RIVAL]:
        found.append(f"p99 of {last['p99_us'][KERNEL]} µs, that of grpc.aio is {last['p99_us'][RIVAL]} µs")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round of a second")
    parser.add_argument("--update", action="store_true", help=f"write {FILE.relative_to(ROOT)}")
    given = parser.parse_args()
    rounds, seconds = (1, 1.0) if given.quick else (ROUNDS, SECONDS)
    build()
    processors = sorted(os.sched_getaffinity(0))
    own, others = set(processors[-1:]), set(processors[:-1] or processors)
    print(f"servers on processor {own}, load on {others}; Python {sys.version.split()[0]}")
    found = measure(rounds, seconds, own, others)
    last = summary(found, bytes_per_process(PROCESSES, set(processors)))
    for name, each in found.items():
        rates = " ".join(f"{rate:,.0f}" for rate in each.rate)
        print(f"{name:9} {last['rpcs_per_second'][name]:8,} RPCs/s ({rates}), p99 {last['p99_us'][name]:,} µs")
    problems = missed(last)
    for problem in problems:
        print(f"BELOW THE BAR: {problem}")
    if given.update:
        FILE.write_text(compact_json({**last, "python": sys.version.split()[0]}), encoding="utf-8")
    print(json.dumps(last))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
