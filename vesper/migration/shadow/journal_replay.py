"""Replay of a journalled run on any engine: fed recorded completions, it performs nothing.

The journal holds values in canonical form, in which dicts have lost their order. So the comparison uses that form, and
is no evidence for a migration; `follow_transcript` is, on records made during the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from vesper.engines.engine import Blocked, Completion, Done, Execution, Limits, Program, Request
from vesper.engines.outcome import Denied, LimitHit, Outcome
from vesper.engines.path import Pathed, Point
from vesper.host.outcomes import outcome_record
from vesper.journal.entry import Entry, Kind
from vesper.journal.typed_json import encode
from vesper.migration.compare.comparator import Same, Verdict
from vesper.migration.compare.journalled import NOT_KEPT, journalled_transcript
from vesper.migration.compare.reports import Agreement, Difference, Disagreement, Fault
from vesper.migration.compare.request_difference import request_kind
from vesper.migration.shadow.guarded_direct import DirectSide
from vesper.migration.shadow.shadow_run import FollowerExecution


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The result of a replay."""

    outcome: Outcome | None
    """Outcome of the engine; None where it made another request, or failed."""
    difference: str | None
    """Location of the first difference; None where they agree."""


def follow(program: Program, entries: Sequence[Entry], limits: Limits | None = None) -> ReplayResult:
    """Run a node again on its journal entries, from START to END.

    A run that the Host or a limit stopped is compared up to that point. Raises `ValueError` for a run that has not
    ended.
    """
    if entries[0].kind is not Kind.START or entries[-1].kind is not Kind.END:
        raise ValueError("only a run that has ended can be followed")
    transcript = journalled_transcript(entries)
    side = DirectSide(_WithoutPath(program), b"", transcript.inputs, transcript.now, limits)
    following = FollowerExecution(
        side, transcript, _JournalComparator(), None, knows_limits=True, is_stopped=_is_stopped
    )
    match following.report():
        case Disagreement(difference, follower=outcome):
            said = f"the run {difference.leader}, and this engine {difference.follower}"
            return ReplayResult(outcome, f"{difference.where}: {said}")
        case Fault(what):
            return ReplayResult(None, f"the engine broke: {what}")
        case Agreement():
            return ReplayResult(following.outcome, None)
        case _:  # the run was stopped, or this engine hit a limit of its own: nothing more to compare
            return ReplayResult(following.outcome or transcript.outcome, None)


def _is_stopped(outcome: Outcome) -> bool:
    """Return True for a stopped run. Fuel counts too: the journal does not hold the limit."""
    return isinstance(outcome, Denied | LimitHit)


class _JournalComparator:
    """The comparison with values in the journal's form."""

    def compare_outcomes(self, leader: Outcome, follower: Outcome) -> Verdict:
        if encode(outcome_record(leader)) == encode(outcome_record(follower)):
            return Same()
        both = "another value" if leader.kind == follower.kind else follower.kind
        return Difference("outcome", "the outcome", f"came to {leader.kind}", f"to {both}")

    def compare_requests(self, leader: Request | None, follower: Request | None) -> Verdict:
        if leader is not None and follower is not None and _is_same(leader, follower):
            return Same()
        asked = leader or follower
        path = "" if asked is None else asked.path
        recorded, other = request_kind(leader), request_kind(follower)
        return Difference("request", path, recorded, f"{other} otherwise" if recorded == other else other)


def _is_same(recorded: Request, request: Request) -> bool:
    is_alike = _identity(recorded) == _identity(request)
    if recorded.arguments is NOT_KEPT:  # only a digest was kept
        return is_alike
    return (
        is_alike
        and dict(recorded.fixed) == dict(request.fixed)
        and encode(dict(recorded.arguments)) == encode(dict(request.arguments))
    )


def _identity(request: Request) -> tuple[object, ...]:
    return request.path, request.effect, request.effect_class, request.key


class _WithoutPath:
    """A program of any engine, without paths."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def points(self) -> tuple[Point, ...]:
        return ()

    def call_pathed(
        self, inputs: Mapping[str, object], key: bytes, now: datetime | None = None, limits: Limits | None = None
    ) -> Pathed:
        return Pathed(self._program.call(inputs, now, limits), b"", 0)

    def start_pathed(
        self, inputs: Mapping[str, object], key: bytes, now: datetime | None = None, limits: Limits | None = None
    ) -> _ExecutionWithoutPath:
        return _ExecutionWithoutPath(self._program.start(inputs, now, limits, is_traced=False))


class _ExecutionWithoutPath:
    def __init__(self, execution: Execution) -> None:
        self._execution = execution

    def advance(self, completions: Sequence[Completion]) -> Blocked | Done:
        return self._execution.advance(completions)

    def path(self) -> bytes:
        return b""

    def fingerprint(self) -> int:
        return 0
