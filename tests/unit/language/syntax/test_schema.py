"""The JSON Schema of `.vsp` against the shapes of the front end. Both come from one declaration."""

from __future__ import annotations

import json
from typing import Any

from tests.support.nodes import ROOT
from vesper.language.syntax import shapes
from vesper.language.syntax.shape import Shape
from vesper.language.syntax.yaml_to_ast import NODE_TYPES

SCHEMA: dict[str, Any] = json.loads((ROOT / "schemas" / "vsp.schema.json").read_text(encoding="utf-8"))
SHAPES = {name.lower(): shape for name, shape in vars(shapes).items() if isinstance(shape, Shape)}


def test_schema_describes_every_mapping() -> None:
    assert set(SHAPES) <= set(SCHEMA["$defs"])
    for name, shape in SHAPES.items():
        described = SCHEMA["$defs"][name]
        short = shapes.SHORT.get(name)
        assert set(described["properties"]) == {*shape.required, *shape.optional, *((name,) if short else ())}
        left_out = {"operation", short} if "anyOf" in described else set()
        assert described["required"] == [each for each in shape.required if each not in left_out]
        assert described["additionalProperties"] is False


def test_schema_references_resolve() -> None:
    def references(part: Any) -> list[str]:
        if isinstance(part, dict):
            own = [part["$ref"]] if "$ref" in part else []
            return own + [each for value in part.values() for each in references(value)]
        return [each for value in part for each in references(value)] if isinstance(part, list) else []

    found = references(SCHEMA)
    assert found
    assert {each.removeprefix("#/$defs/") for each in found} <= set(SCHEMA["$defs"])


def test_schema_describes_a_node_or_a_library() -> None:
    assert SCHEMA["$schema"].endswith("2020-12/schema")
    assert SCHEMA["if"] == {"required": ["library_id"]}
    assert (SCHEMA["then"], SCHEMA["else"]) == ({"$ref": "#/$defs/library"}, {"$ref": "#/$defs/node"})
    assert SCHEMA["$defs"]["node"]["properties"]["type"]["enum"] == list(NODE_TYPES)
