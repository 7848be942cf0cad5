"""`make bench`: Vesper's engines beside everybody a Python program could take instead, in one run.

Everybody is checked first: against the reference on every input, and on inputs that must be refused. Then all are
timed in short rounds, in turns; the best round of each counts, and ratios are what to compare. The page, the pictures
and the numbers go to docs/benchmarks. Who is not installed is named there, and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench import batch, ours  # noqa: E402  # after the path is set
from tests.bench.peers import pypy  # noqa: E402
from tests.bench.peers.everybody import rivals  # noqa: E402
from tests.bench.peers.present import NotHere, needed, version  # noqa: E402
from tests.bench.report import FOLDER, Bound, Report, Row, Section, is_busy, machine, page, write  # noqa: E402
from tests.bench.workloads import PLAIN, W1, WORKLOADS, Contestant, Wrong, judged  # noqa: E402
from vesper.cli.bench.interpreter import this_interpreter  # noqa: E402
from vesper.cli.bench.rounds import Timing, Way, interleaved  # noqa: E402

FLOOR = "floor: C, Decimal by struct"
ABOUT = {
    "W1": "A payment decision: dict and Decimal in and out, all contracts.",
    "W2": "Pricing of an order of twenty lines: dicts and Decimals in and out, all contracts.",
    "W3": "A loop of 10,000 rounds over integers and floats.",
}


class Bench:
    def __init__(self, rounds: int, rows: int) -> None:
        self._rounds, self._rows = rounds, rows
        self.report = Report(machine=machine())
        self._seconds: dict[tuple[str, str], float] = {}
        """By section and name."""

    def _add(self, section: Section) -> None:
        self.report.sections.append(section)
        self._seconds |= {(section.key, each.name): each.seconds for each in section.rows}
        print(f"{section.title}: {len(section.rows)} timed", file=sys.stderr)

    def _of(self, key: str, name: str, base: str) -> float | None:
        one, other = self._seconds.get((key, name)), self._seconds.get((key, base))
        return None if one is None or other is None else one / other

    def calls(self) -> None:
        others, missing = rivals()
        try:
            on_pypy, times = pypy.measured(max(3, self._rounds // 10))
        except NotHere as problem:
            on_pypy, times = "", {}
            missing.append(str(problem))
        with ours.moved_over() as moved:
            everybody = [*others, *ours.on_engines(), *moved.values()]
            verdicts = {id(each): judged(each) for each in everybody}
            for title in WORKLOADS:
                part = [each for each in everybody if each.workload == title]
                ways = {each.name: Way(each.call, each.inputs) for each in part}
                for each in part:
                    ours.warm(ways[each.name], 0.3 if each.is_ours else 0.05)
                timings = interleaved(ways, rounds=self._rounds)
                rows = _rows(part, timings, {each.name: verdicts[id(each)] for each in part})
                if title in times:
                    there, here = times[title]  # timed in turns with the same here: the ratio is what is known
                    seconds = timings[PLAIN].best * there / here
                    rows.append(Row(on_pypy, seconds, there / here, "decimal" if title != "W3" else "native", "exact"))
                self._add(Section(title.lower(), title, ABOUT[title], PLAIN, rows, missing))

    def requests(self) -> None:
        inputs = ours.requests_of(W1)
        ways = {"Vesper, run_json (request to response)": Way(ours.run_json(W1), inputs)}
        missing = []
        try:
            loads = needed("orjson", "orjson").loads
            ways[f"orjson {version('orjson')}, loads of the request only"] = Way(loads, inputs)
        except NotHere as problem:
            missing.append(str(problem))
        ways["json of Python, loads of the request only"] = Way(json.loads, inputs)
        for way in ways.values():
            ours.warm(way)
        timings = interleaved(ways, rounds=self._rounds)
        base = list(ways)[1]
        rows = [
            Row(name, each.best, each.best / timings[base].best, spread=each.spread, is_ours=name.startswith("Vesper"))
            for name, each in timings.items()
        ]
        self._add(Section("json", "W1 as JSON", "A request as bytes.", base, rows, missing))
        self._json_base = base

    def batches(self) -> None:
        told: dict[str, Any] = {}
        for threads in (1, 2):
            command = [sys.executable, str(ROOT / "tests" / "bench" / "batch.py"), "--threads", str(threads)]
            command += ["--rows", str(self._rows)]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            if ran.returncode:
                raise Wrong(ran.stderr.strip().splitlines()[-1])
            told = json.loads(ran.stdout)
            plain = told["seconds"][PLAIN]
            rows = [
                Row(name, seconds, seconds / plain, "decimal", "exact", is_ours=name == batch.OURS)
                for name, seconds in told["seconds"].items()
            ]
            about = f"A table of {self._rows:,} payments, for each record; {threads} thread{'s' * (threads > 1)}."
            title = f"W1 in columns, {threads} thread{'s' * (threads > 1)}"
            self._add(Section(f"batch{threads}", title, about, PLAIN, rows, told["missing"]))
        beside = told["beside_one"]
        rows = [Row(name, each, each / beside[batch.ALONE], is_ours=True) for name, each in beside.items()]
        about = (
            f"A table of {self._rows:,} payments, for each record. Two halves of it in two threads that share nothing "
            "are what two processors are worth on this machine at this time."
        )
        self._add(Section("threads", "W1 in columns, a second thread", about, "one thread", rows))

    def others(self) -> None:
        timings = interleaved(ours.traced_ways(W1), rounds=self._rounds)
        base = timings["tracing off"].best
        rows = [Row(name, each.best, each.best / base, spread=each.spread) for name, each in timings.items()]
        about = "W1 on the direct engine, begun by `start`: with its marks kept, and without."
        self._add(Section("tracing", "Tracing", about, "tracing off", rows))
        starts = ours.starts(50)  # a round is long, and the best of few may have met no quiet moment
        bare = starts["bare Python"].best
        rows = [Row(name, each.best, each.best / bare, spread=each.spread) for name, each in starts.items()]
        about = "Whole processes, from their start to their end; caches are filled."
        self._add(Section("start", "First call", about, "bare Python", rows))

    def bars(self) -> None:
        direct = ours.DIRECT_ONLY
        first = [
            (seconds - self._seconds["start", "bare Python"]) * 1e3
            for (key, name), seconds in self._seconds.items()
            if key == "start" and name.startswith("first call")
        ]
        apart = self._of("threads", batch.ALONE, batch.HALVES)
        self.report.bounds = [
            Bound("W1, of the C floor", 1.5, self._of("w1", direct, FLOOR)),
            Bound("W1, of plain Python", 0.42, self._of("w1", direct, PLAIN)),
            Bound("W2, of plain Python", 0.19, self._of("w2", direct, PLAIN)),
            Bound("W3, of plain Python", 0.019, self._of("w3", direct, PLAIN)),
            Bound("W3, of Cython with C types", 1.0, self._of_first("w3", direct, "Cython", "cdef")),
            Bound("W1 by run_json, of orjson.loads", 1.0, self._of_first("json", "Vesper, run_json", "orjson", "")),
            Bound("W1 batch on one thread, of a plain call", 90 / 1126, self._of("batch1", batch.OURS, PLAIN)),
            Bound("W1 batch on one thread, of polars", 1.0, self._of_first("batch1", batch.OURS, "polars", "")),
            Bound(
                "W1 batch, two threads, times as fast",
                1.8,
                self._of("threads", batch.ALONE, batch.TWO),
                is_least=True,
                beside="" if apart is None else f"two threads that share nothing: {apart:.3g}",
            ),
            Bound("W1, of datalogic-py", 1 / 5, self._of_first("w1", direct, "datalogic-py", "")),
            Bound("W1, of zen-engine", 1 / 30, self._of_first("w1", direct, "zen-engine", "")),
            Bound("first call over bare Python, ms", 45, max(first)),
            Bound("tracing on, of tracing off", 2.0, self._of("tracing", "tracing on", "tracing off")),
        ]

    def _of_first(self, key: str, name: str, prefix: str, suffix: str) -> float | None:
        """Of one whose name has a version in it."""
        mine = [each for (where, each) in self._seconds if where == key and each.startswith(name)]
        bases = [
            each
            for (where, each) in self._seconds
            if where == key and each.startswith(prefix) and each.endswith(suffix)
        ]
        return self._of(key, mine[0], bases[0]) if mine and bases else None


def _rows(part: Sequence[Contestant], timings: dict[str, Timing], verdicts: dict[str, str]) -> list[Row]:
    base = timings[PLAIN].best
    return [
        Row(each.name, timings[each.name].best, timings[each.name].best / base, each.numbers, verdicts[each.name],
            timings[each.name].spread, each.is_ours)
        for each in part
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--rows", type=int, default=batch.ROWS)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    asked = parser.parse_args()
    interpreter = this_interpreter()
    if not interpreter.is_optimised:
        print(f"error: {interpreter.executable} is {interpreter.described()}; run `make bench`", file=sys.stderr)
        return 1
    os.environ["PYTHONPATH"] = str(ROOT)
    bench = Bench(asked.rounds, asked.rows)
    if is_busy(bench.report.machine):
        print(f"warning: the machine is busy (load {bench.report.machine['load']})", file=sys.stderr)
    try:
        bench.calls()
        bench.requests()
        bench.batches()
        bench.others()
        bench.bars()
    except Wrong as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    write(bench.report, asked.folder)
    print(page(bench.report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
