"""Notebook magics: `%load_ext vesper.integrations.jupyter` (docs/how-to/use-with-jupyter.md).

`%%vesper` makes a node of the cell's text, runs its cases and assigns it to its name; `%vesper run` calls a node.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import display

from vesper.api.errors import NodeError
from vesper.api.load import load
from vesper.api.node import Node
from vesper.api.outcome import AnyOutcome
from vesper.engines.registry import ENGINES, PAIR
from vesper.repository.locate import id_of
from vesper.trace.difference import outcome_text
from vesper.values.node_id import split_node_id
from vesper.verify.node_tests import CaseResult, NodeTester

_USAGE = """\
%%vesper [--engine ENGINE]     make a node of the cell's text, and run its cases
%vesper run NODE NAME=VALUE …   call a node; values are JSON, or else texts
%vesper check NODE              show the diagnostics of a node, and run its cases"""


@magics_class
class VesperMagics(Magics):
    """The magic `vesper`. Nodes of cells are files in a folder of the session."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._names: dict[str, Any] = shell.user_ns
        self._folder = TemporaryDirectory(prefix="vesper-cells-")

    @line_cell_magic
    def vesper(self, line: str, cell: str | None = None) -> AnyOutcome | None:
        words = shlex.split(line)
        if cell is not None:
            self._define(words, cell)
            return None
        match words:
            case ["run", name, *given]:
                return self._find(name)(_json_of(given))
            case ["check", name]:
                self._check(self._find(name))
                return None
        raise UsageError(_USAGE)

    def _define(self, words: list[str], cell: str) -> None:
        match words:
            case []:
                engine = None
            case ["--engine", engine] if engine in ENGINES:
                pass
            case _:
                raise UsageError(_USAGE)
        path = Path(self._folder.name) / "cell.vsp"
        path.write_text(cell, encoding="utf-8")
        node_id = id_of(path)
        if split_node_id(node_id) is not None:  # else it is no name of a file
            path = path.rename(path.with_name(f"{node_id}.vsp"))
        try:
            node = load(path, engine=engine)
        except NodeError as problem:
            print(_without_folder(str(problem), path))  # noqa: T201  # the cell's output
            return
        self._check(node)
        name, _ = split_node_id(node.id) or (node.id, 0)
        self._names[name] = node
        display(node)  # type: ignore[no-untyped-call]  # of IPython

    def _find(self, name: str) -> Node:
        """Return the node of a variable, of a cell, or of the folder `nodes`."""
        found = self._names.get(name)
        if isinstance(found, Node):
            return found
        try:
            return load(name)
        except NodeError as problem:
            raise UsageError(str(problem)) from None

    def _check(self, node: Node) -> None:
        """Print the warnings of a node and the result of its cases, on both engines."""
        for warning in node.warnings:
            print(_without_folder(warning, Path(node.path)))  # noqa: T201  # as above
        tester = NodeTester(node._compiled, PAIR)
        results = [tester.run_case(each) for each in node._compiled.cases]
        failed = [each for each in results if not each.passed]
        for each in failed:
            print(f"✗ {each.case.name}: {_answer(each)}")  # noqa: T201  # as above
        if results:
            print(f"{len(results) - len(failed)} of {len(results)} cases pass on both engines")  # noqa: T201  # as above


def _json_of(given: list[str]) -> str:
    """Return the inputs `name=value` as a JSON text: numbers stay exact."""
    members = []
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise UsageError(f"`{each}` is no input: write NAME=VALUE\n{_USAGE}")
        try:
            json.loads(value)
        except ValueError:
            value = json.dumps(value)
        members.append(f"{json.dumps(name)}: {value}")
    return "{" + ", ".join(members) + "}"


def _answer(result: CaseResult) -> str:
    """Return the result of a failed case on each engine; on all where they differ."""
    return "; ".join(
        f"{each.engine}: {each.problem if each.outcome is None else outcome_text(each.outcome)}"
        for each in result.answers
        if not each.is_met or result.disagree
    )


def _without_folder(text: str, path: Path) -> str:
    """Return a message with the cell in place of its file."""
    return text.replace(path.as_posix(), path.name)


def load_ipython_extension(shell: Any) -> None:
    """Register the magics."""
    shell.register_magics(VesperMagics)
