"""Every worked node without effects, called with drawn inputs: whatever form they are given in, the outcome is that of
the engine. One drawn input in forty is wrong on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import make_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.support.nodes import compiled, worked_nodes
from vesper.api.explain import outcome_of
from vesper.api.outcome import AnyOutcome
from vesper.cli.output.outcomes import json_text, json_value
from vesper.engines.registry import ENGINES
from vesper.language.ir.nodes import record_of
from vesper.values.inputs import accept_inputs
from vesper.values.model import plain, same
from vesper.values.outside_names import spelled_record, to_inside, to_outside
from vesper.values.types import ArrayOf, MapOf, OptionalOf, Record, Type
from vesper.verify.inputs.generator import InputGenerator

START = datetime(2026, 11, 15, 12, tzinfo=UTC)
_DRAWN = 6


def as_objects(type_: Type, value: Any) -> Any:
    """The same value with dataclass instances for its records."""
    match type_:
        case OptionalOf(inner):
            return None if value is None else as_objects(inner, value)
        case ArrayOf(element) if isinstance(value, list):
            return [as_objects(element, item) for item in value]
        case MapOf(_, of) if isinstance(value, dict):
            return {key: as_objects(of, item) for key, item in value.items()}
        case Record() as record if isinstance(value, dict) and set(value) == {name for name, _ in record.fields}:
            return instance({name: as_objects(each, value[name]) for name, each in record.fields})
        case _:
            return value


def instance(fields: Mapping[str, Any]) -> Any:
    """A dataclass instance with these fields, named as nodes name them: a Python keyword is no name for one."""
    kind = make_dataclass("Given", [f"field_{number}" for number in range(len(fields))])
    given = kind(*fields.values())
    described = kind.__dataclass_fields__  # type: ignore[attr-defined]
    for each, name in zip(list(described.values()), fields, strict=True):
        vars(given)[name] = vars(given).pop(each.name)
        described[name] = described.pop(each.name)
        each.name = name
    return given


def assert_same(left: AnyOutcome, right: AnyOutcome, inputs: object) -> None:
    assert same(left.value, right.value), inputs
    if left.error is None or right.error is None:
        assert left.error is right.error, inputs
        return
    for name in ("kind", "code", "where"):
        assert getattr(left.error, name) == getattr(right.error, name), inputs
    assert same(dict(left.error.fields), dict(right.error.fields)), inputs
    assert [(each.path, each.kind) for each in left.error.problems] == [
        (each.path, each.kind) for each in right.error.problems
    ], inputs


@pytest.mark.parametrize("path", worked_nodes(), ids=lambda path: path.stem)
def test_every_form_of_the_inputs_comes_to_what_the_engine_says(path: Path) -> None:
    source = compiled(path)
    if not source.node.is_pure():
        return  # its Host runs it: tests/unit/host
    declared = source.node.declared_inputs
    types = {each.name: each.type for each in source.node.inputs}
    now = {} if source.node.type == "function" else {"now": START}
    generator = InputGenerator(source.node, seed=5)
    drawn = [generator.draw() for _ in range(_DRAWN)]
    for engine in ENGINES:
        node = vesper.load(path, engine=engine)
        program = ENGINES[engine].load(source)
        for inputs in drawn:
            wanted = outcome_of(source, program.call(inputs, START if now else None), inputs)
            assert_same(node(inputs, **now), wanted, inputs)
            assert_same(node(**inputs, **now), wanted, inputs)
            objects = {name: as_objects(types[name], each) if name in types else each for name, each in inputs.items()}
            assert_same(node(objects, **now), wanted, inputs)
            assert_same(node(instance(objects), **now), wanted, inputs)
            values, problems = accept_inputs(declared, inputs)
            if not problems:
                whole = record_of(source.node.inputs)
                objects = {name: plain(each) for name, each in values.items()}
                outside = to_outside(whole, objects)
                # JSON cannot say that a value is absent and there.
                if same(to_inside(whole, outside), objects):
                    text = json_text(json_value(outside, spelled_record(whole)))
                    assert_same(node(text, **now), wanted, text)
