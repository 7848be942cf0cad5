"""`make proof-deopt`: every guard of the machine code of every node fails once, on every case of the node and on inputs
that are drawn; what comes of it is what the interpreter comes to, with the same requests, path and fingerprint.

Machine code stops before an instruction that is out of the ordinary, and the interpreter goes on from there. Most of
these places are hard to get to by inputs. So a node is compiled once for each of its guards, with that guard failing
whatever happens. Nothing is performed: requests are answered by the case, or by a seed. A whole run writes
`docs/proofs/deopt.json`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[3]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import PROOFS, engine_hash, source_hash, write_json  # noqa: E402  # after the path is set
from tests.support.nodes import compiled, worked_nodes, written_for_tests  # noqa: E402
from vesper.compiler import Compiled  # noqa: E402
from vesper.engines.compare import Agree, compare  # noqa: E402
from vesper.engines.engine import Done  # noqa: E402
from vesper.engines.outcome import LimitHit  # noqa: E402
from vesper.engines.tiering import INTERPRETED, Tiering  # noqa: E402
from vesper.verify.differential.forms import FormsEngine, FormsProgram  # noqa: E402
from vesper.verify.inputs.generator import InputGenerator  # noqa: E402
from vesper.verify.inputs.responses import (  # noqa: E402
    GeneratedResponses,
    TooManyRequests,
    UnexpectedRequest,
    run_case,
    run_with,
)

NAME = "deopt"
SEED = 20_261_115
DRAWN = 10
"""Inputs for each node, besides its cases."""


def runs_of(node: Compiled, drawn: int, seed: int) -> list[Callable[[FormsProgram], Done]]:
    """What is done with a program of the node."""
    runs: list[Callable[[FormsProgram], Done]] = [partial(_case, case=case) for case in node.cases]
    generator = InputGenerator(node.node, seed, True, [each.inputs for each in node.cases])
    responses = GeneratedResponses(node)
    for number in range(drawn):
        text = f"{seed} {number}"
        now, respond = responses.now(text), responses.responder(text)
        runs.append(partial(_drawn, inputs=generator.draw(), now=now, respond=respond))
    return runs


def _case(program: FormsProgram, case: object) -> Done:
    try:
        return run_case(program, case)  # type: ignore[arg-type]  # `partial` loses what it is
    except UnexpectedRequest as problem:
        return Done(LimitHit(f"requests: {problem}"), ())


def _drawn(program: FormsProgram, inputs: object, now: object, respond: object) -> Done:
    try:
        return run_with(program, inputs, now, respond)  # type: ignore[arg-type]  # as above
    except TooManyRequests:
        return Done(LimitHit("requests"), ())


def is_same(left: Done, right: Done) -> bool:
    """`compare` takes no side on a limit that the machine decides; here both hit it for the same reason."""
    if isinstance(left.outcome, LimitHit) and left.outcome.limit.startswith("requests"):
        return left.outcome == right.outcome
    return isinstance(compare(left, right), Agree)


class Subject:
    """A node, what is done with it, and what the interpreter comes to."""

    def __init__(self, node: Compiled, drawn: int = DRAWN, seed: int = SEED) -> None:
        self.node = node
        self.runs = runs_of(node, drawn, seed)
        interpreted = FormsEngine("interp", INTERPRETED).load(node)
        self.expected = [run(interpreted) for run in self.runs]
        whole = FormsEngine("jit", Tiering("always")).load(node)
        for run in self.runs:
            run(whole)
        self.tier = whole.program.tier()
        forms = [*self.tier.plain.values(), *([] if self.tier.pathed is None else [self.tier.pathed])]
        self.guards = max(form.guards for form in forms)
        self.is_compiled = any(form.stage == "installed" for form in forms)

    def differing(self, guards: Iterable[int]) -> Iterator[str]:
        """Which guards change anything when they fail."""
        for guard in guards:
            program = FormsEngine("jit", Tiering("always", fail_guard=guard)).load(self.node)
            for number, (run, expected) in enumerate(zip(self.runs, self.expected, strict=True)):
                if not is_same(expected, run(program)):
                    yield f"{self.node.node.node_id}: guard {guard}, run {number}: {run(program)}, not {expected}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--guards", type=int, metavar="COUNT", help="so many of each node, drawn; all, unless said")
    parser.add_argument("--drawn", type=int, default=DRAWN, help="inputs for each node, besides its cases")
    parser.add_argument("--seed", type=int, default=SEED)
    asked = parser.parse_args()
    chance = random.Random(asked.seed)
    begun = time.monotonic()
    tried = executions = 0
    compiled_nodes: list[str] = []
    interpreted: dict[str, str | None] = {}
    found: list[str] = []
    for path in [*worked_nodes(), *written_for_tests()]:
        subject = Subject(compiled(path), asked.drawn, asked.seed)
        node_id = subject.node.node.node_id
        if not subject.is_compiled:
            interpreted[node_id] = subject.tier.plain[node_id].reason
            continue
        compiled_nodes.append(node_id)
        guards = list(range(subject.guards))
        if asked.guards is not None:
            guards = sorted(chance.sample(guards, min(asked.guards, len(guards))))
        tried += len(guards)
        executions += len(guards) * len(subject.runs)
        found += subject.differing(guards)
        print(f"{node_id}: {len(guards)} of {subject.guards} guards, {len(subject.runs)} runs each", flush=True)
    proof = {
        "source_hash": source_hash(),
        "engine_hash": engine_hash(),
        "seed": asked.seed,
        "nodes": len(compiled_nodes),
        "not_compiled": interpreted,
        "guards": tried,
        "executions": executions,
        "differences": len(found),
        "elapsed_seconds": round(time.monotonic() - begun, 1),
    }
    print(json.dumps(proof, indent=2))
    for line in found:
        print(line, file=sys.stderr)
    if found or not tried:
        return 1
    if asked.guards is None and asked.drawn >= DRAWN:
        write_json(PROOFS / f"{NAME}.json", proof)
    return 0


if __name__ == "__main__":
    sys.exit(main())
