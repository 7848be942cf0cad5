"""Callers of a program use the declared protocols of vesper/engines/engine.py and vesper/host/routed.py."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.architecture.test_layers import ROOT

_DECLARED = ("fast_entry", "fast_entry_for_many", "json_entry", "mode", "rerun", "attach_host", "route")


def reads(path: Path) -> list[str]:
    """The calls of `getattr` or `hasattr` on a program, or for a declared attribute."""
    text = path.read_text(encoding="utf-8")
    found: list[str] = []
    if not re.search(r"getattr|hasattr", text):
        return found  # most files need no parsing
    for each in ast.walk(ast.parse(text)):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id in ("getattr", "hasattr"):
            subject, name = each.args[0], each.args[1]
            is_declared = isinstance(name, ast.Constant) and name.value in _DECLARED
            if ast.unparse(subject).endswith("program") or is_declared:
                found.append(f"{path.relative_to(ROOT).as_posix()}:{each.lineno}")
    return found


def test_no_optional_attribute_of_a_program_is_read_dynamically() -> None:
    assert [place for path in (ROOT / "vesper").rglob("*.py") for place in reads(path)] == []


def test_a_node_does_not_change_its_own_methods() -> None:
    text = (ROOT / "vesper" / "api" / "node.py").read_text(encoding="utf-8")
    assert "__dict__" not in text
    assert "__getattr__" not in text
