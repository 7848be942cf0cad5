"""Holds the drawing of a routed run in docs/architecture.md equal to the functions that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.test_layers import ROOT, block

_STEP = re.compile(r"(?P<file>vesper/[\w/]+\.py):(?P<function>[\w.]+)")


def steps() -> list[tuple[str, str]]:
    return [(found["file"], found["function"]) for line in block("routed-path") for found in _STEP.finditer(line)]


def functions_of(path: Path) -> set[str]:
    """The functions of a module and the methods of its classes, as `Class.method`."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = {each.name for each in module.body if isinstance(each, functions)}
    for each in module.body:
        if isinstance(each, ast.ClassDef):
            found |= {f"{each.name}.{inner.name}" for inner in each.body if isinstance(inner, functions)}
    return found


def test_every_line_of_the_drawing_names_a_step_or_a_thread() -> None:
    lines = block("routed-path")
    threads = [line for line in lines if not line.startswith(" ")]
    assert len(threads) == 2
    assert len(steps()) == len(lines) - len(threads)


@pytest.mark.parametrize("step", steps(), ids=":".join)
def test_every_step_of_the_drawing_exists(step: tuple[str, str]) -> None:
    file, function = step
    assert (ROOT / file).is_file(), f"docs/architecture.md draws {file}, which does not exist"
    assert function in functions_of(ROOT / file), f"docs/architecture.md draws {file}:{function}, which does not exist"
