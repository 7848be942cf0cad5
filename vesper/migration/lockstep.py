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
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Protocol

from vesper.engines.compare import same_requests
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.engine import Blocked, Completion, Done, Execution, Limits, Request
from vesper.engines.outcome import EngineFault, LimitHit, Outcome
from vesper.engines.path import Point, conditions_of, guards
from vesper.engines.python_engine import PythonEngine, PythonProgram
from vesper.host.routed import Parted, Routed
from vesper.migration.comparator import Incomparable, Same, Verdict
from vesper.migration.direct_side import Broke, DirectSide, PathedProgram, Trail
from vesper.migration.paths import PathNote, ending_of
from vesper.migration.recorded import transcript_of
from vesper.migration.reports import Agreement, Difference, Disagreement, Fault, Lost, Report, Watch
from vesper.migration.transcript import Exchange, Transcript

_log = logging.getLogger("vesper.migration")
_ROUND = re.compile(r"\[[0-9]+\]")


class Compares(Protocol):
    """`comparator.Comparator`, or one that stands in for it."""

    def outcomes(self, leader: Outcome, follower: Outcome) -> Verdict: ...
    def requests(self, leader: Request, follower: Request) -> Verdict: ...


class Pair:
    """A node on both engines, and who judges and counts what they do."""

    def __init__(
        self,
        python: PythonProgram,
        direct: PathedProgram,
        comparator: Compares,
        key: bytes,
        watch: Watch,
        deadline: float | None,
        is_sensitive: bool,
    ) -> None:
        self.python = python
        self.direct = direct
        self.comparator = comparator
        self.key = key
        self.watch = watch
        self.deadline = deadline
        self.is_sensitive = is_sensitive

    @cached_property
    def points(self) -> tuple[Point, ...]:
        return self.direct.points()

    @cached_property
    def guards(self) -> set[int]:
        return guards(self.python.node)

    def side(self, inputs: Mapping[str, object], now: datetime | None, limits: Limits | None) -> DirectSide:
        return DirectSide(self.direct, self.key, inputs, now, limits, self.deadline, is_sensitive=self.is_sensitive)

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
        self._left: dict[str, Exchange] = {}
        """What was performed for the direct engine alone, and Python has not asked for yet."""
        self._pending: Request | None = None
        """What the Host was given."""
        self._handover: Mapping[str, object] | None = None
        self._finding: Difference | Lost | None = None
        """What is to be reported when the run has ended."""
        self._found_note: PathNote | None = None
        self._found_fingerprint: int | None = None
        self._found_outcome: Outcome | None = None

    # -- as the Host knows it ---------------------------------------------------------------------

    def begin(self, execution: str) -> None:
        self._name = execution

    def handed_over(self) -> Mapping[str, object] | None:
        found, self._handover = self._handover, None
        return found

    def stop(self, outcome: Outcome | None) -> None:
        """Stopped by the Host, nothing is claimed of what was not compared; what was found is told."""
        self._tell_finding(outcome or LimitHit("unfinished"))

    def advance(self, completions: Sequence[Completion]) -> Blocked | Done:
        answer = self._answered(completions)
        direct = None if self._side is None else self._side.advance(answer)
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
        self._trail.settle(exchange)
        return exchange

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
            # Where Python raises the same, neither could do anything with what it was given.
            if broke is not None and type(error) is not type(broke.error):
                self._leave_broken(broke)
            if isinstance(error, Parted):
                if self._side is not None and self._finding is not None:
                    self._leave(_words(self._finding))
                self._tell_finding(LimitHit("in_doubt"))
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
            verdict = self._against(request, known.request)
            if not isinstance(verdict, Same):
                self._find(verdict)
            if isinstance(verdict, Difference):
                if known.request.effect_class != "read" or request.effect_class != "read":
                    raise Parted(known.request, request)
                del self._left[request.path]  # it was only read: Python reads what it wants to read
                self._python_waits_for = request.id
                return step
            del self._left[request.path]
            self._exchanges.append(Exchange(request, known.value, known.failure))
            step = python.advance((Completion(request.id, known.value, known.failure),))
        self._check_nothing_left(None)
        return step

    def _against(self, request: Request, performed: Request) -> Verdict:
        """Python's request against one that was performed. Where comparing breaks, it is still never done again: what
        is the same byte for byte is the same."""
        first = next(iter(self._left.values())).request
        verdict = self._verdict(lambda: self._pair.comparator.requests(request, performed))
        if isinstance(verdict, Incomparable) and not same_requests((request,), (performed,)):
            return _other_request(request, performed)
        if isinstance(verdict, Same) and first is not performed:
            # In another order. Both were performed, and both are asked for: it is told, and Python goes on.
            self._find(_other_request(request, first))
        return verdict

    def _check_nothing_left(self, asked: Request | None) -> None:
        """Before Python changes something, or ends: all that was performed must be what it asked for."""
        for exchange in self._left.values():
            performed = exchange.request
            self._find(_other_request(asked, performed))
            if performed.effect_class != "read":
                raise Parted(performed, asked)

    # -- comparing --------------------------------------------------------------------------------

    def _compared(self, direct: Blocked | Done, python: Blocked | Done) -> Blocked | Done:
        side = self._side
        assert side is not None
        if self._finding is not None:
            self._leave(_words(self._finding))
            return self._alone(python)
        verdict: Verdict
        if isinstance(direct, Blocked) and isinstance(python, Blocked):
            (asked,), (follows,) = python.requests, direct.requests
            verdict = self._verdict(lambda: self._pair.comparator.requests(asked, follows))
            if isinstance(verdict, Same):
                if asked.effect_class != "read":
                    self._trail.prefix(side.points, asked.path)
                self._pending = asked
                return python
        elif isinstance(direct, Done) and isinstance(python, Done):
            verdict = self._verdict(lambda: self._same_ends(side, direct, python))
            if isinstance(verdict, Same):
                # How long Python took is not told: it ran with marks, which is slower than it would be by itself.
                note = self._trail.note(side.points, direct.outcome)
                self._report(Agreement(note, side.fingerprint, None, side.took_us))
                return Done(direct.outcome, ())
        else:
            verdict = other_step(python, direct)
        self._find(verdict, side, direct)
        self._leave(_words(verdict))
        return self._alone(python)

    def _same_ends(self, side: DirectSide, direct: Done, python: Done) -> Verdict:
        verdict = self._pair.comparator.outcomes(python.outcome, direct.outcome)
        if not isinstance(verdict, Same) or isinstance(direct.outcome, LimitHit):
            return verdict
        conditions = self._pair.guards
        mine = {(index, bool(value)) for index, value in python.marks if index in conditions}
        its = conditions_of(side.points, self._pair.points)
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

    # -- Python alone -----------------------------------------------------------------------------

    def _alone(self, python: Blocked | Done) -> Blocked | Done:
        if isinstance(python, Blocked):
            (self._pending,) = python.requests
            return python
        self._tell_finding(python.outcome)
        return Done(python.outcome, ())

    def _leave_broken(self, broke: Broke) -> None:
        self._leave(f"the direct engine broke: {broke.what}" if broke.is_fault else broke.what)
        if broke.is_fault:
            transcript = self._transcript(EngineFault(broke.what))
            self._report(Fault(broke.what, transcript, self._name))
        elif broke.error is None and self._finding is None:
            self._finding = Lost(broke.what)

    def _leave(self, why: str) -> None:
        """From now on Python goes alone."""
        self._side = None
        self._handover = {"before": DirectEngine.name, "engine": PythonEngine.name, "why": why}

    # -- telling ----------------------------------------------------------------------------------

    def _find(
        self,
        verdict: Difference | Incomparable | Same,
        side: DirectSide | None = None,
        ended: Blocked | Done | None = None,
    ) -> None:
        """Remembers what is to be reported: the first that was found."""
        if self._finding is not None or isinstance(verdict, Same):
            return
        if isinstance(verdict, Incomparable):
            self._finding = Lost(verdict.why)
            return
        self._finding = verdict
        if side is not None and isinstance(ended, Done):
            self._found_note = self._trail.note(side.points, ended.outcome)
            self._found_fingerprint, self._found_outcome = side.fingerprint, ended.outcome

    def _tell_finding(self, outcome: Outcome) -> None:
        finding, self._finding = self._finding, None
        if isinstance(finding, Lost):
            self._report(finding)
        elif finding is not None:
            self._report(
                Disagreement(
                    finding,
                    self._found_note,
                    self._found_fingerprint,
                    self._transcript(outcome),
                    self._found_outcome,
                    self._name,
                )
            )

    def _transcript(self, outcome: Outcome) -> Transcript:
        exchanges = tuple(self._exchanges)
        written = transcript_of(self._inputs, self._now, exchanges, outcome)
        return written if isinstance(written, Transcript) else Transcript(self._inputs, self._now, exchanges, outcome)

    def _report(self, report: Report) -> None:
        try:
            self._pair.watch.report(report)
        except Exception as error:  # noqa: BLE001  # the caller of the node has no part in it
            _log.error("a report of %s could not be made: %s", type(report).__name__, type(error).__name__)


