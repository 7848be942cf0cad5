"""Steps without `operation` mean the same as their long forms."""

from __future__ import annotations

import pytest

from vesper.compiler import compile_source
from vesper.language.diagnostics.source import SourceFile

NODE = """\
node_id: short_v1
type: function
intent: Compare forms
inputs: {{a: integer, xs: "array<integer>", plan: "enum[x, y]"}}
outputs:
  success: {{b: integer}}
  error: {{error_code: "enum[bad]", message: string}}
flow:
  - operation: raise
    when: a < 0
    error: {{error_code: bad, message: "'no'"}}
  - {step}
  - operation: return
    success: {{b: a}}
"""


def hash_of(text: str) -> str | list[str]:
    compiled, bag = compile_source(SourceFile("short_v1.vsp", text))
    return [each.headline for each in bag.sorted()] if compiled is None else compiled.semantic_hash


@pytest.mark.parametrize(
    "operation, step",
    [
        ("compute", "{step: c, value: a + 1}"),
        ("compute", "{compute: {c: a + 1, d: c + 1}}"),
        ("decision_table", "{step: c, rows: [{when: a > 1, then: a}, {otherwise: 0}]}"),
        ("validation", "{require: [a < 10]}"),
        ("conditional", "{step: c, condition: a > 1, then: a, else: '0'}"),
        ("match", "{step: c, 'on': plan, cases: [{is: x, then: '1'}, {is: y, then: '2'}]}"),
        ("loop", "{step: c, over: x IN xs, collect: x + 1}"),
        ("loop", "{step: c, while: n < a, max: 10, state: {n: 0}, next: {n: n + 1}}"),
        ("data_transform", "{step: c, over: x IN xs, stages: [{filter: x > 1}]}"),
        ("string_template", "{step: c, template: '{a} pieces'}"),
    ],
)
def test_a_key_implies_the_operation(operation: str, step: str) -> None:
    short = hash_of(NODE.format(step=step))
    assert isinstance(short, str), short
    assert short == hash_of(NODE.format(step=f"{{operation: {operation}, {step[1:]}"))


def test_return_and_raise_are_keys() -> None:
    long = NODE.format(step="{step: b, operation: compute, value: a}")
    short = long.replace("operation: return\n    success: {b: a}", "return: [b]")
    short = short.replace("operation: raise\n    when: a < 0\n    error:", "when: a < 0\n    raise:")
    assert short != long
    assert hash_of(short) == hash_of(long.replace("success: {b: a}", "success: [b]"))


def test_a_step_without_any_such_key_needs_an_operation() -> None:
    assert hash_of(NODE.format(step="{step: c, when: a > 1}")) == ["a step needs `operation`"]
    assert "`values`" in str(hash_of(NODE.format(step="{step: c, value: a, values: 1}")))
