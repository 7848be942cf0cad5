"""`make proof-explain`: explanations against the marks of every engine, and nearest inputs against executions.

Random programs and the repository's nodes run on drawn inputs. On every engine, the conditions of the explanation must
be those of the marks, by a count that shares no code with it, and the matched rows those of the conditions; all engines
must explain alike. Each nearest input runs again, untraced, and must have another outcome. A whole run writes
`docs/proofs/explanations.json`; one of fewer executions only prints.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import source_hash, write_proof  # noqa: E402  # after the path is set
from tests.support.nodes import worked_nodes  # noqa: E402
from vesper.api.explanation.derive import explain_trace  # noqa: E402
from vesper.api.explanation.entry import nearest_of  # noqa: E402
from vesper.api.explanation.model import Explanation  # noqa: E402
from vesper.compiler import Compiled, compile_file, compile_source  # noqa: E402
from vesper.engines.compare import same_outcome  # noqa: E402
from vesper.engines.engine import Program  # noqa: E402
from vesper.engines.outcome import EngineFault, LimitHit, Outcome  # noqa: E402
from vesper.engines.registry import ENGINES  # noqa: E402
from vesper.language.diagnostics.source import SourceFile  # noqa: E402
from vesper.trace.model import Trace  # noqa: E402
from vesper.trace.recorder import record_trace  # noqa: E402
from vesper.verify.inputs.generator import InputGenerator  # noqa: E402
from vesper.verify.programs.nodes import draw_program  # noqa: E402

NAME = "explanations"
EXECUTIONS = 10_000
NEAREST = 1_000
SEED = 29
INPUTS_EACH = 50
TRIES = 400
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@dataclass
class Report:
    nodes: int = 0
    executions: int = 0
    conditions: int = 0
    rows: int = 0
    nearest: int = 0
    none_found: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def repository_nodes() -> Iterator[Compiled]:
    """Yield the repository's nodes without effects."""
    for path in worked_nodes():
        compiled, _ = compile_file(path)
        if compiled is not None and compiled.node.is_pure():
            yield compiled


def random_programs(seed: int) -> Iterator[Compiled]:
    """Yield random programs without end."""
    number = seed * 1_000_000
    while True:
        number += 1
        draft = draw_program(number)
        compiled, _ = compile_source(SourceFile(f"{draft.node_id}.vsp", draft.text()), judge_contracts=False)
        if compiled is not None and compiled.node.is_pure():
            yield compiled


def counted_marks(compiled: Compiled, trace: Trace) -> Counter[tuple[int, bool]]:
    """Count the marks that are conditions or clauses, read from the IR document instead of the node's classes."""
    semantics = json.loads(compiled.ir)["semantics"]
    wanted: set[int] = set()

    def visit(form: Any) -> None:
        if isinstance(form, dict):
            for key, each in form.items():
                if key in ("condition", "where", "while", "stop_when", "when", "holds") and isinstance(each, int):
                    wanted.add(each)
                visit(each)
        elif isinstance(form, list):
            for each in form:
                visit(each)

    literals = [each for each in semantics["expressions"] if "literal" not in each]
    visit(
        [
            literals,
            *(semantics[key] for key in ("constraints", "preconditions", "body", "postconditions", "invariants")),
        ]
    )
    return Counter((mark.index, mark.value is True) for mark in trace.marks if mark.index in wanted)


def check_explanation(compiled: Compiled, trace: Trace, found: Explanation) -> str | None:
    """Return the difference between an explanation and the marks; None without one."""
    marks = counted_marks(compiled, trace)
    explained: Counter[tuple[int, bool]] = Counter()
    for each in found.conditions:
        explained[each.index, each.holds] += each.times
    if explained != marks and not found.omitted:
        return f"conditions {explained - marks} are no marks, marks {marks - explained} are not explained"
    return check_rows(compiled, marks, found)


