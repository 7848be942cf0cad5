"""Steps within a budget, looks at a budget and questions to agents, from their text to the plans of the Host."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.nodes import ROOT, compiled
from tests.unit.language.check.test_budgets import AGENT, problems
from vesper.compiler import compile_file
from vesper.host.plans import plans_of
from vesper.language.ir import nodes as ir
from vesper.language.ir.decode import decode
from vesper.language.ir.encode import encode
from vesper.language.ir.statements import all_statements
from vesper.policies.budget import Budget, budgets_of

CHECKED = ROOT / "nodes" / "agents" / "checked_reply_v1.vsp"
FLOW = """\
node_id: asking_v1
type: workflow
intent: Ask within a budget
inputs: {{question: string, list: array<integer>}}
outputs:
  success: {{done: boolean}}
  error: {{error_code: "enum[failed]", message: string}}
flow:
{steps}
  - return: {{done: 'true'}}
security: {{capabilities_required: [models.call.small]}}
"""
QUESTION = "{operation: ask_model, step: asked, model: small, request: {messages: [{role: user, content: hello}]}}"


def test_a_called_node_counts_for_the_budgets_around_its_call() -> None:
    plans = plans_of(compiled(CHECKED))
    found = {path: budgets_of(plans.of(path).policy) for path in ("triaged/model", "checked/model", "rewritten")}
    whole = Budget("agent", "checked_reply_v1", usd="1.00", on_exceeded="warn")
    final = Budget("run", "final", "0.25", 50_000, 20, 180_000_000, alert_percent=80)
    assert found["triaged/model"] == (whole, Budget("call", "triaged", usd="0.20", calls=20, time_us=120_000_000))
    assert found["checked/model"][:2] == (whole, final)
    assert (found["checked/model"][2].scope, found["checked/model"][2].depth) == ("agent", 1)
    assert found["rewritten"] == (whole, final, Budget("call", "rewritten", tokens=4_000))
    assert budgets_of(plans.of("left_read").policy) == (whole, final)


def test_budgets_of_calls_survive_the_ir() -> None:
    node = compiled(CHECKED).node
    again = decode(encode(node))
    calls = [each.budgets for each in all_statements(again.body) if isinstance(each, ir.CallNode)]
    assert calls == [each.budgets for each in all_statements(node.body) if isinstance(each, ir.CallNode)]
    assert any(len(each) > 0 for each in calls)
    assert encode(again) == encode(node)


def test_the_message_is_the_one_required_input(tmp_path: Path) -> None:
    (tmp_path / "helper_v1.vsp").write_text(
        AGENT.format(agent="", policies="inputs: {question: string, tone: {type: string, default: kind}}"),
        encoding="utf-8",
    )
    failed = "on_error: {any: {return_error: {error_code: failed, message: it failed}}}"
    step = f"  - {{step: answer, operation: ask_agent, agent: helper, message: '{{question}}!', timeout: 2s, {failed}}}"
    path = tmp_path / "asking_v1.vsp"
    path.write_text(FLOW.format(steps=step), encoding="utf-8")
    found, bag = compile_file(path)
    assert found is not None, bag.sorted()
    (call,) = [each for each in all_statements(found.node.body) if isinstance(each, ir.CallNode)]
    assert [name for name, _ in call.inputs] == ["question"]
    assert call.budgets == (Budget("call", "answer", time_us=2_000_000),)


@pytest.mark.parametrize(
    "steps, message",
    [
        ("- {step: b, operation: budget, usd: 1, steps: [{step: one, value: 1}]}", "a step that asks a model"),
        (f"- {{step: b, operation: budget, steps: [{QUESTION}]}}", "usd"),
        (f"- {{step: b, operation: budget, usd: 0, steps: [{QUESTION}]}}", "a number above 0"),
        ("- {step: left, operation: budget_read}", "name the budget"),
        ("- {step: a, operation: ask_agent, agent: add_up, message: hello}", "a node that asks a model"),
        ("- {step: a, operation: ask_agent, agent: two, message: hello}", "write `inputs`"),
        ("- {step: a, operation: ask_agent, agent: two}", "message"),
        ("- {step: a, operation: ask_agent, agent: two, message: x, inputs: {one: question, other: question}}", "both"),
        ("- {step: a, operation: ask_agent, agent: two, inputs: {one: question}}", "other"),
        (
            "- {step: a, operation: ask_agent, agent: two, inputs: {one: question, other: question}, timeout: 0s}",
            "longer than nothing",
        ),
    ],
)
def test_malformed_steps_are_refused(tmp_path: Path, steps: str, message: str) -> None:
    (tmp_path / "two_v1.vsp").write_text(
        AGENT.replace("helper_v1", "two_v1").format(agent="", policies="inputs: {one: string, other: string}"),
        encoding="utf-8",
    )
    (tmp_path / "add_up_v1.vsp").write_text(
        "node_id: add_up_v1\ntype: function\nintent: Add\ninputs: {text: string}\n"
        "outputs: {success: {n: integer}}\nflow:\n  - return: {n: '1'}\n",
        encoding="utf-8",
    )
    assert message in problems(tmp_path, FLOW.format(steps=f"  {steps}"))
