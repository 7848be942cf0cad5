"""The cookbook and the cheat sheet: nodes pass their cases on both engines, and expressions have their values."""

from __future__ import annotations

import functools
import json
import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import vesper
from tests.support.console import ROOT
from tests.support.prepared import vesper as run

DOCS = ROOT / "docs"
COOKBOOK = sorted((DOCS / "cookbook").glob("[a-z]*.md"))
SHEET = DOCS / "cheat-sheet.md"
_NODE = re.compile(r"^```yaml(?: \S+)?\n((?:node|library)_id: (\w+).*?)^```$", re.MULTILINE | re.DOTALL)
_AMOUNTS: dict[str, Any] = {"n": 7, "price": Decimal("12.50"), "xs": [3, 1, 2], "stock": {"pen": 3, "ink": 0}}
_OTHERS = {"name": "Ann", "ann": {"name": "Ann", "age": 40}, "maybe": None, "kind": "city", "day": date(2026, 11, 18)}
_NAMES = _AMOUNTS | _OTHERS
_SCOPE = """node_id: sheet_v1
type: function
intent: Evaluate the expressions of the cheat sheet
types: {Person: {fields: {name: string, age: integer}}}
inputs: {n: integer, price: decimal, name: string, xs: array<integer>, stock: "map<string, integer>",
         ann: Person, maybe: optional<integer>, kind: "enum[city, cargo]", day: date}
"""


def test_the_nodes_of_the_pages(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    nodes = [found for page in (*COOKBOOK, SHEET) for found in _NODE.findall(page.read_text(encoding="utf-8"))]
    for body, name in nodes:
        (tmp_path / "nodes" / f"{name}.vsp").write_text(body, encoding="utf-8")
    checked, _ = run(["check", "--format", "concise"], tmp_path)
    assert checked.splitlines()[-1] == f"{len(nodes)} nodes checked, 0 with errors", checked
    tested, code = run(["test", "--engine", "both", "--max-examples", "10", "--require-cases"], tmp_path)
    assert code == 0, tested


def test_the_cookbook_lists_its_questions() -> None:
    index = (DOCS / "cookbook" / "README.md").read_text(encoding="utf-8")
    asked = [
        f"[{each}]({page.name}#"
        for page in COOKBOOK
        for each in re.findall(r"^## (.+)$", page.read_text("utf-8"), re.MULTILINE)
    ]
    assert len(asked) >= 30
    assert [each for each in asked if each not in index] == []


def rows(header: str) -> list[list[str]]:
    """Return the code of the table under a header, by row."""
    page = SHEET.read_text(encoding="utf-8")
    (table,) = re.findall(rf"^\| {re.escape(header)}.*\n\|[-|]+\n((?:\|.*\n)+)", page, re.MULTILINE)
    return [re.findall(r"(?<=\| `)[^`]+(?=` \|)", line) for line in table.splitlines()]


def values(expressions: list[str], folder: Path) -> list[Any]:
    """Return the JSON forms of expressions over the names of the page."""
    names = [f"v{number}" for number in range(len(expressions))]
    outputs = "".join(f"    {name}: json\n" for name in names)
    quoted = [each.replace('"', '\\"') for each in expressions]
    returned = "".join(f'      {name}: "to_json({each})"\n' for name, each in zip(names, quoted, strict=True))
    file = folder / "sheet_v1.vsp"
    file.write_text(f"{_SCOPE}outputs:\n  success:\n{outputs}flow:\n  - return:\n{returned}", encoding="utf-8")
    found = vesper.load(file).call(_NAMES)
    return [found[name] for name in names]


def test_python_and_vesper_have_the_same_value(tmp_path: Path) -> None:
    pairs = rows("in Python you write | in Vesper you write")
    assert len(pairs) > 40
    known = {**_NAMES, "Decimal": Decimal, "date": date, "functools": functools}
    found = values([text for _, text in pairs], tmp_path)
    for (python, text), value in zip(pairs, found, strict=True):
        wanted = eval(python, known)
        assert value == (str(wanted) if isinstance(wanted, Decimal) else wanted), text


def test_operations_have_their_value(tmp_path: Path) -> None:
    pairs = [each[:2] for each in rows("call | value |")]
    found = values([call for call, _ in pairs], tmp_path)
    wrong = [
        f"{call}: {value!r}, not {shown}"
        for (call, shown), value in zip(pairs, found, strict=True)
        if shown not in {repr(value), str(value), json.dumps(value)}
    ]
    assert wrong == []
    assert len(pairs) > 20


def test_every_command_exists() -> None:
    from vesper.cli.main import COMMANDS

    named = re.findall(r"`vesper ([a-z]+)", SHEET.read_text(encoding="utf-8"))
    assert len(named) > 15
    assert [each for each in named if each not in COMMANDS] == []
