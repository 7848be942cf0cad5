"""Every example of every declared operation, through the whole pipeline, on every engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance.forms import typed_form
from tests.support.nodes import expression_node, operation_node
from vesper.engines.outcome import Failed, Returned
from vesper.engines.registry import ENGINES
from vesper.language.ir import nodes as ir
from vesper.language.ir.type_json import type_from_json
from vesper.values.generated.errors import ErrorCode
from vesper.values.generated.operations import OPERATIONS
from vesper.values.model import same

GENERATED = Path(__file__).parent / "generated"
CASES: list[dict[str, Any]] = [
    case
    for path in sorted(GENERATED.glob("*.yaml"))
    for case in yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader) or ()  # faster than safe_load
]


def test_there_are_cases() -> None:
    assert len(CASES) > 80


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_operation(case: dict[str, Any], engine: str) -> None:
    if "expression" in case:
        typed = {name: typed_form(form) for name, form in case["inputs"].items()}
        compiled = expression_node(case["expression"], {name: type_ for name, (type_, _) in typed.items()})
        given = {name: value for name, (_, value) in typed.items()}
    else:
        args = [typed_form(form) for form in case["args"]]
        compiled = operation_node(case["op"], [type_from_json(form) for form in case.get("of", [])], args)
        given = {name: value for (name, _), (_, value) in zip(OPERATIONS[case["op"]].params, args, strict=True)}
    inputs = {each.name: given[each.name] for each in compiled.node.inputs}
    outcome = ENGINES[engine].load(compiled).call(inputs)
    if "raises" in case:
        assert isinstance(outcome, Failed)
        assert outcome.code == ErrorCode(case["raises"])
        wanted = ir.For if "expression" in case else ir.Call
        call = next(each.index for each in compiled.node.expressions() if isinstance(each, wanted))
        assert outcome.at == call
    else:
        _, expected = typed_form(case["returns"])
        assert isinstance(outcome, Returned)
        assert same(outcome.value["result"], expected), f"{outcome.value['result']} and not {expected}"
