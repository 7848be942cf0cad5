"""The scripts of Redis against the machines, on random stories that aim at the moments when something changes.

A story that only lets time go by by chance never asks in the very microsecond in which a lease ends. So the next moment
is often one that the state itself names, or the one before or after it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.proofs.policies.reference import breaker, concurrency, gate, rate_limit, tokens
from tests.proofs.policies.reference.memory_state import CLOCK_STEP_US, MemoryPolicyState
from tests.proofs.policies.reference.memory_state import Admission as ReferenceAdmission
from tests.proofs.policies.reference.memory_state import Token as ReferenceToken
from tests.support.servers import Redis
from tests.support.shared_limits import Admission, ClockedRedis, Token
from tests.unit.policies.gate_stories import policy_of

SECOND = 1_000_000
NOW = 1_790_000_000_000_000
STORIES, STEPS = 40, 70
ENDINGS = ("failed", "failed", "answered", "abandoned")


def some_rule(chance: random.Random, has_tokens: bool) -> gate.Rule:
    limit = chance.randint(1, 12)
    times = (50, 1_000, 400_000, 3 * SECOND)
    shut = breaker.Rule(chance.randint(1, 3), chance.choice(times), chance.choice(times))
    pace = rate_limit.Rule(limit, chance.choice((7, 50, 1_000, SECOND)), chance.randint(1, limit))
    kinds = chance.choice(("s", "r", "p", "sr", "sp", "rp", "srp", "srp"))
    held = None
    if has_tokens:  # a name has one queue: of places, or of tokens
        kinds = kinds.replace("r", "")
        held = tokens.Rule(chance.choice((3, 100)), chance.choice((50, 1_000, SECOND)), chance.randint(1, 3))
    return gate.Rule(
        shut if "s" in kinds else None,
        concurrency.Rule(chance.randint(1, 3)) if "r" in kinds else None,
        pace if "p" in kinds else None,
        held,
        chance.choice((None, 1, 100, SECOND)),
    )


def moments(state: gate.State, last_us: int) -> Iterator[int]:
    """When something changes by itself."""
    yield last_us - CLOCK_STEP_US
    if state.breaker is not None:
        match state.breaker.phase:
            case breaker.Closed(since_us, failures):
                yield from (at_us + state.breaker.rule.within_us for at_us, _ in failures)
                yield since_us or last_us
            case breaker.Open(until_us) | breaker.HalfOpen(_, until_us) if until_us:
                yield until_us
    if state.concurrency is not None:
        yield from (until_us for until_us, _ in state.concurrency.inside)
        yield from (until_us for _, until_us in state.concurrency.queue)
        yield from (until_us - concurrency.PATIENCE_US for _, until_us in state.concurrency.queue)
    if state.tokens is not None:
        yield state.tokens.full_us or last_us
        yield from (until_us for until_us, _, _ in state.tokens.holds)
        yield from (until_us - concurrency.PATIENCE_US for _, until_us in state.tokens.queue)
    if state.rate is not None:
        rule = state.rate.rule
        yield state.rate.arrival // rule.limit
        yield (state.rate.arrival - (rule.burst - 1) * rule.per_us) // rule.limit


def summary(admission: Admission | ReferenceAdmission) -> tuple[object, ...]:
    decision = admission.decision
    by = "" if isinstance(decision, gate.Admitted) else decision.by
    return decision.decision, by, decision.wait_us, admission.token and admission.token.admitted_us


def change(in_redis: ClockedRedis, token: Token, how: str, used: int | None, now_us: int) -> gate.Released | None:
    if how == "abandoned":
        in_redis.abandon(token, now_us)
        return None
    return in_redis.release(token, "http_503" if how == "failed" else None, now_us, tokens=used)


def reference_change(
    in_memory: MemoryPolicyState, token: ReferenceToken, how: str, used: int | None, now_us: int
) -> object:
    if how == "abandoned":
        in_memory.abandon(token, now_us)
        return None
    return in_memory.release(token, "http_503" if how == "failed" else None, now_us, tokens=used)


def run(in_redis: ClockedRedis, seed: int, has_tokens: bool) -> None:
    chance, amounts = random.Random(seed), random.Random(seed)
    in_memory, name, now_us = MemoryPolicyState(), f"story {seed}", NOW
    rule = some_rule(chance, has_tokens)
    taken: dict[str, tuple[Token, ReferenceToken]] = {}
    story: list[object] = [seed, rule]
    for _ in range(STEPS):
        if chance.random() < 0.02:
            rule = some_rule(chance, has_tokens)
            story.append(rule)
        entry = in_memory._entries.get(name)
        aims = [] if entry is None else [*moments(entry.state, entry.last_us)]
        if aims and chance.random() < 0.5:
            aim = chance.choice(
                aims if chance.random() < 0.05 else [each for each in aims if each > now_us] or [now_us]
            )
            now_us = aim + chance.choice((-1, 0, 0, 1))
        else:
            now_us += chance.choice((0, 0, 0, 1, 2, 3, 5, 2_000, -1))
        in_redis.at_us = now_us
        who = f"w{chance.randint(0, 5)}"
        if chance.random() < 0.65:
            patience_us = chance.choice((0, 1, 1_999, 2_000, 2_001, 4_001, 9_000, 5 * SECOND, 5 * SECOND))
            if aims and chance.random() < 0.3:
                patience_us = max(chance.choice(aims) - now_us + chance.choice((-1, 0, 1)), 0)
            policy, deadline_us = policy_of(rule), now_us + patience_us
            ours, theirs = taken.get(who, (None, None))
            most = amounts.choice((0, 1, 2, 3, 50))
            one = in_redis.acquire(name, policy, now_us, deadline_us, ours, tokens=most)
            other = in_memory.acquire(name, policy, now_us, deadline_us, theirs, tokens=most)
            story.append((now_us - NOW, who, patience_us, most, summary(other)))
            assert summary(one) == summary(other), story
            if one.token is not None and other.token is not None:
                taken[who] = one.token, other.token
        elif who in taken:
            how = chance.choice(ENDINGS)
            used = amounts.choice((None, 0, 1, 2, 50))
            story.append((now_us - NOW, who, how, used))
            ours, theirs = taken[who]
            told = reference_change(in_memory, theirs, how, used, now_us)
            assert change(in_redis, ours, how, used, now_us) == told, story


@pytest.mark.parametrize("part", range(6))
def test_the_scripts_decide_as_the_machines_do(redis_server: Redis, part: int) -> None:
    in_redis = ClockedRedis(redis_server.url, NOW, prefix="stories:")
    for number in range(STORIES):
        run(in_redis, part * STORIES + number, part >= 4)
    in_redis.close()
