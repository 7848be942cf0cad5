"""Every example of every declared operation, through the whole pipeline, on every engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.nodes import operation_node
from vesper.engines.outcome import Failed, Returned
from vesper.engines.registry import ENGINES
from vesper.ir.decode import type_from_json
from vesper.spec.errors import ErrorCode
from vesper.spec.json_value import parse_json
from vesper.spec.types import DECIMAL, JSON, OptionalOf, Type, declared_type
from vesper.spec.values import Value, accept, from_json, plain, same

GENERATED = Path(__file__).parent / "generated"
CASES: list[dict[str, Any]] = [
    case for path in sorted(GENERATED.glob("*.yaml")) for case in yaml.safe_load(path.read_text(encoding="utf-8"))
]


def _typed(form: dict[str, Any]) -> tuple[Type, Value]:
    ((text, value),) = form.items()
    type_ = declared_type(text)
    if type_ == JSON:
        return type_, plain(parse_json(value))  # an example need not be in the canonical form
    # `accept` and not `from_json` for a decimal: an example may write a long one as 9E+999.
    return type_, accept(type_, value) if type_ == DECIMAL else plain(_from_json(type_, value))


def _from_json(type_: Type, form: Any) -> Value:
    if isinstance(type_, OptionalOf) and type_.inner == JSON:
        return None if form is None else parse_json(form)
    return from_json(type_, form)


def test_there_are_cases() -> None:
    assert len(CASES) > 80


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_operation(case: dict[str, Any], engine: str) -> None:
    args = [_typed(form) for form in case["args"]]
    compiled = operation_node(case["op"], [type_from_json(form) for form in case.get("of", [])], args)
    inputs = dict(zip((each.name for each in compiled.node.inputs), (value for _, value in args), strict=True))
    outcome = ENGINES[engine].load(compiled).call(inputs)
    if "raises" in case:
        assert isinstance(outcome, Failed)
        assert outcome.code == ErrorCode(case["raises"])
        call = next(each.index for each in compiled.node.expressions() if hasattr(each, "op"))
        assert outcome.at == call
    else:
        _, expected = _typed(case["returns"])
        assert isinstance(outcome, Returned)
        assert same(outcome.value["result"], expected), f"{outcome.value['result']} and not {expected}"
