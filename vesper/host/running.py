"""One run: the engine is advanced, and each request that it makes is looked up in the journal or performed.

The order in which things become durable is the whole point (docs/spec/journal.md). Before a request that changes
something is performed, its INTENT is committed, and with it everything before; what came of it is committed with the
next INTENT or with the END, before anybody is answered. What came of an `unsafe` request is committed at once. Reads
cost no commit: after a crash they are done again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from vesper.effects.performer import NOT_DONE, Ask, EffectFailed
from vesper.engines.engine import Blocked, Completion, Execution, Request
from vesper.engines.outcome import ContractBroken, Denied, EngineFault, Failed, LimitHit, Outcome
from vesper.host.outcomes import outcome_record
from vesper.host.routed import Parted, Routed
from vesper.host.sizes import size_of
from vesper.journal.entry import Entry, Kind
from vesper.journal.journal import JournalError, Run, Status
from vesper.journal.typed_json import encode
from vesper.values.generated.effects import EFFECTS
from vesper.values.generated.errors import ErrorCode
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper.config.grants import Handle
    from vesper.host.attempts import Attempts
    from vesper.host.gate import Gate
    from vesper.host.plans import Plan, Plans

_log = logging.getLogger("vesper.host")
_MEBIBYTE = 1 << 20
_MESSAGE = 2000
"""Characters of a message that are kept: an effect of the application may give any text."""
_NOT_ANSWERED = ("unavailable", "timeout", "invalid_argument")
"""Codes with which the other side has said nothing."""
_SETTLES = (Kind.RESULT, Kind.FAILED, Kind.RESOLVED)


def now_us() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


class InDoubt(VesperError):
    """The run cannot go on: nobody knows whether the request at this path was performed."""

    def __init__(self, path: str, why: str, execution: str) -> None:
        super().__init__(f"{path}: {why} (execution {execution})")
        self.path = path
        self.why = f"{path}: {why}"
        self.execution = execution
        """Under which the journal has it: `vesper journal resolve` takes it."""


class _Stopped(Exception):
    """The execution is given up with this outcome; its engine is not asked."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


@dataclass(slots=True)
class _Recorded:
    """What a journal says of one request."""

    intent: Entry | None = None
    settled: Entry | None = None
    in_doubt: bool = False


