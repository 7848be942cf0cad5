"""The policy of an effect: of its step and its node, as the front end writes it and the machines read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proofs.policies.reference import breaker, concurrency, gate, rate_limit
from vesper.compiler.pipeline import compile_file
from vesper.language.ir import nodes as ir
from vesper.policies.retry import LONGEST_DELAY_US, Rule
from vesper.policies.settings import Policy, effective

NODES = Path(__file__).parents[3] / "nodes"
SECOND = 1_000_000


def compiled(path: str) -> ir.Node:
    found, bag = compile_file(NODES / path)
    assert found is not None, bag
    return found.node


def test_a_step_has_the_policies_of_its_node_but_for_its_own() -> None:
    node: Policy = {"timeout_us": 1, "concurrency": 3, "total_timeout_us": 9}
    assert effective(node, {}) == node
    assert effective(node, {"timeout_us": 2}) == {"timeout_us": 2, "concurrency": 3, "total_timeout_us": 9}


def test_the_retry_of_a_step_stands_for_all_of_the_nodes() -> None:
    node: Policy = {"attempts": 3, "retry_on": ("any",), "backoff_us": 5, "jitter": "full", "timeout_us": 1}
    step: Policy = {"attempts": 2, "retry_on": ("timeout",)}
    assert effective(node, step) == {"attempts": 2, "retry_on": ("timeout",), "timeout_us": 1}


def test_the_machines_read_what_the_front_end_writes() -> None:
    rates = compiled("finance/exchange_rates_v1.vsp")
    asked = next(each for each in rates.body if isinstance(each, ir.Request) and each.effect == "http_request")
    policy = effective(rates.grants.policy, asked.policy)
    assert Rule.of(policy, "read") == Rule(
        3, ("timeout", "unavailable", "http_500", "http_503"), 50_000, 4, LONGEST_DELAY_US, True
    )
    assert gate.Rule.of(policy) == gate.Rule(breaker.Rule(5, 30 * SECOND, 60 * SECOND), attempt_us=2 * SECOND)
    notice = compiled("orders/shipment_notice_v1.vsp").grants.policy
    assert gate.Rule.of(notice) == gate.Rule(None, concurrency.Rule(10), rate_limit.Rule(50, SECOND), None, 5 * SECOND)


@pytest.mark.parametrize(
    "policy,left_us,lease_us",
    [
        ({}, None, gate.DEFAULT_LEASE_US),
        ({"timeout_us": 7}, None, 7 + gate.GRACE_US),
        ({}, 9, 9 + gate.GRACE_US),
        ({"timeout_us": 7}, 9, 7 + gate.GRACE_US),
        ({"timeout_us": 7}, 5, 5 + gate.GRACE_US),
    ],
)
def test_a_lease_is_as_long_as_the_attempt_can_be(policy: Policy, left_us: int | None, lease_us: int) -> None:
    assert gate.Rule.of(policy).lease_us(left_us) == lease_us
