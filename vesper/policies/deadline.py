"""Time: how long the next attempt may take, of its own `timeout` and of what is left to the execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from vesper.policies import records
from vesper.policies.records import Decision
from vesper.policies.settings import MAX_US, Policy, number


@dataclass(frozen=True, slots=True)
class Rule:
    """`timeout` of a step or its node, and `performance.timeout_seconds` of the execution."""

    attempt_us: int | None = None
    total_us: int | None = None

    @staticmethod
    def of(policy: Policy) -> Rule:
        return Rule(number(policy, "timeout_us", MAX_US), number(policy, "total_timeout_us", MAX_US))


@dataclass(frozen=True, slots=True)
class State:
    """An execution in time."""

    rule: Rule
    started_us: int

    @property
    def deadline_us(self) -> int | None:
        """When the execution's time is over; nothing where it has no limit. At that moment it is over."""
        return None if self.rule.total_us is None else self.started_us + self.rule.total_us


@dataclass(frozen=True, slots=True)
class Begin:
    """An attempt is about to begin."""


@dataclass(frozen=True, slots=True)
class Allowed(Decision):
    """The attempt may take so long; where nothing is said, as long as it takes."""

    limited_by: str
    """`attempt`, `total`, or `nothing`."""
    timeout_us: int | None = None
    decision: ClassVar[str] = "attempt"


@dataclass(frozen=True, slots=True)
class Expired(Decision):
    """There is no time left: the attempt is not made."""

    over_by_us: int
    decision: ClassVar[str] = "expired"


Decided: TypeAlias = Allowed | Expired
_DECISIONS: tuple[type[Decided], ...] = (Allowed, Expired)


def step(state: State, event: Begin, now_us: int) -> tuple[State, Decided]:
    assert isinstance(event, Begin)
    deadline_us, attempt_us = state.deadline_us, state.rule.attempt_us
    if deadline_us is None:
        return state, Allowed("nothing") if attempt_us is None else Allowed("attempt", attempt_us)
    left_us = deadline_us - now_us
    if left_us <= 0:
        return state, Expired(-left_us)
    if attempt_us is not None and attempt_us <= left_us:
        return state, Allowed("attempt", attempt_us)
    return state, Allowed("total", left_us)


def from_record(record: Mapping[str, object]) -> Decided:
    return records.from_record(record, _DECISIONS)
