"""Token limit: a bucket that fills evenly, with a hold for each request under way.

Amounts are times: the time in which the bucket gains the tokens, in whole microseconds, rounded up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tests.proofs.policies.reference.concurrency import ASK_AGAIN_US, LONGEST_PAUSE_US, MAX_WAITING, PATIENCE_US
from tests.proofs.policies.reference.settings import numbers
from vesper.policies.settings import MAX_COUNT, MAX_US, Policy, PolicyError, number


@dataclass(frozen=True, slots=True)
class Rule:
    limit: int
    per_us: int
    burst: int

    @staticmethod
    def of(policy: Policy) -> Rule | None:
        found = numbers(policy, ("token_limit", MAX_COUNT), ("token_per_us", MAX_US))
        burst = number(policy, "token_burst")
        if found is None:
            if burst is not None:
                raise PolicyError("policy: `token_burst` is of no use without `token_limit`, which is missing")
            return None
        rule = Rule(found[0], found[1], found[0] if burst is None else burst)
        if rule.burst > rule.limit:
            raise PolicyError(
                f"policy: `token_burst` must be at most `token_limit`, {rule.limit:,}, not {rule.burst:,}"
            )
        return rule

    def time_us(self, tokens: int) -> int:
        return min(-(-max(tokens, 0) * self.per_us // self.limit), MAX_US)

    @property
    def burst_us(self) -> int:
        return min(max(self.burst * self.per_us // self.limit, 1), MAX_US)


@dataclass(frozen=True, slots=True)
class State:
    rule: Rule
    full_us: int = 0
    """Moment at which the bucket is full."""
    holds: tuple[tuple[int, str, int], ...] = ()
    """End of the lease, holder and amount."""
    queue: tuple[tuple[str, int], ...] = ()
    """Waiters, and until when their places are kept."""


@dataclass(frozen=True, slots=True)
class Entered:
    pass


@dataclass(frozen=True, slots=True)
class Queued:
    until_us: int


@dataclass(frozen=True, slots=True)
class Refused:
    retry_at_us: int


Answer: TypeAlias = Entered | Queued | Refused


def under(state: State, rule: Rule) -> State:
    return State(rule, state.full_us, state.holds, state.queue)


def ask(state: State, asker: str, tokens: int, lease_us: int, before_us: int, now_us: int) -> tuple[State, Answer]:
    state = _settled(state, now_us)
    rule, others = state.rule, tuple(each for each in state.holds if each[1] != asker)
    queue = [each for each in state.queue if each[1] > now_us or each[0] == asker]
    place = next((place for place, each in enumerate(queue) if each[0] == asker), len(queue))
    rest = tuple(each for each in queue if each[0] != asker)
    amount, held = rule.time_us(tokens), sum(each[2] for each in others)
    needed = min(amount, rule.burst_us) + held
    lack = None if needed > rule.burst_us else max(max(state.full_us - now_us, 0) - (rule.burst_us - needed), 0)
    if len(others) < len(state.holds) or (place == 0 and lack == 0):
        return State(rule, state.full_us, (*others, (now_us + lease_us, asker, amount)), rest), Entered()
    wait_us = None if lack is None else max(lack, 1)
    left_us = before_us - now_us
    pause_us = ASK_AGAIN_US * (1 + place)
    if wait_us is not None:
        pause_us = wait_us if place == 0 else max(pause_us, wait_us)
    pause_us = min(pause_us, LONGEST_PAUSE_US, max(ASK_AGAIN_US, left_us // 2))
    if pause_us >= left_us or place >= MAX_WAITING:
        return State(rule, state.full_us, others, rest), Refused(now_us + (amount if wait_us is None else wait_us))
    waiter = (asker, now_us + pause_us + PATIENCE_US)
    waiting = (*rest[:place], waiter, *rest[place:])
    return State(rule, state.full_us, others, waiting), Queued(now_us + pause_us)


def leave(state: State, asker: str, tokens: int | None, now_us: int) -> State:
    state = _settled(state, now_us)
    full_us, rest = state.full_us, tuple(each for each in state.holds if each[1] != asker)
    for _, holder, amount in state.holds:
        if holder == asker:
            full_us = _charged(full_us, amount if tokens is None else state.rule.time_us(tokens), now_us)
    queue = tuple(each for each in state.queue if each[1] > now_us and each[0] != asker)
    return State(state.rule, full_us, rest, queue)


def is_idle(state: State, now_us: int) -> bool:
    settled = _settled(state, now_us)
    return not settled.holds and settled.full_us <= now_us and all(each[1] <= now_us for each in state.queue)


def _settled(state: State, now_us: int) -> State:
    """Charge the holds whose leases have ended, each at its end."""
    full_us = state.full_us
    for until_us, _, amount in sorted(each for each in state.holds if each[0] <= now_us):
        full_us = _charged(full_us, amount, until_us)
    return State(state.rule, full_us, tuple(each for each in state.holds if each[0] > now_us), state.queue)


def _charged(full_us: int, amount: int, at_us: int) -> int:
    return full_us if amount == 0 else min(max(full_us, at_us) + amount, at_us + MAX_US)
