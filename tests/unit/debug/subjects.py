"""Sessions for tests: a node of this folder or of the repository, on one of its cases."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from vesper.compiler import Compiled, compile_file
from vesper.debug.commands import Commands
from vesper.debug.session import Session
from vesper.debug.start import Subject, case_of, subject_of_case
from vesper.engines.engine import Engine
from vesper.engines.registry import PAIR
from vesper.trace.expressions import Loader

ROOT = Path(__file__).parents[3]
DRAWN = "tests/unit/debug/nodes/payment_handler_v1.vsp"
PAYMENT = "nodes/payments/payment_handler_v1.vsp"
LOADER = Loader()
"""Shared by all tests of a process, because loading is slow."""


@cache
def compiled_node(path: str) -> Compiled:
    compiled, bag = compile_file(ROOT / path)
    assert compiled is not None, [each.headline for each in bag.sorted()]
    return compiled


def subject(path: str, case: str | None = None, engines: list[Engine] | None = None, **inputs: object) -> Subject:
    compiled = compiled_node(path)
    found = subject_of_case(compiled, engines or list(PAIR.values()), case_of(compiled, case), inputs, None)
    return Subject(found.compiled, found.engines, found.inputs, found.now, found.manual, case=found.case, loader=LOADER)


def session(path: str, case: str | None = None, **inputs: object) -> Session:
    return subject(path, case, None, **inputs).session()


def transcript(of: Session, *lines: str, runs: bool = False, width: int = 80) -> str:
    """Return the terminal text of a session with these lines."""
    commands = Commands(of, None, lambda: width)
    told = ["\n".join(commands.begin(runs))]
    for line in lines:
        told.append(f"(sir-db) {line}\n\n" + "\n".join(commands.run(line)))
    return "\n\n".join(told).replace(f"{ROOT}/", "") + "\n"
