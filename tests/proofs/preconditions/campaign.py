"""`make proof-preconditions`: 5,000 preconditions of random shape, each around a planted solution.

For every node inputs are drawn as `vesper verify` draws them, and run on the python engine: at least half of all must
meet the preconditions. A share of them is left unmet on purpose. What is done is kept under `.proofs/`; the same
command goes on where it was stopped, unless the sources have changed since. A whole run writes
`docs/proofs/preconditions.json`; one of fewer nodes only prints.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.preconditions.shapes import SHAPES, Planted, draw_planted  # noqa: E402  # after the path is set
from tests.proofs.robustness.proof import STATE, read_json, source_hash, write_json, write_proof  # noqa: E402
from vesper.compiler import Compiled, compile_source  # noqa: E402
from vesper.engines.outcome import Returned  # noqa: E402
from vesper.engines.python_engine import PythonEngine  # noqa: E402
from vesper.language.diagnostics.source import SourceFile  # noqa: E402
from vesper.values.model import show  # noqa: E402
from vesper.verify.inputs.generator import InputGenerator  # noqa: E402

NAME = "preconditions"
NODES = 5_000
SEED = 20_261_117
DRAWS = 30
CHUNK = 50
REQUIRED_SHARE = 0.5


@dataclass
class Result:
    """Inputs drawn for one node."""

    seed: int
    shapes: list[str]
    met: int
    distinct: int
    """Inputs that meet the preconditions and differ from each other."""
    draw_seconds: float


def examine(seed: int, draws: int = DRAWS) -> Result:
    """Draw inputs for the node of a seed, and count those that meet its preconditions."""
    planted = draw_planted(seed)
    compiled = compiled_node(planted)
    program = PythonEngine().load(compiled)
    outcome = program.call(dict(planted.inputs))
    if not isinstance(outcome, Returned):
        raise AssertionError(f"the planted inputs of seed {seed} break {planted.clauses}: {outcome}")
    begun = time.process_time()
    generator = InputGenerator(compiled.node, seed)
    drawn = [generator.draw() for _ in range(draws)]
    seconds = time.process_time() - begun
    met = [each for each in drawn if isinstance(program.call(each), Returned)]
    distinct = {show(dict(sorted(each.items()))) for each in met}
    return Result(seed, planted.shapes, len(met), len(distinct), seconds)


def compiled_node(planted: Planted) -> Compiled:
    compiled, bag = compile_source(SourceFile("planted_v1.vsp", planted.text()), judge_contracts=False)
    if compiled is None:
        problems = "; ".join(each.headline for each in bag.sorted())
        raise AssertionError(f"a planted node is refused: {problems}\n{planted.text()}")
    return compiled


def summarize(results: list[Result], sources: str = "", elapsed_seconds: float = 0.0) -> dict[str, Any]:
    inputs = len(results) * DRAWS
    seconds = sorted(each.draw_seconds for each in results)
    shares = sorted((each.met / DRAWS, each.seed) for each in results)
    by_shape: dict[str, list[float]] = {shape: [] for shape in SHAPES}
    for each in results:
        for shape in set(each.shapes):
            by_shape[shape].append(each.met / DRAWS)
    means = {shape: round(sum(found) / len(found), 3) for shape, found in by_shape.items() if found}
    below = Counter(int(share * 10) * 10 for share, _ in shares)
    return {
        "source_hash": sources,
        "seed": SEED,
        "nodes": len(results),
        "clauses": sum(len(each.shapes) for each in results),
        "inputs": inputs,
        "required_share": REQUIRED_SHARE,
        "met_share": round(sum(each.met for each in results) / inputs, 4),
        "distinct_share": round(sum(each.distinct for each in results) / inputs, 4),
        "nodes_below_required": sum(share < REQUIRED_SHARE for share, _ in shares),
        "nodes_by_percent_met": {str(tens): below[tens] for tens in sorted(below)},
        "met_share_by_shape": dict(sorted(means.items(), key=lambda each: each[1])),
        "worst_nodes": [{"seed": seed, "met_share": round(share, 3)} for share, seed in shares[:5]],
        "draw_ms_per_node": {
            "median": round(seconds[len(seconds) // 2] * 1e3, 1),
            "p99": round(seconds[int(len(seconds) * 0.99)] * 1e3, 1),
            "worst": round(seconds[-1] * 1e3, 1),
        },
        "elapsed_seconds": round(elapsed_seconds, 1),
    }


def campaign(nodes: int) -> int:
    state_file = STATE / f"{NAME}.json"
    sources = source_hash()
    state = read_json(state_file) or {}
    if state.get("source_hash") != sources:
        state = {"source_hash": sources, "elapsed_seconds": 0.0, "results": []}
    results = [Result(**each) for each in state["results"]][:nodes]
    while len(results) < nodes:
        begun = time.monotonic()
        last = min(nodes, len(results) + CHUNK)
        results += [examine(SEED + number) for number in range(len(results), last)]
        state["elapsed_seconds"] += time.monotonic() - begun
        state["results"] = [asdict(each) for each in results]
        write_json(state_file, state)
        if sys.stderr.isatty():
            print(f"\r{len(results)} of {nodes} nodes", end="", file=sys.stderr, flush=True)
    proof = summarize(results, sources, state["elapsed_seconds"])
    print(json.dumps(proof, indent=2))
    if proof["met_share"] < REQUIRED_SHARE:
        print(f"only {proof['met_share']:.0%} of the drawn inputs meet their preconditions", file=sys.stderr)
        return 1
    if nodes >= NODES:
        write_proof(NAME, proof)
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--show", type=int, metavar="SEED", help="write the node of a seed to standard output")
    asked = parser.parse_args()
    if asked.show is not None:
        print(draw_planted(asked.show).text())
        return
    sys.exit(campaign(asked.nodes))


if __name__ == "__main__":
    main()
