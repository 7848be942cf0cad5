"""Policy limits of nodes equal those of the policy machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from vesper.compiler import compile_file
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.render.full import render_full

NODE = """\
node_id: limited_v1
type: event_handler
intent: Ask somebody, with limits
inputs:
  event_id: string
outputs:
  success:
    at: timestamp
policies:
  {policy}
flow:
  - step: at
    operation: clock
  - operation: return
    success: {{at: at}}
security:
  capabilities_required: [clock.read.system]
"""
BREAKER = "circuit_breaker: {{failures: {}, within: 10s, open_for: 1s}}"


@pytest.mark.parametrize("policy", ["concurrency: {}", BREAKER])
@pytest.mark.parametrize("number, is_fine", [(1, True), (10_000, True), (10_001, False), (0, False)])
def test_policy_machines_accept_the_checked_maximum(tmp_path: Path, policy: str, number: int, is_fine: bool) -> None:
    path = tmp_path / "limited_v1.vsp"
    path.write_text(NODE.format(policy=policy.format(number)), encoding="utf-8")
    _, bag = compile_file(path)
    errors = [each for each in bag.sorted() if each.severity.value == "error"]
    assert [each.code for each in errors] == ([] if is_fine else [Code.BAD_LITERAL])
    if not is_fine:
        assert "a number from 1 to 10,000" in render_full(bag.source, errors[0])
