"""Retry: after an attempt that failed, give up, or wait and try again.

The wait before attempt `n + 1` is `base × factor ** (n - 1)`, at most `max`; with full jitter it is drawn between zero
and that. What the other side asks us to wait (`Retry-After`) is a lower bound that no jitter and no `max` shortens. An
attempt that could not begin before the end of the execution's time is not waited for: it is given up at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

from tests.proofs.policies.reference.codes import takes
from tests.proofs.policies.reference.records import Decision
from vesper.policies.retry import LONGEST_DELAY_US, Rule

DRAWS = 1 << 32
"""A random number for jitter is drawn from the whole numbers below this."""


def backoff_us(rule: Rule, failed: int) -> int:
    """Return the wait after so many failed attempts, before jitter."""
    grown: int = rule.base_us * rule.factor ** (failed - 1)
    return min(grown, rule.max_us)


@dataclass(frozen=True, slots=True)
class State:
    """One effect on its way."""

    rule: Rule
    deadline_us: int | None = None
    """When the execution's time is over; nothing where it has no limit."""
    failed: int = 0
    """How many attempts have failed."""


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt came to nothing."""

    code: str
    draw: int = 0
    """A random whole number from 0 to `DRAWS - 1`, new for every event; of use with full jitter only."""
    retry_after_us: int | None = None
    """How long the other side asked us to wait, or the policy that held the attempt back."""


@dataclass(frozen=True, slots=True)
class TryAgain(Decision):
    """Wait, then make the next attempt."""

    attempt: int
    """The number of the next attempt; the first one was 1."""
    delay_us: int
    code: str
    """What the last attempt failed with."""
    jitter: int | None = None
    """The draw that the delay was made with, where it was."""
    decision: ClassVar[str] = "retry"


@dataclass(frozen=True, slots=True)
class GiveUp(Decision):
    """The effect fails with the code of its last attempt."""

    attempts: int
    """How many were made."""
    code: str
    reason: str
    """`attempts`: all were made; `code`: this one is not retried; `unsafe`: the class is never repeated; `deadline`:
    the time of the execution ends before the next attempt; `retry_after`: the same, because of how long the other
    side asked us to wait."""
    decision: ClassVar[str] = "give_up"


Decided: TypeAlias = TryAgain | GiveUp


def step(state: State, event: Failed, now_us: int) -> tuple[State, Decided]:
    rule = state.rule
    failed = state.failed + 1
    after = replace(state, failed=failed)
    reason = _reason_against(rule, failed, event.code)
    if reason:
        return after, GiveUp(failed, event.code, reason)
    if not 0 <= event.draw < DRAWS:
        raise ValueError(f"a draw is a whole number from 0 to {DRAWS - 1}, not {event.draw}")
    delay_us = backoff_us(rule, failed)
    if rule.is_jittered:
        delay_us = (delay_us + 1) * event.draw // DRAWS
    asked_us = event.retry_after_us or 0
    left_us = None if state.deadline_us is None else state.deadline_us - now_us
    if not _fits(asked_us, left_us) or (left_us is None and asked_us > LONGEST_DELAY_US):
        return after, GiveUp(failed, event.code, "retry_after" if asked_us > 0 else "deadline")
    delay_us = max(delay_us, asked_us)
    if not _fits(delay_us, left_us):
        return after, GiveUp(failed, event.code, "deadline")
    assert rule.is_repeatable, "an unsafe effect would be repeated"
    return after, TryAgain(failed + 1, delay_us, event.code, event.draw if rule.is_jittered else None)


def _reason_against(rule: Rule, failed: int, code: str) -> str:
    if not rule.is_repeatable:
        return "unsafe"
    if not takes(rule.codes, code):
        return "code"
    return "attempts" if failed >= rule.attempts else ""


def _fits(delay_us: int, left_us: int | None) -> bool:
    return left_us is None or delay_us < left_us
