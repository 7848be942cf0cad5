"""The comment beside a request shows the policies that the Host applies to it."""

from __future__ import annotations

from tests.support.nodes import compiled_text
from vesper.codegen.module import generate_module

NODE = """\
node_id: policies_v1
type: http_handler
intent: Ask twice
outputs:
  success: {{answer: integer}}
  error: {{error_code: "enum[away]", message: string}}
flow:
  - step: answer
    operation: external_api_call
    provider: bank
    method: GET
    endpoint: /rate
    expect: integer
    on_error:
      unavailable: {{return_error: {{error_code: away, message: it does not answer}}}}
{step}
  - {{operation: return, success: [answer]}}
{node}
security:
  capabilities_required: [network.http_client.bank]
"""


def comments(step: str = "", node: str = "") -> list[str]:
    text = generate_module(compiled_text(NODE.format(step=step, node=node)).node).text
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if "# step answer" in line)
    end = next(number for number, line in enumerate(lines) if "yield Request(" in line)
    return [line.strip().removeprefix("#").strip() for line in lines[start + 1 : end] if "#" in line]


def test_a_request_without_policies_has_no_comment() -> None:
    assert comments() == []


def test_timeout_and_retry() -> None:
    step = (
        "    timeout: 1500ms\n    retry: {attempts: 3, on: [http_5xx], backoff: {base: 200ms, max: 90s, jitter: full}}"
    )
    assert " ".join(comments(step)) == (
        "timeout 1500ms; at most 3 attempts on http_5xx, backoff from 200ms times 2 up to 90s, full jitter"
    )


def test_policies_of_the_node_hold_for_its_steps() -> None:
    node = (
        "policies:\n  timeout: 2s\n  retry: {attempts: 2}\n"
        "  circuit_breaker: {failures: 1, within: 30s, open_for: 1m}\n"
        "  rate_limit: {limit: 50, per: 1s}\n  concurrency: 10"
    )
    assert " ".join(comments(node=node)) == (
        "timeout 2s; at most 2 attempts on timeout or unavailable; circuit breaker opens after 1 failure "
        "within 30s for 1m; rate limit 50 per 1s; at most 10 at a time"
    )
    assert comments("    timeout: 5s", "policies:\n  timeout: 2s") == ["timeout 5s"]
