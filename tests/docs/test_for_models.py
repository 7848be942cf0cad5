"""The page that teaches the language to a model: its expressions are of the language, its nodes pass their cases."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.console import ROOT
from tests.support.nodes import compiled_text
from vesper.compiler import compile_source
from vesper.engines.registry import ENGINES, PAIR
from vesper.language.diagnostics.source import SourceFile
from vesper.mcp.author.search import guide
from vesper.verify.node_tests import NodeTester

PAGE = ROOT / "docs" / "guides" / "for-models.md"
TEXT = PAGE.read_text(encoding="utf-8")
PEOPLE = {"xs": "array<Person>", "r": "Person"}
NAMES: tuple[dict[str, str], ...] = (
    {"a": "boolean", "b": "boolean", "n": "integer", "d": "date", "c": "boolean", "xs": "array<integer>"},
    {"a": "integer", "b": "integer", "c": "boolean", "x": "integer", "n": "integer", "d": "decimal"},
    {"a": "decimal", "b": "decimal", "x": "decimal", "k": "string", "v": "integer", "xs": "array<integer>"},
    {"a": "date", "b": "date", "d": "date"},
    {"text": "string", "s": "string", "xs": "array<string>", "m": "map<string, integer>"},
    {"x": "integer", "e": "integer", "xs": "array<integer>"},
    {"e": "integer", "c": "boolean", "xs": "array<integer>", "k": "string", "v": "integer"},
    {"x": "optional<integer>"},
    PEOPLE,
)
"""Types of the names in the table; an expression is one of the language with some of these."""
PARTS = ("ELSE", "e.value", "half_even", "floor", "ceil", "trunc")
"""Words that the table explains beside an expression."""


def expressions() -> list[str]:
    table = TEXT.partition("## Expressions")[2].partition("Texts stand in")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and "| write |" not in line]
    cells = [row.split(" | ", 1)[1] for row in rows]
    found = [each.replace("…", "x.kind FOR x IN xs") for cell in cells for each in re.findall(r"`([^`]+)`", cell)]
    return [each for each in found if each not in PARTS]


def has_meaning(expression: str, names: dict[str, str]) -> bool:
    used = {name: type_ for name, type_ in names.items() if re.search(rf"\b{name}\b", expression)}
    node = {
        "node_id": "example_v1",
        "type": "function",
        "intent": "Show an expression",
        "types": {
            "Person": {"fields": {"name": "string", "age": "integer", "kind": "string"}},
            "Line": {"fields": {"pieces": "integer"}},
        },
        "inputs": used,
        "outputs": {"success": {"done": "boolean"}},
        "flow": [{"step": "shown", "value": expression}, {"return": {"done": "true"}}],
    }
    compiled, _ = compile_source(SourceFile("example.vsp", json.dumps(node)))
    return compiled is not None


@pytest.mark.parametrize("expression", expressions())
def test_each_expression_is_one_of_the_language(expression: str) -> None:
    assert any(has_meaning(expression, names) for names in NAMES)


NODES = re.findall(r"^```yaml\n(node_id: .*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", NODES, ids=[each.split()[1] for each in NODES])
def test_each_node_passes_its_cases(text: str) -> None:
    compiled = compiled_text(text)
    tester = NodeTester(compiled, {name: ENGINES[name] for name in PAIR})
    assert compiled.cases
    assert all(tester.run_case(case).passed for case in compiled.cases)


def test_the_package_has_the_page() -> None:
    assert guide() == re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", TEXT)


def test_the_page_stays_short() -> None:
    assert len(TEXT) < 14_000
