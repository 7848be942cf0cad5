"""Nodes as data: written again they mean the same, and every expression has its place and type."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.nodes import compiled_text, worked_nodes
from vesper.compiler import compile_file
from vesper.values.types import BOOLEAN, INTEGER
from vesper.verify.variants.document import Leaf, Part, part_at, read_document, replace_part, walk_parts, write_document

NODES = [path for path in worked_nodes() if "rows: {file:" not in path.read_text(encoding="utf-8")]
"""Nodes without files beside them: the others do not compile on their own."""
NODE = """\
node_id: limits_v1
type: function
intent: Compare a number with a limit
inputs: {count: integer, note: 'optional<string>'}
outputs:
  success: {is_high: boolean}
flow:
  - {step: is_high, operation: compute, value: "count > 10 AND note != 'it''s'"}
  - {operation: return, success: [is_high]}
testing:
  test_cases:
    - {name: low, inputs: {count: 3}, expect: {is_high: false}}
"""


@pytest.mark.parametrize("path", NODES[::9], ids=lambda path: path.stem)
def test_a_node_written_again_means_the_same(path: Path) -> None:
    compiled, _ = compile_file(path)
    assert compiled is not None
    document = read_document(path.read_text(encoding="utf-8"), compiled.node.node_id)
    assert document is not None
    again = compiled_text(write_document(document.tree)[0])
    assert again.semantic_hash == compiled.semantic_hash
    assert [case.inputs for case in again.cases] == [case.inputs for case in compiled.cases[: len(again.cases)]]


def test_expressions_have_their_text_and_type() -> None:
    document = read_document(NODE.replace("\"count > 10 AND note != 'it''s'\"", "count > 10"))
    assert document is not None
    found = {(each.text, each.type) for each in document.sites if each.path == ("flow", 0, "value")}
    assert found == {("count > 10", BOOLEAN), ("count", INTEGER), ("10", INTEGER)}
    for each in document.sites:
        leaf = part_at(document.tree, each.path)
        assert isinstance(leaf, Leaf)
        assert leaf.text[each.start : each.end] == each.text


def test_cases_keep_their_inputs_and_expect_nothing() -> None:
    document = read_document(NODE.replace(" AND note != 'it''s'", ""))
    assert document is not None
    case = part_at(document.tree, ("testing", "test_cases", 0))
    assert case == {"name": Leaf("low"), "inputs": {"count": Leaf("3")}, "expect": {}}


def test_a_text_that_does_not_compile_is_no_document() -> None:
    assert read_document(NODE.replace("count > 10", "count > nothing")) is None
    assert read_document("node_id: [") is None


def test_parts_are_replaced_and_removed_by_their_path() -> None:
    tree: Part = {"a": [Leaf("1"), {"b": Leaf("2"), "c": Leaf("3")}]}
    assert replace_part(tree, ("a", 1, "b"), Leaf("4")) == {"a": [Leaf("1"), {"b": Leaf("4"), "c": Leaf("3")}]}
    assert replace_part(tree, ("a", 0), None) == {"a": [{"b": Leaf("2"), "c": Leaf("3")}]}
    assert [path for path, _ in walk_parts(tree)] == [
        (),
        ("a",),
        ("a", 0),
        ("a", 1),
        ("a", 1, "b"),
        ("a", 1, "c"),
    ]
