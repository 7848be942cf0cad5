"""Repetition of a recorded execution on both engines with marks, to compare intermediate values as well.

Nothing is performed: the records complete requests, and a request without a record ends the execution. This takes many
times as long as a shadow run, so that it belongs into the helper process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Protocol

from vesper.compiler import Compiled
from vesper.engines.compare import first_difference
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.engine import Blocked, Completion, Done, Execution, Program, Request
from vesper.engines.outcome import EngineFault, LimitHit, Outcome
from vesper.engines.path import Conditions, Point, conditions_of, conditions_of_marks
from vesper.engines.python_engine import PythonEngine, PythonProgram
from vesper.engines.tiering import tiering
from vesper.journal.typed_json import encode
from vesper.migration.compare.comparator import Comparator, Incomparable, Same, Verdict
from vesper.migration.compare.paths import PathNote
from vesper.migration.compare.reports import Agreement, Difference, Disagreement, Fault, Lost, Report
from vesper.migration.compare.transcript import Transcript
from vesper.migration.shadow.guarded_direct import Broke, DirectSide, PathedProgram, PathNoteBuilder
from vesper.migration.shadow.shadow_run import was_stopped

if TYPE_CHECKING:

    class RerunProgram(PathedProgram, Program, Protocol):
        """The interface of the direct engine here: `DirectProgram`, or a substitute."""


def _compiled_engine() -> DirectEngine:
    """Return an engine that compiles before the first run, unless the JIT is off. Production runs compiled code too."""
    found = tiering()
    return DirectEngine(found if found.jit == "off" else replace(found, jit="always"))


class Pair:
    """A node on both engines, with its comparator."""

    def __init__(self, compiled: Compiled, comparator: Comparator, direct: RerunProgram | None = None) -> None:
        self.compiled = compiled
        self.comparator = comparator
        self.python: PythonProgram = PythonEngine().load(compiled)
        self.direct: RerunProgram = _compiled_engine().load(compiled) if direct is None else direct
        self.points: tuple[Point, ...] = self.direct.points()
        from vesper.verify.differential.verifier import (
            steps_by_expression,
        )  # loads the parser: needed for explanations only

        self.steps: Mapping[int, str] = steps_by_expression(compiled.node)


@dataclass(frozen=True, slots=True)
class _FedExecution:
    """The progress of an engine on the records."""

    requests: tuple[Request, ...]
    """Requests so far; the last one has no completion where the execution did not end."""
    done: Done | None
    is_all_asked: bool
    """True where every recorded request was made."""


def rerun(
    pair: Pair,
    transcript: Transcript,
    key: bytes,
    *,
    is_recorded: bool = True,
    before_direct: Callable[[], None] = lambda: None,
) -> Report | None:
    """Return the report of the comparison; None where the records decide nothing.

    That is the case where the leader was stopped, or both engines make requests other than the recorded ones.
    `is_recorded` is True where the records are of this definition, whose outcome must then repeat. `before_direct` is
    called before the direct engine runs: if the process dies after that, the engine is at fault.
    """
    python = _feed(pair.python.start(transcript.inputs, transcript.now), transcript)
    before_direct()
    try:
        direct = _feed(pair.direct.start(transcript.inputs, transcript.now), transcript)
    except Exception as error:  # noqa: BLE001  # any exception of the engine is its fault
        return Fault(f"it raised {type(error).__name__}", transcript)
    if direct.done is not None and isinstance(direct.done.outcome, EngineFault):
        return Fault("it is at fault", transcript)
    judge = _Judge(pair, transcript, _run_untraced(pair, transcript, key))
    if (found := judge.compare_requests(python, direct)) is not None:
        return found
    if python.done is None or direct.done is None or not python.is_all_asked:
        return None
    if (found := judge.compare_ends(python.done, direct.done)) is not None:
        return found
    if was_stopped(transcript.outcome):
        return None
    if any(isinstance(each, LimitHit) for each in (transcript.outcome, python.done.outcome)):
        return None  # the leader may have had another amount of fuel
    if is_recorded:
        verdict = pair.comparator.compare_outcomes(transcript.outcome, python.done.outcome)
        if (found := judge.judge_verdict(verdict, python.done.outcome)) is not None:
            return found
    return judge.path(python.done)


@dataclass(frozen=True, slots=True)
class _UntracedExecution:
    """The untraced execution of the direct engine, as in production."""

    end: Done | Broke | Request
    """End of the execution; a `Request` is one that was not recorded."""
    points: bytes
    note: PathNote | None
    fingerprint: int | None
    left: Request | None = None
    """First recorded request that was not made."""


def _run_untraced(pair: Pair, transcript: Transcript, key: bytes) -> _UntracedExecution:
    side = DirectSide(pair.direct, key, transcript.inputs, transcript.now, None)
    note_builder = PathNoteBuilder()
    recorded = {each.request.path: each for each in transcript.exchanges}
    step = side.advance(None)
    while isinstance(step, Blocked):
        request = step.requests[0]
        known = recorded.pop(request.path, None)
        if known is None or not is_same_request(known.request, request):
            return _UntracedExecution(request, side.points, None, None)
        if request.effect_class != "read":
            note_builder.prefix(side.points, request.path)
        note_builder.settle(known)
        step = side.advance(known)
    if isinstance(step, Broke):
        return _UntracedExecution(step, side.points, None, None)
    left = next((each.request for each in recorded.values()), None)
    return _UntracedExecution(step, side.points, note_builder.note(side.points, step.outcome), side.fingerprint, left)


def _feed(execution: Execution, transcript: Transcript) -> _FedExecution:
    """Advance an execution while it makes the recorded requests."""
    recorded = {each.request.path: each for each in transcript.exchanges}
    asked: list[Request] = []
    step = execution.advance(())
    while isinstance(step, Blocked):
        request = step.requests[0]
        asked.append(request)
        known = recorded.pop(request.path, None)
        if known is None or not is_same_request(known.request, request):
            return _FedExecution(tuple(asked), None, is_all_asked=False)
        step = execution.advance((Completion(request.id, known.value, known.failure),))
    return _FedExecution(tuple(asked), step, not recorded)


def is_same_request(recorded: Request, request: Request) -> bool:
    """Return True where a request equals the recorded one. The order of fields is ignored, as JSON loses it."""
    fixed_parts = (recorded.path, recorded.effect, recorded.effect_class, recorded.key)
    if fixed_parts != (request.path, request.effect, request.effect_class, request.key):
        return False
    values = [[dict(each.fixed), dict(each.arguments)] for each in (recorded, request)]
    return encode(values[0]) == encode(values[1])


class _Judge:
    def __init__(self, pair: Pair, transcript: Transcript, served: _UntracedExecution) -> None:
        self._pair = pair
        self._transcript = transcript
        self._served = served

    def compare_requests(self, python: _FedExecution, direct: _FedExecution) -> Report | None:
        for left, right in zip_longest(python.requests, direct.requests):
            verdict = self._pair.comparator.compare_requests(left, right)
            if isinstance(verdict, Difference):
                return self._disagreement(verdict, None if direct.done is None else direct.done.outcome)
        return None

    def compare_ends(self, python: Done, direct: Done) -> Report | None:
        verdict = self._pair.comparator.compare_outcomes(python.outcome, direct.outcome)
        found = self.judge_verdict(verdict, direct.outcome)
        if found is not None or verdict == Same(is_within_tolerance=True):
            return found  # a tolerance on outputs extends to the values that they are computed from
        at = first_difference(python.marks, direct.marks)
        if at is None:
            return None
        index = (python.marks if at < len(python.marks) else direct.marks)[at][0]
        kind_of = self._pair.comparator.kind_of
        difference = Difference("value", self._step(index), kind_of(python.outcome), kind_of(direct.outcome))
        return self._disagreement(difference, direct.outcome)

    def judge_verdict(self, verdict: Verdict, outcome: Outcome) -> Report | None:
        match verdict:
            case Same():
                return None
            case Incomparable(why):
                return Lost(why)
            case Difference():
                return self._disagreement(verdict, outcome)

    def path(self, python: Done) -> Report:
        """Return the verdict on the untraced execution: its requests, outcome and branch results."""
        match self._served.end:
            case Broke(what, is_fault=is_fault):
                return Fault(what, self._transcript) if is_fault else Lost(what)
            case Request() as request:
                return self._report_other_request(request)
            case Done(outcome):
                return self._compare_end(python, outcome)

    def _report_other_request(self, request: Request) -> Report:
        recorded = {each.request.path: each.request for each in self._transcript.exchanges}
        verdict = self._pair.comparator.compare_requests(recorded.get(request.path), request)
        if not isinstance(verdict, Difference):  # a second request at the same path
            verdict = self._pair.comparator.compare_requests(None, request)
        assert isinstance(verdict, Difference)
        return self._disagreement(verdict, None)

    def _compare_end(self, python: Done, outcome: Outcome) -> Report:
        served = self._served
        found = self.judge_verdict(self._pair.comparator.compare_outcomes(python.outcome, outcome), outcome)
        if found is not None:
            return found
        if served.left is not None:
            verdict = self._pair.comparator.compare_requests(served.left, None)
            assert isinstance(verdict, Difference)
            return self._disagreement(verdict, outcome)
        ours = conditions_of_marks(python.marks, self._pair.compiled.node)
        theirs = conditions_of(served.points, self._pair.points)
        if ours != theirs:
            where = self._step(min(ours ^ theirs)[0])
            return self._disagreement(
                Difference("path", where, _describe_condition(ours, theirs), _describe_condition(theirs, ours)), outcome
            )
        assert served.note is not None
        assert served.fingerprint is not None
        return Agreement(served.note, served.fingerprint)

    def _disagreement(self, difference: Difference, outcome: Outcome | None) -> Disagreement:
        return Disagreement(difference, self._served.note, self._served.fingerprint, self._transcript, outcome)

    def _step(self, index: int) -> str:
        return self._pair.steps.get(index, "contract")


def _describe_condition(ours: Conditions, theirs: Conditions) -> str:
    """Return a text about the first condition that only `ours` has."""
    only = sorted(ours - theirs)
    return f"condition {only[0][0]} was {str(only[0][1]).lower()}" if only else "did not get there"
