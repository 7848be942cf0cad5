"""Rate limit: the generic cell rate algorithm, exact in whole numbers.

`limit` requests in `per` are one every `per / limit`, and `burst` of them may come at once after a pause. The state is
one moment, the *theoretical arrival time*: when the next request would come if all came evenly. A request is given its
moment when it asks, and that moment is its own: whoever asks after it is given a later one, so that any number of
waiters go out one by one, in the order in which they asked.

In every window of the length `per` (with its beginning, without its end) begin at most `limit + burst - 1` requests;
with the burst of 1 that holds unless said otherwise, at most `limit`. A moment that falls between two microseconds is
rounded up, which never lets a request out early, and the next one is counted from the exact moment, so that rounding
does not add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from tests.proofs.policies.reference.records import Decision
from tests.proofs.policies.reference.settings import numbers
from vesper.policies.settings import MAX_COUNT, MAX_US, Policy, PolicyError, number

DEFAULT_BURST = 1


@dataclass(frozen=True, slots=True)
class Rule:
    limit: int
    per_us: int
    burst: int = DEFAULT_BURST

    @staticmethod
    def of(policy: Policy) -> Rule | None:
        """`rate_burst` is read as well; the language has no field for it yet."""
        found = numbers(policy, ("rate_limit", MAX_COUNT), ("rate_per_us", MAX_US))
        burst = number(policy, "rate_burst")
        if found is None:
            if burst is not None:
                raise PolicyError("policy: `rate_burst` is of no use without `rate_limit`, which is missing")
            return None
        rule = Rule(found[0], found[1], DEFAULT_BURST if burst is None else burst)
        if rule.burst > rule.limit:
            raise PolicyError(f"policy: `rate_burst` must be at most `rate_limit`, {rule.limit:,}, not {rule.burst:,}")
        return rule


@dataclass(frozen=True, slots=True)
class State:
    rule: Rule
    arrival: int = 0
    """The theoretical arrival time of the next request, in parts of a microsecond: `rule.limit` of them are one. In
    these parts the distance of two requests is `rule.per_us`, a whole number."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Somebody wants to make a request, now or later, but before `before_us`."""

    before_us: int | None = None


@dataclass(frozen=True, slots=True)
class Granted(Decision):
    at_us: int
    """When the request may begin: now, or later. The moment is taken."""
    decision: ClassVar[str] = "granted"


@dataclass(frozen=True, slots=True)
class Refused(Decision):
    retry_at_us: int
    """When the request might have begun, had it been able to wait. Nothing was taken."""
    decision: ClassVar[str] = "refused"


Decided: TypeAlias = Granted | Refused


def under(state: State, rule: Rule) -> State:
    """The same state under another rule: a node was deployed anew while its requests were being counted."""
    if rule == state.rule:
        return state
    return State(rule, -(-state.arrival // state.rule.limit) * rule.limit)


def step(state: State, event: Ask, now_us: int) -> tuple[State, Decided]:
    rule = state.rule
    earliest = max(now_us * rule.limit, state.arrival - (rule.burst - 1) * rule.per_us)
    at_us = -(-earliest // rule.limit)
    if event.before_us is not None and at_us >= event.before_us:
        return state, Refused(at_us)
    return State(rule, max(state.arrival, earliest) + rule.per_us), Granted(at_us)


def is_idle(state: State, now_us: int) -> bool:
    """True where a new state would decide alike from now on."""
    return state.arrival <= now_us * state.rule.limit
