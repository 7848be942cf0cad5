"""Holds the encodings of the solver against the reference engine.

    python -m tests.proofs.solver.campaign [--seed 1] [--inputs 20] [--programs 100]

Every example of an operation, drawn inputs of every pure node under `nodes/`, and random programs: what the engine does
must be possible in the terms of both modes, and nothing else where they are exact. The last line is JSON; the exit code
is 1 after any mismatch.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.proofs.mutants.corpus import Question, operation_questions
from tests.proofs.solver.held import Held, NotEncodable
from vesper.compiler import Compiled, compile_file, compile_source
from vesper.language.diagnostics.source import SourceFile
from vesper.proof.bounds import FINDING, PROOF
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.programs.campaign import program_path, program_seeds
from vesper.verify.programs.nodes import draw_program

_NODES = Path(__file__).parents[3] / "nodes"
_SECONDS_PER_NODE = 30.0


@dataclass(slots=True)
class Tally:
    """Counts of a campaign."""

    nodes: int = 0
    not_encodable: int = 0
    held: int = 0
    exact: int = 0
    mismatches: list[str] = field(default_factory=list)

    def add(self, held: Held) -> None:
        self.nodes += 1
        self.held += held.decided
        self.exact += held.exact


def hold_examples(questions: Iterable[Question]) -> Tally:
    """Hold every question whose subject is a dict of inputs."""
    tally = Tally()
    for question in questions:
        assert isinstance(question.given, dict)
        held = Held(question.compiled, PROOF)
        mismatch = held.hold(question.given)
        if mismatch is not None:
            tally.mismatches.append(f"{question.name}: {mismatch.why}: {question.given!r}")
        tally.add(held)
    return tally


def hold_node(compiled: Compiled, count: int, seed: int, tally: Tally) -> None:
    """Hold drawn inputs of one pure node in both modes."""
    for bounds in (PROOF, FINDING):
        try:
            held = Held(compiled, bounds)
        except NotEncodable:
            tally.not_encodable += 1
            continue
        generator = InputGenerator(compiled.node, seed, seeks_boundaries=False)
        end = time.monotonic() + _SECONDS_PER_NODE
        for _ in range(count):
            mismatch = held.hold(generator.draw())
            if mismatch is not None:
                where = f"{compiled.node.node_id} ({'finding' if bounds.is_finding else 'proof'})"
                tally.mismatches.append(
                    f"{where}: {mismatch.why}: {dict(mismatch.inputs)!r}: {mismatch.outcome!r}"[:1000]
                )
                break
            if time.monotonic() > end:
                break
        tally.add(held)


def main() -> int:
    parser = argparse.ArgumentParser(description="Holds the encodings of the solver against the reference engine.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--inputs", type=int, default=20, help="inputs of each node and mode")
    parser.add_argument("--programs", type=int, default=100, help="random programs")
    given = parser.parse_args()
    tally = hold_examples(operation_questions())
    print(f"examples: {tally.held} held, {len(tally.mismatches)} mismatches", file=sys.stderr)
    for path in sorted(_NODES.rglob("*.vsp")):
        compiled, _ = compile_file(path)
        if compiled is not None and compiled.node.is_pure():
            hold_node(compiled, given.inputs, given.seed, tally)
    print(f"nodes: {tally.held} held, {len(tally.mismatches)} mismatches", file=sys.stderr)
    for seed in program_seeds(given.seed, given.programs):
        draft = draw_program(seed)
        compiled, _ = compile_source(SourceFile(program_path(draft), draft.text()), judge_contracts=False)
        if compiled is not None and compiled.node.is_pure():
            before = len(tally.mismatches)
            hold_node(compiled, 4, given.seed, tally)
            tally.mismatches[before:] = [f"program {seed}: {each}" for each in tally.mismatches[before:]]
    for each in tally.mismatches:
        print(each)
    counts = {"nodes": tally.nodes, "held": tally.held, "exact": tally.exact, "not_encodable": tally.not_encodable}
    print(json.dumps({**counts, "mismatches": len(tally.mismatches)}))
    return 1 if tally.mismatches else 0


if __name__ == "__main__":
    sys.exit(main())
