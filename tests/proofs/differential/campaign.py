"""`make proof-differential`: a million inputs of nodes and twenty thousand random programs, on every engine.

The work is cut into units, some thousand inputs of one node or some dozen programs each, that depend on the seed and
their number alone. Processes of their own take one after the other, so that a unit that takes its process down is
noticed and named. What is done is kept under `.proofs/`; the same command goes on where it was stopped, unless the
sources have changed since. A clean run of full length writes `docs/proofs/differential.json`; a shorter one only
prints.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import (  # noqa: E402  # after the path
    PROOFS,
    STATE,
    read_json,
    rust_sources,
    source_hash,
    write_json,
)
from tests.support.nodes import compiled, worked_nodes, written_for_tests  # noqa: E402
from vesper.cache.node_facts import Facts  # noqa: E402
from vesper.cli.verify.text import broken_text, case_text, difference_text, failure_text  # noqa: E402
from vesper.compiler import Compiled  # noqa: E402
from vesper.verify.differential.forms import COMPARED  # noqa: E402
from vesper.verify.differential.regressions import save_program, save_regression  # noqa: E402
from vesper.verify.differential.verifier import Verifier  # noqa: E402
from vesper.verify.programs.campaign import verify_programs  # noqa: E402

NAME = "differential"
EXECUTIONS = 1_000_000
PROGRAMS = 20_000
INPUTS_PER_PROGRAM = 10
SEED = 20_261_115
NODE_UNIT = 4_000
PROGRAM_UNIT = 50
_ALLOCATIONS = 200_000
KEPT = ROOT / "tests" / "conformance" / "regressions"


@dataclass(frozen=True)
class Unit:
    """`name` is what it is known by in the state; `first` numbers its seeds."""

    name: str
    node: str | None
    first: int
    count: int


def node_paths() -> dict[str, Path]:
    return {path.stem: path for path in (*worked_nodes(), *written_for_tests())}


def units(executions: int, programs: int) -> list[Unit]:
    """Rounds over all nodes, then programs; the kinds alternate, so that a stopped campaign has seen some of both."""
    names = list(node_paths())
    each = -(-executions // len(names))
    of_nodes = [
        Unit(f"{name} {first}", name, first, min(NODE_UNIT, each - first))
        for first in range(0, each, NODE_UNIT)
        for name in names
    ]
    of_programs = [
        Unit(f"programs {first}", None, first, min(PROGRAM_UNIT, programs - first))
        for first in range(0, programs, PROGRAM_UNIT)
    ]
    total = len(of_nodes) + len(of_programs)
    ordered = [(position / len(kind), unit) for kind in (of_nodes, of_programs) for position, unit in enumerate(kind)]
    assert len(ordered) == total
    return [unit for _, unit in sorted(ordered, key=lambda pair: pair[0])]


def sources() -> str:
    """The hash that every proof has, and the Rust sources: half of what is compared is written there."""
    digest = hashlib.sha256(source_hash().encode())
    for path in rust_sources():
        digest.update(f"{path.relative_to(ROOT).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()


# -- a worker: units come in as lines, what came of each goes out as one ---------------------------


def work(seed: int, keep: Path) -> None:
    os.nice(5)
    # Writing Python makes many objects and few rings of them: looking for rings takes a fifth of its time.
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS)
    for line in sys.stdin:
        unit = Unit(**json.loads(line))
        print(json.dumps(examined(unit, seed, keep)), flush=True)


def examined(unit: Unit, seed: int, keep: Path) -> dict[str, Any]:
    begun = time.process_time()
    found = _node_unit(unit, seed, keep) if unit.node is not None else _program_unit(unit, seed, keep)
    return found | {"processor_seconds": round(time.process_time() - begun, 2)}


@cache
def _kept(path: Path) -> Compiled:
    """The node, which keeps what is worked out about it: its Python is written once, and not for each of its units."""

    def keeping(node: Compiled) -> Compiled:
        return replace(node, callees=tuple(map(keeping, node.callees)), kept=Facts({}, lambda: None))

    return keeping(compiled(path))


def _node_unit(unit: Unit, seed: int, keep: Path) -> dict[str, Any]:
    assert unit.node is not None
    node = _kept(node_paths()[unit.node])
    report = Verifier(node, COMPARED, seed + unit.first).run(unit.count)
    failures = []
    for difference in report.differences:
        failures.append(difference_text(node, difference, save_regression(keep, node, difference)))
    failures += [broken_text(node, each) for each in report.broken]
    failures += [case_text(node, each) for each in report.case_failures]
    return {
        "executions": report.executions,
        "not_comparable": report.not_comparable,
        "outcomes": report.outcomes,
        "disagreements": len(report.differences),
        "failures": failures,
    }


def _program_unit(unit: Unit, seed: int, keep: Path) -> dict[str, Any]:
    report = verify_programs(COMPARED, unit.count, seed, INPUTS_PER_PROGRAM, first=unit.first, stop_after=PROGRAM_UNIT)
    failures = []
    for failure in report.failures:
        saved, case = save_program(keep, failure.text), None
        if failure.compiled is not None and failure.difference is not None:
            case = save_regression(keep, failure.compiled, failure.difference)
        failures.append(failure_text(failure, saved, case))
    return {
        "programs": report.programs,
        "executions": report.executions,
        "not_comparable": report.not_comparable,
        "outcomes": report.outcomes,
        "disagreements": sum(each.difference is not None for each in report.failures),
        "failures": failures,
    }


# -- all of them ----------------------------------------------------------------------------------


class Campaign:
    def __init__(self, seed: int, executions: int, programs: int, keep: Path, state_file: Path) -> None:
        self._seed, self._keep, self._state_file = seed, keep, state_file
        self.wanted = {"source_hash": sources(), "seed": seed, "executions": executions, "programs": programs}
        state = read_json(state_file) or {}
        if {name: state.get(name) for name in self.wanted} != self.wanted:
            state = {**self.wanted, "elapsed_seconds": 0.0, "units": {}}
        self.state: dict[str, Any] = state
        self.done: dict[str, dict[str, Any]] = state["units"]
        self._units = units(executions, programs)
        self._waiting: queue.SimpleQueue[Unit] = queue.SimpleQueue()
        for unit in self._units:
            if unit.name not in self.done:
                self._waiting.put(unit)
        self._lock = threading.Lock()
        self._begun, self._before = time.monotonic(), state["elapsed_seconds"]
        self._stopped = threading.Event()

    @property
    def is_complete(self) -> bool:
        return len(self.done) == len(self._units)

    def run(self, processes: int, seconds: float | None) -> None:
        workers = [threading.Thread(target=self._drive) for _ in range(processes)]
        for worker in workers:
            worker.start()
        try:
            while any(worker.is_alive() for worker in workers):
                time.sleep(0.1)
                if seconds is not None and time.monotonic() - self._begun > seconds:
                    self._stopped.set()
        finally:
            self._stopped.set()
            for worker in workers:
                worker.join()

    def _drive(self) -> None:
        """Keep one process busy until there is no more to do; a process that ends names the unit it was at."""
        process: subprocess.Popen[str] | None = None
        while not self._stopped.is_set():
            try:
                unit = self._waiting.get_nowait()
            except queue.Empty:
                break
            if process is None:
                command = [sys.executable, __file__, "--work", "--seed", str(self._seed), "--keep", str(self._keep)]
                process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            line = _ask(process, unit)
            if line:
                self._note(unit, json.loads(line))
                continue
            process.communicate()
            problem = f"{unit}: its process ended with {process.returncode}"
            self._note(unit, {"executions": 0, "not_comparable": 0, "outcomes": {}, "disagreements": 0,
                              "failures": [problem], "processor_seconds": 0.0})  # fmt: skip
            process = None
        if process is not None:
            process.communicate()

    def _note(self, unit: Unit, found: dict[str, Any]) -> None:
        with self._lock:
            self.done[unit.name] = found
            self.state["elapsed_seconds"] = round(self._before + time.monotonic() - self._begun, 1)
            write_json(self._state_file, self.state)
            if sys.stderr.isatty():
                share = len(self.done) / len(self._units)
                failures = sum(len(each["failures"]) for each in self.done.values())
                bar = "#" * round(share * 40)
                print(f"\r[{bar:<40}] {share:4.0%}, {failures} failures", end="", file=sys.stderr, flush=True)

    def proof(self) -> dict[str, Any]:
        """The numbers, of as much as is done."""
        of_nodes = [each for each in self.done.values() if "programs" not in each]
        of_programs = [each for each in self.done.values() if "programs" in each]
        outcomes: Counter[str] = Counter()
        for each in self.done.values():
            outcomes.update(each["outcomes"])
        return {
            "source_hash": self.wanted["source_hash"],
            "seed": self._seed,
            "engines": list(COMPARED),
            "nodes": len(node_paths()),
            "executions": sum(each["executions"] for each in of_nodes),
            "programs": sum(each["programs"] for each in of_programs),
            "program_executions": sum(each["executions"] for each in of_programs),
            "disagreements": sum(each["disagreements"] for each in self.done.values()),
            "failures": sum(len(each["failures"]) for each in self.done.values()),
            "not_comparable": sum(each["not_comparable"] for each in self.done.values()),
            "outcomes": dict(sorted(outcomes.items())),
            "processor_seconds": round(sum(each["processor_seconds"] for each in self.done.values()), 1),
            "elapsed_seconds": self.state["elapsed_seconds"],
        }

    def forget_failures(self) -> None:
        """What failed is to be examined again."""
        for name in [name for name, each in self.done.items() if each["failures"]]:
            del self.done[name]
        write_json(self._state_file, self.state)


def _ask(process: subprocess.Popen[str], unit: Unit) -> str:
    """What a worker answers; nothing where it has ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.write(json.dumps(vars(unit)) + "\n")
        process.stdin.flush()
    return process.stdout.readline()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=EXECUTIONS, help="inputs of nodes")
    parser.add_argument(
        "--programs", type=int, default=PROGRAMS, help=f"random programs, {INPUTS_PER_PROGRAM} inputs each"
    )
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, help="stop after so long; the same command goes on")
    parser.add_argument("--keep", type=Path, default=KEPT, help="where disagreements are kept")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        work(asked.seed, asked.keep)
        return
    is_full = asked.executions >= EXECUTIONS and asked.programs >= PROGRAMS
    state_file = STATE / (f"{NAME}.json" if is_full else f"{NAME}_sample.json")
    campaign = Campaign(asked.seed, asked.executions, asked.programs, asked.keep, state_file)
    campaign.run(asked.processes, asked.seconds)
    sys.exit(report(campaign, is_full))


def report(campaign: Campaign, is_full: bool) -> int:
    if sys.stderr.isatty():
        print(file=sys.stderr)
    proof = campaign.proof()
    failures = [text for each in campaign.done.values() for text in each["failures"]]
    for text in failures[:20]:
        print(f"{text}\n", file=sys.stderr)
    print(json.dumps(proof, indent=2))
    too_many_lost = proof["not_comparable"] * 100 > proof["executions"] + proof["program_executions"]
    if failures or too_many_lost:
        print(f"{len(failures)} failures, {proof['not_comparable']} inputs not comparable", file=sys.stderr)
        campaign.forget_failures()
        return 1
    if not campaign.is_complete:
        print("not complete: the same command goes on where this one stopped", file=sys.stderr)
        return 2
    if is_full:
        write_json(PROOFS / f"{NAME}.json", proof)
    return 0


if __name__ == "__main__":
    main()
