"""The whole conformance corpus on every engine, with counts and divergences.

    python -m tests.conformance.run [--part 1/2]

Each question runs on the python engine, which is the reference, on the interpreter, and on machine code from the first
call on. Compared are values with their text, error codes, expressions and clauses, the marks of every step, the
semantic path, and the requests in order. The exit code is 1 after any divergence; progress goes to standard error.
`--part K/N` runs the K-th of N parts: a node is in one part with all its questions, so that the counts of all parts
add up to those of the whole.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tests.conformance.test_cases import CASES, KNOWN, outcome_of, problem
from tests.proofs.mutants.corpus import Question, answer, is_same, kept, questions
from vesper.compiler import Compiled
from vesper.engines.direct_engine import DirectEngine, tier_counters
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
"""Prefixes of question names, with their descriptions."""

EXPECTED = "cases that say what is expected"
"""Group of `cases/*.yaml`, whose results are written down, for the reference too."""

STEP = 100
"""Questions per progress line: some seconds, or a minute on an emulated processor."""

Load = Callable[[Compiled], Program]


@dataclass
class Tally:
    asked: Counter[str] = field(default_factory=Counter)
    nodes: set[str] = field(default_factory=set)
    disagreements: list[str] = field(default_factory=list)


def group_of(question: Question) -> str:
    return next(told for begins, told in GROUPS.items() if question.name.startswith(begins))


@dataclass(frozen=True, slots=True)
class Part:
    number: int = 1
    of: int = 1

    def has(self, semantic_hash: str) -> bool:
        return int(semantic_hash[:8], 16) % self.of == self.number - 1


def part(text: str) -> Part:
    number, slash, of = text.partition("/")
    if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise argparse.ArgumentTypeError(f"`{text}` names no part; write 1/2 for the first of two")
    return Part(int(number), int(of))


def ask(
    asked: Sequence[Question],
    reference: Load,
    engines: dict[str, Load],
    progress: Callable[[int, int], None] | None = None,
) -> Tally:
    tally = Tally()
    for number, question in enumerate(asked):
        if progress is not None and number % STEP == 0:
            progress(number, len(asked))
        tally.asked[group_of(question)] += 1
        tally.nodes.add(question.compiled.semantic_hash)
        expected = answer(question, reference)
        for name, load in engines.items():
            found = answer(question, load)
            if not is_same(expected, found):
                tally.disagreements.append(f"{question.name}: python answers {expected}\n  and {name} {found}")
    return tally


def ask_expected(tally: Tally, part: Part) -> None:
    for name, case in list(CASES.items())[part.number - 1 :: part.of]:
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


def code_line(made: int, refused: int) -> str:
    """Report made and refused machine code, because an engine that only interprets also agrees."""
    return f"Machine code was made of {made:,} forms of nodes, and refused for {refused:,}."


def main() -> int:
    parser = argparse.ArgumentParser(description="the whole corpus on every engine")
    parser.add_argument("--part", type=part, default=Part(), metavar="K/N", help="only the K-th of N parts")
    chosen: Part = parser.parse_args().part
    begun = time.perf_counter()

    def progress(done: int, of: int) -> None:
        print(f"{done:,} of {of:,} questions, {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)

    engines = {"interp": kept(DirectEngine().load), "jit": kept(DirectEngine(ALWAYS).load)}
    asked = [each for each in questions() if chosen.has(each.compiled.semantic_hash)]
    before = tier_counters()
    tally = ask(asked, kept(PythonEngine().load), engines, progress)
    ask_expected(tally, chosen)
    after = tier_counters()
    print(report(tally, engines, time.perf_counter() - begun))
    print(f"\n{code_line(after.compiled - before.compiled, after.refused - before.refused)}")
    return 1 if tally.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
