"""Time to the first chunk of an agent, and its memory: `make bench-agents`, or `python -m tests.bench.agents.run`.

A loopback provider with a processor of its own streams answers over the protocols of OpenAI and Anthropic, the first
chunk after 50 ms and then one every 10 ms. Each contestant is a process with the same task: a system prompt, a
question, and the parts of the answer as they come, in 8 streams at once. Its overhead is the time to the first chunk
without the provider's own and without that of a bare socket client in the same run. Contestants take turns; each
counts with the median of its rounds. The last line is JSON:

    first_chunk_overhead_ms_p95   by protocol and contestant; ours at most 5
    vs_sdk                        overhead of the official SDK, in ours, the smaller one of both protocols; at least 1
    vs_others                     the same, of the best of Pydantic AI and LangGraph
    rss_mib                       most memory of each process; ours below Pydantic AI and LangGraph
    streams_1000_rss_mib          of one process of ours with 1,000 streams open at once; at most 200 MB
    sleeping_agents_rss_mib       of one process of ours with 10,000 supervised agents whose runs sleep
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.bench.agents.provider import Pace  # noqa: E402  # after the path is set
from tests.proofs.robustness.proof import compact_json  # noqa: E402

FILE = ROOT / "docs" / "benchmarks" / "agents.json"
PACE = Pace(first=0.05, gap=0.01, chunks=20)
STREAMS, QUESTIONS, ROUNDS, WARM = 8, 12, 6, 4
CROWD, SLEEPERS = 1000, 10_000
OURS, BARE, SDK = "vesper", "bare", "sdk"
OTHERS = ("pydantic_ai", "langgraph")
MODULES = {OURS: "vesper_agent", BARE: "bare", SDK: "sdk", "pydantic_ai": "pydantic_ai_agent",
           "langgraph": "langgraph_agent"}  # fmt: skip
CONTESTANTS = {"openai": tuple(MODULES), "anthropic": tuple(name for name in MODULES if name != "langgraph")}
MAX_OVERHEAD_MS, MAX_CROWD_MIB = 5.0, 200e6 / 2**20


class Process:
    """A program that answers each line of its standard input with one line."""

    def __init__(self, module: str, *arguments: str, processors: set[int] | None = None) -> None:
        command = [sys.executable, "-m", f"tests.bench.agents.{module}", *arguments]
        self._module = module
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "NO_PROXY": "*", "no_proxy": "*"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if processors is not None:
            os.sched_setaffinity(self._process.pid, processors)

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._module} ended with {self._process.wait()}")
        return line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@dataclass
class Measured:
    """What the rounds of one contestant found with one protocol."""

    p50_ms: list[float] = field(default_factory=list)
    p95_ms: list[float] = field(default_factory=list)
    processor_ms: list[float] = field(default_factory=list)
    rss_mib: float = 0.0

    def add(self, answer: Mapping[str, Any]) -> None:
        found = answer["overheads_ms"]
        self.p50_ms.append(statistics.median(found))
        self.p95_ms.append(statistics.quantiles(found, n=20)[-1])
        self.processor_ms.append(answer["processor_ms"])
        self.rss_mib = max(self.rss_mib, answer["rss_mib"])


Found = dict[str, dict[str, Measured]]
"""By protocol and contestant."""


def measure(url: str, questions: int, rounds: int, processors: set[int]) -> Found:
    """Let all contestants take turns, `rounds` times."""
    found: Found = {protocol: {name: Measured() for name in names} for protocol, names in CONTESTANTS.items()}
    with ExitStack() as stack:
        processes = {
            (protocol, name): stack.enter_context(
                Process(MODULES[name], url, protocol, PACE.model, processors=processors)
            )
            for protocol, names in CONTESTANTS.items()
            for name in names
        }
        for process in processes.values():
            process.tell(f"{STREAMS} {WARM} 0")
            process.line()
        for number in range(1, rounds + 1):
            for (protocol, name), process in processes.items():
                process.tell(f"{STREAMS} {questions} {number * STREAMS}")
                found[protocol][name].add(json.loads(process.line()))
    return found


def crowd(*arguments: str, processors: set[int]) -> dict[str, Any]:
    with Process("crowds", *arguments, processors=processors) as process:
        answer: dict[str, Any] = json.loads(process.line())
        return answer


def summary(found: Found, streams: Mapping[str, Any], sleepers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of the last line."""
    overheads = {
        protocol: {
            name: round(statistics.median(each.p95_ms) - statistics.median(names[BARE].p95_ms), 3)
            for name, each in names.items()
            if name != BARE
        }
        for protocol, names in found.items()
    }

    def against(*names: str) -> float:
        ratios = [
            min(each[name] for name in names if name in each) / max(each[OURS], 0.001) for each in overheads.values()
        ]
        return round(min(ratios), 2)

    return {
        "first_chunk_overhead_ms_p95": overheads,
        "vs_sdk": against(SDK),
        "vs_others": against(*OTHERS),
        "bare_ms_p95": {protocol: round(statistics.median(each[BARE].p95_ms), 3) for protocol, each in found.items()},
        "rss_mib": {
            protocol: {name: round(each.rss_mib, 1) for name, each in names.items()}
            for protocol, names in found.items()
        },
        "streams_1000_rss_mib": streams["rss_mib"],
        "streams_1000": dict(streams),
        "sleeping_agents_rss_mib": sleepers["rss_mib"],
        "sleeping_agents": dict(sleepers),
    }