def check_rows(compiled: Compiled, marks: Counter[tuple[int, bool]], found: Explanation) -> str | None:
    """Compare matched rows with the marks of their conditions; a default row is matched where no other row is."""
    for table in json.loads(compiled.ir)["source"].get("tables", ()):
        for number, row in enumerate(table["rows"], start=1):
            if "when" not in row:
                continue
            wanted = marks[row["when"], True]
            times = sum(
                each.times
                for each in found.rows
                if (each.table, each.row, each.line) == (table["name"], number, row["line"])
            )
            if wanted != times:
                return f"row {number} of {table['name']} is true in {wanted} marks and matched {times} times"
    return None


def examine(compiled: Compiled, seed: int, report: Report, executions: int, nearest: int) -> None:
    report.nodes += 1
    programs = {name: engine.load(compiled) for name, engine in ENGINES.items()}
    generator = InputGenerator(compiled.node, seed, examples=[each.inputs for each in compiled.cases])
    now = None if compiled.node.type == "function" else NOW
    for _ in range(INPUTS_EACH):
        if report.executions >= executions and report.nearest >= nearest:
            return
        inputs = generator.draw()
        traces = {
            name: record_trace(compiled, program, name, "proof", inputs, now) for name, program in programs.items()
        }
        if any(isinstance(each.outcome, LimitHit | EngineFault) for each in traces.values()):
            continue
        found = {name: explain_trace(each) for name, each in traces.items()}
        first = next(iter(found.values()))
        report.executions += 1
        report.conditions += len(first.conditions)
        report.rows += len(first.rows)
        for name, each in found.items():
            problem = check_explanation(compiled, traces[name], each)
            if problem is None and each != first:
                problem = "explains otherwise than the first engine"
            if problem is not None:
                report.problems.append(f"{compiled.node.node_id} on {name} with {inputs}: {problem}")
        if report.nearest < nearest:
            check_nearest(compiled, programs["interp"], traces["interp"], report)


def check_nearest(compiled: Compiled, program: Program, trace: Trace, report: Report) -> None:
    found = nearest_of(compiled, program, trace, None, TRIES)
    if found is None or found.inputs is None:
        report.none_found += 1
        return
    report.nearest += 1
    report.kinds[found.kind] += 1
    again: Outcome = program.call(dict(found.inputs), trace.now)
    assert trace.outcome is not None
    assert found.outcome is not None
    if same_outcome(again, trace.outcome) or not same_outcome(again, found.outcome):
        report.problems.append(f"{compiled.node.node_id} with {found.inputs}: no other outcome than {trace.inputs}")


def campaign(executions: int, nearest: int, seed: int = SEED) -> Report:
    report = Report()
    for number, compiled in enumerate(chain(repository_nodes(), random_programs(seed))):
        examine(compiled, seed + number, report, executions, nearest)
        if report.executions >= executions and report.nearest >= nearest:
            return report
    raise AssertionError("random programs do not end")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=EXECUTIONS)
    parser.add_argument("--nearest", type=int, default=NEAREST)
    parser.add_argument("--seed", type=int, default=SEED)
    asked = parser.parse_args()
    begun = time.monotonic()
    report = campaign(asked.executions, asked.nearest, asked.seed)
    proof = {
        "source_hash": source_hash(),
        "seed": asked.seed,
        "engines": list(ENGINES),
        "nodes": report.nodes,
        "executions": report.executions,
        "conditions": report.conditions,
        "rows": report.rows,
        "nearest": report.nearest,
        "nearest_by_kind": dict(report.kinds),
        "none_found": report.none_found,
        "problems": report.problems[:10],
        "elapsed_seconds": round(time.monotonic() - begun, 1),
    }
    print(json.dumps(proof, indent=2))
    if report.problems:
        sys.exit(1)
    if asked.executions >= EXECUTIONS and asked.nearest >= NEAREST:
        write_proof(NAME, proof)


if __name__ == "__main__":
    main()
