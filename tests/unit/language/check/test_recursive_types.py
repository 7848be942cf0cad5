"""Record types that contain themselves: what the checker accepts, and their values on both engines."""

from __future__ import annotations

import pytest

from tests.support.nodes import compiled_text
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.outcome import Failed, Outcome, Returned
from vesper.engines.python_engine import PythonEngine
from vesper.values.generated.errors import ErrorCode

_NODE = """
node_id: test_v1
type: function
intent: Test
types:
{types}
inputs: {{t: Tree}}
outputs: {{success: {{r: {returns}}}}}
functions:
  walk: {{params: {{t: Tree}}, returns: {returns}, max_depth: 100, value: "{value}"}}
flow:
  - {{step: r, operation: compute, value: walk(t)}}
  - {{operation: return, success: [r]}}
"""
_TREE = "Tree: {fields: {value: integer, children: array<Tree>}}"


def _run(value: str, tree: object, returns: str = "integer", types: str = _TREE) -> Outcome:
    indented = "\n".join(f"  {line}" for line in types.splitlines())
    node = compiled_text(_NODE.format(types=indented, returns=returns, value=value))
    python, direct = (engine.load(node).call({"t": tree}) for engine in (PythonEngine(), DirectEngine()))
    assert python == direct
    return python


def _chain(depth: int) -> dict[str, object]:
    tree: dict[str, object] = {"value": 1, "children": []}
    for _ in range(depth - 1):
        tree = {"value": 1, "children": [tree]}
    return tree


SUM = "t.value + SUM(walk(c) FOR c IN t.children)"


def test_a_tree_is_walked() -> None:
    tree = {"value": 1, "children": [{"value": 2, "children": []}, _chain(3)]}
    assert _run(SUM, tree) == Returned({"r": 6})


def test_keys_that_the_type_lacks_are_ignored() -> None:
    assert _run(SUM, {"value": 1, "children": [], "more": [1]}) == Returned({"r": 1})


@pytest.mark.parametrize("tree", [5, [], {}, {"value": "1", "children": []}, {"value": 1, "children": [3]}])
def test_a_value_of_another_shape_fails_where_it_is_read(tree: object) -> None:
    found = _run(SUM, tree)
    assert isinstance(found, Failed)
    assert found.code is ErrorCode.BAD_CAST


def test_json_bounds_the_depth_of_an_input() -> None:
    assert _run(SUM, _chain(64)) == Returned({"r": 64})
    found = _run(SUM, _chain(65))
    assert isinstance(found, Failed)
    assert found.code is ErrorCode.BAD_INPUT


def test_a_tree_is_built() -> None:
    mirror = "{value: t.value * 2, children: reverse([walk(c) FOR c IN t.children])}"
    tree = {"value": 1, "children": [{"value": 2, "children": []}, {"value": 3, "children": []}]}
    assert _run(mirror, tree, "Tree") == Returned(
        {"r": {"value": 2, "children": [{"value": 6, "children": []}, {"value": 4, "children": []}]}}  # type: ignore[dict-item]
    )


def test_a_tree_that_would_be_too_deep_is_too_large() -> None:
    found = _run(
        "IF length(t.children) == 0 THEN {value: 0, children: [t]} ELSE {value: 0, children: [walk(t.children[0])]}",
        _chain(64),
        "Tree",
    )
    assert isinstance(found, Failed)
    assert found.code is ErrorCode.TOO_LARGE


def test_outside_names_are_those_of_the_json() -> None:
    types = "Tree: {fields: {value: {type: integer, as: nodeValue}, children: array<Tree>}}"
    tree = {"nodeValue": 4, "children": [{"nodeValue": 5, "children": []}]}
    assert _run(SUM, tree, types=types) == Returned({"r": 9})
    assert _run("{value: t.value, children: []}", tree, "Tree", types) == Returned(
        {"r": {"nodeValue": 4, "children": []}}  # type: ignore[dict-item]
    )


def test_optional_fields_may_be_absent() -> None:
    types = "Tree: {fields: {value: integer, next: optional<Tree>}}"
    value = "LET n = t.next IN t.value + (IF n IS NULL THEN 0 ELSE walk(n))"
    assert _run(value, {"value": 1, "next": {"value": 2, "next": {"value": 3}}}, types=types) == Returned({"r": 6})


def test_types_that_contain_each_other() -> None:
    types = 'Tree: {fields: {value: integer, groups: "map<string, Group>"}}\nGroup: {fields: {members: array<Tree>}}'
    value = "t.value + SUM(SUM(walk(m) FOR m IN g.members) FOR name, g IN t.groups)"
    tree = {"value": 1, "groups": {"a": {"members": [{"value": 2, "groups": {}}, {"value": 3, "groups": {}}]}}}
    assert _run(value, tree, types=types) == Returned({"r": 6})


@pytest.mark.parametrize(
    "types, message",
    [
        ("Tree: {fields: {value: integer, next: Tree}}", "every value would contain another one"),
        ("Tree: {fields: {value: integer, other: Other}}\nOther: {fields: {tree: Tree}}", "every value would contain"),
        (
            "Tree: {fields: {value: integer, children: array<Tree>}, constraints: [value > 0]}",
            "a type that contains itself has no constraints",
        ),
        ("Tree: {fields: {value: integer, children: array<Tree>}, open: true}", "is not open"),
        ("Tree: {fields: {value: integer, children: set<Tree>}}", "as the members of"),
    ],
)
def test_a_type_without_finite_or_checkable_values_is_refused(types: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        _run("t.value", {}, types=types)


def test_a_record_of_another_shape_is_no_tree() -> None:
    with pytest.raises(AssertionError, match="children"):
        _run("walk({value: 1})", {})


def test_the_document_has_json_in_place_of_the_type() -> None:
    node = compiled_text(_NODE.format(types=f"  {_TREE}", returns="integer", value=SUM))
    assert str(node.node.inputs[0].type) == "json"
    assert b"Tree" not in node.ir.split(b'"source"')[0]
