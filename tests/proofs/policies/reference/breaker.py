"""Circuit breaker: stop asking somebody who does not answer, and find out now and then whether they do again.

*Closed* lets every attempt through and counts failures; as many as `failures` within the last `within` open it.
*Open* lets none through for `open_for`. Then it is *half open*: the first who asks becomes the probe, and all others
are rejected until the probe has ended. A probe that succeeds closes the breaker, one that fails opens it again, and one
that never reports (its process died) is replaced when its lease is over.

An attempt reports to the closed period that let it out, or to nobody: what was sent before the breaker opened says
nothing about how things are after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from tests.proofs.policies.reference.records import Decision
from tests.proofs.policies.reference.settings import numbers
from vesper.policies.settings import MAX_US, Policy

MAX_FAILURES = 10_000
"""The moments of so many failures are kept; more would be memory and time that nobody has asked for."""


@dataclass(frozen=True, slots=True)
class Rule:
    failures: int
    within_us: int
    open_us: int

    @staticmethod
    def of(policy: Policy) -> Rule | None:
        found = numbers(
            policy, ("breaker_failures", MAX_FAILURES), ("breaker_within_us", MAX_US), ("breaker_open_us", MAX_US)
        )
        return None if found is None else Rule(*found)


@dataclass(frozen=True, slots=True)
class Closed:
    since_us: int = 0
    failures: tuple[tuple[int, str], ...] = ()
    """When attempts failed, and whose they were, oldest first: those within the window, and perhaps older ones."""


@dataclass(frozen=True, slots=True)
class Open:
    until_us: int


@dataclass(frozen=True, slots=True)
class HalfOpen:
    probe: str | None
    """Who finds out; nobody where the last one gave it up."""
    until_us: int = 0
    """When the probe's lease is over."""


Phase: TypeAlias = Closed | Open | HalfOpen
_NEW = Closed()


@dataclass(frozen=True, slots=True)
class State:
    rule: Rule
    phase: Phase = _NEW


@dataclass(frozen=True, slots=True)
class Ask:
    """Somebody wants to make an attempt, which takes no longer than `lease_us`."""

    asker: str
    lease_us: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The attempt that was let through at `admitted_us` has ended."""

    asker: str
    admitted_us: int
    is_failure: bool


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The attempt was not made after all, or nobody can say what it came to."""

    asker: str


@dataclass(frozen=True, slots=True)
class LetThrough(Decision):
    is_probe: int
    """1 for the probe of a half-open breaker, else 0."""
    decision: ClassVar[str] = "let_through"


@dataclass(frozen=True, slots=True)
class Stopped(Decision):
    retry_at_us: int
    """Before this moment asking again is of no use."""
    decision: ClassVar[str] = "stopped"


@dataclass(frozen=True, slots=True)
class Noted(Decision):
    change: str
    """`opened`, `closed`, or `none`."""
    decision: ClassVar[str] = "noted"


Event: TypeAlias = Ask | Ended | Abandoned
Decided: TypeAlias = LetThrough | Stopped | Noted


def under(state: State, rule: Rule) -> State:
    """The same state under another rule: a node was deployed anew while its failures were being counted."""
    return state if state.rule == rule else State(rule, state.phase)


def step(state: State, event: Event, now_us: int) -> tuple[State, Decided]:
    if isinstance(event, Ask):
        phase, decided = _asked(state.phase, event, now_us)
    elif isinstance(event, Ended):
        phase, decided = _ended(state.rule, state.phase, event, now_us)
    else:
        is_probe = isinstance(state.phase, HalfOpen) and state.phase.probe == event.asker
        phase, decided = HalfOpen(None) if is_probe else state.phase, Noted("none")
    return State(state.rule, phase), decided


def _asked(phase: Phase, event: Ask, now_us: int) -> tuple[Phase, Decided]:
    match phase:
        case Closed():
            return phase, LetThrough(0)
        case Open(until_us) if now_us < until_us:
            return phase, Stopped(until_us)
        case HalfOpen(probe, until_us) if probe not in (None, event.asker) and now_us < until_us:
            return phase, Stopped(now_us)
        case _:
            return HalfOpen(event.asker, now_us + event.lease_us), LetThrough(1)


def _ended(rule: Rule, phase: Phase, event: Ended, now_us: int) -> tuple[Phase, Decided]:
    match phase:
        case Closed(since_us, failures) if event.is_failure and event.admitted_us >= since_us:
            counted = tuple(each for each in failures if each[0] > now_us - rule.within_us)
            if all(asker != event.asker for _, asker in counted):  # one that reports twice has failed once
                counted = (*counted, (now_us, event.asker))
            if len(counted) >= rule.failures:
                return Open(now_us + rule.open_us), Noted("opened")
            return Closed(since_us, counted), Noted("none")
        case HalfOpen(probe) if probe == event.asker:
            if event.is_failure:
                return Open(now_us + rule.open_us), Noted("opened")
            return Closed(now_us), Noted("closed")
        case _:
            return phase, Noted("none")


def is_idle(state: State, now_us: int) -> bool:
    """True where a new breaker would decide alike from now on."""
    failures = state.phase.failures if isinstance(state.phase, Closed) else None
    return failures is not None and all(at_us <= now_us - state.rule.within_us for at_us, _ in failures)
