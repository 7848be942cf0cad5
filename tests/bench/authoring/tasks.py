"""The tasks: a text for the author, the interface of the node, and cases that the author never sees.

Each file of `tasks/` is a reference solution. Its leading comment is the text, its interface is given to the author,
and its cases are the hidden ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from vesper.compiler import Compiled, compile_source
from vesper.engines.engine import Limits
from vesper.engines.outcome import ContractBroken, Outcome
from vesper.engines.registry import ENGINES, PAIR
from vesper.language.check.cases import Case
from vesper.language.diagnostics.render.full import render_full
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir.nodes import Node
from vesper.repository.locate import node_files
from vesper.values.limits import DEFAULT_FUEL, DEFAULT_MEMORY
from vesper.verify.node_tests import NodeTester

FOLDER = Path(__file__).with_name("tasks")
INTERFACE = ("node_id", "type", "intent", "types", "inputs", "outputs")
LIMITS = Limits(DEFAULT_FUEL, 10.0, DEFAULT_MEMORY)
_SECTION = re.compile(r"^(\w+):.*\n(?:[ -].*\n|\n)*", re.MULTILINE)


@dataclass(frozen=True)
class Task:
    """One task."""

    name: str
    topic: str
    text: str
    interface: str
    """Id, types, inputs and outputs, as the solution begins."""
    solution: Compiled

    def prompt(self) -> str:
        return f"{self.text}\n\nThe node begins with\n\n```yaml\n{self.interface}```"


@dataclass(frozen=True)
class Verdict:
    """The judgement of one attempt."""

    is_solved: bool
    report: str | None
    """What the author may see: diagnostics, or why the file is no answer. None where it is valid."""
    failed: tuple[str, ...] = ()
    """Names of hidden cases that are not met."""


@cache
def load_tasks() -> tuple[Task, ...]:
    return tuple(map(_task, node_files([FOLDER])))


def _task(path: Path) -> Task:
    source = path.read_text(encoding="utf-8")
    head, mark, _ = source.partition("node_id:")
    text = " ".join(line.lstrip("# ") for line in head.splitlines())
    body = mark + source[len(head) + len(mark) :]
    interface = "".join(found[0] for found in _SECTION.finditer(body) if found[1] in INTERFACE)
    compiled, bag = compile_source(SourceFile(str(path), source))
    assert compiled is not None, [render_full(bag.source, each) for each in bag.sorted()]
    return Task(path.stem.removesuffix("_v1"), path.parent.name, text, interface, compiled)


def judge(task: Task, text: str) -> Verdict:
    """Compile a node and run the hidden cases of a task on both engines."""
    compiled, bag = compile_source(SourceFile(f"{task.solution.node.node_id}.vsp", text))
    if compiled is None:
        return Verdict(False, "\n\n".join(render_full(bag.source, each) for each in bag.sorted()))
    problem = _interface_problem(task.solution.node, compiled.node)
    if problem is not None:
        return Verdict(False, problem)
    tester = NodeTester(compiled, {name: ENGINES[name] for name in PAIR})
    results = [tester.run_case(case, LIMITS) for case in task.solution.cases]
    failed = tuple(
        each.case.name
        for each in results
        if each.disagree or not all(_meets(each.case, answer.is_met, answer.outcome) for answer in each.answers)
    )
    return Verdict(not failed, None, failed)


def _meets(case: Case, is_met: bool, outcome: Outcome | None) -> bool:
    """Return whether an answer meets a case; of a broken contract any clause counts, since authors word their own."""
    return isinstance(outcome, ContractBroken) if case.breaks is not None else is_met


def _interface_problem(wanted: Node, found: Node) -> str | None:
    """Return why a node has not the interface of the task."""
    if found.node_id != wanted.node_id:
        return f"the node is called {found.node_id}, and the task asks for {wanted.node_id}"
    if not found.is_pure() or found.type != wanted.type:
        return f"the node is of type {found.type} or has effects, and the task asks for a {wanted.type} without effects"
    for part in ("inputs", "outputs", "errors"):
        asked = {each.name: each.type for each in getattr(wanted, part)}
        given = {each.name: each.type for each in getattr(found, part)}
        if asked != given:
            return f"the {part}, or their types, are not those of the task: begin with its lines"
    return None