def missed(last: Mapping[str, Any]) -> list[str]:
    """Return the bars that are not reached."""
    found = []
    for protocol, each in last["first_chunk_overhead_ms_p95"].items():
        if each[OURS] > MAX_OVERHEAD_MS:
            found.append(f"{protocol}: overhead of {each[OURS]} ms, the bar is {MAX_OVERHEAD_MS}")
        found += [
            f"{protocol}: overhead of {each[OURS]} ms, {name} has {other}"
            for name, other in each.items()
            if name != OURS and other < each[OURS]
        ]
        memory = last["rss_mib"][protocol]
        found += [
            f"{protocol}: {memory[OURS]} MiB, {name} has {memory[name]}"
            for name in OTHERS
            if name in memory and memory[name] <= memory[OURS]
        ]
    if last["streams_1000_rss_mib"] > MAX_CROWD_MIB:
        found.append(f"1,000 streams: {last['streams_1000_rss_mib']} MiB, the bar is {MAX_CROWD_MIB:.1f}")
    if last["streams_1000"]["open_at_once"] < last["streams_1000"]["streams"]:
        found.append(f"only {last['streams_1000']['open_at_once']} streams were open at once")
    return found


def print_table(found: Found) -> None:
    print("protocol   contestant     p50 ms   p95 ms   processor ms a question   memory")
    for protocol, names in found.items():
        for name, each in names.items():
            print(
                f"{protocol:10} {name:12} {statistics.median(each.p50_ms):8.2f} {statistics.median(each.p95_ms):8.2f} "
                f"{min(each.processor_ms):25.2f} {each.rss_mib:8.1f} MiB"
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round, 100 streams, 300 sleeping agents")
    parser.add_argument("--update", action="store_true", help=f"write {FILE.relative_to(ROOT)}")
    given = parser.parse_args()
    rounds, streams, sleeping = (1, 100, 300) if given.quick else (ROUNDS, CROWD, SLEEPERS)
    processors = sorted(os.sched_getaffinity(0))
    own, others = set(processors[-1:]), set(processors[:-1] or processors)
    with Process("provider", processors=own) as provider:
        url = f"http://127.0.0.1:{int(provider.line())}"
        found = measure(url, QUESTIONS, rounds, others)
        open_streams = crowd("streams", url, "openai", str(streams), processors=others)
    asleep = crowd("sleepers", str(sleeping), processors=set(processors))
    print_table(found)
    last = summary(found, open_streams, asleep)
    problems = missed(last)
    for each in problems:
        print(f"BELOW THE BAR: {each}")
    if given.update:
        FILE.write_text(compact_json({**last, "python": sys.version.split()[0]}), encoding="utf-8")
    print(json.dumps(last))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
