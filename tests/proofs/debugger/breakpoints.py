"""`--break-on divergence` on planted faults: does it stop at exactly the first differing step, and show both values?

    python -m tests.proofs.debugger.breakpoints            all faults of the list
    python -m tests.proofs.debugger.breakpoints --faults 3 the first three that a case of a node notices

The direct engine is built with its faults (docs/how-to/plant-faults.md). With each one selected, every case of every
node is debugged until one diverges. What the debugger says is held against what the marks say, found without it: the
first mark that differs, the step that its expression belongs to, the two values. A whole run writes
`docs/proofs/breakpoints.json`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
_INSIDE = "VESPER_BREAKPOINTS_PROOF"


@dataclass(frozen=True)
class Found:
    """Where the debugger stopped with a fault, and whether that is where the engines part."""

    node: str
    case: str
    at: str
    what: str
    problem: str | None


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--faults", type=int, help="stop after so many that were caught")
    given = options.parse_args()
    if os.environ.get(_INSIDE) is None:
        return _build_and_begin()
    return _campaign(given.faults)


def _build_and_begin() -> int:
    from tests.proofs.mutants.planted import PACKAGE, build

    build()
    environment = {**os.environ, _INSIDE: "1", "PYTHONPATH": os.pathsep.join((str(PACKAGE), str(ROOT)))}
    # Not `-m` from the root: that would put the package without faults before the one with them.
    command = [sys.executable, "-P", str(Path(__file__)), *sys.argv[1:]]
    return subprocess.run(command, env=environment, check=False).returncode


def _campaign(wanted: int | None) -> int:
    import vesper._direct

    _direct: Any = vesper._direct  # with the faults it has two names more than its stub
    begun = time.monotonic()
    subjects = list(_subjects())
    for subject in subjects:
        assert not _differs(subject), f"without any fault the engines differ on {subject.compiled.node.node_id}"
    names = [name for name, _ in _direct.faults()]
    caught: dict[str, Found] = {}
    for name in names:
        _direct.select_fault(name)
        for subject in subjects:
            found = _look(subject) if _differs(subject) else None
            if found is not None:
                caught[name] = found
                wrong = "" if found.problem is None else f"  WRONG: {found.problem}"
                print(f"{name:<48} {found.node} at {found.at}: {found.what}{wrong}", flush=True)
                break
        if wanted is not None and len(caught) >= wanted:
            break
    _direct.select_fault(None)
    mistaken = {name: found for name, found in caught.items() if found.problem is not None}
    steps = {(found.node, found.at) for found in caught.values()}
    print(
        f"{len(caught)} of {len(names)} faults show in a case of a node, at {len(steps)} steps; {len(mistaken)} wrong"
    )
    if wanted is None:
        from tests.proofs.robustness.proof import engine_hash, whole_hash, write_proof

        document = {
            "source_hash": whole_hash(),
            "engine_hash": engine_hash(),
            "faults": len(names),
            "shown": len(caught),
            "steps": len(steps),
            "wrong": sorted(mistaken),
            "seconds": round(time.monotonic() - begun),
            "by_difference": dict(Counter(found.what for found in caught.values())),
        }
        stopped = {name: f"{found.node} at {found.at}: {found.what}" for name, found in caught.items()}
        write_proof("breakpoints", document, {**document, "stopped": stopped})
    return 1 if mistaken or len(caught) < min(20, wanted or 20) else 0


@dataclass(frozen=True)
class Subject:
    """A case of a node, and what the python engine does with it: no fault changes that."""

    compiled: Any
    case: Any
    reference: Any


def _subjects() -> Iterator[Subject]:
    from tests.support.nodes import worked_nodes
    from vesper.compiler import compile_file
    from vesper.engines.registry import ENGINES
    from vesper.verify.inputs.responses import run_case

    for path in worked_nodes():
        compiled, _ = compile_file(path)
        assert compiled is not None
        program = ENGINES["python"].load(compiled)
        for case in compiled.cases:
            yield Subject(compiled, case, run_case(program, case))


def _differs(subject: Subject) -> bool:
    """Quickly, without the debugger: is there anything to find?"""
    from vesper.engines.compare import Disagree, compare
    from vesper.engines.registry import ENGINES
    from vesper.verify.inputs.responses import UnexpectedRequest, run_case

    try:
        # Loaded anew: a fault may be in loading.
        done = run_case(ENGINES["interp"].load(subject.compiled), subject.case)
    except UnexpectedRequest:
        return True
    except Exception:  # noqa: BLE001  # a fault that breaks the engine is one that shows
        return True
    return isinstance(compare(subject.reference, done), Disagree)


def _look(subject: Subject) -> Found | None:
    """What the debugger finds on a case, and what is wrong with that; None where the engines agree for it."""
    from vesper.debug.responses import AnswerBook, CaseAnswers, Defaults
    from vesper.debug.session import Session
    from vesper.engines.registry import PAIR
    from vesper.verify.inputs.responses import NOON

    compiled, case = subject.compiled, subject.case
    now = case.now if isinstance(case.now, datetime) else NOON
    book = AnswerBook(CaseAnswers(case), Defaults(now))
    session = Session(compiled, list(PAIR.values()), case.inputs, now, book)
    session.add_breakpoint("divergence")
    session.resume(from_start=True)
    divergence = session.divergence()
    if divergence is None:
        return Found(compiled.node.node_id, case.name, "", "", "the engines differ, and the debugger did not stop")
    stops = [session.stop_of(side) for side in session.sides]
    problem = _problem(session, divergence)
    if session.position != divergence.position:
        problem = f"it stands at {session.position}, and they part at {divergence.position}"
    return Found(compiled.node.node_id, case.name, stops[0].path, divergence.what, problem)


def _problem(session: Any, divergence: Any) -> str | None:
    """What is wrong with where it stopped, by the marks alone."""
    from vesper.engines.compare import first_difference
    from vesper.values.model import same
    from vesper.verify.differential.verifier import steps_by_expression

    left, right = session.sides
    first = first_difference(tuple(left.marks), tuple(right.marks))
    if first is None:
        return None if divergence.index is None else "no mark differs"
    told = [side.marks[first] for side in (left, right) if first < len(side.marks)]
    index = told[0][0]
    steps = steps_by_expression(session.compiled.node)
    at = session.stop_of(left, divergence.position)
    owner = steps.get(index)
    is_inside = any(
        index in (mark[1] for mark in session.stop_of(side, divergence.position).marks) for side in (left, right)
    )
    if owner is not None and owner != at.step and at.operation not in ("validation", "return", "raise"):
        return f"it is at {at.path}, and the mark belongs to {owner}"
    if not is_inside and len(told) == 2:
        return f"the mark of expression {index} is at no side of {at.path}"
    if divergence.what == "a value" and not all(same(a, b[1]) for a, b in zip(divergence.values, told, strict=True)):
        return f"it shows {divergence.values}, and the marks are {told}"
    return None


if __name__ == "__main__":
    sys.exit(main())
