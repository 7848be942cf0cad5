"""A circuit breaker as one would explain it, to hold the machine against, and the walk over every short sequence.

It numbers the closed periods, where the machine compares times, and it changes in place.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

from tests.proofs.policies.reference import breaker

FAILURES, WITHIN, OPEN, LEASE = 3, 10, 7, 4
RULE = breaker.Rule(FAILURES, WITHIN, OPEN)

PLAIN = ("ok", "fail", "ask", "wait")
"""Somebody asks and succeeds; asks and fails; asks and is not heard of for now; time goes by."""
ALL = (*PLAIN, "late ok", "late fail", "gave up")
"""Also: the oldest one that was not heard of succeeds, fails, or was never sent."""


class Reference:
    def __init__(self) -> None:
        self.opened_at: int | None = None
        self.failed_at: list[int] = []
        self.period = 0
        self.period_of: dict[str, int] = {}
        self.probe: str | None = None
        self.probe_since = 0

    def may(self, who: str, now: int) -> bool:
        if self.opened_at is None:
            self.period_of[who] = self.period
            return True
        if now - self.opened_at < OPEN:
            return False
        if self.probe is not None and now - self.probe_since < LEASE:
            return False
        self.probe, self.probe_since = who, now
        return True

    def ended(self, who: str, is_failure: bool, now: int) -> None:
        if who == self.probe:
            self.probe = None
            if is_failure:
                self.opened_at = now
            else:
                self.opened_at, self.failed_at = None, []
                self.period += 1
        elif self.opened_at is None and is_failure and self.period_of.get(who) == self.period:
            self.failed_at.append(now)
            if sum(now - at < WITHIN for at in self.failed_at) == FAILURES:
                self.opened_at = now

    def gave_up(self, who: str) -> None:
        if who == self.probe:
            self.probe = None


class Pair:
    """The machine and the reference, told the same; `do` says what differs."""

    def __init__(self) -> None:
        self.state = breaker.State(RULE)
        self.reference = Reference()
        self.now = 1_000
        self.asked = 0
        self.out: list[tuple[str, int]] = []

    def do(self, event: str) -> str:
        if event == "wait":
            self.now += 3
            return ""
        self.now += 1
        if event in PLAIN:
            self.asked += 1
            who = f"asker {self.asked}"
            difference = self._ask(who)
            if not difference and event != "ask" and (who, self.now) in self.out:
                self._end((who, self.now), event)
            return difference
        if self.out:
            self._end(self.out[0], event.removeprefix("late "))
        return ""

    def _ask(self, who: str) -> str:
        self.state, decided = breaker.step(self.state, breaker.Ask(who, LEASE), self.now)
        expected = self.reference.may(who, self.now)
        if isinstance(decided, breaker.LetThrough):
            self.out.append((who, self.now))
        if isinstance(decided, breaker.LetThrough) != expected:
            return f"{who} at {self.now}: {decided}, expected {'to go' if expected else 'to be stopped'}"
        return ""

    def _end(self, attempt: tuple[str, int], how: str) -> None:
        self.out.remove(attempt)
        who, admitted = attempt
        if how == "gave up":
            self.state, _ = breaker.step(self.state, breaker.Abandoned(who), self.now)
            self.reference.gave_up(who)
        else:
            is_failure = how == "fail"
            self.state, _ = breaker.step(self.state, breaker.Ended(who, admitted, is_failure), self.now)
            self.reference.ended(who, is_failure, self.now)


def differences(events: tuple[str, ...], most: int) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every sequence of at most so many of these events, each with what differs at its end, or nothing."""
    stack: list[tuple[tuple[str, ...], Pair]] = [((), Pair())]
    while stack:
        done, pair = stack.pop()
        for event in events:
            # States are values; of the reference its own parts are copied, and nothing else can change.
            after = copy.copy(pair)
            after.out = pair.out.copy()
            after.reference = copy.copy(pair.reference)
            after.reference.failed_at = pair.reference.failed_at.copy()
            after.reference.period_of = pair.reference.period_of.copy()
            path = (*done, event)
            yield path, after.do(event)
            if len(path) < most:
                stack.append((path, after))
