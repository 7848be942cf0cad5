"""The machines of Rust on a sample of the proof's stories, and whether the proof sees a difference."""

from __future__ import annotations

import warnings
from collections import Counter

import pytest

from tests.proofs.policies import machines
from tests.proofs.policies.machines import Difference, tell
from tests.proofs.policies.reference import breaker, concurrency, gate, memory_state, rate_limit, retry
from tests.proofs.robustness.proof import PROOFS, read_json

STORIES = 2_000


def test_a_sample_of_stories_has_no_difference() -> None:
    kinds: Counter[str] = Counter()
    for number in range(machines.STORIES, machines.STORIES + STORIES):
        tell(number, kinds)
    assert len(kinds) >= 25


@pytest.mark.parametrize(
    "module,name,value",
    [
        (concurrency, "ASK_AGAIN_US", 2_001),
        (concurrency, "PATIENCE_US", 999_999),
        (concurrency, "LONGEST_PAUSE_US", 2_000),
        (gate, "GRACE_US", 5_000_001),
        (gate, "DEFAULT_LEASE_US", 299_999_999),
        (gate, "LONGEST_WAIT_US", 60_000_001),
        (gate, "_out_of_queue", lambda state, *_: state),
        (memory_state, "CLOCK_STEP_US", 10_000_001),
        (memory_state, "is_trouble", lambda code: code == "timeout"),
        (breaker, "is_idle", lambda *_: True),
        (rate_limit, "under", lambda state, rule: rate_limit.State(rule, state.arrival)),
        (retry, "DRAWS", (1 << 32) - 1),
        (retry, "LONGEST_DELAY_US", 3_600_000_001),
        (retry, "takes", lambda codes, code: code in codes),
        (retry, "_fits", lambda delay_us, left_us: left_us is None or delay_us <= left_us),
    ],
)
def test_another_reference_makes_a_difference(
    module: object, name: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, value)
    with pytest.raises((Difference, ValueError)):
        tell_all(4 * STORIES)


def tell_all(stories: int) -> None:
    for number in range(stories):
        tell(number, Counter())


@pytest.mark.filterwarnings("default:the sources of the proof")  # told, until it is run again
def test_summary_is_of_these_sources() -> None:
    proof = read_json(PROOFS / f"{machines.NAME}.json")
    assert proof is not None, "run `make proof-policies`"
    assert proof["stories"] == machines.STORIES
    assert proof["differences"] == 0
    if proof["source_hash"] != machines.source_hash():
        warnings.warn("the sources of the proof of policies have changed: run `make proof-policies`", stacklevel=1)