class Running:
    """Drives one execution to its end. One thread drives it; another may renew its lease."""

    def __init__(
        self,
        run: Run,
        gate: Gate,
        attempts: Attempts,
        plans: Plans,
        handles: Mapping[str, Handle],
        refused: Mapping[str, str],
        policy: Mapping[str, Any],
    ) -> None:
        self._run = run
        self._gate = gate
        self._attempts = attempts
        self._plans = plans
        self._handles = handles
        self._refused = refused
        self._recorded = _by_path(run.recorded)
        self._began = time.monotonic()
        total = policy.get("total_timeout_us")
        self._deadline = None if total is None else self._began + total / 1_000_000
        memory = policy.get("memory_limit_mb")
        self._room = None if memory is None else memory * _MEBIBYTE
        self.expected_us: int | None = None if (ms := policy.get("expected_latency_ms")) is None else ms * 1000
        self.thread = threading.get_ident()
        self.is_cancelled = False
        """Set by a caller who has gone: honoured until something was changed, and no longer after that."""
        self.has_committed = bool(run.recorded)
        self._has_changed = any(entry.kind is Kind.INTENT for entry in run.recorded)
        self._references: dict[str, str] = {}
        """What `secret` steps of this execution gave, and the names of the secrets."""
        self._last_failure: tuple[str, str] | None = None
        """Code and message of the request that failed last."""
        self._secret = partial(gate.secret, handles)
        self.on_effect: Callable[[Request, Entry], None] | None = None
        """Told of each request that changed something, once it is settled: for the audit."""

    @property
    def execution(self) -> str:
        """Its id."""
        return self._run.execution

    # -- the loop ---------------------------------------------------------------------------------

    def go(self, execution: Execution, inputs: Mapping[str, object]) -> Outcome:
        """Runs to the end. Raises `InDoubt` where it cannot, and `JournalError` where the journal cannot be written;
        the run is then for recovery."""
        routed = execution if isinstance(execution, Routed) else None
        if routed is not None:
            routed.begin(self._run.execution)
        try:
            outcome = self._driven(execution, routed, inputs)
        except _Stopped as stopped:
            if routed is not None:
                routed.stop(stopped.outcome)
            return stopped.outcome
        except Parted as parted:
            if routed is not None:
                self._note_handoff(routed)  # whoever goes on after a person's word is the other engine
            self._part(parted)
        except BaseException:
            if routed is not None:
                routed.stop(None)
            raise
        if isinstance(outcome, Failed) and outcome.code == ErrorCode.TIMEOUT and self._is_late():
            return LimitHit("timeout_seconds")
        if isinstance(outcome, Failed) and self._last_failure is not None and self._last_failure[0] == outcome.code:
            # The node may fail on its own after it handled a failed request, with another code.
            return replace(outcome, why=self._last_failure[1])
        return outcome

    def _driven(self, execution: Execution, routed: Routed | None, inputs: Mapping[str, object]) -> Outcome:
        if not self._has_changed:
            # Before anything is done: half of a flow is worse than none of it. A run that was taken over after it
            # has changed something goes on, and is denied at the first step that lacks its grant, if it has one.
            for capability, why in self._refused.items():
                raise _Stopped(Denied(capability, why))
        if self._room is not None:
            self._take_room(inputs)
        step = execution.advance(())
        while isinstance(step, Blocked):
            if routed is not None:
                self._note_handoff(routed)
            (request,) = step.requests
            step = execution.advance((self._complete(request),))
        if routed is not None:
            self._note_handoff(routed)
        return step.outcome

    def _note_handoff(self, routed: Routed) -> None:
        """Durable with the next commit: before anything is changed for the engine that goes on."""
        body = routed.handed_over()
        if body is not None:
            self._run.append(Entry(Kind.HANDOFF, body=body, at_us=now_us()))

    def _part(self, parted: Parted) -> NoReturn:
        """One engine did what the other one would not have done: nobody can go on without a person's word."""
        performed, asked = parted.performed, parted.asked
        told: dict[str, object] = {
            "asked": "" if asked is None else self._digest(asked),
            "recorded": self._digest(performed),
            "effect": performed.effect,
        }
        self._run.append(Entry(Kind.DIVERGENCE, performed.path, performed.effect, body=told, at_us=now_us()))
        instead = "ends without it" if asked is None else f"asks for `{asked.path}` in another form or before it"
        self._doubt(performed, f"it was performed, and the engine that should go on {instead}")

    def end(self, outcome: Outcome, audit: Callable[[Outcome], None]) -> Outcome:
        """Writes how it ended, with what the audit says of it; durable when this returns. An outcome that the journal
        does not take, because it is too large, is a limit that was hit: a run that could not end would be taken over
        and repeated for ever."""
        took = int((time.monotonic() - self._began) * 1_000_000)
        timed: dict[str, object] = {"duration_us": took}
        if self.expected_us is not None and took > self.expected_us:
            timed["slow"] = True
        try:
            if isinstance(outcome, ContractBroken):
                broken = {"phase": outcome.phase, "index": outcome.index, "values": dict(outcome.values)}
                self._run.append(Entry(Kind.CONTRACT, body=broken, at_us=now_us()))
            self._run.append(Entry(Kind.END, body={**outcome_record(outcome), **timed}, at_us=now_us()))
        except JournalError as error:
            _log.warning("%s: its outcome cannot be journalled: %s", self._run.execution, error)
            outcome = LimitHit("max_body")
            self._run.append(Entry(Kind.END, body={**outcome_record(outcome), **timed}, at_us=now_us()))
        audit(outcome)
        self._run.commit(Status.ENDED, outcome.kind)
        return outcome

    def renew(self) -> None:
        """Prolongs the lease of a run that the journal knows."""
        if self.has_committed:
            self._run.renew()

    # -- one request ------------------------------------------------------------------------------

    def _complete(self, request: Request) -> Completion:
        plan = self._plans.of(request.path)
        is_read = request.effect_class == "read"
        recorded = self._recorded.get(request.path) if self._recorded else None
        # What is asked for stands in the entry of a read; a digest would only cost. A new INTENT comes with its own.
        digest = "" if is_read or recorded is None else self._digest(request)
        if recorded is not None:
            known = self._looked_up(request, digest, recorded)
            if known is not None:
                return self._taken(request, known)
        intent = None if recorded is None else recorded.intent
        handles = self._admit(request, plan, intent)
        if self.is_cancelled and not self._has_changed:
            raise _Stopped(LimitHit("cancelled"))
        if intent is None and self._deadline is not None and not plan.in_handler and self._is_late():
            message = "the execution's time was up before this was tried"
            digest = "" if is_read else self._digest(request)
            return self._settle(request, digest, None, EffectFailed("timeout", message), is_unsent=True)
        if is_read:
            value, failure = self._perform(request, plan, handles, is_repeat=False)
            return self._settle(request, digest, value, failure)
        if intent is not None:
            value, failure, is_known = self._after_crash(request, plan, handles, intent)
            if is_known:
                return self._settle(request, digest, value, failure)
        else:
            try:
                digest = self._intend(request)
            except JournalError as error:
                # What cannot be journalled is not sent. Nothing was written yet: the step fails, the run goes on.
                failed = EffectFailed(_code(request, "invalid_argument"), f"nothing was sent: {error}")
                return self._settle(request, self._digest(request), None, failed)
            self._commit()
            self._has_changed = True
        value, failure = self._perform(request, plan, handles, is_repeat=intent is not None)
        if failure is not None and intent is not None and failure.code in _NOT_ANSWERED:
            failure.may_have_happened = True  # whatever came of the repeat says nothing about what was sent before
        return self._settle(request, digest, value, failure)

    def _admit(self, request: Request, plan: Plan, intent: Entry | None) -> list[Handle]:
        """The handles for what a request needs; without one it is not sent."""
        handles = []
        for capability in plan.capabilities:
            handle = self._handles.get(capability)
            if handle is None or capability in self._refused:  # a node that it calls may be denied what it has itself
                why = self._refused.get(capability, "")
                if intent is not None:
                    self._doubt(request, f"it may have been performed, and `{capability}` was taken away since: {why}")
                raise _Stopped(Denied(capability, why))
            handles.append(handle)
        return handles

    def _perform(
        self, request: Request, plan: Plan, handles: list[Handle], is_repeat: bool
    ) -> tuple[object, EffectFailed | None]:
        """The value or the failure, after whatever the policies say."""
        ask = self._ask(request, plan, is_repeat)
        deadline = None if plan.in_handler else self._deadline
        if plan.is_once and plan.timeout is None and deadline is None:  # no policy has anything to say
            try:
                return self._gate.perform(handles, plan.capabilities, ask, None, is_repeat), None
            except EffectFailed as failure:
                return None, failure

        def note(decision: Mapping[str, int | str], attempt: int) -> None:
            entry = Entry(Kind.VALUE, f"{request.path}#{attempt}", request.effect, body=decision, at_us=now_us())
            self._run.append(entry)

        def once(timeout: float | None, is_again: bool) -> object:
            return self._gate.perform(handles, plan.capabilities, ask, timeout, is_again or is_repeat)

        return self._attempts.perform(plan, request.effect_class, once, note, deadline)

    def _ask(self, request: Request, plan: Plan, is_repeat: bool) -> Ask:
        return Ask(
            self._run.execution,
            request.path,
            request.effect,
            request.effect_class,
            request.fixed,
            request.arguments,
            plan.gives,
            request.key,
            None,
            is_repeat,
            self._secret,
            self._references,
            plan.is_sensitive,
        )

    def _settle(
        self, request: Request, digest: str, value: object, failure: EffectFailed | None, *, is_unsent: bool = False
    ) -> Completion:
        """Writes what came of a request, and gives it to the engine. Where no INTENT says what was asked for, this
        entry does."""
        is_read = request.effect_class == "read"
        body = _asked(request) if is_unsent or is_read else {}
        entry = None
        if failure is None:
            body["value"] = value
            try:
                entry = self._append(Kind.RESULT, request, digest, body)
            except JournalError as error:
                # It happened, and the journal does not take the answer, now or after any crash.
                failure = EffectFailed(_code(request, "bad_response"), str(error), may_have_happened=not is_read)
                value = None
                del body["value"]
        if failure is not None:
            told = {
                "code": failure.code,
                "message": failure.message[:_MESSAGE],
                "may_have_happened": failure.may_have_happened,
            }
            self._last_failure = failure.code, failure.message[:_MESSAGE]
            try:
                entry = self._append(Kind.FAILED, request, digest, {**body, **told})
            except JournalError:  # what was asked for is too large: its digest stands for it
                entry = self._append(Kind.FAILED, request, digest or self._digest(request), told)
        else:
            if request.effect == "secret_read":
                self._remember(request, value)
            elif request.effect == "state_transition":
                moved = {**request.fixed, "entity": request.arguments["entity"], "before": value}
                self._append(Kind.STATE, request, "", moved)
        assert entry is not None
        if request.effect_class == "unsafe" and self._has_changed:
            self._commit()
        if self.on_effect is not None and request.effect_class != "read":
            self.on_effect(request, entry)
        if failure is None and self._room is not None:
            self._take_room(value)  # after it was written: what happened is known, whatever becomes of the run
        return Completion(request.id, value, None if failure is None else failure.code)

    # -- after a crash ----------------------------------------------------------------------------

    def _looked_up(self, request: Request, digest: str, recorded: _Recorded) -> Entry | None:
        """What the journal says came of this request; None where it says nothing."""
        known = recorded.settled or recorded.intent
        if known is not None and known.kind is not Kind.RESOLVED and self._is_other(request, digest, known):
            told = {"asked": digest, "recorded": known.digest, "effect": request.effect}
            self._run.append(Entry(Kind.DIVERGENCE, request.path, request.effect, body=told, at_us=now_us()))
            self._doubt(request, "the request is not the one that the journal has: it was not sent")
        if recorded.in_doubt and recorded.settled is None:
            raise InDoubt(request.path, "nobody has said yet what came of it", self._run.execution)
        return recorded.settled

    def _taken(self, request: Request, known: Entry) -> Completion:
        """The completion that stands in the journal."""
        code = known.body.get("code")
        value = known.body.get("value")
        if self.on_effect is not None and request.effect_class != "read":
            self.on_effect(request, known)  # the audit of a run is written when it ends: of all that it did
        if self._room is not None:
            self._take_room(value)
        if code is None:
            self._remember(request, value)
        else:
            self._last_failure = str(code), str(known.body.get("message", ""))
        return Completion(request.id, value, None if code is None else str(code))

    def _after_crash(
        self, request: Request, plan: Plan, handles: list[Handle], intent: Entry
    ) -> tuple[object, EffectFailed | None, bool]:
        """What the class says of a request that was about to be performed: known, or to be performed (again)."""
        match request.effect_class:
            case "keyed":
                ttl = self._gate.key_ttl(request)
                age = (now_us() - intent.at_us) / 1_000_000
                if ttl is not None and age > ttl:
                    self._doubt(request, f"its key is good for {ttl:g} s, and it was sent {age:.0f} s ago")
                return None, None, False
            case "probe":
                try:
                    found = self._gate.probe(handles, plan.capabilities, self._ask(request, plan, True))
                except EffectFailed as failure:
                    self._doubt(request, f"whether it happened could not be found out: {failure.message}")
                return (None, None, False) if found is NOT_DONE else (found, None, True)
            case "unsafe":
                self._doubt(request, "it may have been performed, and it must not be performed twice")
            case _:
                return None, None, False

    def _doubt(self, request: Request, why: str) -> NoReturn:
        self._run.append(
            Entry(Kind.IN_DOUBT, request.path, request.effect, request.effect_class, body={"why": why}, at_us=now_us())
        )
        self._run.commit(Status.IN_DOUBT)
        raise InDoubt(request.path, why, self._run.execution)

    # -- small parts ------------------------------------------------------------------------------

    def _append(self, kind: Kind, request: Request, digest: str, body: Mapping[str, object]) -> Entry:
        at = time.time_ns() // 1000
        entry = Entry(kind, request.path, request.effect, request.effect_class, request.key, digest, body, at)
        self._run.append(entry)
        return entry

    def _intend(self, request: Request) -> str:
        """The digest of a request whose INTENT is appended."""
        effect, effect_class, key = request.effect, request.effect_class, request.key
        return self._run.intend(
            Entry(Kind.INTENT, request.path, effect, effect_class, key, "", _asked(request), now_us())
        )

    def _digest(self, request: Request) -> str:
        return self._run.digest(request.effect, request.effect_class, request.fixed, request.arguments, request.key)

    def _is_other(self, request: Request, digest: str, known: Entry) -> bool:
        """True where the journal has another request at this path."""
        if known.digest:
            return known.digest != (digest or self._digest(request))
        asked = _asked(request)
        recorded = {name: known.body.get(name) for name in asked}
        return request.effect != known.effect or encode(asked) != encode(recorded)

    def _remember(self, request: Request, value: object) -> None:
        if request.effect == "secret_read":
            self._references[str(value)] = request.fixed["name"]

    def _commit(self) -> None:
        self._run.commit()
        self.has_committed = True

    def _is_late(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def _take_room(self, value: object) -> None:
        """Counts what enters the execution against `memory_limit_mb`."""
        assert self._room is not None
        self._room -= size_of(value)
        if self._room < 0:
            raise _Stopped(LimitHit("memory_limit_mb"))


def _asked(request: Request) -> dict[str, object]:
    """What an entry says of it. It is written at once: nothing is copied."""
    return {"fixed": request.fixed, "arguments": request.arguments}


def _code(request: Request, wanted: str) -> str:
    """The code where the effect has it; `unavailable` every effect has."""
    return wanted if wanted in EFFECTS[request.effect].codes() else "unavailable"


def _by_path(entries: Any) -> dict[str, _Recorded]:
    found: dict[str, _Recorded] = {}
    for entry in entries:
        if entry.kind is Kind.INTENT:
            found.setdefault(entry.path, _Recorded()).intent = entry
        elif says_not_done(entry):
            found.pop(entry.path, None)  # as if it had never been asked for: it is performed, under a new INTENT
        elif entry.kind in _SETTLES:
            found.setdefault(entry.path, _Recorded()).settled = entry
        elif entry.kind is Kind.IN_DOUBT:
            found.setdefault(entry.path, _Recorded()).in_doubt = True
    return found


def says_not_done(entry: Entry) -> bool:
    """True where somebody said that a request that was in doubt did certainly not happen."""
    return entry.kind is Kind.RESOLVED and entry.body.get("not_done") is True


def fault(error: Exception, redact: Callable[[str], str]) -> EngineFault:
    """What an exception of an engine, or of a performer that must raise none, is."""
    return EngineFault(redact(f"{type(error).__name__}: {error}"))
