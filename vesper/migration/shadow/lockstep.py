"""One execution on two engines: the direct engine runs alone while trusted, and Python decides otherwise.

While the direct engine is trusted it runs alone. From then on Python is fed the completions so far, each request is
compared, and both continue side by side: a request is performed where both make it, and the direct outcome is returned
where Python's is the same. Where they differ, or the direct engine fails, Python continues alone. No request is
performed twice.

In a report, `leader` is always Python and `follower` the direct engine, so that the same fault is the same divergence
in every mode.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Protocol
from weakref import WeakKeyDictionary

from vesper.engines.compare import same_requests
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.engine import Blocked, Completion, Done, Execution, Limits, NowMissing, Request
from vesper.engines.outcome import EngineFault, LimitHit, Outcome
from vesper.engines.path import Point, conditions_of, guards
from vesper.engines.python_engine import PythonEngine, PythonProgram
from vesper.host.plans import Plans
from vesper.host.routed import Parted, Routed
from vesper.language.ir.nodes import Node
from vesper.migration.compare.comparator import Incomparable, Same, Verdict
from vesper.migration.compare.reports import Agreement, Difference, Disagreement, Fault, Lost, Report, Watch
from vesper.migration.compare.request_difference import request_kind, request_texts
from vesper.migration.compare.transcript import Exchange, Transcript
from vesper.migration.shadow.guarded_direct import Broke, DirectSide, PathedProgram, PathNoteBuilder
from vesper.migration.shadow.recorded_program import transcript_of
from vesper.values.inputs import NotInputs

_log = logging.getLogger("vesper.migration")
_MAX_REASON_CHARS = 600
_UNFINISHED = LimitHit("unfinished")
"""Placeholder in a transcript for Python's outcome, which is not known yet."""


class Compares(Protocol):
    """The interface of a comparator: `comparator.Comparator`, or a substitute."""

    def compare_outcomes(self, leader: Outcome, follower: Outcome) -> Verdict: ...
    def compare_requests(self, leader: Request | None, follower: Request | None) -> Verdict: ...


class Facts:
    """Data derived from a node once, and shared by its pairs."""

    def __init__(self, node: Node) -> None:
        self.guards = guards(node)
        self.points: tuple[Point, ...] | None = None
        """Points of the node; None until a direct engine returned them."""
        self.names: dict[tuple[bytes, str], str] = {}
        """Names of paths without effects, by points and ending."""


_FACTS: WeakKeyDictionary[PythonProgram, Facts] = WeakKeyDictionary()


def facts_of(python: PythonProgram) -> Facts:
    found = _FACTS.get(python)
    if found is None:
        found = _FACTS.setdefault(python, Facts(python.node))
    return found


@dataclass(frozen=True, eq=False)
class Pair:
    """A node on both engines, with the comparator and the watch of its executions."""

    python: PythonProgram
    direct: PathedProgram
    comparator: Compares
    key: bytes
    watch: Watch
    deadline: float | None
    """Seconds that the direct engine may compute."""
    is_sensitive: bool
    """True where messages of the engines are withheld from reports."""
    plans: Plans
    """All requests that the node may make."""

    @cached_property
    def facts(self) -> Facts:
        return facts_of(self.python)

    def side(self, inputs: Mapping[str, object], now: datetime | None, limits: Limits | None) -> DirectSide:
        return DirectSide(self.direct, self.key, inputs, now, limits, self.deadline, is_sensitive=self.is_sensitive)

    def declaration_problem(self, request: Request) -> str | None:
        """Return why a request does not fit the node's declarations; None where it does.

        Only requests of the direct engine alone need the check: in lockstep Python's request is performed.
        """
        try:
            plan = self.plans.of(request.path)
        except KeyError:
            return "it asked for a step that the node does not have"
        declared = (plan.effect, plan.effect_class, dict(plan.fixed))
        if (request.effect, request.effect_class, dict(request.fixed)) != declared:
            return "it asked for a step as what that is not"
        return None

    def is_trusted(self, path: str) -> bool:
        """Return True where a direct outcome on this path may be returned uncompared."""
        return _query_trust(lambda: self.watch.trusts(path))

    def is_trusted_so_far(self, prefix: str) -> bool:
        """Return True where a request at this prefix may be performed for the direct engine alone."""
        return _query_trust(lambda: self.watch.trusts_prefix(prefix))


def _query_trust(ask: Callable[[], bool]) -> bool:
    try:
        return ask()
    except Exception as error:  # noqa: BLE001  # a path whose trust is unknown is not trusted
        _log.error("whether a path is trusted could not be found out: %s", type(error).__name__)
        return False


