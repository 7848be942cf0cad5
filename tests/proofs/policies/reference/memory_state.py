"""The state of policies in one process, around the reference machines."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from tests.proofs.policies.reference import gate
from tests.proofs.policies.reference.codes import is_trouble
from vesper.policies.settings import MAX_US, Policy
from vesper.values.vesper_error import VesperError

MAX_NAMES = 10_000
CLOCK_STEP_US = 10_000_000
"""A clock that goes back by more has been set, or is another one: what was counted with it means nothing any more. A
smaller step is two threads that read the clock in one order and came here in another, and is left out."""


class TooManyNames(VesperError):
    """More names have limits in use at once than the state has room for."""


@dataclass(frozen=True, slots=True)
class Token:
    """What an attempt has to give back. Nobody but the state that made it looks inside."""

    name: str
    asker: str
    rule: gate.Rule
    admitted_us: int
    """By the clock of the store."""
    store: str
    """Who holds what was taken: `nobody`, `memory` or `redis`."""
    asked_us: int
    """When it was first asked for, by the clock of the caller."""


@dataclass(frozen=True, slots=True)
class Admission:
    decision: gate.Answer
    token: Token | None
    """What to give back, or to ask again with; nothing for who is rejected."""


@dataclass(frozen=True, slots=True)
class Question:
    """An `acquire` in the terms of a gate."""

    asker: str
    asked_us: int
    left_us: int
    """How long the attempt may wait before it begins."""
    lease_us: int

    @staticmethod
    def of(
        rule: gate.Rule, now_us: int, deadline_us: int | None, waiting: Token | None, patience_us: int | None = None
    ) -> Question:
        asked_us = now_us if waiting is None else waiting.asked_us
        left_us = None if deadline_us is None else min(max(deadline_us - now_us, 0), MAX_US)
        most_us = max(asked_us + gate.LONGEST_WAIT_US - now_us, 0) if left_us is None else left_us
        patience_us = MAX_US if patience_us is None else max(patience_us, 1)
        return Question(
            secrets.token_hex(12) if waiting is None else waiting.asker,
            asked_us,
            min(most_us, max(asked_us + patience_us - now_us, 0)),
            rule.lease_us(left_us),
        )


_NOBODYS = Token("", "", gate.Rule(), 0, "nobody", 0)


def open_to_all(now_us: int) -> Admission:
    """The answer where there is nothing to decide, and nothing to give back."""
    return Admission(gate.Admitted(now_us, 0), _NOBODYS)


@dataclass(slots=True)
class _Entry:
    state: gate.State
    last_us: int
    running: set[str] = field(default_factory=set)
    """Whose tokens are out, for attempts that run."""
    busy_until_us: int = 0
    """When the last of them must have ended, whether it said so or not."""

    def is_idle(self, now_us: int) -> bool:
        return gate.is_idle(self.state, now_us) and (not self.running or self.busy_until_us <= now_us)


class MemoryPolicyState:
    """The state of one process. A forked child starts with an empty one: these limits hold in each process."""

    def __init__(self, max_names: int = MAX_NAMES) -> None:
        self._max_names = max_names
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

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
        rule = gate.Rule.of(policy)
        if rule.is_open_to_all:
            return open_to_all(now_us)
        question = Question.of(rule, now_us, deadline_us, waiting, patience_us)
        with self._lock:
            entry = self._entry(name, now_us)
            now_us = entry.last_us
            event = gate.Ask(question.asker, question.lease_us, now_us + question.left_us, tokens)
            part, decision = gate.ask(entry.state.under(rule), event, now_us)
            entry.state = entry.state.with_part(part)
            if isinstance(decision, gate.Rejected):
                return Admission(decision, None)
            if isinstance(decision, gate.Admitted):
                if entry.busy_until_us <= now_us:
                    entry.running.clear()
                entry.running.add(question.asker)
                entry.busy_until_us = max(entry.busy_until_us, decision.at_us + question.lease_us)
            return Admission(decision, Token(name, question.asker, rule, now_us, "memory", question.asked_us))

    def release(
        self, token: Token, failure_code: str | None, now_us: int, *, tokens: int | None = None
    ) -> gate.Released:
        is_failure = failure_code is not None and is_trouble(failure_code)
        return self._leave(token, gate.Ended(token.asker, token.admitted_us, is_failure, tokens), now_us)

    def abandon(self, token: Token, now_us: int) -> None:
        self._leave(token, gate.Abandoned(token.asker), now_us)

    def close(self) -> None:
        """There is nothing to let go of."""

    def _leave(self, token: Token, event: gate.Ended | gate.Abandoned, now_us: int) -> gate.Released:
        if token.store != "memory":
            return gate.Released("none")
        with self._lock:
            if token.name not in self._entries:  # the token is of before a fork, or of before the clock was set
                return gate.Released("none")
            entry = self._entry(token.name, now_us)
            entry.running.discard(token.asker)
            part, decision = gate.leave(entry.state.under(token.rule), event, entry.last_us)
            entry.state = entry.state.with_part(part)
            return decision

    def _entry(self, name: str, now_us: int) -> _Entry:
        """The entry of a name, at this moment; a new one where there is none."""
        entry = self._entries.get(name)
        if entry is None:
            if len(self._entries) >= self._max_names:
                self._drop_idle(now_us)
            entry = self._entries[name] = _Entry(gate.State(), now_us)
        elif now_us < entry.last_us - CLOCK_STEP_US:
            entry = self._entries[name] = _Entry(gate.State(), now_us)
        else:
            entry.last_us = max(entry.last_us, now_us)
        self._entries.move_to_end(name)
        return entry

    def _drop_idle(self, now_us: int) -> None:
        """Makes room: forgets a tenth of the names, those that nobody has used for longest and that would be the same
        if they were new."""
        wanted = self._max_names // 10 + 1
        for name, entry in list(self._entries.items()):
            if wanted and entry.is_idle(now_us):
                del self._entries[name]
                wanted -= 1
        if len(self._entries) >= self._max_names:
            raise TooManyNames(
                f"{self._max_names:,} names of policies are in use at once, and there is no room for more. A name is "
                f"meant to be a node or a provider: does yours hold a value that changes from run to run?"
            )
