"""The YAML profile against the public yaml-test-suite: every document is read as YAML 1.2 says, or diagnosed as YAML.

`yaml/suite.jsonl` has the cases of https://github.com/yaml/yaml-test-suite (`yaml/LICENSE`), one on each line:

* `expect` is `invalid`, `read`, or `refused:` with the rules of docs/spec/yaml.md that the document breaks;
* `tree` is the first document of a valid case: a list, `{"m": pairs}`, or a scalar as its quoting, `|` and its text;
  an alias, and a key that is a collection, are an empty scalar;
* `json` is the value, as the suite gives it, and `json_slot` a rule that refuses it as the whole of a `json`.
"""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from vesper.compiler.pipeline import compile_source
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.yaml.parser import YamlParser
from vesper.language.syntax.yaml.profile import ProfileRule
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_tree import Scalar, Sequence, Tree
from vesper.values.json_value import Json, exact_text

ROOT = Path(__file__).parents[2]
CASES: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "yaml" / "suite.jsonl").read_text(encoding="utf-8").split("\n")
    if line
]
_RULE = re.compile(r"\(rule `([a-z-]+)` of the YAML profile\)")
_MARKER = re.compile(r"^(?:---|\.\.\.)(?=\s|$)|^%", re.MULTILINE)
VALID_IN_A_SLOT = frozenset({"CXX2"})
"""Invalid only because of the marker of their document."""
IN_A_SLOT = """\
node_id: slot_v1
type: function
intent: Hold a document of the suite in a json slot
inputs: {a: integer}
outputs: {success: {r: json}}
constants:
  document:
    type: json
    value:
DOCUMENT
flow:
  - operation: return
    success: {r: document}
"""


def by_id(case: dict[str, Any]) -> str:
    return str(case["id"])


def shape(tree: Tree | None) -> Any:
    """Return a tree as the file of cases writes it."""
    if tree is None:
        return None
    if isinstance(tree, Scalar):
        return f"{tree.style}|{tree.text}"
    if isinstance(tree, Sequence):
        return [shape(item) for item in tree.items]
    return {"m": [[shape(key), shape(value)] for key, value in tree.entries]}


def broken_rules(bag: DiagnosticBag) -> list[str]:
    """Return the rules of the profile that diagnostics name, once each."""
    found = [_RULE.search(each.headline) or _RULE.search(each.help or "") for each in bag.sorted()]
    assert None not in found, [each.headline for each in bag.sorted()]
    return list(dict.fromkeys(match[1] for match in found if match))


def in_a_slot(case: dict[str, Any]) -> str | None:
    """Return a node with the document as the value of a json; None for a document with markers or directives."""
    text = re.sub(r"\A---[ \n]", "", case["yaml"])
    if _MARKER.search(text) or text == case["yaml"] == "":
        return None
    margin = " " * 6
    return IN_A_SLOT.replace("DOCUMENT\n", textwrap.indent(text, margin, lambda _: True).rstrip("\n") + "\n")


def test_all_cases_of_the_suite_are_there() -> None:
    assert len(CASES) == 406
    assert sum(case["expect"] == "invalid" for case in CASES) == 94
    assert sum(case["expect"] == "read" for case in CASES) == 188


@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_document_is_read_or_diagnosed_as_yaml(case: dict[str, Any]) -> None:
    bag = DiagnosticBag(SourceFile("case.vsp", case["yaml"]))
    tree = read_yaml(bag)
    if case["expect"] == "invalid":
        assert tree is None
        assert Code.INVALID_YAML in {each.code for each in bag.sorted()}
        return
    if case["expect"] == "read":
        assert not bag.sorted()
        assert shape(tree) == case["tree"]
        return
    assert tree is None
    assert f"refused: {', '.join(broken_rules(bag))}" == case["expect"]


@pytest.mark.parametrize("case", [case for case in CASES if "tree" in case], ids=by_id)
def test_parser_reads_what_the_profile_refuses(case: dict[str, Any]) -> None:
    parser = YamlParser(DiagnosticBag(SourceFile("case.vsp", case["yaml"])))
    assert shape(parser.parse()) == case["tree"]


SLOT_CASES = [case for case in CASES if in_a_slot(case) is not None and case["id"] not in VALID_IN_A_SLOT]


@pytest.mark.parametrize("case", [case for case in SLOT_CASES if case["expect"] == "invalid"], ids=by_id)
def test_invalid_document_is_diagnosed_in_a_json_slot(case: dict[str, Any]) -> None:
    compiled, bag = compile_source(SourceFile("slot_v1.vsp", in_a_slot(case) or ""))
    assert compiled is None
    assert Code.INVALID_YAML in {each.code for each in bag.sorted()}, [each.headline for each in bag.sorted()]


@pytest.mark.parametrize("case", [case for case in SLOT_CASES if "json" in case], ids=by_id)
def test_document_in_a_json_slot_has_the_value_of_the_suite(case: dict[str, Any]) -> None:
    compiled, bag = compile_source(SourceFile("slot_v1.vsp", in_a_slot(case) or ""))
    if "json_slot" in case:
        assert broken_rules(bag) == [case["json_slot"]]
        return
    assert compiled is not None, [each.headline for each in bag.sorted()]
    value = compiled.node.constants[0].value
    assert isinstance(value, Json)
    assert json.loads(exact_text(value)) == case["json"]


def test_specification_lists_every_rule() -> None:
    page = (ROOT / "docs" / "spec" / "yaml.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)
    assert set(listed) == {rule.rule_name for rule in ProfileRule} | {"json-text", "plain-json", "duplicate-key"}
