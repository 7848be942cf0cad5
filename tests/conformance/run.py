"""The whole corpus on every engine: counts, and what disagrees.

    python -m tests.conformance.run

Each question is asked of the python engine, which is the reference, of the interpreter and of machine code from the
first call on. Compared are values with their text, error code, expression and clause, the marks of every step, the
semantic path, and what effects were asked for, in order. Ends with 1 where anything disagrees.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.conformance.test_cases import CASES, KNOWN, outcome_of, problem
from tests.mutants.corpus import Question, answer, is_same, kept, questions
from vesper.compiler import Compiled
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.engine import Program
from vesper.engines.python_engine import PythonEngine
from vesper.engines.registry import ENGINES
from vesper.engines.tiering import ALWAYS

GROUPS = {
    "operation ": "examples of operations",
    "example ": "examples of the specification",
    "case ": "cases of nodes",
    "input ": "inputs of every type, also bad ones",
    "fuel ": "limits of fuel, memory and depth",
    "json ": "JSON text, also bad text",
    "edge ": "nodes at the edges",
    "regression ": "inputs that were once answered differently",
    "bad response ": "answers to effects that do not fit",
    "path ": "semantic paths and what they read",
    "batch ": "columnar batches",
}
"""How the names of questions begin, and what they are."""

EXPECTED = "cases that say what is expected"
"""Of `cases/*.yaml`: what must come of them is written there, for the reference too."""

Load = Callable[[Compiled], Program]


@dataclass
class Tally:
    asked: Counter[str] = field(default_factory=Counter)
    nodes: set[str] = field(default_factory=set)
    disagreements: list[str] = field(default_factory=list)


def group_of(question: Question) -> str:
    return next(told for begins, told in GROUPS.items() if question.name.startswith(begins))


def ask(asked: Iterable[Question], reference: Load, engines: dict[str, Load]) -> Tally:
    tally = Tally()
    for question in asked:
        tally.asked[group_of(question)] += 1
        tally.nodes.add(question.compiled.semantic_hash)
        expected = answer(question, reference)
        for name, load in engines.items():
            found = answer(question, load)
            if not is_same(expected, found):
                tally.disagreements.append(f"{question.name}: python answers {expected}\n  and {name} {found}")
    return tally


def ask_expected(tally: Tally) -> None:
    for name, case in CASES.items():
        tally.asked[EXPECTED] += 1
        for engine in ENGINES:
            found = problem(case, outcome_of(case, engine))
            if (found is None) == ((name, engine) in KNOWN):
                tally.disagreements.append(f"{name}: {engine}: {found or 'a gap that is no more'}")


def report(tally: Tally, engines: Iterable[str], seconds: float) -> str:
    head = (
        f"The corpus on python, {' and '.join(engines)}: {tally.asked.total():,} questions of {len(tally.nodes):,} "
        f"nodes, {len(tally.disagreements):,} disagreements, {seconds:.1f} s"
    )
    lines = [head, ""]
    lines += [f"  {tally.asked[told]:>8,}  {told}" for told in (*GROUPS.values(), EXPECTED)]
    lines += [f"\n{each}" for each in tally.disagreements[:20]]
    return "\n".join(lines)


def main() -> int:
    begun = time.perf_counter()
    engines = {"interp": kept(DirectEngine().load), "jit": kept(DirectEngine(ALWAYS).load)}
    tally = ask(questions(), kept(PythonEngine().load), engines)
    ask_expected(tally)
    print(report(tally, engines, time.perf_counter() - begun))
    return 1 if tally.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
