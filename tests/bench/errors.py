"""Measure calls and rows that end without outputs against those that return: `make bench-errors`.

The bars: an outcome without outputs costs at most 3 times a success, an error row at most 1 µs. Compares
processor time within one process, the best of several rounds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter_ns, process_time_ns
from typing import Any

import pyarrow as pa

import vesper
from tests.proofs.robustness.proof import compact_json
from vesper.values.vesper_error import VesperError

MAX_RATIO = 3.0
MAX_ROW_NANOSECONDS = 1_000
ROWS = 65_536
NODE = """node_id: bench_errors_v1
type: function
intent: Divide a positive amount, or end in one of the ways without outputs
inputs:
  amount: decimal
  parts:  integer
  label:  string
outputs:
  success: {each: decimal}
  error:
    error_code: enum[too_many]
    message:    string
contracts:
  preconditions: [amount > 0]
flow:
  - operation: validation
    require:
      - {condition: parts <= 100, error: {error_code: too_many, message: "at most 100 parts, not {parts}"}}
  - operation: return
    success: {each: 'div(amount, parts, 2)'}
"""

INPUTS: dict[str, dict[str, Any]] = {
    "returned": {"amount": 100, "parts": 3, "label": "rent"},
    "contract broken": {"amount": -100, "parts": 3, "label": "rent"},
    "declared error": {"amount": 100, "parts": 300, "label": "rent"},
    "failed": {"amount": 100, "parts": 0, "label": "rent"},
    "bad input": {"amount": "ten", "parts": 3, "label": "rent"},
    "missing input": {"amount": 100, "parts": 3},
}


def _best(actions: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Return the nanoseconds of each action: the best of rounds, in which all take turns."""
    counts = {}
    for name, action in actions.items():
        counts[name] = 1
        while _nanoseconds(action, counts[name]) < 1_000_000:
            counts[name] *= 2
    best = dict.fromkeys(actions, float("inf"))
    end = perf_counter_ns() + int(seconds * 1e9) * len(actions)
    while perf_counter_ns() < end:
        for name, action in actions.items():
            best[name] = min(best[name], _nanoseconds(action, counts[name]) / counts[name])
    return best


def _nanoseconds(action: Callable[[], object], count: int) -> int:
    rounds = range(count)
    start = process_time_ns()
    for _ in rounds:
        action()
    return process_time_ns() - start


def _ways(node: vesper.Node, inputs: dict[str, Any]) -> dict[str, Callable[[], object]]:
    def keywords() -> object:
        return node(**inputs)

    def code() -> object:
        error = node(**inputs).error
        return None if error is None else error.code

    def call() -> object:
        try:
            return node.call(inputs)
        except VesperError:
            return None

    return {"node()": keywords, "node().error.code": code, "call": call}


def measure_calls(folder: Path, seconds: float) -> list[dict[str, Any]]:
    """Return nanoseconds of each way to call, by engine and end, with the ratio to a success."""
    found = []
    for engine in ("python", "interp", "jit"):
        node = vesper.load(folder / "bench_errors_v1.vsp", engine=engine)
        ways = {end: _ways(node, inputs) for end, inputs in INPUTS.items()}
        for way in ways["returned"]:
            took = _best({end: ways[end][way] for end in INPUTS}, seconds)
            for end, nanoseconds in took.items():
                ratio = round(nanoseconds / took["returned"], 2)
                found.append({"engine": engine, "way": way, "end": end, "ns": round(nanoseconds), "ratio": ratio})
    return found


def measure_rows(folder: Path, seconds: float) -> list[dict[str, Any]]:
    """Return nanoseconds of a row of each end, on one thread."""
    found = []
    for engine in ("interp", "jit"):
        node = vesper.load(folder / "bench_errors_v1.vsp", engine=engine)
        actions: dict[str, Callable[[], object]] = {}
        for end, inputs in INPUTS.items():
            amounts = [str(inputs["amount"]) if end == "bad input" else inputs["amount"]] * ROWS
            # Distinct values, so that no message occurs twice.
            parts = [row + 300 if end == "declared error" else inputs["parts"] for row in range(ROWS)]
            if end == "contract broken":
                amounts = [-1 - row for row in range(ROWS)]
            if end == "bad input":
                amounts = [f"ten {row}" for row in range(ROWS)]
            labels = [inputs.get("label")] * ROWS
            table = pa.table({"amount": amounts, "parts": parts, "label": pa.array(labels, pa.string())})
            actions[end] = partial(node.run_batch, table, threads=1)
        for end, nanoseconds in _best(actions, seconds).items():
            found.append({"engine": engine, "way": "row", "end": end, "ns": round(nanoseconds / ROWS)})
    return found


def _summary(found: list[dict[str, Any]]) -> str:
    """Return the figures as JSON, a line for each engine and way: nanoseconds, and the ratio to a success."""
    lines: dict[str, dict[str, Any]] = {}
    for each in found:
        figures = each["ns"] if "ratio" not in each else [each["ns"], each["ratio"]]
        lines.setdefault(f"{each['engine']} {each['way']}", {})[each["end"]] = figures
    return compact_json(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.4, help="for each figure")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "bench_errors_v1.vsp").write_text(NODE, encoding="utf-8")
        found = measure_calls(Path(folder), wanted.seconds) + measure_rows(Path(folder), wanted.seconds)
    missed = 0
    for each in found:
        ratio = each.get("ratio")
        is_missed = each["ns"] > MAX_ROW_NANOSECONDS if ratio is None else ratio > MAX_RATIO
        missed += is_missed
        shown = "" if ratio is None else f"{ratio:>7.2f} x"
        name = f"{each['engine']:<7} {each['way']:<18} {each['end']:<16}"
        print(f"{name} {each['ns']:>8,} ns{shown:<11}{' MISSED' * is_missed}")
    print(f"{missed} of {len(found)} figures miss their bar")
    if wanted.json is not None:
        wanted.json.write_text(_summary(found), encoding="utf-8")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
