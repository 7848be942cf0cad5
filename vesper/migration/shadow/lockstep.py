"""One execution on two engines: the direct one is believed as far as it is trusted, and Python's word stands.

While the direct engine is trusted it goes alone. From where it is not, Python is fed what was asked for and answered so
far, each request compared on the way, and both go on side by side: a request is performed where both ask for the same,
and the direct answer leaves where Python's is the same. Where they differ, or the direct engine breaks, Python goes on
alone. What was performed is never performed again.

Of the two, `leader` in a report is Python and `follower` is the direct engine, whoever went first: the same fault is
the same divergence in every mode.
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
from vesper.migration.compare.comparator import Incomparable, Same, Verdict, asking
from vesper.migration.compare.reports import Agreement, Difference, Disagreement, Fault, Lost, Report, Watch
from vesper.migration.compare.transcript import Exchange, Transcript
from vesper.migration.shadow.guarded_direct import Broke, DirectSide, PathedProgram, Trail
from vesper.migration.shadow.recorded_program import transcript_of
from vesper.values.inputs import NotInputs

_log = logging.getLogger("vesper.migration")
_WHY = 600
_UNFINISHED = LimitHit("unfinished")
"""Stands in a transcript for what Python will come to, which nobody knows yet."""


class Compares(Protocol):
    """`comparator.Comparator`, or one that stands in for it."""

    def outcomes(self, leader: Outcome, follower: Outcome) -> Verdict: ...
    def requests(self, leader: Request | None, follower: Request | None) -> Verdict: ...


class Facts:
    """What is read off a node once, however many pairs are made of it."""

    def __init__(self, node: Node) -> None:
        self.guards = guards(node)
        self.points: tuple[Point, ...] | None = None
        """Follow from the node alone; known once a direct engine was asked."""
        self.names: dict[tuple[bytes, str], str] = {}
        """Of paths without effects, by points and ending."""


_FACTS: WeakKeyDictionary[PythonProgram, Facts] = WeakKeyDictionary()


def facts_of(python: PythonProgram) -> Facts:
    found = _FACTS.get(python)
    if found is None:
        found = _FACTS.setdefault(python, Facts(python.node))
    return found


@dataclass(frozen=True, eq=False)
class Pair:
    """A node on both engines, with the comparator and the watch of what they do."""

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

    def unsound(self, request: Request) -> str | None:
        """Why a request is none that the node can make, whatever it was called with; None where it may be one. Where
        both engines ask nobody has to look: Python's is performed."""
        try:
            plan = self.plans.of(request.path)
        except KeyError:
            return "it asked for a step that the node does not have"
        declared = (plan.effect, plan.effect_class, dict(plan.fixed))
        if (request.effect, request.effect_class, dict(request.fixed)) != declared:
            return "it asked for a step as what that is not"
        return None

    def is_trusted(self, path: str) -> bool:
        """Whether a direct answer on this path may leave uncompared."""
        return _asked(lambda: self.watch.trusts(path))

    def is_trusted_so_far(self, prefix: str) -> bool:
        """Whether a request at this prefix may be performed for the direct engine alone."""
        return _asked(lambda: self.watch.trusts_prefix(prefix))


def _asked(ask: Callable[[], bool]) -> bool:
    try:
        return ask()
    except Exception as error:  # noqa: BLE001  # what cannot be asked is not trusted
        _log.error("whether a path is trusted could not be found out: %s", type(error).__name__)
        return False