class Lockstep(Routed):
    """One execution on both engines.

    With `trusts` the direct engine runs alone where the watch trusts it; without, both run from the start.
    """

    def __init__(
        self,
        pair: Pair,
        inputs: Mapping[str, object],
        now: datetime | None,
        limits: Limits | None,
        side: DirectSide,
        *,
        trusts: bool,
        name: str | None = None,
    ) -> None:
        self._pair = pair
        self._inputs = inputs
        self._now = now
        self._limits = limits
        self._trusts = trusts
        self._name = name
        self._side: DirectSide | None = side
        """Direct execution; None once it was dropped."""
        self._note_builder = PathNoteBuilder()
        self._python: Execution | None = None
        """Python's execution; None until it is needed."""
        self._python_waits_for = 0
        self._exchanges: list[Exchange] = []
        """Requests and completions: those of Python, once it has started."""
        self._performed: set[str] = set()
        """Paths of the requests that the Host performed."""
        self._left: dict[str, Exchange] = {}
        """Exchanges of the direct engine that Python has not requested yet."""
        self._pending: Request | None = None
        """Request that the Host is performing."""
        self._handover: Mapping[str, object] | None = None
        self._found: str | None = None
        """Reason why the comparison ended, where it was reported already."""

    # -- as the Host knows it ---------------------------------------------------------------------

    def begin(self, execution: str) -> None:
        self._name = execution

    def handed_over(self) -> Mapping[str, object] | None:
        found, self._handover = self._handover, None
        return found

    def stop(self, outcome: Outcome | None) -> None:
        """Report nothing: an unfinished comparison proves nothing, and differences were reported when found."""

    def advance(self, completions: Sequence[Completion]) -> Blocked | Done:
        """Continue both engines; the requests of a wave are handed out one after the other."""
        step = self._advance(completions)
        return Blocked(step.requests[:1]) if isinstance(step, Blocked) else step

    def _advance(self, completions: Sequence[Completion]) -> Blocked | Done:
        answer = self._record_completion(completions)
        direct = None if self._side is None else self._side.advance(answer)
        if self._python is None and self._trusts and isinstance(direct, Blocked):
            direct = self._check_request(direct)
        if self._python is None and self._trusts and direct is not None and not isinstance(direct, Broke):
            if self._is_trusted(direct):
                return self._release(direct)
        python = self._advance_python(direct, answer)
        if isinstance(direct, Blocked | Done):
            return self._compare(direct, python)
        return self._continue_alone(python)

    # -- the parts of one step --------------------------------------------------------------------

    def _record_completion(self, completions: Sequence[Completion]) -> Exchange | None:
        """Record the completion of the pending request, and return the exchange."""
        if self._pending is None:
            if completions:
                raise ValueError("nothing was asked for that could be completed")
            return None
        (completion,) = completions
        exchange = Exchange(self._pending, completion.result, completion.failure)
        self._pending = None
        self._exchanges.append(exchange)
        self._performed.add(exchange.request.path)
        self._note_builder.settle(exchange)
        return exchange

    def _check_request(self, direct: Blocked) -> Blocked | Broke:
        """Check a request that is performed for the direct engine alone.

        It must belong to a declared step and must not repeat a request. Each round of a loop has a path of its own.
        """
        request = direct.requests[0]
        problem = self._pair.declaration_problem(request)
        if problem is None and request.path in self._performed:
            problem = "it asked for a step again that was done"
        return direct if problem is None else Broke(problem)

    def _is_trusted(self, direct: Blocked | Done) -> bool:
        assert self._side is not None
        if isinstance(direct, Blocked):
            request = direct.requests[0]
            if request.effect_class == "read":
                return True
            return self._pair.is_trusted_so_far(self._note_builder.prefix(self._side.points, request.path))
        if isinstance(direct.outcome, LimitHit):
            return False  # rare, and not time-critical
        return self._pair.is_trusted(self._note_builder.note(self._side.points, direct.outcome).name)

    def _release(self, step: Blocked | Done) -> Blocked | Done:
        if isinstance(step, Blocked):
            self._pending = step.requests[0]
            return step
        return Done(step.outcome, ())

    def _advance_python(self, direct: Blocked | Done | Broke | None, answer: Exchange | None) -> Blocked | Done:
        """Return Python's step. A failed direct engine is reported and dropped."""
        broke = direct if isinstance(direct, Broke) else None
        try:
            python = self._python_step(answer, is_traced=broke is None)
        except Exception as error:
            # Malformed inputs are an error of the caller: neither engine is at fault.
            if broke is not None and not isinstance(error, NotInputs | NowMissing):
                self._drop_broken_direct(broke)
            elif self._side is not None and self._found is not None:
                self._drop_direct(self._found)
            raise
        if broke is not None:
            self._drop_broken_direct(broke)
        return python

    def _python_step(self, answer: Exchange | None, is_traced: bool) -> Blocked | Done:
        if self._python is None:
            # Python is fed all completions of the direct engine, the present one included.
            self._left = {each.request.path: each for each in self._exchanges}
            self._exchanges = []
            self._python = self._pair.python.start(self._inputs, self._now, self._limits, is_traced=is_traced)
            step = self._python.advance(())
        elif answer is None:
            raise ValueError("the execution waits for the completion of what it asked for")
        else:
            completion = Completion(self._python_waits_for, answer.value, answer.failure)
            step = self._python.advance((completion,))
        return self._feed(self._python, step)

    def _feed(self, python: Execution, step: Blocked | Done) -> Blocked | Done:
        """Feed Python the known completions by path, up to a new request or its end."""
        while isinstance(step, Blocked):
            request = step.requests[0]
            known = self._left.get(request.path)
            if known is None:
                if request.effect_class != "read":
                    self._check_nothing_left(request)
                self._python_waits_for = request.id
                return step
            if not self._is_what_was_performed(request, known.request):
                if request.effect_class != "read":
                    raise Parted(known.request, request)
                # A differing read is repeated for Python. But once something was changed, a new read may not see the
                # old state, and the change depended on the first read.
                for changed in self._performed_changes():
                    raise Parted(changed, request)
                del self._left[request.path]
                self._python_waits_for = request.id
                return step
            del self._left[request.path]
            self._exchanges.append(Exchange(request, known.value, known.failure))
            step = python.advance((Completion(request.id, known.value, known.failure),))
        self._check_nothing_left(None)
        return step

    def _is_what_was_performed(self, request: Request, performed: Request) -> bool:
        first = next(iter(self._left.values())).request
        verdict = self._compare_safely(lambda: self._pair.comparator.compare_requests(request, performed))
        if isinstance(verdict, Incomparable):
            # The comparison failed. Byte-identical requests are the same, and are not performed again.
            self._report_lost(verdict.why)
            return same_requests((request,), (performed,))
        if isinstance(verdict, Difference):
            self._report_difference(replace(verdict, is_effect=verdict.is_effect or bool(self._performed_changes())))
        elif first is not performed:
            # In another order: both were performed, and both are requested. It is reported, and Python continues.
            self._report_difference(self._difference(request, first))
        return isinstance(verdict, Same)

    def _performed_changes(self) -> list[Request]:
        """Return performed requests, without reads, that Python has not made yet."""
        return [each.request for each in self._left.values() if each.request.effect_class != "read"]

    def _check_nothing_left(self, asked: Request | None) -> None:
        """Check that Python made all performed requests.

        It is called before Python's next request that is not a read is performed, and at the end.
        """
        changed = self._performed_changes()
        for exchange in self._left.values():
            difference = self._difference(asked, exchange.request)
            self._report_difference(replace(difference, is_effect=difference.is_effect or bool(changed)))
        for performed in changed:
            raise Parted(performed, asked)

    # -- comparing --------------------------------------------------------------------------------

    def _compare(self, direct: Blocked | Done, python: Blocked | Done) -> Blocked | Done:
        side = self._side
        assert side is not None
        if self._found is None and isinstance(direct, Done) and isinstance(python, Done):
            verdict = self._compare_safely(lambda: self._compare_ends(side, direct, python))
            if isinstance(verdict, Same):
                # Without times: side by side and with marks, both engines are slower than alone.
                note = self._note_builder.note(side.points, direct.outcome)
                self._report(Agreement(note, side.fingerprint))
                return Done(direct.outcome, ())
            self._judge(verdict, python.outcome, direct.outcome)
        elif self._found is None:
            asked, follows = _request_of(python), _request_of(direct)
            verdict = self._compare_safely(lambda: self._pair.comparator.compare_requests(asked, follows))
            if isinstance(verdict, Same) and asked is not None and follows is not None:
                if asked.effect_class != "read":
                    self._note_builder.prefix(side.points, asked.path)
                self._pending = asked
                return python
            outcomes = [each.outcome if isinstance(each, Done) else None for each in (python, direct)]
            self._judge(verdict, *outcomes)
        self._drop_direct(self._found or "they could not be compared")
        return self._continue_alone(python)

    def _compare_ends(self, side: DirectSide, direct: Done, python: Done) -> Verdict:
        verdict = self._pair.comparator.compare_outcomes(python.outcome, direct.outcome)
        if not isinstance(verdict, Same) or isinstance(direct.outcome, LimitHit):
            return verdict
        facts = self._pair.facts
        conditions = facts.guards
        mine = {(index, bool(value)) for index, value in python.marks if index in conditions}
        if facts.points is None:
            facts.points = self._pair.direct.points()
        its = conditions_of(side.points, facts.points)
        if mine == its:
            return verdict
        # The first by its position in the node, so that the same fault has the same identity.
        where, went = min(mine ^ its)
        word = "true" if went else "false"
        leader, follower = (word if (where, went) in each else f"not {word}" for each in (mine, its))
        return Difference("path", f"condition {where}", leader, follower)

    def _compare_safely(self, compare: Callable[[], Verdict]) -> Verdict:
        try:
            return compare()
        except Exception as error:  # noqa: BLE001  # a failing comparison must not reach the caller
            _log.error("comparing broke: %s", type(error).__name__)
            return Incomparable(f"comparing broke: {type(error).__name__}")

    def _difference(self, asked: Request | None, performed: Request) -> Difference:
        """Return the difference between a performed request and Python's request."""
        verdict = self._compare_safely(lambda: self._pair.comparator.compare_requests(asked, performed))
        if isinstance(verdict, Difference):
            return verdict
        is_effect = performed.effect_class != "read" or (asked is not None and asked.effect_class != "read")
        kinds = request_kind(asked), request_kind(performed)
        return Difference("request", performed.path, *kinds, is_effect, request_texts(asked, performed, None))

    # -- Python alone -----------------------------------------------------------------------------

    def _continue_alone(self, python: Blocked | Done) -> Blocked | Done:
        if isinstance(python, Blocked):
            self._pending = python.requests[0]
            return python
        return Done(python.outcome, ())

    def _drop_broken_direct(self, broke: Broke) -> None:
        if not broke.is_fault:
            self._drop_direct(broke.what)
            if broke.error is None:
                self._report_lost(broke.what)
            return
        self._drop_direct(f"the direct engine broke: {broke.what}")
        self._report(Fault(broke.what, self._transcript(EngineFault(broke.what)), self._name))

    def _drop_direct(self, why: str) -> None:
        """Continue with Python alone."""
        self._side = None
        # Bounded, as journal entries are; a worker may send a text of any length.
        self._handover = {"before": DirectEngine.name, "engine": PythonEngine.name, "why": why[:_MAX_REASON_CHARS]}

    # -- telling ----------------------------------------------------------------------------------

    def _judge(self, verdict: Verdict, python: Outcome | None, direct: Outcome | None) -> None:
        if isinstance(verdict, Difference):
            self._report_difference(verdict, python, direct)
        elif isinstance(verdict, Incomparable):
            self._report_lost(verdict.why)

    def _report_difference(
        self, difference: Difference, python: Outcome | None = None, direct: Outcome | None = None
    ) -> None:
        """Report a difference immediately, because the process may be killed next."""
        if self._found is not None:
            return
        self._found = f"the engines differ: {difference.kind} {difference.where}"
        transcript = self._transcript(python or _UNFINISHED)
        note = fingerprint = None
        prefix = ""
        if self._side is not None:
            if direct is None:
                prefix = self._note_builder.name_at(self._side.points, difference.where)
            else:
                note, fingerprint = self._note_builder.note(self._side.points, direct), self._side.fingerprint
        self._report(Disagreement(difference, note, fingerprint, transcript, direct, self._name, prefix))

    def _report_lost(self, why: str) -> None:
        if self._found is None:
            self._found = f"they could not be compared: {why}"
            self._report(Lost(why))

    def _transcript(self, outcome: Outcome) -> Transcript:
        exchanges = tuple(self._exchanges)
        written = transcript_of(self._inputs, self._now, exchanges, outcome)
        return written if isinstance(written, Transcript) else Transcript(self._inputs, self._now, exchanges, outcome)

    def _report(self, report: Report) -> None:
        try:
            self._pair.watch.report(report)
        except Exception as error:  # noqa: BLE001  # a failing report must not reach the caller
            _log.error("a report of %s could not be made: %s", type(report).__name__, type(error).__name__)


def _request_of(step: Blocked | Done) -> Request | None:
    return step.requests[0] if isinstance(step, Blocked) else None
