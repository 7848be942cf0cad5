"""A crowd of workers before the limits of one model, by a clock that is moved: no time passes, and no noise enters.

Each worker asks, holds the most that a request may use, uses less after a while, and asks again.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.proofs.policies.reference.gate import Admitted, Waiting
from tests.support.shared_limits import PolicyState, Token
from vesper.policies.settings import Policy

SECOND = 1_000_000
NOW = 1_790_000_000_000_000


@dataclass(frozen=True)
class Load:
    """What the workers ask for."""

    workers: int = 16
    most_tokens: int = 1_200
    used: tuple[int, int] = (100, 600)
    """Tokens of a request, drawn between these."""
    took_us: tuple[int, int] = (200_000, 1_600_000)


@dataclass
class Used:
    """Requests that began, by their moments, and the tokens of each."""

    moments: list[tuple[int, int]] = field(default_factory=list)
    decisions: int = 0

    def rate(self, since_us: int, until_us: int) -> tuple[float, float]:
        """Return requests and tokens of a second."""
        inside = [tokens for at_us, tokens in self.moments if since_us <= at_us < until_us]
        seconds = (until_us - since_us) / SECOND
        return len(inside) / seconds, sum(inside) / seconds

    def fullest(self, per_us: int) -> tuple[int, int]:
        """Return the most requests and the most tokens of any window, with its beginning and without its end."""
        ordered = sorted(self.moments)
        requests = tokens = most_requests = most_tokens = first = 0
        for at_us, used in ordered:
            requests, tokens = requests + 1, tokens + used
            while ordered[first][0] <= at_us - per_us:
                requests, tokens = requests - 1, tokens - ordered[first][1]
                first += 1
            most_requests, most_tokens = max(most_requests, requests), max(most_tokens, tokens)
        return most_requests, most_tokens


def simulate(
    state: PolicyState,
    name: str,
    policy: Policy,
    load: Load,
    seconds: float,
    seed: int,
    set_clock: Callable[[int], None] = lambda _: None,
) -> Used:
    """Let the workers ask until the time is over; a state in Redis takes the time by `set_clock`."""
    chance, found = random.Random(seed), Used()
    end_us = NOW + int(seconds * SECOND)
    events: list[tuple[int, int, str, int, Token | None]] = []
    """Moment, order, `ask` or `end`, tokens used, and the token of who waits or ends."""
    order = 0

    def put(at_us: int, what: str, used: int = 0, token: Token | None = None) -> None:
        nonlocal order
        order += 1
        heapq.heappush(events, (at_us, order, what, used, token))

    for _ in range(load.workers):
        put(NOW + chance.randrange(1_000), "ask")
    while events and events[0][0] < end_us:
        now_us, _, what, used, token = heapq.heappop(events)
        set_clock(now_us)
        if what == "end":
            assert token is not None
            state.release(token, None, now_us, tokens=used)
        admission = state.acquire(
            name, policy, now_us, now_us + 3600 * SECOND, token if what == "ask" else None, tokens=load.most_tokens
        )
        found.decisions += 1
        decision = admission.decision
        if isinstance(decision, Waiting):
            put(now_us + decision.wait_us, "ask", 0, admission.token)
            continue
        assert isinstance(decision, Admitted), decision
        began_us, used = now_us + decision.wait_us, chance.randint(*load.used)
        found.moments.append((began_us, used))
        put(began_us + chance.randint(*load.took_us), "end", used, admission.token)
    return found
