"""What the reference path makes of nodes, in short: one line and one hash for each, the same on every Python.

    python -m tests.proofs.versions.fingerprint [--inputs N] [--programs N] [--every N]

For the worked nodes, those written for the tests and random programs: the generated text, plain and traced; every case;
drawn inputs with drawn answers to what is asked for. Of an execution the outcome (with the place of a failure), the
marks and the requests count. Loads no Rust extension.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal, localcontext
from itertools import islice
from pathlib import Path

from tests.proofs.versions.ambient import apply_ambient, state
from tests.support.nodes import worked_nodes
from vesper.codegen.module import generate_module
from vesper.compiler import Compiled, compile_file, compile_source
from vesper.engines.engine import Done
from vesper.engines.outcome import EngineFault
from vesper.engines.python_engine import PythonEngine
from vesper.language.diagnostics.source import SourceFile
from vesper.values.period import Period
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.inputs.responses import GeneratedResponses, run_case, run_with
from vesper.verify.programs.nodes import draw_program

ROOT = Path(__file__).parents[3]
_SEED = 20261115


def shown(value: object) -> str:
    """A value with its type, in one spelling: sets in order, decimals with their scale, floats in all their digits."""
    match value:
        case dict():
            return "{" + ", ".join(f"{shown(key)}: {shown(each)}" for key, each in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(shown(each) for each in value) + "]"
        case set() | frozenset():
            return "set(" + ", ".join(sorted(shown(each) for each in value)) + ")"
        case Decimal():
            return f"Decimal({Decimal.as_tuple(value)})"
        case float():
            return f"float({float.hex(value)})"
        case date() | datetime() | time() | Period() | timedelta() | None | bool() | int() | str() | bytes():
            return f"{type(value).__name__}({value!a})"
        case _:
            raise TypeError(f"an engine gives no {type(value).__name__}")


def shown_done(done: Done) -> str:
    outcome = done.outcome
    if isinstance(outcome, EngineFault):
        raise AssertionError(f"an engine fault: {outcome.message}")
    parts = [type(outcome).__name__]
    for name in sorted(getattr(type(outcome), "__dataclass_fields__", {})):
        part = getattr(outcome, name)
        parts.append(f"{name}={part!a}" if name in ("problems", "code") else f"{name}={shown(part)}")
    marks = [f"{index} {shown(value)}" for index, value in done.marks]
    requests = [f"{each.path} {each.effect} {each.key!a} {shown(dict(each.arguments))}" for each in done.requests]
    return "\n".join([*parts, *marks, *requests])


def fingerprint(compiled: Compiled, inputs: int, counts: Counter[str]) -> str:
    digest = hashlib.sha256()
    for traced in (False, True):
        digest.update(generate_module(compiled.node, traced).text.encode())
    program = PythonEngine().load(compiled)
    for case in compiled.cases:
        digest.update(shown_done(run_case(program, case)).encode())
        counts["cases"] += 1
    with localcontext():  # what draws inputs may use the context, it is not what is looked at
        drawn = list(islice(_drawn(compiled), inputs))
    responses = GeneratedResponses(compiled)
    for number, given in enumerate(drawn):
        seed = f"{_SEED} {number}"
        done = run_with(program, given, responses.now(seed), responses.responder(seed))
        digest.update(shown_done(done).encode())
        counts["executions"] += 1
        counts[done.outcome.kind] += 1
    counts["nodes"] += 1
    return digest.hexdigest()


def _drawn(compiled: Compiled) -> Iterator[dict[str, object]]:
    generator = InputGenerator(compiled.node, _SEED, seeks_boundaries=False)
    while True:
        yield generator.draw()


def _compiled(every: int, programs: int) -> Iterator[Compiled]:
    worked = worked_nodes() + sorted((ROOT / "tests/integration/differential/nodes").glob("*.vsp"))
    for path in worked[::every]:
        node, bag = compile_file(path)
        assert node is not None, f"{path}: {[each.headline for each in bag.sorted()]}"
        yield node
    for seed in range(programs):
        draft = draw_program(_SEED + seed)
        node, bag = compile_source(SourceFile(f"{draft.node_id}.vsp", draft.text()), judge_contracts=False)
        assert node is not None, f"program {seed}: {[each.headline for each in bag.sorted()]}"
        yield node


def main() -> int:
    parser = argparse.ArgumentParser(description="what the reference path makes of nodes, as hashes")
    parser.add_argument("--inputs", type=int, default=60, help="drawn inputs for each")
    parser.add_argument("--programs", type=int, default=60, help="random programs")
    parser.add_argument("--every", type=int, default=1, help="take every n-th node")
    arguments = parser.parse_args()
    apply_ambient()
    counts: Counter[str] = Counter()
    lines = [
        f"{number:03} {each.node.node_id} {fingerprint(each, arguments.inputs, counts)}"
        for number, each in enumerate(_compiled(arguments.every, arguments.programs))
    ]
    assert "vesper._direct" not in sys.modules, "the extension was loaded"
    print("\n".join(lines))
    print(f"# {' '.join(f'{name}={count}' for name, count in sorted(counts.items()))}")
    print(f"# {sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro} {state()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
