"""Concurrency: at most so many attempts at once.

Whoever enters has a lease: one that dies frees its place when the lease is over. Who finds no place free stands in a
queue and asks again at the moment that it is told; places that become free go to the first in the queue, and nobody
overtakes. One in the queue that does not come back is dropped a second after it should have. Who is inside and asks
once more is still inside, with a new lease: a question that was sent twice takes one place.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from operator import itemgetter
from typing import ClassVar, TypeAlias

from tests.proofs.policies.reference.records import Decision
from vesper.policies.settings import Policy, number

MAX_LIMIT = 10_000
"""More than a node could have open at once; the leases of so many are kept."""
MAX_WAITING = 1_000
"""Who would be the next one in the queue is refused."""
ASK_AGAIN_US = 2_000
LONGEST_PAUSE_US = 100_000
"""The first in the queue asks again after 2 ms, the second after 4 ms, and so on, up to this."""
PATIENCE_US = 1_000_000
"""How much later than it was told one in the queue may ask again before its place is given away."""


@dataclass(frozen=True, slots=True)
class Rule:
    limit: int

    @staticmethod
    def of(policy: Policy) -> Rule | None:
        limit = number(policy, "concurrency", MAX_LIMIT)
        return None if limit is None else Rule(limit)


@dataclass(frozen=True, slots=True)
class State:
    rule: Rule
    inside: tuple[tuple[int, str], ...] = ()
    """When each lease is over, and whose it is; the first to end stands first."""
    queue: tuple[tuple[str, int], ...] = ()
    """Who waits, and until when their place is kept; the first to come stands first."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Somebody wants to enter for no longer than `lease_us`, now or later, but before `before_us`. Who waits asks
    again under the same name."""

    asker: str
    lease_us: int
    before_us: int | None = None


@dataclass(frozen=True, slots=True)
class Leave:
    """Somebody comes out, or leaves the queue."""

    asker: str


@dataclass(frozen=True, slots=True)
class Entered(Decision):
    inside: int
    """How many are inside now."""
    decision: ClassVar[str] = "entered"


@dataclass(frozen=True, slots=True)
class Queued(Decision):
    until_us: int
    """When to ask again."""
    ahead: int
    """How many stand before it in the queue."""
    decision: ClassVar[str] = "queued"


@dataclass(frozen=True, slots=True)
class Full(Decision):
    """No place, and no time or no room to wait for one."""

    waiting: int
    decision: ClassVar[str] = "full"


@dataclass(frozen=True, slots=True)
class Left(Decision):
    was_inside: int
    """1 where a place became free; 0 where it had been given away, or was only in the queue."""
    decision: ClassVar[str] = "left"


Event: TypeAlias = Ask | Leave
Decided: TypeAlias = Entered | Queued | Full | Left


def under(state: State, rule: Rule) -> State:
    """The same state under another rule. Who is inside stays there, though it may be more than the new limit."""
    return state if state.rule == rule else State(rule, state.inside, state.queue)


def step(state: State, event: Event, now_us: int) -> tuple[State, Decided]:
    inside = state.inside[bisect_right(state.inside, now_us, key=itemgetter(0)) :]
    others = tuple(each for each in inside if each[1] != event.asker)
    if isinstance(event, Leave):
        queue = tuple(each for each in state.queue if each[1] > now_us and each[0] != event.asker)
        return State(state.rule, others, queue), Left(len(inside) - len(others))
    queue = tuple(each for each in state.queue if each[1] > now_us or each[0] == event.asker)
    ahead = next((place for place, each in enumerate(queue) if each[0] == event.asker), len(queue))
    rest = (*queue[:ahead], *queue[ahead + 1 :])
    if len(others) < len(inside) or ahead < state.rule.limit - len(inside):
        lease = (now_us + event.lease_us, event.asker)
        place = bisect_right(others, lease)
        inside = (*others[:place], lease, *others[place:])
        return State(state.rule, inside, rest), Entered(len(inside))
    pause_us = pause(ahead, None if event.before_us is None else event.before_us - now_us)
    if pause_us is None or ahead >= MAX_WAITING:
        return State(state.rule, inside, rest), Full(len(rest))
    waiter = (event.asker, now_us + pause_us + PATIENCE_US)
    return State(state.rule, inside, (*queue[:ahead], waiter, *queue[ahead + 1 :])), Queued(now_us + pause_us, ahead)


def pause(ahead: int, left_us: int | None) -> int | None:
    """How long to wait before asking again; nothing where there is no time to."""
    pause_us = min(ASK_AGAIN_US * (1 + ahead), LONGEST_PAUSE_US)
    if left_us is not None:
        pause_us = min(pause_us, max(ASK_AGAIN_US, left_us // 2))
    return None if left_us is not None and pause_us >= left_us else pause_us


def is_idle(state: State, now_us: int) -> bool:
    """True where a new state would decide alike from now on."""
    inside_until = state.inside[-1][0] if state.inside else now_us
    return inside_until <= now_us and all(until_us <= now_us for _, until_us in state.queue)
