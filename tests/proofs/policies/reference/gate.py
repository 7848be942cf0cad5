"""The gate: circuit breaker, concurrency and rate limit as one decision about one attempt.

An attempt goes out where all three let it, and only then does it take anything of any of them: one that the breaker
stops takes no place and no moment, and one that has no place does not become the probe. Where several say no, the
answer is that of the first in this order: breaker, concurrency, rate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, TypeAlias

from tests.proofs.policies.reference import breaker, concurrency, rate_limit, tokens
from tests.proofs.policies.reference.records import Decision
from vesper.policies.settings import MAX_US, Policy, PolicyError, number

LONGEST_WAIT_US = 60_000_000
"""How long an attempt waits at the gate where its execution has no time limit."""
GRACE_US = 5_000_000
"""A lease is so much longer than the attempt may take: for the way there and back."""
DEFAULT_LEASE_US = 300_000_000
"""The lease of an attempt that may take as long as it takes. One that takes longer may be overtaken."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The policies of one gate; nothing for those that it has not."""

    breaker: breaker.Rule | None = None
    concurrency: concurrency.Rule | None = None
    rate: rate_limit.Rule | None = None
    tokens: tokens.Rule | None = None
    attempt_us: int | None = None
    """How long an attempt may take, where its policy says so."""

    @staticmethod
    def of(policy: Policy) -> Rule:
        """Asked for before every attempt: a rule that was read once is not read again."""
        values = tuple(map(policy.get, _KEYS))
        if all(value is None or type(value) is int for value in values):
            return _read_once(values)
        return _read(policy)

    @property
    def is_open_to_all(self) -> bool:
        """True where there is nothing to decide."""
        return self.breaker is None and self.concurrency is None and self.rate is None and self.tokens is None

    def lease_us(self, left_us: int | None) -> int:
        """How long an attempt that begins now can go on, with so much time left to its execution."""
        times = [each for each in (self.attempt_us, left_us) if each is not None]
        return min(times) + GRACE_US if times else DEFAULT_LEASE_US


def _read(policy: Policy) -> Rule:
    of_tokens = tokens.Rule.of(policy)
    if of_tokens is not None and "concurrency" in policy:
        raise PolicyError("policy: `concurrency` and `token_limit` are not counted under one name")
    return Rule(
        breaker.Rule.of(policy),
        concurrency.Rule.of(policy),
        rate_limit.Rule.of(policy),
        of_tokens,
        number(policy, "timeout_us", MAX_US),
    )


_KEYS = (
    *("breaker_failures", "breaker_within_us", "breaker_open_us", "concurrency"),
    *("rate_limit", "rate_per_us", "rate_burst", "token_limit", "token_per_us", "token_burst", "timeout_us"),
)
"""All that a rule is made of."""


@lru_cache(maxsize=1_024)
def _read_once(values: tuple[int | None, ...]) -> Rule:
    return _read({key: value for key, value in zip(_KEYS, values, strict=True) if value is not None})


@dataclass(frozen=True, slots=True)
class State:
    breaker: breaker.State | None = None
    concurrency: concurrency.State | None = None
    rate: rate_limit.State | None = None
    tokens: tokens.State | None = None

    def under(self, rule: Rule) -> State:
        """The part of this state that the caller's policies are about, under the caller's numbers: a deployment may
        have changed them. What was never used is new."""
        shut, room, pace, held = rule.breaker, rule.concurrency, rule.rate, rule.tokens
        return State(
            None if shut is None else breaker.under(self.breaker or breaker.State(shut), shut),
            None if room is None else concurrency.under(self.concurrency or concurrency.State(room), room),
            None if pace is None else rate_limit.under(self.rate or rate_limit.State(pace), pace),
            None if held is None else tokens.under(self.tokens or tokens.State(held), held),
        )

    def with_part(self, part: State) -> State:
        """This state after a step of a part of it: what the caller's policies are not about stays for others."""
        return State(
            self.breaker if part.breaker is None else part.breaker,
            self.concurrency if part.concurrency is None else part.concurrency,
            self.rate if part.rate is None else part.rate,
            self.tokens if part.tokens is None else part.tokens,
        )


