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
    headline = "a step needs `operation`, or a field that implies it, such as `value`"
    assert hash_of(NODE.format(step="{step: c, when: a > 1}")) == [headline]
    assert "`values`" in str(hash_of(NODE.format(step="{step: c, value: a, values: 1}")))


@pytest.mark.parametrize(
    "step, found",
    [
        ("{step: c, formula: a + 1}", [("formula", "write `value`")]),
        ("{step: c, compute: a + 1}", [("compute", "write `value`")]),
        ("{step: c, if: a > 1, then: a, else: '0'}", [("if", "write `condition`")]),
        ("{step: c, type: decision_table, rules: [{otherwise: 0}]}",
         [("type", "write `operation`"), ("rules", "write `rows`")]),
        ("{step: c, vlaue: a + 1}", [("vlaue", "did you mean `value`?")]),
        ("{step: c, provider: p, endpoint: /x}", [("step", "add `operation: external_api_call`")]),
        ("{step: c, condition: a > 1, then: a, else if: a > 5, else: '0'}", [("else if", "a table: `rows:` with")]),
        ("{step: c, for: x in xs, do: n += x}", [("for", "`over: x IN xs`"), ("do", "`next: {n: n + x}`")]),
        ("{step: c, operation: loop, foreach: x of xs}", [("foreach", "`over: x IN xs`")]),
        ("{step: c, foo: a}", [("foo", "nothing says what this step does")]),
    ],
)  # fmt: skip
def test_a_foreign_field_is_named_with_the_form_that_replaces_it(step: str, found: list[tuple[str, str]]) -> None:
    source = SourceFile("short_v1.vsp", NODE.format(step=step))
    _, bag = compile_source(source)
    shown = [(source.slice(each.primary.span), each.help or "") for each in bag.sorted()]
    assert [key for key, _ in shown] == [key for key, _ in found], shown
    assert all(part in help_ for (_, help_), (_, part) in zip(shown, found, strict=True)), shown


@pytest.mark.parametrize("part", ["return_error: {error_code: bad, message: no}", "value: '0'", "error_code: bad"])
def test_on_error_needs_the_failure_first(part: str) -> None:
    step = f"{{step: c, value: div_floor(7, a), on_error: {{{part}}}}}".replace("div_floor(7, a)", "'div_floor(7, a)'")
    source = SourceFile("short_v1.vsp", NODE.format(step=step))
    _, bag = compile_source(source)
    helps = [each.help or "" for each in bag.sorted() if each.headline.startswith("`on_error` must be")]
    assert len(helps) == 1
    assert helps[0].startswith("`on_error` needs the failure first: `any: {")
    assert "division_by_zero" in helps[0]
