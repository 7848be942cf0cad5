"""A shadow run: the direct engine on the records of an ended execution. It performs nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from vesper.engines.engine import Blocked, Done, Limits
from vesper.engines.outcome import Denied, LimitHit, Outcome
from vesper.migration.compare.comparator import Incomparable, Same, Verdict
from vesper.migration.compare.reports import Agreement, Difference, Disagreement, Fault, Lost, Report
from vesper.migration.compare.transcript import Transcript
from vesper.migration.shadow.guarded_direct import Broke, DirectSide, PathedProgram, PathNoteBuilder
from vesper.migration.shadow.lockstep import Compares

_log = logging.getLogger("vesper.migration")


def follow_transcript(
    direct: PathedProgram,
    transcript: Transcript,
    comparator: Compares,
    key: bytes,
    limits: Limits | None = None,
    *,
    deadline: float | None = None,
    execution: str | None = None,
    is_plain: bool = False,
    is_sensitive: bool = False,
) -> Report | None:
    """Return the report of a shadow run.

    `limits` are those of the leader; if they are unknown, running out of fuel on one engine alone is no difference.
    `deadline` bounds the follower's computing in seconds. `is_plain` is True for a node without requests.

    A stopped leader (denied, cancelled, out of time) is compared up to that point: None where there was no difference,
    and `Lost` where there was nothing to compare.
    """
    side = DirectSide(
        direct,
        key,
        transcript.inputs,
        transcript.now,
        limits,
        deadline,
        is_sensitive=is_sensitive,
        script=transcript.exchanges,
    )
    following = FollowerExecution(
        side, transcript, comparator, execution, knows_limits=limits is not None, is_stopped=was_stopped
    )
    try:
        if is_plain:
            side.call()  # measured as in production: stepwise execution takes longer
        return following.report()
    except Exception as error:  # noqa: BLE001  # a failed comparison has no verdict, and must not end the thread
        _log.error("comparing broke: %s", type(error).__name__)
        return Lost(f"comparing broke: {type(error).__name__}")


class FollowerExecution:
    """One execution of an engine on the records of another."""

    def __init__(
        self,
        side: DirectSide,
        transcript: Transcript,
        comparator: Compares,
        execution: str | None,
        *,
        knows_limits: bool,
        is_stopped: Callable[[Outcome], bool],
    ) -> None:
        self._side = side
        self._transcript = transcript
        self._comparator = comparator
        self._execution = execution
        self._knows_limits = knows_limits
        self._is_stopped = is_stopped
        self.outcome: Outcome | None = None
        """Outcome of the follower; None where it did not end."""
        self._note_builder = PathNoteBuilder()

    def report(self) -> Report | None:
        answer = None
        for number, exchange in enumerate(self._transcript.exchanges):
            step = self._side.advance(answer)
            if isinstance(step, Broke):
                return self._report_failure(step)
            if isinstance(step, Done):
                return self._check_fuel(step) or self._report_missing_requests(step, number)
            asked, request = exchange.request, step.requests[0]
            found = self._report_verdict(self._comparator.compare_requests(asked, request), None)
            if found is not None:
                return found
            if asked.effect_class != "read":
                self._note_builder.prefix(self._side.points, asked.path)
            self._note_builder.settle(exchange)
            answer = exchange
        step = self._side.advance(answer)
        if isinstance(step, Broke):
            return self._report_failure(step)
        leader = self._transcript.outcome
        self.outcome = step.outcome if isinstance(step, Done) else None
        if self._is_stopped(leader):
            return None if self._transcript.exchanges else Lost(f"the leader was stopped: {_stop_reason(leader)}")
        if starved := self._check_fuel(step):
            return starved
        if isinstance(step, Blocked):
            return self._report_verdict(self._comparator.compare_requests(None, step.requests[0]), None)
        found = self._report_verdict(self._comparator.compare_outcomes(leader, step.outcome), step.outcome)
        if found is not None:
            return found
        note = self._note_builder.note(self._side.points, step.outcome)
        return Agreement(note, self._side.fingerprint, None, self._side.took_ns)

    def _check_fuel(self, step: Blocked | Done) -> Lost | None:
        """Return `Lost` where one engine alone hit a limit, and the leader's limits are unknown."""
        mine = isinstance(step, Done) and isinstance(step.outcome, LimitHit)
        is_alone = mine != isinstance(self._transcript.outcome, LimitHit)
        return (
            Lost("one of the engines ran out of fuel: how much the leader had is not known")
            if (is_alone and not self._knows_limits)
            else None
        )

    def _report_missing_requests(self, step: Done, number: int) -> Report | None:
        """Report recorded requests that were not made. Any that is not a read makes it a difference of effects."""
        left = [each.request for each in self._transcript.exchanges[number:]]
        changing = [each for each in left if each.effect_class != "read"]
        verdict = self._comparator.compare_requests(left[0], None)
        if isinstance(verdict, Difference) and changing:
            verdict = replace(verdict, is_effect=True)
        return self._report_verdict(verdict, step.outcome)

    def _report_verdict(self, verdict: Verdict, outcome: Outcome | None) -> Report | None:
        match verdict:
            case Same():
                return None
            case Incomparable(why):
                return Lost(why)
            case Difference():
                return self._disagreement(verdict, outcome)

    def _disagreement(self, difference: Difference, outcome: Outcome | None) -> Disagreement:
        points = self._side.points
        if outcome is None:
            prefix = self._note_builder.name_at(points, difference.where)
            return Disagreement(difference, None, None, self._transcript, None, self._execution, prefix)
        note = self._note_builder.note(points, outcome)
        return Disagreement(difference, note, self._side.fingerprint, self._transcript, outcome, self._execution)

    def _report_failure(self, broke: Broke) -> Report:
        return Fault(broke.what, self._transcript, self._execution) if broke.is_fault else Lost(broke.what)


def was_stopped(outcome: Outcome) -> bool:
    """Return True where the execution was not ended by the node. Fuel is deterministic, and is compared."""
    return isinstance(outcome, Denied) or (isinstance(outcome, LimitHit) and not outcome.is_counted)


def _stop_reason(outcome: Outcome) -> str:
    return outcome.limit if isinstance(outcome, LimitHit) else outcome.kind
