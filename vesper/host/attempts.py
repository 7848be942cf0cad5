"""One effect with its policies: wait to be admitted, try, and try again where the machines say so.

The machines decide (`vesper.policies`), this drives them: it has the clock, it draws and it sleeps. Whatever is decided
beyond a first attempt goes to `note`, and from there into the journal.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

from vesper.config.settings import PolicySettings
from vesper.effects.performer import EffectFailed
from vesper.host.plans import Plan
from vesper.host.policy.state import MemoryPolicyState, PolicyState, Token
from vesper.policies import gate, retry

Once: TypeAlias = Callable[[float | None, bool], object]
"""One attempt, with its timeout in seconds and whether one came before it."""
Note: TypeAlias = Callable[[Mapping[str, int | str], int], None]
"""Told of a decision, and of the number of the attempt that it is about."""

_SECOND = 1_000_000


class Attempts:
    """Performs effects under their policies. Limits that runs share are kept here."""

    def __init__(self, settings: PolicySettings, state: PolicyState | None = None) -> None:
        self._settings = settings
        self._state = state
        self._lock = threading.Lock()
        self._random = random.SystemRandom()

    def perform(
        self, plan: Plan, effect_class: str, once: Once, note: Note, deadline: float | None
    ) -> tuple[object, EffectFailed | None]:
        """The value, or the failure that stands after the last attempt."""
        own = plan.timeout
        if plan.is_once:
            try:
                return once(_least(own, deadline), False), None
            except EffectFailed as failure:
                return None, failure
        rule = retry.Rule.of(plan.policy, effect_class)
        deadline_us = None if deadline is None else int(deadline * _SECOND)
        state = retry.State(rule, deadline_us)
        number = 1
        may_have_happened = False
        while True:
            try:
                if plan.is_shared:
                    value = self._once(plan, once, note, number, own, deadline)
                else:
                    value = once(_least(own, deadline), number > 1)
            except EffectFailed as failure:
                may_have_happened |= failure.may_have_happened
                failure.may_have_happened = may_have_happened
                asked = None if failure.retry_after is None else int(failure.retry_after * _SECOND)
                event = retry.Failed(failure.code, self._random.randrange(retry.DRAWS), asked)
                state, decided = retry.step(state, event, _clock())
                note(decided.to_record(), number)
                if isinstance(decided, retry.GiveUp):
                    return None, failure
                time.sleep(decided.delay_us / _SECOND)
                number = decided.attempt
            else:
                return value, None

    def _once(
        self, plan: Plan, once: Once, note: Note, number: int, own: float | None, deadline: float | None
    ) -> object:
        """One attempt, admitted by the limits that are shared."""
        token = self._admitted(plan, note, number, deadline)
        code: str | None = None
        try:
            return once(_least(own, deadline), number > 1)
        except EffectFailed as failure:
            code = failure.code
            raise
        finally:
            released = self._shared().release(token, code, _clock())
            if released.breaker != "none":
                note(released.to_record(), number)

    def _admitted(self, plan: Plan, note: Note, number: int, deadline: float | None) -> Token:
        """Waits until the attempt may go out. Raises `EffectFailed` where it may not go out in time."""
        state = self._shared()
        deadline_us = None if deadline is None else int(deadline * _SECOND)
        waiting: Token | None = None
        while True:
            found = state.acquire(plan.limits_name, plan.policy, _clock(), deadline_us, waiting)
            decision = found.decision
            if isinstance(decision, gate.Rejected):
                note(decision.to_record(), number)
                message = f"held back by its {decision.by.replace('_', ' ')}: it was not sent"
                raise EffectFailed("unavailable", message, retry_after=decision.wait_us / _SECOND or None)
            assert found.token is not None
            if decision.wait_us > 0:
                try:
                    if waiting is None:
                        note(decision.to_record(), number)
                    time.sleep(decision.wait_us / _SECOND)
                except BaseException:  # the journal is away, or somebody pressed Ctrl-C: the place is given back
                    state.abandon(found.token, _clock())
                    raise
            if isinstance(decision, gate.Admitted):
                return found.token
            waiting = found.token

    def close(self) -> None:
        """Lets go of connections. It may be used again."""
        if self._state is not None:
            self._state.close()

    def after_fork(self) -> None:
        """In a child: the lock may have been held by a thread that is not here."""
        self._lock = threading.Lock()

    def _shared(self) -> PolicyState:
        if self._state is None:
            with self._lock:
                if self._state is None:
                    self._state = _open(self._settings)
        return self._state


def _open(settings: PolicySettings) -> PolicyState:
    if settings.url == "memory:":
        return MemoryPolicyState()
    from vesper.host.policy.redis_state import RedisPolicyState

    return RedisPolicyState(settings.url, prefix=settings.prefix, on_store_failure=settings.on_store_failure)


def _clock() -> int:
    """The clock of the machines: microseconds that only go on."""
    return time.monotonic_ns() // 1000


def _least(own: float | None, deadline: float | None) -> float | None:
    """How long an attempt may take: its own time, and no longer than the execution has."""
    if deadline is None:
        return own
    left = max(0.001, deadline - time.monotonic())
    return left if own is None else min(own, left)