def other_step(python: Blocked | Done, direct: Blocked | Done) -> Difference:
    """One asks, and the other one ends."""
    asked = python if isinstance(python, Blocked) else direct
    assert isinstance(asked, Blocked)
    (request,) = asked.requests
    return Difference(
        "request", folded(request.path), _told(python), _told(direct), is_effect=request.effect_class != "read"
    )


def _other_request(asked: Request | None, performed: Request) -> Difference:
    """Something else was performed than Python asks for."""
    requests = [performed] if asked is None else [asked, performed]
    is_effect = any(each.effect_class != "read" for each in requests)
    leader = "ends" if asked is None else f"asks for {asked.effect}"
    return Difference("request", folded(performed.path), leader, f"asks for {performed.effect}", is_effect=is_effect)


def _told(step: Blocked | Done) -> str:
    return f"asks for {step.requests[0].effect}" if isinstance(step, Blocked) else ending_of(step.outcome)


def _words(finding: Verdict | Lost) -> str:
    match finding:
        case Difference(kind, where):
            return f"the engines differ: {kind} {where}"
        case Incomparable(why) | Lost(why):
            return f"they could not be compared: {why}"
        case Same():
            raise AssertionError("who does the same is not left")


def folded(path: str) -> str:
    """A path without the numbers of rounds."""
    return _ROUND.sub("[]", path)
