"""The limits that runs share, with their decisions as values of the reference machines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

from tests.proofs.policies.reference.gate import Admitted, Answer, Rejected, Released, Waiting
from tests.proofs.policies.reference.memory_state import TooManyNames
from vesper._direct import LimitToken, SharedLimits
from vesper.policies.settings import Policy, PolicyError

Token: TypeAlias = LimitToken
MAX_NAMES = 10_000


@dataclass(frozen=True, slots=True)
class Admission:
    decision: Answer
    token: Token | None
    """What to give back, or to ask again with; None for a rejected attempt."""


class PolicyState:
    """Limits in any store."""

    def __init__(self, limits: SharedLimits) -> None:
        self._limits = limits

    def acquire(
        self,
        name: str,
        policy: Policy,
        now_us: int,
        deadline_us: int | None = None,
        waiting: Token | None = None,
        *,
        tokens: int = 0,
        patience_us: int | None = None,
    ) -> Admission:
        try:
            (kind, by, at_us, wait_us), token = self._limits.acquire(
                name, policy, now_us, deadline_us, waiting, tokens=tokens, patience_us=patience_us
            )
        except OverflowError as error:
            raise TooManyNames(str(error)) from None
        except ValueError as error:
            raise PolicyError(str(error)) from None
        if kind == "admitted":
            return Admission(Admitted(at_us, wait_us), token)
        return Admission((Waiting if kind == "waiting" else Rejected)(by, at_us, wait_us), token)

    def release(self, token: Token, failure_code: str | None, now_us: int, *, tokens: int | None = None) -> Released:
        return Released(self._limits.release(token, failure_code, now_us, tokens=tokens))

    def abandon(self, token: Token, now_us: int) -> None:
        self._limits.abandon(token, now_us)

    def close(self) -> None:
        self._limits.close()


class MemoryPolicyState(PolicyState):
    def __init__(self, max_names: int = MAX_NAMES) -> None:
        super().__init__(SharedLimits("memory:", "", True, max_names=max_names))


class RedisPolicyState(PolicyState):
    def __init__(
        self,
        url: str,
        *,
        prefix: str = "vesper:policy:",
        on_store_failure: Literal["local", "refuse"] = "local",
        timeout: float = 0.5,
        pause: float = 1.0,
        clock: Callable[[], int] | None = None,
    ) -> None:
        seconds = timedelta(seconds=timeout), timedelta(seconds=pause)
        is_local = on_store_failure == "local"
        super().__init__(SharedLimits(url, prefix, is_local, timeout=seconds[0], pause=seconds[1], clock=clock))


class ClockedRedis(RedisPolicyState):
    """With a clock of the test in place of that of Redis."""

    def __init__(self, url: str, at_us: int, *, prefix: str = "vesper:policy:") -> None:
        self.at_us = at_us
        super().__init__(url, prefix=prefix, on_store_failure="refuse", timeout=30, clock=lambda: self.at_us)
