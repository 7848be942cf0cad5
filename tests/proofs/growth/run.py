"""Run every way to grow on every engine, at default limits, each in a child process of its own.

Every engine must end with the same limit, within twice the memory limit and 60 MB, and ten seconds of processor.

    python -m tests.proofs.growth.run [WAY ...]
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from typing import Any

from tests.proofs.growth.ways import WAYS, write_node
from tests.proofs.robustness.proof import write_proof
from vesper.compiler import compile_source
from vesper.engines.registry import ENGINES as LOADED
from vesper.language.diagnostics.source import SourceFile

ENGINES = ("python", "interp", "jit")
MAX_BYTES = 2 * 256 * 1024 * 1024 + 60_000_000
MAX_SECONDS = 10.0
_ADDRESS_SPACE = 3 * 1024**3
"""Safety net: a process that grows past it fails."""
_TIMEOUT_SECONDS = 300


def measure(way: str, engine: str) -> dict[str, Any]:
    """Return the outcome, the peak above the base, and the processor time of a run in a child process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        signal.alarm(_TIMEOUT_SECONDS)
        with os.fdopen(writer, "w") as out:
            out.write(json.dumps(run_here(way, engine)))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as found:
        text = found.read()
    _, status = os.waitpid(child, 0)
    if status != 0 or not text:
        return {"outcome": f"exit status {status}", "bytes": 0, "seconds": 0.0}
    measured: dict[str, Any] = json.loads(text)
    return measured


def run_here(way: str, engine: str) -> dict[str, Any]:
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    node, bag = compile_source(SourceFile("growing.vsp", write_node(way)))
    assert node is not None, [str(each) for each in bag.sorted()]
    program = LOADED[engine].load(node)
    before = resource.getrusage(resource.RUSAGE_SELF)
    outcome = program.call({"n": 1})
    after = resource.getrusage(resource.RUSAGE_SELF)
    text = f"{outcome.kind}:{getattr(outcome, 'limit', getattr(outcome, 'code', ''))}"
    return {
        "outcome": text,
        "bytes": (after.ru_maxrss - before.ru_maxrss) * 1024,
        "seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2),
    }


def find_problems(way: str, found: dict[str, dict[str, Any]]) -> list[str]:
    """Return what a way breaks."""
    problems = []
    outcomes = {engine: each["outcome"] for engine, each in found.items()}
    if len(set(outcomes.values())) != 1:
        problems.append(f"{way}: the engines end differently: {outcomes}")
    if not all(each.startswith("limit_hit:") for each in outcomes.values()):
        problems.append(f"{way}: no limit was hit: {outcomes}")
    for engine, each in found.items():
        if each["bytes"] > MAX_BYTES:
            problems.append(f"{way}: {engine} took {each['bytes']:,} bytes")
        if each["seconds"] > MAX_SECONDS:
            problems.append(f"{way}: {engine} took {each['seconds']} s of processor")
    return problems


def main(ways: list[str]) -> int:
    problems: list[str] = []
    peak, longest, limits = dict.fromkeys(ENGINES, 0), dict.fromkeys(ENGINES, 0.0), dict[str, int]()
    for way in ways or WAYS:
        found = {engine: measure(way, engine) for engine in ENGINES}
        problems += find_problems(way, found)
        for engine, each in found.items():
            peak[engine] = max(peak[engine], each["bytes"])
            longest[engine] = max(longest[engine], each["seconds"])
        ended = found["python"]["outcome"]
        limits[ended] = limits.get(ended, 0) + 1
        shown = ", ".join(f"{each['bytes'] / 1e6:.0f} MB {each['seconds']} s" for each in found.values())
        print(f"{way}: {ended}; {shown}", flush=True)
    summary = {"ways": len(ways or WAYS), "ended": limits, "peak_bytes": peak, "seconds": longest, "problems": problems}
    if not ways:
        write_proof("growth", summary)
    print(json.dumps(summary, indent=1))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
