"""The JSON Schema of `.vsp` against the front end: it accepts all that `check` accepts, and refuses wrong shapes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.support.nodes import ROOT
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax import shapes
from vesper.language.syntax.shape import Shape
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_to_ast import NODE_TYPES
from vesper.language.syntax.yaml_tree import Scalar, Sequence, Tree
from vesper.repository.editor_schema import schema_text
from vesper.repository.starter import STARTERS, starter

SCHEMA: dict[str, Any] = json.loads(schema_text())
VALIDATOR = Draft202012Validator(SCHEMA)
SHAPES = {name.lower(): shape for name, shape in vars(shapes).items() if isinstance(shape, Shape)}
FOLDERS = ("nodes", "tests/conformance/programs", "tests/integration", "tests/optimizer", "tests/proofs")
"""Folders whose nodes other tests compile without errors."""
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}


def plain(tree: Tree) -> Any:
    """Return a tree as an editor sees it, by the core schema of YAML 1.2."""
    if isinstance(tree, Scalar):
        if tree.style:
            return tree.text
        return _WORDS.get(tree.text, float(tree.text) if _NUMBER.fullmatch(tree.text) else tree.text)
    if isinstance(tree, Sequence):
        return [plain(item) for item in tree.items]
    return {key.text: plain(value) for key, value in tree.entries}


def problems(text: str) -> list[str]:
    """Return the errors of a text as `path: message`."""
    tree = read_yaml(DiagnosticBag(SourceFile("test.vsp", text)))
    assert tree is not None
    found = VALIDATOR.iter_errors(plain(tree))
    return [f"{'.'.join(str(part) for part in error.absolute_path)}: {error.message}" for error in found]


@pytest.mark.parametrize("folder", FOLDERS)
def test_schema_accepts_every_node(folder: str) -> None:
    paths = sorted((ROOT / folder).rglob("*.vsp"))
    assert paths
    refused = {path.name: found for path in paths if (found := problems(path.read_text(encoding="utf-8")))}
    assert refused == {}


@pytest.mark.parametrize("type_", STARTERS)
def test_schema_accepts_new_nodes(type_: str) -> None:
    assert problems(starter("fee_v1", type_)) == []


@pytest.mark.parametrize(
    "text",
    [
        "parameters: {vat_rate: {2027-01-01: 0.20}, tax_rules_v1.limit: {2027-01-01: {value: 3, reference: a law}}}",
        "test_cases: [{name: one, inputs: {a: 1}, expect: {b: 2}}]",
        "library_id: rules_v1\nintent: 2026\nconstants: {a: {type: integer, value: 1}}",
    ],
    ids=["overlay", "cases", "library"],
)
def test_schema_accepts_other_documents(text: str) -> None:
    assert problems(text) == []


STEPS = {
    "implied": "{step: a, value: b + 1}",
    "short": "{return: [a]}",
    "block": "{compute: {a: 1, b: a}}",
    "record": "{step: a, operation: compute, value: {x: 1, y: null}}",
    "parameters": "{step: a, operation: compute, parameters: {value: 1}}",
    "null output": "{return: {a: null}}",
    "configured names": "{step: a, operation: secret, name: stripe.live-key}",
}
WRONG_STEPS = {
    "unknown operation": ("{step: a, operation: comput, value: 1}", "flow.0.operation: 'comput' is not one of"),
    "no operation": ("{step: a}", "flow.0: 'operation' is a required property"),
    "unknown field": ("{step: a, value: 1, vaule: 1}", "flow.0: Additional properties are not allowed"),
    "missing field": ("{step: a, operation: decision_table}", "flow.0: 'rows' is a required property"),
    "missing name": ("{value: 1}", "flow.0: 'step' is a required property"),
    "list as a condition": ("{step: a, value: 1, when: [b]}", "flow.0.when: ['b'] is not of type"),
    "mapping as rows": ("{step: a, rows: {when: b}}", "flow.0.rows: "),
    "short without fields": ("{operation: raise}", "flow.0: {'operation': 'raise'} is not valid under any"),
    "step as text": ("return", "flow.0: 'return' is not of type 'object'"),
    "name": ("{step: Fee, value: 1}", "flow.0.step: 'Fee' does not match"),
}
NODE = "node_id: fee_v1\ntype: function\nintent: A test\noutputs: {success: {a: integer}}\nflow:\n  - "


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_schema_accepts_every_form_of_a_step(step: str) -> None:
    assert problems(NODE + step) == []


@pytest.mark.parametrize("step, message", WRONG_STEPS.values(), ids=WRONG_STEPS)
def test_schema_reports_one_error_at_a_wrong_step(step: str, message: str) -> None:
    (found,) = problems(NODE + step)
    assert found.startswith(message)


@pytest.mark.parametrize(
    "wrong, message",
    [
        ("input: {a: integer}", ": Additional properties are not allowed ('input' was unexpected)"),
        ("inputs: [a]", "inputs: ['a'] is not of type 'object'"),
        ("inputs: {a: {typ: integer}}", "inputs.a: "),
        ("contracts: {preconditions: a > 0}", "contracts.preconditions: 'a > 0' is not of type 'array'"),
        ("constants: {a: 1}", "constants.a: 1.0 is not of type 'object'"),
        ("http: {method: FETCH, path: /a}", "http.method: 'FETCH' is not one of"),
        ("observability: x", ": Additional properties are not allowed ('observability' was unexpected)"),
    ],
)
def test_schema_refuses_wrong_fields_of_a_node(wrong: str, message: str) -> None:
    (found,) = problems(f"{NODE}return: [a]\n{wrong}")
    assert found.startswith(message)


def test_schema_describes_every_mapping() -> None:
    assert set(SHAPES) <= set(SCHEMA["$defs"])
    for name, shape in SHAPES.items():
        described = SCHEMA["$defs"][name]
        short = shapes.SHORT.get(name)
        assert set(described["properties"]) == {*shape.required, *shape.optional, *((name,) if short else ())}
        # `step` selects the fields of a step by its operation or keys, and requires its name.
        left_out = {"operation", "step", short} if "operation" in described["properties"] else set()
        assert described["required"] == [each for each in shape.required if each not in left_out]
        assert described["additionalProperties"] is False


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every mapping of a schema."""
    if isinstance(schema, dict):
        yield schema
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from parts(part)


def test_schema_describes_every_property_and_definition() -> None:
    described = [*SCHEMA["$defs"].items()]
    for name, definition in SCHEMA["$defs"].items():
        described += [(f"{name}.{key}", value) for key, value in definition.get("properties", {}).items()]
    assert [name for name, schema in described if not schema.get("description")] == []


def test_schema_references_resolve() -> None:
    found = {part["$ref"] for part in parts(SCHEMA) if "$ref" in part}
    assert found == {f"#/$defs/{name}" for name in SCHEMA["$defs"]}


def test_schema_is_named() -> None:
    assert SCHEMA["$id"] == "urn:vesper:vsp:0.3"
    assert SCHEMA["$defs"]["node"]["properties"]["type"]["enum"] == list(NODE_TYPES)
