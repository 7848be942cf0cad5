"""Budgets of nodes and of questions, from their text to the IR and to the plans of the Host."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.nodes import compiled_text
from vesper.codegen.module import generate_module
from vesper.compiler import Compiled, compile_file
from vesper.host.plans import plans_of
from vesper.language.diagnostics.render.full import render_full
from vesper.language.ir.decode import decode
from vesper.language.ir.encode import encode
from vesper.policies.budget import Budget, budgets_of

NODE = """\
node_id: asking_v1
type: http_handler
intent: Ask a model
outputs:
  success: {{answer: json}}
  error: {{error_code: "enum[away]", message: string}}
policies:
  timeout: 30s
{policies}
flow:
  - step: answer
    operation: ask_model
    model: small
    request: {{messages: [{{role: user, content: hello}}]}}
    on_error:
      any: {{return_error: {{error_code: away, message: it does not answer}}}}
{step}
  - return: [answer]
security:
  capabilities_required: [models.call.small]
"""
AGENT = """\
node_id: helper_v1
type: agent
intent: Help
outputs: {{success: {{text: string}}}}
agent:
  model: small
  messages: hello
{agent}
{policies}
security: {{capabilities_required: [models.call.small]}}
"""


def compiled(policies: str = "", step: str = "") -> Compiled:
    return compiled_text(NODE.format(policies=policies and f"  {policies}", step=step and f"    {step}"))


def problems(tmp_path: Path, text: str) -> str:
    path = tmp_path / "asking_v1.vsp"
    path.write_text(text, encoding="utf-8")
    _, bag = compile_file(path)
    return "\n".join(render_full(bag.source, each) for each in bag.sorted() if each.severity.value == "error")


def test_a_node_without_budgets_keeps_its_bytes() -> None:
    assert b"budgets" not in encode(compiled().node)


def test_budgets_survive_the_ir() -> None:
    node = compiled(
        "budget: {usd: 0.50, tokens: 20000, on_exceeded: warn, alert_at: 0.8}", "budget: {calls: 3, time: 2m}"
    ).node
    again = decode(encode(node))
    outer = Budget("agent", "asking_v1", usd="0.50", tokens=20_000, on_exceeded="warn", alert_percent=80)
    inner = Budget("call", "answer", calls=3, time_us=120_000_000)
    assert budgets_of(again.grants.policy) == (outer,)
    request = next(each for each in again.body if hasattr(each, "policy"))
    assert budgets_of(request.policy) == (inner,)
    assert encode(again) == encode(node)


def test_a_plan_has_the_budgets_from_outermost() -> None:
    found = plans_of(compiled("budget: {usd: 1}", "budget: {tokens: 900}")).of("answer")
    assert [each.scope for each in budgets_of(found.policy)] == ["agent", "call"]
    assert not found.is_once


def test_generated_code_shows_budgets() -> None:
    text = generate_module(compiled("budget: {usd: 0.50, on_exceeded: warn}", "budget: {tokens: 20000}").node).text
    words = " ".join(line.strip().removeprefix("#").strip() for line in text.splitlines() if line.strip()[:1] == "#")
    assert "budget of agent asking_v1: 0.50 USD, warn beyond; budget of call answer: 20,000 tokens" in words


def test_an_agent_has_its_policies_in_its_section_or_beside_it() -> None:
    section = compiled_text(AGENT.format(agent="  budget: {usd: 0.5}\n  concurrency: 3", policies=""))
    beside = compiled_text(AGENT.format(agent="", policies="policies: {budget: {usd: 0.5}, concurrency: 3}"))
    assert section.node.grants.policy == beside.node.grants.policy
    assert section.node.grants.policy["attempts"] == 3


def test_an_agent_has_no_policy_twice(tmp_path: Path) -> None:
    text = AGENT.format(agent="  budget: {usd: 0.5}", policies="policies: {budget: {usd: 0.5}}")
    assert "`budget`" in problems(tmp_path, text)


@pytest.mark.parametrize(
    "budget, message",
    [
        ("{on_exceeded: warn}", "usd"),
        ("{usd: 0}", "a number above 0"),
        ("{usd: -1}", "a number above 0"),
        ("{tokens: 0}", "a number from 1 to"),
        ("{usd: 1, alert_at: 1.5}", "at most 1"),
        ("{usd: 1, alert_at: 0.805}", "steps of 0.01"),
        ("{usd: 1, on_exceeded: stop}", "`block`, `warn` or `allow`"),
        ("{usd: 1, euros: 2}", "euros"),
        ("{time: 0s}", "longer than nothing"),
    ],
)
def test_malformed_budgets_are_refused(tmp_path: Path, budget: str, message: str) -> None:
    assert message in problems(tmp_path, NODE.format(policies=f"  budget: {budget}", step=""))