class Lockstep(Routed):
    """With `trusts` the direct engine goes alone where the watch trusts it; without, both go from the beginning."""

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
        """None once it is dropped."""
        self._trail = Trail()
        self._python: Execution | None = None
        """None until it is needed."""
        self._python_waits_for = 0
        self._exchanges: list[Exchange] = []
        """What was asked for and answered: of Python, once it was started."""
        self._performed: set[str] = set()
        """The paths of what the Host was asked for."""
        self._left: dict[str, Exchange] = {}
        """What was performed for the direct engine alone, and Python has not asked for yet."""
        self._pending: Request | None = None
        """What the Host was given."""
        self._handover: Mapping[str, object] | None = None
        self._found: str | None = None
        """Why they are compared no more, where that was reported already."""

    # -- as the Host knows it ---------------------------------------------------------------------

    def begin(self, execution: str) -> None:
        self._name = execution

    def handed_over(self) -> Mapping[str, object] | None:
        found, self._handover = self._handover, None
        return found

    def stop(self, outcome: Outcome | None) -> None:
        """Nothing is claimed of what was not compared to its end; what was found before was told when it was found."""

    def advance(self, completions: Sequence[Completion]) -> Blocked | Done:
        answer = self._answered(completions)
        direct = None if self._side is None else self._side.advance(answer)
        if self._python is None and self._trusts and isinstance(direct, Blocked):
            direct = self._sound(direct)
        if self._python is None and self._trusts and direct is not None and not isinstance(direct, Broke):
            if self._is_trusted(direct):
                return self._released(direct)
        python = self._reference(direct, answer)
        if isinstance(direct, Blocked | Done):
            return self._compared(direct, python)
        return self._alone(python)

    # -- the parts of one step --------------------------------------------------------------------

    def _answered(self, completions: Sequence[Completion]) -> Exchange | None:
        """What came of the request that the Host was given."""
        if self._pending is None:
            if completions:
                raise ValueError("nothing was asked for that could be completed")
            return None
        (completion,) = completions
        exchange = Exchange(self._pending, completion.result, completion.failure)
        self._pending = None
        self._exchanges.append(exchange)
        self._performed.add(exchange.request.path)
        self._trail.settle(exchange)
        return exchange

    def _sound(self, direct: Blocked) -> Blocked | Broke:
        """What the Host would perform on the word of the direct engine alone: a step of the node, for what that is, and
        once. Each round of a loop has a path of its own."""
        (request,) = direct.requests
        problem = self._pair.unsound(request)
        if problem is None and request.path in self._performed:
            problem = "it asked for a step again that was done"
        return direct if problem is None else Broke(problem)

    def _is_trusted(self, direct: Blocked | Done) -> bool:
        assert self._side is not None
        if isinstance(direct, Blocked):
            (request,) = direct.requests
            if request.effect_class == "read":
                return True
            return self._pair.is_trusted_so_far(self._trail.prefix(self._side.points, request.path))
        if isinstance(direct.outcome, LimitHit):
            return False  # rare, and nobody is in a hurry any more
        return self._pair.is_trusted(self._trail.note(self._side.points, direct.outcome).name)

    def _released(self, step: Blocked | Done) -> Blocked | Done:
        if isinstance(step, Blocked):
            (self._pending,) = step.requests
            return step
        return Done(step.outcome, ())

    def _reference(self, direct: Blocked | Done | Broke | None, answer: Exchange | None) -> Blocked | Done:
        """The step of Python. A direct engine that broke is told of, and left, on the way."""
        broke = direct if isinstance(direct, Broke) else None
        try:
            python = self._python_step(answer, is_traced=broke is None)
        except Exception as error:
            # What is no inputs at all is a mistake of the caller: no engine is to blame for it.
            if broke is not None and not isinstance(error, NotInputs | NowMissing):
                self._leave_broken(broke)
            elif self._side is not None and self._found is not None:
                self._leave(self._found)
            raise
        if broke is not None:
            self._leave_broken(broke)
        return python

    def _python_step(self, answer: Exchange | None, is_traced: bool) -> Blocked | Done:
        if self._python is None:
            # What the direct engine alone was answered, this answer among it, is what Python is fed.
            self._left = {each.request.path: each for each in self._exchanges}
            self._exchanges = []
            self._python = self._pair.python.start(self._inputs, self._now, self._limits, is_traced=is_traced)
            step = self._python.advance(())
        elif answer is None:
            raise ValueError("the execution waits for the completion of what it asked for")
        else:
            completion = Completion(self._python_waits_for, answer.value, answer.failure)
            step = self._python.advance((completion,))
        return self._fed(self._python, step)

    def _fed(self, python: Execution, step: Blocked | Done) -> Blocked | Done:
        """Python, on what was performed already, up to something new. Found by path, not by number."""
        while isinstance(step, Blocked):
            (request,) = step.requests
            known = self._left.get(request.path)
            if known is None:
                if request.effect_class != "read":
                    self._check_nothing_left(request)
                self._python_waits_for = request.id
                return step
            if not self._is_what_was_performed(request, known.request):
                if request.effect_class != "read":
                    raise Parted(known.request, request)
                # What was only read, Python reads as it wants to. But nobody reads today what was there before
                # something was changed, and what was changed was changed because of what was read.
                for changed in self._changed():
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
        verdict = self._verdict(lambda: self._pair.comparator.requests(request, performed))
        if isinstance(verdict, Incomparable):
            # Comparing broke. What is the same to the last byte is the same: it is not performed again.
            self._lose(verdict.why)
            return same_requests((request,), (performed,))
        if isinstance(verdict, Difference):
            self._find(replace(verdict, is_effect=verdict.is_effect or bool(self._changed())))
        elif first is not performed:
            # In another order. Both were performed, and both are asked for: it is told, and Python goes on.
            self._find(self._difference(request, first))
        return isinstance(verdict, Same)

    def _changed(self) -> list[Request]:
        """What changed something, and Python has not asked for yet."""
        return [each.request for each in self._left.values() if each.request.effect_class != "read"]

    def _check_nothing_left(self, asked: Request | None) -> None:
        """Before Python changes something, or ends: all that was performed must be what it asked for."""
        changed = self._changed()
        for exchange in self._left.values():
            difference = self._difference(asked, exchange.request)
            self._find(replace(difference, is_effect=difference.is_effect or bool(changed)))
        for performed in changed:
            raise Parted(performed, asked)

    # -- comparing --------------------------------------------------------------------------------

    def _compared(self, direct: Blocked | Done, python: Blocked | Done) -> Blocked | Done:
        side = self._side
        assert side is not None
        if self._found is None and isinstance(direct, Done) and isinstance(python, Done):
            verdict = self._verdict(lambda: self._same_ends(side, direct, python))
            if isinstance(verdict, Same):
                # How long they took is not told: side by side, with marks, both are slower than each is by itself.
                note = self._trail.note(side.points, direct.outcome)
                self._report(Agreement(note, side.fingerprint))
                return Done(direct.outcome, ())
            self._judge(verdict, python.outcome, direct.outcome)
        elif self._found is None:
            asked, follows = _request_of(python), _request_of(direct)
            verdict = self._verdict(lambda: self._pair.comparator.requests(asked, follows))
            if isinstance(verdict, Same) and asked is not None and follows is not None:
                if asked.effect_class != "read":
                    self._trail.prefix(side.points, asked.path)
                self._pending = asked
                return python
            outcomes = [each.outcome if isinstance(each, Done) else None for each in (python, direct)]
            self._judge(verdict, *outcomes)
        self._leave(self._found or "they could not be compared")
        return self._alone(python)

    def _same_ends(self, side: DirectSide, direct: Done, python: Done) -> Verdict:
        verdict = self._pair.comparator.outcomes(python.outcome, direct.outcome)
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
        # The first by its place in the node: the same fault is told in the same words.
        where, went = min(mine ^ its)
        word = "true" if went else "false"
        leader, follower = (word if (where, went) in each else f"not {word}" for each in (mine, its))
        return Difference("path", f"condition {where}", leader, follower)

    def _verdict(self, compare: Callable[[], Verdict]) -> Verdict:
        try:
            return compare()
        except Exception as error:  # noqa: BLE001  # comparing is our business, not that of who called the node
            _log.error("comparing broke: %s", type(error).__name__)
            return Incomparable(f"comparing broke: {type(error).__name__}")

    def _difference(self, asked: Request | None, performed: Request) -> Difference:
        """Something else was performed than Python asks for."""
        verdict = self._verdict(lambda: self._pair.comparator.requests(asked, performed))
        if isinstance(verdict, Difference):
            return verdict
        is_effect = performed.effect_class != "read" or (asked is not None and asked.effect_class != "read")
        return Difference("request", performed.path, asking(asked), asking(performed), is_effect)

    # -- Python alone -----------------------------------------------------------------------------

    def _alone(self, python: Blocked | Done) -> Blocked | Done:
        if isinstance(python, Blocked):
            (self._pending,) = python.requests
            return python
        return Done(python.outcome, ())

    def _leave_broken(self, broke: Broke) -> None:
        if not broke.is_fault:
            self._leave(broke.what)
            if broke.error is None:
                self._lose(broke.what)
            return
        self._leave(f"the direct engine broke: {broke.what}")
        self._report(Fault(broke.what, self._transcript(EngineFault(broke.what)), self._name))

    def _leave(self, why: str) -> None:
        """From now on Python goes alone."""
        self._side = None
        # Bounded: an entry of the journal is, and a process of the direct engine may say what it likes.
        self._handover = {"before": DirectEngine.name, "engine": PythonEngine.name, "why": why[:_WHY]}

    # -- telling ----------------------------------------------------------------------------------

    def _judge(self, verdict: Verdict, python: Outcome | None, direct: Outcome | None) -> None:
        if isinstance(verdict, Difference):
            self._find(verdict, python, direct)
        elif isinstance(verdict, Incomparable):
            self._lose(verdict.why)

    def _find(self, difference: Difference, python: Outcome | None = None, direct: Outcome | None = None) -> None:
        """Reports that they differ: at once, because whoever is killed now reports nothing any more."""
        if self._found is not None:
            return
        self._found = f"the engines differ: {difference.kind} {difference.where}"
        transcript = self._transcript(python or _UNFINISHED)
        note = fingerprint = None
        if direct is not None and self._side is not None:
            note, fingerprint = self._trail.note(self._side.points, direct), self._side.fingerprint
        self._report(Disagreement(difference, note, fingerprint, transcript, direct, self._name))

    def _lose(self, why: str) -> None:
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
        except Exception as error:  # noqa: BLE001  # the caller of the node has no part in it
            _log.error("a report of %s could not be made: %s", type(report).__name__, type(error).__name__)


def _request_of(step: Blocked | Done) -> Request | None:
    return step.requests[0] if isinstance(step, Blocked) else None
