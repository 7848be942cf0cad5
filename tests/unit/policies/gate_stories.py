"""Stories of many askers at one gate, for the machine alone and for the machine beside Redis."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.proofs.policies.reference import breaker, concurrency, rate_limit, tokens
from tests.proofs.policies.reference.gate import Rule
from vesper.policies.settings import Policy

SECOND = 1_000_000
_SHUT, _ROOM, _PACE = breaker.Rule(2, SECOND, 400_000), concurrency.Rule(2), rate_limit.Rule(7, SECOND, 2)
RULES = (
    Rule(_SHUT, _ROOM, _PACE),
    Rule(_SHUT, concurrency.Rule(1), None),
    Rule(_SHUT, None, rate_limit.Rule(3, SECOND)),
    Rule(None, _ROOM, rate_limit.Rule(11, 50_000, 11)),
    Rule(breaker.Rule(3, 30_000, 30_000), None, None),
    Rule(None, concurrency.Rule(3), None),
    Rule(None, None, rate_limit.Rule(1_000_000_000, 7)),
    Rule(_SHUT, None, _PACE, tokens.Rule(100, SECOND, 40)),
    Rule(None, None, None, tokens.Rule(3, 50_000, 3)),
)


def policy_of(rule: Rule) -> Policy:
    """The rule as the IR would hold it."""
    found: dict[str, int | str | tuple[str, ...]] = {}
    if rule.breaker is not None:
        found |= {"breaker_failures": rule.breaker.failures, "breaker_within_us": rule.breaker.within_us}
        found["breaker_open_us"] = rule.breaker.open_us
    if rule.concurrency is not None:
        found["concurrency"] = rule.concurrency.limit
    if rule.rate is not None:
        found |= {"rate_limit": rule.rate.limit, "rate_per_us": rule.rate.per_us, "rate_burst": rule.rate.burst}
    if rule.tokens is not None:
        found |= {"token_limit": rule.tokens.limit, "token_per_us": rule.tokens.per_us}
        found["token_burst"] = rule.tokens.burst
    if rule.attempt_us is not None:
        found["timeout_us"] = rule.attempt_us
    return found


@dataclass(frozen=True)
class Happening:
    what: str
    who: str
    gap_us: int
    """How long after what happened before."""
    patience_us: int


happenings = st.lists(
    st.builds(
        Happening,
        st.sampled_from(("ask", "ask", "ask", "failed", "failed", "answered", "abandoned")),
        st.integers(0, 5).map("w{}".format),
        st.sampled_from((0, 1, 999, 20_000, 300_000, 1_100_000)),
        st.sampled_from((0, 1_500, 150_000, 10**9)),
    ),
    max_size=40,
)
