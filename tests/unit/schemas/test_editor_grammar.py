"""The TextMate grammar and the manifest of the extension, against the language and the commands."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest

from tests.support.nodes import ROOT
from vesper.language.syntax.tokens import WORDS
from vesper.language.syntax.yaml_to_ast import NODE_TYPES

FOLDER = ROOT / "dashboards" / "editors" / "vscode"
GRAMMAR: dict[str, Any] = json.loads((FOLDER / "syntaxes" / "vsp.tmLanguage.json").read_text(encoding="utf-8"))
PACKAGE: dict[str, Any] = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
TYPES = set(tomllib.loads((ROOT / "schemas" / "types.toml").read_text(encoding="utf-8"))["type"]) - {"record"}
"""Words of types; a record has no word."""


def _words(*rules: str) -> set[str]:
    """Return every word in the expressions of these rules."""
    return set(re.findall(r"[A-Za-z_]+", json.dumps([GRAMMAR["repository"][rule] for rule in rules])))


@pytest.mark.parametrize(
    "rules, expected",
    [(("expression",), WORDS), (("type",), TYPES), (("node_type_line",), set(NODE_TYPES))],
    ids=["words", "types", "node types"],
)
def test_grammar_knows_every_word(rules: tuple[str, ...], expected: set[str]) -> None:
    assert expected - _words(*rules) == set()


def test_grammar_references_resolve() -> None:
    included = set(re.findall(r'"include": "#(\w+)"', json.dumps(GRAMMAR)))
    assert included == set(GRAMMAR["repository"])


def test_commands_of_the_extension_are_registered() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in sorted((FOLDER / "src").glob("*.js")))
    declared = {each["command"] for each in PACKAGE["contributes"]["commands"]}
    assert declared == set(re.findall(r"registerCommand\('([\w.]+)'", source))
    settings = {name.removeprefix("vesper.") for name in PACKAGE["contributes"]["configuration"]["properties"]}
    assert settings >= {f"test.{name}" for name in re.findall(r"settings\.get\('(\w+)'", source)} | {"path"}


def test_locked_packages_name_no_registry() -> None:
    assert '"resolved"' not in (FOLDER / "package-lock.json").read_text(encoding="utf-8")
