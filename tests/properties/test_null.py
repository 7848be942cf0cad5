"""`null` with and without an expected type: findings of random programs."""

from __future__ import annotations

import pytest

from tests.support.nodes import small_node
from tests.support.waiting import processor_seconds
from vesper.compiler import compile_source
from vesper.engines.outcome import Failed, Returned
from vesper.engines.registry import ENGINES
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.source import SourceFile
from vesper.values.generated.errors import ErrorCode

_NODE = """\
node_id: small_v1
type: function
intent: Test
outputs: {success: {result: integer}}
flow:
  - {step: unused, operation: compute, value: "%s"}
  - {operation: return, success: {result: 1}}
"""


@pytest.mark.parametrize(
    "text",
    [
        "LET x = null IN 5",
        "[null]",
        "{a: null}",
        "{a: [null]}",
        "[IF true THEN null ELSE null]",
        "null IN [null]",
        "FORALL x IN [null]: true",
    ],
)
def test_null_without_a_type_is_refused(text: str) -> None:
    found, bag = compile_source(SourceFile("test.vsp", _NODE % text))
    assert found is None
    assert [each.code for each in bag.sorted()] == [Code.TYPE_MISMATCH]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_optional_or_null_is_one_optional(engine: str) -> None:
    """Regression: `IF c THEN x ELSE null` with an optional `x` was an optional of an optional."""
    node = small_node(
        "x: optional<integer>\nc: boolean",
        "- {step: y, operation: compute, value: IF c THEN x ELSE null}\n"
        "- {operation: return, success: {result: y ?? 7}}",
        outputs="result: integer",
    )
    program = ENGINES[engine].load(node)
    assert program.call({"x": 1, "c": True}) == Returned({"result": 1})
    assert program.call({"x": 1, "c": False}) == Returned({"result": 7})
    assert program.call({"x": None, "c": True}) == Returned({"result": 7})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("text", ["IF xs[0] > 0 THEN null ELSE null", "LET x = xs[0] IN null"])
def test_what_comes_before_a_null_is_still_evaluated(engine: str, text: str) -> None:
    node = small_node(
        "xs: array<integer>",
        f'- {{operation: return, success: {{result: "{text}"}}}}',
        outputs="result: optional<integer>",
    )
    program = ENGINES[engine].load(node)
    assert program.call({"xs": [1]}) == Returned({"result": None})
    outcome = program.call({"xs": []})
    assert isinstance(outcome, Failed)
    assert outcome.code == ErrorCode.INDEX_OUT_OF_RANGE


def test_arrays_in_calls_in_arrays_take_no_longer_at_every_level() -> None:
    """Regression: the first item was read twice per level, so thirty levels never ended."""
    with processor_seconds(5):
        found, _ = compile_source(SourceFile("test.vsp", _NODE % ("[length(" * 30 + "[1]" + ")]" * 30)))
    assert found is not None
