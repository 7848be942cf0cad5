"""Comparison of a candidate with its lead, on the records of the lead.

The candidate runs on the direct engine, is fed the leader's completions and performs nothing. A request gets the
completion of a recorded one with the same effect, parts and key, wherever it stood; one that was never recorded ends
the comparison. Reads that the candidate does not make any more are no difference; changes are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from vesper.compiler import Compiled
from vesper.engines.compare import Agree
from vesper.engines.engine import Blocked, Request
from vesper.engines.outcome import EngineFault, Failed, LimitHit, Outcome
from vesper.engines.path import Point
from vesper.engines.version_outcomes import (
    OUTCOME,
    ChangedOutcome,
    VersionOutcomes,
    compare_requests,
    ending,
    request_text,
)
from vesper.host.masking import SENSITIVE, Masks
from vesper.migration.candidates.counts import Example, Group, PathText, Result
from vesper.migration.compare.comparator import fold_rounds
from vesper.migration.compare.divergence_record import outcome_words
from vesper.migration.compare.path_words import path_words
from vesper.migration.compare.transcript import Exchange, Transcript
from vesper.migration.shadow.guarded_direct import Broke, DirectSide, PathedProgram, PathNoteBuilder
from vesper.migration.shadow.shadow_run import was_stopped
from vesper.values.model import printable, show

_KEY = bytes(16)
"""Key of fingerprints, which no count of a candidate uses."""
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}", re.ASCII)
_MAX_TEXT = 600
"""Characters of one text of an example."""
_MAX_WORDS = 40
"""Words of a path that are kept."""


@dataclass(frozen=True, slots=True)
class CandidateVerdict:
    """The verdict on the candidate for one run of the lead."""

    result: Result
    at_us: int
    group: Group | None = None
    fault: str = ""


@dataclass(slots=True)
class FollowResult:
    """An execution of a version on recorded completions."""

    outcome: Outcome | None = None
    """None where it asks for something that was not recorded."""
    new: Request | None = None
    left: list[Exchange] = field(default_factory=list)
    """Recorded exchanges that it did not use."""
    points: bytes = b""
    note_builder: PathNoteBuilder = field(default_factory=PathNoteBuilder)


def follow_records(
    program: PathedProgram, transcript: Transcript, names: Sequence[str], deadline: float, is_sensitive: bool
) -> FollowResult | Broke:
    """Run a version on the records of a run.

    `names` are the inputs of the version; other recorded inputs are left out.
    """
    inputs = {name: transcript.inputs[name] for name in names if name in transcript.inputs}
    side = DirectSide(program, _KEY, inputs, transcript.now, None, deadline, is_sensitive=is_sensitive)
    found, answer = FollowResult(left=list(transcript.exchanges)), None
    while True:
        step = side.advance(answer)
        if isinstance(step, Broke):
            return step
        found.points = side.points
        if not isinstance(step, Blocked):
            found.outcome = step.outcome
            return found
        request = step.requests[0]
        answer = next((each for each in found.left if compare_requests((each.request,), (request,)) is None), None)
        if answer is None:
            found.new = request
            return found
        found.left.remove(answer)
        found.note_builder.settle(Exchange(request, answer.value, answer.failure))


@dataclass(frozen=True, slots=True)
class Side:
    """A version with its program, made at its first use."""

    compiled: Compiled
    program: Callable[[], PathedProgram]
    masks: Masks
    """With the sensitive inputs of both versions."""


class Comparison:
    """The comparison of one pair. One thread uses it: that of the shadow queue."""

    def __init__(self, lead: Side, candidate: Side, deadline: float, redact: Callable[[str], str]) -> None:
        self._lead = lead
        self._candidate = candidate
        self._deadline = deadline
        self._redact = redact
        self._outcomes = VersionOutcomes(lead.compiled.node, candidate.compiled.node)
        self._points: dict[str, Sequence[Point]] = {}

    def judge(self, transcript: Transcript, execution: str | None, at_us: int) -> CandidateVerdict:
        """Run the candidate on a transcript of the lead."""
        if was_stopped(transcript.outcome) or isinstance(transcript.outcome, LimitHit | EngineFault):
            return CandidateVerdict("unanswered", at_us)  # the lead has no answer to compare with
        followed = self._follow(self._candidate, transcript)
        if isinstance(followed, Broke):
            return CandidateVerdict("faults" if followed.is_fault else "unanswered", at_us, fault=_fault_kind(followed))
        if isinstance(followed.outcome, LimitHit):
            return CandidateVerdict("limits", at_us)
        field_name = self._difference(transcript, followed)
        if field_name is None:
            return CandidateVerdict("agreed", at_us)
        return CandidateVerdict("changed", at_us, self._group(transcript, followed, field_name, execution, at_us))

    def _follow(self, side: Side, transcript: Transcript) -> FollowResult | Broke:
        names = [each.name for each in side.compiled.node.inputs]
        return follow_records(side.program(), transcript, names, self._deadline, side.masks.is_active)

    def _difference(self, transcript: Transcript, followed: FollowResult) -> str | None:
        """Return the location or request that differs, without values; None if nothing does."""
        if followed.new is not None:
            return f"new request: {_request_name(followed.new)}"
        assert followed.outcome is not None
        verdict = self._outcomes.compare(transcript.outcome, followed.outcome)
        if isinstance(verdict, ChangedOutcome):
            if verdict.where != OUTCOME:
                return fold_rounds(verdict.where)
            before, after = (_ending_name(each) for each in (transcript.outcome, followed.outcome))
            return f"{OUTCOME}: {before} → {after}"
        assert isinstance(verdict, Agree)  # limits and faults are counted apart before
        missing = next((each.request for each in followed.left if each.request.effect_class != "read"), None)
        return None if missing is None else f"no request: {_request_name(missing)}"

    # -- words and examples -----------------------------------------------------------------------

    def _group(
        self, transcript: Transcript, followed: FollowResult, field_name: str, execution: str | None, at_us: int
    ) -> Group:
        lead = self._follow(self._lead, transcript)
        lead_path = PathText("", ("unknown",)) if isinstance(lead, Broke) else self._path(self._lead, lead)
        example = self._example(transcript, followed, execution, at_us)
        return Group(lead_path, self._path(self._candidate, followed), field_name, 1, at_us, at_us, (example,))

    def _path(self, side: Side, followed: FollowResult) -> PathText:
        if followed.outcome is None:
            assert followed.new is not None
            name = followed.note_builder.name_at(followed.points, followed.new.path)
            return PathText(name, (f"at {_request_name(followed.new)}",))
        note = followed.note_builder.note(followed.points, followed.outcome)
        node_id = side.compiled.node.node_id
        if node_id not in self._points:
            self._points[node_id] = side.program().points()
        words = path_words(note, side.compiled, self._points[node_id])
        more = (f"… {len(words) - _MAX_WORDS:,} more",) if len(words) > _MAX_WORDS else ()
        return PathText(note.name, (*words[:_MAX_WORDS], *more))

    def _example(self, transcript: Transcript, followed: FollowResult, execution: str | None, at_us: int) -> Example:
        candidate = self._candidate
        if followed.new is not None:
            mask = candidate.masks.request(followed.new.path)
            key = mask.mask_key(followed.new.key)
            asked = replace(followed.new, arguments=mask.mask_arguments(followed.new.arguments), key=key)  # type: ignore[arg-type]  # masks are texts
            text = f"requests {request_text(asked)}"
        else:
            assert followed.outcome is not None
            text = outcome_words(candidate.masks.outcome(followed.outcome))
        return Example(
            execution,
            at_us,
            self._redact_and_cut(self._inputs_text(transcript)),
            self._redact_and_cut(outcome_words(self._lead.masks.outcome(transcript.outcome))),
            self._redact_and_cut(text),
        )

    def _inputs_text(self, transcript: Transcript) -> str:
        """Return the inputs. Those that a version declares sensitive are masked."""
        shown = self._lead.masks.inputs(dict(transcript.inputs))
        return "\n".join(f"{printable(name)} = {_value_text(each)}" for name, each in shown.items())

    def _redact_and_cut(self, text: str) -> str:
        text = self._redact(text)
        return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"


def _value_text(value: object) -> str:
    """Return an input as text; a caller may have given an object that is no value."""
    try:
        return value if value == SENSITIVE and isinstance(value, str) else show(value)
    except Exception:  # noqa: BLE001  # objects of callers may raise anything
        return f"<{type(value).__name__}>"


def _request_name(request: Request) -> str:
    return f"{printable(fold_rounds(request.path))} ({request.effect})"


def _ending_name(outcome: Outcome) -> str:
    """Return the ending of an execution for a group, without values. The code of a user function may hold a value."""
    if isinstance(outcome, Failed) and not _CODE.fullmatch(str(outcome.code)):
        return "failed"
    return printable(ending(outcome))


def _fault_kind(broke: Broke) -> str:
    """Return the kind of a fault without its message, which may hold values."""
    return type(broke.error).__name__ if broke.error is not None else broke.what.partition(":")[0]
