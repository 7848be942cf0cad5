"""The token limit: holds, charges and leases, and no window beyond tokens and burst."""

from __future__ import annotations

import json

import pytest

from tests.proofs.limits.simulation import NOW, SECOND, Load, simulate
from tests.support.shared_limits import MemoryPolicyState
from vesper._direct import PolicyGate
from vesper.policies.settings import Policy

RULE: Policy = {"token_limit": 100, "token_per_us": SECOND, "token_burst": 60}


class Gate:
    """A gate under `RULE`; returns decisions in words."""

    def __init__(self) -> None:
        self.gate = PolicyGate()

    def ask(self, asker: str, tokens: int, at_us: int = 0, patience_us: int = 10 * SECOND) -> str:
        before_us = NOW + at_us + patience_us
        found = json.loads(self.gate.ask(RULE, asker, 5 * SECOND, before_us, NOW + at_us, tokens))
        return f"{found['decision']} {found['wait_us']}"

    def end(self, asker: str, tokens: int | None, at_us: int = 0) -> None:
        self.gate.leave(RULE, asker, NOW, False, NOW + at_us, tokens)


def test_a_hold_keeps_others_out_until_it_is_charged() -> None:
    gate = Gate()
    assert gate.ask("a", 40) == "admitted 0"
    assert gate.ask("b", 40) == "waiting 2000", "a request must end: nobody knows when"
    gate.end("a", 10, 1_000)
    assert gate.ask("b", 40, 2_000) == "admitted 0"


def test_who_lacks_tokens_waits_as_long_as_the_bucket_needs() -> None:
    gate = Gate()
    assert gate.ask("a", 60) == "admitted 0"
    gate.end("a", 60)
    assert gate.ask("b", 4) == "waiting 40000"
    assert gate.ask("c", 1, 1) == "waiting 10000" or gate.ask("c", 1, 1) == "waiting 9999"
    assert gate.ask("b", 4, 40_000) == "admitted 0"


def test_a_request_above_the_burst_needs_a_full_bucket() -> None:
    gate = Gate()
    assert gate.ask("a", 1_000) == "admitted 0"
    gate.end("a", 10)
    assert gate.ask("a", 1_000, 1) == "waiting 99999"
    assert gate.ask("a", 1_000, 100_000) == "admitted 0"


def test_who_does_not_wait_is_told_when_it_would_be_of_use() -> None:
    gate = Gate()
    assert gate.ask("a", 60) == "admitted 0"
    gate.end("a", 60)
    assert gate.ask("b", 20, patience_us=1) == "rejected 200000"
    assert gate.ask("c", 10, 100_000, patience_us=1) == "admitted 0", "a rejected asker stands in no queue"


def test_a_dead_process_is_charged_its_hold() -> None:
    gate = Gate()
    assert gate.ask("a", 60) == "admitted 0"
    assert gate.ask("b", 60, 5 * SECOND, patience_us=1) == "rejected 600000"
    assert gate.ask("b", 60, 5 * SECOND + 600_000) == "admitted 0"


@pytest.mark.parametrize("seed", range(3))
def test_no_window_has_more_than_tokens_and_burst(seed: int) -> None:
    policy: Policy = {"token_limit": 2_000, "token_per_us": SECOND, "token_burst": 1_500}
    load = Load(workers=6, most_tokens=400, used=(1, 400), took_us=(1_000, 3 * SECOND))
    found = simulate(MemoryPolicyState(), "m", policy, load, 60, seed)
    assert len(found.moments) > 60
    assert found.fullest(SECOND)[1] <= 3_500