@dataclass(frozen=True, slots=True)
class Ask:
    """Somebody wants to make an attempt that takes no longer than `lease_us`, and that begins before `before_us`. Who
    was told to wait asks again under the same name."""

    asker: str
    lease_us: int
    before_us: int
    most_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Ended:
    """The attempt that was let out at `admitted_us` has ended."""

    asker: str
    admitted_us: int
    is_failure: bool
    tokens: int | None = None
    """What it used; nothing where that is not known."""


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The attempt was not made after all, or the asker waits no longer."""

    asker: str


@dataclass(frozen=True, slots=True)
class Admitted(Decision):
    """The attempt may go out at `at_us`. Everything that it needs is taken."""

    at_us: int
    wait_us: int
    """How long that is from now; 0 for at once."""
    decision: ClassVar[str] = "admitted"


@dataclass(frozen=True, slots=True)
class Waiting(Decision):
    """Nothing is taken but a place in the queue: ask again at `until_us`."""

    by: str
    until_us: int
    wait_us: int
    decision: ClassVar[str] = "waiting"


@dataclass(frozen=True, slots=True)
class Rejected(Decision):
    """The attempt may not go out in time. Nothing was taken."""

    by: str
    """`circuit_breaker`, `concurrency`, `token_limit`, `rate_limit`, or `store` where nobody can say."""
    retry_at_us: int
    """Before this moment asking again is of no use."""
    wait_us: int
    """How long that is from now; 0 where any moment may do."""
    decision: ClassVar[str] = "rejected"


@dataclass(frozen=True, slots=True)
class Released(Decision):
    """What the attempt had taken is free again."""

    breaker: str
    """What its end did to the breaker: `opened`, `closed`, or `none`."""
    decision: ClassVar[str] = "released"


Event: TypeAlias = Ask | Ended | Abandoned
Answer: TypeAlias = Admitted | Waiting | Rejected
Decided: TypeAlias = Answer | Released


def step(state: State, event: Event, now_us: int) -> tuple[State, Decided]:
    return ask(state, event, now_us) if isinstance(event, Ask) else leave(state, event, now_us)


def ask(state: State, event: Ask, now_us: int) -> tuple[State, Answer]:
    # The rate comes first, because a lease begins when the request does; the answers are weighed in their own order.
    pace, moment = (
        (None, None) if state.rate is None else rate_limit.step(state.rate, rate_limit.Ask(event.before_us), now_us)
    )
    at_us = moment.at_us if isinstance(moment, rate_limit.Granted) else now_us
    lease_us = at_us - now_us + event.lease_us
    shut = state.breaker
    if shut is not None:
        shut, way = breaker.step(shut, breaker.Ask(event.asker, lease_us), now_us)
        if isinstance(way, breaker.Stopped):
            return _out_of_queue(state, event, now_us), _rejected("circuit_breaker", way.retry_at_us, now_us)
    room = state.concurrency
    if room is not None:
        room, place = concurrency.step(room, concurrency.Ask(event.asker, lease_us, event.before_us), now_us)
        if isinstance(place, concurrency.Queued):
            return replace(state, concurrency=room), Waiting("concurrency", place.until_us, place.until_us - now_us)
        if isinstance(place, concurrency.Full):
            return replace(state, concurrency=room), _rejected("concurrency", now_us, now_us)
    held = state.tokens
    if held is not None:
        held, answer = tokens.ask(held, event.asker, event.most_tokens, lease_us, event.before_us, now_us)
        if isinstance(answer, tokens.Queued):
            return replace(state, tokens=held), Waiting("token_limit", answer.until_us, answer.until_us - now_us)
        if isinstance(answer, tokens.Refused):
            return replace(state, tokens=held), _rejected("token_limit", answer.retry_at_us, now_us)
    if isinstance(moment, rate_limit.Refused):
        return _out_of_queue(state, event, now_us), _rejected("rate_limit", moment.retry_at_us, now_us)
    return State(shut, room, pace, held), Admitted(at_us, at_us - now_us)


def leave(state: State, event: Ended | Abandoned, now_us: int) -> tuple[State, Released]:
    shut, change = state.breaker, "none"
    if shut is not None:
        told = (
            breaker.Ended(event.asker, event.admitted_us, event.is_failure)
            if isinstance(event, Ended)
            else breaker.Abandoned(event.asker)
        )
        shut, noted = breaker.step(shut, told, now_us)
        change = noted.change if isinstance(noted, breaker.Noted) else change
    room = state.concurrency
    if room is not None:
        room, _ = concurrency.step(room, concurrency.Leave(event.asker), now_us)
    held = state.tokens
    if held is not None:
        used = event.tokens if isinstance(event, Ended) else None
        held = tokens.leave(held, event.asker, used, now_us)
    return State(shut, room, state.rate, held), Released(change)


def _out_of_queue(state: State, event: Ask, now_us: int) -> State:
    """The state as it was, but for the asker's place in the queue, which who is rejected leaves."""
    if state.tokens is not None:
        state = replace(state, tokens=tokens.leave(state.tokens, event.asker, 0, now_us))
    if state.concurrency is None:
        return state
    return replace(state, concurrency=concurrency.step(state.concurrency, concurrency.Leave(event.asker), now_us)[0])


def _rejected(by: str, retry_at_us: int, now_us: int) -> Rejected:
    return Rejected(by, retry_at_us, retry_at_us - now_us)


def is_idle(state: State, now_us: int) -> bool:
    """True where a new state would decide alike from now on."""
    return (
        (state.breaker is None or breaker.is_idle(state.breaker, now_us))
        and (state.concurrency is None or concurrency.is_idle(state.concurrency, now_us))
        and (state.rate is None or rate_limit.is_idle(state.rate, now_us))
        and (state.tokens is None or tokens.is_idle(state.tokens, now_us))
    )
