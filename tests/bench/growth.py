"""`make bench-growth`: how cost grows with orders of 10 to 100,000 lines, nodes of 10 to 5,000 steps, and batches of
one to ten million rows. Pictures and numbers go to docs/benchmarks.

A cost that is linear takes the same time for each line, step or row at every size, but for what a call costs at all.
A size at which each takes over three times what it took at a smaller size is called a cliff, and fails. It is the time
of the processor that counts, as long as one thread works: long rounds do not find a moment in which nobody else runs.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import vesper  # noqa: E402  # after the path is set
from tests.bench import batch, ours  # noqa: E402
from tests.bench.peers.present import NotHere, needed  # noqa: E402
from tests.bench.pictures import growth  # noqa: E402
from tests.bench.report import FOLDER, GROWTH, RAW, is_busy, machine  # noqa: E402
from tests.bench.workloads import W2, orders  # noqa: E402
from tests.proofs.robustness.proof import write_json  # noqa: E402
from vesper.cli.bench.rounds import Way, interleaved, time_text  # noqa: E402
from vesper.compiler import compile_file  # noqa: E402
from vesper.engines.direct_engine import DirectProgram  # noqa: E402
from vesper.engines.registry import ENGINES  # noqa: E402

LINES = (10, 100, 1_000, 10_000, 100_000)
STEPS = (10, 50, 100, 500, 1_000, 5_000)
ROWS = (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
A_NODE, A_PART = 900, 500
A_TABLE, A_STREAM = 1_000_000, 50_000
STEEPEST = 3.0
Line = list[tuple[float, float]]


def _text(node_id: str, flow: Sequence[str], result: str) -> str:
    return "\n".join(
        [
            f"node_id: {node_id}", "type: function", "intent: A node of many steps, for the benchmarks",
            "inputs: {x: integer, y: integer}", "outputs: {success: {result: integer}}", "flow:", *flow,
            f"  - {{operation: return, success: {{result: {result}}}}}", "",
        ]
    )  # fmt: skip


def node_of(node_id: str, steps: int) -> str:
    """A node of so many steps, each from the one before; nothing in it can be left out or computed beforehand."""
    names = ["s0: x + y"]
    for number in range(1, steps):
        before = f"s{number - 1}"
        value = (f"{before} + x", f"IF {before} > y THEN {before} - y ELSE {before} + 1", f"max({before}, x) - 1")
        names.append(f"s{number}: {value[number % 3]}")
    return _text(
        node_id, ["  - operation: compute", "    compute:", *(f"      {each}" for each in names)], f"s{steps - 1}"
    )


def write_node(folder: Path, steps: int) -> Path:
    """A file of so many steps. A node has a thousand at most: more are nodes of five hundred that one node calls."""
    path = folder / f"steps_{steps}_v1.vsp"
    if steps <= A_NODE:
        path.write_text(node_of(path.stem, steps), encoding="utf-8")
        return path
    flow, before = [], "x"
    for number in range(steps // A_PART):
        part = folder / f"part_{steps}_{number}_v1.vsp"
        part.write_text(node_of(part.stem, A_PART), encoding="utf-8")
        called = f"{{step: p{number}, operation: call_node, node: {part.stem}, inputs: {{x: {before}, y: y}}}}"
        flow.append(f"  - {called}")
        before = f"p{number}.result"
    path.write_text(_text(path.stem, flow, before), encoding="utf-8")
    return path


def lines_of_orders(sizes: Iterable[int], rounds: int) -> dict[str, Line]:
    nodes = {engine: vesper.load(W2.file, engine=engine) for engine in ENGINES}
    found: dict[str, Line] = {engine: [] for engine in nodes}
    for size in sizes:
        inputs = orders(1, size)
        expected = W2.reference(inputs[0])
        for node in nodes.values():
            assert node.call(inputs[0]) == expected
        ways = {engine: Way(node.call, inputs) for engine, node in nodes.items()}
        for way in ways.values():
            ours.warm(way, 0.1)
        for engine, timing in interleaved(ways, rounds=rounds, clock=time.thread_time).items():
            found[engine].append((size, timing.best))
        say_what_rests(nodes["jit"], f"{size:,} lines")
    return found


def say_what_rests(node: vesper.Node, where: str) -> None:
    """Machine code that was taken for slower than the interpreter is not what is measured from there on."""
    program = node._program
    assert isinstance(program, DirectProgram)
    for name, form in program.tier().plain.items():
        if form.stage != "installed":
            print(f"warning: at {where} the machine code of {name} is not in use: {form}", file=sys.stderr)


def steps_of_nodes(sizes: Iterable[int], rounds: int) -> dict[str, Line]:
    """To check and compile a node, to load it on each engine, and to call it."""
    found: dict[str, Line] = {"check and compile": []}
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            path = write_node(Path(folder), size)
            begun = time.thread_time()
            compiled, bag = compile_file(path)
            found["check and compile"].append((size, time.thread_time() - begun))
            assert compiled is not None, bag.sorted()[:3]
            ways, answers = {}, []
            for name, engine in ENGINES.items():
                begun = time.thread_time()
                program: Any = engine.load(compiled)
                found.setdefault(f"load, {name}", []).append((size, time.thread_time() - begun))
                ways[name] = Way(program.entry, [{"x": 3, "y": 1_000}])
                answers.append(program.entry({"x": 3, "y": 1_000}))
                ours.warm(ways[name], 0.05)
            assert all(each == answers[0] for each in answers)
            for name, timing in interleaved(ways, rounds=rounds, clock=time.thread_time).items():
                found.setdefault(f"call, {name}", []).append((size, timing.best))
    return found


def rows_of_batches(sizes: Iterable[int], threads: int) -> tuple[dict[str, Line], float]:
    """Also how many MB of memory a process took at most, its input with it. Raises `NotHere`."""
    line: Line = []
    most = 0.0
    for size in sizes:
        command = [sys.executable, __file__, "--child-rows", str(size), "--child-threads", str(threads)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise NotHere(ran.stderr.strip().splitlines()[-1])
        told = json.loads(ran.stdout)
        line.append((size, told["seconds"]))
        most = max(most, told["megabytes"])
    return {f"run_batch, {threads} thread{'s' * (threads > 1)}": line}, most


def child(rows: int, threads: int) -> None:
    """A table is run whole; one of over a million rows goes through as a stream, as it would from a file."""
    table = batch.arrow_table(min(rows, A_TABLE))
    columns = batch.ours(table, threads)
    batch.check(columns, table.num_rows)
    call = columns.call
    if rows > A_TABLE:
        arrow = needed("pyarrow", "pyarrow")
        (part,) = table.slice(0, A_STREAM).combine_chunks().to_batches()

        def call(_: Any) -> None:
            stream = arrow.RecordBatchReader.from_batches(part.schema, (part for _ in range(rows // A_STREAM)))
            done = sum(each.num_rows for each in columns.call(stream))
            assert done == rows // A_STREAM * A_STREAM

    clock = time.process_time if threads == 1 else time.perf_counter
    ways = {"batch": Way(call, [table])}
    timing = interleaved(ways, rounds=2 if rows > 100_000 else 20, clock=clock)["batch"]
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": timing.best, "megabytes": megabytes}))


def cliffs(lines: Mapping[str, Sequence[tuple[float, float]]]) -> list[str]:
    """Sizes at which each one costs far more than it did at a smaller size."""
    found = []
    for name, line in lines.items():
        cheapest = float("inf")
        for size, taken in line:
            if taken / size > STEEPEST * cheapest:
                times = taken / size / cheapest
                found.append(f"{name}: at {size:,.0f} each costs {times:.1f} times what it cost at a smaller size")
            cheapest = min(cheapest, taken / size)
    return found


def summary(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with one line per curve: pairs of size and seconds, to four digits."""
    return {
        key: {name: [[size, float(f"{taken:.4g}")] for size, taken in line] for name, line in part.items()}
        if key in GROWTH and part is not None
        else part
        for key, part in document.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--largest", type=int, default=10_000_000, help="leave larger sizes away")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--child-rows", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--child-threads", type=int, default=1, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child_rows is not None:
        child(asked.child_rows, asked.child_threads)
        return 0
    os.environ["PYTHONPATH"] = str(ROOT)
    where = machine()
    if is_busy(where):
        print(f"warning: the machine is busy (load {where['load']})", file=sys.stderr)

    def upto(sizes: Sequence[int]) -> list[int]:
        return [each for each in sizes if each <= asked.largest]

    document: dict[str, Any] = {"machine": where}
    problems: list[str] = []
    parts: dict[str, tuple[str, Callable[[], dict[str, Line]]]] = {
        "growth_lines": ("lines", lambda: lines_of_orders(upto(LINES), asked.rounds)),
        "growth_steps": ("steps", lambda: steps_of_nodes(upto(STEPS), asked.rounds)),
    }
    asked.folder.mkdir(parents=True, exist_ok=True)

    def note(key: str, across: str, lines: Mapping[str, Line]) -> None:
        title = GROWTH[key]
        document[key] = {name: [[size, taken] for size, taken in line] for name, line in lines.items()}
        (asked.folder / f"{key}.svg").write_text(growth(title, "seconds, best round", across, lines), encoding="utf-8")
        for name, line in lines.items():
            print(f"{title}, {name}: " + ", ".join(f"{size:,}: {time_text(taken)}" for size, taken in line))
        problems.extend(cliffs(lines))

    for key, (across, measure) in parts.items():
        note(key, across, measure())
    try:
        lines, megabytes = rows_of_batches(upto(ROWS), 1)
        note("growth_rows", "rows", lines)
        document["batch_megabytes"] = round(megabytes)
        print(f"at most {megabytes:,.0f} MB of memory, with what came in")
    except NotHere as problem:
        print(f"batches are left out: {problem}", file=sys.stderr)
        document["growth_rows"] = None
    write_json(RAW / "growth.json", document)
    write_json(asked.folder / "growth.json", summary(document))
    for each in problems:
        print(f"CLIFF: {each}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
